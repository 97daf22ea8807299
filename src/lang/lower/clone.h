/* SPDX-License-Identifier: Apache-2.0 */
/* Copying statements and expressions from one kernel into another.
 *
 * Every symbol of the source kernel is mapped, by its slot, to a symbol of the target or to an
 * expression over the target's symbols (an argument). A symbol met for the first time gets a copy
 * with a name that is free in the target. Sticky: after the first failure (out of memory)
 * everything returns NULL, and `failed` is set.
 */
#ifndef PEAL_LOWER_CLONE_H
#define PEAL_LOWER_CLONE_H

#include "lang/tree/module.h"

struct peal_clone_map {
    struct peal_symbol *symbol;   /* or */
    const struct peal_expr *expr; /* copied at every use */
};

struct peal_clone {
    struct peal_module *module; /* of the target; owns the copies */
    struct peal_kernel *target;
    struct peal_clone_map *map; /* by slot of the source kernel */
    /* The last symbol that was there before: names up to it are taken. */
    const struct peal_symbol *boundary;
    struct peal_symbol *last; /* of the target's symbols */
    bool failed;
};

/* nslots: of the source kernel. False when out of memory. */
bool peal_clone_begin(struct peal_clone *clone, struct peal_module *module,
                      struct peal_kernel *target, uint32_t nslots);
void peal_clone_end(struct peal_clone *clone);

struct peal_symbol *peal_clone_symbol(struct peal_clone *clone, const struct peal_symbol *symbol);
struct peal_expr *peal_clone_expr(struct peal_clone *clone, const struct peal_expr *expr);
struct peal_stmt *peal_clone_body(struct peal_clone *clone, const struct peal_stmt *body);

/* A new symbol of the target, with a free name made from `name`. */
struct peal_symbol *peal_clone_add(struct peal_clone *clone, enum peal_symbol_kind kind,
                                   const char *name, struct peal_pos pos);

#endif
