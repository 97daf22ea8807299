/* SPDX-License-Identifier: Apache-2.0 */
/* Symmetry is found where it exists, and not if one rank does one thing differently. */
#include "verify/order/symmetry.h"
#include "verify/symmetry/roots.h"

#include "base/tests/unit.h"
#include "plan/tests/made.h"

#include <stdio.h>

enum { LAUNCHES = 2 };

struct fixture {
    struct made made;
    const struct peal_plan *plans[LAUNCHES];
    struct program p;
};

static void begin(struct fixture *f, const char *kernel, uint32_t ranks, int64_t count)
{
    struct peal_bind bind = {.nranks = ranks,
                             .rank = PEAL_NONE,
                             .dtype = PEAL_F32,
                             .reduce = PEAL_SUM,
                             .symmetric = true};
    *f = (struct fixture){0};
    made_begin(&f->made, kernel);
    f->made.plan = made_plan(&f->made, bind, count);
    for (int i = 0; i < LAUNCHES; i++)
        f->plans[i] = f->made.plan;
    assert_int_equal(peal_program_build(&f->p, f->plans, LAUNCHES, UINT64_C(1) << 30), PEAL_OK);
}

static void end(struct fixture *f)
{
    peal_program_release(&f->p);
    made_end(&f->made);
}

