/* SPDX-License-Identifier: Apache-2.0 */
/* Orders, fences and scopes that say what the default says.
 *
 * The analysis is fast where every notify releases and every wait acquires. Kernels of other systems say the
 * same with relaxed ops beside fences, and with scopes that reach everyone concerned. Three rules turn
 * these into the default; docs/verifier-method.md proves them:
 *
 *   1. a relaxed change of a cell after a release fence of its lane, with no access, acquire or acquire fence
 *      between, is a release, if the fence reaches as far as the change
 *   2. a relaxed wait (or swap) before an acquire fence of its lane, with no access or release between, is an
 *      acquire, if the fence reaches as far
 *   3. where every two ops of different lanes on a cell reach each other, their scopes do not matter
 *
 * What is left has STEP_RELAXED, STEP_ACQUIRES, STEP_RELEASES or a scope among its flags, and is for
 * explore/relaxed.c. The fences are then still there: a NOP whose register has the bits of FENCE_...
 *
 * Entering and leaving a launch count as accesses: barriers and `closed` are about them.
 */
#include "verify/program/program.h"

#include <stdlib.h>

enum { NO_FENCE = 3 }; /* worse than any scope */

struct orders {
    struct program *p;
    unsigned char *touched; /* [first_step + thread + step] an access stands before the step */
};

static bool is_touched(const struct orders *o, uint32_t t, uint32_t step)
{
    return o->touched[o->p->threads[t].first_step + t + step];
}

static void note_accesses(struct orders *o)
{
    const struct program *p = o->p;
    for (size_t i = 0; i < p->accesses.len; i++) {
        const struct access *a = &p->accesses.at[i];
        o->touched[p->threads[a->thread].first_step + a->thread + a->step] = 1;
    }
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t l = 0; l < p->launches; l++) {
            o->touched[p->threads[t].first_step + t + p->threads[t].enter[l]] = 1;
            o->touched[p->threads[t].first_step + t + p->threads[t].leave[l]] = 1;
        }
    }
}

static struct step *step_at(struct program *p, uint32_t t, uint32_t i)
{
    return &p->steps[p->threads[t].first_step + i];
}

/* A fence in the block of a `when` says nothing about what is outside it. */
static bool is_guarded(const struct program *p, uint32_t t, uint32_t i)
{
    return p->guards && p->guards[p->threads[t].first_step + t + i];
}

static unsigned fence_of(const struct program *p, uint32_t t, uint32_t i)
{
    const struct step *s = peal_program_step(p, t, i);
    return s->kind == STEP_NOP ? s->reg : 0;
}

static void set_scope(struct step *s, unsigned scope)
{
    s->flags &= (uint8_t) ~(STEP_DEVICE | STEP_BLOCK);
    if (scope == PEAL_SCOPE_BLOCK)
        s->flags |= STEP_BLOCK;
    else if (scope == PEAL_SCOPE_DEVICE)
        s->flags |= STEP_DEVICE;
}

static unsigned wider(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Rule 1. `fence`: the widest release fence since the lane's last access or acquire. */
static void find_releases(struct orders *o, uint32_t t)
{
    struct program *p = o->p;
    unsigned fence = NO_FENCE;
    for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
        struct step *s = step_at(p, t, i);
        unsigned bits = fence_of(p, t, i);
        if (is_touched(o, t, i) || (bits & FENCE_ACQUIRES))
            fence = NO_FENCE;
        if ((bits & FENCE_RELEASES) && !is_guarded(p, t, i))
            fence = wider(fence, peal_step_scope(s));
        if (fence <= peal_step_scope(s) && peal_step_writes(s) && (s->flags & STEP_RELAXED)) {
            s->flags &= (uint8_t)~STEP_RELAXED;
            if (peal_step_is_atomic(s))
                s->flags |= STEP_RELEASES;
        }
        if (peal_step_acquires(s))
            fence = NO_FENCE;
    }
}

