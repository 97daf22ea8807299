/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel's text in the form that classes of texts are described in.
 *
 *   before                                    after
 *   let right = (rank + nranks + 1) % nranks
 *   notify s@right += 1                       notify s@((rank + 1) % nranks) += 1
 *   x[0 +: len(x)]                            x
 *   var k = 0; for i in 0 .. nranks - 1
 *     { k = k + 1  wait s >= k }              for i in 0 .. nranks - 1 { wait s >= i + 1 }
 *   for i in 1 .. nranks
 *     { let p = (rank + i) % nranks ... p }   for p in peers { ... p }       (only with `rotations`)
 *   for i in 1 .. nranks                      for p in peers { send x[p of nranks] to p }
 *     { send ... to (rank + i) % nranks       for p in peers { y[p of nranks] = recv from p }
 *       ... recv from (rank - i) % nranks }     (`divided`, only with `rotations`)
 *
 *   let f: T[n] = recv_async from p ... wait f    ... let f: T[n] = recv from p
 *
 * Names for integers are replaced by what they stand for, variables that a loop counts up by
 * functions of its turn, lengths by shapes, slices that take everything by the whole; sums are put
 * together, and multiples of nranks left out before % nranks. With `rotations`, a loop whose turns
 * name each peer once, as a rotation of the own rank, becomes a loop over peers; likewise for all
 * ranks. What is not understood stays as it is. Plans are made from the text as it was written; the
 * normal form is read only.
 */
#ifndef PEAL_VERIFY_FORALL_NORMAL_H
#define PEAL_VERIFY_FORALL_NORMAL_H

#include "lang/lang.h"

struct peal_normal {
    struct peal_module *module;
    struct peal_kernel *kernel; /* in the module */
    bool divided;               /* a loop became one of sends and one of recvs */
};

/* False: out of memory, or too large; nothing is to be released. */
bool peal_normal_make(const struct peal_kernel *kernel, bool rotations, struct peal_normal *out);
void peal_normal_release(struct peal_normal *normal);

/* posts.c: recv_async and its wait become a recv, where a block has both. */
void peal_normal_place_recvs(struct peal_stmt **first);

#endif
