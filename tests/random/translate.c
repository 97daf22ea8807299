/* SPDX-License-Identifier: Apache-2.0 */
/* random-translate FIRST COUNT: the plans of random texts compute what their texts say.
 *
 * A text is a list of data statements between barriers that order everything, so that it is proved
 * whatever its statements compute: parts of windows that overlap, accumulates into themselves,
 * tiles made of tiles, messages round a ring, select, final and fill, different statements on
 * different ranks, offsets that change with the launch, values of the root. Every plan, fused or
 * not, is compared with the values that src/plan/naive computes from the text; it shares no code
 * with lowering or with src/verify. A text that is not proved is not compared.
 */
#include "lang/lang.h"
#include "lib/random.h"
#include "plan/plan.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct maker {
    uint64_t dice;
    struct peal_text text;
    uint32_t tiles, waves; /* so far */
};

/* n elements of one of the rank's own windows, or of y. */
static const char *part(struct maker *m)
{
    static const char *const parts[] = {
        "w[0 +: n]",
        "w[n +: n]",
        "w[1 +: n]",
        "w[2 +: n]",
        "w[n - 1 +: n]",
        "w[(launch mod 2) * n +: n]",
        "v[1 - (launch mod 2), :]",
        "v[0, :]",
        "y",
    };
    return parts[below(&m->dice, sizeof parts / sizeof *parts)];
}

static void put_value(struct maker *m, uint32_t depth);

static void put_operand(struct maker *m, uint32_t depth)
{
    uint32_t kind = below(&m->dice, depth ? 8 : 5);
    if (kind < 2)
        peal_text_puts(&m->text, "x");
    else if (kind < 4)
        peal_text_puts(&m->text, part(m));
    else if (kind == 4 && m->tiles)
        peal_text_printf(&m->text, "t%u", below(&m->dice, m->tiles));
    else if (kind == 4)
        peal_text_puts(&m->text, "x");
    else
        put_value(m, depth - 1);
}

static void put_value(struct maker *m, uint32_t depth)
{
    static const char *const heads[] = {
        "op(", "op(", "maximum(", "sub(", "final(op, ", "select(rank == 1, ", "op("};
    uint32_t kind = below(&m->dice, 8);
    if (kind == 7) {
        put_operand(m, depth);
        peal_text_printf(&m->text, " * %u", 1 + below(&m->dice, 3));
        return;
    }
    peal_text_puts(&m->text, heads[kind]);
    put_operand(m, depth);
    uint32_t more = kind == 4 ? 0 : 1;
    if (kind < 3)
        more += below(&m->dice, 2);
    for (; more; more--) {
        peal_text_puts(&m->text, ", ");
        put_operand(m, depth);
    }
    peal_text_puts(&m->text, ")");
}

/* A barrier: every rank notifies every other. */
static void put_wave(struct maker *m)
{
    m->waves++;
    peal_text_puts(&m->text, "    for p in peers { notify s[rank]@p += 1 }\n");
    peal_text_printf(&m->text, "    for p in peers { wait s[p] >= %u }\n", m->waves);
}

static void put_statement(struct maker *m)
{
    uint32_t kind = below(&m->dice, 10);
    peal_text_puts(&m->text, "    ");
    if (kind < 3) {
        peal_text_printf(&m->text, "%s = ", part(m));
        put_value(m, 2);
    } else if (kind < 5) {
        peal_text_printf(&m->text, "%s%s op= ", below(&m->dice, 3) ? "" : "exclusive ", part(m));
        put_operand(m, 1);
    } else if (kind < 6) {
        peal_text_printf(&m->text, "let t%u = ", m->tiles);
        put_value(m, 2);
        m->tiles++;
    } else if (kind < 8) {
        static const char *const forms[] = {
            "y = final(op, recv from left)", "w[1 +: n] = recv from left",
            "y = op(x, recv from left)",
            "y = final(op, select(rank == 0, recv from left, recv from left))",
            "v[0, :] op= recv from left"};
        peal_text_puts(&m->text, "send ");
        put_operand(m, 1);
        peal_text_printf(&m->text, " to right\n    %s", forms[below(&m->dice, 5)]);
    } else if (kind < 9) {
        peal_text_printf(&m->text, "if rank %% 2 == 0 { %s = ", part(m));
        put_value(m, 1);
        peal_text_printf(&m->text, " } else { %s op= x }", part(m));
    } else {
        put_wave(m);
        const char *rank = below(&m->dice, 2) ? "right" : "root";
        peal_text_printf(&m->text, "    %s = w@%s[%u +: n]\n", part(m), rank,
                         2 * below(&m->dice, 2));
        put_wave(m);
    }
    peal_text_puts(&m->text, "\n");
}

