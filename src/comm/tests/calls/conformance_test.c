/* SPDX-License-Identifier: Apache-2.0 */
/* Every public collective on real ranks, against naive loops: processes or threads, all types and
 * operations, odd counts, roots, in place, private and symmetric memory, blocking and not.
 *
 *   conformance MODE FIRST LAST [seed]     MODE: processes or threads; ranks FIRST to LAST
 */
#include "base/base.h"
#include "comm/tests/any_call.h"
#include "compute/compute.h"
#include "run/run.h"
#include "comm/tests/hosts_of.h"
#include "interp/kinds.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct rank {
    struct peal_comm *comm;
    uint32_t rank, size;
    uint64_t seed; /* the same on all ranks: drives the choice of calls */
    uint64_t own;  /* the rank's own: drives delays */
    char *send, *recv, *want;
    char *sym_send, *sym_recv;
    uint64_t calls;
    const char *forced; /* kernel */
    int failed;
};

enum { ROOM = 16 * 65600 * 16 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

enum { KINDS = MESSAGE + 1 };

struct one {
    enum kind kind;
    uint64_t count;
    enum peal_dtype dtype;
    enum peal_reduction op;
    uint32_t root;
    bool in_place, symmetric, nonblocking;
    uint64_t counts[16], offsets[17], incoming[16];
};

static const char *name_of(enum kind kind)
{
    return kind == MESSAGE ? "message" : kind_name(kind);
}

static int complain(struct rank *me, const struct one *c, const char *problem)
{
    fprintf(stderr, "rank %u of %u, call %llu: %s %s %s, count %llu, root %u%s%s%s %s: %s\n  %s\n",
            me->rank, me->size, (unsigned long long)me->calls, name_of(c->kind),
            peal_dtype_name(c->dtype), peal_reduce_name(c->op), (unsigned long long)c->count,
            c->root, peal_text_if(c->in_place, ", in place"),
            peal_text_if(c->symmetric, ", symmetric"),
            peal_text_if(c->nonblocking, ", non-blocking"), peal_text_or_empty(me->forced), problem,
            peal_comm_error(me->comm));
    me->failed = 1;
    return 1;
}

/* Block q of a vector with all blocks starts here. */
static uint64_t first_of(const struct one *c, uint32_t q)
{
    return c->kind >= ALLGATHER_V ? c->offsets[q] : q * c->count;
}

static uint64_t block_of(const struct one *c, uint32_t q)
{
    return c->kind >= ALLGATHER_V ? c->counts[q] : c->count;
}

/* Elements of this rank's input and output. */
static void extents(const struct rank *me, const struct one *c, uint64_t *in, uint64_t *out)
{
    uint64_t all = first_of(c, me->size - 1) + block_of(c, me->size - 1);
    uint64_t own = block_of(c, me->rank);
    bool root = me->rank == c->root;
    static const int from[KINDS] = {0, 1, 1, 1, 2, 3, 2, 4, 3, 1, 1, 2, 3, 2, 4, 3, 1};
    static const int to[KINDS] = {0, 1, 5, 1, 3, 2, 4, 2, 3, 1, 6, 3, 2, 4, 2, 3, 1};
    uint64_t sizes[7] = {0, c->count, own, all, root * all, root * c->count, 0};
    sizes[6] = me->rank ? c->count : 0;
    *in = sizes[from[c->kind]];
    *out = sizes[to[c->kind]];
}

static double expected(const struct rank *me, const struct one *c, uint64_t i)
{
    enum peal_contract contract = kind_contract(c->kind);
    struct origin o;
    uint32_t q = 0;
    if (c->kind == MESSAGE)
        return peal_sample_input((me->rank + me->size - 1) % me->size, i);
    (void)origin_find(contract, me->rank, me->size, c->root, 0, &o);
    if (o.y_block != ORIGIN_WHOLE && c->kind == ALL_TO_ALL_V) { /* blocks of this rank's count */
        q = (uint32_t)(i / c->counts[me->rank]);
        i %= c->counts[me->rank];
    } else if (o.y_block != ORIGIN_WHOLE) {
        while (q + 1 < me->size && i >= first_of(c, q + 1))
            q++;
        i -= first_of(c, q);
    }
    (void)origin_find(contract, me->rank, me->size, c->root, q, &o);
    if (o.x_block != ORIGIN_WHOLE)
        i += first_of(c, (uint32_t)o.x_block);
    return o.reduced ? peal_sample_reduced(c->op, o.reduced, i) : peal_sample_input(o.rank, i);
}

/* To the next rank, from the previous one. */
static enum peal_status pass_message(struct rank *me, const struct one *c, char *send, char *recv,
                                     struct peal_request **request)
{
    struct peal_comm *k = me->comm;
    uint64_t bytes = c->count * peal_dtype_size(c->dtype), got = 0;
    uint32_t from = (me->rank + me->size - 1) % me->size, sender = 0;
    enum peal_status status = peal_isend(k, send, bytes, (me->rank + 1) % me->size, 5, request);
    if (status == PEAL_OK)
        status =
            peal_recv(k, recv, bytes + 64, c->op % 2 ? PEAL_ANY_SOURCE : from, 5, &got, &sender);
    if (status == PEAL_OK && (got != bytes || sender != from))
        status = PEAL_MISMATCH;
    enum peal_status sent = peal_request_wait(*request);
    *request = NULL;
    return status == PEAL_OK ? sent : status;
}

static enum peal_status call_it(struct rank *me, struct one *c, char *send, char *recv,
                                struct peal_request **request)
{
    if (c->kind == MESSAGE)
        return pass_message(me, c, send, recv, request);
    /* Every rank sends counts[q] to q, and so receives counts[own] from every rank. */
    for (uint32_t r = 0; r < me->size; r++)
        c->incoming[r] = c->counts[me->rank];
    bool says_where = !c->nonblocking || c->kind == REDUCE_SCATTER_V;
    struct any_call call = {.kind = c->kind,
                            .send = send,
                            .recv = recv,
                            .count = c->count,
                            .counts = c->counts,
                            .offsets = says_where ? c->offsets : NULL,
                            .sent = {c->counts, NULL},
                            .received = {c->incoming, NULL},
                            .dtype = c->dtype,
                            .op = c->op,
                            .root = c->root};
    if (c->nonblocking)
        call.request = request;
    return any_call_make(me->comm, &call);
}

/* One call in four changes its collective's algorithm, so that kernels follow each other in every
 * order; the others may repeat an earlier call. */
static void force_any(struct rank *me, const struct one *c)
{
    size_t count, found = 0;
    const struct peal_algo *algos = peal_algos(&count), *all[32] = {NULL};
    uint64_t wish = next_random(&me->seed);
    const char *name = name_of(c->kind);
    size_t len = strlen(name);
    if (len > 2 && strcmp(name + len - 2, "_v") == 0)
        len -= 2;
    for (size_t i = 0; i < count; i++) {
        const char *collective = peal_collective_name(algos[i].collective);
        if (found < 32 && strlen(collective) == len && strncmp(collective, name, len) == 0)
            all[found++] = &algos[i];
    }
    if (found == 0 || wish % 4 != 0)
        return;
    const struct peal_algo *forced = wish / 4 % 8 ? all[wish / 32 % found] : NULL;
    me->forced = forced ? forced->kernel : "";
    if (peal_comm_set_algo(me->comm, peal_collective_name(all[0]->collective),
                           forced ? forced->name : NULL) != PEAL_OK)
        complain(me, c, "cannot force");
}

static int try(struct rank *me, struct one *c)
{
    uint64_t in, out, element = peal_dtype_size(c->dtype);
    me->calls++;
    force_any(me, c);
    extents(me, c, &in, &out);
    if (c->kind == ALL_TO_ALL_V)
        out = c->counts[me->rank] * me->size;
    char *send = c->symmetric ? me->sym_send : me->send + (c->count % 3) * element;
    char *recv = c->symmetric ? me->sym_recv : me->recv + (c->count % 5);
    uint64_t own = first_of(c, me->rank) * element;
    if (c->in_place) {
        recv = c->symmetric ? me->sym_recv : me->recv;
        bool gathers = c->kind == ALLGATHER || c->kind == ALLGATHER_V ||
                       ((c->kind == GATHER || c->kind == GATHER_V) && me->rank == c->root);
        bool scatters = c->kind == REDUCE_SCATTER || c->kind == REDUCE_SCATTER_V ||
                        ((c->kind == SCATTER || c->kind == SCATTER_V) && me->rank == c->root);
        bool same = c->kind == ALLREDUCE || c->kind == SCAN || c->kind == EXSCAN ||
                    (c->kind == REDUCE && me->rank == c->root);
        if (gathers)
            send = recv + own;
        else if (scatters) {
            send = recv;
            recv = recv + own;
        } else if (same)
            send = recv;
    }
    if (c->kind == BROADCAST)
        send = recv;
    memset(recv, 0x55, out * element + 8);
    for (uint64_t i = 0; i < in; i++)
        peal_sample_put(send, c->dtype, i, peal_sample_input(me->rank, i));
    if (next_random(&me->own) % 8 == 0)
        usleep((useconds_t)(next_random(&me->own) % 300));
    struct peal_request *request = NULL;
    enum peal_status status = call_it(me, c, send, recv, &request);
    if (status == PEAL_OK && request)
        status = peal_request_wait(request);
    if (status != PEAL_OK)
        return complain(me, c, peal_status_text(status));
    for (uint64_t i = 0; i < out; i++)
        peal_sample_put(me->want, c->dtype, i, expected(me, c, i));
    /* avg in 16 bits rounds once, as the expected value does: all results are exact. */
    /* Except sums of 8 bits, which some algorithms round on the way. */
    bool coarse = (c->dtype == PEAL_F8E4M3 || c->dtype == PEAL_F8E5M2) && kind_reduces(c->kind);
    for (uint64_t i = 0; i < out * element; i++) {
        char problem[96];
        snprintf(problem, sizeof problem, "wrong result, first in element %llu of %llu",
                 (unsigned long long)(i / element), (unsigned long long)out);
        bool right =
            coarse ? peal_sample_fits(recv, c->dtype, i, peal_sample_get(me->want, c->dtype, i))
                   : me->want[i] == recv[i];
        if (!right)
            return complain(me, c, problem);
    }
    return 0;
}

static const uint64_t counts[] = {0, 1, 7, 0 /* P-1 */, 0 /* P+1 */, 256, 2049, 65537};

static bool takes(const struct one *c)
{
    bool prefix = c->kind == SCAN || c->kind == EXSCAN;
    return peal_reduce_takes(c->op, c->dtype) && !(prefix && c->op == PEAL_AVG);
}

static struct one random_call(struct rank *me, bool large)
{
    struct one c = {.kind = (enum kind)(next_random(&me->seed) % KINDS)};
    uint64_t which = next_random(&me->seed) % (large ? 8 : 7);
    c.count = counts[which];
    if (which == 3)
        c.count = me->size - 1;
    else if (which == 4)
        c.count = me->size + 1;
    c.dtype = (enum peal_dtype)(next_random(&me->seed) % PEAL_DTYPES);
    do
        c.op = (enum peal_reduction)(next_random(&me->seed) % PEAL_REDUCTIONS);
    while (kind_reduces(c.kind) && !takes(&c));
    c.root = next_random(&me->seed) % 2 ? me->size - 1 : 0;
    c.in_place = next_random(&me->seed) % 2;
    c.symmetric = next_random(&me->seed) % 3 == 0;
    c.nonblocking = next_random(&me->seed) % 3 == 0;
    uint64_t offset = 0;
    for (uint32_t r = 0; r < me->size; r++) {
        c.counts[r] = c.count ? next_random(&me->seed) % (c.count + 1) : 0;
        c.offsets[r] = offset;
        offset += c.counts[r];
    }
    return c;
}

/* Every collective with every type and operation once. */
static void try_every_kind(struct rank *me)
{
    for (int kind = 0; kind < KINDS; kind++) {
        for (int dtype = 0; dtype < PEAL_DTYPES; dtype++) {
            for (int op = 0; op < PEAL_REDUCTIONS; op++) {
                struct one c = random_call(me, false);
                c.kind = (enum kind)kind;
                c.dtype = (enum peal_dtype)dtype;
                c.op = (enum peal_reduction)op;
                if (kind_reduces(c.kind) ? takes(&c) : op == 0)
                    try(me, &c);
                if (me->failed)
                    return;
            }
        }
    }
}

/* One in three repeats one of the last two calls, which takes a shorter path. */
static void try_random_calls(struct rank *me)
{
    struct one last[2] = {0};
    for (int i = 0; i < 1000; i++) {
        struct one c = random_call(me, i % 16 == 0);
        if (i >= 2 && next_random(&me->seed) % 3 == 0)
            c = last[next_random(&me->seed) % 2];
        try(me, &c);
        if (me->failed)
            return;
        last[i % 2] = c;
    }
}

static int check_rank(struct rank *me)
{
    me->send = malloc(ROOM + 4096);
    me->recv = malloc(ROOM + 4096);
    me->want = malloc(ROOM + 4096);
    if (peal_symmetric_alloc(me->comm, ROOM + 4096, (void **)&me->sym_send) != PEAL_OK ||
        peal_symmetric_alloc(me->comm, ROOM + 4096, (void **)&me->sym_recv) != PEAL_OK) {
        fprintf(stderr, "symmetric memory: %s\n", peal_comm_error(me->comm));
        me->failed = 1;
    }
    if (!me->failed)
        try_every_kind(me);
    if (!me->failed)
        try_random_calls(me);
    free(me->send);
    free(me->recv);
    free(me->want);
    return me->failed;
}

static void *run_thread(void *argument)
{
    check_rank(argument);
    return NULL;
}

static int run_threads(uint32_t size, uint64_t seed)
{
    struct peal_comm *comms[16];
    struct rank ranks[16] = {0};
    pthread_t threads[16];
    int failed = 0;
    if (peal_comm_open_threads(size, comms) != PEAL_OK) {
        fprintf(stderr, "open: %s\n", peal_comm_error(NULL));
        return 1;
    }
    for (uint32_t r = 0; r < size; r++) {
        ranks[r] = (struct rank){
            .comm = comms[r], .rank = r, .size = size, .seed = seed, .own = seed + r + 1};
        pthread_create(&threads[r], NULL, run_thread, &ranks[r]);
    }
    for (uint32_t r = 0; r < size; r++) {
        pthread_join(threads[r], NULL);
        failed |= ranks[r].failed;
    }
    for (uint32_t r = 0; r < size; r++)
        peal_comm_close(comms[r]);
    return failed;
}

static int run_processes(uint32_t size, uint64_t seed)
{
    char job[64];
    int failed = 0;
    snprintf(job, sizeof job, "conformance-%d-%u", (int)getpid(), size);
    struct peal_store *store = hosts_store_new();
    for (uint32_t r = 0; r < size; r++) {
        if (fork() != 0)
            continue;
        hosts_place(r, size);
        struct rank me = {.rank = r, .size = size, .seed = seed, .own = seed + r + 1};
        struct peal_open options = {.rank = r, .size = size, .job = job, .store = store};
        if (peal_comm_open(&options, &me.comm) != PEAL_OK) {
            fprintf(stderr, "open: %s\n", peal_comm_error(NULL));
            _exit(1);
        }
        int code = check_rank(&me);
        peal_comm_close(me.comm);
        _exit(code);
    }
    for (uint32_t r = 0; r < size; r++) {
        int status = 0;
        wait(&status);
        failed |= status != 0;
    }
    hosts_store_free(store);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 0) : (uint64_t)time(NULL) | 1;
    bool threads = strcmp(argv[1], "threads") == 0;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t size = (uint32_t)atoi(argv[2]); size <= (uint32_t)atoi(argv[3]); size++) {
        if (threads ? run_threads(size, seed) : run_processes(size, seed)) {
            printf("failed at %u ranks, seed %llu\n", size, (unsigned long long)seed);
            return 1;
        }
    }
    printf("passed\n");
    return 0;
}
