/* SPDX-License-Identifier: Apache-2.0 */
/* A formula, block by block, by the functions of a variant.
 *
 * Values on the stack are operands: a source in place, a constant, or a block that belongs to the
 * machine. Each position of the stack has a block; the result of a function goes into the block of
 * the position at which it is pushed, which can hold no operand but the first. The last function of
 * an application writes straight into the destination, or into `carry`, which is operand a of the
 * next application. So the destination may be a source, and no value is copied unnecessarily.
 */
#include "compute/formula.h"

#include <assert.h>

enum { BLOCK = 256, MAX_ELEMENT_BYTES = 16 };

struct machine {
    const struct peal_compute *compute;
    const struct peal_formula *formula;
    enum peal_dtype work;
    size_t n; /* elements of this block */
    struct peal_operand stack[PEAL_FORMULA_DEPTH];
    _Alignas(64) char blocks[PEAL_FORMULA_DEPTH][BLOCK * MAX_ELEMENT_BYTES];
    _Alignas(64) char carry[BLOCK * MAX_ELEMENT_BYTES];
};

static void convert(const struct machine *m, const struct peal_operand *dst,
                    const struct peal_operand *src)
{
    m->compute->combine(PEAL_FN_ID, dst, src, 1, m->n, 0);
}

/* A source on the stack: in place if it is of the work type, converted into the place's block
 * otherwise. */
static void push(struct machine *m, uint32_t depth, const struct peal_operand *source)
{
    m->stack[depth] = *source;
    if (source->dtype == m->work || !source->at)
        return;
    m->stack[depth] = (struct peal_operand){.at = m->blocks[depth], .dtype = m->work};
    convert(m, &m->stack[depth], source);
}

/* One application: formula(a, b) into `to`. */
static void apply(struct machine *m, const struct peal_operand *a, const struct peal_operand *b,
                  const struct peal_operand *to)
{
    const struct peal_formula *f = m->formula;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < f->nsteps; i++) {
        const struct peal_formula_step *step = &f->steps[i];
        switch ((enum peal_formula_kind)step->kind) {
        case PEAL_FORMULA_A:
            push(m, depth++, a);
            break;
        case PEAL_FORMULA_B:
            push(m, depth++, b);
            break;
        case PEAL_FORMULA_CONST:
            m->stack[depth++] = (struct peal_operand){.value = step->value, .dtype = m->work};
            break;
        case PEAL_FORMULA_APPLY: {
            depth -= step->operands;
            struct peal_operand result = {.at = m->blocks[depth], .dtype = m->work};
            if (i + 1 == f->nsteps)
                result = *to;
            m->compute->combine((enum peal_fn)step->fn, &result, &m->stack[depth], step->operands,
                                m->n, 0);
            m->stack[depth++] = result;
            break;
        }
        }
    }
    assert(depth == 1);
    if (m->stack[0].at != to->at)
        convert(m, to, &m->stack[0]);
}

static struct peal_operand move(const struct peal_operand *operand, size_t elements)
{
    struct peal_operand out = *operand;
    if (out.at)
        out.at = (char *)out.at + elements * peal_dtype_size(out.dtype);
    return out;
}

void peal_formula_combine(const struct peal_compute *compute, const struct peal_formula *f,
                          const struct peal_operand *dst, const struct peal_operand *src,
                          uint32_t nsrc, size_t count)
{
    struct machine m; /* 36 KiB, not initialised on purpose */
    if (nsrc == 1) {
        compute->combine(PEAL_FN_ID, dst, src, 1, count, 0);
        return;
    }
    m.compute = compute;
    m.formula = f;
    m.work = dst->dtype;
    if (!peal_dtype_is_record(dst->dtype))
        m.work = peal_compute_work(dst, src, nsrc);
    struct peal_operand carry = {.at = m.carry, .dtype = m.work};
    if (!peal_dtype_is_float(dst->dtype))
        carry.dtype = dst->dtype; /* wraps */
    for (size_t first = 0; first < count; first += BLOCK) {
        m.n = count - first < BLOCK ? count - first : BLOCK;
        struct peal_operand a = move(&src[0], first), to = move(dst, first);
        for (uint32_t s = 1; s < nsrc; s++) {
            struct peal_operand b = move(&src[s], first);
            apply(&m, &a, &b, s + 1 == nsrc ? &to : &carry);
            a = carry;
        }
    }
}
