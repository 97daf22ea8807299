/* SPDX-License-Identifier: Apache-2.0 */
/* A call on one rank: buffers between guards, the call, then a comparison of every byte of buffers and
 * guards. */
#include "chaos.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 128 };

/* ---- regions ---- */

void region_make(struct region *region, uint64_t bytes, uint64_t start, char *at)
{
    region->bytes = bytes + start + GUARD;
    region->start = start;
    region->borrowed = at != NULL;
    region->memory = at ? at : malloc(region->bytes);
    region->wanted = malloc(region->bytes);
    if (!region->memory || !region->wanted)
        abort();
}

void region_paint(struct region *region, uint64_t key)
{
    if (!region->memory)
        return;
    for (uint64_t i = 0; i < region->bytes; i++)
        region->memory[i] = (char)(0xa5 ^ (key + i * 7));
}

void region_free(struct region *region)
{
    if (!region->borrowed)
        free(region->memory);
    free(region->wanted);
    *region = (struct region){0};
}

bool region_holds(const struct region *region, uint64_t *where)
{
    if (!region->memory || memcmp(region->memory, region->wanted, region->bytes) == 0)
        return true;
    for (*where = 0; region->memory[*where] == region->wanted[*where]; (*where)++)
        ;
    return false;
}

void flight_free(struct flight *flight)
{
    region_free(&flight->send);
    region_free(&flight->recv);
    free(flight);
}

/* ---- buffers ---- */

/* Are input and output one buffer on this rank? */
static bool is_here(struct rank *me, const struct spec *spec, uint32_t rank)
{
    switch (spec->kind) {
    case BROADCAST:
        return true;
    case ALLREDUCE:
    case ALLGATHER:
    case REDUCE_SCATTER:
    case SCAN:
        return spec->in_place;
    case ALLGATHER_V:
    case REDUCE_SCATTER_V:
        return spec->in_place && below(&me->own, 2);
    case REDUCE:
    case GATHER:
    case SCATTER:
    case GATHER_V:
    case SCATTER_V:
        return spec->in_place && rank == spec->root && below(&me->own, 2);
    default:
        return false;
    }
}

/* A piece of symmetric memory, at the same place on every rank; NULL: the call uses none, or none is
 * left. */
static char *take_symmetric(struct rank *me, uint32_t group, enum place place, uint64_t bytes)
{
    struct group *g = &me->groups[group];
    uint64_t need = (bytes + 2 * GUARD + 64 + 63) / 64 * 64;
    if (place == PRIVATE || g->used + need > g->symmetric)
        return NULL;
    g->used += need;
    return me->symmetric[group] + g->used - need;
}

/* Where data begins, aligned or not. */
static uint64_t draw_start(uint64_t *state, size_t element)
{
    switch (below(state, 3)) {
    case 0:
        return GUARD;
    case 1:
        return GUARD - element * below(state, 8);
    default:
        return GUARD - below(state, 64);
    }
}

static void put(char *at, size_t element, uint64_t bits)
{
    memcpy(at, &bits, element);
}

/* Writes guards and inputs, and expects them unchanged so far. */
static void fill(struct flight *f, uint32_t rank)
{
    const struct spec *spec = &f->spec;
    size_t element = value_size(spec->dtype);
    uint64_t sends = spec_sends(spec, rank);
    region_paint(&f->send, spec->key);
    region_paint(&f->recv, spec->key + 1);
    if (spec->kind != BROADCAST || rank == spec->root) {
        for (uint64_t i = 0; i < sends; i++)
            put(f->input + i * element, element, spec_value(spec, rank, i));
    }
    if (f->send.memory)
        memcpy(f->send.wanted, f->send.memory, f->send.bytes);
    if (f->recv.memory)
        memcpy(f->recv.wanted, f->recv.memory, f->recv.bytes);
}

