/* SPDX-License-Identifier: Apache-2.0 */
/* Two kernels whose 64-bit hashes are equal are still two: each has memory of its own, and ranks that
 * launch one each are told. The hash is not cryptographic, so texts that collide can be made. */
#include "comm/tests/children.h"
#include "base/base.h"
#include "base/tests/unit.h"
#include "comm/user/user.h"

#include <peal/plan.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, COUNT = 10, BLOCK = 16, WORD = 8 };

struct pair {
    char texts[2][512];
};

/* One of the two lanes of peal_hash_bytes. */
static uint64_t mix(uint64_t state, const char *word)
{
    uint64_t x;
    memcpy(&x, word, sizeof x);
    state = (state ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return state ^ state >> 29;
}

/* Two words of letters and signs that differ by that; false: there are none. */
static bool make_words(uint64_t difference, char *one, char *two)
{
    for (int i = 0; i < WORD; i++) {
        char flip = (char)(difference >> (8 * i));
        one[i] = '!';
        while (one[i] < '~' && ((one[i] ^ flip) < '!' || (one[i] ^ flip) > '~'))
            one[i]++;
        two[i] = one[i] ^ flip;
        if (two[i] < '!' || two[i] > '~')
            return false;
    }
    return true;
}

/* A kernel that doubles what its neighbour sends, and one that trebles it. They differ in one word
 * of a lane of the hash, and the next word of that lane, in a comment, makes up for it. */
static bool make_pair(uint64_t seed, unsigned salt, struct pair *out)
{
    char head[256], *one = out->texts[0], *two = out->texts[1];
    int len = snprintf(head, sizeof head,
                       "// %08u\n"
                       "kernel k(in x: T[n], out y: T[n]) {\n"
                       "    send x to (rank + 1) %% nranks\n"
                       "    let t: T[n] = recv from (rank - 1) %% nranks\n",
                       salt);
    int spaces = BLOCK - (len + 6) % BLOCK, at = len + spaces + 6;
    snprintf(one, sizeof out->texts[0], "%s%*sy = t + t //          ----------------\n}\n", head,
             spaces, "");
    snprintf(two, sizeof out->texts[1], "%s%*sy = t * 3 //          ----------------\n}\n", head,
             spaces, "");
    uint64_t a = peal_hash_u64(strlen(one), seed ^ UINT64_C(0x243f6a8885a308d3)), difference;
    for (int i = 0; i < at; i += BLOCK)
        a = mix(a, one + i);
    difference = mix(a, one + at) ^ mix(a, two + at);
    return make_words(difference, one + at + BLOCK, two + at + BLOCK);
}

static void find_pair(uint64_t seed, struct pair *out)
{
    enum { MAX_TRIES = 10000000 };
    unsigned salt = 0;
    while (!make_pair(seed, salt, out))
        assert_true(++salt < MAX_TRIES);
    assert_int_equal(peal_hash_bytes(out->texts[0], strlen(out->texts[0]), seed),
                     peal_hash_bytes(out->texts[1], strlen(out->texts[1]), seed));
    assert_true(strcmp(out->texts[0], out->texts[1]) != 0);
}

/* Launches the kernels in turn, then one of them on rank 0 and the other elsewhere. */
static int launch_both(struct peal_comm *comm, struct peal_user_kernel *const kernels[2])
{
    int32_t x[COUNT], y[COUNT];
    uint32_t rank = peal_comm_rank(comm), left = (rank + RANKS - 1) % RANKS;
    struct peal_arg args[2] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
                               {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y}};
    for (int i = 0; i < COUNT; i++)
        x[i] = (int32_t)(10 * rank) + i;
    for (int k = 0; k < 6; k++) {
        EXPECT(peal_user_kernel_launch(kernels[k % 2], PEAL_I32, args, 2, NULL, 0) == PEAL_OK);
        for (int i = 0; i < COUNT; i++) {
            int32_t t = (int32_t)(10 * left) + i;
            EXPECT(y[i] == (k % 2 ? 3 * t : t + t));
        }
    }
    const struct peal_image *one = kernels[0]->versions.at[0].image;
    const struct peal_image *two = kernels[1]->versions.at[0].image;
    EXPECT(one->families[0] && two->families[0] && one->families[0] != two->families[0]);
    enum peal_status status =
        peal_user_kernel_launch(kernels[rank > 0], PEAL_I32, args, 2, NULL, 0);
    EXPECT(status == PEAL_MISMATCH || status == PEAL_CLOSED);
    return 0;
}

static int launch_texts(struct peal_comm *comm, const void *context)
{
    const struct pair *pair = context;
    struct peal_user_kernel *kernels[2];
    for (int i = 0; i < 2; i++)
        EXPECT(peal_user_kernel_load(comm, pair->texts[i], NULL, &kernels[i]) == PEAL_OK);
    int failed = launch_both(comm, kernels);
    peal_user_kernel_free(kernels[0]);
    peal_user_kernel_free(kernels[1]);
    return failed;
}

TEST(kernels_whose_texts_hash_alike_are_two)
{
    static const uint64_t seeds[] = {0, 3, 7};
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        struct pair pair;
        find_pair(seeds[i], &pair);
        assert_true(children_run(RANKS, launch_texts, &pair));
    }
}

static int launch_plans(struct peal_comm *comm, const void *context)
{
    struct peal_plan *const *plans = (struct peal_plan *const *)(uintptr_t)context;
    struct peal_user_kernel *kernels[2];
    for (int i = 0; i < 2; i++)
        EXPECT(peal_user_kernel_load_plan(comm, plans[i], &kernels[i]) == PEAL_OK);
    int failed = launch_both(comm, kernels);
    peal_user_kernel_free(kernels[0]);
    peal_user_kernel_free(kernels[1]);
    return failed;
}

TEST(plans_that_hash_alike_are_two)
{
    struct peal_plan *plans[2];
    struct pair pair;
    find_pair(7, &pair);
    for (int i = 0; i < 2; i++) {
        struct peal_plan_args args;
        peal_plan_args_init(&args);
        args.text = pair.texts[i];
        args.ranks = RANKS;
        args.count = COUNT;
        args.dtype = PEAL_I32;
        assert_int_equal(peal_plan_open(&args, &plans[i]), PEAL_OK);
    }
    plans[1]->hash = plans[0]->hash;
    assert_true(children_run(RANKS, launch_plans, plans));
    peal_plan_close(plans[0]);
    peal_plan_close(plans[1]);
}

/* Uneven blocks of two calls whose counts hash alike: the second is not taken for the first. */
static int gather_uneven(struct peal_comm *comm, const void *context)
{
    enum { LARGE = 5000 };
    static int32_t x[LARGE], y[RANKS * LARGE];
    const uint64_t small[RANKS] = {1, 1}, large[RANKS] = {LARGE, LARGE};
    uint32_t rank = peal_comm_rank(comm);
    (void)context;
    for (int i = 0; i < LARGE; i++)
        x[i] = (int32_t)(LARGE * rank) + i;
    EXPECT(peal_allgather_v(comm, x, y, small, NULL, PEAL_I32) == PEAL_OK);
    comm->memos[PEAL_CALL_ALLGATHER_V].count = peal_hash_bytes(large, sizeof large, 1);
    EXPECT(peal_allgather_v(comm, x, y, large, NULL, PEAL_I32) == PEAL_OK);
    for (int i = 0; i < RANKS * LARGE; i++)
        EXPECT(y[i] == i);
    return 0;
}

TEST(counts_that_hash_alike_are_two)
{
    assert_true(children_run(RANKS, gather_uneven, NULL));
}

int main(void)
{
    return unit_run();
}
