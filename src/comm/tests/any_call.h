/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: any collective of peal.h by its number, blocking or not. Uses public headers only. */
#ifndef PEAL_COMM_ANY_CALL_H
#define PEAL_COMM_ANY_CALL_H

#include <peal/peal.h>

enum kind {
    BARRIER,
    ALLREDUCE,
    REDUCE,
    BROADCAST,
    ALLGATHER,
    REDUCE_SCATTER,
    GATHER,
    SCATTER,
    ALL_TO_ALL,
    SCAN,
    EXSCAN,
    ALLGATHER_V,
    REDUCE_SCATTER_V,
    GATHER_V,
    SCATTER_V,
    ALL_TO_ALL_V,
    COLLECTIVES, /* numbers from here on are not collectives, and each test gives them a meaning of its own */
    MESSAGE = COLLECTIVES,      /* conformance_test.c */
    KERNEL_SHIFT = COLLECTIVES, /* tests/chaos */
    KERNEL_FORWARD,
    KERNEL_BUILTIN
};

static inline const char *kind_name(enum kind kind)
{
    static const char *const names[COLLECTIVES] = {
        "barrier",          "allreduce", "reduce",     "broadcast",   "allgather", "reduce_scatter",
        "gather",           "scatter",   "all_to_all", "scan",        "exscan",    "allgather_v",
        "reduce_scatter_v", "gather_v",  "scatter_v",  "all_to_all_v"};
    return kind < COLLECTIVES ? names[kind] : "no collective";
}

struct any_call {
    enum kind kind;
    void *send, *recv;
    uint64_t count;
    const uint64_t *counts, *offsets;  /* of the side that has all blocks */
    struct peal_blocks sent, received; /* all_to_all_v */
    enum peal_dtype dtype;
    enum peal_reduction op;
    uint32_t root;
    struct peal_request **request; /* NULL: the call blocks */
};

/* The call, or the one that starts it and gives a request. */
#define ANY_CALL(name, ...) (q ? peal_i##name(k, __VA_ARGS__, q) : peal_##name(k, __VA_ARGS__))

static inline enum peal_status any_call_uneven(struct peal_comm *k, const struct any_call *c)
{
    struct peal_request **q = c->request;
    switch (c->kind) {
    case ALLGATHER_V:
        return ANY_CALL(allgather_v, c->send, c->recv, c->counts, c->offsets, c->dtype);
    case REDUCE_SCATTER_V:
        return ANY_CALL(reduce_scatter_v, c->send, c->recv, c->counts, c->offsets, c->dtype, c->op);
    case GATHER_V:
        return ANY_CALL(gather_v, c->send, c->recv, c->counts, c->offsets, c->dtype, c->root);
    case SCATTER_V:
        return ANY_CALL(scatter_v, c->send, c->recv, c->counts, c->offsets, c->dtype, c->root);
    default:
        return ANY_CALL(all_to_all_v, c->send, &c->sent, c->recv, &c->received, c->dtype);
    }
}

static inline enum peal_status any_call_make(struct peal_comm *k, const struct any_call *c)
{
    struct peal_request **q = c->request;
    switch (c->kind) {
    case BARRIER:
        return q ? peal_ibarrier(k, q) : peal_barrier(k);
    case ALLREDUCE:
        return ANY_CALL(allreduce, c->send, c->recv, c->count, c->dtype, c->op);
    case REDUCE:
        return ANY_CALL(reduce, c->send, c->recv, c->count, c->dtype, c->op, c->root);
    case BROADCAST:
        return ANY_CALL(broadcast, c->recv, c->count, c->dtype, c->root);
    case ALLGATHER:
        return ANY_CALL(allgather, c->send, c->recv, c->count, c->dtype);
    case REDUCE_SCATTER:
        return ANY_CALL(reduce_scatter, c->send, c->recv, c->count, c->dtype, c->op);
    case GATHER:
        return ANY_CALL(gather, c->send, c->recv, c->count, c->dtype, c->root);
    case SCATTER:
        return ANY_CALL(scatter, c->send, c->recv, c->count, c->dtype, c->root);
    case ALL_TO_ALL:
        return ANY_CALL(all_to_all, c->send, c->recv, c->count, c->dtype);
    case SCAN:
        return ANY_CALL(scan, c->send, c->recv, c->count, c->dtype, c->op);
    case EXSCAN:
        return ANY_CALL(exscan, c->send, c->recv, c->count, c->dtype, c->op);
    default:
        return any_call_uneven(k, c);
    }
}

#endif
