/* SPDX-License-Identifier: Apache-2.0 */
/* Random user-defined reductions. A random expression is printed as text, which the front end turns
 * into a formula; and it is evaluated here by recursion, one element at a time. The blockwise
 * evaluator of every variant must give the same bits.
 *
 *     interp-formula-test [SEED [TEXTS]]
 */
#include "interp/scalar.h"

#include "compute/compute.h"
#include "lang/lang.h"
#include "lib/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 300, SOURCES = 4, NODES = 24, BATCH = PEAL_FORMULAS - 1 };

enum kind { OPERAND_A, OPERAND_B, NUMBER, APPLY };

struct tree {
    enum kind kind;
    enum peal_fn fn;
    int child[3], children;
    double value;
};

struct expression {
    struct tree nodes[NODES];
    int len;
};

static uint64_t state;

static uint32_t roll(uint32_t sides)
{
    return below(&state, sides);
}

/* Functions whose results are defined to the last bit. */
static const enum peal_fn functions[] = {PEAL_FN_ADD,     PEAL_FN_SUB,     PEAL_FN_MUL, PEAL_FN_DIV,
                                         PEAL_FN_MAXIMUM, PEAL_FN_MINIMUM, PEAL_FN_AND, PEAL_FN_OR,
                                         PEAL_FN_XOR,     PEAL_FN_CLAMP,   PEAL_FN_NEG, PEAL_FN_ABS,
                                         PEAL_FN_FMA,     PEAL_FN_CDIV};

static int make(struct expression *e, enum peal_dtype dtype, int depth)
{
    int at = e->len++;
    struct tree *t = &e->nodes[at];
    bool leaf = depth == 0 || e->len + 3 >= NODES - 8;
    *t = (struct tree){.kind = (enum kind)roll(2)};
    if (leaf && roll(4) == 0 && dtype != PEAL_BOOL) {
        t->kind = NUMBER;
        t->value = roll(7);
        if (peal_dtype_is_float(dtype))
            t->value /= 4;
    }
    if (leaf)
        return at;
    do
        t->fn = functions[roll(sizeof functions / sizeof *functions)];
    while (!peal_fn_takes(t->fn, dtype));
    t->kind = APPLY;
    int operands = peal_fn_info(t->fn)->operands;
    t->children = operands ? operands : 2;
    for (int i = 0; i < t->children; i++) {
        int child = make(e, dtype, depth - 1);
        e->nodes[at].child[i] = child;
    }
    return at;
}

static void write_text(const struct expression *e, int node, struct peal_text *out)
{
    const struct tree *t = &e->nodes[node];
    static const char *const infix[] = {
        [PEAL_FN_ADD] = "+", [PEAL_FN_SUB] = "-", [PEAL_FN_MUL] = "*", [PEAL_FN_DIV] = "/"};
    if (t->kind != APPLY) {
        if (t->kind == NUMBER)
            peal_text_printf(out, "%g", t->value);
        else
            peal_text_puts(out, t->kind == OPERAND_A ? "a" : "b");
        return;
    }
    bool between = t->fn <= PEAL_FN_DIV && t->fn >= PEAL_FN_ADD;
    peal_text_printf(out, "%s(", between ? "" : peal_fn_info(t->fn)->name);
    for (int i = 0; i < t->children; i++) {
        if (i > 0)
            peal_text_printf(out, "%s ", between ? infix[t->fn] : ",");
        write_text(e, t->child[i], out);
    }
    peal_text_puts(out, ")");
}

static struct peal_scalar evaluate(const struct expression *e, int node, struct peal_scalar a,
                                   struct peal_scalar b)
{
    const struct tree *t = &e->nodes[node];
    struct peal_scalar operands[3];
    if (t->kind == NUMBER)
        return peal_scalar_const(t->value, a.work, a.work);
    if (t->kind != APPLY)
        return t->kind == OPERAND_A ? a : b;
    for (int i = 0; i < t->children; i++)
        operands[i] = evaluate(e, t->child[i], a, b);
    return peal_scalar_apply(t->fn, operands, (uint32_t)t->children);
}

