/* SPDX-License-Identifier: Apache-2.0 */
/* Is a value that has not the form of the contract's wrong, or right by an identity that was not
 * assumed?
 *
 * x + 0, (x + y) - y or exp(log(x)) are x in exact arithmetic, and not in every bit of floating
 * point. To call them wrong would be a false alarm, to call them right would be no proof. So the
 * tree and what the contract expects are computed for a few sets of inputs, integers as they are
 * and floating point in more precision than any type has: if they differ, the value is wrong; if they never do, it is not decided, and the
 * identity is named. What is not understood here counts as different.
 *
 * A largest, smallest or bitwise result rarely shows every operand. So each contribution is once
 * far above all other inputs, and once far below them: one that is missing, or comes from another
 * place, always shows.
 */
#include "verify/result/sample.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sampler {
    const struct values *v;
    const struct sample_question *q;
    uint64_t index;
    uint64_t seed;
    /* the input that is far from all others, if there is one */
    struct input {
        uint32_t launch, rank, memory;
        uint64_t element;
    } odd;
    bool has_odd;
    bool above; /* it is above them, otherwise below */
    bool integer;
    long double *value; /* [node] */
    uint8_t *state;     /* [node] 1: needed */
    bool failed;
    bool rounds; /* a copy that is compared was rounded on its way */
};

/* Integers wrap; floating point is not rounded. */
static long double wrap(const struct sampler *s, long double value)
{
    if (!s->integer)
        return value;
    bool is_signed = s->q->dtype != PEAL_U8;
    long double range = ldexpl(1, 8 * (int)peal_dtype_size(s->q->dtype));
    value -= range * floorl(value / range);
    return is_signed && value >= range / 2 ? value - range : value;
}

/* A whole number, another one for every element, rank and launch: of all that the integer type has,
 * if it is of at most 32 bits, otherwise of two digits. Where one contribution is to be far from
 * all others, all are small and it, or the others, have one more bit. */
static long double input_of(const struct sampler *s, uint32_t launch, uint32_t rank,
                            uint32_t memory, uint64_t element)
{
    size_t bytes = peal_dtype_size(s->q->dtype);
    uint64_t h = peal_hash_u64(element, peal_hash_u64((uint64_t)rank << 32 | memory, s->seed));
    h = peal_hash_u64(launch, h);
    if (s->integer && !s->has_odd && bytes <= 4)
        return wrap(s, (long double)(uint32_t)h);
    uint64_t number = 3 + h % 50;
    bool odd = rank == s->odd.rank && launch == s->odd.launch && memory == s->odd.memory &&
               element == s->odd.element;
    if (s->has_odd && odd == s->above)
        number += UINT64_C(1) << (bytes == 1 ? 6 : 20);
    return (long double)number;
}

static long double compute_bits(enum peal_fn fn, long double a, long double b)
{
    int64_t x = (int64_t)a, y = (int64_t)b;
    if (fn == PEAL_FN_AND)
        return (long double)(x & y);
    if (fn == PEAL_FN_OR)
        return (long double)(x | y);
    return (long double)(x ^ y);
}

static long double compute_two(struct sampler *s, enum peal_fn fn, long double a, long double b)
{
    switch (fn) {
    case PEAL_FN_ADD:
        return a + b;
    case PEAL_FN_SUB:
        return a - b;
    case PEAL_FN_MUL:
        return a * b;
    case PEAL_FN_DIV:
        if (!s->integer)
            return a / b;
        return b != 0 ? truncl(a / b) : 0;
    case PEAL_FN_MAXIMUM:
        return a > b ? a : b;
    case PEAL_FN_MINIMUM:
        return a < b ? a : b;
    case PEAL_FN_AND:
    case PEAL_FN_OR:
    case PEAL_FN_XOR:
        return compute_bits(fn, a, b);
    default:
        s->failed = true;
        return 0;
    }
}

static long double compute_one(struct sampler *s, enum peal_fn fn, long double a)
{
    switch (fn) {
    case PEAL_FN_ID:
        return a;
    case PEAL_FN_NEG:
        return -a;
    case PEAL_FN_ABS:
        return fabsl(a);
    case PEAL_FN_EXP:
        return expl(a);
    case PEAL_FN_LOG:
        return logl(a);
    case PEAL_FN_SQRT:
        return sqrtl(a);
    case PEAL_FN_RECIP:
        return 1 / a;
    default:
        s->failed = true;
        return 0;
    }
}

