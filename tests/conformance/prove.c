/* SPDX-License-Identifier: Apache-2.0 */
/* Every library kernel is proved: over all schedules, launched back to back with itself and with
 * other roots and counts in between.
 *
 *   prove quick|full FILE.peal...      prints TAP, a line per kernel
 *
 * A kernel whose comment says 'Closed' must be closed, every other one repeatable; one that says
 * 'Same bits' must give the same bits on all ranks. If PEAL_TABLE names docs/verifier-evidence.md,
 * its table must have a row for the kernel, and with `full` that row must agree with the proofs.
 */
#include "conformance/case.h"
#include "conformance/each.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel's row in the table: the worst over all ranks and counts. */
struct row {
    enum peal_reuse reuse;
    enum peal_bits bits; /* of the last plan */
    char differ[256];    /* why bits differ; "": they never do */
    uint32_t depth;
};

struct proof {
    const struct signature *signature;
    struct peal_text why;
    uint64_t proofs;
    struct row row;
};

static bool is_as_promised(const struct proof *p, const struct peal_verification *v)
{
    const char *doc = p->signature->kernel->doc;
    bool reusable = v->reuse == PEAL_REUSE_CLOSED ||
                    (v->reuse == PEAL_REUSE_REPEATABLE && !strstr(doc, "Closed"));
    bool bits = !strstr(doc, "Same bits") || v->bits == PEAL_BITS_SAME || v->nranks == 1;
    return v->verdict == PEAL_PROVED && reusable && bits;
}

static bool report(struct proof *p, const struct peal_verification *v, const struct variant *at,
                   const char *launches)
{
    peal_text_printf(&p->why, "%s: P=%u n=%llu root=%u: %s, %s, bits %d %s\n", launches, at->nranks,
                     (unsigned long long)at->n, at->root, peal_outcome_name(v->verdict),
                     peal_reuse_name(v->reuse), (int)v->bits, v->bits_why ? v->bits_why : "");
    peal_verification_explain(v, &p->why);
    return false;
}

static void note(struct row *row, const struct peal_verification *v)
{
    if (v->reuse < row->reuse)
        row->reuse = v->reuse;
    if (v->least_depth > row->depth)
        row->depth = v->least_depth;
    row->bits = v->bits;
    if (v->bits == PEAL_BITS_DIFFERENT && !*row->differ)
        snprintf(row->differ, sizeof row->differ, "%s", v->bits_why ? v->bits_why : "");
}

/* One plan, launched as often as the proof needs. */
static bool prove_alone(struct proof *p, const struct variant *v)
{
    struct made made;
    struct peal_verification *result = NULL;
    bool good = case_make(p->signature, v, &made, &p->why) &&
                peal_verify_plan(made.plan, &(struct peal_verify_options){0}, &result) == PEAL_OK;
    if (good)
        note(&p->row, result);
    if (good && !is_as_promised(p, result))
        good = report(p, result, v, "alone");
    peal_verification_free(result);
    made_release(&made);
    p->proofs++;
    return good;
}

/* Two plans, launched in all orders that matter for a period of two: a a b b a b a. */
static bool prove_pair(struct proof *p, struct variant v, uint32_t root, uint64_t n)
{
    static const int order[] = {0, 0, 1, 1, 0, 1, 0};
    enum { COUNT = sizeof order / sizeof *order };
    struct variant other = v;
    other.root = root;
    other.n = n;
    v.max_count = other.max_count = v.n > n ? v.n : n;
    struct made made[2] = {{0}};
    struct peal_verification *result = NULL;
    bool good = case_make(p->signature, &v, &made[0], &p->why) &&
                case_make(p->signature, &other, &made[1], &p->why);
    const struct peal_plan *plans[COUNT];
    for (int i = 0; i < COUNT; i++)
        plans[i] = made[order[i]].plan;
    good = good &&
           peal_verify_sequence(plans, COUNT, &(struct peal_verify_options){0}, &result) == PEAL_OK;
    if (good && result->verdict != PEAL_PROVED)
        good = report(p, result, &other, "in turn");
    peal_verification_free(result);
    made_release(&made[0]);
    made_release(&made[1]);
    p->proofs++;
    return good;
}

