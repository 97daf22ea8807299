/* SPDX-License-Identifier: Apache-2.0 */
/* Terms are computed operands first, for a few elements at a time: floating point in f64, integers
 * in their own type, which wraps. See promise_check.h. */
#include "cli/run/promise_check.h"

#include "compute/compute.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 256 };

static void promise_inputs(const struct peal_plan *plan, uint32_t rank, uint32_t buf,
                           uint64_t first, uint64_t count, double *out)
{
    const struct peal_buf *b = &peal_plan_bufs(plan)[buf];
    if (plan->contract != PEAL_CONTRACT_NONE || !plan->promises.count) {
        peal_sample_inputs(rank, first, count, out);
        return;
    }
    /* Few and small where sums would be rounded. */
    uint64_t numbers = peal_dtype_size((enum peal_dtype)b->dtype) < 4 ? 3 : 7;
    uint64_t where = peal_hash_u64((uint64_t)rank << 32 | b->param, 1);
    for (uint64_t i = 0; i < count; i++)
        out[i] = (double)(1 + peal_hash_u64(first + i, where) % numbers);
}

void peal_promise_fill(const struct peal_plan *plan, uint32_t rank, uint32_t buf, uint64_t count,
                       enum peal_dtype dtype, void *at)
{
    double values[CHUNK];
    for (uint64_t done = 0; done < count; done += CHUNK) {
        uint64_t n = peal_size_min(CHUNK, count - done);
        promise_inputs(plan, rank, buf, done, n, values);
        peal_sample_put_all((char *)at + done * peal_dtype_size(dtype), dtype, n, values);
    }
}

static bool is_number(const struct peal_plan *plan, uint32_t buf)
{
    enum peal_dtype dtype = (enum peal_dtype)peal_plan_bufs(plan)[buf].dtype;
    return peal_dtype_is_float(dtype) || peal_dtype_kind(dtype) == PEAL_KIND_INT;
}

bool peal_promise_is_checkable(const struct peal_plan *plan)
{
    enum peal_contract contract = (enum peal_contract)plan->contract;
    /* Parts of one buffer begin with the values of the collective's parts. */
    if (!plan->promises.count || peal_contract_gathers(contract) ||
        peal_contract_scatters(contract))
        return false;
    for (uint64_t i = 0; i < plan->promises.count; i++) {
        if (!is_number(plan, peal_plan_promises(plan)[i].buf))
            return false;
    }
    for (uint64_t i = 0; i < plan->terms.count; i++) {
        const struct peal_promise_term *t = &peal_plan_terms(plan)[i];
        if (t->kind == PEAL_TERM_INPUT && !is_number(plan, t->b))
            return false;
    }
    return true;
}

struct promise_values {
    const struct peal_plan *plan;
    enum peal_dtype work;
    uint32_t *place;          /* [term] its number in `order` + 1, 0: not needed */
    PEAL_VEC(uint32_t) order; /* the terms that a promise needs, operands first */
    char *memory;             /* CHUNK elements of each */
    size_t room;              /* terms that fit */
};

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool need(struct promise_values *v, uint32_t term)
{
    if (v->place[term])
        return true;
    v->place[term] = 1;
    return peal_vec_push(&v->order, term);
}

/* Finds the terms below one, and room for them. False: out of memory. */
static bool find_terms(struct promise_values *v, uint32_t top)
{
    bool good = true;
    for (size_t i = 0; i < v->order.len; i++)
        v->place[v->order.at[i]] = 0;
    v->order.len = 0;
    good = need(v, top);
    for (size_t i = 0; i < v->order.len && good; i++) {
        const struct peal_promise_term *t = &peal_plan_terms(v->plan)[v->order.at[i]];
        if (t->kind == PEAL_TERM_FN || t->kind == PEAL_TERM_DIVIDE)
            good = need(v, t->a) && (t->b == PEAL_NONE || need(v, t->b));
    }
    if (!good)
        return false;
    qsort(v->order.at, v->order.len, sizeof *v->order.at, by_number);
    for (size_t i = 0; i < v->order.len; i++)
        v->place[v->order.at[i]] = (uint32_t)i + 1;
    if (v->order.len <= v->room)
        return true;
    free(v->memory);
    v->room = v->order.len;
    v->memory = malloc(v->room * CHUNK * sizeof(double));
    return v->memory != NULL;
}

static struct peal_operand operand_of(const struct promise_values *v, uint32_t term)
{
    return (struct peal_operand){
        .at = v->memory + (v->place[term] - 1) * (size_t)CHUNK * sizeof(double), .dtype = v->work};
}

