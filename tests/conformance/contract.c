/* SPDX-License-Identifier: Apache-2.0 */
/* The contract's x and y of a rank are stretches of parameter buffers. Usually each has a buffer of
 * its own; in place, one of them is a part of the other, or both are the same. The rest of this file
 * works on x and y only: it fills x with numbers, and computes every element of y from the x of the
 * rank that origin.h names, or from all ranks' x, reduced in rank order. An algorithm may reduce in
 * another order; so data is either such that the order does not matter, or the comparison allows for
 * rounding. */
#include "conformance/contract.h"

#include "base/base.h"
#include "interp/origin.h"
#include "interp/scalar.h"

#include <math.h>
#include <string.h>

/* Elements of a parameter buffer. */
struct span {
    uint32_t buf;
    uint64_t first, len;
};

struct setting {
    struct peal_interp *in;
    size_t launch;
    const struct peal_plan *plan;
    const struct contract_sizes *sizes;
    size_t size; /* of an element */
};

static uint64_t part_first(const struct setting *s, uint64_t part)
{
    if (!s->sizes->counts)
        return part * s->sizes->n / s->plan->nranks;
    uint64_t first = 0;
    for (uint64_t r = 0; r < part; r++)
        first += (uint64_t)s->sizes->counts[r];
    return first;
}

static uint64_t part_len(const struct setting *s, uint64_t part)
{
    return part_first(s, part + 1) - part_first(s, part);
}

/* Elements that all_to_all_v moves from one rank to another. */
static uint64_t block_len(const struct setting *s, uint32_t from, uint32_t to)
{
    return (uint64_t)s->sizes->sends[(uint64_t)from * s->plan->nranks + to];
}

static bool is_part_in(uint32_t contract)
{
    return contract == PEAL_CONTRACT_ALLGATHER || contract == PEAL_CONTRACT_GATHER;
}

static bool is_part_out(uint32_t contract)
{
    return contract == PEAL_CONTRACT_REDUCE_SCATTER || contract == PEAL_CONTRACT_SCATTER;
}

static uint64_t whole_len(const struct setting *s, uint32_t rank, bool out)
{
    if (s->plan->contract == PEAL_CONTRACT_ALL_TO_ALL && out)
        return s->plan->nranks * part_len(s, rank);
    if (s->plan->contract != PEAL_CONTRACT_ALL_TO_ALL_V)
        return s->sizes->n;
    uint64_t len = 0;
    for (uint32_t q = 0; q < s->plan->nranks; q++)
        len += out ? block_len(s, q, rank) : block_len(s, rank, q);
    return len;
}

static struct span span_of(const struct setting *s, uint32_t rank, bool out)
{
    const struct peal_plan *plan = s->plan;
    uint32_t buf = out ? plan->contract_out : plan->contract_in;
    uint32_t alias = peal_plan_bufs(plan)[buf].alias;
    bool root_only =
        plan->contract == PEAL_CONTRACT_GATHER || plan->contract == PEAL_CONTRACT_SCATTER;
    if (root_only && rank != plan->root)
        alias = PEAL_NONE;
    bool inside = alias != PEAL_NONE || plan->contract_in == plan->contract_out;
    bool is_part = out ? is_part_out(plan->contract) : is_part_in(plan->contract);
    struct span span = {.buf = alias != PEAL_NONE ? alias : buf};
    span.first = is_part && inside ? part_first(s, rank) : 0;
    span.len = is_part ? part_len(s, rank) : whole_len(s, rank, out);
    return span;
}

static unsigned char *x_of(const struct setting *s, uint32_t rank)
{
    struct span span = span_of(s, rank, false);
    return (unsigned char *)peal_interp_input(s->in, s->launch, rank, span.buf) +
           span.first * s->size;
}

static const unsigned char *y_of(const struct setting *s, uint32_t rank)
{
    struct span span = span_of(s, rank, true);
    return (const unsigned char *)peal_interp_output(s->in, s->launch, rank, span.buf) +
           span.first * s->size;
}

static struct setting setting_of(struct peal_interp *in, size_t launch,
                                 const struct peal_plan *plan, const struct contract_sizes *sizes)
{
    return (struct setting){in, launch, plan, sizes, peal_dtype_size((enum peal_dtype)plan->dtype)};
}

/* Small numbers whose sums, and powers of two whose products, every type holds exactly; now and then
 * NaN, infinity and zeros of both signs. */
