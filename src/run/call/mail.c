/* SPDX-License-Identifier: Apache-2.0 */
/* See mail.h. A mailbox is a channel (channel.h) at a fixed place:
 *
 *   credit | slot 0 | slot 1 | ...      slot: struct peal_slot (signature = tag, launch = 1 for the
 *                                       first fragment, bytes = of the whole message), payload
 *
 * Who owns what. Letters and their data are the caller's until their status is not PEAL_PENDING.
 * Messages that are put aside are this file's. A mailbox is in the receiver's window: its sender
 * writes the slots, its receiver the credit.
 *
 * What never changes:
 *   - The fragments of a message follow each other in their mailbox: send_all sends one letter per
 *     receiver at a time. So at most one message per sender is under way, in `open` or `filling`.
 *   - A message goes to the oldest letter that wants it, or is put aside whole. When it is whole, a
 *     letter that was posted meanwhile takes it before the sender's next message is seen.
 *   - A sender that waits for slots empties its own boxes, so that two ranks that send to each
 *     other do not block.
 *   - The length that a slot states is read once and checked: it is memory of another process. */
#include "run/call/mail.h"

#include "run/call/boxes.h"
#include "run/call/mail_far.h"
#include "run/span/span.h"
#include "run/wait/backoff.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct peal_aside {
    struct peal_aside *next;
    uint32_t sender, tag;
    uint64_t bytes, moved;
    char data[];
};

enum { FIRST_PLACES = 16 };

enum peal_status peal_mail_init(struct peal_mail *mail, struct peal_team *team)
{
    uint32_t n = team->size;
    *mail = (struct peal_mail){.team = team,
                               .out = calloc(n, sizeof(struct peal_letter_queue)),
                               .wanted = calloc(FIRST_PLACES, sizeof(struct peal_letter_queue)),
                               .asides = calloc(FIRST_PLACES, sizeof(struct peal_aside_queue)),
                               .places = FIRST_PLACES,
                               .filling = calloc(n, sizeof(struct peal_aside *)),
                               .open = calloc(n, sizeof(struct peal_letter *)),
                               .sent = calloc(n, sizeof(uint64_t)),
                               .credit = calloc(n, sizeof(uint64_t)),
                               .received = calloc(n, sizeof(uint64_t)),
                               .to = calloc(n, sizeof(char *)),
                               .owed = calloc(n, sizeof(bool))};
    if (!mail->out || !mail->wanted || !mail->asides || !mail->filling || !mail->open ||
        !mail->sent || !mail->credit || !mail->received || !mail->to || !mail->owed)
        return PEAL_NO_MEMORY;
    peal_boxes_find(mail);
    return PEAL_OK;
}

void peal_mail_release(struct peal_mail *mail)
{
    peal_boxes_unmap(mail);
    uint32_t nfilling = mail->filling ? mail->team->size : 0;
    uint32_t nasides = mail->asides ? mail->places : 0;
    for (uint32_t r = 0; r < nfilling; r++)
        free(mail->filling[r]);
    for (uint32_t i = 0; i < nasides; i++) {
        for (struct peal_aside *aside = mail->asides[i].first, *next; aside; aside = next) {
            next = aside->next;
            free(aside);
        }
    }
    free(mail->out);
    free(mail->wanted);
    free(mail->asides);
    free(mail->filling);
    free(mail->open);
    free(mail->sent);
    free(mail->credit);
    free(mail->received);
    free(mail->to);
    free(mail->owed);
}

/* ---- queues ---- */

static void append_letter(struct peal_letter_queue *queue, struct peal_letter *letter)
{
    letter->next = NULL;
    if (queue->last)
        queue->last->next = letter;
    else
        queue->first = letter;
    queue->last = letter;
}

static void append_aside(struct peal_aside_queue *queue, struct peal_aside *aside)
{
    aside->next = NULL;
    if (queue->last)
        queue->last->next = aside;
    else
        queue->first = aside;
    queue->last = aside;
}

static struct peal_letter_queue *wanted_queue(const struct peal_mail *mail, uint32_t tag,
                                              uint32_t peer)
{
    uint64_t hash = peal_hash_u64((uint64_t)tag << 32 | peer, 0);
    return &mail->wanted[hash & (mail->places - 1)];
}

