/* SPDX-License-Identifier: Apache-2.0 */
/* User kernels: refused with a reason or launched, with values that are the same on all ranks or
 * local. */
#include "comm/tests/children.h"
#include "base/base.h"
#include "base/tests/unit.h"

#include <stdint.h>
#include <string.h>

static int launch_user_kernel(struct peal_comm *comm, const void *context)
{
    (void)context;
    static const char text[] = "kernel twice(in x: T[n], out y: T[n], k: int) {\n"
                               "    let right = (rank + 1) % nranks\n"
                               "    send x to right\n"
                               "    let t: T[n] = recv from (rank - 1) % nranks\n"
                               "    y = t + t\n"
                               "}\n";
    struct peal_user_kernel *kernel = NULL;
    EXPECT(peal_user_kernel_load(comm, "kernel bad( {", NULL, &kernel) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "kernel:1:") != NULL);
    EXPECT(peal_user_kernel_load(comm, text, NULL, &kernel) == PEAL_OK);
    float x[10], y[10];
    for (int i = 0; i < 10; i++)
        x[i] = (float)(100 * peal_comm_rank(comm) + (uint32_t)i);
    struct peal_arg args[3] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
                               {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y},
                               {.kind = PEAL_ARG_INT, .value = 3}};
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 2, NULL, 0) == PEAL_INVALID);
    struct peal_arg swapped[3] = {args[2], args[1], args[0]};
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, swapped, 3, NULL, 0) == PEAL_INVALID);
    for (int k = 0; k < 20; k++)
        EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 3, NULL, 0) == PEAL_OK);
    uint32_t size = peal_comm_size(comm), left = (peal_comm_rank(comm) + size - 1) % size;
    for (int i = 0; i < 10; i++)
        EXPECT(y[i] == (float)(2 * (100 * left + (uint32_t)i)));
    peal_user_kernel_free(kernel);
    /* Local values: each rank gives its own. */
    int64_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct peal_arg locals[4] = {args[0],
                                 args[1],
                                 {.kind = PEAL_ARG_INTS, .values = ones, .nvalues = size},
                                 {.kind = PEAL_ARG_INTS, .values = ones, .nvalues = size}};
    EXPECT(peal_user_kernel_load(comm, NULL, "all_to_all_v", &kernel) == PEAL_OK);
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, locals, 4, NULL, 0) == PEAL_OK);
    for (uint32_t q = 0; q < size; q++)
        EXPECT(y[q] == (float)(100 * q + peal_comm_rank(comm)));
    peal_user_kernel_free(kernel);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    return 0;
}

/* Memory that peers add to atomically must be aligned for the processor's atomics. */
static int launch_beside_an_element(struct peal_comm *comm, const void *context)
{
    (void)context;
    static const char text[] = "kernel gift(inout g: window T[n]) {\n"
                               "    signal here, done\n"
                               "    let right = (rank + 1) % nranks\n"
                               "    let left = (rank - 1) % nranks\n"
                               "    let one: T[n] = g\n"
                               "    notify here@left += 1\n"
                               "    wait here >= 1\n"
                               "    g@right += one\n"
                               "    notify done@right += 1\n"
                               "    wait done >= 1\n"
                               "}\n";
    struct peal_user_kernel *kernel = NULL;
    void *memory = NULL;
    EXPECT(peal_user_kernel_load(comm, text, NULL, &kernel) == PEAL_OK);
    EXPECT(peal_symmetric_alloc(comm, 4096, &memory) == PEAL_OK);
    int64_t *g = memory;
    g[0] = g[1] = 3;
    struct peal_arg arg = {.kind = PEAL_ARG_BUFFER, .data = (char *)memory + 1, .bytes = 16};
    EXPECT(peal_user_kernel_launch(kernel, PEAL_I64, &arg, 1, NULL, 0) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "'g' is not at a multiple of its elements' size"));
    EXPECT(peal_user_kernel_launch(kernel, (enum peal_dtype)1000, &arg, 1, NULL, 0) ==
           PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "there is no data type"));
    /* A newer program's argument: more bytes, which this library accepts only if they are zero. */
    struct {
        struct peal_arg known;
        uint64_t later;
    } newer = {{.struct_size = sizeof newer, .kind = PEAL_ARG_BUFFER, .data = memory, .bytes = 16},
               1};
    EXPECT(peal_user_kernel_launch(kernel, PEAL_I64, &newer.known, 1, NULL, 0) == PEAL_UNSUPPORTED);
    newer.later = 0;
    g[0] = g[1] = 1;
    EXPECT(peal_user_kernel_launch(kernel, PEAL_I64, &newer.known, 1, NULL, 0) == PEAL_OK);
    g[0] = g[1] = 3;
    EXPECT(peal_user_kernel_launch(kernel, PEAL_I64, NULL, 1, NULL, 0) == PEAL_INVALID);
    arg.data = memory;
    EXPECT(peal_user_kernel_launch(kernel, PEAL_I64, &arg, 1, NULL, 0) == PEAL_OK);
    EXPECT(g[0] == 6 && g[1] == 6);
    peal_user_kernel_free(kernel);
    return 0;
}

