/* SPDX-License-Identifier: Apache-2.0 */
/* Point-to-point messages: a queue of slots from every rank to every rank, in the receiver's
 * window. A message is cut into fragments of a slot's size; one with another tag than the wanted
 * one is put aside whole, in private memory.
 */
#ifndef PEAL_RUN_MAIL_H
#define PEAL_RUN_MAIL_H

#include "run/team/team.h"

enum { PEAL_MAIL_SLOTS = 16, PEAL_MAIL_PAYLOAD = 16384 - PEAL_LINE };

/* Bytes of one mailbox: a line for the credit, then the slots. */
static inline uint64_t peal_mail_bytes(void)
{
    return PEAL_LINE + (uint64_t)PEAL_MAIL_SLOTS * (PEAL_LINE + PEAL_MAIL_PAYLOAD);
}

/* A message on its way, or wanted. Lives with the caller until status is not PEAL_PENDING. */
struct peal_letter {
    struct peal_letter *next;
    bool sends;
    bool probes; /* wants to know of a message, and leaves it where it is */
    uint32_t peer; /* UINT32_MAX: from anybody */
    uint32_t tag;
    char *data;
    uint64_t bytes;  /* of the message, or room for it */
    uint64_t moved;  /* bytes so far */
    uint64_t length; /* received: of the whole message, once it has begun */
    bool begun;
    uint32_t sender;
    enum peal_status status;
};

struct peal_aside; /* a message that came before it was wanted */

struct peal_mail {
    struct peal_team *team;
    struct peal_letter *letters; /* pending, oldest first */
    struct peal_aside *asides;   /* whole ones, oldest first */
    struct peal_aside **filling; /* per sender: the one that is being put aside */
    struct peal_letter **open;   /* per sender: the letter that takes the current message */
    uint64_t *sent, *credit, *received;
    uint64_t *stalled; /* per receiver: the round in which a letter to it found no room */
    uint64_t round;    /* of progress */
};

enum peal_status peal_mail_init(struct peal_mail *mail, struct peal_team *team);
void peal_mail_release(struct peal_mail *mail);
/* Adds a letter (status PEAL_PENDING) and moves what can move. */
void peal_mail_post(struct peal_mail *mail, struct peal_letter *letter);
/* Has a message come that the letter (probes) wants? It is told by its length and sender. */
bool peal_mail_probe(struct peal_mail *mail, struct peal_letter *letter);
bool peal_mail_progress(struct peal_mail *mail);
void peal_mail_fail(struct peal_mail *mail, enum peal_status status);
/* The rank that a message under way is of, or for (UINT32_MAX: of any); false: it is none. */
bool peal_mail_peer(const struct peal_mail *mail, const enum peal_status *wanted, uint32_t *peer);
/* The letter whose status is waited for. */
void peal_mail_describe(const struct peal_mail *mail, const enum peal_status *wanted,
                        struct peal_text *out);

#endif
