/* SPDX-License-Identifier: Apache-2.0 */
/* Shared cells of meshes: is a wait for their count a wait for each rank's own part of it?
 *
 * It is if it waits for all that is added up to some block of the text, and nothing that comes later
 * is added before the wait has passed. What comes later in the launch has to follow the wait; of later
 * launches, either a rank adds only after the owner has entered the same launch, or no rank leaves a
 * launch before the owner has passed its waits in it. What follows what is found by executing the
 * plan once, with every wait for all that it needs: must-precede, as each need is one op of a rank.
 *
 * docs/verifier-all-ranks.md, "Meshes: shared cells", has the proof.
 */
#include "verify/forall/mesh.h"

#include <stdlib.h>
#include <string.h>

struct mesh_clocks {
    const struct mesh_view *v;
    uint32_t n;
    uint32_t *now;  /* [rank * n + other] how many ops of the other precede where the rank is */
    uint32_t *when; /* [op * n + other] the same, when the op was done */
    uint64_t *at;   /* [rank] its next op */
};

/* --- totals ---------------------------------------------------------------------------------- */

/* What is added to the cell of a wait in one block, or up to it. */
static int64_t added_up_to(const struct mesh_view *v, const struct peal_op *wait, uint32_t block)
{
    const struct peal_op *op = peal_plan_ops(v->plan);
    int64_t sum = 0;
    for (uint64_t i = 0; i < v->plan->ops.count; i++) {
        if (peal_op_is_notify(&op[i]) && op[i].sync.rank == wait->sync.rank &&
            op[i].sync.cell == wait->sync.cell && v->block[i] <= block)
            sum += op[i].sync.value;
    }
    return sum;
}

static bool find_until(const struct mesh_view *v, uint64_t i, struct mesh_totals *totals)
{
    const struct peal_op *wait = &peal_plan_ops(v->plan)[i];
    uint32_t *until = &totals->until[v->block[i]], block = 1;
    if (wait->sync.value <= 0) /* it may be more for more ranks */
        return false;
    while (block <= v->m->blocks && added_up_to(v, wait, block) < wait->sync.value)
        block++;
    if (added_up_to(v, wait, block) != wait->sync.value || (*until && *until != block))
        return false;
    *until = block;
    return true;
}

/* --- clocks ---------------------------------------------------------------------------------- */

/* Takes what the op needs into the rank's clock; false: it is not there yet. */
static bool pass(struct mesh_clocks *c, uint32_t rank, uint64_t i)
{
    const struct mesh_view *v = c->v;
    uint32_t *now = c->now + (size_t)rank * c->n;
    bool waits = v->block[i] && !peal_op_sends(&peal_plan_ops(v->plan)[i]);
    for (uint32_t r = 0; r < c->n && waits; r++) {
        uint32_t k = peal_mesh_need(v, i, r);
        if (k != PEAL_NONE && k >= c->at[r])
            return false;
    }
    for (uint32_t r = 0; r < c->n && waits; r++) {
        uint32_t k = peal_mesh_need(v, i, r);
        for (uint32_t q = 0; k != PEAL_NONE && q < c->n; q++) {
            uint32_t other = c->when[(size_t)k * c->n + q];
            now[q] = other > now[q] ? other : now[q];
        }
    }
    now[rank]++;
    memcpy(c->when + i * c->n, now, c->n * sizeof *now);
    return true;
}

/* Executes all ranks; slots of channels are ignored, which leaves out order and adds none. */
static bool execute(struct mesh_clocks *c)
{
    uint64_t left = c->v->plan->ops.count;
    for (uint64_t before = left + 1; left < before;) {
        before = left;
        for (uint32_t r = 0; r < c->n; r++) {
            const struct peal_lane *lane = peal_plan_lane(c->v->plan, r, 0);
            while (c->at[r] < lane->first_op + lane->ops && pass(c, r, c->at[r])) {
                c->at[r]++;
                left--;
            }
        }
    }
    return left == 0;
}

/* --- what is added later --------------------------------------------------------------------- */

/* A wait of rank `owner`: its ranks leave the launch after it, and what is added later in the launch
 * follows it. */
static bool check_wait(struct mesh_clocks *c, uint32_t owner, uint64_t i,
                       struct mesh_totals *totals)
{
    const struct mesh_view *v = c->v;
    const struct peal_op *op = peal_plan_ops(v->plan);
    uint64_t position = i - peal_plan_lane(v->plan, owner, 0)->first_op;
    for (uint32_t r = 0; r < c->n; r++) {
        if (c->now[(size_t)r * c->n + owner] <= position)
            totals->stays |= UINT64_C(1) << peal_op_signal(&op[i]);
    }
    for (uint64_t k = 0; k < v->plan->ops.count; k++) {
        bool later = peal_op_is_notify(&op[k]) && op[k].sync.rank == owner &&
                     op[k].sync.cell == op[i].sync.cell && v->block[k] > totals->until[v->block[i]];
        if (later && c->when[k * c->n + owner] <= position)
            return false;
    }
    return true;
}

static bool check_rank(struct mesh_clocks *c, uint32_t rank, struct mesh_totals *totals)
{
    const struct peal_lane *lane = peal_plan_lane(c->v->plan, rank, 0);
    const struct peal_op *op = peal_plan_ops(c->v->plan);
    for (uint64_t i = lane->first_op; i < lane->first_op + lane->ops; i++) {
        if (!mesh_is_shared(c->v, &op[i]))
            continue;
        if (peal_op_is_notify(&op[i]) && !c->when[i * c->n + op[i].sync.rank])
            totals->early |= UINT64_C(1) << peal_op_signal(&op[i]);
        if (peal_op_is_wait(&op[i]) && !check_wait(c, rank, i, totals))
            return false;
    }
    return true;
}

bool peal_mesh_waits_for_totals(const struct mesh_view *v, struct mesh_totals *totals)
{
    uint32_t n = v->plan->nranks;
    struct mesh_clocks c = {.v = v, .n = n};
    const struct peal_op *op = peal_plan_ops(v->plan);
    bool good = v->plan->signals.count <= 64;
    for (uint64_t i = 0; i < v->plan->ops.count && good; i++) {
        if (mesh_is_shared(v, &op[i]) && peal_op_is_wait(&op[i]))
            good = find_until(v, i, totals);
    }
    c.now = calloc((size_t)n * n, sizeof *c.now);
    c.when = calloc((v->plan->ops.count + 1) * n, sizeof *c.when);
    c.at = calloc(n, sizeof *c.at);
    good = good && c.now && c.when && c.at;
    for (uint32_t r = 0; r < n && good; r++)
        c.at[r] = peal_plan_lane(v->plan, r, 0)->first_op;
    good = good && execute(&c);
    for (uint32_t r = 0; r < n && good; r++)
        good = check_rank(&c, r, totals);
    free(c.now);
    free(c.when);
    free(c.at);
    return good;
}

bool peal_mesh_adds_in_time(const struct mesh_totals *totals)
{
    return !(totals->early & totals->stays);
}