TEST(windows_lie_at_multiples_of_their_elements)
{
    assert_true(children_run(3, launch_beside_an_element, NULL));
}

TEST(user_kernels_are_checked_and_launched)
{
    assert_true(children_run(3, launch_user_kernel, NULL));
}

/* Rows so far apart that the last one is beyond any memory. */
static int launch_wide_rows(struct peal_comm *comm, const void *context)
{
    (void)context;
    static const char text[] = "kernel rows(in x: T[m, n], out y: T[m, n]) { y = x }\n";
    static const struct {
        int line;
        uint64_t stride;
        enum peal_status status;
    } rows[] = {
        {__LINE__, 3, PEAL_INVALID},
        {__LINE__, 4, PEAL_OK},
        {__LINE__, 6, PEAL_OK},
        {__LINE__, 7, PEAL_INVALID},
        {__LINE__, UINT64_C(1) << 61, PEAL_INVALID},
        {__LINE__, UINT64_C(1) << 62, PEAL_INVALID},
        {__LINE__, UINT64_C(1) << 63, PEAL_INVALID},
        {__LINE__, UINT64_MAX, PEAL_INVALID},
    };
    struct peal_user_kernel *kernel = NULL;
    struct peal_dim dims[] = {{"m", 5}, {"n", 4}};
    float x[4 * 6 + 4] = {1, 2, 3, 4}, y[5 * 4];
    EXPECT(peal_user_kernel_load(comm, text, NULL, &kernel) == PEAL_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_arg args[2] = {
            {.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x, .stride = rows[i].stride},
            {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y}};
        enum peal_status status = peal_user_kernel_launch(kernel, PEAL_F32, args, 2, dims, 2);
        if (status != rows[i].status)
            fprintf(stderr, "row at line %d: %s\n", rows[i].line, peal_status_text(status));
        EXPECT(status == rows[i].status);
    }
    peal_user_kernel_free(kernel);
    return 0;
}

TEST(strides_are_held_to_the_buffer)
{
    assert_true(children_run(1, launch_wide_rows, NULL));
}

/* A message of two rows that lie apart, each larger than a frame of a network. */
static int send_large_rows(struct peal_comm *comm, const void *context)
{
    (void)context;
    enum { N = 100000, STRIDE = N + 16 };
    static const char text[] = "kernel pass(in x: T[m, n], out y: T[m, n]) {\n"
                               "    send x to (rank + 1) % nranks\n"
                               "    y = recv from (rank - 1) % nranks\n"
                               "}\n";
    static float x[2 * STRIDE], y[2 * N];
    struct peal_user_kernel *kernel = NULL;
    struct peal_dim dims[] = {{"m", 2}, {"n", N}};
    struct peal_arg args[2] = {
        {.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x, .stride = STRIDE},
        {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y}};
    for (int i = 0; i < 2 * STRIDE; i++)
        x[i] = (float)(i % 4096);
    EXPECT(peal_user_kernel_load(comm, text, NULL, &kernel) == PEAL_OK);
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 2, dims, 2) == PEAL_OK);
    for (int i = 0; i < 2 * N; i++)
        EXPECT(y[i] == x[i / N * STRIDE + i % N]);
    peal_user_kernel_free(kernel);
    return 0;
}

TEST(large_rows_are_sent)
{
    assert_true(children_run(2, send_large_rows, NULL));
}

