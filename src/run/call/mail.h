/* SPDX-License-Identifier: Apache-2.0 */
/* Point-to-point messages: a queue of slots from every rank to every rank, in the receiver's
 * window. A message is cut into fragments of a slot's size; one with another tag than the wanted
 * one is put aside whole, in private memory.
 */
#ifndef PEAL_RUN_MAIL_H
#define PEAL_RUN_MAIL_H

#include "run/net/net.h"
#include "run/team/team.h"

enum { PEAL_MAIL_SLOTS = 16, PEAL_MAIL_PAYLOAD = 16384 - PEAL_LINE };

/* Bytes of one mailbox: a line for credits, then the slots; whole pages, as it may be mapped alone. The first
 * word of the line is the receiver's credit for these slots. Its second word is, between hosts, the other
 * rank's credit for the box that the owner of this one fills there: each reads its own memory. */
static inline uint64_t peal_mail_bytes(void)
{
    return peal_size_align(PEAL_LINE + (uint64_t)PEAL_MAIL_SLOTS * (PEAL_LINE + PEAL_MAIL_PAYLOAD),
                           4096);
}

/* A message on its way, or wanted. Lives with the caller until status is not PEAL_PENDING. */
struct peal_letter {
    struct peal_letter *next;
    bool sends;
    bool probes;   /* wants to know of a message, and leaves it where it is */
    uint32_t peer; /* UINT32_MAX: from any rank */
    uint32_t tag;
    char *data;
    uint64_t bytes;  /* of the message, or room for it */
    uint64_t moved;  /* bytes so far */
    uint64_t length; /* received: of the whole message, once it has begun */
    bool begun;
    uint32_t sender;
    uint64_t order;                /* of posting, among receives */
    bool left;                     /* to another host: all fragments are the network's */
    struct peal_net_token sources; /* to another host: fragments that have not left */
    enum peal_status status;
};

struct peal_aside; /* a message that came before it was wanted */

/* Letters one after the other. */
struct peal_letter_queue {
    struct peal_letter *first, *last;
};
struct peal_aside_queue {
    struct peal_aside *first, *last;
};

/* Work on a message does not grow with the number of others: letters that are to be sent stand in a
 * queue for each receiver, wanted ones in queues by a hash of tag and sender, and what was put aside in
 * queues by a hash of the tag. */
struct peal_mail {
    struct peal_team *team;
    uint64_t pending;                 /* letters whose status is PEAL_PENDING */
    struct peal_letter_queue *out;    /* by receiver, oldest first */
    struct peal_letter_queue *wanted; /* not begun */
    struct peal_letter_queue probing; /* those that probe */
    struct peal_aside_queue *asides;  /* whole ones */
    uint32_t places;                  /* of each of these two; a power of two */
    uint64_t nwanted, nasides, posted;
    struct peal_aside **filling; /* per sender: the one that is being put aside */
    struct peal_letter **open;   /* per sender: the letter that takes the current message */
    uint64_t *sent, *credit, *received;
    bool *owed; /* by sender on another host: it does not know of all its free slots */
    /* Where mailboxes are, NULL: not mapped yet (boxes.h). */
    char *in;  /* its own, of all senders */
    char **to; /* per receiver: its one for this rank */
    bool lost; /* they cannot be mapped, and the team has failed for that */
};

enum peal_status peal_mail_init(struct peal_mail *mail, struct peal_team *team);
void peal_mail_release(struct peal_mail *mail);
/* Adds a letter (status PEAL_PENDING) and moves what can move. */
void peal_mail_post(struct peal_mail *mail, struct peal_letter *letter);
/* Has a message come that the letter (probes) wants? Its length and sender are returned. */
bool peal_mail_probe(struct peal_mail *mail, struct peal_letter *letter);
bool peal_mail_progress(struct peal_mail *mail);
void peal_mail_fail(struct peal_mail *mail, enum peal_status status);
/* The rank that a message under way is of, or for (UINT32_MAX: of any). `wanted` is the status of a
 * letter, here and below. */
uint32_t peal_mail_peer(const enum peal_status *wanted);
void peal_mail_describe(const enum peal_status *wanted, struct peal_text *out);

#endif
