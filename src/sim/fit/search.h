/* SPDX-License-Identifier: Apache-2.0 */
/* The simplex search of J. A. Nelder and R. Mead (1965): a minimum near a start, by values alone. */
#ifndef PEAL_SIM_FIT_SEARCH_H
#define PEAL_SIM_FIT_SEARCH_H

#include <stddef.h>

enum { PEAL_SEARCH_MAX = 8 };

struct peal_search {
    double (*value)(void *context, const double *x); /* finite, or INFINITY */
    void *context;
    size_t n;    /* dimensions, at most PEAL_SEARCH_MAX */
    double step; /* the first simplex's sides */
    size_t max_values;
};

/* x: from the start to the best point found. Its value is returned. */
double peal_search_run(const struct peal_search *search, double *x);

#endif
