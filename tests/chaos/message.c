/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the ranks of a group: some received from any source, some too long for their
 * receiver, some to the sender itself, some left under way. */
#include "chaos.h"

#include <stdlib.h>
#include <string.h>

enum { LETTERS = 6, TAGS = 3 };

struct letter {
    uint32_t from, to, tag;
    uint64_t bytes, key;
    bool any; /* received from any source, as all messages to this rank with this tag are */
};

static void draw_letter(struct letter *letter, uint32_t size, uint64_t seed, uint32_t i)
{
    uint64_t state = mix(seed, i);
    letter->from = below(&state, size);
    letter->to = below(&state, size);
    letter->tag = below(&state, TAGS);
    letter->key = draw(&state);
    letter->any = mix(mix(seed, 50 + letter->to), letter->tag) % 3 == 0;
    switch (below(&state, 8)) {
    case 0:
        letter->bytes = 0;
        break;
    case 1:
        letter->bytes = 1 + below(&state, 48);
        break;
    case 2:
        letter->bytes = below(&state, 70000);
        break;
    case 3:
        letter->bytes = 200000 + below(&state, 500000);
        break;
    default:
        letter->bytes = below(&state, 3000);
    }
}

static void write_letter(const struct letter *letter, char *at, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        at[i] = (char)mix(letter->key, i / 64) + (char)i;
}

static struct flight *new_flight(struct rank *me, uint32_t group, const struct letter *letter)
{
    struct flight *f = calloc(1, sizeof *f);
    if (!f)
        abort();
    f->is_message = true;
    f->group = group;
    f->length = letter->bytes;
    f->from = letter->from;
    flights_add(me, f);
    return f;
}

static bool post_send(struct rank *me, uint32_t group, const struct letter *letter, uint32_t tag)
{
    struct flight *f = new_flight(me, group, letter);
    region_make(&f->send, letter->bytes, 32 + below(&me->own, 32), NULL);
    region_paint(&f->send, letter->key);
    write_letter(letter, f->send.memory + f->send.start, letter->bytes);
    memcpy(f->send.wanted, f->send.memory, f->send.bytes);
    return rank_goes_on(me,
                        peal_isend(me->comms[group], f->send.memory + f->send.start, letter->bytes,
                                   letter->to, tag, &f->request),
                        me->comms[group]);
}

static void make_receive_buffer(struct rank *me, struct flight *f, const struct letter *letter,
                                uint64_t bytes)
{
    region_make(&f->recv, bytes, 32 + below(&me->own, 32), NULL);
    region_paint(&f->recv, letter->key + 1);
    memcpy(f->recv.wanted, f->recv.memory, f->recv.bytes);
    write_letter(letter, f->recv.wanted + f->recv.start,
                 letter->bytes < bytes ? letter->bytes : bytes);
}

static bool post_receive(struct rank *me, uint32_t group, const struct letter *letter, uint32_t tag)
{
    struct flight *f = new_flight(me, group, letter);
    uint64_t bytes = letter->bytes + (letter->key % 3 == 0 ? letter->key % 50 : 0);
    f->is_receive = true;
    f->too_long = letter->bytes > 1 && letter->key % 16 == 1;
    if (f->too_long)
        bytes = letter->bytes / 2;
    make_receive_buffer(me, f, letter, bytes);
    return rank_goes_on(me,
                        peal_irecv(me->comms[group], f->recv.memory + f->recv.start, bytes,
                                   letter->from, tag, &f->request),
                        me->comms[group]);
}

/* All messages to one rank with one tag, received from any source. */
struct inbox {
    const struct letter *letters;
    uint32_t n, rank, tag;
    uint32_t next[MAX_RANKS]; /* by sender: where its next message is searched for */
};

