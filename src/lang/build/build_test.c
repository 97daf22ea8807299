/* SPDX-License-Identifier: Apache-2.0 */
/* What a program builds prints as text, and reads back as the same text with the same meaning. */
#include "lang/build/build.h"
#include "lang/deduce/deduce.h"
#include "lang/library.h"
#include "lang/syntax/parse.h"
#include "lang/syntax/print.h"
#include "lang/syntax/syntax.h"
#include "lang/tree/validate.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finishes; the module must print as expected, read back the same, and (`right`) be deduced. */
static void check_built(struct peal_builder *b, const char *expected, bool right)
{
    struct peal_diags diags;
    struct peal_module *built = NULL;
    struct peal_module *read = NULL;
    struct peal_library *library = NULL;
    struct peal_text once = {0};
    struct peal_text twice = {0};
    peal_diags_init(&diags);
    if (peal_builder_finish(b, &diags, &built) != PEAL_OK)
        fail_msg("%s", diags.list.len ? diags.list.at[0].message : "no message");
    peal_print_module(built, &once);
    assert_string_equal(peal_text_get(&once), expected);
    struct peal_source source = {"built", peal_text_get(&once), once.len};
    assert_int_equal(peal_parse(&source, &diags, &read), PEAL_OK);
    peal_print_module(read, &twice);
    assert_string_equal(peal_text_get(&twice), expected);
    assert_int_equal(peal_library_open(NULL, &library), PEAL_OK);
    if (right && peal_deduce(built, peal_library_module(library), &diags) != PEAL_OK) {
        peal_text_release(&twice);
        peal_diags_print(&diags, false, &twice);
        fail_msg("%s", peal_text_get(&twice));
    }
    assert_true(peal_validate(built, "build", &diags));
    peal_module_free(built);
    peal_module_free(read);
    peal_library_close(library);
    peal_text_release(&once);
    peal_text_release(&twice);
    peal_diags_release(&diags);
}

TEST(a_ring_allreduce_is_a_page)
{
    struct peal_builder *b = peal_builder_new();
    struct peal_expr *one = peal_build_int(b, 1);
    struct peal_expr *n = peal_build_name(b, "n");
    struct peal_expr *rank = peal_build_name(b, "rank");
    struct peal_expr *nranks = peal_build_name(b, "nranks");
    const struct peal_build_memory vector = {.len = n};

    peal_build_kernel(b, "ring", "allreduce");
    peal_build_doc(b, "Every rank's vector travels once round.");
    struct peal_expr *x = peal_build_param(b, "x", &vector);
    struct peal_expr *y = peal_build_param(b, "y", &vector);
    struct peal_expr *op = peal_build_reduce_param(b, "op");
    struct peal_expr *right =
        peal_build_let(b, "right", NULL, peal_build_mod(b, peal_build_add(b, rank, one), nranks));
    struct peal_expr *left =
        peal_build_let(b, "left", NULL, peal_build_mod(b, peal_build_sub(b, rank, one), nranks));
    struct peal_expr *acc = peal_build_carry(b, PEAL_CARRY_DATA, "acc", x);
    struct peal_expr *cur = peal_build_carry(b, PEAL_CARRY_DATA, "cur", x);
    peal_build_for(b, "s", one, nranks, NULL);
    {
        peal_build_send(b, cur, right, NULL);
        peal_build_assign(b, cur, peal_build_recv(b, left, NULL));
        peal_build_assign(b, acc, peal_build_apply(b, op, acc, cur));
    }
    peal_build_end(b);
    peal_build_assign(b, y, peal_build_call(b, "final", op, acc));
    check_built(b,
                "// Every rank's vector travels once round.\n"
                "kernel ring(x: T[n], y: T[n], op: reduce) implements allreduce {\n"
                "    let right = (rank + 1) % nranks\n"
                "    let left = (rank - 1) % nranks\n"
                "    let acc = x\n"
                "    let cur = x\n"
                "    for s in 1 .. nranks {\n"
                "        send cur to right\n"
                "        cur = recv from left\n"
                "        acc = op(acc, cur)\n"
                "    }\n"
                "    y = final(op, acc)\n"
                "}\n",
                true);
}

