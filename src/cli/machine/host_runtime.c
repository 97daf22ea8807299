/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime costs on this host, by three kernels of two ranks: see host.h. */
#include "cli/machine/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPIES = 32, TRIPS = 16, LAUNCHES = 301, ROUNDS = 5 };

/* One small copy; COPIES of them, in an order in which they are not one; TRIPS round trips, and one. */
static const char kernels[] = "kernel one(in x: T[n], out y: T[n]) {\n"
                              "    y[0 +: 1] = x[0 +: 1]\n"
                              "}\n"
                              "kernel many(in x: T[n], out y: T[n]) {\n"
                              "    for i in 0 .. 32 { y[31 - i +: 1] = x[i +: 1] }\n"
                              "}\n"
                              "kernel trips(in x: T[n], out y: T[n]) {\n"
                              "    signal s\n"
                              "    for i in 0 .. 16 {\n"
                              "        if rank == 0 { notify s@1 += 1 wait s >= i + 1 }\n"
                              "        if rank == 1 { wait s >= i + 1 notify s@0 += 1 }\n"
                              "    }\n"
                              "    y[0 +: 1] = x[0 +: 1]\n"
                              "}\n";

/* The number after this key in a line of JSON; < 0: there is none. */
static double number_of(const char *json, const char *key)
{
    const char *at = strstr(json, key);
    at = at ? strchr(at, ':') : NULL;
    return at ? strtod(at + 1, NULL) : -1;
}

static double run_named(const char *kernel, const char *name, uint32_t ranks, int64_t count,
                        uint64_t launches)
{
    char words[3][24];
    snprintf(words[0], sizeof words[0], "%u", ranks);
    snprintf(words[1], sizeof words[1], "%lld", (long long)count);
    snprintf(words[2], sizeof words[2], "%llu", (unsigned long long)launches);
    const char *argv[] = {"/proc/self/exe",   "run",    kernel, "-n",     words[0],
                          "--count",          words[1], "-l",   words[2], "--json",
                          name ? "-k" : NULL, name,     NULL};
    struct peal_text out = {0};
    struct peal_child child = {.argv = argv, .input = -1, .limit_ms = 60000};
    double us = -1;
    if (peal_child_output(&child, &out) == PEAL_OK && number_of(peal_text_get(&out), "wrong") == 0)
        us = number_of(peal_text_get(&out), "time_us");
    peal_text_release(&out);
    return us;
}

double peal_host_run(const char *kernel, uint32_t ranks, int64_t count, uint64_t launches)
{
    return run_named(kernel, NULL, ranks, count, launches);
}

/* The least of some runs' medians: other work only adds to them. */
static double least(const char *file, const char *name)
{
    double best = -1;
    for (int round = 0; round < ROUNDS; round++) {
        double us = run_named(file, name, 2, COPIES, LAUNCHES);
        if (us > 0 && (best < 0 || us < best))
            best = us;
    }
    return best * 1e3;
}

bool peal_host_measure_runtime(const struct peal_cli *cli, struct peal_host_figures *out)
{
    char folder[PEAL_CLI_FOLDER], path[PEAL_CLI_FOLDER + 16];
    struct peal_text text = {0};
    if (!peal_cli_folder_open(cli, folder))
        return false;
    snprintf(path, sizeof path, "%s/host.peal", folder);
    peal_text_puts(&text, kernels);
    bool ok = !text.failed && peal_cli_write(cli, path, &text);
    peal_text_release(&text);
    if (ok) {
        double one = least(path, "one"), many = least(path, "many"), trips = least(path, "trips");
        ok = one > 0 && many > 0 && trips > 0;
        if (!ok)
            peal_cli_fail(cli, "two ranks cannot be run on this host; 'peal run' says why");
        double op = many > one ? (many - one) / (COPIES - 1) : 0;
        out->op_ns = op;
        out->launch_ns = one > op ? one - op : 0;
        out->cell_ns = trips > one ? (trips - one) / (2 * TRIPS) : 0;
    }
    peal_cli_folder_remove(folder);
    return ok;
}

int peal_host_command(struct peal_cli *cli, uint32_t ranks, const char *output, bool as_json)
{
    struct peal_host_figures figures;
    struct peal_text machine = {0}, json_text = {0};
    enum peal_status status = peal_host_measure(&figures);
    if (status != PEAL_OK)
        return peal_cli_fail(cli, "this host cannot be measured: %s",
                             peal_host_why_not(&figures, status));
    if (!peal_host_measure_runtime(cli, &figures))
        return PEAL_EXIT_OTHER;
    peal_host_machine(&figures, ranks ? ranks : figures.cores, &machine);
    int code = PEAL_EXIT_OK;
    if (output && !peal_cli_write(cli, output, &machine))
        code = PEAL_EXIT_OTHER;
    if (as_json) {
        struct peal_json json;
        peal_json_init(&json, &json_text, 2);
        peal_host_json(&figures, &json);
        peal_text_puts(&json_text, "\n");
        code = peal_cli_print(cli, &json_text, code);
    } else if (!output) {
        return peal_cli_print(cli, &machine, code);
    }
    peal_text_release(&machine);
    return code;
}
