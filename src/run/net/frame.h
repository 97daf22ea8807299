/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: what TCP connections carry once two ranks know each other.
 *
 *   +------------------------------------------+------------------+
 *   | head: 48 bytes, fields by kind           | `bytes` of data  |
 *   +------------------------------------------+------------------+
 *
 * | kind         | segment, offset | bytes | signal_*                          | other            |
 * |--------------|-----------------|-------|-----------------------------------|------------------|
 * | put          | where data goes | any   | the signal, if `change` says so   |                  |
 * | accumulate   | where it goes   | any   | the signal, likewise              | fn dtype element flags |
 * | get          | from where      | 0     | offset: request, value: how many  |                  |
 * | reply        | offset: place in the request | any | offset: request        | change: refused  |
 * | atomic       | which word      | 8: compare | offset: request, value: operand | change: kind, element: width |
 * | atomic reply |                 | 0     | offset: request, value: old       | change: refused  |
 * | post, control|                 | any   |                                   | flags: kind      |
 * | flush        |                 | 0     | value: its number                 |                  |
 * | ack          | offset: refused accesses | 0 | value: last flush received   |                  |
 * | bye          |                 | 0     |                                   |                  |
 *
 * Fields that a kind has no use for are 0. Numbers are in the byte order of the hosts, which is compared
 * in the handshake. Long transfers are cut into frames of PEAL_NET_CHUNK bytes, so that others get in
 * between; only the last one has the signal.
 *
 * The parser takes bytes as they come, in pieces of any size, and knows nothing of sockets or memory:
 * it asks a sink where a frame's data is to go, and hands over the finished frame. Whatever it is fed,
 * it either says what is wrong or passes heads that peal_net_head_check accepts.
 */
#ifndef PEAL_RUN_NET_FRAME_H
#define PEAL_RUN_NET_FRAME_H

#include "run/net/net.h"

enum { PEAL_NET_CHUNK = 256 << 10, PEAL_NET_HEAD = 48, PEAL_NET_REQUESTS = 64 };

enum peal_net_kind {
    PEAL_NET_PUT = 1,
    PEAL_NET_ACCUMULATE,
    PEAL_NET_GET,
    PEAL_NET_REPLY,
    PEAL_NET_ATOMIC,
    PEAL_NET_ATOMIC_REPLY,
    PEAL_NET_POST,
    PEAL_NET_CONTROL,
    PEAL_NET_FLUSH,
    PEAL_NET_ACK,
    PEAL_NET_BYE,
    PEAL_NET_KINDS
};

struct peal_net_head {
    uint8_t kind, change, fn, dtype;
    uint32_t segment;
    uint64_t offset;
    uint32_t bytes;
    uint32_t signal_segment;
    uint64_t signal_offset;
    uint64_t signal_value;
    uint32_t flags;
    uint16_t element;
    uint16_t zero;
};
static_assert(sizeof(struct peal_net_head) == PEAL_NET_HEAD, "a head has no padding");

/* NULL, or what is wrong with a head whatever the memory looks like. */
const char *peal_net_head_check(const struct peal_net_head *head);

/* Where frames go. Both functions return NULL, or why the connection has to end. */
struct peal_net_sink {
    void *context;
    /* A head has come. *to: where its data is to be written; NULL: it is dropped. */
    const char *(*begin)(void *context, const struct peal_net_head *head, uint8_t **to);
    /* All of its data is there. */
    const char *(*end)(void *context, const struct peal_net_head *head);
};

struct peal_net_parser {
    union {
        struct peal_net_head head;
        uint8_t bytes[PEAL_NET_HEAD];
    };
    uint32_t have;   /* bytes of the head; PEAL_NET_HEAD: the data is under way */
    uint32_t left;   /* bytes of data that are missing */
    uint8_t *to;     /* where the next ones go; NULL: they are dropped */
    const char *bad; /* the first error: nothing is parsed behind it */
};

/* Takes all bytes; false: `bad` says what is wrong. */
bool peal_net_parser_feed(struct peal_net_parser *parser, const struct peal_net_sink *sink,
                          const uint8_t *bytes, size_t len);
/* Data that the next bytes of the connection are: they may be received straight to `to`, `left` at
 * most, and reported by peal_net_parser_took. */
static inline bool peal_net_parser_is_direct(const struct peal_net_parser *parser)
{
    return parser->have == PEAL_NET_HEAD && parser->to && parser->left > 0;
}
bool peal_net_parser_took(struct peal_net_parser *parser, const struct peal_net_sink *sink,
                          size_t len);

/* ---- what a member sends for a call of net.h ---- */

struct peal_net_head peal_net_head_put(const struct peal_net_put *put);
struct peal_net_head peal_net_head_get(const struct peal_net_get *get);
struct peal_net_head peal_net_head_accumulate(const struct peal_net_accumulate *accumulate);
struct peal_net_head peal_net_head_atomic(const struct peal_net_atomic *atomic);
uint64_t peal_net_parts_bytes(const struct peal_net_part *parts, uint32_t nparts);
/* The bytes of whole elements that one delivery of an accumulate has at most. */
static inline uint32_t peal_net_delivery_max(uint32_t element)
{
    return PEAL_NET_ACCUMULATE_MAX / element * element;
}
/* False: every member refuses such arguments. */
bool peal_net_accumulate_is_valid(const struct peal_net_accumulate *accumulate);
bool peal_net_atomic_is_valid(const struct peal_net_atomic *atomic,
                              const struct peal_net_token *token);

#endif
