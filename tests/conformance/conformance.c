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
    const struct subject *subject;
    bool full;
    uint64_t trials;
    uint64_t seed;
    struct peal_text why;
};

static const char *describe(const struct variant *v, char text[static 256])
{
    snprintf(text, 256, "P=%u n=%llu %s %s root=%u most=%llu depth=%u slot=%llu%s%s", v->nranks,
             (unsigned long long)v->n, peal_dtype_name(v->dtype), peal_reduce_name(v->reduce),
             v->root, (unsigned long long)v->most, v->depth, (unsigned long long)v->slot_bytes,
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
        if (!contract_holds(in, l, m->plan, &m->sizes, data, run->subject->order, &run->why)) {
            peal_text_printf(&run->why, "\nschedule %d, seed %llu, lazy %u", (int)schedule->order,
                             (unsigned long long)schedule->seed, schedule->lazy);
            return false;
        }
    }
    return true;
}

static bool run_launches(struct run *run, const struct made *made, enum contract_data data)
{
    uint32_t nranks = made[0].plan->nranks;
    struct peal_interp *in = peal_interp_new(nranks);
    bool good = true;
    for (size_t l = 0; l < LAUNCHES && good; l++) {
        const struct made *m = &made[sequence[l]];
        good = peal_interp_launch(in, m->plan) == l;
        if (good)
            contract_fill(in, l, m->plan, &m->sizes, data, run->seed);
    }
    for (int k = 0; k < 4 && good; k++) {
        struct peal_interp_schedule schedule = {.order = (enum peal_interp_order)k,
                                                .seed = run->seed,
                                                .lazy = (uint32_t)(run->seed % nranks)};
        good = run_once(run, in, made, data, &schedule);
    }
    peal_interp_free(in);
    return good;
}

static bool may_be_in_place(const struct subject *s, uint64_t n, uint32_t nranks)
{
    bool blocks = strcmp(s->kernel->implements, "all_to_all") == 0;
    return s->in_place && (!blocks || n % nranks == 0);
}

/* Windows in place exchange blocks of one size only. */
static bool takes_count(const struct subject *s, uint64_t n, uint32_t nranks)
{
    return strcmp(s->kernel->name, "all_to_all_window") != 0 || n % nranks == 0;
}

/* One trial: the variant, and two more with other counts and roots on the same memory. */
static bool try(struct run *run, struct variant v)
{
    static const uint64_t other[PLANS][2] = {{1, 0}, {0, 1}, {2, 5}}; /* n * a + b */
    struct made made[PLANS] = {{0}};
    uint32_t root = v.root;
    uint64_t n = v.n;
    bool good = true;
    char text[256];
    if (run->subject->has_sends && !v.most)
        v.most = 2 * n + 5;
    for (size_t i = 0; i < PLANS && good; i++) {
        /* Halves are at the same places only if they are made for the same most count. */
        bool same_count = run->subject->has_most && !v.most;
        v.n = same_count ? n : other[i][0] * n + other[i][1];
        bool fits = takes_count(run->subject, v.n, v.nranks) &&
                    (!v.in_place || may_be_in_place(run->subject, v.n, v.nranks));
        v.n = fits ? v.n : n;
        v.root = (root + (uint32_t)i) % v.nranks;
        v.seed = run->seed + i;
        good = case_make(run->subject, &v, &made[i], &run->why);
    }
    enum contract_data data = run->seed % 2 ? DATA_ROUGH : DATA_EXACT;
    if (!run->subject->has_op || !peal_dtype_is_float(v.dtype) || v.reduce == PEAL_PROD)
        data = DATA_EXACT;
    if (good)
        good = run_launches(run, made, data);
    if (!good)
        peal_text_printf(&run->why, "\n%s (%s data)", describe(&v, text),
                         data == DATA_EXACT ? "exact" : "rough");
    for (size_t i = 0; i < PLANS; i++)
        made_release(&made[i]);
    run->trials++;
    run->seed++;
    return good;
}

/* All roots, in place and not, fused and not, halves at a given distance and not. */
static bool try_shapes(struct run *run, struct variant v)
{
    uint32_t roots = run->subject->has_root ? v.nranks : 1;
    uint32_t step = !run->full && roots > 2 ? roots / 2 : 1;
    for (uint32_t root = 0; root < roots; root += step) {
        for (int k = 0; k < 8; k++) {
            v.root = root;
            v.in_place = k & 1;
            v.no_fuse = k & 2;
            v.most = k & 4 ? 2 * v.n + 7 : 0;
            /* A slot for the whole payload, or many small ones: no rank receives while it sends. */
            v.depth = root % 2 || k & 2 ? 0 : 1024;
            if (k & 4)
                v.depth = 1;
            const char *name = run->subject->kernel->name;
            bool in_slot =
                run->subject->has_op && (strstr(name, "_direct") || strstr(name, "_send"));
            v.slot_bytes = v.depth == 1024 && !in_slot ? 16 : 0; /* recv_slot takes whole ones */
            if (v.in_place && !may_be_in_place(run->subject, v.n, v.nranks))
                continue;
            if (!try(run, v))
                return false;
        }
    }
    return true;
}

/* Every data type with every operation it has; the other choices take turns. */
static bool try_types(struct run *run, struct variant v)
{
    const char *name = run->subject->kernel->name;
    for (int d = 0; d < PEAL_F8E4M3; d++) {
        for (int op = 0; op < (run->subject->has_op ? PEAL_REDUCTIONS : 1); op++) {
            if (!peal_reduce_takes((enum peal_reduction)op, (enum peal_dtype)d) &&
                run->subject->has_op)
                continue;
            if (op == PEAL_AVG && strstr(name, "scan_")) /* no avg of a prefix */
                continue;
            v.dtype = (enum peal_dtype)d;
            v.reduce = (enum peal_reduction)op;
            v.root = (uint32_t)(run->trials % v.nranks);
            v.no_fuse = run->trials / 2 % 2;
            v.most = run->trials / 3 % 2 ? 2 * v.n + 7 : 0;
            v.in_place = run->trials / 5 % 2 && may_be_in_place(run->subject, v.n, v.nranks);
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
            if ((!run->full && !quick) || !takes_count(run->subject, counts[c], nranks))
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
    struct subject subject = subject_of(kernel);
    struct run run = {.subject = &subject, .full = full, .seed = 1};
    bool good = !kernel->implements || try_kernel(&run);
    return (struct answer){.good = good, .count = run.trials, .why = run.why};
}

int main(int argc, char **argv)
{
    return each_kernel_main(argc, argv, "trials", check);
}