static struct peal_aside_queue *aside_queue(const struct peal_mail *mail, uint32_t tag)
{
    return &mail->asides[peal_hash_u64(tag, 0) & (mail->places - 1)];
}

/* More places, when there are many for each; without memory it stays as it is. */
static void grow(struct peal_mail *mail)
{
    if (mail->nwanted + mail->nasides < 2 * (uint64_t)mail->places || mail->places >= 1u << 24)
        return;
    struct peal_mail bigger = *mail;
    bigger.places = 4 * mail->places;
    bigger.wanted = calloc(bigger.places, sizeof *bigger.wanted);
    bigger.asides = calloc(bigger.places, sizeof *bigger.asides);
    if (!bigger.wanted || !bigger.asides) {
        free(bigger.wanted);
        free(bigger.asides);
        return;
    }
    for (uint32_t i = 0; i < mail->places; i++) { /* in order: those of one kind are in one queue */
        for (struct peal_letter *l = mail->wanted[i].first, *next; l; l = next) {
            next = l->next;
            append_letter(wanted_queue(&bigger, l->tag, l->peer), l);
        }
        for (struct peal_aside *a = mail->asides[i].first, *next; a; a = next) {
            next = a->next;
            append_aside(aside_queue(&bigger, a->tag), a);
        }
    }
    free(mail->wanted);
    free(mail->asides);
    *mail = bigger;
}

/* This rank's mailbox for messages from a sender. */
static char *box(const struct peal_mail *mail, uint32_t sender)
{
    return mail->in + sender * peal_mail_bytes();
}

static struct peal_slot *slot_at(char *mailbox, uint64_t message)
{
    return (struct peal_slot *)(mailbox + PEAL_LINE +
                                message % PEAL_MAIL_SLOTS * (PEAL_LINE + PEAL_MAIL_PAYLOAD));
}

static char *payload_of(struct peal_slot *slot, uint64_t bytes)
{
    return bytes <= PEAL_SLOT_INLINE ? slot->payload : (char *)(slot + 1);
}

/* ---- sending ---- */

static bool send_some(struct peal_mail *mail, struct peal_letter *letter)
{
    const struct peal_team *team = mail->team;
    uint32_t to = letter->peer;
    if (peal_team_is_far(team, to))
        return peal_mail_send_far(mail, letter);
    char *mailbox = mail->to[to];
    struct peal_cell *credit = (struct peal_cell *)mailbox;
    bool moved = false;
    do {
        if (mail->sent[to] - mail->credit[to] >= PEAL_MAIL_SLOTS) {
            /* Partner: free_slot on the receiver. */
            mail->credit[to] = atomic_load_explicit(&credit->value, memory_order_acquire);
            if (mail->sent[to] - mail->credit[to] >= PEAL_MAIL_SLOTS)
                return moved;
        }
        struct peal_slot *slot = slot_at(mailbox, mail->sent[to]);
        uint64_t bytes = peal_mail_fragment(letter->bytes - letter->moved);
        if (bytes > 0)
            team->compute->copy(payload_of(slot, letter->bytes), letter->data + letter->moved,
                                bytes);
        slot->signature = letter->tag;
        slot->launch = letter->moved == 0;
        slot->bytes = letter->bytes;
        letter->moved += bytes;
        /* Partner: arrived on the receiver. */
        atomic_store_explicit(&slot->seq, ++mail->sent[to], memory_order_release);
        peal_wake_if_sleeping(team, to);
        moved = true;
    } while (letter->moved < letter->bytes);
    letter->status = PEAL_OK;
    mail->pending--;
    return true;
}

/* ---- receiving ---- */

static struct peal_slot *arrived(const struct peal_mail *mail, uint32_t from)
{
    struct peal_slot *slot = slot_at(box(mail, from), mail->received[from]);
    /* Partner: send_some on the sender. */
    if (atomic_load_explicit(&slot->seq, memory_order_acquire) != mail->received[from] + 1)
        return NULL;
    return slot;
}

static void free_slot(struct peal_mail *mail, uint32_t from)
{
    struct peal_cell *credit = (struct peal_cell *)box(mail, from);
    /* Partner: send_some on the sender. */
    atomic_store_explicit(&credit->value, ++mail->received[from], memory_order_release);
    if (peal_team_is_far(mail->team, from))
        mail->owed[from] = true;
    else
        peal_wake_if_sleeping(mail->team, from);
}

