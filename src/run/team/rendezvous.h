/* SPDX-License-Identifier: Apache-2.0 */
/* Rendezvous: the ranks of a job find each other and exchange their windows.
 *
 * The leader listens on an abstract Unix socket named from user and job; everyone else connects,
 * says who it is and passes its window. When all are there, each gets all windows. Both ends check
 * the other's user by the kernel's word; host and boot are compared. A meeting that fails, because
 * of a rank that does not belong to it or cannot take part, fails for all with the same words. The
 * socket is closed at the end: its name and everything else vanish with it.
 */
#ifndef PEAL_RUN_RENDEZVOUS_H
#define PEAL_RUN_RENDEZVOUS_H

#include "base/base.h"

#include <peal/types.h>
#include <stdint.h>

struct peal_rendezvous {
    const char *job;
    uint32_t rank, size;
    uint32_t timeout_ms;
    int window;
    /* This rank cannot take part, and comes to say so, without a window; PEAL_OK: it can. */
    enum peal_status refusal;
    const char *reason;
    /* Those of `size` that need not come (they may have died); NULL: all must. */
    const uint8_t *optional;
    /* Says of a rank that it will not come any more: an optional one is not missed, without any
     * other the meeting fails with PEAL_PEER_DEAD. NULL: nobody knows. */
    int (*gone)(void *context, uint32_t rank);
    void *context;
};

struct peal_meeting {
    uint32_t count; /* who came, in order of rank */
    uint32_t self;  /* position of the caller */
    struct peal_member {
        uint32_t rank;
        int32_t pid;
        int fd; /* the caller's own too, a duplicate */
    } * members;
};

/* leader: the rank that collects; others connect to it. `why` gets a line on failure, the same on all
 * ranks that are there or come within the next half second. */
enum peal_status peal_rendezvous_meet(const struct peal_rendezvous *how, uint32_t leader,
                                      struct peal_text *why, struct peal_meeting *out);
void peal_meeting_release(struct peal_meeting *meeting);

/* An unguessable job name, for launchers and stores. */
void peal_job_make(char out[static 40]);

/* What tells this host, as it runs since its boot, from others: "NAME BOOT". */
void peal_host_identify(char out[static 112]);

#endif
