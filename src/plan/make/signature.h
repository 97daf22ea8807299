/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel's parameters are to its contract. Every way in which a kernel takes the place of a
 * collective binds by this, and never by the order of the parameters. */
#ifndef PEAL_PLAN_SIGNATURE_H
#define PEAL_PLAN_SIGNATURE_H

#include "base/base.h"

struct peal_kernel;
struct peal_symbol;

/* The contract's x and y among the parameters, or NULL; they may be one. */
struct peal_ends {
    const struct peal_symbol *x, *y;
    enum peal_contract contract;
};
struct peal_ends peal_kernel_ends(const struct peal_kernel *kernel);

/* What a call of the contract has for a parameter. */
enum peal_role {
    PEAL_ROLE_NONE,    /* nothing */
    PEAL_ROLE_INPUT,   /* x */
    PEAL_ROLE_OUTPUT,  /* y */
    PEAL_ROLE_BOTH,    /* x and y in one buffer, where the contract has them in place */
    PEAL_ROLE_SCRATCH, /* memory: the kernel writes it, and the contract does not name it */
    PEAL_ROLE_REDUCE,
    PEAL_ROLE_ROOT,
    PEAL_ROLE_COUNTS, /* `counts`: the length of every rank's part */
    PEAL_ROLE_DEFAULT /* an int that has a default: that */
};
enum peal_role peal_param_role(const struct peal_kernel *kernel, int param);

/* Can a call of the collective launch the kernel? Otherwise `why` says what is missing. */
bool peal_kernel_serves(const struct peal_kernel *kernel, enum peal_contract contract,
                        struct peal_text *why);

/* Could a lowered kernel that is bound to avg be right? Otherwise `why` says what is missing. */
bool peal_kernel_averages(const struct peal_kernel *kernel, struct peal_text *why);

/* Memory of a rank that an argument is in; bytes 0: of none. */
struct peal_range {
    const char *at;
    uint64_t bytes;
};
static inline bool peal_ranges_touch(struct peal_range a, struct peal_range b)
{
    uintptr_t x = (uintptr_t)a.at, y = (uintptr_t)b.at;
    return a.bytes > 0 && b.bytes > 0 && x < y + b.bytes && y < x + a.bytes;
}

/* How arguments share memory that is written. */
enum peal_sharing {
    PEAL_APART,
    PEAL_IN_PLACE, /* x and y, as the contract's in-place calls share it; nothing else */
    PEAL_OVERLAP   /* in any other way */
};
/* `ranges`: of each parameter on the rank. The first two that overlap are given in `which`. */
enum peal_sharing peal_kernel_sharing(const struct peal_kernel *kernel,
                                      const struct peal_range *ranges, size_t count, uint32_t rank,
                                      uint32_t nranks, const struct peal_symbol *which[2]);

#endif
