/* SPDX-License-Identifier: Apache-2.0 */
/* Interning: equal texts become equal pointers, so names compare with ==. */
#ifndef PEAL_BASE_INTERN_H
#define PEAL_BASE_INTERN_H

#include "base/arena.h"
#include "base/index.h"
#include "base/vec.h"

struct peal_intern {
    struct peal_arena *arena; /* owns the texts; borrowed */
    PEAL_VEC(const char *) texts;
    struct peal_index index; /* of texts */
};

void peal_intern_init(struct peal_intern *intern, struct peal_arena *arena);
void peal_intern_release(struct peal_intern *intern);

/* NULL when out of memory. */
const char *peal_intern_text(struct peal_intern *intern, const char *text, size_t len);

#endif
