/* SPDX-License-Identifier: Apache-2.0 */
/* From a call to the plan that it launches, and how often: algorithm, class of the count, segments.
 *
 * A call of any size is cut into *segments*, one launch each, so that a plan's window does not grow
 * with the call. A plan is made for a *class* of counts, of which there are few, and a launch binds
 * less than that where it has less: see exec/image.h, "Clipping".
 */
#ifndef PEAL_RUN_SEGMENTS_H
#define PEAL_RUN_SEGMENTS_H

#include "run/algorithms/select.h"
#include "run/choose/plans.h"

struct peal_cutting {
    uint64_t segment; /* bytes of a launch */
    uint64_t launches;
    uint64_t count; /* elements of the plan: n or m */
};

/* What a call comes to. */
struct peal_resolved {
    struct peal_choice choice;
    struct peal_cutting cutting;
    struct peal_plan_key key;
};

/* `call` says root, type, reduction and whether it is in place; the rest of the key follows. */
void peal_resolve(const struct peal_table_of_rules *rules, const struct peal_algo *forced,
                  const struct peal_wish *wish, const struct peal_plan_key *call,
                  struct peal_resolved *out);

/* Are results of a call whose larger buffer has `bytes` on each rank written past the caches? Yes
 * if what the ranks of a core read and write exceeds three quarters of its cache. For allgather and
 * broadcast, which write much, read little, and whose results are used next, the limit is twice as
 * large; on AMD processors eight times. Ranks need not agree. *core_cache is the size of the cache,
 * 0 at first; it is found (peal_topo_core_cache) when a call is large enough for any cache to
 * matter. */
bool peal_call_streams(const struct peal_team *team, uint32_t collective, uint64_t bytes,
                       uint64_t *core_cache);

#endif
