/* SPDX-License-Identifier: Apache-2.0 */
/* See signature.h. */
#include "plan/make/signature.h"

#include "lang/lang.h"
#include "plan/format/format.h"

#include <string.h>

struct peal_ends peal_kernel_ends(const struct peal_kernel *kernel)
{
    struct peal_ends out = {0};
    if (kernel->implements)
        (void)peal_contract_find(kernel->implements, strlen(kernel->implements), &out.contract);
    for (int i = kernel->nparams; i-- > 0;) {
        const struct peal_symbol *s = kernel->params[i];
        if (s->kind != PEAL_SYMBOL_BUFFER)
            continue;
        if (s->dir & PEAL_DIR_IN)
            out.x = s;
        if (s->dir & PEAL_DIR_OUT)
            out.y = s;
    }
    return out;
}

static enum peal_role role_of_buffer(const struct peal_ends *ends, const struct peal_symbol *param)
{
    bool has_data = peal_contract_has_data(ends->contract);
    if (has_data && param == ends->x && param == ends->y)
        return PEAL_ROLE_BOTH;
    if (has_data && param == ends->x)
        return PEAL_ROLE_INPUT;
    if (has_data && param == ends->y)
        return PEAL_ROLE_OUTPUT;
    return param->dir & PEAL_DIR_OUT ? PEAL_ROLE_SCRATCH : PEAL_ROLE_NONE;
}

enum peal_role peal_param_role(const struct peal_kernel *kernel, int param)
{
    const struct peal_symbol *s = kernel->params[param];
    struct peal_ends ends = peal_kernel_ends(kernel);
    const struct peal_contract_info *info = peal_contract_info(ends.contract);
    switch (s->kind) {
    case PEAL_SYMBOL_BUFFER:
        return role_of_buffer(&ends, s);
    case PEAL_SYMBOL_REDUCE:
        return info->has_reduce ? PEAL_ROLE_REDUCE : PEAL_ROLE_NONE;
    case PEAL_SYMBOL_INT:
        if (info->has_root && strcmp(s->name, "root") == 0 && !s->is_local)
            return PEAL_ROLE_ROOT;
        return s->initial ? PEAL_ROLE_DEFAULT : PEAL_ROLE_NONE;
    case PEAL_SYMBOL_INTS:
        if (peal_contract_has_data(ends.contract) && strcmp(s->name, "counts") == 0 && !s->is_local)
            return PEAL_ROLE_COUNTS;
        return PEAL_ROLE_NONE;
    default:
        return PEAL_ROLE_NONE;
    }
}

bool peal_kernel_serves(const struct peal_kernel *kernel, enum peal_contract contract,
                        struct peal_text *why)
{
    const char *wanted = peal_contract_info(contract)->name;
    if (peal_kernel_ends(kernel).contract != contract) {
        if (kernel->implements)
            peal_text_printf(why, "'%s' implements %s, not %s", kernel->name, kernel->implements,
                             wanted);
        else
            peal_text_printf(why,
                             "'%s' does not implement %s: 'kernel %s(...) implements %s' says that "
                             "it does, and peal verify then proves it",
                             kernel->name, wanted, kernel->name, wanted);
        return false;
    }
    for (int i = 0; i < kernel->nparams; i++) {
        if (peal_param_role(kernel, i) != PEAL_ROLE_NONE)
            continue;
        peal_text_printf(why, "nothing in a call of %s is for parameter '%s' of '%s'", wanted,
                         kernel->params[i]->name, kernel->name);
        return false;
    }
    return true;
}

/* Sets *context if the expression ends a reduction. */
static void ask_final(struct peal_expr *expr, void *context)
{
    bool *ends = context;
    if (expr->kind == PEAL_EXPR_CALL && expr->builtin == PEAL_BUILTIN_FINAL)
        *ends = true;
}

bool peal_kernel_averages(const struct peal_kernel *kernel, struct peal_text *why)
{
    bool ends = false;
    peal_kernel_walk_exprs(kernel, ask_final, &ends);
    if (!ends)
        peal_text_printf(why, "'%s' gives sums, not averages: it never applies final(op, ...)",
                         kernel->name);
    return ends;
}

/* If the larger range is cut into one block per rank, is the smaller one this rank's block? */
static bool is_own_block(struct peal_range part, struct peal_range all, uint32_t rank,
                         uint32_t nranks)
{
    return part.bytes * nranks == all.bytes && part.at == all.at + rank * part.bytes;
}

static bool is_in_place(enum peal_contract contract, struct peal_range x, struct peal_range y,
                        uint32_t rank, uint32_t nranks)
{
    switch (peal_contract_info(contract)->in_place) {
    case PEAL_IN_PLACE_SAME:
        return x.at == y.at;
    case PEAL_IN_PLACE_IN_IS_PART:
        return is_own_block(x, y, rank, nranks);
    case PEAL_IN_PLACE_OUT_IS_PART:
        return is_own_block(y, x, rank, nranks);
    default:
        return false;
    }
}

enum peal_sharing peal_kernel_sharing(const struct peal_kernel *kernel,
                                      const struct peal_range *ranges, size_t count, uint32_t rank,
                                      uint32_t nranks, const struct peal_symbol *which[2])
{
    struct peal_ends ends = peal_kernel_ends(kernel);
    enum peal_sharing sharing = PEAL_APART;
    for (size_t a = 0; a < count; a++) {
        for (size_t b = a + 1; b < count; b++) {
            const struct peal_symbol *one = kernel->params[a], *two = kernel->params[b];
            bool written = (one->dir | two->dir) & PEAL_DIR_OUT;
            if (!written || !peal_ranges_touch(ranges[a], ranges[b]))
                continue;
            which[0] = one;
            which[1] = two;
            bool forward = one == ends.x && two == ends.y;
            bool backward = one == ends.y && two == ends.x;
            if (forward && is_in_place(ends.contract, ranges[a], ranges[b], rank, nranks))
                sharing = PEAL_IN_PLACE;
            else if (backward && is_in_place(ends.contract, ranges[b], ranges[a], rank, nranks))
                sharing = PEAL_IN_PLACE;
            else
                return PEAL_OVERLAP;
        }
    }
    return sharing;
}
