/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from a peer that may send anything: only exposed memory changes, and a refusal has a reason.
 * Pieces of any size give the same result as the whole. */
#include "run/net/inbound.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES = 4096, CELLS = 64 };

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

static void feed(struct side *side, const uint8_t *data, size_t size, size_t piece)
{
    const struct peal_net_sink sink = {&side->in, peal_net_inbound_begin, peal_net_inbound_end};
    for (size_t at = 0; at < size; at += piece) {
        size_t len = size - at < piece ? size - at : piece;
        if (!peal_net_parser_feed(&side->parser, &sink, data + at, len))
            break;
    }
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct side *whole = new_side(), *pieces = new_side();
    feed(whole, data, size, size ? size : 1);
    feed(pieces, data, size, size % 7 + 1);
    bool same = (whole->parser.bad == NULL) == (pieces->parser.bad == NULL) &&
                memcmp(whole->memory, pieces->memory, BYTES) == 0 &&
                memcmp(whole->cells, pieces->cells, CELLS) == 0 &&
                memcmp(whole->reply, pieces->reply, BYTES) == 0 && whole->sum == pieces->sum &&
                whole->in.nanswers == pieces->in.nanswers && whole->in.acked == pieces->in.acked;
    if (!same)
        abort();
    free_side(whole);
    free_side(pieces);
    return 0;
}