static void make_buffers(struct rank *me, struct flight *f, uint32_t rank, char **send, char **recv)
{
    const struct spec *spec = &f->spec;
    size_t element = value_size(spec->dtype);
    uint64_t sends = spec_sends(spec, rank), takes = spec_takes(spec, rank), own = 0;
    uint64_t common = mix(spec->key, 3); /* symmetric memory is used alike on all ranks */
    char *sym_send = take_symmetric(me, f->group, spec->send, spec_max_bytes(spec));
    char *sym_recv = take_symmetric(me, f->group, spec->recv, spec_max_bytes(spec));
    bool here = is_here(me, spec, rank), scatters = spec_scatters(spec);
    f->has_offsets = spec_offsets(spec, rank, false, f->offsets);
    f->has_in_offsets = spec_offsets(spec, rank, true, f->in_offsets);
    for (uint32_t r = 0; r < spec->size; r++) {
        f->counts[r] = spec_block(spec, rank, r);
        f->in_counts[r] = spec_block(spec, r, rank);
    }
    uint64_t send_start = draw_start(sym_send ? &common : &me->own, element);
    uint64_t recv_start = draw_start(sym_recv ? &common : &me->own, element);
    *send = *recv = NULL;
    if (!here || scatters) {
        region_make(&f->send, sends * element, send_start, sym_send);
        *send = f->send.memory + f->send.start;
    }
    if (!here || !scatters) {
        region_make(&f->recv, takes * element, recv_start, sym_recv);
        *recv = f->recv.memory + f->recv.start;
    }
    if (here && scatters)
        *recv = *send + f->offsets[rank] * element;
    else if (here) {
        bool gathers = spec->kind != ALLREDUCE && spec->kind != REDUCE && spec->kind != BROADCAST &&
                       spec->kind != SCAN;
        own = gathers ? f->in_offsets[rank] : 0;
        *send = *recv + own * element;
    }
    f->input = *send;
    fill(f, rank);
    if (here && (spec->kind == ALLGATHER || spec->kind == ALLGATHER_V) && below(&me->own, 2))
        *send = NULL;
    if (takes == 0 && below(&me->own, 2))
        *recv = NULL;
    if (sends == 0 && below(&me->own, 2) && !here)
        *send = NULL;
}

/* ---- the call ---- */

static enum peal_status run_kernel(struct peal_comm *comm, const struct spec *spec, char *send,
                                   char *recv)
{
    static const char shift[] = "kernel shift(in x: T[n], out y: T[n]) {\n"
                                "    send x to (rank + 1) % nranks\n"
                                "    y = recv from (rank - 1) % nranks\n"
                                "}\n";
    static const char forward[] = "kernel forward(in x: T[n], out y: T[n], op: reduce) {\n"
                                  "    let acc = x\n"
                                  "    let cur = x\n"
                                  "    for s in 1 .. nranks {\n"
                                  "        send cur to (rank + 1) % nranks\n"
                                  "        cur = recv from (rank - 1) % nranks\n"
                                  "        acc = op(acc, cur)\n"
                                  "    }\n"
                                  "    y = final(op, acc)\n"
                                  "}\n";
    uint64_t bytes = spec->count * value_size(spec->dtype);
    struct peal_arg args[3] = {{.kind = PEAL_ARG_BUFFER, .data = send, .bytes = bytes},
                               {.kind = PEAL_ARG_BUFFER, .data = recv, .bytes = bytes},
                               {.kind = PEAL_ARG_REDUCE, .reduce = spec->op}};
    struct peal_user_kernel *kernel = NULL;
    const char *text = spec->kind == KERNEL_SHIFT ? shift : forward, *name = NULL;
    if (spec->kind == KERNEL_BUILTIN) {
        text = NULL;
        name = "allreduce_ring";
    }
    enum peal_status status = peal_user_kernel_load(comm, text, name, &kernel);
    if (status == PEAL_OK)
        status = peal_user_kernel_launch(kernel, spec->dtype, args,
                                         spec->kind == KERNEL_SHIFT ? 2 : 3, NULL, 0);
    peal_user_kernel_free(kernel);
    return status;
}

static enum peal_status issue(struct peal_comm *k, struct flight *f, char *send, char *recv)
{
    const struct spec *s = &f->spec;
    const uint64_t *out = f->has_offsets ? f->offsets : NULL;
    const uint64_t *in = f->has_in_offsets ? f->in_offsets : NULL;
    bool gathers = s->kind == ALLGATHER_V || s->kind == GATHER_V;
    if (s->kind >= COLLECTIVES)
        return run_kernel(k, s, send, recv);
    struct any_call call = {.kind = s->kind,
                            .send = send,
                            .recv = recv,
                            .count = s->count,
                            .counts = s->counts,
                            .offsets = gathers ? in : out,
                            .sent = {f->counts, out},
                            .received = {f->in_counts, in},
                            .dtype = s->dtype,
                            .op = s->op,
                            .root = s->root};
    if (s->nonblocking)
        call.request = &f->request;
    return any_call_make(k, &call);
}

/* ---- afterwards ---- */

