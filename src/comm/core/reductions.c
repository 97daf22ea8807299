/* SPDX-License-Identifier: Apache-2.0 */
/* User-defined reductions: declared by a text, numbered from PEAL_USER_REDUCTION on, and kept until
 * the communicator is closed. */
#include "comm/core/reductions.h"

#include "lang/lang.h"

#include <stdlib.h>
#include <string.h>

const struct peal_formula *peal_comm_formula(const struct peal_comm *comm,
                                             enum peal_reduction reduce)
{
    uint32_t i = (uint32_t)reduce - PEAL_USER_REDUCTION;
    if (!peal_reduce_is_user(reduce) || i >= comm->nformulas)
        return NULL;
    return &comm->formulas[i];
}

enum peal_moves peal_comm_moves(const struct peal_comm *comm, enum peal_reduction reduce)
{
    const struct peal_formula *formula = peal_comm_formula(comm, reduce);
    if (!formula || peal_formula_is_free(formula))
        return PEAL_MOVES_ANY;
    return formula->flags & PEAL_FORMULA_ASSOCIATIVE ? PEAL_MOVES_GROUPS : PEAL_MOVES_NONE;
}

const char *peal_comm_reduce_name(const struct peal_comm *comm, enum peal_reduction reduce)
{
    const struct peal_formula *formula = peal_comm_formula(comm, reduce);
    return formula ? formula->name : peal_reduce_name(reduce);
}

/* Room for all: plans and calls refer to them by number. */
static bool make_room(struct peal_comm *comm)
{
    if (!comm->formulas)
        comm->formulas = calloc(PEAL_FORMULAS, sizeof *comm->formulas);
    comm->plans.formulas = comm->formulas;
    return comm->formulas != NULL;
}

bool peal_reductions_inherit(struct peal_comm *comm, const struct peal_comm *parent)
{
    if (!parent || parent->nformulas == 0)
        return true;
    if (!make_room(comm))
        return false;
    memcpy(comm->formulas, parent->formulas, parent->nformulas * sizeof *comm->formulas);
    comm->nformulas = parent->nformulas;
    return true;
}

static enum peal_status add(struct peal_comm *comm, const struct peal_formula *formula,
                            enum peal_reduction *out)
{
    uint32_t i = peal_formula_find(comm->formulas, comm->nformulas, formula);
    if (i == PEAL_FORMULAS)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "a communicator has at most %d reductions",
                              PEAL_FORMULAS);
    if (i == comm->nformulas) {
        if (!make_room(comm))
            return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a reduction");
        comm->formulas[comm->nformulas++] = *formula;
    }
    *out = (enum peal_reduction)(PEAL_USER_REDUCTION + i);
    return PEAL_OK;
}

enum peal_status peal_reduction_declare(struct peal_comm *comm, const char *text, const char *name,
                                        enum peal_reduction *out)
{
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK)
        return status;
    if (!text || !out)
        return peal_comm_fail(comm, PEAL_INVALID, "a reduction needs a text, and a place");
    struct peal_formula formula;
    struct peal_text why = {0};
    status = peal_formula_read(text, name, &formula, &why);
    if (status == PEAL_OK)
        status = add(comm, &formula, out);
    else if (why.len)
        peal_comm_fail(comm, status, "%s", peal_text_get(&why));
    else
        peal_comm_fail(comm, status, "%s", peal_status_text(status));
    peal_text_release(&why);
    return status;
}
