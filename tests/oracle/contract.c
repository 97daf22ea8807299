/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of each launch, and the results that the contract (interp/origin.h) demands. */
#include "oracle/oracle.h"

#include "base/base.h"
#include "interp/origin.h"
#include "interp/scalar.h"

#include <string.h>

static int64_t param(const struct peal_plan *plan, const char *name, uint32_t rank, uint32_t i,
                     int64_t otherwise)
{
    for (uint64_t k = 0; k < plan->params.count; k++) {
        const struct peal_param *p = &peal_plan_params(plan)[k];
        if (strcmp(peal_plan_string(plan, p->name), name) == 0 && i < p->count)
            return peal_plan_values(plan)[p->first + (p->is_local ? rank * p->count : 0) + i];
    }
    return otherwise;
}

/* Where part r of n begins. */
static uint64_t part(const struct peal_plan *plan, uint64_t n, uint32_t r)
{
    uint64_t sum = 0;
    if (param(plan, "counts", 0, 0, -1) < 0)
        return r * n / plan->nranks;
    for (uint32_t i = 0; i < r; i++)
        sum += (uint64_t)param(plan, "counts", 0, i, 0);
    return sum;
}

/* The buffer that a parameter is in (its own, or in place the one that it shares), and the element
 * at which it begins there. */
static uint32_t find_buffer(const struct peal_plan *plan, uint32_t buf, uint32_t rank,
                            uint64_t *first)
{
    const struct peal_buf *b = &peal_plan_bufs(plan)[buf];
    uint32_t c = plan->contract;
    bool rooted = c == PEAL_CONTRACT_GATHER || c == PEAL_CONTRACT_SCATTER;
    bool parts = rooted || c == PEAL_CONTRACT_ALLGATHER || c == PEAL_CONTRACT_REDUCE_SCATTER;
    *first = 0;
    if (b->alias == PEAL_NONE || (rooted && rank != plan->root))
        return buf;
    if (parts)
        *first = part(plan, peal_plan_len(plan, rank, b->alias), rank);
    return b->alias;
}

/* Is there a buffer whose type holds small numbers only? */
static bool has_small(const struct peal_plan *plan)
{
    for (uint64_t b = 0; b < plan->bufs.count; b++) {
        if (peal_dtype_size(peal_plan_bufs(plan)[b].dtype) < 4)
            return true;
    }
    return false;
}

/* Whole numbers, small enough that every type holds them and the reduction of a few of them. */
static double datum(const struct oracle *o, uint32_t launch, uint32_t rank, uint32_t buf,
                    uint64_t i)
{
    uint64_t limit = has_small(o->plans[launch]) ? 9 : 100003;
    uint64_t h = peal_hash_u64(i * 64 + buf, peal_hash_u64(launch * 64 + rank, o->data));
    return (double)(o->plans[0]->reduce == PEAL_PROD ? 1 + h % 2 : h % limit);
}

static void put(struct oracle *o, uint32_t rank, uint32_t launch, uint32_t buf)
{
    const struct peal_plan *plan = o->plans[launch];
    const struct peal_buf *b = &peal_plan_bufs(plan)[buf];
    uint64_t first, size = peal_dtype_size(b->dtype);
    struct memory *m = &o->memory[find_buffer(plan, buf, rank, &first) * o->nranks + rank];
    for (uint64_t i = 0; i < peal_plan_len(plan, rank, buf); i++) {
        uint64_t at = (first + i) * size;
        double value = datum(o, launch, rank, buf, i);
        struct peal_scalar scalar = {
            .work = peal_scalar_work(PEAL_I8, b->dtype), .real = value, .integer = (int64_t)value};
        if (at + size > m->bytes)
            return;
        peal_scalar_store(m->at + at, b->dtype, scalar);
        for (uint64_t k = 0; k < size; k++)
            m->stamps[at + k].set = true;
    }
}

void oracle_fill(struct oracle *o, uint32_t rank, uint32_t launch)
{
    const struct peal_plan *plan = o->plans[launch];
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t b = 0; b < plan->bufs.count; b++) {
            const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
            bool in = buf->kind == PEAL_BUF_PARAM && (buf->dir & PEAL_DIR_IN) &&
                      (buf->alias == PEAL_NONE || b == plan->contract_in);
            if (in && (buf->alias != PEAL_NONE) == pass)
                put(o, rank, launch, b);
        }
    }
}

/* --- expected results ------------------------------------------------------------------------- */

/* One piece of y and where it comes from. */
struct want {
    struct origin from;
    uint64_t lo, hi; /* elements of y */
    uint64_t first;  /* element of x */
};

/* Where a block of x begins on a rank, or of y (all_to_all_v only). */
static uint64_t sum_of(const struct peal_plan *plan, const char *name, uint32_t rank, int blocks)
{
    uint64_t sum = 0;
    for (int k = 0; k < blocks; k++)
        sum += (uint64_t)param(plan, name, rank, (uint32_t)k, 0);
    return sum;
}

