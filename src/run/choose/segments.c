/* SPDX-License-Identifier: Apache-2.0 */
/* See segments.h. */
#include "run/choose/segments.h"

#include "run/team/topo.h"

/* Few: 40 bytes (one line of a channel), then 64 * 4^k. Launches may bind less than a plan's. */
static uint64_t class_of(uint64_t bytes)
{
    if (bytes <= PEAL_SLOT_INLINE)
        return PEAL_SLOT_INLINE;
    uint64_t class = 64;
    while (class < bytes)
        class *= 4;
    return class;
}

/* Even segments of whole blocks of BLOCK elements. No class has more memory than a full segment
 * needs. */
static void cut_call(const struct peal_choice *choice, uint64_t elements, uint32_t element,
                     uint32_t ranks, struct peal_cutting *out)
{
    enum { BLOCK = 16, RANKS_OF_SEGMENTS = 16, MIN_SEGMENT = 4096 };
    uint64_t bytes = choice->segment;
    /* A window holds a block for each rank: with many ranks they are smaller, so that it does not
     * grow with their number. */
    if (choice->algo->shape == PEAL_SHAPE_BLOCKS && ranks > RANKS_OF_SEGMENTS)
        bytes = bytes * RANKS_OF_SEGMENTS / ranks;
    if (bytes < MIN_SEGMENT)
        bytes = peal_size_min(choice->segment, MIN_SEGMENT);
    uint64_t longest = peal_size_max(bytes / element, BLOCK);
    uint64_t launches = peal_size_max((elements + longest - 1) / longest, 1);
    uint64_t segment = peal_size_align((elements + launches - 1) / launches, BLOCK);
    segment = peal_size_max(segment, BLOCK);
    uint64_t full = peal_size_align(longest, BLOCK);
    *out = (struct peal_cutting){.segment = segment * element, .launches = launches};
    switch ((enum peal_shape)choice->algo->shape) {
    case PEAL_SHAPE_NONE:
        break;
    case PEAL_SHAPE_WHOLE:
        *out = (struct peal_cutting){elements * element, 1, elements};
        break;
    case PEAL_SHAPE_ROWS: {
        uint64_t row = (segment / BLOCK + ranks - 1) / ranks * BLOCK * element;
        uint64_t full_row = (full / BLOCK + ranks - 1) / ranks * BLOCK * element;
        row = peal_size_align(row, PEAL_LINE);
        out->count = peal_size_min(class_of(row), peal_size_align(full_row, PEAL_LINE)) / element;
        break;
    }
    default:
        out->count =
            peal_size_min(class_of(peal_size_min(elements, segment) * element) / element, full);
        break;
    }
}

/* What only moves data moves bytes: one plan serves all types. */
static void forget_type(struct peal_plan_key *key)
{
    uint64_t element = peal_dtype_size((enum peal_dtype)key->dtype);
    key->dtype = PEAL_U8;
    key->reduce = PEAL_SUM;
    key->count *= element;
}

void peal_resolve(const struct peal_table_of_rules *rules, const struct peal_algo *forced,
                  const struct peal_wish *wish, const struct peal_plan_key *call,
                  struct peal_resolved *out)
{
    uint32_t element = (uint32_t)peal_dtype_size((enum peal_dtype)call->dtype);
    out->choice = peal_choose(rules, forced, wish);
    if (out->choice.algo->shape == PEAL_SHAPE_WHOLE && wish->uneven)
        out->choice = peal_choose(NULL, NULL, wish); /* uneven blocks need a kernel for them */
    const struct peal_algo *algo = out->choice.algo;
    uint64_t whole = algo->shape == PEAL_SHAPE_WHOLE ? wish->ranks : 1;
    cut_call(&out->choice, wish->bytes / element * whole, element, wish->ranks, &out->cutting);
    out->key = *call;
    out->key.algo = algo;
    out->key.count = out->cutting.count;
    out->key.symmetric = algo->memory != PEAL_PEERS_STAGE;
    out->key.remote = out->key.symmetric && !wish->symmetric;
    if (!peal_contract_info(peal_collective_contract(wish->collective))->has_reduce)
        forget_type(&out->key);
}

bool peal_call_streams(const struct peal_team *team, uint32_t collective, uint64_t bytes,
                       uint64_t *core_cache)
{
    enum { SMALLEST_CACHE = 128 << 10, KEPT = 8 };
    uint32_t ranks_per_core = (team->size + team->policy.cores - 1) / team->policy.cores;
    if (bytes * ranks_per_core < SMALLEST_CACHE / 2)
        return false;
    if (!*core_cache)
        *core_cache = peal_topo_core_cache();
    uint32_t even = peal_collective_even(collective);
    bool writes_much = even == PEAL_CALL_ALLGATHER || even == PEAL_CALL_BROADCAST;
    uint64_t limit = *core_cache * 3 / (writes_much ? 2 : 4);
    if (team->size > team->policy.cores)
        limit = limit * team->policy.cores / team->size;
    /* docs/decisions/0070-rings-longer-than-a-cache.md */
    return bytes >= limit * (team->policy.keeps_writes ? KEPT : 1);
}