static double exact_value(uint64_t random, uint32_t reduce, uint32_t rank)
{
    static const double factors[] = {1, -1, 2, 0.5};
    if (random % 61 == 0)
        return NAN;
    if (reduce == PEAL_PROD)
        return factors[rank % 4 ? random % 2 : random % 4];
    if (random % 53 == 0)
        return INFINITY;
    if (random % 5 == 0)
        return random % 2 ? 0.0 : -0.0;
    if (reduce == PEAL_MAX || reduce == PEAL_MIN)
        return (double)(random % 64) - 32;
    return (double)(random % 8);
}

void contract_fill(struct peal_interp *in, size_t launch, const struct peal_plan *plan,
                   const struct contract_sizes *sizes, enum contract_data data, uint64_t seed)
{
    if (plan->contract_in == PEAL_NONE)
        return;
    struct setting s = setting_of(in, launch, plan, sizes);
    enum peal_dtype dtype = (enum peal_dtype)plan->dtype;
    /* Any bits do for data that is only moved, and for integers, which wrap. */
    bool bits = plan->reduce == PEAL_NONE || !peal_dtype_is_float(dtype);
    for (uint32_t r = 0; r < plan->nranks; r++) {
        uint64_t len = span_of(&s, r, false).len;
        unsigned char *x = x_of(&s, r);
        for (uint64_t i = 0; i < len; i++) {
            uint64_t random = peal_hash_u64(i, peal_hash_u64(r + 1, seed * 64 + launch));
            double value = exact_value(random >> 8, plan->reduce, r);
            if (data == DATA_ROUGH)
                value = (double)(random >> 11) * 0x1p-53 + 0.5;
            if (bits)
                memcpy(x + i * s.size, &random, s.size);
            else
                peal_scalar_store(x + i * s.size, dtype,
                                  (struct peal_scalar){.work = PEAL_F64, .real = value});
        }
    }
}

