/* SPDX-License-Identifier: Apache-2.0 */
/* peal/plan.h: plans from Peal text and from other formats are described, launched, timed, or
 * refused. */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <peal/plan.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, COUNT = 40 };

static const char xml[] =
    "<algo name='swap' proto='Simple' nchannels='1' nchunksperloop='1' ngpus='2' coll='broadcast' "
    "inplace='0'>\n"
    "  <gpu id='0' i_chunks='1' o_chunks='1' s_chunks='0'>\n"
    "    <tb id='0' send='1' recv='-1' chan='0'>\n"
    "      <step s='0' type='s' srcbuf='i' srcoff='0' dstbuf='o' dstoff='0' cnt='1' depid='-1' "
    "deps='-1' hasdep='0'/>\n"
    "      <step s='1' type='cpy' srcbuf='i' srcoff='0' dstbuf='o' dstoff='0' cnt='1' depid='-1' "
    "deps='-1' hasdep='0'/>\n"
    "    </tb>\n"
    "  </gpu>\n"
    "  <gpu id='1' i_chunks='1' o_chunks='1' s_chunks='0'>\n"
    "    <tb id='0' send='-1' recv='0' chan='0'>\n"
    "      <step s='0' type='r' srcbuf='i' srcoff='0' dstbuf='o' dstoff='0' cnt='1' depid='-1' "
    "deps='-1' hasdep='0'/>\n"
    "    </tb>\n"
    "  </gpu>\n"
    "</algo>\n";

static enum peal_status open_plan(const char *text, const char *library, struct peal_plan **out)
{
    static char error[512];
    struct peal_plan_args args;
    peal_plan_args_init(&args);
    args.text = text;
    args.library = library;
    args.ranks = RANKS;
    args.count = COUNT;
    args.op = PEAL_MAX;
    args.error = error;
    args.error_cap = sizeof error;
    enum peal_status status = peal_plan_open(&args, out);
    if (status != PEAL_OK)
        fprintf(stderr, "%s", error);
    return status;
}

TEST(a_plan_says_what_it_wants)
{
    struct peal_plan *plan;
    struct peal_plan_facts facts = {.struct_size = sizeof facts};
    struct peal_plan_buffer buffer = {.struct_size = sizeof buffer};
    assert_int_equal(open_plan(NULL, "allreduce_ring", &plan), PEAL_OK);
    peal_plan_describe(plan, &facts);
    assert_string_equal(facts.kernel, "allreduce_ring");
    assert_string_equal(facts.contract, "allreduce");
    assert_true(facts.ranks == RANKS && facts.buffers == 2 && facts.ops > 0);
    assert_int_equal(peal_plan_describe_buffer(plan, 1, 0, &buffer), PEAL_OK);
    assert_true(buffer.reads && !buffer.writes && !buffer.window && buffer.elements == COUNT);
    assert_int_equal(buffer.dtype, PEAL_F32);
    assert_int_equal(peal_plan_describe_buffer(plan, 1, 1, &buffer), PEAL_OK);
    assert_true(buffer.writes);
    assert_int_equal(peal_plan_describe_buffer(plan, 1, 2, &buffer), PEAL_INVALID);
    assert_int_equal(peal_plan_describe_buffer(plan, 2, 0, &buffer), PEAL_INVALID);
    peal_plan_close(plan);
    peal_plan_close(NULL);
}

TEST(what_is_no_plan_is_refused_with_a_place)
{
    struct peal_plan *plan = NULL;
    char error[256] = "";
    struct peal_plan_args args;
    peal_plan_args_init(&args);
    args.error = error;
    args.error_cap = sizeof error;
    args.ranks = RANKS;
    assert_int_equal(peal_plan_open(&args, &plan), PEAL_INVALID); /* no kernel is named */
    assert_non_null(strstr(error, "names the kernel"));
    args.text = "kernel bad( {";
    assert_int_equal(peal_plan_open(&args, &plan), PEAL_INVALID);
    assert_non_null(strstr(error, "text:1:"));
    args.text = "kernel many(in x: T[n], out y: T[n]) { assert nranks > 100, \"too few\"\n y = x }";
    assert_int_equal(peal_plan_open(&args, &plan), PEAL_INVALID);
    assert_non_null(strstr(error, "too few"));
    args.text = NULL;
    args.file = "/nowhere/x.peal";
    assert_int_equal(peal_plan_open(&args, &plan), PEAL_INVALID);
    assert_non_null(strstr(error, "/nowhere/x.peal"));
    args.file = NULL;
    args.library = "allreduce_ring";
    args.ranks = 0;
    assert_int_equal(peal_plan_open(&args, &plan), PEAL_INVALID);
    args.ranks = RANKS;
    args.root = RANKS;
    assert_int_equal(peal_plan_open(&args, &plan), PEAL_INVALID);
    args.root = 0;
    const struct peal_verify_value unknown = {"nn", (const int64_t[]){1}, 1};
    args.values = &unknown;
    args.nvalues = 1;
    assert_int_equal(peal_plan_open(&args, &plan), PEAL_INVALID);
    assert_non_null(strstr(error, "nn"));
    assert_null(plan);
}

