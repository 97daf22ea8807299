/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to and from ranks on other hosts. The mailboxes are those of one host, in the receiver's window;
 * what a sender stores there goes by the network, and so does the credit for slots that are free again. */
#ifndef PEAL_RUN_MAIL_FAR_H
#define PEAL_RUN_MAIL_FAR_H

#include "run/call/mail.h"

/* Of what is left of a message, this much goes into the next slot. */
static inline uint64_t peal_mail_fragment(uint64_t left)
{
    return left < PEAL_MAIL_PAYLOAD ? left : PEAL_MAIL_PAYLOAD;
}

/* Sends as much as fits. True if anything moved; the letter has ended when all of it has left its
 * memory. */
bool peal_mail_send_far(struct peal_mail *mail, struct peal_letter *letter);
/* Tells senders on other hosts how many of their slots are free again. */
void peal_mail_pay_credits(struct peal_mail *mail);
/* What of these letters is still to leave is their owner's again: after a failure. */
void peal_mail_let_go(const struct peal_team *team, struct peal_letter *first);

#endif
