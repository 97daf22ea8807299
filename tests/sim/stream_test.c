/* SPDX-License-Identifier: Apache-2.0 */
/* Plans made in parts, which are not kept: their lanes are those of the whole plan, op by op, and
 * their simulation has the same statistics, to the byte. */
#include "sim_cases.h"

#include "lang/lang.h"
#include "plan/plan.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct compared {
    const struct peal_plan *whole;
    uint64_t ops;
    bool differs;
};

/* Compares everything but the numbers of refs, tiles and positions, which depend on the order in
 * which ranks are walked. */
static bool same_op(const struct compared *c, const struct peal_part_lane *lane, uint64_t i)
{
    const struct peal_lane *want = peal_plan_lane(c->whole, lane->rank, lane->lane);
    const struct peal_op *a = peal_plan_ops(c->whole) + want->first_op + i, *b = &lane->ops[i];
    if (a->kind != b->kind || a->fn != b->fn || a->flags != b->flags || a->dtype != b->dtype ||
        a->mem.nsrc != b->mem.nsrc || a->mem.more_dsts != b->mem.more_dsts ||
        a->mem.count != b->mem.count || a->mem.rows != b->mem.rows)
        return false;
    if (a->kind == PEAL_OP_COMPUTE && a->mem.divisor != b->mem.divisor)
        return false;
    uint32_t refs = peal_op_nrefs(a);
    for (uint32_t k = 0; k < refs; k++) {
        const struct peal_ref *x = peal_plan_refs(c->whole) + a->mem.ref + k;
        const struct peal_ref *y = lane->refs + b->mem.ref + k;
        bool slot = x->buf == PEAL_BUF_SLOT;
        if (x->rank != y->rank || x->buf != y->buf || x->dtype != y->dtype ||
            (!slot && x->row != y->row) || x->offset != y->offset)
            return false;
    }
    return true;
}

static bool compare(void *context, const struct peal_part_lane *lane)
{
    struct compared *c = context;
    c->differs |= peal_plan_lane(c->whole, lane->rank, lane->lane)->ops != lane->count;
    c->ops += lane->count;
    for (uint64_t i = 0; i < lane->count; i++) {
        if (c->differs)
            break;
        c->differs = !same_op(c, lane, i);
    }
    return true;
}

static struct peal_bind make_bind(uint32_t nranks, const struct peal_bind_value *n)
{
    return (struct peal_bind){.nranks = nranks,
                              .rank = PEAL_NONE,
                              .dtype = PEAL_F32,
                              .reduce = PEAL_SUM,
                              .channel_depth = 2,
                              .values = n,
                              .nvalues = 2};
}

/* True if the kernel can be made in parts. */
static bool check_parts(const struct peal_kernel *kernel, const struct peal_bind *bind)
{
    struct peal_diags diags;
    struct peal_plan *whole = NULL, *frame = NULL;
    struct peal_parts *parts = NULL;
    peal_diags_init(&diags);
    bool has_both = peal_instantiate(kernel, bind, &diags, &whole) == PEAL_OK &&
                    peal_parts_open(kernel, bind, &diags, &parts) == PEAL_OK;
    if (has_both) {
        struct compared c = {.whole = whole};
        for (uint32_t rank = 0; rank < bind->nranks; rank++)
            assert_int_equal(peal_parts_walk(parts, rank, compare, &c), PEAL_OK);
        if (c.differs || c.ops != whole->ops.count)
            fail_msg("%s at %u ranks: its parts are not its plan", kernel->name, bind->nranks);
        assert_int_equal(peal_parts_end(parts, &frame), PEAL_OK);
        const char *why;
        assert_true(peal_plan_check(frame, frame->block_len, &why));
        assert_int_equal(frame->ops.count, 0);
        assert_int_equal(frame->channels.count, whole->channels.count);
        for (uint64_t i = 0; i < frame->channels.count; i++) {
            assert_int_equal(peal_plan_channels(frame)[i].sends,
                             peal_plan_channels(whole)[i].sends);
            assert_int_equal(peal_plan_channels(frame)[i].recvs,
                             peal_plan_channels(whole)[i].recvs);
        }
    }
    free(frame);
    free(whole);
    peal_diags_release(&diags);
    return has_both;
}

static void check_runs(const struct peal_kernel *kernel, const struct peal_bind *bind,
                       const struct peal_machine *machine, uint32_t threads)
{
    struct peal_diags diags;
    struct peal_plan *whole = NULL;
    struct peal_sim *kept = NULL, *streamed = NULL;
    struct peal_sim_options options = {0};
    peal_diags_init(&diags);
    assert_int_equal(peal_instantiate(kernel, bind, &diags, &whole), PEAL_OK);
    assert_int_equal(peal_sim_new(machine, bind->nranks, &options, &diags, &kept), PEAL_OK);
    assert_int_equal(peal_sim_new(machine, bind->nranks, &options, &diags, &streamed), PEAL_OK);
    assert_int_equal(peal_sim_launch(kept, whole, NULL, &diags), PEAL_OK);
    assert_int_equal(peal_sim_launch_kernel(streamed, kernel, bind, threads, &diags), PEAL_OK);
    assert_int_equal(peal_sim_run(kept), PEAL_OK);
    assert_int_equal(peal_sim_run(streamed), PEAL_OK);
    assert_null(peal_sim_deadlock(kept));
    assert_memory_equal(peal_sim_stats(kept), peal_sim_stats(streamed),
                        sizeof(struct peal_sim_stats));
    peal_sim_free(kept);
    peal_sim_free(streamed);
    free(whole);
    peal_diags_release(&diags);
}

