/* SPDX-License-Identifier: Apache-2.0 */
/* Plans against their texts. They agree as made; with one operand, function, divisor or offset
 * changed, as a faulty lowering might, they do not. */
#include "plan/tests/made.h"
#include "verify/verify.h"
#include "base/tests/unit.h"

static const char sums[] =
    "kernel k(in x: T[n], out y: T[n], op: reduce) {\n"
    "    window w: T[2 * n]\n"
    "    signal s[nranks]\n"
    "    let right = (rank + 1) % nranks\n"
    "    w[(launch mod 2) * n +: n] = x\n"
    "    for p in peers { notify s[rank]@p += 1 }\n"
    "    for p in peers { wait s[p] >= 1 }\n"
    "    let acc = op(w[(launch mod 2) * n +: n], w@right[(launch mod 2) * n +: n])\n"
    "    send acc to right\n"
    "    y = final(op, op(acc * 2, recv from (rank - 1) % nranks))\n"
    "    for p in peers { notify s[rank]@p += 1 }\n"
    "    for p in peers { wait s[p] >= 2 }\n"
    "}\n";

/* Each rank has some columns of v and rows of w: partial products that are added up. */
static const char product[] =
    "kernel k(in x: T[n, n], in v: T[n, n], in w: T[n, n], out y: T[n, n]) {\n"
    "    let h = matmul(x, v)\n"
    "    let part = matmul(maximum(h, 0), w)\n"
    "    send part to (rank + 1) % nranks\n"
    "    let other: T[n, n] = recv from (rank - 1) % nranks\n"
    "    y = part + other\n"
    "}\n";

static void make(struct made *m, const char *text)
{
    made_begin(m, text);
    m->plan = made_plan(m,
                        (struct peal_bind){.nranks = 3,
                                           .rank = PEAL_NONE,
                                           .dtype = PEAL_F32,
                                           .reduce = PEAL_AVG,
                                           .symmetric = true},
                        6);
}

/* True: they agree. Otherwise the answer must say that they differ. */
static bool agrees(const struct made *m, const struct peal_plan *plan)
{
    struct peal_verification *v = NULL;
    struct peal_verify_options options = {.no_result = true};
    assert_int_equal(peal_verify_plan(m->plan, &options, &v), PEAL_OK);
    assert_int_equal(v->verdict, PEAL_PROVED);
    peal_verify_against_text(plan, m->kernel, &m->bind, v);
    bool good = v->text_agrees;
    assert_null(v->text_unchecked);
    assert_int_equal(v->verdict, good ? PEAL_PROVED : PEAL_UNDECIDED);
    assert_int_equal(v->why != NULL, !good);
    peal_verification_free(v);
    return good;
}

TEST(test_a_plan_as_made_agrees)
{
    const char *const texts[] = {sums, product};
    for (int i = 0; i < 2; i++) {
        struct made m;
        make(&m, texts[i]);
        assert_true(agrees(&m, m.plan));
        made_end(&m);
    }
}

/* Applies a change to one op. False: it does not apply. */
static bool change(struct peal_plan *plan, struct peal_op *op, int change_kind)
{
    struct peal_ref *refs = (struct peal_ref *)((char *)plan + plan->refs.offset) + op->mem.ref;
    if (!peal_op_is_data(op))
        return false;
    switch (change_kind) {
    case 0:
        if (op->kind != PEAL_OP_COMPUTE || op->mem.divisor <= 1)
            return false;
        op->mem.divisor = 0;
        return true;
    case 1:
        if (op->kind != PEAL_OP_COMPUTE || op->fn != PEAL_FN_ADD)
            return false;
        op->fn = PEAL_FN_MUL;
        return true;
    case 2:
        if (op->mem.nsrc < 2)
            return false;
        refs[1] = refs[2];
        return true;
    case 3:
        if (op->kind != PEAL_OP_MATMUL)
            return false;
        op->mem.inner--;
        return true;
    default:
        if (op->mem.count < 2)
            return false;
        op->mem.count--;
        return true;
    }
}

static void check_changes(const char *text, unsigned least)
{
    struct made m;
    unsigned changed = 0;
    make(&m, text);
    for (uint64_t i = 0; i < m.plan->ops.count; i++) {
        for (int change_kind = 0; change_kind < 5; change_kind++) {
            struct peal_plan *plan = malloc(m.plan->block_len);
            assert_non_null(plan);
            memcpy(plan, m.plan, m.plan->block_len);
            struct peal_op *ops = (struct peal_op *)((char *)plan + plan->ops.offset);
            if (change(plan, &ops[i], change_kind)) {
                assert_false(agrees(&m, plan));
                changed++;
            }
            free(plan);
        }
    }
    assert_true(changed >= least);
    made_end(&m);
}

TEST(test_a_changed_plan_differs)
{
    check_changes(sums, 12);
    check_changes(product, 18);
}

/* No two inputs have the same number: otherwise one could stand for the other. */
TEST(inputs_of_the_text_are_different_numbers)
{
    enum { EACH = 6 };
    uint64_t seen[EACH * EACH * EACH * EACH];
    size_t n = 0;
    for (uint32_t launch = 0; launch < EACH; launch++)
        for (uint32_t rank = 0; rank < EACH; rank++)
            for (uint32_t param = 0; param < EACH; param++)
                for (uint64_t element = 0; element < EACH; element++)
                    seen[n++] = peal_naive_input(launch, rank, param, element);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(seen[i], seen[k]);
}

int main(void)
{
    return unit_run();
}