TEST(kernels_have_the_symmetry_that_they_have)
{
    static const struct {
        int line;
        const char *kernel;
        uint32_t ranks;
        int64_t count;
        enum symmetry_kind kind;
        bool memory;
    } rows[] = {
        {__LINE__, "allreduce_ring", 5, 20, SYMMETRY_ROTATE, true},
        {__LINE__, "allreduce_ring", 5, 23, SYMMETRY_ROTATE, true}, /* lengths may differ */
        {__LINE__, "allreduce_ring", 5, 3, SYMMETRY_ROTATE, false}, /* emptiness may not */
        {__LINE__, "allreduce_ring", 5, 0, SYMMETRY_ROTATE, true},
        {__LINE__, "allreduce_chunked", 6, 12, SYMMETRY_ROTATE, true},
        {__LINE__, "allreduce_biring", 4, 16, SYMMETRY_ROTATE, true},
        {__LINE__, "allreduce_mesh", 7, 12, SYMMETRY_ROTATE, true}, /* sums are in rank order */
        {__LINE__, "allreduce_doubling", 8, 12, SYMMETRY_XOR, true},
        {__LINE__, "allreduce_doubling", 6, 12, SYMMETRY_NONE, false},
        {__LINE__, "allreduce_central", 4, 12, SYMMETRY_NONE, false},
        {__LINE__, "broadcast_flat", 4, 12, SYMMETRY_NONE, false},
        {__LINE__, "barrier_dissemination", 9, 0, SYMMETRY_ROTATE, true},
        {__LINE__, "allreduce_ring", 1, 20, SYMMETRY_NONE, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        begin(&f, rows[i].kernel, rows[i].ranks, rows[i].count);
        struct symmetry s = peal_symmetry_find(&f.p, f.p.steps);
        if (s.kind != rows[i].kind || peal_symmetry_of_memory(&f.p, &s) != rows[i].memory)
            fail_msg("line %d: symmetry %d, memory %d", rows[i].line, (int)s.kind,
                     (int)peal_symmetry_of_memory(&f.p, &s));
        f.p.plain = true;
        assert_int_equal(peal_symmetry_find(&f.p, f.p.steps).kind, SYMMETRY_NONE);
        end(&f);
    }
}

TEST(a_changed_step_breaks_it)
{
    struct fixture f;
    begin(&f, "allreduce_biring", 4, 16);
    for (uint64_t i = 0; i < f.p.nsteps; i++) {
        struct step kept = f.p.steps[i];
        f.p.steps[i].value++;
        assert_int_equal(peal_symmetry_find(&f.p, f.p.steps).kind, SYMMETRY_NONE);
        f.p.steps[i] = kept;
        f.p.steps[i].kind = kept.kind == STEP_NOP ? STEP_WAIT : STEP_NOP;
        assert_int_equal(peal_symmetry_find(&f.p, f.p.steps).kind, SYMMETRY_NONE);
        f.p.steps[i] = kept;
        f.p.steps[i].cell = (kept.cell + 1) % f.p.ncells;
        assert_int_equal(peal_symmetry_find(&f.p, f.p.steps).kind, SYMMETRY_NONE);
        f.p.steps[i] = kept;
    }
    f.p.initial[f.p.steps[0].cell]++;
    assert_int_equal(peal_symmetry_find(&f.p, f.p.steps).kind, SYMMETRY_NONE);
    end(&f);
}

TEST(a_changed_access_breaks_it)
{
    struct fixture f;
    begin(&f, "allreduce_ring", 4, 16);
    struct symmetry s = peal_symmetry_find(&f.p, f.p.steps);
    assert_true(peal_symmetry_of_memory(&f.p, &s));
    for (size_t i = 0; i < f.p.accesses.len; i++) {
        struct access kept = f.p.accesses.at[i], *a = &f.p.accesses.at[i];
        a->kind = kept.kind == ACCESS_WRITE ? ACCESS_ACCUMULATE : ACCESS_WRITE;
        assert_false(peal_symmetry_of_memory(&f.p, &s));
        *a = kept;
        a->step++;
        assert_false(peal_symmetry_of_memory(&f.p, &s));
        *a = kept;
        a->lo += 4;
        assert_false(peal_symmetry_of_memory(&f.p, &s));
        *a = kept;
        a->hi += 4;
        assert_false(peal_symmetry_of_memory(&f.p, &s));
        *a = kept;
        a->location ^= 1;
        assert_false(peal_symmetry_of_memory(&f.p, &s));
        *a = kept;
    }
    end(&f);
}

/* Every pair of a thread and a step, in one pass and by lazy runs. */
TEST(one_pass_gives_the_clocks_of_lazy_runs)
{
    static const char *const kernels[] = {
        "allreduce_ring", "allreduce_biring", "allreduce_central", "broadcast_binomial",
        "broadcast_pipe", "allreduce_tree",   "gather_flat",       "barrier_central"};
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        struct fixture f;
        begin(&f, kernels[k], 5, 20);
        size_t n = 0, total = (size_t)f.p.nthreads * (f.p.nsteps + f.p.nthreads);
        struct clock_query *lazy = malloc(2 * total * sizeof *lazy), *pass = lazy + total;
        uint32_t *answers = calloc(2 * total, sizeof *answers);
        assert_true(lazy && answers);
        for (uint32_t of = 0; of < f.p.nthreads; of++) {
            for (uint32_t t = 0; t < f.p.nthreads; t++) {
                for (uint32_t i = 0; i <= f.p.threads[t].nsteps; i++, n++) {
                    lazy[n] = (struct clock_query){of, t, i, &answers[n]};
                    pass[n] = (struct clock_query){of, t, i, &answers[total + n]};
                }
            }
        }
        f.p.plain = true;
        assert_true(peal_order_clocks(&f.p, lazy, n, 1));
        assert_true(peal_clocks_in_one_pass(&f.p, pass, n));
        assert_memory_equal(answers, answers + total, n * sizeof *answers);
        free(lazy);
        free(answers);
        end(&f);
    }
}

/* --- roots ----------------------------------------------------------------------------------- */

enum { RANKS = 4 };

struct rooted {
    struct made made;
    struct peal_plan *plans[RANKS];
};

/* kernel: a name in the library, or a text. */
static void begin_rooted(struct rooted *f, const char *kernel, int64_t count)
{
    struct peal_bind bind = {.nranks = RANKS,
                             .rank = PEAL_NONE,
                             .dtype = PEAL_F32,
                             .reduce = PEAL_SUM,
                             .symmetric = true};
    made_begin(&f->made, kernel);
    for (bind.root = 0; bind.root < RANKS; bind.root++)
        f->plans[bind.root] = made_plan(&f->made, bind, count);
}

static bool rooted_rotate(const struct rooted *f)
{
    return peal_symmetry_of_roots((const struct peal_plan *const *)f->plans, RANKS);
}

