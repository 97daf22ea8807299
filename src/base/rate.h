/* SPDX-License-Identifier: Apache-2.0 */
/* Rates as exact rationals, times in whole picoseconds, and their decimal texts. A value that cannot
 * be exact is refused, and is never rounded silently.
 */
#ifndef PEAL_BASE_RATE_H
#define PEAL_BASE_RATE_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* Picoseconds per unit as num / den, in lowest terms; 0 / 1 = no cost (an infinite rate). A link of
 * 48 GB/s is 125 / 6 picoseconds per byte. */
struct peal_rate {
    uint64_t num, den;
};

/* ceil(n * rate): picoseconds. UINT64_MAX if it does not fit. */
uint64_t peal_rate_time(struct peal_rate rate, uint64_t n);
/* den > 0. */
struct peal_rate peal_rate_reduced(uint64_t num, uint64_t den);
/* Below 0: `a` has fewer picoseconds per unit, so it is the faster one. */
int peal_rate_compare(struct peal_rate a, struct peal_rate b);
/* The rate of this many of them side by side. False: too many digits. */
bool peal_rate_bundle(struct peal_rate rate, uint64_t lanes, struct peal_rate *out);

/* 1000 / x picoseconds: per byte for x GB/s, per cycle for x GHz. Between 1e-6 and 1e6, or .inf.
 * False: *why says why not, a static text. */
bool peal_rate_parse(const char *text, struct peal_rate *out, const char **why);
void peal_rate_print(struct peal_rate rate, struct peal_text *out);
/* Nanoseconds, at most 1e9, exact to the picosecond. */
bool peal_time_parse_ns(const char *text, uint64_t *out, const char **why);
void peal_time_print_ns(uint64_t time, struct peal_text *out);

#endif
