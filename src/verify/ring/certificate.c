/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates as text: one claim per line, numbers as affine functions of s (turn), p (place) and
 * h.
 *
 *   family 1 0 5 apart                          P = 1 * h + 0, h >= 5; `in place` or `apart`
 *   chain 0                                     sync 0 goes round
 *   origin 4.1 s 2..h p 0..1 from 4 at s-1      source 1 of op 4 finds what op 4 wrote in s - 1
 *   value 4 s 1..h p 0..1 start -s length s+1 part -s-1 plain
 *   end
 *
 * Lines that start with # are comments. What a certificate claims is checked, never believed.
 */
#include "verify/ring/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- writing --------------------------------------------------------------------------------- */

static void put_term(struct peal_text *out, int64_t factor, const char *name, bool *any)
{
    if (!factor)
        return;
    if (factor > 0 && *any)
        peal_text_puts(out, "+");
    if (factor == -1)
        peal_text_puts(out, "-");
    else if (factor != 1)
        peal_text_printf(out, "%" PRId64 "*", factor);
    peal_text_puts(out, name);
    *any = true;
}

static void put_affine(struct peal_text *out, const char *before, struct ring_affine a)
{
    bool any = false;
    peal_text_puts(out, before);
    put_term(out, a.turn, "s", &any);
    put_term(out, a.place, "p", &any);
    put_term(out, a.family, "h", &any);
    if (a.one || !any)
        peal_text_printf(out, any ? "%+" PRId64 : "%" PRId64, a.one);
}

static void put_box(struct peal_text *out, const struct ring_box *b)
{
    put_affine(out, " s ", b->turn);
    put_affine(out, "..", b->turn_end);
    put_affine(out, " p ", b->place);
    put_affine(out, "..", b->place_end);
}

static void put_ops(const struct ring_model *m, struct peal_text *out)
{
    static const char *const kinds[] = {"post", "take", "move", "input", "output"};
    for (uint32_t i = 0; i < m->nops; i++) {
        const struct ring_op *op = &m->ops[i];
        const struct ring_segment *g = &m->segments[op->segment];
        peal_text_printf(out, "# op %" PRIu32 ": %s, line %" PRIu32 ", lane %" PRIu32, i,
                         kinds[op->kind], op->line, g->lane);
        put_affine(out, ", s ", g->first);
        put_affine(out, "..", g->end);
        peal_text_puts(out, op->whole ? ", p 0..P\n" : "\n");
    }
}

void peal_ring_print(const struct ring_model *m, const struct ring_certificate *c,
                     struct peal_text *out)
{
    peal_text_printf(out, "family %" PRId64 " %" PRId64 " %" PRId64 " %s\n", m->scale, m->rest,
                     m->least, m->in_place ? "in place" : "apart");
    put_ops(m, out);
    for (uint32_t i = 0; i < m->nsyncs; i++) {
        if (c->chain[i])
            peal_text_printf(out, "chain %" PRIu32 "\n", i);
    }
    for (uint32_t i = 0; i < c->norigins; i++) {
        const struct ring_origin *o = &c->origins[i];
        peal_text_printf(out, "origin %" PRIu32 ".%" PRIu32, o->op, o->source);
        put_box(out, &o->box);
        peal_text_printf(out, " from %" PRIu32, o->writer);
        put_affine(out, " at ", o->turn);
        peal_text_puts(out, "\n");
    }
    for (uint32_t i = 0; i < c->nvalues; i++) {
        const struct ring_value *v = &c->values[i];
        peal_text_printf(out, "value %" PRIu32, v->op);
        put_box(out, &v->box);
        put_affine(out, " start ", v->start);
        put_affine(out, " length ", v->length);
        put_affine(out, " part ", v->part);
        peal_text_puts(out, v->final ? " final\n" : " plain\n");
    }
    peal_text_puts(out, "end\n");
}

/* --- reading --------------------------------------------------------------------------------- */

/* Sticky: after a failure, `at` is NULL and nothing more is read. */
struct parser {
    const char *at;
};

static bool accept(struct parser *p, const char *word)
{
    size_t len = strlen(word);
    if (!p->at || strncmp(p->at, word, len) != 0)
        return false;
    p->at += len;
    return true;
}

static void expect(struct parser *p, const char *word)
{
    if (!accept(p, word))
        p->at = NULL;
}

