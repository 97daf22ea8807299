/* SPDX-License-Identifier: Apache-2.0 */
/* Is a program that is not monotone closed: does every access to another rank's window come after
 * that rank entered the launch and before it left?
 *
 * The program is explored once more, with other accesses. Each access to a window stays. Every
 * place where the window's owner is outside a launch becomes an access that conflicts with those of
 * that launch and with nothing else. A race among these is an access that can happen while the
 * owner is outside. Partial-order reduction preserves it, as it preserves every race.
 */
#include "verify/explore/explore.h"

#include <stdlib.h>

/* No memory has this number: barriers are not examined again. */
#define NO_BARRIER (PEAL_NONE - 1)

struct copy {
    struct program p;
    uint32_t *origin; /* [access] the access of the original; those of the owners follow */
    uint32_t norigin;
    bool failed;
};

static void push(struct copy *c, struct access a)
{
    if (!peal_vec_push(&c->p.accesses, a))
        c->failed = true;
}

/* Accesses to windows of other ranks, each as one byte: the launch. Notes whose windows they
 * are. */
static void keep_accesses(struct copy *c, const struct program *p, bool *reached)
{
    for (size_t i = 0; i < p->accesses.len; i++) {
        const struct access *a = &p->accesses.at[i];
        uint32_t owner = a->location % p->nranks;
        if (!peal_access_has_op(a) ||
            p->memory.at[a->location / p->nranks].kind != PEAL_BUF_WINDOW ||
            owner == p->threads[a->thread].rank)
            continue;
        struct access one = *a;
        one.lo = a->launch;
        one.hi = a->launch + 1;
        one.location = owner;
        one.kind = ACCESS_ACCUMULATE;
        one.fn = PEAL_FN_ADD;
        one.dtype = PEAL_U8;
        reached[owner] = true;
        c->origin[c->norigin++] = (uint32_t)i;
        push(c, one);
    }
}

/* Anywhere but strictly inside a launch, its rank may be outside it. */
static void add_outside(struct copy *c, uint32_t owner)
{
    const struct program *p = &c->p;
    uint32_t t = p->thread_of_rank[owner], l = 0;
    const struct thread *th = &p->threads[t];
    for (uint32_t s = 0; s <= th->nsteps && !c->failed; s++) {
        while (l + 1 < p->launches && s > th->enter[l + 1])
            l++;
        bool within = s > th->enter[l] && s < th->leave[l];
        struct access a = {.lo = 0,
                           .hi = p->launches,
                           .location = owner,
                           .thread = t,
                           .step = s,
                           .op = s <= th->enter[l] ? OP_CALLER_ENTERS : OP_CALLER_LEAVES,
                           .kind = ACCESS_ACCUMULATE,
                           .fn = PEAL_FN_MAXIMUM,
                           .dtype = PEAL_U8};
        if (within)
            a.hi = l;
        if (a.hi > a.lo)
            push(c, a);
        if (within && l + 1 < p->launches) {
            a.lo = l + 1;
            a.hi = p->launches;
            push(c, a);
        }
    }
}

bool peal_explore_closed(struct program *p, const struct peal_verify_options *options,
                         struct answer *a, struct race_report *out)
{
    struct copy c = {.p = *p};
    struct answer scratch = {0};
    struct peal_verify_options o = *options;
    bool *reached = calloc(p->nranks + 1u, sizeof *reached);
    *out = (struct race_report){.open = PEAL_NONE};
    c.origin = malloc((p->accesses.len + 1) * sizeof *c.origin);
    c.p.accesses.at = NULL;
    c.p.accesses.len = c.p.accesses.cap = 0;
    c.p.barrier = NO_BARRIER;
    c.failed = !reached || !c.origin;
    if (!c.failed)
        keep_accesses(&c, p, reached);
    for (uint32_t r = 0; r < p->nranks && !c.failed; r++) {
        if (reached[r])
            add_outside(&c, r);
    }
    o.no_result = o.no_story = true;
    o.all_faults = false;
    peal_arena_init(&scratch.arena, 0);
    scratch.v.verdict = PEAL_UNDECIDED;
    if (!c.failed && c.norigin)
        peal_explore(&c.p, &o, &scratch);
    out->closed = !c.failed && (!c.norigin || scratch.v.verdict == PEAL_PROVED);
    if (scratch.v.verdict == PEAL_REFUTED) {
        uint32_t x = scratch.collision.a, y = scratch.collision.b;
        if (x >= c.norigin) {
            uint32_t swap = x;
            x = y;
            y = swap;
        }
        const struct access *where = &c.p.accesses.at[y];
        out->open = c.origin[x];
        out->open_at_entry =
            where->step <= c.p.threads[where->thread].enter[c.p.accesses.at[x].launch];
    }
    a->v.states += scratch.v.states;
    peal_arena_release(&scratch.arena);
    peal_vec_release(&c.p.accesses);
    free(c.origin);
    free(reached);
    return out->closed || out->open != PEAL_NONE;
}