static int launch_with_slips(struct peal_comm *comm, const void *context)
{
    (void)context;
    static const struct {
        int line;
        int dtype;
        size_t nargs;
        struct peal_dim dim;
        enum peal_status status;
        const char *error;
    } rows[] = {
        {__LINE__, PEAL_F32, 2, {"n", 4}, PEAL_OK, ""},
        {__LINE__, PEAL_F32, 2, {"m", 4}, PEAL_INVALID, "'copy' has no dimension 'm'"},
        {__LINE__, PEAL_F32, 2, {"x", 4}, PEAL_INVALID, "'copy' has no dimension 'x'"},
        {__LINE__, PEAL_F32, 2, {NULL, 4}, PEAL_INVALID, "'copy' has no dimension ''"},
        {__LINE__, PEAL_F32, 1, {"n", 4}, PEAL_INVALID, "'copy' takes 2 arguments, not 1"},
        {__LINE__, 99, 2, {"n", 4}, PEAL_INVALID, "there is no data type 99"},
    };
    struct peal_user_kernel *kernel = NULL;
    float x[4] = {1, 2, 3, 4}, y[4];
    EXPECT(peal_user_kernel_load(comm, "kernel copy(in x: T[n], out y: T[n]) { y = x }\n", NULL,
                                 &kernel) == PEAL_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_arg args[2] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
                                   {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y}};
        enum peal_status status = peal_user_kernel_launch(kernel, (enum peal_dtype)rows[i].dtype,
                                                          args, rows[i].nargs, &rows[i].dim, 1);
        if (status != rows[i].status || strcmp(peal_comm_error(comm), rows[i].error) != 0)
            fprintf(stderr, "row at line %d: %s: %s\n", rows[i].line, peal_status_text(status),
                    peal_comm_error(comm));
        EXPECT(status == rows[i].status);
        EXPECT(strcmp(peal_comm_error(comm), rows[i].error) == 0);
    }
    peal_user_kernel_free(kernel);
    return 0;
}

TEST(dimensions_and_types_that_are_none_are_refused)
{
    assert_true(children_run(1, launch_with_slips, NULL));
}

/* What a value is combined with when it is hashed after `key`. */
static uint64_t mask_of(uint64_t key)
{
    uint64_t inner = peal_hash_u64(8, key ^ UINT64_C(0x243f6a8885a308d3));
    return key ^ UINT64_C(0x13198a2e03707344) ^ peal_hash_u64(inner, key);
}

/* Two launches whose arguments have one 64-bit hash, chained value by value: each has its own plan. */
static int launch_colliding(struct peal_comm *comm, const void *context)
{
    (void)context;
    static const char text[] = "kernel add(in x: T[n], out y: T[n], a: int, b: int) {\n"
                               "    if b == b { y = x + a }\n"
                               "}\n";
    uint64_t key = peal_hash_bytes(text, sizeof text - 1, 7);
    key = peal_hash_u64(PEAL_F32, peal_hash_bytes("add", 3, key));
    int64_t a[2] = {1, 2}, b[2] = {5, 0};
    b[1] = (int64_t)((uint64_t)b[0] ^ mask_of(peal_hash_bytes(&a[0], 8, key)) ^
                     mask_of(peal_hash_bytes(&a[1], 8, key)));
    EXPECT(peal_hash_bytes(&b[0], 8, peal_hash_bytes(&a[0], 8, key)) ==
           peal_hash_bytes(&b[1], 8, peal_hash_bytes(&a[1], 8, key)));
    struct peal_user_kernel *kernel = NULL;
    float x[4] = {1, 2, 3, 4}, y[4];
    EXPECT(peal_user_kernel_load(comm, text, NULL, &kernel) == PEAL_OK);
    for (int i = 0; i < 4; i++) {
        struct peal_arg args[4] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
                                   {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y},
                                   {.kind = PEAL_ARG_INT, .value = a[i % 2]},
                                   {.kind = PEAL_ARG_INT, .value = b[i % 2]}};
        EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 4, NULL, 0) == PEAL_OK);
        EXPECT(y[0] == 1 + (float)a[i % 2] && y[3] == 4 + (float)a[i % 2]);
    }
    peal_user_kernel_free(kernel);
    return 0;
}

TEST(arguments_that_hash_alike_have_plans_of_their_own)
{
    assert_true(children_run(1, launch_colliding, NULL));
}

/* In place means the same as in calls of the contract's collective: the input of an allgather is
 * this rank's block of the output, on every rank. Other overlaps are refused. */
