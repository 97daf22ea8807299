/* SPDX-License-Identifier: Apache-2.0 */
/* See space.h.
 *
 * There is one state, which is changed in place by steps and by taking them back; a search keeps
 * what it needs to undo a step, not copies of states. All tables are made once, from the whole
 * program, and are conservative: a block conflicts if any of its accesses does, and a later use
 * counts whether or not it is reached. So peal_space_alone may wrongly say no, which costs states,
 * but never wrongly says yes, which would lose faults.
 */
#include "verify/explore/space.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCKS = 16384 };

/* --- blocks ---------------------------------------------------------------------------------- */

static bool number_blocks(struct space *s)
{
    const struct program *p = s->p;
    s->block_of = calloc(p->nsteps + p->nthreads + 1, sizeof *s->block_of);
    if (!s->block_of)
        return false;
    for (int pass = 0; pass < 2; pass++) {
        uint32_t n = 0;
        for (size_t i = 0; i < p->accesses.len; i++) {
            const struct access *a = &p->accesses.at[i];
            uint64_t at = p->threads[a->thread].first_step + a->thread + a->step;
            if (pass == 0 && s->block_of[at] == 0) {
                s->block_of[at] = ++n;
            } else if (pass == 1) {
                s->block_thread[s->block_of[at] - 1] = a->thread;
                s->block_step[s->block_of[at] - 1] = a->step;
            }
        }
        if (pass == 0) {
            s->nblocks = n;
            if (n > MAX_BLOCKS)
                return false;
            s->block_thread = calloc(n + 1u, sizeof *s->block_thread);
            s->block_step = calloc(n + 1u, sizeof *s->block_step);
            if (!s->block_thread || !s->block_step)
                return false;
        }
    }
    return true;
}

static bool clash(const struct access *a, const struct access *b)
{
    return a->thread != b->thread && a->lo < b->hi && b->lo < a->hi && peal_access_conflict(a, b);
}

static bool find_conflicts(struct space *s)
{
    const struct program *p = s->p;
    uint32_t *first, *order, n = s->nblocks;
    s->conflicts = calloc((uint64_t)n * n / 64 + 1, sizeof *s->conflicts);
    s->last_conflict = calloc((uint64_t)n * p->nthreads + 1, sizeof *s->last_conflict);
    s->lowest = malloc(((uint64_t)n * p->nthreads + 1) * sizeof *s->lowest);
    bool good =
        peal_access_by_location(p, &first, &order) && s->conflicts && s->last_conflict && s->lowest;
    if (good) {
        for (size_t l = 0; l < p->memory.len * p->nranks; l++) {
            for (uint32_t i = first[l]; i < first[l + 1]; i++) {
                for (uint32_t k = i + 1; k < first[l + 1]; k++) {
                    const struct access *a = &p->accesses.at[order[i]],
                                        *b = &p->accesses.at[order[k]];
                    if (!clash(a, b))
                        continue;
                    uint32_t x = peal_space_block(s, a->thread, a->step) - 1;
                    uint32_t y = peal_space_block(s, b->thread, b->step) - 1;
                    uint64_t xy = (uint64_t)x * n + y, yx = (uint64_t)y * n + x;
                    s->conflicts[xy / 64] |= UINT64_C(1) << (xy % 64);
                    s->conflicts[yx / 64] |= UINT64_C(1) << (yx % 64);
                    uint32_t *last = &s->last_conflict[(uint64_t)x * p->nthreads + b->thread];
                    *last = b->step + 1 > *last ? b->step + 1 : *last;
                    last = &s->last_conflict[(uint64_t)y * p->nthreads + a->thread];
                    *last = a->step + 1 > *last ? a->step + 1 : *last;
                }
            }
        }
    }
    free(first);
    free(order);
    return good;
}

/* --- cells ----------------------------------------------------------------------------------- */

/* A cell with a step that does not commute with all later ones. */
static bool is_delicate(const struct cell *cell)
{
    return cell->falls || cell->handover;
}