static bool prove_size(struct proof *p, struct variant v, bool full)
{
    uint32_t roots = p->signature->has_root ? v.nranks : 1;
    uint32_t stride = full ? 1 : (roots + 2) / 3;
    for (uint32_t root = 0; root < roots; root += stride) {
        v.root = root;
        if (!prove_alone(p, &v))
            return false;
        for (uint32_t other = 0; other < roots; other++) {
            bool sampled = other == roots - 1;
            if (full)
                sampled = v.nranks <= 5 || (root + other) % 3 == 0;
            if (sampled && !prove_pair(p, v, other, v.n))
                return false;
        }
    }
    bool blocks = strncmp(p->signature->kernel->name, "all_to_all", 10) == 0;
    v.root = 0;
    return !p->signature->kernel->nparams ||
           prove_pair(p, v, roots - 1, blocks ? 2 * v.n : v.n / 2 + 3);
}

static bool prove_turns(struct proof *p, bool full)
{
    bool blocks = strcmp(p->signature->kernel->name, "all_to_all_window") == 0;
    uint32_t max_ranks = full ? 16 : 5;
    for (uint32_t nranks = 2; nranks <= max_ranks; nranks++) {
        const uint64_t counts[] = {3 * nranks + 2, nranks - 1, 4 * nranks};
        for (size_t c = 0; c < 3; c++) {
            struct variant v = {.nranks = nranks, .n = counts[c], .dtype = PEAL_F32, .seed = 3};
            if ((blocks && c < 2) || (!blocks && !full && c))
                continue;
            v.max_count = p->signature->has_sends ? 4 * v.n : 0;
            bool good = prove_size(p, v, full);
            v.in_place = true;
            if (good && p->signature->in_place && v.n % nranks == 0)
                good = prove_size(p, v, false);
            if (!good)
                return false;
        }
    }
    return true;
}

/* Counts with empty or uneven parts; the row of the table comes from these proofs. */
static bool prove_counts(struct proof *p, bool full)
{
    static const uint32_t few[] = {2, 3, 5, 8};
    bool blocks = strcmp(p->signature->kernel->name, "all_to_all_window") == 0;
    p->row = (struct row){.reuse = PEAL_REUSE_CLOSED};
    uint32_t sizes = full ? 15 : sizeof few / sizeof *few;
    for (uint32_t i = 0; i < sizes; i++) {
        uint32_t nranks = full ? i + 2 : few[i];
        const uint64_t counts[] = {0, 1, nranks - 1, nranks, nranks + 1, 3 * nranks + 2, 256};
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            struct variant v = {.nranks = nranks, .n = counts[c], .dtype = PEAL_F32, .seed = 3};
            v.max_count = p->signature->has_sends ? 4 * v.n + 4 : 0;
            if (blocks && v.n % nranks != 0)
                continue; /* the kernel asserts that blocks are even */
            if (!prove_alone(p, &v))
                return false;
        }
    }
    return true;
}

static void print_row(const struct proof *p, struct peal_text *out)
{
    const struct row *row = &p->row;
    peal_text_printf(out, "| %s | %s | ", p->signature->kernel->name, peal_reuse_name(row->reuse));
    if (row->bits == PEAL_BITS_UNKNOWN)
        peal_text_puts(out, "-");
    else if (*row->differ)
        peal_text_printf(out, "no: %s", row->differ);
    else
        peal_text_puts(out, "yes");
    if (row->depth)
        peal_text_printf(out, " | %u |\n", row->depth);
    else
        peal_text_puts(out, " | - |\n");
}

/* Does the document have a row for the kernel? With `full`, is it the row of these proofs? */
static bool check_row(struct proof *p, bool full)
{
    const char *path = getenv("PEAL_TABLE");
    if (!path)
        return true;
    static char document[1 << 16];
    FILE *file = fopen(path, "r");
    size_t len = file ? fread(document, 1, sizeof document - 1, file) : 0;
    document[len] = '\0';
    if (file)
        fclose(file);
    struct peal_text row = {0}, start = {0};
    print_row(p, &row);
    peal_text_printf(&start, "\n| %s | ", p->signature->kernel->name);
    bool good = strstr(document, peal_text_get(full ? &row : &start));
    if (!good)
        peal_text_printf(&p->why, "missing in %s: %s", path, peal_text_get(&row));
    peal_text_release(&row);
    peal_text_release(&start);
    return good;
}

static struct answer check(const struct peal_kernel *kernel, bool full)
{
    struct signature signature = signature_of(kernel);
    struct proof proof = {.signature = &signature};
    bool good = prove_counts(&proof, full) && check_row(&proof, full) && prove_turns(&proof, full);
    return (struct answer){.good = good, .count = proof.proofs, .why = proof.why};
}

int main(int argc, char **argv)
{
    return each_kernel_main(argc, argv, "proofs", check);
}