static void make_text(struct maker *m)
{
    m->text.len = 0;
    peal_text_puts(&m->text,
                   "kernel k(in x: T[n], out y: T[n], op: reduce, root: int) {\n"
                   "    window w: T[2 * n + 2]\n    window v: T[2, n]\n    signal s[nranks]\n"
                   "    let right = (rank + 1) % nranks\n"
                   "    let left = (rank - 1) % nranks\n"
                   "    y = x\n    w = fill(3, 2 * n + 2)\n    v = fill(rank, 2, n)\n"
                   "    w[1 +: n] = x\n");
    for (uint32_t i = 3 + below(&m->dice, 6); i; i--)
        put_statement(m);
    put_wave(m);
    peal_text_puts(&m->text, "    y = op(y, w[1 +: n], v[1, :])\n");
    put_wave(m);
    peal_text_puts(&m->text, "}\n");
}

struct tally {
    unsigned agreed, unproved, refused, wrong;
};

static void compare(struct maker *m, const struct peal_kernel *kernel, uint64_t seed,
                    struct peal_diags *diags, struct tally *t)
{
    struct peal_arena arena;
    struct peal_plan *plan = NULL;
    struct peal_verification *v = NULL;
    struct peal_verify_options options = {.no_result = true, .no_story = true};
    struct peal_plan_request request = {.kernel = kernel, .count = 1 + (int64_t)below(&m->dice, 6)};
    struct peal_bind bind;
    request.bind = (struct peal_bind){.nranks = 2 + below(&m->dice, 3),
                                      .rank = PEAL_NONE,
                                      .symmetric = true,
                                      .no_fuse = seed % 2};
    request.bind.dtype = below(&m->dice, 4) ? PEAL_F32 : PEAL_F16;
    request.bind.reduce = below(&m->dice, 2) ? PEAL_AVG : PEAL_SUM;
    request.bind.root = below(&m->dice, request.bind.nranks);
    peal_arena_init(&arena, 0);
    if (peal_request_bind(&request, &arena, diags, &bind) != PEAL_OK ||
        peal_instantiate(kernel, &bind, diags, &plan) != PEAL_OK) {
        t->refused++;
    } else if (peal_verify_plan(plan, &options, &v) != PEAL_OK || v->verdict != PEAL_PROVED) {
        t->unproved++;
    } else {
        peal_verify_against_text(plan, kernel, &bind, v);
        t->agreed += v->text_agrees;
        t->wrong += !v->text_agrees;
        if (!v->text_agrees)
            printf("text %llu, %s, %u ranks, count %lld: %s%s\n%s\n", (unsigned long long)seed,
                   bind.no_fuse ? "not fused" : "fused", bind.nranks, (long long)request.count,
                   peal_text_or_empty(v->why), peal_text_or_empty(v->text_unchecked),
                   peal_text_get(&m->text));
    }
    peal_verification_free(v);
    free(plan);
    peal_arena_release(&arena);
}

static void check(struct maker *m, uint64_t seed, struct tally *t)
{
    struct peal_diags diags;
    struct peal_program *program = NULL;
    const struct peal_kernel *kernel = NULL;
    const char *text = peal_text_get(&m->text);
    peal_diags_init(&diags);
    if (peal_program_text("k.peal", text, m->text.len, &diags, &program) == PEAL_OK)
        kernel = peal_program_kernel(program, NULL, &diags);
    if (kernel)
        compare(m, kernel, seed, &diags, t);
    else if (++t->refused < 3 && diags.list.len)
        printf("# %s\n%s\n", diags.list.at[0].message, text);
    peal_program_close(program);
    peal_diags_release(&diags);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    struct maker m = {0};
    struct tally t = {0};
    for (uint64_t seed = first; seed < first + count; seed++) {
        m = (struct maker){.dice = seed * 7919 + 1, .text = m.text};
        make_text(&m);
        check(&m, seed, &t);
    }
    printf("seeds %llu to %llu: %u plans agree with their texts, %u are not proved, %u refused, %u "
           "differ\n",
           (unsigned long long)first, (unsigned long long)(first + count - 1), t.agreed, t.unproved,
           t.refused, t.wrong);
    peal_text_release(&m.text);
    return t.wrong || t.agreed < count / 2; /* most texts are proved */
}
