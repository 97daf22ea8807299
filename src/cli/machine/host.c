/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured of this host as a machine file, and as JSON. See host.h. */
#include "cli/machine/host.h"

/* Rates by the bytes that pass a core's caches in a round, `times` the size of the copy. */
static void put_curve(struct peal_text *out, const char *key, const double *ns, double fixed,
                      uint64_t times, const struct peal_host_figures *f)
{
    peal_text_printf(out, "  %s: \"", key);
    for (int i = 0; i < PEAL_HOST_SIZES; i++) {
        char bytes[24];
        double rest = ns[i] - fixed > 0.05 * ns[i] ? ns[i] - fixed : 0.05 * ns[i];
        peal_text_printf(out, "%s%s:%.2f", i ? " " : "",
                         peal_size_format(times * f->bytes[i], bytes), (double)f->bytes[i] / rest);
    }
    peal_text_puts(out, "\"\n");
}

void peal_host_machine(const struct peal_host_figures *f, uint32_t ranks, struct peal_text *out)
{
    const struct peal_host_pair *pair = &f->pairs[0];
    for (uint32_t i = 0; i < f->npairs; i++) {
        if (f->pairs[i].cores[1] == 1)
            pair = &f->pairs[i];
    }
    char date[16] = "";
    time_t today = time(NULL);
    struct tm tm;
    if (gmtime_r(&today, &tm))
        strftime(date, sizeof date, "%Y-%m-%d", &tm);
    peal_text_printf(out, "# %s, %u cores, measured on %s by peal machine --this-host.\n",
                     f->processor, f->cores, date);
    peal_text_printf(out,
                     "# A system call takes %.0f ns, a yield %.0f ns, waking a sleeper %.0f ns.\n",
                     f->syscall_ns, f->yield_ns, f->wake_ns);
    for (uint32_t i = 0; i < f->npairs; i++)
        peal_text_printf(out, "# Cores %u and %u share %s: a line's round trip takes %.0f ns.\n",
                         f->pairs[i].cores[0], f->pairs[i].cores[1], f->pairs[i].shared,
                         f->pairs[i].round_trip_ns);
    double fixed = f->copy[0] * 0.9; /* a copy of 128 bytes is little but its call */
    double cell = f->cell_ns > 0 ? f->cell_ns : pair->round_trip_ns / 2;
    double slot = f->bytes[4] / f->fetch[4];
    peal_text_printf(out, "topology: {flat: %u}\nlinks: {flat: {bw_GBps: .inf, lat_ns: %.3f}}\n",
                     ranks, cell / 2);
    peal_text_printf(out, "ipcq: {slots: 4, slot_bytes: 65536, wake_ps: %.0f}\n", 500 * cell);
    peal_text_printf(out, "dma: {bw_GBps: %.2f}\nmem: {tcm: {bw_GBps: .inf}}\n", slot);
    peal_text_puts(out, "math: {clock_GHz: .inf, lanes: {f32: 16}}\npe: {send_async: false}\n"
                        "signal: {notify_bytes: 0, request_bytes: 0}\nhost:\n");
    put_curve(out, "copy_GBps", f->copy, fixed, 2, f);
    put_curve(out, "fetch_GBps", f->fetch, fixed, 3, f);
    put_curve(out, "reduce_GBps", f->reduce, fixed, 4, f);
    put_curve(out, "push_GBps", f->push, fixed, 4, f);
    if (f->has_kernel) {
        double base = f->kernel_ns * 0.95;
        put_curve(out, "kernel_GBps", f->kernel, base, 3, f);
        peal_text_printf(out, "  kernel_ns: %.3f\n", base);
    }
    peal_text_printf(out, "  op_ns: %.3f\n", f->op_ns > 0 ? f->op_ns : fixed);
    if (ranks > f->cores)
        peal_text_printf(out, "  cores: %u\n  switch_ns: %.3f\n", f->cores, f->yield_ns);
    peal_text_printf(out, "ccl: {launch_ns: %.3f, embed: row_major}\n", f->launch_ns);
    peal_text_puts(out, "data: {mode: \"off\"}\n");
}

static void put_times(struct peal_json *json, const char *key, const double *ns)
{
    peal_json_put_array(json, key);
    for (int i = 0; i < PEAL_HOST_SIZES; i++)
        peal_json_real(json, ns[i]);
    peal_json_array_end(json);
}

void peal_host_json(const struct peal_host_figures *f, struct peal_json *json)
{
    peal_json_object(json);
    peal_json_put_string(json, "processor", f->processor);
    peal_json_put_uint(json, "cores", f->cores);
    peal_json_put_real(json, "syscall_ns", f->syscall_ns);
    peal_json_put_real(json, "yield_ns", f->yield_ns);
    peal_json_put_real(json, "wake_ns", f->wake_ns);
    peal_json_put_real(json, "launch_ns", f->launch_ns);
    peal_json_put_real(json, "op_ns", f->op_ns);
    peal_json_put_real(json, "cell_ns", f->cell_ns);
    peal_json_put_array(json, "pairs");
    for (uint32_t i = 0; i < f->npairs; i++) {
        peal_json_object(json);
        peal_json_put_uint(json, "core", f->pairs[i].cores[0]);
        peal_json_put_uint(json, "other", f->pairs[i].cores[1]);
        peal_json_put_string(json, "share", f->pairs[i].shared);
        peal_json_put_real(json, "round_trip_ns", f->pairs[i].round_trip_ns);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_put_array(json, "bytes");
    for (int i = 0; i < PEAL_HOST_SIZES; i++)
        peal_json_uint(json, f->bytes[i]);
    peal_json_array_end(json);
    put_times(json, "copy_ns", f->copy);
    put_times(json, "fetch_ns", f->fetch);
    put_times(json, "push_ns", f->push);
    put_times(json, "reduce_ns", f->reduce);
    if (f->has_kernel)
        put_times(json, "kernel_ns", f->kernel);
    peal_json_object_end(json);
}

const char *peal_host_why_not(const struct peal_host_figures *figures, enum peal_status status)
{
    if (figures->no_cores)
        return "this command was built without hwloc";
    if (status == PEAL_UNSUPPORTED)
        return "it takes two cores";
    return peal_status_text(status);
}