/* The oldest letter that wants a tag from exactly that peer (UINT32_MAX: from any). */
static struct peal_letter *find_wanted(const struct peal_mail *mail, uint32_t tag, uint32_t peer)
{
    struct peal_letter *letter = wanted_queue(mail, tag, peer)->first;
    while (letter && (letter->tag != tag || letter->peer != peer))
        letter = letter->next;
    return letter;
}

static void remove_wanted(struct peal_mail *mail, struct peal_letter *letter)
{
    struct peal_letter_queue *queue = wanted_queue(mail, letter->tag, letter->peer);
    struct peal_letter *before = NULL, *i = queue->first;
    for (; i != letter; i = i->next)
        before = i;
    if (before)
        before->next = letter->next;
    else
        queue->first = letter->next;
    if (queue->last == letter)
        queue->last = before;
    mail->nwanted--;
}

/* The letter that a message goes to, taken out of its queue; NULL: none. */
static struct peal_letter *find_taker(struct peal_mail *mail, uint32_t from, uint32_t tag)
{
    struct peal_letter *letter = find_wanted(mail, tag, from);
    struct peal_letter *any = find_wanted(mail, tag, UINT32_MAX);
    if (any && (!letter || any->order < letter->order))
        letter = any;
    if (letter)
        remove_wanted(mail, letter);
    return letter;
}

static void end_receive(struct peal_mail *mail, struct peal_letter *letter)
{
    mail->pending--;
    letter->status = letter->length > letter->bytes ? PEAL_INVALID : PEAL_OK;
}

/* What a slot says of its message. */
struct heading {
    uint64_t bytes; /* of the whole message */
    uint32_t tag;
    bool first; /* fragment */
};

static struct heading read_heading(const struct peal_slot *slot)
{
    return (struct heading){
        .bytes = peal_slot_bytes(slot), .tag = slot->signature, .first = slot->launch != 0};
}

/* No receive wants the message yet, and there is no memory to keep it. */
static void fail_memory(struct peal_mail *mail, uint32_t from, const struct heading *heading)
{
    struct peal_team *team = mail->team;
    struct peal_text report = {0};
    peal_text_printf(
        &report,
        "peal: rank %u: no memory to keep a message of %llu bytes from rank %u, tag %u, "
        "which comes before it is asked for\n",
        team->rank, (unsigned long long)heading->bytes, from, heading->tag);
    (void)peal_team_fail(team, PEAL_NO_MEMORY, team->rank, &report);
    peal_text_release(&report);
}

/* A message begins: it goes to a letter that wants it, or aside. False when memory has run out. */
static bool open_message(struct peal_mail *mail, uint32_t from, const struct heading *heading)
{
    struct peal_letter *letter = find_taker(mail, from, heading->tag);
    if (letter) {
        letter->begun = true;
        letter->length = heading->bytes;
        letter->sender = from;
        mail->open[from] = letter;
        return true;
    }
    struct peal_aside *aside = malloc(sizeof *aside + heading->bytes);
    if (!aside) {
        fail_memory(mail, from, heading);
        return false;
    }
    *aside = (struct peal_aside){.sender = from, .tag = heading->tag, .bytes = heading->bytes};
    mail->filling[from] = aside;
    return true;
}

/* A fragment that cannot follow the ones before it: the sender's memory is damaged. */
static void refuse_fragment(struct peal_mail *mail, uint32_t from)
{
    struct peal_team *team = mail->team;
    struct peal_text report = {0};
    peal_text_printf(&report, "peal: rank %u: the messages of rank %u do not hold together\n",
                     team->rank, from);
    (void)peal_team_fail(team, PEAL_MISMATCH, from, &report);
    peal_text_release(&report);
}

/* Gives a message that was put aside to a letter. */
static void serve(struct peal_mail *mail, struct peal_letter *letter, struct peal_aside *aside)
{
    uint64_t bytes = peal_size_min(aside->bytes, letter->bytes);
    if (bytes > 0)
        mail->team->compute->copy(letter->data, aside->data, bytes);
    letter->begun = true;
    letter->length = aside->bytes;
    letter->sender = aside->sender;
    free(aside);
    end_receive(mail, letter);
}

/* A message is whole. A letter that was posted while it came takes it now, before the sender's next
 * one can. */