/* Element `at` of a reduction over `ranks` ranks; the input of rank q begins at starts[q]. */
static uint64_t reduce_of(const struct spec *s, uint32_t ranks, const uint64_t *starts, uint64_t at,
                          double *slack)
{
    uint64_t values[MAX_RANKS];
    for (uint32_t q = 0; q < ranks; q++)
        values[q] = spec_value(s, q, starts[q] + at);
    uint64_t bits = value_reduce(s->dtype, s->op, values, ranks, slack);
    if (s->flavour == EXACT && s->op != PEAL_AVG && !value_is_coarse(s->dtype))
        *slack = 0;
    return bits;
}

/* max and min may return 0 or -0 for operands 0 and -0: the order of operands decides, and each
 * algorithm has its own. */
static bool are_zeros(enum peal_dtype dtype, uint64_t a, uint64_t b)
{
    return value_is_float(dtype) && value_read(dtype, a) == 0 && value_read(dtype, b) == 0;
}

/* Expects reduced elements. One that may be rounded is compared here; if it is near enough, it becomes
 * the expected one. */
static void want_reduced(struct rank *me, struct flight *f, const struct origin *o, uint32_t rank,
                         struct region *to, uint64_t first)
{
    const struct spec *s = &f->spec;
    size_t element = value_size(s->dtype);
    uint64_t takes = spec_takes(s, rank), starts[MAX_RANKS] = {0}, offsets[MAX_RANKS];
    for (uint32_t q = 0; q < o->reduced; q++) {
        if (o->x_block == ORIGIN_WHOLE)
            break;
        (void)spec_offsets(s, q, false, offsets);
        starts[q] = offsets[o->x_block];
    }
    for (uint64_t i = 0; i < takes; i++) {
        double slack;
        uint64_t at = to->start + (first + i) * element, got = 0;
        uint64_t wanted = reduce_of(s, o->reduced, starts, i, &slack);
        memcpy(&got, to->memory + at, element);
        double difference = fabs(value_read(s->dtype, got) - value_read(s->dtype, wanted));
        if (slack > 0 && !(difference <= slack)) {
            rank_complain(me, "element %llu is %g, not %g (slack %g)", (unsigned long long)i,
                          value_read(s->dtype, got), value_read(s->dtype, wanted), slack);
            return;
        }
        bool free_to_differ = slack > 0 || are_zeros(s->dtype, got, wanted);
        put(to->wanted + at, element, free_to_differ ? got : wanted);
    }
}

static void want_block(const struct flight *f, struct region *to, uint64_t at, uint32_t from,
                       uint64_t first, uint64_t count)
{
    size_t element = value_size(f->spec.dtype);
    for (uint64_t i = 0; i < count; i++)
        put(to->wanted + to->start + (at + i) * element, element,
            spec_value(&f->spec, from, first + i));
}

/* Piece i of this rank's result; false: there is none. */
static bool find_origin(const struct spec *s, uint32_t rank, uint32_t i, struct origin *out)
{
    *out = (struct origin){ORIGIN_WHOLE, ORIGIN_WHOLE, (rank + s->size - 1) % s->size, 0};
    if (s->kind < COLLECTIVES)
        return origin_find(kind_contract(s->kind), rank, s->size, s->root, i, out);
    if (s->kind != KERNEL_SHIFT)
        out->reduced = s->size;
    return i == 0;
}

static void want_moved(struct flight *f, const struct origin *o, uint32_t rank, struct region *to,
                       uint64_t own)
{
    const struct spec *s = &f->spec;
    uint64_t offsets[MAX_RANKS], first = 0, count = s->count;
    if (o->x_block != ORIGIN_WHOLE) {
        (void)spec_offsets(s, o->rank, false, offsets);
        first = offsets[o->x_block];
        count = spec_block(s, o->rank, rank);
    }
    if (o->y_block != ORIGIN_WHOLE) {
        own = f->in_offsets[o->y_block];
        count = f->in_counts[o->y_block];
    }
    want_block(f, to, own, o->rank, first, count);
}

static void want_all(struct rank *me, struct flight *f, uint32_t rank)
{
    const struct spec *s = &f->spec;
    struct origin o;
    bool here = spec_scatters(s) && !f->recv.memory;
    struct region *to = here ? &f->send : &f->recv;
    uint64_t own = here ? f->offsets[rank] : 0;
    for (uint32_t i = 0; find_origin(s, rank, i, &o); i++) {
        if (o.reduced)
            want_reduced(me, f, &o, rank, to, own);
        else
            want_moved(f, &o, rank, to, own);
    }
}

