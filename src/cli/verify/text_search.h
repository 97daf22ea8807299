/* SPDX-License-Identifier: Apache-2.0 */
/* peal verify --fix where advice has nothing: changes of one line of signals, by analogy with the
 * lines that the kernel has. A change is a guess; the caller tries it. */
#ifndef PEAL_CLI_VERIFY_TEXT_SEARCH_H
#define PEAL_CLI_VERIFY_TEXT_SEARCH_H

#include "base/base.h"
#include "lang/lang.h"

/* Is the changed text what is wanted? Called for one guess after the other. weaker: ranks wait for less
 * than before, which is no fix unless the result is checked. */
typedef bool peal_text_try(void *context, const struct peal_source *changed, bool weaker);

/* Tries changes of the kernel of that name, simple ones first. True: one is good; `out` is the text
 * with it, and `what` says what it is. The kernel may have errors. */
bool peal_text_search(const struct peal_source *source, const char *kernel, peal_text_try *good,
                      void *context, struct peal_text *out, struct peal_text *what);

/* The name of the kernel whose text begins at or after *at, which moves past it; "": there is none. */
void peal_text_next_kernel(const struct peal_source *source, size_t *at, char *name, size_t size);

#endif