static void close_aside(struct peal_mail *mail, struct peal_aside *aside)
{
    struct peal_letter *letter = find_taker(mail, aside->sender, aside->tag);
    if (letter) {
        serve(mail, letter, aside);
        return;
    }
    mail->nasides++;
    append_aside(aside_queue(mail, aside->tag), aside);
    grow(mail);
}

/* Takes one fragment from a sender; false when there is none, or none that can be taken. */
static bool take_fragment(struct peal_mail *mail, uint32_t from)
{
    struct peal_slot *slot = arrived(mail, from);
    if (!slot)
        return false;
    struct heading heading = read_heading(slot);
    bool under_way = mail->open[from] || mail->filling[from];
    bool broken = heading.first == under_way || heading.bytes > INT64_MAX;
    if (!broken && !under_way && !open_message(mail, from, &heading))
        return false;
    struct peal_letter *letter = mail->open[from];
    struct peal_aside *aside = mail->filling[from];
    uint64_t whole = heading.bytes;
    if (broken || whole != (letter ? letter->length : aside->bytes)) {
        refuse_fragment(mail, from);
        return false;
    }
    char *data = letter ? letter->data : aside->data;
    uint64_t space = letter ? letter->bytes : aside->bytes;
    uint64_t *moved = letter ? &letter->moved : &aside->moved;
    uint64_t bytes = peal_mail_fragment(whole - *moved);
    uint64_t kept = space > *moved ? peal_size_min(bytes, space - *moved) : 0;
    if (kept > 0)
        mail->team->compute->copy(data + *moved, payload_of(slot, whole), kept);
    *moved += bytes;
    free_slot(mail, from);
    if (*moved < whole)
        return true;
    if (letter)
        end_receive(mail, letter);
    else
        close_aside(mail, aside);
    mail->open[from] = NULL;
    mail->filling[from] = NULL;
    return true;
}

static bool is_wanted(const struct peal_letter *letter, const struct peal_aside *aside)
{
    return aside->tag == letter->tag &&
           (letter->peer == UINT32_MAX || letter->peer == aside->sender);
}

/* Gives the letter the oldest message that was put aside for it. */
static bool take_aside(struct peal_mail *mail, struct peal_letter *letter)
{
    struct peal_aside_queue *queue = aside_queue(mail, letter->tag);
    struct peal_aside *before = NULL, *aside = queue->first;
    while (aside && !is_wanted(letter, aside)) {
        before = aside;
        aside = aside->next;
    }
    if (!aside)
        return false;
    if (before)
        before->next = aside->next;
    else
        queue->first = aside->next;
    if (queue->last == aside)
        queue->last = before;
    mail->nasides--;
    serve(mail, letter, aside);
    return true;
}

/* ---- probing ---- */

/* The oldest message that is aside, whole or not yet; what has arrived has been put there. */
static bool see_aside(const struct peal_mail *mail, struct peal_letter *letter)
{
    const struct peal_aside *found = aside_queue(mail, letter->tag)->first;
    while (found && !is_wanted(letter, found))
        found = found->next;
    for (uint32_t r = 0; r < mail->team->size && !found; r++) {
        if (mail->filling[r] && is_wanted(letter, mail->filling[r]))
            found = mail->filling[r];
    }
    if (!found)
        return false;
    letter->length = found->bytes;
    letter->sender = found->sender;
    letter->status = PEAL_OK;
    return true;
}

bool peal_mail_probe(struct peal_mail *mail, struct peal_letter *letter)
{
    if (!peal_boxes_map(mail, mail->team->rank))
        return false;
    for (uint32_t r = 0; r < mail->team->size; r++) {
        while (take_fragment(mail, r))
            continue;
    }
    return see_aside(mail, letter);
}

/* Removes letters that probe and have their answer from the queue. */
static bool answer_probes(struct peal_mail *mail)
{
    struct peal_letter_queue left = {0};
    bool moved = false;
    for (struct peal_letter *letter = mail->probing.first, *next; letter; letter = next) {
        next = letter->next;
        if (!see_aside(mail, letter)) {
            append_letter(&left, letter);
            continue;
        }
        mail->pending--;
        moved = true;
    }
    mail->probing = left;
    return moved;
}

/* ---- all letters ---- */

