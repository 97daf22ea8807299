/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the ranks of a group: some from any source, some too long for their receiver,
 * some to oneself, some left under way. */
#include "chaos.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LETTERS = 6, TAGS = 3 };

struct letter {
    uint32_t from, to, tag;
    uint64_t bytes, key;
    bool any; /* the receiver takes it from any source: so with all of this tag */
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
    uint32_t i = 0;
    while (me->flights[i])
        i++;
    me->flights[i] = f;
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

static void make_room(struct rank *me, struct flight *f, const struct letter *letter, uint64_t room)
{
    region_make(&f->recv, room, 32 + below(&me->own, 32), NULL);
    region_paint(&f->recv, letter->key + 1);
    memcpy(f->recv.wanted, f->recv.memory, f->recv.bytes);
    write_letter(letter, f->recv.wanted + f->recv.start,
                 letter->bytes < room ? letter->bytes : room);
}

static bool post_receive(struct rank *me, uint32_t group, const struct letter *letter, uint32_t tag)
{
    struct flight *f = new_flight(me, group, letter);
    uint64_t room = letter->bytes + (letter->key % 3 == 0 ? letter->key % 50 : 0);
    f->is_receive = true;
    f->too_long = letter->bytes > 1 && letter->key % 16 == 1;
    if (f->too_long)
        room = letter->bytes / 2;
    make_room(me, f, letter, room);
    return rank_goes_on(me,
                        peal_irecv(me->comms[group], f->recv.memory + f->recv.start, room,
                                   letter->from, tag, &f->request),
                        me->comms[group]);
}

/* One after the other: each is the next one of its sender. */
static void receive_any(struct rank *me, uint32_t group, const struct letter *letters, uint32_t n,
                        uint32_t tag, uint32_t tag_sent)
{
    uint32_t next[MOST] = {0}, rank = rank_in(me, group), left = 0;
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (letters[i].to != rank || letters[i].tag != tag || !letters[i].any)
            continue;
        most = letters[i].bytes > most ? letters[i].bytes : most;
        left++;
    }
    for (; left > 0 && !me->wrong; left--) {
        char *at = malloc(most + 1);
        struct flight f = {.is_message = true, .is_receive = true, .group = group};
        uint64_t got = 0, where;
        uint32_t sender = 0, i;
        if (!rank_goes_on(
                me, peal_recv(me->comms[group], at, most, PEAL_ANY_SOURCE, tag_sent, &got, &sender),
                me->comms[group])) {
            free(at);
            return;
        }
        for (i = sender < MOST ? next[sender] : n; i < n; i++) {
            if (letters[i].from == sender && letters[i].to == rank && letters[i].tag == tag)
                break;
        }
        if (i == n || letters[i].bytes != got)
            rank_complain(me, "%llu bytes from rank %u, which no rank sent",
                          (unsigned long long)got, sender);
        else {
            next[sender] = i + 1;
            make_room(me, &f, &letters[i], got);
            memcpy(f.recv.memory + f.recv.start, at, got);
            if (!region_holds(&f.recv, &where))
                rank_complain(me, "a message of rank %u is wrong at byte %llu", sender,
                              (unsigned long long)(where - f.recv.start));
            region_free(&f.recv);
        }
        free(at);
    }
}

void messages_make(struct rank *me, uint32_t group, uint64_t seed)
{
    struct letter letters[LETTERS];
    uint64_t state = seed;
    uint32_t n = 1 + below(&state, LETTERS), rank = rank_in(me, group);
    bool leaves_open = below(&state, 3) == 0;
    uint32_t base = me->step * 8;
    for (uint32_t i = 0; i < n; i++) {
        draw_letter(&letters[i], me->groups[group].size, seed, i);
        letters[i].any &= !leaves_open; /* it would be waited for while its sender is elsewhere */
    }
    if (rank == me->groups[group].size)
        return;
    snprintf(me->doing, sizeof me->doing, "group %u: %u messages", me->groups[group].number, n);
    if (me->trace)
        fprintf(stderr, "[%u] step %u: %s\n", me->rank, me->step, me->doing);
    bool receives_first = below(&me->own, 2), ok = true;
    for (uint32_t phase = 0; phase < 2 && ok; phase++) {
        for (uint32_t i = 0; i < n && ok; i++) {
            if (phase != receives_first && letters[i].to == rank && !letters[i].any)
                ok = post_receive(me, group, &letters[i], base + letters[i].tag);
            if (phase == receives_first && letters[i].from == rank)
                ok = post_send(me, group, &letters[i], base + letters[i].tag);
        }
        if (below(&me->own, 4) == 0)
            rank_pause(me);
    }
    for (uint32_t tag = 0; tag < TAGS && ok && !me->failed; tag++)
        receive_any(me, group, letters, n, tag, base + tag);
    if (!leaves_open && !me->failed)
        flights_end_group(me, group);
}
