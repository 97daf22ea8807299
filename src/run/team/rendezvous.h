/* SPDX-License-Identifier: Apache-2.0 */
/* Rendezvous: the ranks of a job find each other and exchange their windows.
 *
 * The leader listens (door.h); every other rank connects, proves that it knows the job, sends its
 * number and passes its window and a descriptor of its process. When all have come, each gets those
 * of all. A process descriptor means the same process in every pid namespace; a process number may
 * not.
 *
 * Then every rank makes what it needs, and reports whether it could: no rank has opened before all
 * have (peal_rendezvous_settle). If a rank does not belong to the meeting, cannot take part or
 * cannot finish, the meeting fails for all ranks at once, with the same text. The sockets are
 * closed at the end, and their names disappear with them.
 */
#ifndef PEAL_RUN_RENDEZVOUS_H
#define PEAL_RUN_RENDEZVOUS_H

#include "base/base.h"

#include <peal/types.h>
#include <stdbool.h>
#include <stdint.h>

struct peal_rendezvous {
    const char *job;
    uint32_t rank, size;
    uint32_t timeout_ms;
    int window;
    /* This rank cannot take part, and comes to say so, without a window; PEAL_OK: it can. */
    enum peal_status refusal;
    const char *reason;
    /* Says of a rank that it will not come any more, and in `how`, which may be NULL, why: the
     * meeting then fails with PEAL_PEER_DEAD. NULL: not known. */
    int (*gone)(void *context, uint32_t rank, struct peal_text *ended);
    void *context;
};

struct peal_meeting {
    uint32_t count; /* who came, in order of rank */
    uint32_t self;  /* position of the caller */
    struct peal_member {
        uint32_t rank;
        int fd;     /* the caller's own too, a duplicate */
        int pidfd;  /* -1: the system has no such descriptors */
        int socket; /* to the leader, or the leader's to this one; -1: none */
    } * members;
    uint32_t leader; /* position */
    uint64_t deadline;
    bool starved; /* of a meeting that failed: this rank had no descriptor to meet others with */
};

/* All ranks meet: rank 0 collects, others connect to it. `why` gets a line on failure, the same on
 * all ranks that are there or come within the next half second. */
enum peal_status peal_rendezvous_meet(const struct peal_rendezvous *meet, struct peal_text *why,
                                      struct peal_meeting *out);
/* Once, after a meeting: says how far this rank has come, and hears of all. PEAL_OK if all have;
 * otherwise the status of the first that has not, and in `why` its reason. `reason` is of a
 * `status` that is not PEAL_OK. */
enum peal_status peal_rendezvous_settle(struct peal_meeting *meeting, enum peal_status status,
                                        const char *reason, struct peal_text *why);
void peal_meeting_release(struct peal_meeting *meeting);

/* An unguessable job name, for launchers and stores. */
void peal_job_make(char out[static 40]);

/* What distinguishes this host, as it runs since its boot, from others: "NAME BOOT"; BOOT is "-" if
 * the system does not say. */
void peal_host_identify(char out[static 112]);
/* False if the two can only be of different hosts. */
bool peal_host_may_be(const char *a, const char *b);

#endif
