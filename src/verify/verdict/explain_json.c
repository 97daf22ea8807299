/* SPDX-License-Identifier: Apache-2.0 */
/* The answer as one JSON object for programs. The members are listed in docs/verifier.md. */
#include "verify/verdict/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put_index(struct peal_json *json, const char *name, uint32_t value)
{
    peal_json_key(json, name);
    if (value == PEAL_NONE)
        peal_json_null(json);
    else
        peal_json_uint(json, value);
}

static void put_place(struct peal_json *json, const char *name, const struct peal_verify_place *at)
{
    peal_json_key(json, name);
    if (!at->line) {
        peal_json_null(json);
        return;
    }
    peal_json_object(json);
    peal_json_put_string(json, "file", at->file);
    peal_json_put_uint(json, "line", at->line);
    peal_json_put_uint(json, "col", at->col);
    peal_json_put_uint(json, "len", at->len);
    peal_json_object_end(json);
}

static void put_operands(const struct peal_verify_step *s, struct peal_json *json)
{
    peal_json_put_array(json, "operands");
    for (uint32_t i = 0; i < s->noperands; i++) {
        const struct peal_verify_operand *o = &s->operands[i];
        peal_json_object(json);
        if (o->kind == PEAL_OPERAND_CONSTANT) {
            peal_json_put_real(json, "constant", o->constant);
        } else {
            peal_json_put_string(json, "buffer", o->buf);
            peal_json_put_uint(json, "rank", o->rank);
            peal_json_put_uint(json, "row", o->row);
            peal_json_put_uint(json, "rows", o->rows);
            peal_json_put_uint(json, "first", o->first);
            peal_json_put_uint(json, "count", o->count);
            if (o->pitch)
                peal_json_put_uint(json, "pitch", o->pitch);
        }
        peal_json_put_bool(json, "writes", o->writes);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}

/* The step as data, without its text. */
static void put_data(const struct peal_verify_step *s, struct peal_json *json)
{
    peal_json_put_string(json, "kind", s->kind);
    if (s->signal) {
        peal_json_put_object(json, "signal");
        peal_json_put_string(json, "name", s->signal);
        peal_json_put_uint(json, "index", s->cell_index);
        peal_json_put_uint(json, "rank", s->cell_rank);
        peal_json_put_string(json, "relation", s->relation);
        peal_json_put_int(json, "value", s->value);
        if (s->relation && strcmp(s->relation, "from") == 0)
            peal_json_put_int(json, "desired", s->desired);
        peal_json_put_bool(json, "relaxed", s->relaxed);
        if (s->ordering && *s->ordering)
            peal_json_put_string(json, "ordering", s->ordering);
        peal_json_put_uint(json, "back", s->back);
        peal_json_object_end(json);
    }
    if (s->noperands)
        put_operands(s, json);
    if (s->function)
        peal_json_put_string(json, "function", s->function);
    if (s->divisor)
        peal_json_put_uint(json, "divisor", s->divisor);
    if (s->peer != PEAL_NONE) {
        peal_json_put_uint(json, "peer", s->peer);
        peal_json_put_string(json, "channel", s->channel);
    }
}

/* Where the step is, its data and its text. */
static void put_step(const struct peal_verify_step *s, struct peal_json *json)
{
    peal_json_put_uint(json, "launch", s->launch);
    peal_json_put_uint(json, "rank", s->rank);
    peal_json_put_uint(json, "lane", s->lane);
    put_index(json, "op", s->op);
    put_place(json, "at", &s->place);
    put_data(s, json);
    peal_json_put_string(json, "text", s->text);
}

static void put_steps(const struct peal_verification *v, struct peal_json *json)
{
    peal_json_put_array(json, "steps");
    for (uint32_t i = 0; i < v->nsteps; i++) {
        const struct peal_verify_step *s = &v->steps[i];
        peal_json_break(json, 2);
        peal_json_object(json);
        put_step(s, json);
        if (s->cell) {
            peal_json_put_string(json, "cell", s->cell);
            peal_json_put_int(json, "before", s->before);
            peal_json_put_int(json, "after", s->after);
        }
        if (s->waits_for != PEAL_NONE)
            peal_json_put_uint(json, "released_by", s->waits_for);
        if (s->older != PEAL_NONE)
            peal_json_put_uint(json, "older_than", s->older);
        if (s->collides)
            peal_json_put_bool(json, "collides", true);
        if (s->blocked)
            peal_json_put_bool(json, "blocked", true);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}

static void put_accesses(const struct peal_verification *v, struct peal_json *json)
{
    peal_json_put_array(json, "accesses");
    for (uint32_t i = 0; i < v->naccesses; i++) {
        const struct peal_verify_access *a = &v->accesses_at[i];
        peal_json_object(json);
        peal_json_put_uint(json, "step", a->step);
        peal_json_put_bool(json, "writes", a->writes);
        peal_json_put_string(json, "buffer", a->buf);
        peal_json_put_uint(json, "rank", a->rank);
        peal_json_put_uint(json, "first_byte", a->first_byte);
        peal_json_put_uint(json, "bytes", a->bytes);
        peal_json_put_uint(json, "first_element", a->first_element);
        peal_json_put_uint(json, "elements", a->elements);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}

static void put_waits(const struct peal_verification *v, struct peal_json *json)
{
    peal_json_put_array(json, "waits");
    for (uint32_t i = 0; i < v->nwaits; i++) {
        const struct peal_verify_wait *w = &v->waits[i];
        peal_json_object(json);
        put_index(json, "step", w->step);
        peal_json_put_uint(json, "launch", w->launch);
        peal_json_put_uint(json, "rank", w->rank);
        peal_json_put_uint(json, "lane", w->lane);
        peal_json_put_string(json, "cell", w->cell);
        peal_json_put_string(json, "relation", w->relation);
        peal_json_put_int(json, "expected", w->expected);
        peal_json_put_int(json, "actual", w->actual);
        peal_json_put_bool(json, "in_cycle", w->in_cycle);
        peal_json_put_array(json, "notifiers");
        for (uint32_t k = 0; k < w->nnotifiers; k++) {
            peal_json_uint(json, w->notifiers[k]);
        }
        peal_json_array_end(json);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}

static void put_writer(struct peal_json *json, const char *name, bool is_there,
                       const struct peal_verify_step *s)
{
    peal_json_key(json, name);
    if (!is_there) {
        peal_json_null(json);
        return;
    }
    peal_json_object(json);
    put_step(s, json);
    peal_json_object_end(json);
}

static void put_wrong(const struct peal_verification *v, struct peal_json *json)
{
    const struct peal_verify_wrong *w = &v->wrong;
    if (!w->buf)
        return;
    peal_json_put_object(json, "wrong");
    peal_json_put_uint(json, "launch", w->launch);
    peal_json_put_uint(json, "rank", w->rank);
    peal_json_put_string(json, "buffer", w->buf);
    peal_json_put_uint(json, "first_element", w->first_element);
    peal_json_put_uint(json, "elements", w->elements);
    peal_json_put_string(json, "expected", w->expected);
    peal_json_put_string(json, "obtained", w->obtained);
    peal_json_put_string(json, "difference", w->difference);
    put_writer(json, "last_writer", w->has_writer, &w->writer);
    put_writer(json, "lost_at", w->has_lost, &w->lost);
    peal_json_object_end(json);
}

static void put_advice(const struct peal_verification *v, struct peal_json *json)
{
    peal_json_put_array(json, "advice");
    for (uint32_t i = 0; i < v->nadvice; i++) {
        peal_json_object(json);
        peal_json_put_string(json, "kind", v->advice[i].fixes ? "fix" : "redundant");
        const char *holds = v->advice[i].holds_for ? v->advice[i].holds_for : v->advice_holds_for;
        peal_json_put_string(json, "holds_for", holds ? holds : "this plan, launched repeatedly");
        peal_json_put_string(json, "text", v->advice[i].text);
        put_place(json, "at", &v->advice[i].at);
        put_place(json, "also", &v->advice[i].second);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    if (v->no_advice)
        peal_json_put_string(json, "no_advice", v->no_advice);
}

void peal_verification_put(const struct peal_verification *v, struct peal_json *json)
{
    static const char *const bits[] = {"unknown", "same", "different"};
    peal_json_object(json);
    peal_json_put_string(json, "kernel", v->kernel);
    peal_json_put_uint(json, "ranks", v->nranks);
    peal_json_put_uint(json, "launches", v->launches);
    peal_json_put_uint(json, "period", v->period);
    peal_json_put_string(json, "verdict", peal_outcome_name(v->verdict));
    peal_json_put_string(json, "fault",
                         v->fault == PEAL_FAULT_NONE ? NULL : peal_fault_name(v->fault));
    peal_json_put_string(json, "why", v->why);
    char hash[24];
    snprintf(hash, sizeof hash, "%016" PRIx64, v->plan_hash);
    peal_json_put_string(json, "plan", hash);
    peal_json_put_string(json, "contract",
                         v->contract == PEAL_CONTRACT_NONE ? NULL
                                                           : peal_contract_name(v->contract));
    peal_json_put_bool(json, "ensures", v->promises > 0);
    peal_json_put_string(json, "requires", v->required);
    peal_json_put_string(json, "unconstrained", v->unconstrained);
    peal_json_put_string(json, "analysis", v->monotone ? "exact" : "exploration");
    peal_json_put_bool(json, "relaxed", v->has_relaxed);
    peal_json_put_string(json, "reuse", peal_reuse_name(v->reuse));
    peal_json_put_bool(json, "closed_decided", !v->closed_undecided);
    peal_json_put_string(json, "open", v->open_why);
    peal_json_put_string(json, "bits", bits[v->bits]);
    peal_json_put_string(json, "bits_why", v->bits_why);
    peal_json_put_bool(json, "same_order", v->same_order);
    peal_json_put_uint(json, "least_depth", v->least_depth);
    peal_json_put_uint(json, "depth", v->depth);
    peal_json_put_uint(json, "ops", v->ops);
    peal_json_put_uint(json, "accesses_checked", v->accesses);
    peal_json_put_uint(json, "states", v->states);
    peal_json_put_fixed(json, "milliseconds", v->milliseconds, 3);
    peal_json_put_bool(json, "cached", v->cached);
    peal_json_put_bool(json, "text_agrees", v->text_agrees);
    peal_json_put_string(json, "text_unchecked", v->text_unchecked);
    peal_json_put_string(json, "story", peal_story_name(v->story));
    peal_json_put_bool(json, "told_unfused", v->told_unfused);
    put_steps(v, json);
    put_accesses(v, json);
    put_waits(v, json);
    put_wrong(v, json);
    put_advice(v, json);
    peal_json_object_end(json);
}

void peal_verification_json(const struct peal_verification *v, struct peal_text *out)
{
    struct peal_json json;
    peal_json_init(&json, out, PEAL_JSON_ONE_LINE);
    peal_verification_put(v, &json);
}