TEST(posted_receives_are_lets_assignments_and_waits)
{
    struct peal_builder *b = peal_builder_new();
    const struct peal_build_memory vector = {.len = peal_build_name(b, "n")};
    peal_build_kernel(b, "posted", NULL);
    struct peal_expr *x = peal_build_param(b, "x", &vector);
    struct peal_expr *y = peal_build_param(b, "y", &vector);
    struct peal_expr *rank = peal_build_name(b, "rank");
    struct peal_expr *f = peal_build_let(b, "f", &vector, peal_build_recv_async(b, rank, NULL));
    peal_build_send(b, x, rank, NULL);
    peal_build_await(b, f, NULL);
    peal_build_assign(b, f, peal_build_recv_async(b, rank, NULL));
    peal_build_send(b, x, rank, NULL);
    peal_build_await(b, f, y);
    check_built(b,
                "kernel posted(x: T[n], y: T[n]) {\n"
                "    let f: T[n] = recv_async from rank\n"
                "    send x to rank\n"
                "    wait f\n"
                "    f = recv_async from rank\n"
                "    send x to rank\n"
                "    wait f into y\n"
                "}\n",
                true);
}

TEST(contracts_are_built_by_ensures_and_requires)
{
    struct peal_builder *b = peal_builder_new();
    struct peal_expr *n = peal_build_name(b, "n"), *rank = peal_build_name(b, "rank");
    struct peal_expr *i = peal_build_name(b, "i"), *q = peal_build_name(b, "q");
    peal_build_kernel(b, "own", NULL);
    struct peal_expr *x = peal_build_param(b, "x", &(struct peal_build_memory){.len = n, .dir = 1});
    struct peal_expr *t = peal_build_param(b, "t", &(struct peal_build_memory){.len = n, .dir = 3});
    peal_build_requires(b, peal_build_less(b, peal_build_int(b, 1), n));
    const struct peal_build_over others = {"q", peal_build_int(b, 0), peal_build_name(b, "nranks"),
                                           peal_build_not_equal(b, q, rank)};
    struct peal_expr *sum = peal_build_reduced(b, peal_build_name(b, "sum"), &others,
                                               peal_build_index(b, peal_build_at(b, x, q), i));
    struct peal_expr *old = peal_build_call(b, "old", peal_build_index(b, t, i));
    peal_build_ensures(b, peal_build_index(b, t, i), peal_build_add(b, sum, old),
                       peal_build_less(b, i, rank));
    peal_build_ensures(b, t, x, NULL);
    peal_build_assign(b, t, peal_build_add(b, t, x));
    check_built(b,
                "kernel own(in x: T[n], inout t: T[n]) {\n"
                "    requires 1 < n\n"
                "    ensures t[i] == sum(q in 0 .. nranks where q != rank: x@q[i]) + old(t[i])"
                " where i < rank\n"
                "    ensures t == x\n"
                "    t = t + x\n"
                "}\n",
                true);
}

TEST(placement_is_built_by_name_and_call)
{
    struct peal_builder *b = peal_builder_new();
    const struct peal_build_memory vector = {.len = peal_build_name(b, "n")};
    peal_build_kernel(b, "placed", NULL);
    struct peal_expr *x = peal_build_param(b, "x", &vector);
    struct peal_expr *y = peal_build_param(b, "y", &vector);
    struct peal_expr *node = peal_build_let(b, "node", NULL, peal_build_name(b, "seats"));
    struct peal_expr *next = peal_build_mod(b, peal_build_add(b, peal_build_name(b, "node"), node),
                                            peal_build_name(b, "nodes"));
    peal_build_send(b, x, peal_build_call(b, "at", next, peal_build_int(b, 0)), NULL);
    peal_build_assign(b, y, x);
    check_built(b,
                "kernel placed(x: T[n], y: T[n]) {\n"
                "    let node_1 = seats\n"
                "    send x to at((node + node_1) % nodes, 0)\n"
                "    y = x\n"
                "}\n",
                true);
}