/* Piece i of y on a rank; false: there is none. */
static bool find_want(const struct peal_plan *plan, uint32_t rank, uint32_t i, struct want *w)
{
    struct origin *o = &w->from;
    if (!origin_find(plan->contract, rank, plan->nranks, plan->root, i, o))
        return false;
    uint32_t source = plan->root < plan->nranks ? plan->root : rank;
    uint64_t x = peal_plan_len(plan, source, plan->contract_in);
    uint64_t y = peal_plan_len(plan, rank, plan->contract_out);
    bool one = plan->contract_in == plan->contract_out;
    w->lo = w->first = 0;
    w->hi = x;
    if (plan->contract == PEAL_CONTRACT_ALL_TO_ALL_V) {
        w->first = sum_of(plan, "sends", o->rank, o->x_block);
        w->lo = sum_of(plan, "recvs", rank, o->y_block);
        w->hi = sum_of(plan, "recvs", rank, o->y_block + 1);
    } else if (o->x_block != ORIGIN_WHOLE) {
        w->first = part(plan, x, (uint32_t)o->x_block);
        uint64_t len = part(plan, x, (uint32_t)o->x_block + 1) - w->first;
        if (o->y_block != ORIGIN_WHOLE)
            w->lo = (uint64_t)o->y_block * len;
        else if (one)
            w->lo = w->first;
        w->hi = w->lo + len;
    } else if (o->y_block != ORIGIN_WHOLE) {
        w->lo = part(plan, y, i);
        w->hi = part(plan, y, i + 1);
        w->first = one ? w->lo : 0;
    }
    return true;
}

static double fold(uint32_t reduce, double a, double b)
{
    switch (reduce) {
    case PEAL_SUM:
    case PEAL_AVG:
        return a + b;
    case PEAL_PROD:
        return a * b;
    case PEAL_MAX:
        return a > b ? a : b;
    case PEAL_MIN:
        return a < b ? a : b;
    case PEAL_AND:
        return (double)((int64_t)a & (int64_t)b);
    case PEAL_OR:
        return (double)((int64_t)a | (int64_t)b);
    default:
        return (double)((int64_t)a ^ (int64_t)b);
    }
}

static double expected(const struct oracle *o, uint32_t launch, const struct want *w, uint64_t at)
{
    const struct peal_plan *plan = o->plans[launch];
    uint64_t i = w->first + at;
    if (!w->from.reduced)
        return datum(o, launch, w->from.rank, plan->contract_in, i);
    double value = datum(o, launch, 0, plan->contract_in, i);
    for (uint32_t r = 1; r < w->from.reduced; r++)
        value = fold(plan->reduce, value, datum(o, launch, r, plan->contract_in, i));
    return value;
}

static void compare(struct oracle *o, uint32_t rank, uint32_t launch, const struct want *w)
{
    const struct peal_plan *plan = o->plans[launch];
    enum peal_dtype dtype = peal_plan_bufs(plan)[plan->contract_out].dtype;
    uint64_t first, size = peal_dtype_size(dtype);
    struct memory *m =
        &o->memory[find_buffer(plan, plan->contract_out, rank, &first) * o->nranks + rank];
    for (uint64_t i = w->lo; i < w->hi; i++) {
        uint64_t at = (first + i) * size;
        enum peal_dtype work = peal_scalar_work(PEAL_I8, dtype);
        double want = expected(o, launch, w, i - w->lo), have = 0;
        bool set = at + size <= m->bytes && m->stamps[at].set;
        if (set) {
            struct peal_scalar value = peal_scalar_load(m->at + at, dtype, work);
            have = work == PEAL_I64 ? (double)value.integer : value.real;
        }
        unsigned char a[8] = {0}, b[8] = {0};
        peal_scalar_store(a, dtype, (struct peal_scalar){work, have, (int64_t)have});
        struct peal_scalar right = {work, want, (int64_t)want};
        if (plan->reduce == PEAL_AVG && w->from.reduced)
            right = peal_scalar_divide(right, plan->nranks, dtype);
        peal_scalar_store(b, dtype, right);
        if (!set || memcmp(a, b, size) != 0)
            oracle_report(o, ORACLE_RESULT, "launch %u rank %u: y[%llu] is %g%s and should be %g",
                          launch, rank, (unsigned long long)i, have, set ? "" : " (not there)",
                          want);
    }
}

static void hash_outputs(struct oracle *o, uint32_t rank, uint32_t launch)
{
    const struct peal_plan *plan = o->plans[launch];
    uint64_t sum = launch * 100 + rank;
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        const struct memory *m = &o->memory[b * o->nranks + rank];
        uint64_t bytes = peal_plan_len(plan, rank, b) * peal_dtype_size(buf->dtype);
        if (buf->kind != PEAL_BUF_PARAM || !(buf->dir & PEAL_DIR_OUT))
            continue;
        for (uint64_t i = 0; i < bytes; i++)
            sum = peal_hash_u64(m->stamps[i].set ? m->at[i] : 1000, sum);
    }
    o->outputs += sum;
}

void oracle_compare(struct oracle *o, uint32_t rank, uint32_t launch)
{
    const struct peal_plan *plan = o->plans[launch];
    struct want w;
    hash_outputs(o, rank, launch);
    if (plan->contract_in == PEAL_NONE || plan->contract_out == PEAL_NONE)
        return;
    for (uint32_t i = 0; find_want(plan, rank, i, &w); i++)
        compare(o, rank, launch, &w);
    bool gathers = plan->contract == PEAL_CONTRACT_ALLGATHER ||
                   (plan->contract == PEAL_CONTRACT_GATHER && rank == plan->root);
    uint64_t len = peal_plan_len(plan, rank, plan->contract_out);
    if (gathers && part(plan, len, plan->nranks) != len)
        oracle_report(o, ORACLE_RESULT, "launch %u rank %u: y is not as long as all parts", launch,
                      rank);
}