static const struct letter *next_letter(struct inbox *inbox, uint32_t sender)
{
    if (sender >= MAX_RANKS)
        return NULL;
    for (uint32_t i = inbox->next[sender]; i < inbox->n; i++) {
        const struct letter *letter = &inbox->letters[i];
        if (letter->from == sender && letter->to == inbox->rank && letter->tag == inbox->tag) {
            inbox->next[sender] = i + 1;
            return letter;
        }
    }
    return NULL;
}

/* Compares a received message with the next one of its sender. */
static void check_letter(struct rank *me, struct inbox *inbox, const char *at, uint64_t bytes,
                         uint32_t sender)
{
    const struct letter *letter = next_letter(inbox, sender);
    if (!letter || letter->bytes != bytes) {
        rank_complain(me, "%llu bytes from rank %u, which no rank sent", (unsigned long long)bytes,
                      sender);
        return;
    }
    struct flight f = {0};
    uint64_t where;
    make_receive_buffer(me, &f, letter, bytes);
    memcpy(f.recv.memory + f.recv.start, at, bytes);
    if (!region_holds(&f.recv, &where))
        rank_complain(me, "a message of rank %u is wrong at byte %llu", sender,
                      (unsigned long long)(where - f.recv.start));
    region_free(&f.recv);
}

static void receive_any(struct rank *me, uint32_t group, struct inbox inbox, uint32_t tag_sent)
{
    uint32_t left = 0;
    uint64_t longest = 0;
    for (uint32_t i = 0; i < inbox.n; i++) {
        const struct letter *letter = &inbox.letters[i];
        if (letter->to != inbox.rank || letter->tag != inbox.tag || !letter->any)
            continue;
        longest = letter->bytes > longest ? letter->bytes : longest;
        left++;
    }
    char *at = malloc(longest + 1);
    while (left-- > 0) {
        uint64_t got = 0;
        uint32_t sender = 0;
        enum peal_status status =
            peal_recv(me->comms[group], at, longest, PEAL_ANY_SOURCE, tag_sent, &got, &sender);
        if (!rank_goes_on(me, status, me->comms[group]))
            break;
        check_letter(me, &inbox, at, got, sender);
        if (me->wrong)
            break;
    }
    free(at);
}

/* Starts this rank's sends, or its receives from named sources. */
static bool post_all(struct rank *me, uint32_t group, const struct letter *letters, uint32_t n,
                     bool receives)
{
    uint32_t rank = rank_in(me, group), base = me->step * 8;
    for (uint32_t i = 0; i < n; i++) {
        const struct letter *letter = &letters[i];
        bool ok = true;
        if (receives && letter->to == rank && !letter->any)
            ok = post_receive(me, group, letter, base + letter->tag);
        if (!receives && letter->from == rank)
            ok = post_send(me, group, letter, base + letter->tag);
        if (!ok)
            return false;
    }
    return true;
}

void messages_make(struct rank *me, uint32_t group, uint64_t seed)
{
    struct letter letters[LETTERS];
    uint64_t state = seed;
    uint32_t n = 1 + below(&state, LETTERS), rank = rank_in(me, group);
    bool leaves_open = below(&state, 3) == 0;
    for (uint32_t i = 0; i < n; i++) {
        draw_letter(&letters[i], me->groups[group].size, seed, i);
        letters[i].any &= !leaves_open; /* receives from any source wait for their senders */
    }
    if (rank == me->groups[group].size)
        return;
    rank_begins(me, "group %u: %u messages", me->groups[group].number, n);
    bool receives_first = below(&me->own, 2);
    for (uint32_t phase = 0; phase < 2; phase++) {
        if (!post_all(me, group, letters, n, phase != receives_first))
            return;
        if (below(&me->own, 4) == 0)
            rank_pause(me);
    }
    for (uint32_t tag = 0; tag < TAGS; tag++) {
        receive_any(me, group, (struct inbox){letters, n, rank, tag, {0}}, me->step * 8 + tag);
        if (me->failed)
            return;
    }
    if (!leaves_open)
        flights_end_group(me, group);
}
