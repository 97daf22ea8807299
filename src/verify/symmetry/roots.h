/* SPDX-License-Identifier: Apache-2.0 */
/* Roots that stand for each other: a proof for one root is a proof for all.
 *
 *   roots.c      plans whose roots differ only by a rotation of the ranks
 *   root_text.c  the same, decided from the text without making the plans
 */
#ifndef PEAL_VERIFY_ROOTS_H
#define PEAL_VERIFY_ROOTS_H

#include "plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

struct peal_kernel;

/* Plans of one kernel for n ranks, plans[r] with root r (NULL: there is none). Does the rotation by
 * d carry any sequence of them to the sequence with all roots d higher, for every d? */
bool peal_symmetry_of_roots(const struct peal_plan *const *plans, uint32_t n);

/* The kernel's text, with everything bound except the root. Is the plan with root r, for every r,
 * the rotation by r of the plan with root 0, up to an order that nothing can observe, with one
 * bijection of cells and bytes per r? */
bool peal_symmetry_of_text(const struct peal_kernel *kernel, const struct peal_bind *bind);

#endif
