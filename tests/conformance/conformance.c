/* SPDX-License-Identifier: Apache-2.0 */
/* Every library kernel against its contract.
 *
 *   conformance quick|full FILE.peal...      prints TAP, a line per kernel
 *
 * A trial is five launches back to back, of up to three plans that differ in count and root, on the
 * same memory, under several schedules; inputs change with every launch. `quick` takes a few ranks
 * and counts, `full` all of them, with every data type, operation and root.
 */
#include "conformance/case.h"
#include "conformance/each.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAUNCHES = 5, PLANS = 3 };
static const size_t sequence[LAUNCHES] = {0, 1, 0, 2, 1};

struct run {
    const struct signature *signature;
    bool full;
    uint64_t trials;
    uint64_t seed;
    struct peal_text why;
};

static const char *describe(const struct variant *v, char text[static 256])
{
    snprintf(text, 256, "P=%u n=%llu %s %s root=%u most=%llu depth=%u slot=%llu%s%s", v->nranks,
             (unsigned long long)v->n, peal_dtype_name(v->dtype), peal_reduce_name(v->reduce),
             v->root, (unsigned long long)v->max_count, v->depth, (unsigned long long)v->slot_bytes,
             peal_text_if(v->in_place, " in-place"), peal_text_if(v->no_fuse, " unfused"));
    return text;
}

/* Runs the launches under one schedule and checks each. */
static bool run_once(struct run *run, struct peal_interp *in, const struct made *made,
                     enum contract_data data, const struct peal_interp_schedule *schedule)
{
    if (peal_interp_run(in, schedule) != PEAL_INTERP_DONE) {
        peal_text_printf(&run->why, "does not end well:\n%s", peal_interp_why(in));
        return false;
    }
    for (size_t l = 0; l < LAUNCHES; l++) {
        const struct made *m = &made[sequence[l]];
        if (!contract_holds(in, l, m->plan, &m->sizes, data, run->signature->order, &run->why)) {
            peal_text_printf(&run->why, "\nschedule %d, seed %llu, lazy %u", (int)schedule->order,
                             (unsigned long long)schedule->seed, schedule->chosen);
            return false;
        }
    }
    return true;
}

static bool run_launches(struct run *run, const struct made *made, enum contract_data data)
{
    uint32_t nranks = made[0].plan->nranks;
    struct peal_interp *in = peal_interp_new(nranks);
    bool good = false;
    for (size_t l = 0; l < LAUNCHES; l++) {
        const struct made *m = &made[sequence[l]];
        if (peal_interp_launch(in, m->plan) != l)
            goto free_interp;
        contract_fill(in, l, m->plan, &m->sizes, data, run->seed);
    }
    for (int k = 0; k < 4; k++) {
        struct peal_interp_schedule schedule = {.order = (enum peal_interp_order)k,
                                                .seed = run->seed,
                                                .chosen = (uint32_t)(run->seed % nranks)};
        if (!run_once(run, in, made, data, &schedule))
            goto free_interp;
    }
    good = true;
free_interp:
    peal_interp_free(in);
    return good;
}

static bool may_be_in_place(const struct signature *s, uint64_t n, uint32_t nranks)
{
    bool blocks = strcmp(s->kernel->implements, "all_to_all") == 0;
    return s->in_place && (!blocks || n % nranks == 0);
}

/* An exchange between windows needs blocks of one size. */
static bool takes_count(const struct signature *s, uint64_t n, uint32_t nranks)
{
    return strcmp(s->kernel->name, "all_to_all_window") != 0 || n % nranks == 0;
}

/* Plans of the variant, and of two more with other counts and roots. *v becomes the last one. */
static bool make_plans(struct run *run, struct variant *v, struct made made[static PLANS])
{
    static const uint64_t other[PLANS][2] = {{1, 0}, {0, 1}, {2, 5}}; /* n * a + b */
    const struct signature *s = run->signature;
    uint32_t root = v->root;
    uint64_t n = v->n;
    if (s->has_sends && !v->max_count)
        v->max_count = 2 * n + 5;
    for (size_t i = 0; i < PLANS; i++) {
        /* Halves begin at the same places only if plans are made for the same largest count. */
        bool same_count = s->has_max_count && !v->max_count;
        v->n = same_count ? n : other[i][0] * n + other[i][1];
        bool fits = takes_count(s, v->n, v->nranks) &&
                    (!v->in_place || may_be_in_place(s, v->n, v->nranks));
        v->n = fits ? v->n : n;
        v->root = (root + (uint32_t)i) % v->nranks;
        v->seed = run->seed + i;
        if (!case_make(s, v, &made[i], &run->why))
            return false;
    }
    return true;
}

