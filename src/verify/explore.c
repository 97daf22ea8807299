/* SPDX-License-Identifier: Apache-2.0 */
/* Depth-first search over all states, after a directed search that finds most faults at once.
 *
 * The state space has no cycles (positions only grow), so leaving out commuting steps needs no
 * further care. The directed search runs schedules by priority: each thread as late as possible,
 * each as early as possible, then random priorities that change a few times (Burckhardt et al., A
 * randomized scheduler with probabilistic guarantees of finding bugs, 2010).
 */
#include "verify/explore.h"

#include "base/hash.h"
#include "verify/space.h"

#include <stdlib.h>
#include <string.h>

struct frame {
    uint32_t next;  /* thread to try next */
    uint32_t alone; /* the only thread to move, or PEAL_NONE */
    struct undo undo;
};

struct search {
    struct space space;
    const struct program *p;
    const struct peal_verify_options *options;
    struct answer *a;
    PEAL_VEC(uint32_t) path;
    unsigned char *keys; /* of all states, one after the other */
    size_t key_bytes, nkeys, keys_cap;
    uint32_t *slots; /* state + 1 */
    size_t cap;
    bool wide; /* positions need 32 bits */
    unsigned char *key;
    bool out_of_room;
};

/* --- the set of states ----------------------------------------------------------------------- */

static void make_key(struct search *s)
{
    unsigned char *at = s->key;
    for (uint32_t t = 0; t < s->p->nthreads; t++) {
        uint16_t narrow = (uint16_t)s->space.at[t];
        size_t n = s->wide ? sizeof s->space.at[t] : sizeof narrow;
        memcpy(at, s->wide ? (void *)&s->space.at[t] : (void *)&narrow, n);
        at += n;
    }
    for (size_t i = 0; i < s->space.stored.len; i++, at += sizeof(int64_t))
        memcpy(at, &s->space.value[s->space.stored.at[i]], sizeof(int64_t));
    memcpy(at, s->space.reg, s->space.first_reg[s->p->nthreads] * sizeof *s->space.reg);
}