/* var, if, else, for, assert. */
static void build_branches(struct peal_builder *b, struct peal_expr *counts, struct peal_expr *n)
{
    struct peal_expr *zero = peal_build_int(b, 0);
    struct peal_expr *rank = peal_build_name(b, "rank");
    struct peal_expr *i = peal_build_var(b, "i", peal_build_index(b, counts, rank));
    peal_build_if(b, peal_build_op(b, "not", peal_build_not_equal(b, rank, zero), NULL));
    peal_build_assign(b, i, zero);
    peal_build_else(b);
    struct peal_expr *q = peal_build_for_peers(b, "q");
    peal_build_assert(
        b, peal_build_op(b, "or", peal_build_less(b, q, n), peal_build_at_least(b, q, n)), "never");
    peal_build_end(b);
    peal_build_end(b);
}

static const char every_form[] =
    "kernel all(inout x: window T[n], m: f32[n, n], local counts: int[nranks], "
    "most: int = n) {\n"
    "    window wide w: T[n]\n"
    "    private p: T[n]\n"
    "    signal s[nranks]\n"
    "    signal raw raw\n"
    "    channel up\n"
    "    grid 1, nranks torus\n"
    "    tree 2 from rank\n"
    "    w = -x\n"
    "    p[rank of nranks] = w@0[rank of nranks]\n"
    "    exclusive x@0 += p\n"
    "    x max= p\n"
    "    m[:, 0 +: n] = -0.5\n"
    "    notify s[rank]@0 += 2\n"
    "    wait s[launch mod 1] >= 0 at launch - 1\n"
    "    let t = peek raw\n"
    "    notify relaxed raw = t + 0\n"
    "    wait relaxed raw == 0\n"
    "    wait raw >= launch + 0\n"
    "    send x to E on up\n"
    "    let got: T[n] = recv_slot from child 0 on up\n"
    "    free got\n"
    "    var i = counts[rank]\n"
    "    if not rank != 0 {\n"
    "        i = 0\n"
    "    } else {\n"
    "        for q in peers {\n"
    "            assert q < n or q >= n, \"never\"\n"
    "        }\n"
    "    }\n"
    "    allreduce(x, sum, ring)\n"
    "    barrier()\n"
    "}\n";

TEST(every_form_can_be_built)
{
    struct peal_builder *b = peal_builder_new();
    struct peal_expr *zero = peal_build_int(b, 0);
    struct peal_expr *n = peal_build_name(b, "n");
    struct peal_expr *rank = peal_build_name(b, "rank");
    struct peal_expr *nranks = peal_build_name(b, "nranks");
    peal_build_kernel(b, "all", NULL);
    struct peal_expr *x =
        peal_build_param(b, "x", &(struct peal_build_memory){.len = n, .dir = 3, .window = true});
    struct peal_expr *m =
        peal_build_param(b, "m", &(struct peal_build_memory){.elem = "f32", .len = n, .cols = n});
    struct peal_expr *counts = peal_build_ints_param(b, "counts", true, nranks);
    peal_build_int_param(b, "most", false, n);
    struct peal_expr *w =
        peal_build_window(b, "w", &(struct peal_build_memory){.len = n, .wide = true});
    struct peal_expr *p = peal_build_private(b, "p", &(struct peal_build_memory){.len = n});
    struct peal_expr *s = peal_build_signal(b, "s", NULL, nranks);
    struct peal_expr *raw = peal_build_signal(b, "raw", "raw", NULL);
    struct peal_expr *up = peal_build_channel(b, "up");
    peal_build_grid(b, peal_build_int(b, 1), nranks, true);
    peal_build_tree(b, peal_build_int(b, 2), rank);
    peal_build_assign(b, w, peal_build_op(b, "-", x, NULL));
    peal_build_assign(b, peal_build_part(b, p, rank, nranks),
                      peal_build_part(b, peal_build_at(b, w, zero), rank, nranks));
    peal_build_accumulate(b, peal_build_at(b, x, zero), NULL, p, true);
    peal_build_accumulate(b, x, peal_build_name(b, "max"), p, false);
    peal_build_assign(b,
                      peal_build_block(b, m, (struct peal_build_slice){PEAL_BUILD_ALL, NULL, NULL},
                                       (struct peal_build_slice){PEAL_BUILD_RANGE, zero, n}),
                      peal_build_real(b, -0.5));
    peal_build_notify(b, peal_build_at(b, peal_build_index(b, s, rank), zero), peal_build_int(b, 2),
                      NULL);
    peal_build_wait(b, peal_build_index(b, s, peal_build_launch_mod(b, 1)), zero,
                    &(struct peal_build_sync){.back = 1});
    struct peal_expr *t = peal_build_let(b, "t", NULL, peal_build_peek(b, raw));
    peal_build_notify(b, raw, peal_build_add(b, t, zero),
                      &(struct peal_build_sync){.set = true, .relaxed = true});
    peal_build_wait(b, raw, zero, &(struct peal_build_sync){.equal = true, .relaxed = true});
    peal_build_wait(b, raw, peal_build_add(b, peal_build_launch(b), zero), NULL);
    peal_build_send(b, x, peal_build_port(b, "E", NULL), up);
    struct peal_expr *got =
        peal_build_let(b, "got", &(struct peal_build_memory){.len = n},
                       peal_build_recv_slot(b, peal_build_port(b, "child", zero), up));
    peal_build_free(b, got);
    build_branches(b, counts, n);
    peal_build_run(b, "allreduce", x, peal_build_name(b, "sum"), peal_build_name(b, "ring"));
    peal_build_run(b, "barrier");
    check_built(b, every_form, true);
}