static int launch_in_place(struct peal_comm *comm, const void *context)
{
    (void)context;
    static const char text[] =
        "kernel mine(in x: T[n], out y: T[nranks * n]) implements allgather {\n"
        "    y[rank of nranks] = x\n"
        "    for p in peers { send x to p }\n"
        "    for p in peers { y[p of nranks] = recv from p }\n"
        "}\n";
    enum { EACH = 8, MAX_RANKS = 4 };
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    struct peal_user_kernel *kernel = NULL;
    float all[MAX_RANKS * EACH];
    EXPECT(peal_user_kernel_load(comm, text, NULL, &kernel) == PEAL_OK);
    for (uint32_t block = 0; block < size; block++) {
        struct peal_arg args[2] = {
            {.kind = PEAL_ARG_BUFFER, .data = all + block * EACH, .bytes = EACH * sizeof *all},
            {.kind = PEAL_ARG_BUFFER, .data = all, .bytes = size * EACH * sizeof *all}};
        if (block == rank)
            continue;
        EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 2, NULL, 0) == PEAL_INVALID);
        EXPECT(strstr(peal_comm_error(comm), "buffers 'x' and 'y' overlap"));
    }
    for (uint32_t i = 0; i < EACH; i++)
        all[rank * EACH + i] = (float)(rank * 100 + i);
    struct peal_arg args[2] = {
        {.kind = PEAL_ARG_BUFFER, .data = all + rank * EACH, .bytes = EACH * sizeof *all},
        {.kind = PEAL_ARG_BUFFER, .data = all, .bytes = size * EACH * sizeof *all}};
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 2, NULL, 0) == PEAL_OK);
    for (uint32_t i = 0; i < size * EACH; i++)
        EXPECT(all[i] == (float)(i / EACH * 100 + i % EACH));
    peal_user_kernel_free(kernel);
    return 0;
}

TEST(in_place_is_where_the_contract_says)
{
    assert_true(children_run(3, launch_in_place, NULL));
}

/* Atomics with a result, of cells on other ranks: a lock, a queue of work, and a race that one rank
 * wins. */
static int launch_atomics(struct peal_comm *comm, const void *context)
{
#define MEET(cell)                                                                                 \
    "    for p in peers { notify " cell "[rank]@p += 1 }\n    for p in peers { wait " cell         \
    "[p] >= 1 }\n"
    static const char text[] =
        "kernel lock(in x: T[n], out y: T[n]) {\n"
        "    window total: T[n]\n"
        "    signal raw lock\n"
        "    signal here[nranks], done[nranks], over[nranks]\n"
        "    if rank == 0 { total = x }\n" MEET(
            "here") "    if rank != 0 {\n"
                    "        take lock@0 from 0 to 1\n"
                    "        let sum = total@0 + x\n"
                    "        total@0 = sum\n"
                    "        notify lock@0 = 0\n"
                    "    }\n" MEET("done") "    y = total@0\n" MEET(
                        "over") "}\n"
                                "kernel queue(in x: T[n], out y: T[n]) {\n"
                                "    window table: T[n]\n"
                                "    signal raw next\n"
                                "    signal here[nranks], done[nranks], over[nranks]\n"
                                "    if rank == 0 { table = x }\n" MEET(
                                    "here") "    for i in 0 .. 4 {\n"
                                            "        let item = fetch_add(next@0, 1)\n"
                                            "        for k in 0 .. 4 {\n"
                                            "            when item == k { table@0[k of 4] = "
                                            "table@0[k of 4] + table@0[k of 4] }\n"
                                            "        }\n"
                                            "    }\n" MEET("done") "    y = table@0\n" MEET(
                                                "over") "}\n"
                                                        "kernel win(in x: T[n], out y: T[n]) "
                                                        "{\n"
                                                        "    window prize: T[n]\n"
                                                        "    signal raw won\n"
                                                        "    signal here[nranks], "
                                                        "done[nranks], over[nranks]\n" MEET(
                                                            "here") "    let before = "
                                                                    "compare_swap(won@0, 0, "
                                                                    "1)\n"
                                                                    "    when before == 0 { "
                                                                    "prize@0 = x }\n" MEET(
                                                                        "done") "    y = "
                                                                                "prize@"
                                                                                "0\n" MEET(
                                                                                    "ove"
                                                                                    "r") "}\n";
#undef MEET
    static const char *const names[] = {"lock", "queue", "win"};
    int64_t size = peal_comm_size(comm), rank = peal_comm_rank(comm);
    (void)context;
    for (int k = 0; k < 3; k++) {
        struct peal_user_kernel *kernel = NULL;
        int64_t x[8], y[8] = {0};
        struct peal_arg args[2] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
                                   {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y}};
        for (int i = 0; i < 8; i++)
            x[i] = rank + 1;
        EXPECT(peal_user_kernel_load(comm, text, names[k], &kernel) == PEAL_OK);
        EXPECT(peal_user_kernel_launch(kernel, PEAL_I64, args, 2, NULL, 0) == PEAL_OK);
        peal_user_kernel_free(kernel);
        for (int i = 0; i < 8; i++) {
            bool right[] = {y[i] == size * (size + 1) / 2, y[i] == 2,
                            y[i] >= 1 && y[i] <= size && y[i] == y[0]};
            EXPECT(right[k]);
        }
    }
    return 0;
}