static long double compute_node(struct sampler *s, const struct node *n)
{
    enum peal_fn fn = (enum peal_fn)n->fn;
    long double a = s->value[n->child[0]];
    if (n->nchildren == 1)
        return compute_one(s, fn, a);
    long double b = s->value[n->child[1]];
    if (n->nchildren == 2)
        return compute_two(s, fn, a, b);
    long double c = s->value[n->child[2]];
    if (fn == PEAL_FN_FMA)
        return a * b + c;
    if (fn != PEAL_FN_CLAMP) {
        s->failed = true;
        return 0;
    }
    long double least = a > b ? a : b;
    return least < c ? least : c;
}

static long double value_of(struct sampler *s, const struct node *n)
{
    double number;
    switch ((enum node_kind)n->kind) {
    case NODE_CONST:
        memcpy(&number, &n->word, sizeof number);
        return number;
    case NODE_INPUT:
        return input_of(s, n->child[0], n->child[1], n->child[2], s->index + n->word);
    case NODE_FN:
    case NODE_CHANCE:
        return wrap(s, compute_node(s, n));
    case NODE_CONVERT:
        /* Rounding is part of a reduction in narrow types; a copy is not rounded. */
        s->failed = s->failed || (!s->q->reduces && !s->q->compares);
        s->rounds = s->rounds || !s->q->reduces;
        return s->value[n->child[0]];
    case NODE_DIVIDE:
        return s->value[n->child[0]] / (long double)n->word;
    default:
        s->failed = true;
        return 0;
    }
}

static long double expected_value(struct sampler *s)
{
    const struct sample_question *q = s->q;
    if (q->compares)
        return s->value[q->want];
    if (!q->reduces)
        return input_of(s, q->launch, q->from, q->x, q->element);
    long double sum = input_of(s, q->launch, 0, q->x, q->element);
    for (uint32_t r = 1; r < q->ranks; r++)
        sum = wrap(s, compute_two(s, q->fn, sum, input_of(s, q->launch, r, q->x, q->element)));
    return q->averages ? sum / (long double)q->ranks : sum;
}

/* Marks the nodes below `node`; children come before their parents in the table. */
static void mark(struct sampler *s, uint32_t node)
{
    s->state[node] = 1;
    for (uint32_t i = node + 1; i-- > 0;) {
        const struct node *n = &s->v->nodes.at[i];
        if (!s->state[i] || n->kind == NODE_INPUT)
            continue;
        for (uint32_t k = 0; k < n->nchildren; k++)
            s->state[n->child[k]] = 1;
    }
}

static bool agrees_once(struct sampler *s, uint32_t node)
{
    uint32_t last = s->q->compares && s->q->want > node ? s->q->want : node;
    for (uint32_t i = 0; i <= last; i++) {
        if (s->state[i])
            s->value[i] = value_of(s, &s->v->nodes.at[i]);
    }
    long double have = s->value[node], want = expected_value(s);
    if (s->q->compares && (!isfinite(have) || !isfinite(want)))
        s->failed = true; /* nothing is seen */
    return !s->failed && fabsl(have - want) <= 1e-12L * (1 + fabsl(want));
}

/* The identity that the value needs, as far as its form shows one. */
static const char *name_identity(const struct sampler *s, uint32_t node)
{
    for (uint32_t i = 0; i <= node; i++) {
        const struct node *n = &s->v->nodes.at[i];
        bool sum = s->state[i] && n->kind == NODE_FN && n->fn == PEAL_FN_ADD && n->nchildren == 2;
        for (uint32_t k = 0; sum && k < 2; k++) {
            const struct node *other = &s->v->nodes.at[n->child[k]];
            if (other->kind == NODE_CONST && s->value[n->child[k]] == 0)
                return "a + 0 = a, which turns -0 into 0";
        }
    }
    for (uint32_t i = 0; i <= node; i++) {
        const struct node *n = &s->v->nodes.at[i];
        if (s->state[i] && n->kind == NODE_FN && n->fn == PEAL_FN_SUB)
            return "(a + b) - b = a, where both results are rounded";
    }
    return "a rule of exact arithmetic, where results are rounded";
}

