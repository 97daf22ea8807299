/* SPDX-License-Identifier: Apache-2.0 */
/* See search.h. The simplex is sorted by value; its worst corner is replaced, or all but the best are
 * drawn towards that. */
#include "sim/fit/search.h"

#include <assert.h>
#include <string.h>

struct corner {
    double x[PEAL_SEARCH_MAX], value;
};

struct simplex {
    const struct peal_search *search;
    struct corner at[PEAL_SEARCH_MAX + 1]; /* rising */
    size_t used;                           /* values computed */
};

static double value_at(struct simplex *s, const double *x)
{
    s->used++;
    return s->search->value(s->search->context, x);
}

static void sort(struct simplex *s)
{
    for (size_t i = 1; i <= s->search->n; i++) {
        for (size_t j = i; j > 0 && s->at[j].value < s->at[j - 1].value; j--) {
            struct corner c = s->at[j];
            s->at[j] = s->at[j - 1];
            s->at[j - 1] = c;
        }
    }
}

/* The point on the line from the others' middle to the worst corner: 1 is that corner. */
static struct corner along(struct simplex *s, double where)
{
    size_t n = s->search->n;
    struct corner c;
    for (size_t d = 0; d < n; d++) {
        double middle = 0;
        for (size_t i = 0; i < n; i++)
            middle += s->at[i].x[d] / (double)n;
        c.x[d] = middle + where * (s->at[n].x[d] - middle);
    }
    c.value = value_at(s, c.x);
    return c;
}

static void shrink(struct simplex *s)
{
    for (size_t i = 1; i <= s->search->n; i++) {
        for (size_t d = 0; d < s->search->n; d++)
            s->at[i].x[d] = (s->at[i].x[d] + s->at[0].x[d]) / 2;
        s->at[i].value = value_at(s, s->at[i].x);
    }
}

static void move(struct simplex *s)
{
    struct corner *worst = &s->at[s->search->n];
    struct corner c = along(s, -1);
    if (c.value < s->at[0].value) {
        struct corner further = along(s, -2);
        *worst = further.value < c.value ? further : c;
        return;
    }
    if (c.value < s->at[s->search->n - 1].value) {
        *worst = c;
        return;
    }
    struct corner inside = along(s, c.value < worst->value ? -0.5 : 0.5);
    if (inside.value < worst->value && inside.value <= c.value)
        *worst = inside;
    else
        shrink(s);
}

double peal_search_run(const struct peal_search *search, double *x)
{
    struct simplex s = {.search = search};
    assert(search->n > 0 && search->n <= PEAL_SEARCH_MAX);
    for (size_t i = 0; i <= search->n; i++) {
        memcpy(s.at[i].x, x, search->n * sizeof *x);
        if (i > 0)
            s.at[i].x[i - 1] += search->step;
        s.at[i].value = value_at(&s, s.at[i].x);
    }
    for (sort(&s); s.used < search->max_values; sort(&s)) {
        if (s.at[search->n].value - s.at[0].value < 1e-7)
            break;
        move(&s);
    }
    memcpy(x, s.at[0].x, search->n * sizeof *x);
    return s.at[0].value;
}