/* An allreduce gives the same bits on all ranks. */
static void compare_bits(struct rank *me, const struct flight *f)
{
    uint64_t bytes = f->spec.count * value_size(f->spec.dtype), hash = 1;
    for (uint64_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)f->recv.memory[f->recv.start + i]) * UINT64_C(0x100000001b3);
    uint64_t key = mix(f->spec.key, f->spec.salt), word = (key >> 32 << 32) | (hash >> 32) | 1;
    for (uint32_t i = 0; i < 64; i++) {
        _Atomic uint64_t *place = &me->board->words[(key + i) % WORDS];
        uint64_t found = 0;
        if (atomic_compare_exchange_strong(place, &found, word) || found == word)
            return;
        if (found >> 32 == key >> 32) {
            rank_complain(me, "other bits than on another rank");
            return;
        }
    }
}

void flight_check(struct rank *me, struct flight *f, const uint64_t *got, const uint32_t *sender)
{
    uint32_t rank = rank_in(me, f->group);
    const struct spec *s = &f->spec;
    uint64_t where;
    atomic_fetch_add(f->is_message ? &tally->messages : &tally->calls, 1);
    if (f->is_message && f->is_receive && got && (*got != f->length || *sender != f->from))
        rank_complain(me, "%llu bytes of rank %u, not %llu of rank %u", (unsigned long long)*got,
                      *sender, (unsigned long long)f->length, f->from);
    if (!f->is_message) {
        want_all(me, f, rank);
        if (s->kind == ALLREDUCE && !me->wrong)
            compare_bits(me, f);
    }
    if (!me->wrong && !region_holds(&f->send, &where))
        rank_complain(me, "the input has changed at byte %lld of %llu",
                      (long long)(where - f->send.start), (unsigned long long)f->send.bytes);
    if (!me->wrong && !region_holds(&f->recv, &where))
        rank_complain(me, "the output is wrong at byte %lld of %llu",
                      (long long)(where - f->recv.start), (unsigned long long)f->recv.bytes);
}

/* Makes the call again, with the same buffers and other values. */
static void repeat(struct rank *me, struct flight *f, char *send, char *recv)
{
    struct peal_comm *comm = me->comms[f->group];
    for (uint32_t i = 0; i < f->spec.repeats; i++) {
        f->spec.salt++;
        fill(f, rank_in(me, f->group));
        if (!rank_goes_on(me, issue(comm, f, send, recv), comm))
            return;
        flight_check(me, f, NULL, NULL);
        if (me->wrong)
            return;
    }
}

void call_make(struct rank *me, uint32_t group, const struct spec *spec)
{
    uint32_t rank = rank_in(me, group);
    struct flight *f = calloc(1, sizeof *f);
    char *send, *recv;
    if (!f)
        abort();
    f->spec = *spec;
    f->group = group;
    uint64_t used = me->groups[group].used;
    bool mistaken = me->mistaken;
    if (mistaken)
        spec_spoil(&f->spec, mix(spec->key, 9));
    rank_begins(me, "group %u (rank %u of %u): %s%s %s, op %d, count %llu, root %u%s%s%s%s",
                me->groups[group].number, rank, spec->size, text_if(f->spec.nonblocking, "i"),
                spec_name(&f->spec), value_name(f->spec.dtype), (int)f->spec.op,
                (unsigned long long)f->spec.count, f->spec.root,
                text_if(f->spec.in_place, ", in place"),
                text_if(spec->send == SYMMETRIC, ", sym send"),
                text_if(spec->recv == SYMMETRIC, ", sym recv"), text_if(mistaken, ", MISTAKEN"));
    make_buffers(me, f, rank, &send, &recv);
    enum peal_status status = issue(me->comms[group], f, send, recv);
    me->mistaken = false;
    /* The result of a mistaken call is undefined: it is not compared. */
    bool unchecked = mistaken && status == PEAL_OK && !f->request;
    if (unchecked || !rank_goes_on(me, status, me->comms[group])) {
        flight_free(f);
        return;
    }
    if (f->request) {
        if (mistaken)
            f->is_message = true, f->recv.bytes = f->send.bytes = 0;
        flights_add(me, f);
        return;
    }
    flight_check(me, f, NULL, NULL);
    if (!me->wrong && spec->kind < KERNEL_SHIFT)
        repeat(me, f, send, recv);
    me->groups[group].used = used;
    flight_free(f);
}