/* --- integers -------------------------------------------------------------------------------- */

/* Is it, in every operand, a sum of multiples of the inputs that are expected? */
static bool is_linear(const struct sampler *s, uint32_t node)
{
    const struct sample_question *q = s->q;
    for (uint32_t i = 0; i <= node; i++) {
        const struct node *n = &s->v->nodes.at[i];
        if (!s->state[i] || n->kind == NODE_CONST)
            continue;
        bool input = n->kind == NODE_INPUT && n->child[0] == q->launch && n->child[2] == q->x &&
                     s->index + n->word == q->element && n->dtype == q->dtype;
        bool sum = n->kind == NODE_FN && n->dtype == q->dtype &&
                   (n->fn == PEAL_FN_ADD || n->fn == PEAL_FN_SUB || n->fn == PEAL_FN_NEG);
        bool multiple = n->kind == NODE_FN && n->dtype == q->dtype && n->fn == PEAL_FN_MUL &&
                        n->nchildren == 2 &&
                        (s->v->nodes.at[n->child[0]].kind == NODE_CONST ||
                         s->v->nodes.at[n->child[1]].kind == NODE_CONST);
        if (!input && !sum && !multiple)
            return false;
    }
    return true;
}

/* The value, modulo 2^64, if x is 1 on rank `one` and 0 on all others. */
static uint64_t unit_value(const struct node *n, uint32_t one, const uint64_t *value)
{
    double number;
    if (n->kind == NODE_CONST) {
        memcpy(&number, &n->word, sizeof number);
        return (uint64_t)(int64_t)number;
    }
    if (n->kind == NODE_INPUT)
        return n->child[1] == one;
    uint64_t a = value[n->child[0]], b = n->nchildren > 1 ? value[n->child[1]] : 0;
    if (n->fn == PEAL_FN_NEG)
        return 0 - a;
    if (n->fn == PEAL_FN_SUB)
        return a - b;
    return n->fn == PEAL_FN_ADD ? a + b : a * b;
}

/* Are all constants whole numbers that the type holds? */
static bool has_whole_numbers(const struct sampler *s, uint32_t node)
{
    double limit = ldexp(1, 8 * (int)peal_dtype_size(s->q->dtype) - 1);
    if (limit > 0x1p53)
        limit = 0x1p53;
    for (uint32_t i = 0; i <= node; i++) {
        const struct node *n = &s->v->nodes.at[i];
        double number;
        if (!s->state[i] || n->kind != NODE_CONST)
            continue;
        memcpy(&number, &n->word, sizeof number);
        bool unsigned_below_0 = s->q->dtype == PEAL_U8 && number < 0;
        if (!(fabs(number) < limit) || number != floor(number) || unsigned_below_0)
            return false;
    }
    return true;
}

/* A sum of multiples is known by its values for 0 and for each input alone. */
static bool has_unit_values(const struct sampler *s, uint32_t node, uint32_t nranks,
                            uint64_t *value)
{
    const struct sample_question *q = s->q;
    unsigned unused = 64 - 8 * (unsigned)peal_dtype_size(q->dtype);
    for (uint32_t one = 0; one <= nranks; one++) { /* the last one: 0 on all ranks */
        for (uint32_t i = 0; i <= node; i++) {
            if (s->state[i])
                value[i] = unit_value(&s->v->nodes.at[i], one, value);
        }
        bool wanted = q->reduces ? one < q->ranks : one == q->from;
        if ((value[node] - (wanted && one < nranks)) << unused)
            return false;
    }
    return true;
}