TEST(atomics_can_be_built)
{
    struct peal_builder *b = peal_builder_new();
    struct peal_expr *zero = peal_build_int(b, 0), *one = peal_build_int(b, 1);
    struct peal_expr *n = peal_build_name(b, "n");
    peal_build_kernel(b, "atomics", NULL);
    struct peal_expr *y = peal_build_param(b, "y", &(struct peal_build_memory){.len = n, .dir = 2});
    struct peal_expr *lock = peal_build_signal(b, "lock", "raw", NULL);
    struct peal_expr *far = peal_build_at(b, lock, zero);
    struct peal_expr *got = peal_build_var(b, "got", peal_build_fetch_add(b, far, one));
    peal_build_order(b, "acquire", "device");
    peal_build_take(b, far, zero, one);
    peal_build_order(b, "full", NULL);
    peal_build_fence(b);
    peal_build_when(b, peal_build_at_least(b, got, one));
    peal_build_order(b, "release", NULL);
    peal_build_assign(b, got, peal_build_compare_swap(b, lock, one, zero));
    peal_build_assign(b, y, zero);
    peal_build_end(b);
    check_built(b,
                "kernel atomics(out y: T[n]) {\n"
                "    signal raw lock\n"
                "    var got = fetch_add(lock@0, 1)\n"
                "    take acquire device lock@0 from 0 to 1\n"
                "    fence full\n"
                "    when got >= 1 {\n"
                "        got = compare_swap(release lock, 1, 0)\n"
                "        y = 0\n"
                "    }\n"
                "}\n",
                true);
}

TEST(lanes_can_be_of_a_block)
{
    struct peal_builder *b = peal_builder_new();
    peal_build_kernel(b, "blocks", NULL);
    struct peal_expr *s = peal_build_signal(b, "s", NULL, NULL);
    struct peal_expr *one = peal_build_int(b, 1);
    for (int i = 0; i < 2; i++) {
        peal_build_lane(b);
        peal_build_lane_block(b, one);
        peal_build_order(b, NULL, "block");
        if (i == 0)
            peal_build_notify(b, s, one, NULL);
        else
            peal_build_wait(b, s, one, NULL);
        peal_build_end(b);
    }
    check_built(b,
                "kernel blocks() {\n"
                "    signal s\n"
                "    lane block 1 {\n"
                "        notify block s += 1\n"
                "    }\n"
                "    lane block 1 {\n"
                "        wait block s >= 1\n"
                "    }\n"
                "}\n",
                true);
}

TEST(an_order_fits_its_operation)
{
    struct peal_builder *b = peal_builder_new();
    peal_build_kernel(b, "orders", NULL);
    peal_build_order(b, "relaxed", NULL);
    peal_build_fence(b);
    assert_null(peal_builder_text(b));
    peal_builder_free(b);
}