/* One application; integers wrap into their type. */
static struct peal_scalar apply(const struct expression *e, struct peal_scalar a,
                                struct peal_scalar b, enum peal_dtype dtype)
{
    struct peal_scalar out = evaluate(e, 0, a, b);
    if (peal_dtype_is_float(dtype))
        return out;
    char cell[8];
    peal_scalar_store(cell, dtype, out);
    return peal_scalar_load(cell, dtype, out.work);
}

static struct peal_program *read_text(const char *text)
{
    struct peal_program *program = NULL;
    struct peal_diags diags;
    peal_diags_init(&diags);
    if (peal_program_text("random", text, strlen(text), &diags, &program) != PEAL_OK) {
        struct peal_text why = {0};
        peal_diags_print(&diags, false, &why);
        fprintf(stderr, "%s%s\n", text, peal_text_get(&why));
        exit(1);
    }
    peal_diags_release(&diags);
    return program;
}

static void compare(const struct expression *e, const struct peal_formula *f, enum peal_dtype dtype)
{
    static char src[SOURCES][COUNT * 8], got[COUNT * 8];
    size_t size = peal_dtype_size(dtype);
    uint32_t nsrc = 2 + roll(SOURCES - 1);
    struct peal_operand operands[SOURCES], dst = {got, 0, dtype};
    for (uint32_t k = 0; k < nsrc; k++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            double value = (double)roll(41) - 20;
            peal_sample_put(src[k], dtype, i, peal_dtype_is_float(dtype) ? value / 8 : value);
        }
        operands[k] = (struct peal_operand){src[k], 0, dtype};
    }
    enum peal_dtype work = peal_scalar_work(PEAL_I8, dtype);
    const struct peal_compute *variant;
    for (unsigned v = 0; (variant = peal_compute_at(v)); v++) {
        size_t count = roll(4) ? COUNT : roll(COUNT);
        peal_formula_combine(variant, f, &dst, operands, nsrc, count);
        for (size_t i = 0; i < count; i++) {
            char want[8];
            struct peal_scalar acc = peal_scalar_load(src[0] + i * size, dtype, work);
            for (uint32_t k = 1; k < nsrc; k++)
                acc = apply(e, acc, peal_scalar_load(src[k] + i * size, dtype, work), dtype);
            peal_scalar_store(want, dtype, acc);
            if (memcmp(got + i * size, want, size) == 0)
                continue;
            struct peal_text text = {0};
            write_text(e, 0, &text);
            fprintf(stderr, "%s: %s of %u %s: element %zu of %zu is %g and should be %g\n",
                    variant->name, peal_text_get(&text), nsrc, peal_dtype_name(dtype), i, count,
                    peal_sample_get(got, dtype, i), peal_sample_get(want, dtype, 0));
            exit(1);
        }
    }
}

/* Compares as many expressions as one text may have: reading a text takes longer, because it reads
 * the library as well. Returns how many could not be compared. */
static int check_text(void)
{
    struct expression expressions[BATCH] = {0};
    enum peal_dtype dtypes[BATCH];
    struct peal_text text = {0};
    int left_out = 0, at = 0;
    for (int i = 0; i < BATCH; i++) {
        dtypes[i] = (enum peal_dtype)roll(PEAL_SCALAR_DTYPES);
        (void)make(&expressions[i], dtypes[i], 1 + (int)roll(3));
        peal_text_printf(&text, "reduce r%d(a, b) = ", i);
        write_text(&expressions[i], 0, &text);
        peal_text_puts(&text, "\n");
    }
    struct peal_program *program = read_text(peal_text_get(&text));
    for (const struct peal_reduce_decl *r = peal_program_module(program)->reductions; r;
         r = r->next) {
        if (!peal_formula_check(&r->formula)) {
            fprintf(stderr, "%s: not whole: %s\n", peal_text_get(&text), r->name);
            exit(1);
        }
        if (peal_formula_takes(&r->formula, dtypes[at]))
            compare(&expressions[at], &r->formula, dtypes[at]);
        else
            left_out++;
        at++;
    }
    peal_program_close(program);
    peal_text_release(&text);
    return left_out + BATCH - at;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    long texts = argc > 2 ? strtol(argv[2], NULL, 10) : 30, left_out = 0;
    printf("seed %llu\n", (unsigned long long)seed);
    state = seed;
    for (long i = 0; i < texts; i++)
        left_out += check_text();
    printf("%ld expressions, %ld left out\n", texts * BATCH, left_out);
    return left_out > 0;
}
