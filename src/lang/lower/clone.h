/* SPDX-License-Identifier: Apache-2.0 */
/* Copying statements and expressions from one kernel into another.
 *
 * Every symbol of the source kernel is mapped, by its slot, to a symbol of the target or to an
 * expression over the target's symbols (an argument). A symbol met for the first time gets a copy
 * with a name that is free in the target. Sticky: after the first failure (out of memory)
 * everything returns NULL, and `failed` is set.
 */
#ifndef PEAL_LANG_CLONE_H
#define PEAL_LANG_CLONE_H

#include "lang/tree/module.h"

struct peal_clone_map {
    struct peal_symbol *symbol;   /* or */
    const struct peal_expr *expr; /* copied at every use */
};

/* The names of a kernel's symbols, and which copying added each, so that a free name is found
 * without looking at all symbols, however many kernels are copied into one. Initially zero. */
struct peal_clone_names {
    PEAL_VEC(struct peal_clone_name {
        const char *name; /* interned */
        /* the copying that added it, counted from 1; 0: only names made from it exist */
        uint32_t since;
        int next; /* name_2 up to the one before this were used by earlier copyings */
    })
    known;
    struct peal_index index; /* of known */
    uint32_t copyings;
};
void peal_clone_names_release(struct peal_clone_names *names);

struct peal_clone {
    struct peal_module *module; /* of the target; owns the copies */
    struct peal_kernel *target;
    struct peal_clone_names *names;
    uint32_t number;            /* of this copying */
    struct peal_clone_map *map; /* by slot of the source kernel */
    struct peal_symbol *last;   /* of the target's symbols */
    bool into_kernel; /* the target had symbols before: it is not a plain copy of the source */
    bool failed;
};

/* nslots: of the source kernel. `names` are the target's, the same for all copyings into it. False:
 * out of memory. */
bool peal_clone_begin(struct peal_clone *clone, struct peal_module *module,
                      struct peal_kernel *target, struct peal_clone_names *names, uint32_t nslots);
void peal_clone_end(struct peal_clone *clone);

struct peal_symbol *peal_clone_symbol(struct peal_clone *clone, const struct peal_symbol *symbol);
struct peal_expr *peal_clone_expr(struct peal_clone *clone, const struct peal_expr *expr);
struct peal_stmt *peal_clone_body(struct peal_clone *clone, const struct peal_stmt *body);

/* A new symbol of the target, with a free name made from `name`. */
struct peal_symbol *peal_clone_add(struct peal_clone *clone, enum peal_symbol_kind kind,
                                   const char *name, struct peal_pos pos);

#endif