static const uint32_t sizes[] = {1, 2, 3, 5, 8, 16};

/* Calls check for every library kernel, with even and uneven parts; it counts the plans that can be
 * made in parts. */
static void each_kernel(void (*check)(const struct peal_kernel *, const struct peal_bind *,
                                      uint32_t *))
{
    struct peal_diags diags;
    struct peal_program *program = NULL;
    uint32_t streamed = 0;
    peal_diags_init(&diags);
    assert_int_equal(peal_program_open("allreduce_chunked", &diags, &program), PEAL_OK);
    const struct peal_module *module = peal_program_module(program);
    for (const struct peal_kernel *k = module->kernels; k; k = k->next) {
        const struct peal_kernel *kernel = peal_program_kernel(program, k->name, &diags);
        if (!kernel)
            continue;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            for (int64_t n = 64; n <= 67; n += 3) {
                struct peal_bind_value values[] = {{.name = "n", .values = &n, .count = 1},
                                                   {.name = "m", .values = &n, .count = 1}};
                struct peal_bind bind = make_bind(sizes[i], values);
                check(kernel, &bind, &streamed);
            }
        }
    }
    assert_true(streamed >= 60);
    peal_program_close(program);
    peal_diags_release(&diags);
}

static void count_parts(const struct peal_kernel *kernel, const struct peal_bind *bind,
                        uint32_t *streamed)
{
    *streamed += check_parts(kernel, bind);
}

TEST(parts_have_the_ops_of_the_whole_plan)
{
    each_kernel(count_parts);
}

static void run_both(const struct peal_kernel *kernel, const struct peal_bind *bind,
                     uint32_t *streamed)
{
    static const char *const files[] = {"mesh4x4.yaml", "torus8x8.yaml", "exact.yaml"};
    struct peal_diags diags;
    struct peal_parts *parts = NULL;
    peal_diags_init(&diags);
    struct peal_plan *whole = NULL;
    bool possible = peal_instantiate(kernel, bind, &diags, &whole) == PEAL_OK &&
                    peal_parts_open(kernel, bind, &diags, &parts) == PEAL_OK;
    peal_parts_free(parts);
    free(whole);
    peal_diags_release(&diags);
    if (!possible)
        return;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct peal_machine *machine =
            case_machine(files[i], "pe.math_async=false pe.recv_async=false");
        check_runs(kernel, bind, machine, 1 + (uint32_t)i);
        peal_machine_free(machine);
        (*streamed)++;
    }
}

TEST(streamed_runs_equal_runs_of_the_whole_plan)
{
    each_kernel(run_both);
}

TEST(what_cannot_be_streamed_is_refused)
{
    static const struct {
        int line;
        const char *kernel, *settings;
        struct peal_sim_options options;
    } rows[] = {
        {__LINE__, "allreduce_ring", "", {0}},
        {__LINE__, "allreduce_chunked", "", {.log = true}},
        {__LINE__, "allreduce_chunked", "", {.data = PEAL_SIM_DATA_FULL}},
        {__LINE__, "allreduce_chunked", "pe.math_async=true", {0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_diags diags;
        struct peal_program *program = NULL;
        struct peal_sim *sim = NULL;
        int64_t n = 64;
        struct peal_bind_value values[] = {{.name = "n", .values = &n, .count = 1},
                                           {.name = "m", .values = &n, .count = 1}};
        struct peal_bind bind = make_bind(4, values);
        struct peal_machine *machine = case_machine("mesh4x4.yaml", rows[i].settings);
        peal_diags_init(&diags);
        assert_int_equal(peal_program_open(rows[i].kernel, &diags, &program), PEAL_OK);
        const struct peal_kernel *kernel = peal_program_kernel(program, NULL, &diags);
        assert_int_equal(peal_sim_new(machine, 4, &rows[i].options, &diags, &sim), PEAL_OK);
        if (peal_sim_launch_kernel(sim, kernel, &bind, 2, &diags) != PEAL_UNSUPPORTED ||
            diags.errors != 1)
            fail_msg("row of line %d is not refused", rows[i].line);
        peal_sim_free(sim);
        peal_machine_free(machine);
        peal_program_close(program);
        peal_diags_release(&diags);
    }
}

int main(void)
{
    return unit_run();
}
