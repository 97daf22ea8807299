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
    {"a signal that is shared or raw",
     "a cell per writer: signal s[nranks], notify s[rank]@p, wait s[p] for each p"},
    {"a threshold that is not a constant",
     "a cell per writer, and a number: wait s[p] >= 1 instead of s >= nranks - 1"},
    {"a part of a buffer that is neither whole, of one rank, nor a slot",
     "x, x[r of nranks], or x[(a * nranks + r) * n +: n] of T[k * nranks * n];\n"
     "  a shorter length needs an assert before, such as assert n <= cap"},
    {"a buffer that is divided in two ways", "one form of slices for all uses of the buffer"},
    {"parameters that are divided in two ways", "the same parts and pieces of x and y"},
    {"a buffer whose length is not a size per rank or per number of ranks",
     "T[n], T[nranks * n], T[k * nranks * n] with a number k, or T[nranks, m]"},
    {"a message, which a mesh has not",
     "rings: peers (rank + 1) % nranks and (rank - 1) % nranks; meshes: windows"},
    {"a grid or a tree",
     "a mesh of windows, or a ring; the library's broadcast_binomial and\n"
     "  reduce_binomial are decided (peal show broadcast_binomial)"},
    {"a statement that no tree has",
     "windows instead of messages, as the library's broadcast_binomial and\n"
     "  reduce_binomial (peal show broadcast_binomial)"},
    {"an operand that is neither a part of a buffer, a tile nor a reduction of them",
     "messages are decided in rings, where no condition depends on the rank; with a\n"
     "  root, put into a window: y = slot@root"},
    {"a peer that is not at a distance of one or two ranks",
     "rings: peers (rank + c) % nranks with a number c from -2 to 2"},
    {"an accumulate into memory", "a slot per rank, and a sum over the slots by their reader"},
    {"a variable that no loop counts up",
     "var k = 0 outside, and k = k + 1 once in the loop's own block"},
    {"a call inside a loop", "the called kernel's loop outside, or its body in place of the call"},
    {"a signal of a call that is used elsewhere too", "a signal of its own for each call"},
    {"an assert that does not bound one size by another",
     "assert n <= cap, or assert n % nranks == 0"},
    {"an assert that some ranks do not execute", "the assert before all loops and branches"},
    {"a place whose value is that of the last iteration over ranks",
     "a place that the loop's variable names: y[p of nranks] = ..."},
    {"a tile whose value is that of the last iteration over ranks",
     "a sum over the ranks: acc = op(acc, ...)"},
    {"a function that is not a reduction", "op(a, b) and final(op, a) only"},
    {"a write to another rank's memory", "rings read their neighbour's window: w = w@left"},
    {"more than one dimension", "one dimension; the others as numbers"},
    {"a nested loop, or one with a step", "one loop from a to b"},
    {"a recv_async", "the recv where it is waited for"},
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
