/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: any collective of peal.h by its number, blocking or not. Knows the public interface alone. */
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
    COLLECTIVES,                /* what follows is not a collective, and each test's own */
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

static inline enum peal_status any_call_uneven(struct peal_comm *k, const struct any_call *c)
{
    struct peal_request **q = c->request;
    switch (c->kind) {
    case ALLGATHER_V:
        return q ? peal_iallgather_v(k, c->send, c->recv, c->counts, c->offsets, c->dtype, q)
                 : peal_allgather_v(k, c->send, c->recv, c->counts, c->offsets, c->dtype);
    case REDUCE_SCATTER_V:
        return q ? peal_ireduce_scatter_v(k, c->send, c->recv, c->counts, c->offsets, c->dtype,
                                          c->op, q)
                 : peal_reduce_scatter_v(k, c->send, c->recv, c->counts, c->offsets, c->dtype,
                                         c->op);
    case GATHER_V:
        return q ? peal_igather_v(k, c->send, c->recv, c->counts, c->offsets, c->dtype, c->root, q)
                 : peal_gather_v(k, c->send, c->recv, c->counts, c->offsets, c->dtype, c->root);
    case SCATTER_V:
        return q ? peal_iscatter_v(k, c->send, c->recv, c->counts, c->offsets, c->dtype, c->root, q)
                 : peal_scatter_v(k, c->send, c->recv, c->counts, c->offsets, c->dtype, c->root);
    default:
        return q ? peal_iall_to_all_v(k, c->send, &c->sent, c->recv, &c->received, c->dtype, q)
                 : peal_all_to_all_v(k, c->send, &c->sent, c->recv, &c->received, c->dtype);
    }
}

static inline enum peal_status any_call_make(struct peal_comm *k, const struct any_call *c)
{
    struct peal_request **q = c->request;
    switch (c->kind) {
    case BARRIER:
        return q ? peal_ibarrier(k, q) : peal_barrier(k);
    case ALLREDUCE:
        return q ? peal_iallreduce(k, c->send, c->recv, c->count, c->dtype, c->op, q)
                 : peal_allreduce(k, c->send, c->recv, c->count, c->dtype, c->op);
    case REDUCE:
        return q ? peal_ireduce(k, c->send, c->recv, c->count, c->dtype, c->op, c->root, q)
                 : peal_reduce(k, c->send, c->recv, c->count, c->dtype, c->op, c->root);
    case BROADCAST:
        return q ? peal_ibroadcast(k, c->recv, c->count, c->dtype, c->root, q)
                 : peal_broadcast(k, c->recv, c->count, c->dtype, c->root);
    case ALLGATHER:
        return q ? peal_iallgather(k, c->send, c->recv, c->count, c->dtype, q)
                 : peal_allgather(k, c->send, c->recv, c->count, c->dtype);
    case REDUCE_SCATTER:
        return q ? peal_ireduce_scatter(k, c->send, c->recv, c->count, c->dtype, c->op, q)
                 : peal_reduce_scatter(k, c->send, c->recv, c->count, c->dtype, c->op);
    case GATHER:
        return q ? peal_igather(k, c->send, c->recv, c->count, c->dtype, c->root, q)
                 : peal_gather(k, c->send, c->recv, c->count, c->dtype, c->root);
    case SCATTER:
        return q ? peal_iscatter(k, c->send, c->recv, c->count, c->dtype, c->root, q)
                 : peal_scatter(k, c->send, c->recv, c->count, c->dtype, c->root);
    case ALL_TO_ALL:
        return q ? peal_iall_to_all(k, c->send, c->recv, c->count, c->dtype, q)
                 : peal_all_to_all(k, c->send, c->recv, c->count, c->dtype);
    case SCAN:
        return q ? peal_iscan(k, c->send, c->recv, c->count, c->dtype, c->op, q)
                 : peal_scan(k, c->send, c->recv, c->count, c->dtype, c->op);
    case EXSCAN:
        return q ? peal_iexscan(k, c->send, c->recv, c->count, c->dtype, c->op, q)
                 : peal_exscan(k, c->send, c->recv, c->count, c->dtype, c->op);
    default:
        return any_call_uneven(k, c);
    }
}

#endif
