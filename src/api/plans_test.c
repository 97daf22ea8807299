/* SPDX-License-Identifier: Apache-2.0 */
/* What the plan cache takes for granted: who writes which cell of a library kernel depends on ranks
 * and root, not on counts, types, operations and what is in place. */
#include "api/plans.h"

#include "run/multicast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Everything a plan can depend on besides kernel, ranks and root. */
static const struct variant {
    int64_t count, most;
    enum peal_dtype dtype;
    enum peal_reduce reduce;
    bool in_place;
} variants[] = {
    {16, 16, PEAL_F32, PEAL_SUM, false},   {1, 1, PEAL_F32, PEAL_SUM, true},
    {0, 16, PEAL_F64, PEAL_MAX, false},    {7, 64, PEAL_BF16, PEAL_AVG, true},
    {4096, 4096, PEAL_I8, PEAL_XOR, true}, {65537, 262144, PEAL_I64, PEAL_MIN, false},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static struct peal_plan *whole_plan(struct peal_program *library, const struct peal_algo *algo,
                                    uint32_t ranks, uint32_t root, const struct variant *v)
{
    struct peal_diags diags;
    struct peal_plan *plan = NULL;
    bool rows = algo->shape == PEAL_SHAPE_ROWS || algo->shape == PEAL_SHAPE_BLOCKS;
    struct peal_bind_value values[2] = {{rows ? "m" : "n", &v->count, 1, false},
                                        {"most", &v->most, 1, false}};
    peal_diags_init(&diags);
    const struct peal_kernel *kernel = peal_program_kernel(library, algo->kernel, &diags);
    assert_non_null(kernel);
    struct peal_bind bind = {.nranks = ranks,
                             .rank = PEAL_NONE,
                             .dtype = v->dtype,
                             .reduce = v->reduce,
                             .values = values,
                             .nvalues = algo->shape == PEAL_SHAPE_NONE ? 0 : 1 + algo->has_most,
                             .root = root,
                             .in_place = v->in_place,
                             .symmetric = algo->memory != PEAL_PEERS_STAGE,
                             .channel_depth = 4,
                             .slot_bytes = (uint64_t)(v->count + 1) * 8};
    if (peal_instantiate(kernel, &bind, &diags, &plan) != PEAL_OK)
        plan = NULL; /* in place may be refused: then it is never launched */
    peal_diags_release(&diags);
    return plan;
}

static uint32_t *writers_of(const struct peal_plan *plan)
{
    uint32_t *writers = calloc(plan->cells + 1, sizeof *writers);
    peal_multicast_find(plan, writers);
    return writers;
}

static void writers_follow_from_ranks_and_root(void **state)
{
    (void)state;
    struct peal_diags diags;
    struct peal_program *library = NULL;
    size_t count, compared = 0;
    const struct peal_algo *algos = peal_algos(&count);
    peal_diags_init(&diags);
    assert_int_equal(peal_program_open("barrier_mesh", &diags, &library), PEAL_OK);
    static const uint32_t sizes[] = {2, 3, 4, 5, 8};
    for (size_t a = 0; a < count; a++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            for (uint32_t root = 0; root < sizes[s]; root += sizes[s] - 1) {
                struct peal_plan *first =
                    whole_plan(library, &algos[a], sizes[s], root, &variants[0]);
                assert_non_null(first);
                uint32_t *writers = writers_of(first);
                for (size_t v = 1; v < VARIANTS; v++) {
                    struct peal_plan *other =
                        whole_plan(library, &algos[a], sizes[s], root, &variants[v]);
                    if (!other)
                        continue;
                    uint32_t *others = writers_of(other);
                    if (first->cells != other->cells ||
                        (first->channels.count > 0) != (other->channels.count > 0) ||
                        memcmp(writers, others, first->cells * sizeof *writers) != 0)
                        fail_msg("'%s' on %u ranks, root %u: variant %zu has other writers",
                                 algos[a].kernel, sizes[s], root, v);
                    compared++;
                    free(others);
                    free(other);
                }
                free(writers);
                free(first);
            }
        }
    }
    assert_true(compared > count * 20);
    peal_program_close(library);
    peal_diags_release(&diags);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(writers_follow_from_ranks_and_root)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
