/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance with swaps (optimal string alignment). */
#include "base/nearest.h"

#include <stddef.h>
#include <string.h>

enum { LONGEST = 40 };

static int least(int a, int b)
{
    if (a < b)
        return a;
    return b;
}

/* Inserting, dropping, changing a letter and swapping two neighbours cost 1 each. */
static int distance(const char *a, const char *b)
{
    size_t alen = strlen(a), blen = strlen(b);
    if (alen > LONGEST || blen > LONGEST)
        return LONGEST;
    int rows[3][LONGEST + 1];
    for (size_t j = 0; j <= blen; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= alen; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = (int)i;
        for (size_t j = 1; j <= blen; j++) {
            int change = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(change, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[alen % 3][blen];
}

/* The smaller the nearer; the first letter is seldom the wrong one. */
static int farness(const char *name, const char *candidate)
{
    return 2 * distance(name, candidate) + (name[0] != candidate[0]);
}

const char *peal_nearer(const char *name, const char *best, const char *candidate)
{
    size_t len = strlen(name);
    int max_distance = 2;
    if (len < 6)
        max_distance = 1;
    if (len < 3)
        max_distance = 0; /* further away is a guess, not a typo */
    if (distance(name, candidate) > max_distance ||
        (best && farness(name, best) <= farness(name, candidate)))
        return best;
    return candidate;
}

const char *peal_nearest(const char *name, const char *const *candidates)
{
    const char *best = NULL;
    for (; *candidates; candidates++)
        best = peal_nearer(name, best, *candidates);
    return best;
}
