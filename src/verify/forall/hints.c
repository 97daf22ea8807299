/* SPDX-License-Identifier: Apache-2.0 */
/* How to write it instead, where the text leaves all classes: by the reason. Lines of at most 78
 * columns. */
#include "verify/forall/forall.h"

#include <string.h>

static const struct {
    const char *why, *how;
} hints[] = {
    {"a loop that is not over peers or all ranks",
     "for p in peers { ... }, for q in 0 .. nranks { ... }, or for i in 1 .. nranks\n"
     "  with (rank + i) % nranks as the only use of i"},
    {"a condition that is not equality of ranks",
     "compare ranks by == and != only: rank == root, p != rank"},
    {"a notify to a rank that is computed",
     "notify a peer of a loop over peers, rank 0 or root: s[rank]@p"},
    {"a cell that is not indexed by its writer",
     "signal s[nranks], notify s[rank]@p += 1, wait s[p] >= 1"},
    {"a cell that is neither indexed by its writer nor single",
     "signal s[nranks], notify s[rank]@p += 1, wait s[p] >= 1"},
    {"a single cell that is not written by rank 0 or root alone",
     "signal s[nranks], notify s[rank]@p += 1, wait s[p] >= 1"},
    {"a cell that is not named by a number",
     "rings: signal s, notify s@((rank + 1) % nranks); meshes: s[rank]@p"},
    {"a wait for a cell that is not named by its writer",
     "wait s[p] >= 1, where p notifies s[rank]"},
    {"a signal that is raw",
     "signal s[nranks] or signal shared s, which count from 0 in every launch"},
    {"a signal that is shared or raw",
     "a cell per writer: signal s[nranks], notify s[rank]@p, wait s[p] for each p"},
    {"a threshold that is not a constant", "a cell per writer, and a number: wait s[p] >= 1;\n"
                                           "  or signal shared s, and wait s >= nranks - 1"},
    {"a part of a buffer that is neither whole, of one rank, nor a slot",
     "x, x[r of nranks], or x[(a * nranks + r) * n +: n] of T[k * nranks * n];\n"
     "  a shorter length needs an assert before, such as assert n <= cap"},
    {"memory of a rank that is computed",
     "w@p in a loop over peers, w@q in one over ranks, w@root, w@0; in rings and\n"
     "  halos w@((rank + 1) % nranks)"},
    {"a buffer that is divided in two ways", "one form of slices for all uses of the buffer"},
    {"parameters that are divided in two ways", "the same parts and pieces of x and y"},
    {"a buffer whose length is not a size per rank or per number of ranks",
     "T[n], T[nranks * n], T[k * nranks * n] with a number k, or T[nranks, m]"},
    {"a message to a rank that is computed",
     "rings: peers (rank + 1) % nranks and (rank - 1) % nranks;\n"
     "  meshes: send to all in a loop over peers, then recv from all in another;\n"
     "  chains, lines and trees: prove the ranks that you run, -n 2..16"},
    {"a message from a rank that is computed",
     "rings: peers (rank + 1) % nranks and (rank - 1) % nranks;\n"
     "  meshes: send to all in a loop over peers, then recv from all in another;\n"
     "  chains, lines and trees: prove the ranks that you run, -n 2..16"},
    {"sends and recvs in one loop beside",
     "the sends in one loop over peers, and the recvs in a loop behind it"},
    {"a recv may need a send that does not come earlier",
     "all sends of a step in one loop, and the recvs in a loop behind it"},
    {"a wait for a part of what is added to a shared cell",
     "wait for all that is added: wait c >= nranks - 1, outside loops"},
    {"a wait for less, or for more, than is added to a shared cell",
     "wait for all that is added: wait c >= nranks - 1 after one notify by each peer"},
    {"a rank may add to a shared cell what the next launch",
     "a second counter that all wait for before they leave, or a cell per writer"},
    {"a grid or a tree", "a mesh of windows, or a ring; the library's broadcast_binomial and\n"
                         "  reduce_binomial are decided (peal show broadcast_binomial);\n"
                         "  other trees: prove the ranks that you run, -n 2..16"},
    {"a statement that no tree has",
     "windows instead of messages, as the library's broadcast_binomial and\n"
     "  reduce_binomial (peal show broadcast_binomial)"},
    {"an operand that is neither a part of a buffer, a tile nor a reduction of them",
     "x, a part of x, a tile, recv from p, or op(a, b) of these"},
    {"a clause about something else than parts of meshes",
     "y[i] == x@q[i] for all i, y[r of nranks] == ..., rows y[q] of T[nranks, n], or\n"
     "  y[i] == x@(i / n)[i % n] for y: T[nranks * n]; halves: y[0 of 2] == ..."},
    {"a clause that is neither an element nor a reduction",
     "y[i] == x@q[i], or y[i] == op(q in 0 .. nranks: x@q[i])"},
    {"a clause with two reductions", "one reduction in each ensures"},
    {"a clause that is no collective of a ring",
     "y[i] == op(q in 0 .. nranks: x@q[i]), y[i] == x@(i / n)[i % n], or\n"
     "  y[i] == op(q in 0 .. nranks: x@q[rank * n + i])"},
    {"a clause beside the collective of a ring", "either implements or ensures"},
    {"a reduction that is not over all ranks", "op(q in 0 .. nranks where q != rank: x@q[i])"},
    {"a reduction over ranks that are not at fixed distances",
     "a loop over peers (a mesh) or over steps (a ring) for sums over all ranks"},
    {"a rank that is not at a fixed distance",
     "neighbours (rank + c) % nranks with a number c from -4 to 4"},
    {"a condition that is not about the number of ranks alone",
     "the same statements on all ranks, round the ends: (rank - 1) % nranks"},
    {"a size that is not a multiple of the count", "n, 2 * n, n + 2: no n / 2, min(n, k)"},
    {"a place that is not a multiple of the count", "x[0], x[n - 1], x[1 +: n - 2]"},
    {"a condition that does not compare the index", "where i >= 1 and i < n - 1"},
    {"an assert in a halo", "requires n >= 2, requires nranks >= 3"},
    {"a promise that does not bound",
     "requires n >= 2, requires nranks >= 3; others for given numbers: -n 2..8 -c 4"},
    {"a loop whose number of turns is not in the text", "for k in 0 .. 4 { ... }, at most 8 turns"},
    {"what holds for few ranks is not shown for all",
     "before the launch ends, tell the rank whose window was read, and let it wait:\n"
     "  notify taken@left += 1, wait taken >= nranks - 1"},
    {"a part that is neither [c of nranks] nor a slot's",
     "x[c of nranks], w[0 +: part(c, n, nranks)], slots w[s % 2] of T[2, n] or of\n"
     "  T[2, cdiv(n, nranks)]"},
    {"a slot that is neither a number nor one modulo all",
     "w[s % 2] of T[2, n], with the loop's variable s"},
    {"a buffer that is neither a vector nor space for one part",
     "T[n], slots of T[cdiv(n, nranks)], or one of k in turn: T[k, n][launch mod k]"},
    {"more messages are under way", "recv what was sent before the next send, or --depth k"},
    {"a peer that is not at a distance of one or two ranks",
     "rings: peers (rank + c) % nranks with a number c from -2 to 2"},
    {"an accumulate into memory", "a slot per rank, and a sum over the slots by their reader"},
    {"a variable that no loop counts up",
     "var k = 0 outside, and k = k + 1 once in the loop's own block"},
    {"a call inside a loop",
     "a loop of up to 8 turns: for i in 0 .. 4; else the calls one after the other"},
    {"a signal of a call that is used elsewhere too", "a signal of its own for each call"},
    {"an assert that does not bound one size by another",
     "assert n <= cap, or assert n % nranks == 0"},
    {"an assert that some ranks do not execute", "the assert before all loops and branches"},
    {"a tile that a loop over ranks reads and changes",
     "a sum, acc = op(acc, ...), that only statements behind the loop read"},
    {"a place whose value is that of the last iteration over ranks",
     "a place that the loop's variable names: y[p of nranks] = ..."},
    {"a tile whose value is that of the last iteration over ranks",
     "a sum over the ranks: acc = op(acc, ...)"},
    {"a function that is not a reduction", "op(a, b) and final(op, a) only"},
    {"a write to another rank's memory",
     "a window that one neighbour alone writes: w@right = x, and its owner reads"},
    {"more than one dimension", "one dimension; the others as numbers"},
    {"a nested loop, or one with a step", "one loop from a to b"},
    {"a recv_async",
     "wait in the order of the posts, in the same block, and recv nothing in between;\n"
     "  or the recv where it is waited for"},
    {"a number that the caller gives, besides one count", "a number in the text"},
};

const char *peal_forall_hint(const char *why)
{
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        if (strncmp(why, hints[i].why, strlen(hints[i].why)) == 0)
            return hints[i].how;
    }
    return NULL;
}