static bool find_uses(struct space *s)
{
    const struct program *p = s->p;
    uint32_t slots = 0;
    s->slot = malloc((p->ncells + 1u) * sizeof *s->slot);
    bool *by_reg = calloc(p->ncells + 1u, sizeof *by_reg);
    if (!s->slot || !by_reg) {
        free(by_reg);
        return false;
    }
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *step = peal_program_step(p, t, i);
            bool is_guarded = p->guards && p->guards[p->threads[t].first_step + t + i];
            bool may_differ = is_guarded || (step->flags & STEP_HAS_REG) ||
                              step->kind == STEP_COMPARE_SWAP || step->kind == STEP_TAKE;
            if (peal_step_writes(step) && may_differ)
                by_reg[step->cell] = true;
        }
    }
    bool good = true;
    for (uint32_t c = 0; c < p->ncells; c++) {
        const struct cell *cell = &p->cells[c];
        s->slot[c] = is_delicate(cell) ? slots++ : PEAL_NONE;
        bool stored = by_reg[c] || (cell->sets && (cell->writer == MANY_WRITERS));
        if (stored && !peal_vec_push(&s->stored, c))
            good = false;
    }
    free(by_reg);
    s->last_use = calloc((uint64_t)slots * p->nthreads + 1, sizeof *s->last_use);
    s->last_other = calloc((uint64_t)slots * p->nthreads + 1, sizeof *s->last_other);
    if (!good || !s->last_use || !s->last_other)
        return false;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *step = peal_program_step(p, t, i);
            if (step->kind == STEP_NOP || step->kind == STEP_WHEN ||
                s->slot[step->cell] == PEAL_NONE)
                continue;
            uint64_t at = (uint64_t)s->slot[step->cell] * p->nthreads + t;
            s->last_use[at] = i + 1;
            if (step->kind != STEP_ADD)
                s->last_other[at] = i + 1;
        }
    }
    return true;
}

enum peal_status peal_space_init(struct space *s, const struct program *p)
{
    *s = (struct space){.p = p};
    s->at = malloc((p->nthreads + 1u) * sizeof *s->at);
    s->value = malloc((p->ncells + 1u) * sizeof *s->value);
    s->first_reg = malloc((p->nthreads + 1u) * sizeof *s->first_reg);
    if (!s->at || !s->value || !s->first_reg)
        return PEAL_NO_MEMORY;
    s->first_reg[0] = 0;
    for (uint32_t t = 0; t < p->nthreads; t++)
        s->first_reg[t + 1] = s->first_reg[t] + p->threads[t].nregs;
    s->reg = calloc(s->first_reg[p->nthreads] + 1u, sizeof *s->reg);
    if (!s->reg || !number_blocks(s) || !find_conflicts(s) || !find_uses(s))
        return PEAL_NO_MEMORY;
    peal_space_reset(s);
    peal_space_forget(s);
    return PEAL_OK;
}

void peal_space_release(struct space *s)
{
    free(s->at);
    free(s->value);
    free(s->reg);
    free(s->first_reg);
    free(s->block_of);
    free(s->block_thread);
    free(s->block_step);
    free(s->conflicts);
    free(s->last_conflict);
    free(s->lowest);
    free(s->slot);
    free(s->last_use);
    free(s->last_other);
    peal_vec_release(&s->stored);
}

void peal_space_reset(struct space *s)
{
    const struct program *p = s->p;
    memset(s->at, 0, p->nthreads * sizeof *s->at);
    memcpy(s->value, p->initial, p->ncells * sizeof *s->value);
    memset(s->reg, 0, s->first_reg[p->nthreads] * sizeof *s->reg);
    s->unfinished = 0;
    for (uint32_t t = 0; t < p->nthreads; t++)
        s->unfinished += p->threads[t].nsteps > 0;
}

void peal_space_forget(struct space *s)
{
    memset(s->lowest, 0xff, (uint64_t)s->nblocks * s->p->nthreads * sizeof *s->lowest);
}

bool peal_space_turned(const struct space *s, uint32_t max_pairs, struct block_pair *out,
                       uint32_t *count)
{
    uint32_t n = s->p->nthreads;
    *count = 0;
    for (uint32_t a = 0; a < s->nblocks; a++) {
        for (uint32_t b = a + 1; b < s->nblocks; b++) {
            if (!peal_space_conflict(s, a, b) ||
                s->lowest[(uint64_t)a * n + s->block_thread[b]] > s->block_step[b] ||
                s->lowest[(uint64_t)b * n + s->block_thread[a]] > s->block_step[a])
                continue;
            if (*count == max_pairs)
                return false;
            out[(*count)++] = (struct block_pair){a, b};
        }
    }
    return true;
}