TEST(a_when_has_no_else)
{
    struct peal_builder *b = peal_builder_new();
    peal_build_kernel(b, "one_way", NULL);
    struct peal_expr *s = peal_build_signal(b, "s", "raw", NULL);
    struct peal_expr *one = peal_build_int(b, 1);
    struct peal_expr *t = peal_build_let(b, "t", NULL, peal_build_fetch_add(b, s, one));
    peal_build_when(b, peal_build_at_least(b, t, one));
    peal_build_else(b);
    assert_null(peal_builder_text(b));
    peal_builder_free(b);
}

TEST(a_reduction_can_be_built)
{
    struct peal_builder *b = peal_builder_new();
    struct peal_expr *half = peal_build_op(b, "/", peal_build_name(b, "a"), peal_build_int(b, 2));
    struct peal_expr *smooth = peal_build_reduction(
        b, "smooth", "associative", peal_build_op(b, "+", half, peal_build_name(b, "b")));
    peal_build_reduction(b, "first", NULL, peal_build_name(b, "a"));
    peal_build_kernel(b, "all", NULL);
    struct peal_build_memory memory = {.len = peal_build_name(b, "n")};
    struct peal_expr *x = peal_build_param(b, "x", &memory);
    struct peal_expr *y = peal_build_param(b, "y", &memory);
    peal_build_assign(b, y, peal_build_apply(b, smooth, x, x));
    check_built(b,
                "reduce smooth(a, b) associative = a / 2 + b\n"
                "\n"
                "reduce first(a, b) = a\n"
                "\n"
                "kernel all(x: T[n], y: T[n]) {\n"
                "    y = smooth(x, x)\n"
                "}\n",
                true);
    struct peal_module *module = NULL;
    b = peal_builder_new();
    assert_null(peal_build_reduction(b, "f", "symmetric", peal_build_name(b, "a")));
    assert_int_equal(peal_builder_finish(b, NULL, &module), PEAL_INVALID);
}

TEST(lanes_can_be_built)
{
    struct peal_builder *b = peal_builder_new();
    struct peal_expr *zero = peal_build_int(b, 0);
    struct peal_expr *n = peal_build_name(b, "n");
    peal_build_kernel(b, "lanes", NULL);
    struct peal_expr *y = peal_build_param(b, "y", &(struct peal_build_memory){.len = n});
    struct peal_expr *lane = peal_build_lanes(b, "lane_number", zero, peal_build_int(b, 2));
    peal_build_assign(b, peal_build_range(b, y, lane, peal_build_int(b, 1)), zero);
    peal_build_end(b);
    peal_build_lane(b);
    peal_build_end(b);
    check_built(b,
                "kernel lanes(y: T[n]) {\n"
                "    lane lane_number in 0 .. 2 {\n"
                "        y[lane_number +: 1] = 0\n"
                "    }\n"
                "    lane {\n"
                "    }\n"
                "}\n",
                true);
}

TEST(matrices_are_multiplied_by_a_call)
{
    struct peal_builder *b = peal_builder_new();
    struct peal_expr *n = peal_build_name(b, "n"), *m = peal_build_name(b, "m");
    peal_build_kernel(b, "product", NULL);
    struct peal_expr *x =
        peal_build_param(b, "x", &(struct peal_build_memory){.len = m, .cols = n, .dir = 1});
    struct peal_expr *w =
        peal_build_param(b, "w", &(struct peal_build_memory){.len = n, .cols = m, .dir = 1});
    struct peal_expr *y =
        peal_build_param(b, "y", &(struct peal_build_memory){.len = m, .cols = m, .dir = 2});
    peal_build_assign(b, y, peal_build_call(b, "matmul", x, w));
    check_built(b,
                "kernel product(in x: T[m, n], in w: T[n, m], out y: T[m, m]) {\n"
                "    y = matmul(x, w)\n"
                "}\n",
                true);
}

