/* SPDX-License-Identifier: Apache-2.0 */
/* The answer for programs: one JSON object. The members are listed in docs/verifier.md. */
#include "verify/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A member: comma where needed, key, colon. */
static void key(struct peal_text *out, const char *name)
{
    char last = out->len ? out->at[out->len - 1] : '{';
    if (last != '{' && last != '[')
        peal_text_puts(out, ", ");
    peal_text_json(out, name);
    peal_text_puts(out, ": ");
}

static void next(struct peal_text *out)
{
    if (out->len && out->at[out->len - 1] != '[')
        peal_text_puts(out, ", ");
}

static void put_text(struct peal_text *out, const char *name, const char *value)
{
    key(out, name);
    if (value)
        peal_text_json(out, value);
    else
        peal_text_puts(out, "null");
}

static void put_uint(struct peal_text *out, const char *name, uint64_t value)
{
    key(out, name);
    peal_text_printf(out, "%" PRIu64, value);
}

static void put_int(struct peal_text *out, const char *name, int64_t value)
{
    key(out, name);
    peal_text_printf(out, "%" PRId64, value);
}

static void put_bool(struct peal_text *out, const char *name, bool value)
{
    key(out, name);
    peal_text_puts(out, value ? "true" : "false");
}

static void put_index(struct peal_text *out, const char *name, uint32_t value)
{
    key(out, name);
    if (value == PEAL_NONE)
        peal_text_puts(out, "null");
    else
        peal_text_printf(out, "%u", value);
}

static void put_place(struct peal_text *out, const char *name, const struct peal_verify_place *at)
{
    key(out, name);
    if (!at->line) {
        peal_text_puts(out, "null");
        return;
    }
    peal_text_puts(out, "{");
    put_text(out, "file", at->file);
    put_uint(out, "line", at->line);
    put_uint(out, "col", at->col);
    put_uint(out, "len", at->len);
    peal_text_puts(out, "}");
}

static void put_steps(const struct peal_verification *v, struct peal_text *out)
{
    key(out, "steps");
    peal_text_puts(out, "[");
    for (uint32_t i = 0; i < v->nsteps; i++) {
        const struct peal_verify_step *s = &v->steps[i];
        next(out);
        peal_text_puts(out, "\n  {");
        put_uint(out, "launch", s->launch);
        put_uint(out, "rank", s->rank);
        put_uint(out, "lane", s->lane);
        put_index(out, "op", s->op);
        put_place(out, "at", &s->place);
        put_text(out, "text", s->text);
        if (s->cell) {
            put_text(out, "cell", s->cell);
            put_int(out, "before", s->before);
            put_int(out, "after", s->after);
        }
        if (s->waits_for != PEAL_NONE)
            put_uint(out, "released_by", s->waits_for);
        if (s->collides)
            put_bool(out, "collides", true);
        if (s->blocked)
            put_bool(out, "blocked", true);
        peal_text_puts(out, "}");
    }
    peal_text_puts(out, "]");
}

static void put_accesses(const struct peal_verification *v, struct peal_text *out)
{
    key(out, "accesses");
    peal_text_puts(out, "[");
    for (uint32_t i = 0; i < v->naccesses; i++) {
        const struct peal_verify_access *a = &v->accesses_at[i];
        next(out);
        peal_text_puts(out, "{");
        put_uint(out, "step", a->step);
        put_bool(out, "writes", a->writes);
        put_text(out, "buffer", a->buf);
        put_uint(out, "rank", a->rank);
        put_uint(out, "first_byte", a->first_byte);
        put_uint(out, "bytes", a->bytes);
        put_uint(out, "first_element", a->first_element);
        put_uint(out, "elements", a->elements);
        peal_text_puts(out, "}");
    }
    peal_text_puts(out, "]");
}

