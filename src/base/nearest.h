/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the nearest of several names to a misspelt one. */
#ifndef PEAL_BASE_NEAREST_H
#define PEAL_BASE_NEAREST_H

/* The nearer of two candidates, or NULL when neither is near; best = NULL to begin with. Names of
 * fewer than three letters are near to none. */
const char *peal_nearer(const char *name, const char *best, const char *candidate);
/* The nearest of a list that ends with NULL, or NULL. */
const char *peal_nearest(const char *name, const char *const *candidates);

#endif