static void compute_term(struct promise_values *v, uint32_t term, uint64_t first, size_t count)
{
    const struct peal_promise_term *t = &peal_plan_terms(v->plan)[term];
    struct peal_operand dst = operand_of(v, term), src[2];
    double number, inputs[CHUNK];
    uint32_t nsrc = 1;
    assert(count <= CHUNK);
    switch ((enum peal_term_kind)t->kind) {
    case PEAL_TERM_INPUT:
        promise_inputs(v->plan, t->a, t->b, first + (uint64_t)t->word, count, inputs);
        peal_sample_put_all(dst.at, v->work, count, inputs);
        return;
    case PEAL_TERM_CONST:
        memcpy(&number, &t->word, sizeof number);
        for (size_t i = 0; i < count; i++)
            peal_sample_put(dst.at, v->work, i, number);
        return;
    case PEAL_TERM_DIVIDE:
        src[0] = operand_of(v, t->a);
        peal_compute_generic.combine(PEAL_FN_ID, &dst, src, 1, count, (uint32_t)t->word);
        return;
    case PEAL_TERM_FN:
        break;
    }
    src[0] = operand_of(v, t->a);
    if (t->b != PEAL_NONE) {
        src[1] = operand_of(v, t->b);
        nsrc = 2;
    }
    const struct peal_formula *formula = peal_plan_formula(v->plan, t->fn);
    if (formula)
        peal_formula_combine(&peal_compute_generic, formula, &dst, src, nsrc, count);
    else
        peal_compute_generic.combine((enum peal_fn)t->fn, &dst, src, nsrc, count, 0);
}

/* Can every function be computed in the work type? Plans of texts have no others. */
static bool takes_all(const struct promise_values *v)
{
    for (size_t i = 0; i < v->order.len; i++) {
        const struct peal_promise_term *t = &peal_plan_terms(v->plan)[v->order.at[i]];
        const struct peal_formula *formula =
            t->kind == PEAL_TERM_FN ? peal_plan_formula(v->plan, t->fn) : NULL;
        if (t->kind == PEAL_TERM_FN && !(formula ? peal_formula_takes(formula, v->work)
                                                 : peal_fn_takes((enum peal_fn)t->fn, v->work)))
            return false;
    }
    return true;
}

/* As the parameter's type holds it; NAN: nothing can be compared. */
static double as_stored(double value, enum peal_dtype dtype)
{
    char cell[16];
    peal_sample_put(cell, dtype, 0, value);
    double stored = peal_sample_get(cell, dtype, 0);
    return isfinite(value) && isfinite(stored) ? stored : NAN;
}

static uint64_t check_one(struct promise_values *v, const struct peal_promise *promise,
                          const struct peal_promise_data *data, struct peal_promise_wrong *first)
{
    enum peal_dtype dtype = (enum peal_dtype)peal_plan_bufs(v->plan)[promise->buf].dtype;
    const void *out = data->at(data->context, promise->buf);
    uint64_t wrong = 0;
    v->work = peal_dtype_is_float(dtype) ? PEAL_F64 : dtype;
    if (!find_terms(v, promise->term))
        return UINT64_MAX;
    if (!takes_all(v))
        return 0;
    for (uint64_t at = 0; at < promise->count; at += CHUNK) {
        size_t count = (size_t)peal_size_min(CHUNK, promise->count - at);
        for (size_t i = 0; i < v->order.len; i++)
            compute_term(v, v->order.at[i], promise->first + at, count);
        const void *values = operand_of(v, promise->term).at;
        for (size_t i = 0; i < count; i++) {
            uint64_t element = promise->first + at + i;
            double want = as_stored(peal_sample_get(values, v->work, i), dtype);
            bool given = !data->has || data->has(data->context, promise->buf, element);
            if (isnan(want) || !given || peal_sample_fits(out, dtype, element, want))
                continue;
            if (wrong++ == 0 && !first->promise)
                *first = (struct peal_promise_wrong){promise, element, want,
                                                     peal_sample_get(out, dtype, element)};
        }
    }
    return wrong;
}

uint64_t peal_promise_check(const struct peal_plan *plan, uint32_t rank,
                            const struct peal_promise_data *data, struct peal_promise_wrong *first)
{
    struct promise_values v = {.plan = plan};
    uint64_t wrong = 0;
    *first = (struct peal_promise_wrong){0};
    v.place = calloc(plan->terms.count + 1, sizeof *v.place);
    if (!v.place)
        return UINT64_MAX;
    for (uint64_t i = peal_plan_first_promise(plan, rank); i < plan->promises.count; i++) {
        const struct peal_promise *promise = &peal_plan_promises(plan)[i];
        if (promise->rank != rank)
            break;
        uint64_t more = check_one(&v, promise, data, first);
        wrong = more == UINT64_MAX ? more : wrong + more;
        if (more == UINT64_MAX)
            break;
    }
    free(v.place);
    free(v.memory);
    peal_vec_release(&v.order);
    return wrong;
}

void peal_promise_say(const struct peal_plan *plan, const struct peal_promise_wrong *wrong,
                      struct peal_text *out)
{
    const struct peal_promise *p = wrong->promise;
    peal_text_printf(out, "%s[%" PRIu64 "] is %g and should be %g, to ensure %s",
                     peal_plan_string(plan, peal_plan_bufs(plan)[p->buf].name), wrong->element,
                     wrong->have, wrong->want,
                     peal_plan_string(plan, peal_plan_clauses(plan)[p->clause].text));
}
