/* SPDX-License-Identifier: Apache-2.0 */
/* See mail_far.h. */
#include "run/call/mail_far.h"

#include "run/span/span.h"

#include <stddef.h>
#include <string.h>

/* Where slot number `message` of a far rank's mailbox for this one is, in its window. */
static uint64_t far_slot(const struct peal_team *team, uint64_t message)
{
    return team->layout.mail + team->rank * peal_mail_bytes() + PEAL_LINE +
           message % PEAL_MAIL_SLOTS * (PEAL_LINE + PEAL_MAIL_PAYLOAD);
}

/* One fragment to another host: header, payload, and the slot's number when they have arrived. */
static enum peal_status put_fragment(const struct peal_mail *mail, struct peal_letter *letter,
                                     uint64_t bytes)
{
    enum { SEQ = sizeof(uint64_t) };
    const struct peal_team *team = mail->team;
    const struct peal_peer *peer = &team->span->peers[letter->peer];
    struct peal_slot slot = {
        .signature = letter->tag, .launch = letter->moved == 0, .bytes = letter->bytes};
    char header[sizeof slot];
    bool is_inline = letter->bytes <= PEAL_SLOT_INLINE;
    memcpy(header, &slot, sizeof slot);
    if (is_inline && bytes > 0)
        memcpy(header + offsetof(struct peal_slot, payload), letter->data, bytes);
    uint64_t at = far_slot(team, mail->sent[letter->peer]);
    struct peal_net_part payload = {letter->data + letter->moved, bytes};
    struct peal_net_part rest = {header + SEQ, sizeof header - SEQ};
    struct peal_net_put data = {.rank = peer->at,
                                .segment = peer->window,
                                .offset = at + sizeof slot,
                                .parts = &payload,
                                .nparts = 1};
    struct peal_net_put head = {.rank = peer->at,
                                .segment = peer->window,
                                .offset = at + SEQ,
                                .parts = &rest,
                                .nparts = 1,
                                .signal = {.segment = peer->window,
                                           .change = PEAL_NET_SET,
                                           .offset = at,
                                           .value = mail->sent[letter->peer] + 1}};
    struct peal_net *net = peal_endpoint_lock(team->span->endpoint);
    enum peal_status status = PEAL_OK;
    if (!is_inline && bytes > 0)
        status = peal_net_put(net, &data, &letter->sources);
    /* If there is no room for the header now, the payload is put again with it: the slot is ours. */
    if (status == PEAL_OK)
        status = peal_net_put(net, &head, NULL);
    peal_endpoint_unlock(team->span->endpoint);
    return status;
}

bool peal_mail_send_far(struct peal_mail *mail, struct peal_letter *letter)
{
    uint32_t to = letter->peer;
    _Atomic uint64_t *credit =
        (_Atomic uint64_t *)(mail->in + to * peal_mail_bytes() + sizeof(uint64_t));
    bool moved = false;
    while (!letter->left) {
        if (mail->sent[to] - mail->credit[to] >= PEAL_MAIL_SLOTS) {
            /* Partner: free_slot on the receiver, by the network. */
            mail->credit[to] = atomic_load_explicit(credit, memory_order_acquire);
            if (mail->sent[to] - mail->credit[to] >= PEAL_MAIL_SLOTS)
                return moved;
        }
        uint64_t bytes = peal_mail_fragment(letter->bytes - letter->moved);
        if (put_fragment(mail, letter, bytes) != PEAL_OK)
            return moved; /* no room; or it is dead, which the waiter finds */
        letter->moved += bytes;
        mail->sent[to]++;
        moved = true;
        letter->left = letter->moved == letter->bytes;
    }
    if (!peal_net_token_is_done(&letter->sources))
        return moved;
    letter->status = PEAL_OK;
    mail->pending--;
    return true;
}

/* Tells a sender on another host how many of its slots are free again. */
static void pay_credit(struct peal_mail *mail, uint32_t from)
{
    const struct peal_team *team = mail->team;
    const struct peal_peer *peer = &team->span->peers[from];
    struct peal_net_signal signal = {.segment = peer->window,
                                     .change = PEAL_NET_SET,
                                     .offset = team->layout.mail + team->rank * peal_mail_bytes() +
                                               sizeof(uint64_t),
                                     .value = mail->received[from]};
    struct peal_net *net = peal_endpoint_lock(team->span->endpoint);
    mail->owed[from] = peal_net_signal(net, peer->at, &signal) == PEAL_PENDING;
    peal_endpoint_unlock(team->span->endpoint);
}

void peal_mail_pay_credits(struct peal_mail *mail)
{
    for (uint32_t r = 0; r < mail->team->size; r++) {
        if (mail->owed[r])
            pay_credit(mail, r);
    }
}

void peal_mail_let_go(const struct peal_team *team, struct peal_letter *first)
{
    struct peal_net *net = peal_endpoint_lock(team->span->endpoint);
    for (struct peal_letter *letter = first; letter; letter = letter->next)
        peal_net_release(net, &letter->sources);
    peal_endpoint_unlock(team->span->endpoint);
}
