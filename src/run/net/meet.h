/* SPDX-License-Identifier: Apache-2.0 */
/* A meeting: ranks that cannot reach each other yet exchange small blocks of bytes through the service
 * that started them. Used while a communicator is opened, split or shrunk; never for data.
 *
 *   hosts    peal exec --hosts: a connection to it, by PEAL_MEET_FD (meet_hosts.c)
 *   pmix     mpirun, prterun, srun: libpmix, loaded when needed (meet_pmix.c)
 *   pmi      MPICH's Hydra: the text protocol of PMI-1 on PMI_FD (meet_pmi.c)
 *   store    the program's own: set and get by name, such as torch's store (meet_store.c)
 *   local    threads of one process, for tests (meet_local.c)
 *
 * All operations are collective over all ranks of the job and made by all of them in the same order.
 * They block, at most for the time-out given. After a failure a meeting is finished.
 */
#ifndef PEAL_RUN_MEET_H
#define PEAL_RUN_MEET_H

#include "base/base.h"
#include "run/net/net.h"

struct peal_meet {
    const struct peal_meet_ops *ops;
    uint32_t rank, size;
    uint32_t timeout_ms; /* of each operation */
    char job[64];
    /* The job's secret, if the launcher handed it over by its own means. */
    bool has_secret;
    uint8_t secret[PEAL_NET_SECRET];
};

struct peal_meet_ops {
    const char *name; /* for messages: "PMIx" */
    /* Every rank gives `bytes` bytes; all[r * bytes] is rank r's. */
    enum peal_status (*gather)(struct peal_meet *meet, const void *own, size_t bytes, void *all,
                               struct peal_text *why);
    void (*close)(struct peal_meet *meet);
};

/* Set and get by name, blocking: set returns true; get waits until the name is there, for at most
 * timeout_ms, and returns how many bytes it has (copying at most cap), or -1. */
struct peal_meet_store {
    void *context;
    bool (*set)(void *context, const char *name, const void *bytes, size_t len);
    int64_t (*get)(void *context, const char *name, void *out, size_t cap, uint32_t timeout_ms);
};

/* The meeting of the launcher that started this process: PEAL_MEET_FD, PMIx, PMI_FD, in this order.
 * PEAL_UNSUPPORTED: there is none (a launcher without a service, or one rank alone); `why` names what was looked
 * for. */
enum peal_status peal_meet_open(uint32_t timeout_ms, struct peal_text *why, struct peal_meet **out);
/* The meeting of a peal exec --hosts that this process has started and joined (--join), over its end of a socket,
 * which stays the caller's. */
enum peal_status peal_meet_join(int fd, uint32_t timeout_ms, struct peal_text *why,
                                struct peal_meet **out);
/* Names are `prefix`/...: different for each meeting of a store. The functions are used until close. */
enum peal_status peal_meet_open_store(const struct peal_meet_store *store, const char *prefix,
                                      uint32_t rank, uint32_t size, uint32_t timeout_ms,
                                      struct peal_meet **out);
/* `size` meetings of threads of this process: out[r] is rank r's. The last close frees what they share. */
enum peal_status peal_meet_open_local(uint32_t size, uint32_t timeout_ms, struct peal_meet **out);

static inline enum peal_status peal_meet_gather(struct peal_meet *meet, const void *own,
                                                size_t bytes, void *all, struct peal_text *why)
{
    return meet->ops->gather(meet, own, bytes, all, why);
}
/* Accepts NULL. */
static inline void peal_meet_close(struct peal_meet *meet)
{
    if (meet)
        meet->ops->close(meet);
}

/* Which host this process is on, as others compare it: PEAL_HOST, or name, boot and the memory that its
 * processes can share. */
void peal_meet_host(char out[static 160]);
/* Which ranks share a host: nodes[r] numbers hosts from 0 in the order of their first ranks. */
enum peal_status peal_meet_nodes(struct peal_meet *meet, uint32_t *nodes, struct peal_text *why);
/* The job's secret: of PEAL_SECRET_FILE (which only its owner may read), or as it was handed over; otherwise
 * rank 0 makes one, and it is as safe as the service that carries it: rank 0 says so on standard error, once per
 * process, unless `quiet`. */
enum peal_status peal_meet_secret(struct peal_meet *meet, bool quiet,
                                  uint8_t out[static PEAL_NET_SECRET], struct peal_text *why);

#endif
