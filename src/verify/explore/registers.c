/* SPDX-License-Identifier: Apache-2.0 */
/* Which registers belong to a state.
 *
 * A register is part of the state until its last use. While results are compared, the state also
 * records for good which blocks of `when` that touch data were executed. Together with the order of
 * conflicting blocks, that determines all values. Final states that agree in both have the same
 * values, so only one of them is executed.
 */
#include "verify/explore/search.h"

#include <stdlib.h>
#include <string.h>

static void use(struct search *s, uint32_t thread, uint32_t reg, uint32_t step)
{
    uint32_t *last = &s->reg_last[s->space.first_reg[thread] + reg];
    *last = step + 1 > *last ? step + 1 : *last;
}

/* Is there an op on data between the when and its end? */
static bool touches_data(const struct program *p, uint32_t thread, uint32_t step)
{
    const struct thread *th = &p->threads[thread];
    uint32_t launch, number = p->step_op[th->first_step + step];
    const struct peal_op *op = peal_program_op(p, thread, number, &launch);
    const struct peal_op *last = op + (th->first_op[launch + 1] - number);
    for (const struct peal_op *end = peal_when_end(op, last); op < end; op++) {
        if (peal_op_is_data(op))
            return true;
    }
    return false;
}

static void note_register_use(struct search *s, uint32_t t, uint32_t i)
{
    const struct program *p = s->p;
    const struct step *step = peal_program_step(p, t, i);
    uint32_t guard = p->guards ? p->guards[p->threads[t].first_step + t + i] : 0, launch;
    if (guard)
        use(s, t, guard - 1, i);
    if (step->flags & STEP_HAS_REG)
        use(s, t, step->reg, i);
    if (step->kind != STEP_WHEN)
        return;
    uint32_t op = p->step_op[p->threads[t].first_step + i];
    use(s, t, peal_program_op(p, t, op, &launch)->mem.rows, i);
    s->reg_data[s->space.first_reg[t] + step->reg] = touches_data(p, t, i);
}

bool peal_search_registers(struct search *s)
{
    uint32_t n = s->space.first_reg[s->p->nthreads];
    s->reg_last = calloc(n + 1u, sizeof *s->reg_last);
    s->reg_data = calloc(n + 1u, sizeof *s->reg_data);
    if (!s->reg_last || !s->reg_data)
        return false;
    if (!n)
        return true;
    for (uint32_t t = 0; t < s->p->nthreads; t++) {
        for (uint32_t i = 0; i < s->p->threads[t].nsteps; i++)
            note_register_use(s, t, i);
    }
    return true;
}

size_t peal_search_put_registers(const struct search *s, unsigned char *at)
{
    size_t n = 0;
    for (uint32_t t = 0; t < s->p->nthreads; t++) {
        for (uint32_t r = s->space.first_reg[t]; r < s->space.first_reg[t + 1]; r++) {
            bool is_used = s->space.at[t] < s->reg_last[r] || (s->compares && s->reg_data[r]);
            int64_t value = is_used ? s->space.reg[r] : 0;
            memcpy(at + n, &value, sizeof value);
            n += sizeof value;
        }
    }
    return n;
}

/* Is the block's thread past it, and was it executed? */
static bool was_done(const struct search *s, uint32_t block)
{
    uint32_t t = s->space.block_thread[block];
    return peal_program_done(s->p, t, s->space.block_step[block],
                             s->space.reg + s->space.first_reg[t]);
}

bool peal_search_is_new_end(struct search *s)
{
    size_t n = s->space.first_reg[s->p->nthreads];
    if (!s->p->guards)
        return true;
    memset(s->key, 0, s->ends.key_bytes);
    for (size_t r = 0; r < n; r++)
        s->key[r] = s->reg_data[r] && s->space.reg[r];
    for (uint32_t i = 0; i < s->npairs; i++) {
        bool both = was_done(s, s->pairs[i].a) && was_done(s, s->pairs[i].b);
        s->key[n + i] = both && s->turned[i];
    }
    /* Without memory, every final state counts as new until there are too many. */
    return peal_states_add(&s->ends, s->key) || s->ends.full;
}