static int launch(struct peal_comm *comm, const void *context)
{
    const struct peal_plan *plan = context;
    struct peal_user_kernel *kernel;
    struct peal_plan_facts facts = {.struct_size = sizeof facts};
    peal_plan_describe(plan, &facts);
    bool broadcasts = strcmp(facts.contract, "broadcast") == 0;
    float x[COUNT], y[COUNT];
    struct peal_arg args[2] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
                               {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y}};
    struct peal_op_time at[4096];
    struct peal_op_times times = {.at = at, .cap = sizeof at / sizeof *at};
    EXPECT(peal_user_kernel_load_plan(comm, plan, &kernel) == PEAL_OK);
    for (int k = 0; k < 5; k++) {
        for (int i = 0; i < COUNT; i++)
            x[i] = (float)(100 * peal_comm_rank(comm) + (uint32_t)(i + k));
        EXPECT(peal_user_kernel_set_times(kernel, k == 3 ? &times : NULL) == PEAL_OK);
        EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 2, NULL, 0) == PEAL_OK);
        for (int i = 0; i < COUNT; i++)
            EXPECT(y[i] == (float)(i + k + (broadcasts ? 0 : 100)));
    }
    EXPECT(times.len > 0 && times.lost == 0);
    for (uint64_t i = 0; i < times.len; i++)
        EXPECT(at[i].start <= at[i].end && at[i].op < facts.ops);

    /* Refused, and nothing is sent: the next launch works as before. */
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 1, NULL, 0) == PEAL_INVALID);
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F64, args, 2, NULL, 0) == PEAL_INVALID);
    struct peal_arg small[2] = {args[0], args[1]};
    small[1].bytes = 4;
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, small, 2, NULL, 0) == PEAL_INVALID);
    small[1] = args[0];
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, small, 2, NULL, 0) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "overlap") != NULL);
    struct peal_arg number[2] = {args[0], {.kind = PEAL_ARG_INT}};
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, number, 2, NULL, 0) == PEAL_INVALID);
    const struct peal_dim dim = {"n", 3};
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 2, &dim, 1) == PEAL_INVALID);
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 2, NULL, 0) == PEAL_OK);
    peal_user_kernel_free(kernel);
    return 0;
}

TEST(plans_of_text_are_launched)
{
    struct peal_plan *plan;
    assert_int_equal(open_plan(NULL, "allreduce_ring", &plan), PEAL_OK);
    assert_true(children_run(RANKS, launch, plan));
    peal_plan_close(plan);
}

TEST(plans_of_other_formats_are_launched)
{
    struct peal_plan *plan;
    enum peal_status status = open_plan(xml, NULL, &plan);
    if (status == PEAL_UNSUPPORTED)
        skip(); /* built without expat */
    assert_int_equal(status, PEAL_OK);
    assert_true(children_run(RANKS, launch, plan));
    peal_plan_close(plan);
}

static int launch_others(struct peal_comm *comm, const void *context)
{
    struct peal_plan *const *plans = (struct peal_plan *const *)(uintptr_t)context;
    uint32_t rank = peal_comm_rank(comm);
    struct peal_user_kernel *kernel;
    EXPECT(peal_user_kernel_load_plan(comm, plans[2], &kernel) == PEAL_INVALID); /* for 3 ranks */
    EXPECT(peal_user_kernel_load_plan(comm, NULL, &kernel) == PEAL_INVALID);
    EXPECT(peal_user_kernel_load_plan(comm, plans[rank], &kernel) == PEAL_OK);
    float x[COUNT] = {0}, y[COUNT];
    struct peal_arg args[2] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
                               {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y}};
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 2, NULL, 0) == PEAL_MISMATCH);
    peal_user_kernel_free(kernel);
    return 0;
}

TEST(ranks_with_different_plans_are_told)
{
    struct peal_plan *plans[3];
    struct peal_plan_args args;
    assert_int_equal(open_plan(NULL, "allreduce_ring", &plans[0]), PEAL_OK);
    assert_int_equal(open_plan(NULL, "allreduce_doubling", &plans[1]), PEAL_OK);
    peal_plan_args_init(&args);
    args.library = "allreduce_ring";
    args.ranks = 3;
    assert_int_equal(peal_plan_open(&args, &plans[2]), PEAL_OK);
    assert_true(children_run(RANKS, launch_others, plans));
    for (int i = 0; i < 3; i++)
        peal_plan_close(plans[i]);
}

int main(void)
{
    return unit_run();
}