TEST(names_are_unique_at_any_depth)
{
    struct peal_builder *b = peal_builder_new();
    struct peal_expr *two = peal_build_int(b, 2);
    peal_build_kernel(b, "k", NULL);
    peal_build_int_param(b, "i", false, NULL);
    struct peal_expr *sum = peal_build_carry(b, PEAL_CARRY_INT, "in", two);
    for (int depth = 0; depth < 3; depth++) {
        struct peal_expr *i = peal_build_for(b, "i", sum, two, depth == 1 ? two : NULL);
        struct peal_expr *c = peal_build_let(b, "c", NULL, peal_build_mul(b, i, i));
        peal_build_assign(b, sum, peal_build_add(b, sum, c));
    }
    for (int depth = 0; depth < 3; depth++)
        peal_build_end(b);
    peal_build_let(b, "rank", NULL, sum);
    check_built(b,
                "kernel k(i: int) {\n"
                "    var in_1 = 2\n"
                "    for i_1 in in_1 .. 2 {\n"
                "        let c = i_1 * i_1\n"
                "        in_1 = in_1 + c\n"
                "        for i_2 in in_1 .. 2 step 2 {\n"
                "            let c_1 = i_2 * i_2\n"
                "            in_1 = in_1 + c_1\n"
                "            for i_3 in in_1 .. 2 {\n"
                "                let c_2 = i_3 * i_3\n"
                "                in_1 = in_1 + c_2\n"
                "            }\n"
                "        }\n"
                "    }\n"
                "    let rank_1 = in_1\n"
                "}\n",
                true);
}

/* A random tree of integer operators, so that every pair of them occurs. */
static struct peal_expr *random_expr(struct peal_builder *b, unsigned *seed, int height)
{
    *seed = *seed * 1664525u + 1013904223u;
    unsigned pick = *seed >> 16;
    if (height == 0)
        return pick % 2 ? peal_build_name(b, "n") : peal_build_int(b, (int64_t)(pick % 7) - 3);
    enum peal_int_op op = (enum peal_int_op)(pick % PEAL_INT_OP_COUNT);
    struct peal_expr *a = random_expr(b, seed, height - 1);
    struct peal_expr *c = op >= PEAL_INT_NEG ? NULL : random_expr(b, seed, height - 1);
    return peal_build_op(b, peal_operator(op)->text, a, c);
}

TEST(all_operators_read_back_in_any_mix)
{
    for (unsigned round = 0; round < 300; round++) {
        unsigned seed = round;
        struct peal_text once = {0};
        struct peal_text twice = {0};
        struct peal_module *built = NULL;
        struct peal_module *read = NULL;
        struct peal_builder *b = peal_builder_new();
        peal_build_kernel(b, "k", NULL);
        peal_build_let(b, "v", NULL, random_expr(b, &seed, 5));
        assert_int_equal(peal_builder_finish(b, NULL, &built), PEAL_OK);
        peal_print_module(built, &once);
        struct peal_source source = {"built", peal_text_get(&once), once.len};
        if (peal_parse(&source, NULL, &read) != PEAL_OK)
            fail_msg("round %u: does not parse: %s", round, peal_text_get(&once));
        peal_print_module(read, &twice);
        assert_string_equal(peal_text_get(&once), peal_text_get(&twice));
        peal_text_release(&once);
        peal_text_release(&twice);
        peal_module_free(built);
        peal_module_free(read);
    }
}

static void build_end_too_often(struct peal_builder *b)
{
    peal_build_end(b);
}

static void build_open_block(struct peal_builder *b)
{
    peal_build_for_peers(b, "p");
    peal_build_kernel(b, "next", NULL);
}

static void build_lone_else(struct peal_builder *b)
{
    peal_build_for_peers(b, "p");
    peal_build_else(b);
}

static void build_missing_operand(struct peal_builder *b)
{
    peal_build_let(b, "a", NULL, NULL);
}

static void build_bad_name(struct peal_builder *b)
{
    peal_build_let(b, "1st", NULL, peal_build_int(b, 1));
}

static void build_taken_param(struct peal_builder *b)
{
    peal_build_int_param(b, "a", false, NULL);
    peal_build_int_param(b, "a", false, NULL);
}

static void build_bad_elem(struct peal_builder *b)
{
    peal_build_param(b, "a",
                     &(struct peal_build_memory){.elem = "q4", .len = peal_build_int(b, 1)});
}