/* Rule 2. `fence`: the widest acquire fence before the lane's next access or release. */
static void find_acquires(struct orders *o, uint32_t t)
{
    struct program *p = o->p;
    unsigned fence = NO_FENCE;
    for (uint32_t i = p->threads[t].nsteps; i-- > 0;) {
        struct step *s = step_at(p, t, i);
        unsigned bits = fence_of(p, t, i);
        bool waits = s->kind == STEP_WAIT || s->kind == STEP_WAIT_EQUAL || peal_step_is_atomic(s);
        if (is_touched(o, t, i + 1) || (bits & FENCE_RELEASES) || peal_step_releases(s))
            fence = NO_FENCE;
        if ((bits & FENCE_ACQUIRES) && !is_guarded(p, t, i))
            fence = wider(fence, peal_step_scope(s));
        if (fence <= peal_step_scope(s) && waits && (s->flags & STEP_RELAXED)) {
            s->flags &= (uint8_t)~STEP_RELAXED;
            if (peal_step_is_atomic(s))
                s->flags |= STEP_ACQUIRES;
        }
    }
}

unsigned peal_program_least_scope(const struct program *p, uint32_t t, uint32_t u)
{
    const struct thread *a = &p->threads[t], *b = &p->threads[u];
    if (t == u)
        return PEAL_SCOPE_BLOCK;
    if (a->rank != b->rank)
        return PEAL_SCOPE_SYSTEM;
    for (uint32_t l = 0; l < p->launches; l++) {
        uint32_t lanes = peal_plan_lane_count(p->plans[l], a->rank);
        if (a->lane >= lanes || b->lane >= lanes)
            return PEAL_SCOPE_DEVICE;
        uint32_t block = peal_plan_lane(p->plans[l], a->rank, a->lane)->block;
        if (!block || block != peal_plan_lane(p->plans[l], b->rank, b->lane)->block)
            return PEAL_SCOPE_DEVICE;
    }
    return PEAL_SCOPE_BLOCK;
}

/* Rule 3, for one cell. `uses`: [thread] the scopes of its steps on the cell, a bit each. */
static bool all_reach(const struct program *p, const unsigned char *uses)
{
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t u = 0; uses[t] && u < t; u++) {
            unsigned least = peal_program_least_scope(p, t, u);
            if (uses[u] && ((uses[t] | uses[u]) >> least) > 1)
                return false;
        }
    }
    return true;
}

static bool drop_scopes(struct orders *o)
{
    struct program *p = o->p;
    unsigned char *uses = calloc((size_t)p->ncells * p->nthreads + 1, 1);
    bool scoped = false;
    if (!uses)
        return false;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = step_at(p, t, i);
            if (s->kind == STEP_NOP || s->kind == STEP_WHEN)
                continue;
            uses[(size_t)s->cell * p->nthreads + t] |= (unsigned char)(1u << peal_step_scope(s));
            scoped = scoped || peal_step_scope(s);
        }
    }
    for (uint32_t c = 0; scoped && c < p->ncells; c++)
        p->cells[c].reached = all_reach(p, uses + (size_t)c * p->nthreads);
    free(uses);
    for (uint64_t i = 0; scoped && i < p->nsteps; i++) {
        struct step *s = &p->steps[i];
        if (s->kind != STEP_NOP && s->kind != STEP_WHEN && p->cells[s->cell].reached)
            set_scope(s, PEAL_SCOPE_SYSTEM);
    }
    return true;
}

/* What has not become the default? */
static void note_rest(struct program *p)
{
    p->has_relaxed = p->has_fences = p->has_scopes = false;
    for (uint64_t i = 0; i < p->nsteps; i++) {
        const struct step *s = &p->steps[i];
        if (s->kind == STEP_WHEN || (s->kind == STEP_NOP && !s->reg))
            continue;
        p->has_scopes = p->has_scopes || peal_step_scope(s);
        if (s->kind == STEP_NOP)
            p->has_fences = p->has_fences || s->reg;
        else
            p->has_relaxed = p->has_relaxed || (s->flags & STEP_WEAK);
    }
}

void peal_program_drop_orders(struct program *p)
{
    struct orders o = {.p = p};
    if (!p->has_weak)
        return;
    if (!p->pairwise) {
        o.touched = calloc(p->nsteps + p->nthreads + 1, 1);
        if (!o.touched) {
            peal_program_fail(p, PEAL_NO_MEMORY, "out of memory");
            return;
        }
        note_accesses(&o);
        for (uint32_t t = 0; t < p->nthreads; t++) {
            find_releases(&o, t);
            find_acquires(&o, t);
        }
        free(o.touched);
        if (!drop_scopes(&o))
            peal_program_fail(p, PEAL_NO_MEMORY, "out of memory");
    }
    note_rest(p);
}