static int64_t combine_integers(uint32_t reduce, int64_t a, int64_t b)
{
    switch (reduce) {
    case PEAL_SUM:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case PEAL_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case PEAL_MAX:
        return a > b ? a : b;
    case PEAL_MIN:
        return a < b ? a : b;
    case PEAL_AND:
        return a & b;
    case PEAL_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static double combine_reals(uint32_t reduce, double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    if (reduce == PEAL_SUM || reduce == PEAL_AVG)
        return a + b;
    if (reduce == PEAL_PROD)
        return a * b;
    bool a_is_less = a < b || (a == b && signbit(a));
    return a_is_less == (reduce == PEAL_MIN) ? a : b;
}

/* Element i of the reduction in rank order, computed in the type that the rules prescribe. */
static void reduce_element(const struct setting *s, uint32_t ranks, uint64_t i, unsigned char *out)
{
    enum peal_dtype dtype = (enum peal_dtype)s->plan->dtype;
    enum peal_dtype work = peal_scalar_work(PEAL_I8, dtype);
    struct peal_scalar acc = peal_scalar_load(x_of(s, 0) + i * s->size, dtype, work);
    for (uint32_t r = 1; r < ranks; r++) {
        struct peal_scalar v = peal_scalar_load(x_of(s, r) + i * s->size, dtype, work);
        bool above = (uint64_t)v.integer > (uint64_t)acc.integer;
        if (work == PEAL_U64 && (s->plan->reduce == PEAL_MAX || s->plan->reduce == PEAL_MIN))
            acc.integer = above == (s->plan->reduce == PEAL_MAX) ? v.integer : acc.integer;
        else
            acc.integer = combine_integers(s->plan->reduce, acc.integer, v.integer);
        acc.real = combine_reals(s->plan->reduce, acc.real, v.real);
        if (work == PEAL_F32)
            acc.real = (float)acc.real;
    }
    if (s->plan->reduce == PEAL_AVG)
        acc = peal_scalar_divide(acc, s->plan->nranks, dtype);
    /* A single value is not combined, and keeps its bits. */
    if (ranks == 1)
        memcpy(out, x_of(s, 0) + i * s->size, s->size);
    else
        peal_scalar_store(out, dtype, acc);
}

/* Where piece i of a rank's y begins; behind the last one, where y ends. */
static uint64_t piece_first(const struct setting *s, uint32_t rank, uint32_t i)
{
    if (is_part_in(s->plan->contract))
        return part_first(s, i);
    if (s->plan->contract == PEAL_CONTRACT_ALL_TO_ALL)
        return i * part_len(s, rank);
    uint64_t first = 0;
    for (uint32_t from = 0; from < i; from++)
        first += block_len(s, from, rank);
    return first;
}

/* Element i of a rank's y by the contract. */
static void expected(const struct setting *s, uint32_t rank, uint64_t i, unsigned char *out)
{
    uint32_t nranks = s->plan->nranks, piece = 0;
    struct origin o;
    uint64_t at = i;
    (void)origin_find(s->plan->contract, rank, nranks, s->plan->root, 0, &o);
    if (o.y_block != ORIGIN_WHOLE) {
        while (piece + 1 < nranks && i >= piece_first(s, rank, piece + 1))
            piece++;
        (void)origin_find(s->plan->contract, rank, nranks, s->plan->root, piece, &o);
        at -= piece_first(s, rank, piece);
    }
    if (s->plan->contract == PEAL_CONTRACT_ALL_TO_ALL_V) {
        for (uint32_t to = 0; to < rank; to++)
            at += block_len(s, o.rank, to);
    } else if (o.x_block != ORIGIN_WHOLE) {
        at += part_first(s, (uint64_t)o.x_block);
    }
    if (o.reduced)
        reduce_element(s, o.reduced, at, out);
    else
        memcpy(out, x_of(s, o.rank) + at * s->size, s->size);
}

/* Is the difference small enough for rounding in any order? */
static bool is_close(const struct setting *s, const unsigned char *got, const unsigned char *want)
{
    static const double steps[PEAL_DTYPES] = {
        [PEAL_F16] = 0x1p-10, [PEAL_BF16] = 0x1p-7, [PEAL_F32] = 0x1p-23, [PEAL_F64] = 0x1p-52};
    enum peal_dtype dtype = (enum peal_dtype)s->plan->dtype;
    double a = peal_scalar_load(got, dtype, PEAL_F64).real;
    double b = peal_scalar_load(want, dtype, PEAL_F64).real;
    return fabs(a - b) <= 2 * s->plan->nranks * steps[dtype] * fabs(b);
}

static double number_of(enum peal_dtype work, struct peal_scalar value)
{
    return work == PEAL_I64 || work == PEAL_U64 ? (double)value.integer : value.real;
}

static bool rank_holds(const struct setting *s, uint32_t r, bool exact, bool same,
                       struct peal_text *why)
{
    uint64_t len = span_of(s, r, true).len;
    const unsigned char *y = y_of(s, r);
    for (uint64_t i = 0; i < len; i++) {
        unsigned char want[8];
        const unsigned char *got = y + i * s->size;
        expected(s, r, i, want);
        const char *wrong = NULL;
        if (exact ? memcmp(got, want, s->size) != 0 : !is_close(s, got, want))
            wrong = "is not what the contract says";
        else if (same && memcmp(got, y_of(s, 0) + i * s->size, s->size) != 0)
            wrong = "has other bits than on rank 0";
        if (!wrong)
            continue;
        enum peal_dtype dtype = (enum peal_dtype)s->plan->dtype;
        enum peal_dtype work = peal_scalar_work(PEAL_I8, dtype);
        struct peal_scalar g = peal_scalar_load(got, dtype, work);
        struct peal_scalar w = peal_scalar_load(want, dtype, work);
        peal_text_printf(why, "launch %zu, rank %u: y[%llu] %s: got %.17g, want %.17g", s->launch,
                         r, (unsigned long long)i, wrong, number_of(work, g), number_of(work, w));
        return false;
    }
    return true;
}

bool contract_holds(struct peal_interp *in, size_t launch, const struct peal_plan *plan,
                    const struct contract_sizes *sizes, enum contract_data data,
                    enum contract_order order, struct peal_text *why)
{
    if (plan->contract == PEAL_CONTRACT_BARRIER && peal_interp_entered(in, launch) < plan->nranks) {
        peal_text_printf(why, "launch %zu: a rank left when only %u of %u had entered", launch,
                         peal_interp_entered(in, launch), plan->nranks);
        return false;
    }
    if (plan->contract_out == PEAL_NONE)
        return true;
    struct setting s = setting_of(in, launch, plan, sizes);
    bool exact = data == DATA_EXACT || order == ORDER_RANKS;
    bool same = order == ORDER_SAME_BITS && plan->contract == PEAL_CONTRACT_ALLREDUCE;
    for (uint32_t r = 0; r < plan->nranks; r++) {
        struct origin o;
        if (origin_find(plan->contract, r, plan->nranks, plan->root, 0, &o) &&
            !rank_holds(&s, r, exact, same, why))
            return false;
    }
    return true;
}
