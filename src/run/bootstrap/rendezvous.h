/* SPDX-License-Identifier: Apache-2.0 */
/* Rendezvous: the ranks of a job find each other and exchange their windows.
 *
 * The leader listens (door.h); every other rank connects, proves that it knows the job, sends its
 * number and passes its window and a descriptor of its process. When all have come, each gets those
 * of all. A process descriptor means the same process in every pid namespace; a pid may not.
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
    /* PEAL_OK: this rank takes part. Otherwise it comes without a window, to report that it
     * cannot. */
    enum peal_status refusal;
    const char *reason;
    /* True if a rank will not come any more; `ended`, which may be NULL, then gets the reason, and
     * the meeting fails with PEAL_PEER_DEAD. NULL: not known. */
    int (*gone)(void *context, uint32_t rank, struct peal_text *ended);
    void *context;
};

struct peal_meeting {
    uint32_t count; /* of members, which are in order of rank */
    uint32_t self;  /* position of the caller */
    struct peal_member {
        uint32_t rank;
        int fd;     /* its window; a duplicate for the caller itself */
        int pidfd;  /* -1: the system has no such descriptors */
        int socket; /* between it and the caller, one of which is the leader; -1: none */
    } * members;
    uint32_t leader; /* position */
    uint64_t deadline;
    bool starved; /* the meeting failed because this rank had no descriptor left for a socket */
};

/* All ranks meet: rank 0 collects, others connect to it. `why` gets a line on failure, the same on
 * all ranks that are there or come within the next half second. */
enum peal_status peal_rendezvous_meet(const struct peal_rendezvous *meet, struct peal_text *why,
                                      struct peal_meeting *out);
/* Once, after a meeting: reports whether this rank has what it needs (`status`, and its `reason` if
 * it is not PEAL_OK), and learns the same of all. PEAL_OK if all have; otherwise the status of the
 * first that has not, with its reason in `why`. */
enum peal_status peal_rendezvous_settle(struct peal_meeting *meeting, enum peal_status status,
                                        const char *reason, struct peal_text *why);
void peal_meeting_release(struct peal_meeting *meeting);

/* An unguessable job name, for launchers and stores. */
void peal_job_make(char out[static 40]);

#endif
