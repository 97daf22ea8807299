/* SPDX-License-Identifier: Apache-2.0 */
/* See boxes.h. */
#include "run/call/boxes.h"

#include "run/span/span.h"

/* Offset of a receiver's mailbox for a sender. */
static uint64_t box_offset(const struct peal_team *team, uint32_t sender)
{
    return team->layout.mail + sender * peal_mail_bytes();
}

/* What a sender maps of a receiver's window begins here: with its own box, or, where threads are the
 * ranks and share what is mapped, with the first one. */
static uint64_t sent_offset(const struct peal_team *team)
{
    return box_offset(team, team->threads ? 0 : team->rank);
}

static uint64_t all_bytes(const struct peal_team *team)
{
    return team->size * peal_mail_bytes();
}

static uint64_t sent_bytes(const struct peal_team *team)
{
    if (team->threads)
        return all_bytes(team);
    return peal_mail_bytes();
}

void peal_boxes_find(struct peal_mail *mail)
{
    const struct peal_team *team = mail->team;
    if (team->lazy)
        return;
    mail->in = peal_team_window(team, team->rank) + box_offset(team, 0);
    for (uint32_t r = 0; r < team->size; r++)
        mail->to[r] = peal_team_is_far(team, r)
                          ? mail->in /* not used: mail_far.h */
                          : peal_team_window(team, r) + box_offset(team, team->rank);
}

void peal_boxes_unmap(struct peal_mail *mail)
{
    const struct peal_team *team = mail->team;
    if (!team->lazy || !mail->to)
        return;
    if (mail->in)
        peal_team_unmap(team, team->rank, box_offset(team, 0), all_bytes(team));
    for (uint32_t r = 0; r < team->size; r++) {
        if (mail->to[r] && r != team->rank && !peal_team_is_far(team, r))
            peal_team_unmap(team, r, sent_offset(team), sent_bytes(team));
    }
}

static bool map_own(struct peal_mail *mail)
{
    const struct peal_team *team = mail->team;
    if (mail->in)
        return true;
    mail->in = peal_team_map(team, team->rank, box_offset(team, 0), all_bytes(team));
    if (mail->in)
        mail->to[team->rank] = mail->in + team->rank * peal_mail_bytes();
    return mail->in != NULL;
}

static bool map_peer(struct peal_mail *mail, uint32_t peer)
{
    const struct peal_team *team = mail->team;
    uint64_t begin = sent_offset(team);
    if (peal_team_is_far(team, peer))
        mail->to[peer] = mail->in; /* not used: mail_far.h */
    if (mail->to[peer])
        return true;
    char *at = peal_team_map(team, peer, begin, sent_bytes(team));
    if (at)
        mail->to[peer] = at + (box_offset(team, team->rank) - begin);
    return at != NULL;
}

bool peal_boxes_map(struct peal_mail *mail, uint32_t peer)
{
    struct peal_team *team = mail->team;
    if (__builtin_expect(mail->in && mail->to[peer], 1))
        return true;
    if (mail->lost)
        return false;
    if (map_own(mail) && map_peer(mail, peer))
        return true;
    struct peal_text report = {0};
    peal_text_printf(&report, "peal: rank %u: no address space for messages\n", team->rank);
    (void)peal_team_fail(team, PEAL_NO_MEMORY, team->rank, &report);
    peal_text_release(&report);
    mail->lost = true;
    return false;
}