/* --- stepping -------------------------------------------------------------------------------- */

/* The block at which the thread stands, if it has accesses that are executed. */
static uint32_t block_at(const struct space *s, uint32_t t)
{
    if (!peal_program_done(s->p, t, s->at[t], s->reg + s->first_reg[t]))
        return 0;
    return peal_space_block(s, t, s->at[t]);
}

bool peal_space_enabled(const struct space *s, uint32_t t)
{
    if (s->at[t] >= s->p->threads[t].nsteps)
        return false;
    const struct step *step = peal_program_step(s->p, t, s->at[t]);
    return peal_program_enabled(s->p, t, s->at[t], s->reg + s->first_reg[t], s->value[step->cell]);
}

/* The thread leaves its block: the blocks of other threads, from where they stand, come later. */
static void note_order(struct space *s, uint32_t block)
{
    uint32_t n = s->p->nthreads, *lowest = s->lowest + (uint64_t)block * n;
    for (uint32_t u = 0; u < n; u++)
        lowest[u] = s->at[u] < lowest[u] ? s->at[u] : lowest[u];
}

static bool changes_reg(const struct step *step)
{
    return peal_step_fetches(step) || step->kind == STEP_WHEN;
}

struct undo peal_space_take(struct space *s, uint32_t t)
{
    const struct step *step = peal_program_step(s->p, t, s->at[t]);
    uint32_t block = block_at(s, t);
    int64_t *regs = s->reg + s->first_reg[t];
    if (block && !s->replays)
        note_order(s, block - 1);
    /* Of a fence, `reg` says which it is. */
    struct undo undo = {t, s->value[step->cell], changes_reg(step) ? regs[step->reg] : 0};
    s->value[step->cell] = peal_program_effect(s->p, t, s->at[t], regs, undo.value);
    if (++s->at[t] == s->p->threads[t].nsteps)
        s->unfinished--;
    return undo;
}

void peal_space_untake(struct space *s, struct undo undo)
{
    uint32_t t = undo.thread;
    if (s->at[t]-- == s->p->threads[t].nsteps)
        s->unfinished++;
    const struct step *step = peal_program_step(s->p, t, s->at[t]);
    s->value[step->cell] = undo.value;
    if (changes_reg(step))
        s->reg[s->first_reg[t] + step->reg] = undo.reg;
}

uint32_t peal_space_race(const struct space *s, uint32_t t)
{
    uint32_t block = block_at(s, t);
    if (!block)
        return PEAL_NONE;
    for (uint32_t u = 0; u < s->p->nthreads; u++) {
        uint32_t other = u == t ? 0 : block_at(s, u);
        if (other && peal_space_conflict(s, block - 1, other - 1))
            return u;
    }
    return PEAL_NONE;
}

bool peal_space_alone(const struct space *s, uint32_t t)
{
    uint32_t n = s->p->nthreads, block = block_at(s, t);
    const struct step *step = peal_program_step(s->p, t, s->at[t]);
    bool is_local = step->kind == STEP_NOP || step->kind == STEP_WHEN ||
                    !peal_program_done(s->p, t, s->at[t], s->reg + s->first_reg[t]);
    uint32_t slot = is_local ? PEAL_NONE : s->slot[step->cell];
    const uint32_t *last = step->kind == STEP_ADD ? s->last_other : s->last_use;
    for (uint32_t u = 0; u < n; u++) {
        if (u == t)
            continue;
        if (block && s->last_conflict[(uint64_t)(block - 1) * n + u] > s->at[u])
            return false;
        if (slot != PEAL_NONE && last[(uint64_t)slot * n + u] > s->at[u])
            return false;
    }
    return true;
}

struct race peal_space_collision(const struct space *s, uint32_t t, uint32_t u)
{
    const struct program *p = s->p;
    for (size_t i = 0; i < p->accesses.len; i++) {
        const struct access *a = &p->accesses.at[i];
        if (a->thread != t || a->step != s->at[t])
            continue;
        for (size_t k = 0; k < p->accesses.len; k++) {
            const struct access *b = &p->accesses.at[k];
            if (b->thread != u || b->step != s->at[u] || b->location != a->location || !clash(a, b))
                continue;
            return peal_race_of(p, (uint32_t)i, (uint32_t)k);
        }
    }
    return (struct race){PEAL_NONE, PEAL_NONE, 0, 0};
}
