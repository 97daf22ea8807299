/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from a peer that may send anything: only exposed memory changes, and a refusal has a reason.
 * Pieces of any size give the same result as the whole; so do those of two and three peers that arrive in turns. */
#include "run/net/inbound.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES = 4096, CELLS = 64, PEERS = 3 };

struct side {
    struct peal_net net;
    struct peal_net_segments segments;
    struct peal_net_inbound in;
    struct peal_net_parser parser;
    struct peal_net_token token;
    uint8_t *memory, *cells, *reply;
    uint64_t old;
    uint64_t sum; /* a hash of what callbacks were given */
};

static void on_accumulate(void *context, uint32_t rank, const struct peal_net_accumulate *request,
                          void *at, const void *from)
{
    (void)context, (void)rank;
    memcpy(at, from, request->bytes);
}

static void on_message(void *context, uint32_t rank, uint32_t kind, const void *bytes, uint64_t len)
{
    struct side *side = context;
    (void)rank;
    side->sum += kind;
    for (uint64_t i = 0; i < len; i++)
        side->sum = side->sum * 31 + ((const uint8_t *)bytes)[i];
}

static struct side *new_side(void)
{
    struct side *side = calloc(1, sizeof *side);
    side->memory = calloc(1, BYTES);
    side->cells = calloc(1, CELLS);
    side->reply = calloc(1, BYTES);
    side->net.events =
        (struct peal_net_events){side, on_accumulate, on_message, on_message, NULL, NULL};
    side->in.net = &side->net;
    side->in.segments = &side->segments;
    (void)peal_net_segments_set(&side->segments, 1, side->memory, BYTES);
    (void)peal_net_segments_set(&side->segments, 2, side->cells, CELLS);
    /* Two requests are under way. */
    side->in.requests[0] = (struct peal_net_request){
        .busy = true, .to = side->reply, .bytes = BYTES, .token = &side->token};
    side->in.requests[1] = (struct peal_net_request){
        .busy = true, .atomic = true, .old = &side->old, .token = &side->token};
    peal_net_token_begin(&side->token);
    peal_net_token_begin(&side->token);
    return side;
}

/* The next piece of what a peer sends; false: there is none, or the last one was refused. */
static bool feed_piece(struct side *side, const uint8_t *data, size_t size, size_t *at,
                       size_t piece)
{
    const struct peal_net_sink sink = {&side->in, peal_net_inbound_begin, peal_net_inbound_end};
    size_t len = size - *at < piece ? size - *at : piece;
    const uint8_t *from = data + *at;
    *at += len;
    return len > 0 && peal_net_parser_feed(&side->parser, &sink, from, len);
}

static void feed(struct side *side, const uint8_t *data, size_t size, size_t piece)
{
    size_t at = 0;
    while (feed_piece(side, data, size, &at, piece))
        continue;
}

static bool is_same(const struct side *a, const struct side *b)
{
    return (a->parser.bad == NULL) == (b->parser.bad == NULL) &&
           memcmp(a->memory, b->memory, BYTES) == 0 && memcmp(a->cells, b->cells, CELLS) == 0 &&
           memcmp(a->reply, b->reply, BYTES) == 0 && a->sum == b->sum &&
           a->in.nanswers == b->in.nanswers && a->in.acked == b->in.acked;
}

static void free_side(struct side *side)
{
    peal_net_inbound_fail(&side->in, PEAL_PEER_DEAD);
    if (!peal_net_token_is_done(&side->token))
        abort(); /* an operation was lost */
    free(side->memory);
    free(side->cells);
    free(side->reply);
    free(side);
}

/* Each of `peers` connections gets a part of the bytes: in turns with the others, and alone. */
static void check_together(const uint8_t *data, size_t size, size_t peers)
{
    struct side *together[PEERS], *alone[PEERS];
    size_t at[PEERS] = {0}, part = size / peers;
    bool more = true;
    for (size_t p = 0; p < peers; p++) {
        together[p] = new_side();
        alone[p] = new_side();
        feed(alone[p], data + p * part, part, part ? part : 1);
    }
    bool open[PEERS] = {true, true, true};
    while (more) {
        more = false;
        for (size_t p = 0; p < peers; p++) {
            open[p] = open[p] &&
                      feed_piece(together[p], data + p * part, part, &at[p], (size + p) % 61 + 1);
            more |= open[p];
        }
    }
    for (size_t p = 0; p < peers; p++) {
        if (!is_same(together[p], alone[p]))
            abort();
        free_side(together[p]);
        free_side(alone[p]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct side *whole = new_side(), *pieces = new_side();
    feed(whole, data, size, size ? size : 1);
    feed(pieces, data, size, size % 7 + 1);
    if (!is_same(whole, pieces))
        abort();
    free_side(whole);
    free_side(pieces);
    check_together(data, size, 2);
    check_together(data, size, PEERS);
    return 0;
}