static bool grow_set(struct search *s)
{
    size_t cap = s->cap ? s->cap * 2 : 1 << 16;
    if (cap * sizeof *s->slots + s->keys_cap * s->key_bytes > s->options->most_bytes)
        return false;
    uint32_t *slots = calloc(cap, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < s->nkeys; i++) {
        size_t at = peal_hash_bytes(s->keys + i * s->key_bytes, s->key_bytes, 5) & (cap - 1);
        while (slots[at])
            at = (at + 1) & (cap - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(s->slots);
    s->slots = slots;
    s->cap = cap;
    return true;
}

/* True if this state is new. */
static bool is_new(struct search *s)
{
    if (s->nkeys * 2 >= s->cap && !grow_set(s)) {
        s->out_of_room = true;
        return false;
    }
    make_key(s);
    size_t at = peal_hash_bytes(s->key, s->key_bytes, 5) & (s->cap - 1);
    for (; s->slots[at]; at = (at + 1) & (s->cap - 1)) {
        if (memcmp(s->keys + (size_t)(s->slots[at] - 1) * s->key_bytes, s->key, s->key_bytes) == 0)
            return false;
    }
    if (s->nkeys == s->keys_cap) {
        size_t cap = s->keys_cap ? s->keys_cap * 2 : 4096;
        unsigned char *keys = NULL;
        if (cap * s->key_bytes + s->cap * sizeof *s->slots <= s->options->most_bytes &&
            s->nkeys < s->options->most_states)
            keys = realloc(s->keys, cap * s->key_bytes);
        if (!keys) {
            s->out_of_room = true;
            return false;
        }
        s->keys = keys;
        s->keys_cap = cap;
    }
    memcpy(s->keys + s->nkeys * s->key_bytes, s->key, s->key_bytes);
    s->slots[at] = (uint32_t)++s->nkeys;
    if (s->nkeys >= s->options->most_states)
        s->out_of_room = true;
    return true;
}

/* --- telling --------------------------------------------------------------------------------- */

/* Can the schedule be followed, and do both threads of a race end where they stood? */
static bool replays(struct space *space, const uint32_t *threads, size_t n, const uint32_t *end,
                    uint32_t a, uint32_t b)
{
    peal_space_reset(space);
    for (size_t i = 0; i < n; i++) {
        if (!peal_space_enabled(space, threads[i]))
            return false;
        (void)peal_space_take(space, threads[i]);
    }
    return space->at[a] == end[a] && space->at[b] == end[b];
}

/* Takes away last steps of threads until none can be left out. */
static void shrink(struct search *s, uint32_t a, uint32_t b)
{
    uint32_t *end = malloc((s->p->nthreads + 1u) * sizeof *end);
    uint32_t *trial = malloc((s->path.len + 1) * sizeof *trial);
    bool again = end && trial;
    if (again)
        memcpy(end, s->space.at, s->p->nthreads * sizeof *end);
    while (again) {
        again = false;
        for (uint32_t t = 0; t < s->p->nthreads; t++) {
            size_t last = s->path.len, n = 0;
            for (size_t i = 0; i < s->path.len; i++)
                last = s->path.at[i] == t ? i : last;
            if (t == a || t == b || last == s->path.len)
                continue;
            for (size_t i = 0; i < s->path.len; i++) {
                if (i != last)
                    trial[n++] = s->path.at[i];
            }
            if (replays(&s->space, trial, n, end, a, b)) {
                memcpy(s->path.at, trial, n * sizeof *trial);
                s->path.len = n;
                again = true;
            }
        }
    }
    if (end && trial)
        (void)replays(&s->space, s->path.at, s->path.len, end, a, b);
    free(end);
    free(trial);
}

/* Looking for all faults, the first of each kind is enough, and then both end the search. */
static bool go_on(const struct search *s)
{
    return s->options->all_faults && !(s->a->v.has_race && s->a->v.has_deadlock);
}

static void tell_race(struct search *s, uint32_t t, uint32_t u)
{
    s->a->v.has_race = true;
    if (s->options->all_faults && s->a->v.verdict == PEAL_REFUTED)
        return;
    s->a->v.verdict = PEAL_REFUTED;
    s->a->v.fault = PEAL_FAULT_RACE;
    if (s->options->no_story || s->options->all_faults)
        return;
    shrink(s, t, u);
    struct race race = peal_space_collision(&s->space, t, u);
    peal_story_schedule(s->p, &(struct schedule){s->path.at, s->path.len}, &race, s->a);
}

static void tell_deadlock(struct search *s)
{
    s->a->v.has_deadlock = true;
    if (s->options->all_faults && s->a->v.verdict == PEAL_REFUTED)
        return;
    s->a->v.verdict = PEAL_REFUTED;
    s->a->v.fault = PEAL_FAULT_DEADLOCK;
    if (!s->options->no_story && !s->options->all_faults)
        peal_story_schedule(s->p, &(struct schedule){s->path.at, s->path.len}, NULL, s->a);
}

/* A race at the very start? */
static bool races_at_start(struct search *s)
{
    for (uint32_t t = 0; t < s->p->nthreads; t++) {
        uint32_t u = peal_space_race(&s->space, t);
        if (u != PEAL_NONE) {
            tell_race(s, t, u);
            return !go_on(s);
        }
    }
    return false;
}

/* --- directed search ------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return peal_hash_u64(*state, 11);
}

/* Runs the enabled thread of the highest priority until the end; true: a fault was told. */
static bool run_by_priority(struct search *s, uint32_t *priority, uint32_t changes,
                            uint64_t *random)
{
    const struct program *p = s->p;
    peal_space_reset(&s->space);
    s->path.len = 0;
    if (races_at_start(s))
        return true;
    while (s->space.unfinished) {
        uint32_t best = PEAL_NONE;
        for (uint32_t t = 0; t < p->nthreads; t++) {
            if ((best == PEAL_NONE || priority[t] > priority[best]) &&
                peal_space_enabled(&s->space, t))
                best = t;
        }
        if (best == PEAL_NONE) {
            tell_deadlock(s);
            return true;
        }
        (void)peal_space_take(&s->space, best);
        if (!peal_vec_push(&s->path, best))
            return false;
        uint32_t u = peal_space_race(&s->space, best);
        if (u != PEAL_NONE) {
            tell_race(s, best, u);
            return true;
        }
        /* At a few random places the running thread falls behind all others. */
        if (changes && next_random(random) % (p->nsteps + 1) < changes)
            priority[best] = 0;
    }
    return false;
}

static bool search_directed(struct search *s)
{
    const struct program *p = s->p;
    uint32_t n = p->nthreads;
    uint32_t *priority = malloc((n + 1u) * sizeof *priority);
    uint64_t random = 1, budget = 20000000, spent = 0;
    bool found = false;
    for (uint32_t l = 0; priority && l < 2 * n && !found && spent < budget; l++) {
        for (uint32_t t = 0; t < n; t++)
            priority[t] = t == l % n ? (l < n ? 1 : n + 5) : 2 + (t + n - l % n) % n;
        found = run_by_priority(s, priority, 0, &random);
        spent += p->nsteps;
    }
    for (uint32_t k = 0; priority && k < 2000 && !found && spent < budget; k++) {
        for (uint32_t t = 0; t < n; t++)
            priority[t] = (uint32_t)(next_random(&random) >> 34) + 1;
        found = run_by_priority(s, priority, k % 4 * 2 + 1, &random);
        spent += p->nsteps;
    }
    free(priority);
    return found;
}

/* --- all states ------------------------------------------------------------------------------ */

static uint32_t find_alone(const struct search *s)
{
    for (uint32_t t = 0; t < s->p->nthreads; t++) {
        if (peal_space_enabled(&s->space, t) && peal_space_alone(&s->space, t))
            return t;
    }
    return PEAL_NONE;
}

static uint32_t next_thread(const struct search *s, struct frame *f)
{
    if (f->alone != PEAL_NONE) {
        uint32_t t = f->next == 0 ? f->alone : PEAL_NONE;
        f->next = 1;
        return t;
    }
    while (f->next < s->p->nthreads) {
        if (peal_space_enabled(&s->space, f->next++))
            return f->next - 1;
    }
    return PEAL_NONE;
}

static bool any_enabled(const struct search *s)
{
    for (uint32_t t = 0; t < s->p->nthreads; t++) {
        if (peal_space_enabled(&s->space, t))
            return true;
    }
    return false;
}

/* True: a fault was told, or there was no room. */
static bool search_all(struct search *s)
{
    PEAL_VEC(struct frame) stack = {0};
    bool ended = false;
    peal_space_reset(&s->space);
    s->path.len = 0;
    if (races_at_start(s))
        return true;
    (void)is_new(s);
    ended = s->out_of_room;
    if (!ended && s->space.unfinished && !any_enabled(s)) {
        tell_deadlock(s);
        ended = !go_on(s);
    }
    if (!ended && !peal_vec_push(&stack, ((struct frame){.alone = find_alone(s)})))
        ended = s->out_of_room = true;
    while (!ended && stack.len) {
        struct frame *f = &stack.at[stack.len - 1];
        uint32_t t = next_thread(s, f);
        if (t == PEAL_NONE) {
            stack.len--;
            if (stack.len) {
                peal_space_untake(&s->space, stack.at[stack.len - 1].undo);
                s->path.len--;
            }
            continue;
        }
        f->undo = peal_space_take(&s->space, t);
        ended = !peal_vec_push(&s->path, t);
        uint32_t u = peal_space_race(&s->space, t);
        bool stuck = s->space.unfinished && !any_enabled(s);
        if (u != PEAL_NONE)
            tell_race(s, t, u);
        if (stuck)
            tell_deadlock(s);
        if ((u != PEAL_NONE || stuck) && !go_on(s)) {
            ended = true;
        } else if (is_new(s)) {
            ended = ended || !peal_vec_push(&stack, ((struct frame){.alone = find_alone(s)})) ||
                    s->out_of_room;
        } else {
            ended = s->out_of_room;
            peal_space_untake(&s->space, f->undo);
            s->path.len--;
        }
    }
    peal_vec_release(&stack);
    return ended;
}

static void release(struct search *s)
{
    peal_vec_release(&s->path);
    free(s->keys);
    free(s->slots);
    free(s->key);
    peal_space_release(&s->space);
}

/* Decides for the initial values as they are. True: proved. */
static bool decide(struct search *s)
{
    if (!s->options->all_faults && search_directed(s))
        return false;
    s->nkeys = 0;
    if (s->slots)
        memset(s->slots, 0, s->cap * sizeof *s->slots);
    if (!search_all(s))
        return s->a->v.verdict != PEAL_REFUTED;
    if (s->out_of_room && s->a->v.verdict != PEAL_REFUTED) {
        s->a->v.verdict = PEAL_UNDECIDED;
        s->a->v.why = peal_answer_text(
            s->a, "%s; explored %llu states and found nothing, and neither did a directed search",
            s->nkeys >= s->options->most_states ? "the limit of states was reached"
                                                : "the memory limit was reached",
            (unsigned long long)s->nkeys);
    }
    return false;
}

void peal_explore(struct program *p, const struct peal_verify_options *options, struct answer *a)
{
    struct search s = {.p = p, .options = options, .a = a};
    bool unknown = false;
    a->v.verdict = PEAL_UNDECIDED;
    a->v.why = "the program is too large for exploration";
    if (peal_space_init(&s.space, p) == PEAL_OK) {
        for (uint32_t t = 0; t < p->nthreads; t++)
            s.wide = s.wide || p->threads[t].nsteps > UINT16_MAX;
        s.key_bytes = p->nthreads * (s.wide ? 4u : 2u) +
                      (s.space.stored.len + s.space.first_reg[p->nthreads]) * sizeof(int64_t);
        s.key = calloc(1, s.key_bytes + 8);
        for (uint32_t c = 0; c < p->ncells; c++)
            unknown = unknown || p->cells[c].uninitialised;
        static const int64_t guess[] = {INT64_C(1) << 60, -(INT64_C(1) << 60), 0};
        bool proved = s.key;
        for (size_t i = 0; i < (unknown ? 3 : 1) && proved; i++) {
            for (uint32_t c = 0; c < p->ncells; c++) {
                if (p->cells[c].uninitialised)
                    p->initial[c] = guess[i];
            }
            a->v.why = NULL;
            proved = decide(&s);
        }
        if (proved) {
            a->v.verdict = unknown ? PEAL_UNDECIDED : PEAL_PROVED;
            a->v.why =
                unknown ? "a cell has an unknown value at first, and not all were tried" : NULL;
        }
        a->v.states = s.nkeys;
    }
    release(&s);
}