static void build_newer_memory(struct peal_builder *b)
{
    peal_build_param(b, "a", &(struct peal_build_memory){.struct_size = 1000});
}

static void build_newer_wait(struct peal_builder *b)
{
    struct peal_expr *cell = peal_build_signal(b, "s", NULL, NULL);
    peal_build_wait(b, cell, peal_build_int(b, 1), &(struct peal_build_sync){.struct_size = 1000});
}

static void build_bad_place(struct peal_builder *b)
{
    struct peal_expr *one = peal_build_int(b, 1);
    peal_build_assign(b, peal_build_add(b, one, one), one);
}

static void build_bad_operator(struct peal_builder *b)
{
    peal_build_op(b, "**", peal_build_int(b, 1), peal_build_int(b, 1));
}

static void build_bad_mode(struct peal_builder *b)
{
    peal_build_signal(b, "s", "wild", NULL);
}

static void build_bad_port(struct peal_builder *b)
{
    peal_build_port(b, "child", NULL);
}

static void build_too_high(struct peal_builder *b)
{
    struct peal_expr *sum = peal_build_int(b, 1);
    for (int i = 0; i < 600; i++)
        sum = peal_build_add(b, sum, peal_build_int(b, 1));
}

static void build_too_deep(struct peal_builder *b)
{
    for (int i = 0; i < 300; i++)
        peal_build_for_peers(b, "p");
}

TEST(the_first_mistake_is_reported)
{
    static const struct {
        int line;
        void (*build)(struct peal_builder *b);
        const char *expected;
    } rows[] = {
        {__LINE__, build_end_too_often, "builder: 'end' without a block"},
        {__LINE__, build_open_block, "builder: kernel 'k' ends with 1 open block"},
        {__LINE__, build_lone_else, "builder: 'else' without its 'if'"},
        {__LINE__, build_missing_operand, "builder: an operand is missing"},
        {__LINE__, build_bad_name, "builder: '1st' cannot be a name"},
        {__LINE__, build_taken_param,
         "builder: name 'a' is taken in kernel 'k', or a word of the language"},
        {__LINE__, build_bad_elem, "builder: 'q4' is not an element type"},
        {__LINE__, build_newer_memory,
         "builder: memory 'a' has fields that this libpeal does not know"},
        {__LINE__, build_newer_wait,
         "builder: a notify or wait has fields that this libpeal does not know"},
        {__LINE__, build_bad_place,
         "builder: only a named thing, or a part of one, can stand here"},
        {__LINE__, build_bad_operator, "builder: '**' is not an operator"},
        {__LINE__, build_bad_mode, "builder: signals have no mode 'wild'"},
        {__LINE__, build_bad_port,
         "builder: a port is N, S, E, W, parent, or child and its number"},
        {__LINE__, build_too_high, "builder: an expression of more than 500 levels"},
        {__LINE__, build_too_deep, "builder: blocks are nested deeper than 200"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_diags diags;
        struct peal_module *module = NULL;
        struct peal_builder *b = peal_builder_new();
        peal_diags_init(&diags);
        peal_build_kernel(b, "k", NULL);
        rows[i].build(b);
        /* not reported: only the first mistake is */
        peal_build_let(b, "later", NULL, peal_build_launch_mod(b, 77));
        assert_null(peal_builder_text(b));
        assert_string_equal(peal_builder_error(b), rows[i].expected + strlen("builder: "));
        assert_int_equal(peal_builder_finish(b, &diags, &module), PEAL_INVALID);
        if (diags.list.len != 1 || strcmp(diags.list.at[0].message, rows[i].expected) != 0)
            fail_msg("row at line %d: %s", rows[i].line, diags.list.at[0].message);
        assert_null(module);
        peal_diags_release(&diags);
    }
    assert_int_equal(peal_builder_finish(NULL, NULL, NULL), PEAL_NO_MEMORY);
    struct peal_module *module = NULL;
    assert_int_equal(peal_builder_finish(peal_builder_new(), NULL, &module), PEAL_INVALID);
}

int main(void)
{
    return unit_run();
}
