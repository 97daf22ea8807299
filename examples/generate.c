/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a kernel for one machine: a broadcast that passes its data, chunk by chunk, along the
 * ranks in the order given, which may be the order of the cables.
 *
 *     generate 0 2 1 3 > chain.peal && peal verify chain.peal -n 4
 */
#include <peal/build.h>

#include <stdio.h>
#include <stdlib.h>

enum { MAX_RANKS = 64 };

/* What the i-th rank of the order does with each chunk. */
static void build_turn(struct peal_builder *b, const int *order, int count, int i,
                       struct peal_expr *from, struct peal_expr *to)
{
    peal_build_if(b, peal_build_equal(b, peal_build_name(b, "rank"), peal_build_int(b, order[i])));
    if (i == 0)
        peal_build_assign(b, to, from);
    else
        peal_build_assign(b, to, peal_build_recv(b, peal_build_int(b, order[i - 1]), NULL));
    if (i + 1 < count)
        peal_build_send(b, to, peal_build_int(b, order[i + 1]), NULL);
    peal_build_end(b);
}

static void build_chain(struct peal_builder *b, const int *order, int count)
{
    struct peal_expr *n = peal_build_name(b, "n");
    peal_build_kernel(b, "chain", "broadcast");
    peal_build_doc(b, "Passes the data along the ranks in a given order, chunk by chunk.");
    struct peal_expr *x = peal_build_param(b, "x", &(struct peal_build_memory){.len = n, .dir = 1});
    struct peal_expr *y = peal_build_param(b, "y", &(struct peal_build_memory){.len = n, .dir = 2});
    struct peal_expr *root = peal_build_int_param(b, "root", false, NULL);
    struct peal_expr *chunks = peal_build_int_param(b, "chunks", false, peal_build_int(b, 4));

    peal_build_assert(b, peal_build_equal(b, root, peal_build_int(b, order[0])),
                      "the root is the first rank of the order");
    peal_build_assert(b,
                      peal_build_equal(b, peal_build_name(b, "nranks"), peal_build_int(b, count)),
                      "the order has every rank once");
    struct peal_expr *c = peal_build_for(b, "c", peal_build_int(b, 0), chunks, NULL);
    for (int i = 0; i < count; i++)
        build_turn(b, order, count, i, peal_build_part(b, x, c, chunks),
                   peal_build_part(b, y, c, chunks));
    peal_build_end(b);
}

static bool read_order(char **words, int count, int *order)
{
    bool seen[MAX_RANKS] = {false};
    if (count < 1 || count > MAX_RANKS)
        return false;
    for (int i = 0; i < count; i++) {
        char *end;
        long rank = strtol(words[i], &end, 10);
        if (end == words[i] || *end || rank < 0 || rank >= count || seen[rank])
            return false;
        seen[rank] = true;
        order[i] = (int)rank;
    }
    return true;
}

int main(int argc, char **argv)
{
    int order[MAX_RANKS];
    int count = argc - 1;
    if (!read_order(argv + 1, count, order)) {
        fputs("usage: generate RANK...    every rank from 0 on once, at most 64\n", stderr);
        return 2;
    }
    struct peal_builder *b = peal_builder_new();
    build_chain(b, order, count);
    char *text = peal_builder_text(b);
    if (text)
        fputs(text, stdout);
    else
        fprintf(stderr, "generate: %s\n", peal_builder_error(b));
    free(text);
    peal_builder_free(b);
    return text ? 0 : 1;
}