/* One trial: launches of all plans in turn, on the same memory. */
static bool try(struct run *run, struct variant v)
{
    struct made made[PLANS] = {{0}};
    char text[256];
    enum contract_data data = run->seed % 2 ? DATA_ROUGH : DATA_EXACT;
    if (!run->signature->has_op || !peal_dtype_is_float(v.dtype) || v.reduce == PEAL_PROD)
        data = DATA_EXACT;
    bool good = make_plans(run, &v, made) && run_launches(run, made, data);
    if (!good)
        peal_text_printf(&run->why, "\n%s (%s data)", describe(&v, text),
                         data == DATA_EXACT ? "exact" : "rough");
    for (size_t i = 0; i < PLANS; i++)
        made_release(&made[i]);
    run->trials++;
    run->seed++;
    return good;
}

/* Roots, in place and not, fused and not, with and without a largest count, several depths. */
static bool try_shapes(struct run *run, struct variant v)
{
    uint32_t roots = run->signature->has_root ? v.nranks : 1;
    uint32_t step = !run->full && roots > 2 ? roots / 2 : 1;
    for (uint32_t root = 0; root < roots; root += step) {
        for (int k = 0; k < 8; k++) {
            v.root = root;
            v.in_place = k & 1;
            v.no_fuse = k & 2;
            v.max_count = k & 4 ? 2 * v.n + 7 : 0;
            /* One slot for the whole payload, or enough that no rank must receive while it sends. */
            v.depth = root % 2 || k & 2 ? 0 : 1024;
            if (k & 4)
                v.depth = 1;
            const char *name = run->signature->kernel->name;
            bool in_slot =
                run->signature->has_op && (strstr(name, "_direct") || strstr(name, "_send"));
            v.slot_bytes = v.depth == 1024 && !in_slot ? 16 : 0; /* recv_slot takes whole ones */
            if (v.in_place && !may_be_in_place(run->signature, v.n, v.nranks))
                continue;
            if (!try(run, v))
                return false;
        }
    }
    return true;
}

/* Every data type with every reduction of it; roots and the other choices take turns. */
static bool try_types(struct run *run, struct variant v)
{
    const char *name = run->signature->kernel->name;
    int ops = run->signature->has_op ? PEAL_REDUCTIONS : 1;
    for (int d = 0; d < PEAL_F8E4M3; d++) {
        for (int op = 0; op < ops; op++) {
            if (!peal_reduce_takes((enum peal_reduction)op, (enum peal_dtype)d) &&
                run->signature->has_op)
                continue;
            if (op == PEAL_AVG && strstr(name, "scan_")) /* no avg of a prefix */
                continue;
            v.dtype = (enum peal_dtype)d;
            v.reduce = (enum peal_reduction)op;
            v.root = (uint32_t)(run->trials % v.nranks);
            v.no_fuse = run->trials / 2 % 2;
            v.max_count = run->trials / 3 % 2 ? 2 * v.n + 7 : 0;
            v.in_place = run->trials / 5 % 2 && may_be_in_place(run->signature, v.n, v.nranks);
            if (!try(run, v))
                return false;
        }
    }
    return true;
}

static bool try_kernel(struct run *run)
{
    for (uint32_t nranks = 1; nranks <= 17; nranks++) {
        const uint64_t counts[] = {0, 1, nranks - 1, nranks, nranks + 1, 3 * nranks + 2, 256};
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            bool quick = (nranks <= 5 || nranks == 8) && (c == 1 || c == 4 || c == 5);
            if ((!run->full && !quick) || !takes_count(run->signature, counts[c], nranks))
                continue;
            struct variant v = {.nranks = nranks, .n = counts[c], .dtype = PEAL_F32};
            if (!try_shapes(run, v))
                return false;
            if ((run->full || (nranks == 3 && c == 5)) && !try_types(run, v))
                return false;
        }
    }
    return true;
}

static struct answer check(const struct peal_kernel *kernel, bool full)
{
    struct signature signature = signature_of(kernel);
    struct run run = {.signature = &signature, .full = full, .seed = 1};
    bool good = !kernel->implements || try_kernel(&run);
    return (struct answer){.good = good, .count = run.trials, .why = run.why};
}

int main(int argc, char **argv)
{
    return each_kernel_main(argc, argv, "trials", check);
}