bool peal_sample_is_exact(const struct values *v, uint32_t node, uint64_t index,
                          const struct sample_question *q)
{
    enum { MAX_WORK = 100000000 };
    bool integer = peal_dtype_kind(q->dtype) == PEAL_KIND_INT;
    if (!integer || (q->reduces && q->fn != PEAL_FN_ADD) || q->averages ||
        (uint64_t)(node + 1) * (q->nranks + 1) > MAX_WORK)
        return false;
    struct sampler s = {.v = v, .q = q, .index = index};
    uint64_t *value = calloc(node + 1u, sizeof *value);
    s.state = calloc(node + 1u, sizeof *s.state);
    bool good = value && s.state;
    if (good) {
        mark(&s, node);
        good = is_linear(&s, node) && has_whole_numbers(&s, node) &&
               has_unit_values(&s, node, q->nranks, value);
    }
    free(value);
    free(s.state);
    return good;
}

/* --- other types ----------------------------------------------------------------------------- */

const char *peal_sample_identity(const struct values *v, uint32_t node, uint64_t index,
                                 const struct sample_question *q)
{
    enum { SAMPLES = 8, MAX_WORK = 100000000 };
    const char *name = NULL;
    struct sampler s = {.v = v, .q = q, .index = index, .integer = !peal_dtype_is_float(q->dtype)};
    uint32_t odds = q->reduces ? q->ranks : 1;
    if ((uint64_t)(node + 1) * odds > MAX_WORK)
        return NULL;
    s.value = calloc(node + 1u, sizeof *s.value);
    s.state = calloc(node + 1u, sizeof *s.state);
    bool agrees = s.value && s.state && !peal_dtype_is_record(q->dtype);
    if (agrees)
        mark(&s, node);
    for (s.seed = 1; agrees && s.seed <= SAMPLES; s.seed++)
        agrees = agrees_once(&s, node);
    for (uint32_t i = 0; agrees && i < 2 * odds; i++) {
        s.has_odd = true;
        s.odd = (struct input){q->launch, q->reduces ? i / 2 : q->from, q->x, q->element};
        s.above = i % 2;
        agrees = agrees_once(&s, node);
    }
    if (agrees && s.integer)
        name = "an identity of whole numbers that is not proved";
    else if (agrees)
        name = name_identity(&s, node);
    free(s.value);
    free(s.state);
    return name;
}

/* Inputs of both sides, each once far above all others and once far below. */
static bool agrees_oddly(struct sampler *s, uint32_t node, uint32_t last)
{
    enum { MAX_ODD = 64 };
    uint32_t odds = 0;
    for (uint32_t i = 0; i <= last && odds < MAX_ODD; i++) {
        const struct node *n = &s->v->nodes.at[i];
        if (!s->state[i] || n->kind != NODE_INPUT)
            continue;
        odds++;
        s->has_odd = true;
        s->odd = (struct input){n->child[0], n->child[1], n->child[2], s->index + n->word};
        for (int above = 0; above < 2; above++) {
            s->above = above;
            if (!agrees_once(s, node))
                return false;
        }
    }
    return true;
}

enum peal_sample_result peal_sample_compare(const struct values *v, uint32_t node, uint64_t index,
                                            const struct sample_question *q)
{
    enum { SAMPLES = 8, MAX_NODES = 1000000 };
    uint32_t last = node > q->want ? node : q->want;
    struct sampler s = {.v = v, .q = q, .index = index, .integer = !peal_dtype_is_float(q->dtype)};
    bool undefined = v->nodes.at[node].kind == NODE_UNDEFINED;
    if (undefined)
        return PEAL_SAMPLE_DIFFERS;
    if (last > MAX_NODES || peal_dtype_is_record(q->dtype))
        return PEAL_SAMPLE_UNKNOWN;
    s.value = calloc(last + 1u, sizeof *s.value);
    s.state = calloc(last + 1u, sizeof *s.state);
    bool agrees = s.value && s.state;
    s.failed = !agrees;
    if (agrees) {
        mark(&s, node);
        mark(&s, q->want);
    }
    for (s.seed = 1; agrees && s.seed <= SAMPLES; s.seed++)
        agrees = agrees_once(&s, node);
    agrees = agrees && agrees_oddly(&s, node, last);
    free(s.value);
    free(s.state);
    if (s.failed)
        return PEAL_SAMPLE_UNKNOWN;
    if (s.rounds && v->nodes.at[q->want].kind != NODE_CONVERT)
        return PEAL_SAMPLE_DIFFERS;
    return agrees ? PEAL_SAMPLE_AGREES : PEAL_SAMPLE_DIFFERS;
}