static void end_rooted(struct rooted *f)
{
    for (uint32_t r = 0; r < RANKS; r++)
        free(f->plans[r]);
    made_end(&f->made);
}

TEST(roots_of_the_library_rotate)
{
    static const struct {
        int line;
        const char *kernel;
        int64_t count;
        bool rotates;
    } rows[] = {
        {__LINE__, "broadcast_flat", 7, true},     {__LINE__, "broadcast_pipe", 7, true},
        {__LINE__, "broadcast_binomial", 7, true}, {__LINE__, "broadcast_chain", 7, true},
        {__LINE__, "broadcast_direct", 7, true},   {__LINE__, "broadcast_peer", 7, true},
        {__LINE__, "reduce_mesh", 7, true},        {__LINE__, "reduce_binomial", 7, true},
        {__LINE__, "reduce_direct", 7, false},     {__LINE__, "gather_flat", 8, true},
        {__LINE__, "scatter_flat", 8, true},       {__LINE__, "gather_flat", 7, false},
        {__LINE__, "scatter_direct", 8, true},     {__LINE__, "reduce_rows", 8, true},
        {__LINE__, "broadcast_share", 8, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rooted f;
        begin_rooted(&f, rows[i].kernel, rows[i].count);
        if (rooted_rotate(&f) != rows[i].rotates)
            fail_msg("line %d: %s", rows[i].line, rows[i].kernel);
        end_rooted(&f);
    }
}

/* Changes one op of one of the plans. */
TEST(a_changed_plan_does_not_rotate)
{
    struct rooted f;
    begin_rooted(&f, "broadcast_chain", 7);
    assert_true(rooted_rotate(&f));
    for (uint32_t r = 0; r < RANKS; r++) {
        struct peal_op *ops = (struct peal_op *)((char *)f.plans[r] + f.plans[r]->ops.offset);
        struct peal_ref *refs = (struct peal_ref *)((char *)f.plans[r] + f.plans[r]->refs.offset);
        for (uint64_t i = 0; i < f.plans[r]->ops.count; i++) {
            struct peal_op kept = ops[i];
            ops[i].flags ^= PEAL_OP_RELAXED;
            assert_false(rooted_rotate(&f));
            ops[i] = kept;
            if (peal_op_is_sync(&kept))
                ops[i].sync.value++;
            else
                ops[i].mem.count--;
            assert_false(rooted_rotate(&f));
            ops[i] = kept;
        }
        for (uint64_t i = 0; i < f.plans[r]->refs.count; i++) {
            struct peal_ref kept = refs[i];
            refs[i].rank = (refs[i].rank + 1) % RANKS;
            assert_false(rooted_rotate(&f));
            refs[i] = kept;
        }
    }
    struct peal_plan *first = f.plans[0];
    f.plans[0] = f.plans[1];
    assert_false(rooted_rotate(&f));
    f.plans[0] = first;
    end_rooted(&f);
}

/* A flush to the same rank with every root is not an image of itself. */
TEST(flushes_rotate_with_their_targets)
{
    static const char fixed[] =
        "kernel k(in x: T[n], out y: T[n], root: int) implements broadcast {\n"
        "    window slot: T[n]\n"
        "    signal ready[nranks]\n"
        "    if rank == root {\n"
        "        for p in peers { slot@p = x }\n"
        "        flush to 1\n"
        "        for p in peers { notify ready[rank]@p += 1 }\n"
        "        y = x\n"
        "    } else {\n"
        "        wait ready[root] >= 1\n"
        "        y = slot\n"
        "    }\n"
        "}\n";
    char moving[sizeof fixed + 32];
    const char *target = strstr(fixed, "to 1");
    snprintf(moving, sizeof moving, "%.*sto (root + 1) %% nranks%s", (int)(target - fixed), fixed,
             target + strlen("to 1"));
    struct rooted f;
    begin_rooted(&f, moving, 7);
    assert_true(rooted_rotate(&f));
    end_rooted(&f);
    begin_rooted(&f, fixed, 7);
    assert_false(rooted_rotate(&f));
    end_rooted(&f);
}

int main(void)
{
    return unit_run();
}
