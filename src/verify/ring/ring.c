/* SPDX-License-Identifier: Apache-2.0 */
/* A ring for every number of ranks: for each family, apart and in place, read, guess, check. */
#include "verify/ring/ring.h"

#include "verify/forall/normal.h"

#include "verify/ring/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_RANKS = 5 };

static bool refuse(struct peal_forall *out, const char *why)
{
    snprintf(out->why, sizeof out->why, "%s", why);
    return false;
}

/* The model for P = scale * h + rest; the least h has at least LEAST_RANKS ranks. */
static bool read_family(struct ring_model *m, const struct peal_kernel *kernel, int64_t scale,
                        int64_t rest, bool in_place, struct peal_forall *out)
{
    m->scale = scale;
    m->rest = rest;
    m->least = (LEAST_RANKS - rest + scale - 1) / scale;
    m->in_place = in_place;
    return peal_ring_read(m, kernel, out);
}

bool peal_ring_classify(const struct peal_kernel *kernel, struct peal_forall *out)
{
    struct peal_normal normal;
    out->why[0] = '\0';
    if (!peal_normal_make(kernel, false, &normal))
        return refuse(out, "a text that is too large to be examined");
    int64_t scale = peal_ring_scale(normal.kernel), rest = 0;
    struct ring_model *m = calloc(1, sizeof *m);
    if (!m)
        (void)refuse(out, "out of memory");
    else if (!scale)
        (void)refuse(out, "the number of ranks is divided by a number that is not small");
    bool in_place = peal_forall_may_be_in_place(kernel);
    while (m && rest < scale && read_family(m, normal.kernel, scale, rest, false, out) &&
           (!in_place || read_family(m, normal.kernel, scale, rest, true, out)))
        rest++;
    free(m);
    peal_normal_release(&normal);
    return scale && rest == scale;
}

/* All installed solvers must agree, and there must be at least one. */
static bool solve(const char *script, uint32_t obligations, struct peal_forall *out)
{
    bool any = false;
    for (uint32_t i = 0; i < RING_SOLVERS; i++) {
        const char *name = peal_ring_solver_name(i);
        switch (peal_ring_solve(i, script, obligations)) {
        case RING_ABSENT:
            continue;
        case RING_HOLDS:
            any = true;
            out->solvers |= 1u << i;
            continue;
        case RING_FAILS:
            snprintf(out->why, sizeof out->why,
                     "what holds for few ranks is not shown for all by %s", name);
            return false;
        case RING_TIMEOUT:
            snprintf(out->why, sizeof out->why, "%s has not answered in time", name);
            return false;
        }
    }
    return any ? true : refuse(out, "no solver: neither z3 nor cvc5 is in the search path");
}

/* Proves one family. `*given` is the certificate to be read, and afterwards the text behind it;
 * NULL: guess. */
static bool prove_family(const struct ring_model *m, struct ring_certificate *c, const char **given,
                         struct peal_forall *out)
{
    struct peal_text claims = {0}, script = {0};
    const char *why = NULL, *text = *given;
    bool good = false;
    if (!text) {
        if (!peal_ring_guess(m, c, &why))
            goto release;
        peal_ring_print(m, c, &claims);
        text = peal_text_get(&claims);
    }
    const char *behind = peal_ring_parse(text, m, c);
    if (!behind) {
        why = "the certificate is not one of this kernel";
        goto release;
    }
    if (*given)
        *given = behind;
    if (claims.failed)
        goto release;
    uint32_t obligations = peal_ring_oblige(m, c, &script);
    out->obligations += obligations;
    good = !script.failed && solve(peal_text_get(&script), obligations, out);
    if (good)
        peal_text_add(&out->certificate, text, (size_t)(behind - text));
release:
    if (!good && !out->why[0])
        refuse(out, why ? why : "out of memory");
    peal_text_release(&claims);
    peal_text_release(&script);
    return good;
}

bool peal_ring_prove(const struct peal_plan_request *request, const char *given,
                     struct peal_forall *out)
{
    struct peal_normal normal;
    if (!peal_normal_make(request->kernel, false, &normal))
        return refuse(out, "a text that is too large to be examined");
    int64_t scale = peal_ring_scale(normal.kernel);
    struct ring_model *m = calloc(1, sizeof *m);
    struct ring_certificate *c = calloc(1, sizeof *c);
    bool good = false;
    out->above = LEAST_RANKS - 1;
    out->depth = request->bind.channel_depth ? request->bind.channel_depth : 2;
    if (!m || !c) {
        (void)refuse(out, "out of memory");
        goto free_both;
    }
    bool in_place = peal_forall_may_be_in_place(request->kernel);
    for (int64_t i = 0; i < 2 * scale; i++) {
        const char *why = NULL;
        if (i % 2 != 0 && !in_place)
            continue;
        m->depth = out->depth;
        if (!read_family(m, normal.kernel, scale, i / 2, i % 2 != 0, out))
            goto free_both;
        if (!peal_ring_matches(m, request, &why)) {
            (void)refuse(out, why);
            goto free_both;
        }
        peal_ring_merge(m);
        if (!prove_family(m, c, &given, out))
            goto free_both;
    }
    good = true;
free_both:
    free(m);
    free(c);
    peal_normal_release(&normal);
    return good;
}