TEST(atomics_reach_cells_of_all_ranks)
{
    assert_true(children_run(4, launch_atomics, NULL));
}

/* The sum of all ranks' vectors, by every way to move data: puts, gets, both in one computation,
 * accumulates, channels and their slots, lanes, cells of peers that are polled. No kernel is closed, so ranks leave while others
 * still read their memory. */
#define ROOM                                                                                       \
    "    signal ready[nranks], taken[nranks], there[nranks]\n"                                     \
    "    for p in peers { wait taken[p] >= 1 at launch - 1 }\n"
#define READY "    for p in peers { notify ready[rank]@p += 1 }\n"
#define ADD_UP(from, value)                                                                        \
    "    y = x\n"                                                                                  \
    "    for p in peers { wait " from "[p] >= 1 y += " value " notify taken[rank]@p += 1 }\n"
static const char *const sums[] = {
    "window w: T[nranks, n]\n" ROOM
    "    for p in peers { w[rank]@p = x notify ready[rank]@p += 1 notify there[rank]@p += 1 }\n"
    "    for p in peers { wait there[p] >= 1 }\n" ADD_UP("ready", "w[p]"),
    "window w: T[n]\n" ROOM "    w = x\n" READY
    "    for p in peers { notify there[rank]@p += 1 }\n    for p in peers { wait there[p] >= 1 "
    "}\n" ADD_UP("ready", "w@p"),
    "window w: T[n]\n    window v: T[nranks, n]\n" ROOM "    w = x\n" READY
    "    for p in peers { wait ready[p] >= 1 v[rank]@p = w@p + x notify there[rank]@p += 1 "
    "}\n" ADD_UP("there", "v[p] - x"),
    "window w: T[n]\n    signal ready[nranks], done[nranks]\n    w = x\n" READY
    "    for p in peers { wait ready[p] >= 1 w@p += x notify done[rank]@p += 1 }\n"
    "    for p in peers { wait done[p] >= 1 }\n    y = w\n",
    "for p in peers { send x to p }\n    y = x\n    for p in peers { y += recv from p }\n",
    "for p in peers { send x to p }\n    y = x\n"
    "    for p in peers { let t: T[n] = recv_slot from p y += t free t }\n",
    "window w: T[nranks, n]\n    signal ready[nranks], taken[nranks]\n"
    "    lane {\n        for p in peers { wait taken[p] >= 1 at launch - 1 }\n"
    "        for p in peers { w[rank]@p = x flush to p notify ready[rank]@p += 1 }\n    }\n"
    "    lane {\n" ADD_UP("ready", "w[p]") "    }\n",
    "window w: T[n]\n    signal raw calls, ready, read\n    notify calls += 1\n"
    "    let now = peek calls\n    for p in peers { wait read@p >= now - 1 }\n    w = x\n"
    "    notify ready = now\n    y = x\n    for p in peers { wait ready@p == now y += w@p }\n"
    "    notify read = now\n",
};

static int launch_sums(struct peal_comm *comm, const void *context)
{
    enum { COUNT = 300, LAUNCHES = 3 };
    uint32_t size = peal_comm_size(comm), rank = peal_comm_rank(comm);
    (void)context;
    for (size_t k = 0; k < sizeof sums / sizeof *sums; k++) {
        struct peal_user_kernel *kernel = NULL;
        char text[2048];
        int64_t x[COUNT], y[COUNT];
        struct peal_arg args[2] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
                                   {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y}};
        snprintf(text, sizeof text, "kernel sum(in x: T[n], out y: T[n]) {\n    %s}\n", sums[k]);
        EXPECT(peal_user_kernel_load(comm, text, NULL, &kernel) == PEAL_OK);
        for (int64_t launch = 0; launch < LAUNCHES; launch++) {
            for (int64_t i = 0; i < COUNT; i++)
                x[i] = rank + 10 * i + launch;
            EXPECT(peal_user_kernel_launch(kernel, PEAL_I64, args, 2, NULL, 0) == PEAL_OK);
            for (int64_t i = 0; i < COUNT; i++)
                EXPECT(y[i] == size * (size - 1) / 2 + size * (10 * i + launch));
        }
        peal_user_kernel_free(kernel);
    }
    return 0;
}

TEST(every_way_to_move_data_adds_up)
{
    assert_true(children_run(4, launch_sums, NULL));
}

int main(void)
{
    return unit_run();
}