static int64_t number(struct parser *p)
{
    char *end = NULL;
    if (!p->at || ((*p->at < '0' || *p->at > '9') && *p->at != '-' && *p->at != '+')) {
        p->at = NULL;
        return 0;
    }
    long long n = strtoll(p->at, &end, 10);
    bool good = end != p->at && n < 1 << 30 && n > -(1 << 30);
    p->at = good ? end : NULL;
    return good ? n : 0;
}

static uint32_t index_below(struct parser *p, uint32_t end)
{
    int64_t n = number(p);
    if (n < 0 || n >= (int64_t)end)
        p->at = NULL;
    return p->at ? (uint32_t)n : 0;
}

/* The factor of s, p or h; NULL: none of them. */
static int64_t *factor_of(struct parser *p, struct ring_affine *a)
{
    if (accept(p, "s"))
        return &a->turn;
    if (accept(p, "p"))
        return &a->place;
    return accept(p, "h") ? &a->family : NULL;
}

static struct ring_affine affine(struct parser *p)
{
    struct ring_affine a = {0};
    while (p->at) {
        int64_t sign = 1, factor = 1;
        bool counted = false;
        if (accept(p, "-"))
            sign = -1;
        else
            (void)accept(p, "+");
        if (p->at && *p->at >= '0' && *p->at <= '9') {
            factor = number(p);
            counted = true;
        }
        bool product = !counted || accept(p, "*");
        int64_t *to = product ? factor_of(p, &a) : &a.one;
        if (!to) {
            p->at = NULL;
            break;
        }
        *to += sign * factor;
        if (p->at && *p->at != '+' && *p->at != '-')
            break;
    }
    return a;
}

static struct ring_box box(struct parser *p)
{
    struct ring_box b;
    expect(p, " s ");
    b.turn = affine(p);
    expect(p, "..");
    b.turn_end = affine(p);
    expect(p, " p ");
    b.place = affine(p);
    expect(p, "..");
    b.place_end = affine(p);
    return b;
}

static void read_origin(struct parser *p, const struct ring_model *m, struct ring_certificate *c)
{
    struct ring_origin o = {0};
    o.op = index_below(p, m->nops);
    expect(p, ".");
    o.source = index_below(p, RING_MAX_SOURCES);
    o.box = box(p);
    expect(p, " from ");
    o.writer = index_below(p, m->nops);
    expect(p, " at ");
    o.turn = affine(p);
    if (c->norigins == RING_MAX_CLAIMS)
        p->at = NULL;
    else
        c->origins[c->norigins++] = o;
}

static void read_value(struct parser *p, const struct ring_model *m, struct ring_certificate *c)
{
    struct ring_value v = {0};
    v.op = index_below(p, m->nops);
    v.box = box(p);
    expect(p, " start ");
    v.start = affine(p);
    expect(p, " length ");
    v.length = affine(p);
    expect(p, " part ");
    v.part = affine(p);
    v.final = accept(p, " final");
    if (!v.final)
        expect(p, " plain");
    if (c->nvalues == RING_MAX_CLAIMS)
        p->at = NULL;
    else
        c->values[c->nvalues++] = v;
}

static void skip_line(struct parser *p)
{
    const char *end = p->at ? strchr(p->at, '\n') : NULL;
    p->at = end ? end + 1 : NULL;
}

static void read_line(struct parser *p, const struct ring_model *m, struct ring_certificate *c)
{
    if (accept(p, "chain ")) {
        uint32_t sync = index_below(p, m->nsyncs);
        if (p->at)
            c->chain[sync] = true;
    } else if (accept(p, "origin ")) {
        read_origin(p, m, c);
    } else if (accept(p, "value ")) {
        read_value(p, m, c);
    } else {
        p->at = NULL;
    }
    expect(p, "\n");
}

const char *peal_ring_parse(const char *text, const struct ring_model *m,
                            struct ring_certificate *out)
{
    struct parser p = {text};
    char family[100];
    memset(out, 0, sizeof *out);
    snprintf(family, sizeof family, "family %" PRId64 " %" PRId64 " %" PRId64 " %s\n", m->scale,
             m->rest, m->least, m->in_place ? "in place" : "apart");
    expect(&p, family);
    while (p.at && !accept(&p, "end\n")) {
        if (*p.at == '#')
            skip_line(&p);
        else
            read_line(&p, m, out);
    }
    return p.at;
}