static void put_waits(const struct peal_verification *v, struct peal_text *out)
{
    key(out, "waits");
    peal_text_puts(out, "[");
    for (uint32_t i = 0; i < v->nwaits; i++) {
        const struct peal_verify_wait *w = &v->waits[i];
        next(out);
        peal_text_puts(out, "{");
        put_index(out, "step", w->step);
        put_uint(out, "launch", w->launch);
        put_uint(out, "rank", w->rank);
        put_uint(out, "lane", w->lane);
        put_text(out, "cell", w->cell);
        put_text(out, "relation", w->relation);
        put_int(out, "expected", w->expected);
        put_int(out, "actual", w->actual);
        put_bool(out, "in_cycle", w->in_cycle);
        key(out, "notifiers");
        peal_text_puts(out, "[");
        for (uint32_t k = 0; k < w->nnotifiers; k++) {
            next(out);
            peal_text_printf(out, "%u", w->notifiers[k]);
        }
        peal_text_puts(out, "]}");
    }
    peal_text_puts(out, "]");
}

static void put_wrong(const struct peal_verification *v, struct peal_text *out)
{
    const struct peal_verify_wrong *w = &v->wrong;
    if (!w->buf)
        return;
    key(out, "wrong");
    peal_text_puts(out, "{");
    put_uint(out, "launch", w->launch);
    put_uint(out, "rank", w->rank);
    put_text(out, "buffer", w->buf);
    put_uint(out, "first_element", w->first_element);
    put_uint(out, "elements", w->elements);
    put_text(out, "expected", w->expected);
    put_text(out, "obtained", w->obtained);
    peal_text_puts(out, "}");
}

static void put_advice(const struct peal_verification *v, struct peal_text *out)
{
    key(out, "advice");
    peal_text_puts(out, "[");
    for (uint32_t i = 0; i < v->nadvice; i++) {
        next(out);
        peal_text_puts(out, "{");
        put_text(out, "kind", v->advice[i].mends ? "mend" : "redundant");
        put_text(out, "holds_for",
                 v->advice_holds_for ? v->advice_holds_for : "this plan, launched again and again");
        put_text(out, "text", v->advice[i].text);
        put_place(out, "at", &v->advice[i].at);
        put_place(out, "also", &v->advice[i].also);
        peal_text_puts(out, "}");
    }
    peal_text_puts(out, "]");
    if (v->no_advice)
        put_text(out, "no_advice", v->no_advice);
}

void peal_verification_json(const struct peal_verification *v, struct peal_text *out)
{
    static const char *const bits[] = {"unknown", "same", "different"};
    peal_text_puts(out, "{");
    put_text(out, "kernel", v->kernel);
    put_uint(out, "ranks", v->nranks);
    put_uint(out, "launches", v->launches);
    put_uint(out, "period", v->period);
    put_text(out, "verdict", peal_verdict_name(v->verdict));
    put_text(out, "fault", v->fault == PEAL_FAULT_NONE ? NULL : peal_fault_name(v->fault));
    put_text(out, "why", v->why);
    char hash[24];
    snprintf(hash, sizeof hash, "%016" PRIx64, v->plan_hash);
    put_text(out, "plan", hash);
    put_text(out, "contract",
             v->contract == PEAL_CONTRACT_NONE ? NULL : peal_contract_name(v->contract));
    put_text(out, "analysis", v->monotone ? "exact" : "exploration");
    put_bool(out, "relaxed", v->has_relaxed);
    put_text(out, "reuse", peal_reuse_name(v->reuse));
    put_bool(out, "closed_decided", !v->closed_undecided);
    put_text(out, "open", v->open_why);
    put_text(out, "bits", bits[v->bits]);
    put_text(out, "bits_why", v->bits_why);
    put_bool(out, "same_order", v->same_order);
    put_uint(out, "least_depth", v->least_depth);
    put_uint(out, "depth", v->depth);
    put_uint(out, "ops", v->ops);
    put_uint(out, "accesses_checked", v->accesses);
    put_uint(out, "states", v->states);
    key(out, "milliseconds");
    peal_text_printf(out, "%.3f", v->milliseconds);
    put_bool(out, "cached", v->cached);
    put_bool(out, "text_agrees", v->text_agrees);
    put_text(out, "text_unchecked", v->text_unchecked);
    put_text(out, "story", peal_story_name(v->story));
    put_steps(v, out);
    put_accesses(v, out);
    put_waits(v, out);
    put_wrong(v, out);
    put_advice(v, out);
    peal_text_puts(out, "}");
}
