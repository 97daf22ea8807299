/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of other processes, read where it lies: one copy instead of two.
 *
 * A plan whose window parameters are private memory is the plan for symmetric memory, step by step;
 * only a read of a peer's parameter is a system call (process_vm_readv): a copy all at once, a
 * computation block by block through memory that stays in the cache.
 *
 * It is never written. A call that fails returns, its caller uses the memory for something else,
 * and a peer that was stopped meanwhile cannot be called back: its write would come after. A late
 * read does the owner no harm, and the reader learns of it (peal_team_confirm). Threads also write
 * each other's memory: a failed call returns there only when no peer is in it any more
 * (peal_team_settle). See docs/decisions/0030-peers-read-and-do-not-write.md.
 *
 * Where the memory is. At the start of a launch a rank publishes its parameters' addresses in its
 * control block. Kernels run in this way are closed: a rank that reads rank q's parameter does so
 * after q has entered the launch, by a chain of notifies and waits, and before q leaves it. So the
 * addresses are read after they were written and before the next launch overwrites them.
 *
 * Whether it may be read. A process may be closed to others (another user, a security policy, a
 * container). So each rank tries once, when the team is opened, to read a word of every peer's
 * memory, and reports in its control block whether it could. Calls read peers' memory only if every
 * rank can read every other.
 */
#ifndef PEAL_RUN_REMOTE_H
#define PEAL_RUN_REMOTE_H

#include "run/exec/exec.h"

enum peal_reads { PEAL_READS_UNKNOWN, PEAL_READS_YES, PEAL_READS_NO };

/* Bytes of each peer's memory that a computation reads at a time. With 64 KiB two ranks' allreduce
 * of 512 KiB takes a tenth longer; what was read of all peers must still be in the cache when it is
 * used. */
enum { PEAL_REMOTE_MIN_BYTES = 64 << 10, PEAL_REMOTE_MAX_BYTES = 256 << 10 };
static inline uint64_t peal_remote_block(uint64_t peers)
{
    uint64_t block = 2 * PEAL_REMOTE_MAX_BYTES / (peers ? peers : 1) / 4096 * 4096;
    if (block < PEAL_REMOTE_MIN_BYTES)
        return PEAL_REMOTE_MIN_BYTES;
    return block > PEAL_REMOTE_MAX_BYTES ? PEAL_REMOTE_MAX_BYTES : block;
}

/* Makes a word for peers to read and writes its address into this rank's control block; returns the
 * word, to be freed with the team. NULL: peers are not to read this rank's memory. */
uint64_t *peal_remote_offer(struct peal_control *own);
/* Tries to read every peer, and reports the result in this rank's control block. */
void peal_remote_probe(struct peal_team *team);
/* True if this rank can read all others: probably what peal_remote_agree will find. */
bool peal_remote_expect(const struct peal_team *team);
/* True if every rank can read every other. The same on all ranks: waits until all have tried. */
bool peal_remote_agree(struct peal_team *team);

/* Publishes where this rank's parameter is in this launch. Before its first notify. */
void peal_remote_publish(const struct peal_team *team, uint32_t context, uint32_t param,
                         const void *at);

/* A step on peers' memory. False: some could not be read; frame->unread says whose, and why. */
bool peal_remote_work(struct peal_frame *frame, const struct peal_step *step);

#endif
