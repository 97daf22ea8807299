/* SPDX-License-Identifier: Apache-2.0 */
/* Values are known by what they are: by no hash, which two of them could share. */
#include "verify/result/value.h"

#include "base/tests/unit.h"

#include <string.h>

enum { INPUTS = 3 };

static uint32_t make_opaque(struct values *v, uint32_t child, uint64_t number)
{
    return peal_value_make(v, (struct node){.kind = NODE_OPAQUE,
                                            .fn = PEAL_FN_SOFTMAX,
                                            .dtype = PEAL_F32,
                                            .nchildren = 1,
                                            .child = {child},
                                            .word = number});
}

/* Functions of more than one index, each moved by some elements: all are different. There and back
 * again is where one began. */
TEST(moved_functions_of_many_indices_are_different)
{
    enum { NUMBERS = 16, MOVES = 16 };
    struct values v;
    uint32_t seen[NUMBERS * MOVES], n = 0;
    peal_values_init(&v, 1 << 20);
    uint32_t zero = peal_value_make(&v, (struct node){.kind = NODE_CONST, .dtype = PEAL_F32});
    for (uint64_t number = 0; number < NUMBERS; number++) {
        uint32_t node = make_opaque(&v, zero, number);
        for (int64_t by = 0; by < MOVES; by++) {
            seen[n] = peal_value_move(&v, node, by - MOVES / 2);
            assert_int_equal(peal_value_move(&v, seen[n], MOVES / 2 - by), node);
            for (uint32_t i = 0; i < n; i++)
                assert_int_not_equal(seen[i], seen[n]);
            n++;
        }
    }
    peal_values_release(&v);
}

static uint32_t make_sum(struct values *v, uint32_t a, uint32_t b)
{
    return peal_value_make(v, (struct node){.kind = NODE_FN,
                                            .fn = PEAL_FN_ADD,
                                            .dtype = PEAL_F32,
                                            .nchildren = 2,
                                            .child = {a, b}});
}

/* (a + b) + c in that order, of one launch's inputs; `first` says which is a. */
static struct peal_digest order_of_sum(struct values *v, uint32_t launch, uint32_t first)
{
    uint32_t in[INPUTS];
    struct peal_digest out = {{0}};
    for (uint32_t r = 0; r < INPUTS; r++)
        in[r] = peal_value_input(v, launch, (r + first) % INPUTS, 0, PEAL_F32);
    assert_true(peal_value_order(v, make_sum(v, in[2], make_sum(v, in[1], in[0])), &out));
    return out;
}

/* The order of a sum is the same in every launch, and another one if other ranks come first. */
TEST(orders_of_sums_are_their_forms)
{
    struct values v;
    peal_values_init(&v, 1 << 20);
    struct peal_digest orders[INPUTS];
    for (uint32_t i = 0; i < INPUTS; i++)
        orders[i] = order_of_sum(&v, 0, i);
    for (uint32_t i = 0; i < INPUTS; i++) {
        struct peal_digest later = order_of_sum(&v, 1, i);
        for (uint32_t k = 0; k < INPUTS; k++)
            assert_int_equal(memcmp(&later, &orders[k], sizeof later) == 0, i == k);
    }
    peal_values_release(&v);
}

/* Trees that are alike have one order; an operand that is used twice stays one. */
TEST(trees_that_are_alike_have_one_order)
{
    struct values v;
    peal_values_init(&v, 1 << 20);
    uint32_t sums[2][INPUTS], twice[2], mixed;
    for (uint32_t l = 0; l < 2; l++) {
        uint32_t in[INPUTS];
        for (uint32_t r = 0; r < INPUTS; r++)
            in[r] = peal_value_input(&v, l, r, 0, PEAL_F32);
        for (uint32_t r = 0; r < INPUTS; r++)
            sums[l][r] = make_sum(&v, in[r], make_sum(&v, in[(r + 1) % INPUTS], in[r]));
        twice[l] = make_sum(&v, sums[l][0], sums[l][0]);
    }
    mixed = make_sum(&v, sums[0][0], sums[1][0]);
    for (uint32_t a = 0; a < INPUTS; a++) {
        for (uint32_t b = 0; b < INPUTS; b++)
            assert_int_equal(peal_value_alike(&v, sums[0][a], sums[1][b]), a == b);
    }
    assert_true(peal_value_alike(&v, twice[0], twice[1]));
    assert_false(peal_value_alike(&v, twice[0], sums[1][0]));
    assert_false(peal_value_alike(&v, twice[0], mixed));
    peal_values_release(&v);
}

int main(void)
{
    return unit_run();
}
