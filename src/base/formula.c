/* SPDX-License-Identifier: Apache-2.0 */
/* See formula.h. */
#include "base/formula.h"

#include "base/hash.h"

#include <string.h>

/* May a formula apply it, to that many operands? */
static bool is_applicable(uint32_t fn, uint32_t operands)
{
    if (fn >= PEAL_FN_COUNT || fn == PEAL_FN_SOFTMAX || fn == PEAL_FN_ID)
        return false;
    int wanted = peal_fn_info((enum peal_fn)fn)->operands;
    return operands == (wanted ? (uint32_t)wanted : 2);
}

/* The depth of the stack after a step, or 0 where it is not a step. */
static uint32_t depth_after(const struct peal_formula_step *step, uint32_t depth)
{
    if (step->kind < PEAL_FORMULA_APPLY)
        return depth + 1;
    if (step->kind > PEAL_FORMULA_APPLY || !is_applicable(step->fn, step->operands))
        return 0;
    return step->operands <= depth ? depth - step->operands + 1 : 0;
}

bool peal_formula_check(const struct peal_formula *f)
{
    uint32_t depth = 0;
    if (!memchr(f->name, '\0', sizeof f->name) || f->nsteps > PEAL_FORMULA_STEPS)
        return false;
    if (f->flags & ~(uint32_t)(PEAL_FORMULA_COMMUTATIVE | PEAL_FORMULA_ASSOCIATIVE))
        return false;
    for (uint32_t i = 0; i < f->nsteps; i++) {
        depth = depth_after(&f->steps[i], depth);
        if (depth == 0 || depth > PEAL_FORMULA_DEPTH)
            return false;
    }
    return depth == 1;
}

/* Can elements of the type be that number, exactly or rounded? */
static bool holds_constant(enum peal_dtype dtype, double value)
{
    if (!peal_dtype_is_exact(dtype))
        return true;
    return value > -0x1p53 && value < 0x1p53 && value == (double)(int64_t)value;
}

bool peal_formula_takes(const struct peal_formula *f, enum peal_dtype dtype)
{
    for (uint32_t i = 0; i < f->nsteps; i++) {
        const struct peal_formula_step *step = &f->steps[i];
        if (step->kind == PEAL_FORMULA_APPLY && !peal_fn_takes((enum peal_fn)step->fn, dtype))
            return false;
        if (step->kind == PEAL_FORMULA_CONST && !holds_constant(dtype, step->value))
            return false;
    }
    return true;
}

uint64_t peal_formula_hash(const struct peal_formula *f)
{
    uint64_t hash = peal_hash_u64((uint64_t)f->flags << 32 | f->nsteps, 0x7265647563);
    return peal_hash_bytes(f->steps, f->nsteps * sizeof *f->steps, hash);
}

uint32_t peal_formula_cost(const struct peal_formula *f)
{
    uint32_t cost = 0;
    for (uint32_t i = 0; i < f->nsteps; i++)
        cost += f->steps[i].kind == PEAL_FORMULA_APPLY;
    return cost ? cost : 1;
}