/* One message to a receiver at a time: fragments of two must not mix. */
static bool send_all(struct peal_mail *mail, uint32_t to)
{
    struct peal_letter_queue *queue = &mail->out[to];
    bool moved = false;
    while (queue->first) {
        struct peal_letter *letter = queue->first, *next = letter->next;
        moved |= send_some(mail, letter);
        if (letter->status == PEAL_PENDING)
            break;
        queue->first = next;
        if (!next)
            queue->last = NULL;
    }
    return moved;
}

bool peal_mail_progress(struct peal_mail *mail)
{
    if (mail->team->span)
        peal_mail_pay_credits(mail);
    if (mail->pending == 0 || mail->lost)
        return false;
    bool moved = false;
    for (uint32_t r = 0; r < mail->team->size; r++) {
        if (mail->out[r].first)
            moved |= send_all(mail, r);
    }
    /* A sender that waits for room also empties its own boxes: two ranks that send to each other
     * would wait for each other otherwise. */
    for (uint32_t r = 0; r < mail->team->size; r++) {
        while (take_fragment(mail, r))
            moved = true;
    }
    if (mail->team->span)
        peal_mail_pay_credits(mail);
    if (mail->probing.first)
        moved |= answer_probes(mail);
    return moved;
}

void peal_mail_post(struct peal_mail *mail, struct peal_letter *letter)
{
    struct peal_control *own = peal_team_own(mail->team);
    uint64_t letters = atomic_load_explicit(&own->letters, memory_order_relaxed); /* ours */
    /* Relaxed: for reports only. Partner: count_begun in doctor.c. */
    atomic_store_explicit(&own->letters, letters + 1, memory_order_relaxed);
    letter->status = PEAL_PENDING;
    letter->order = mail->posted++;
    mail->pending++;
    (void)peal_boxes_map(mail, letter->sends ? letter->peer : mail->team->rank);
    if (!letter->sends && !letter->probes && take_aside(mail, letter))
        return;
    if (letter->sends) {
        append_letter(&mail->out[letter->peer], letter);
    } else if (letter->probes) {
        append_letter(&mail->probing, letter);
    } else {
        mail->nwanted++;
        append_letter(wanted_queue(mail, letter->tag, letter->peer), letter);
        grow(mail);
    }
    peal_mail_progress(mail);
}

static void fail_queue(struct peal_letter_queue *queue, enum peal_status status)
{
    for (struct peal_letter *letter = queue->first, *next; letter; letter = next) {
        next = letter->next;
        letter->status = status;
    }
    *queue = (struct peal_letter_queue){0};
}

void peal_mail_fail(struct peal_mail *mail, enum peal_status status)
{
    uint32_t nout = mail->out ? mail->team->size : 0;
    for (uint32_t r = 0; r < nout; r++) {
        if (peal_team_is_far(mail->team, r))
            peal_mail_let_go(mail->team, mail->out[r].first);
        fail_queue(&mail->out[r], status);
        if (mail->open && mail->open[r])
            mail->open[r]->status = status;
        if (mail->open)
            mail->open[r] = NULL;
    }
    uint32_t nwanted = mail->wanted ? mail->places : 0;
    for (uint32_t i = 0; i < nwanted; i++)
        fail_queue(&mail->wanted[i], status);
    fail_queue(&mail->probing, status);
    mail->pending = mail->nwanted = 0;
}

static const struct peal_letter *letter_of(const enum peal_status *wanted)
{
    return (const struct peal_letter *)((const char *)wanted -
                                        offsetof(struct peal_letter, status));
}

uint32_t peal_mail_peer(const enum peal_status *wanted)
{
    const struct peal_letter *letter = letter_of(wanted);
    return letter->begun ? letter->sender : letter->peer;
}

void peal_mail_describe(const enum peal_status *wanted, struct peal_text *out)
{
    const struct peal_letter *letter = letter_of(wanted);
    const char *receives = letter->probes ? "probe for a message from" : "recv from";
    peal_text_printf(out, "%s ", letter->sends ? "send to" : receives);
    if (letter->peer == UINT32_MAX)
        peal_text_puts(out, "any rank");
    else
        peal_text_printf(out, "rank %u", letter->peer);
    peal_text_printf(out, ", tag %u, %llu of %llu bytes", letter->tag,
                     (unsigned long long)letter->moved, (unsigned long long)letter->bytes);
}
