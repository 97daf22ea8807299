/* SPDX-License-Identifier: Apache-2.0 */
/* What deduce finds: directions, tiles, periods, calls. What it refuses is in tests/golden/lang. */
#include "lang/deduce/deduce.h"
#include "lang/library.h"
#include "lang/syntax/parse.h"
#include "lang/syntax/print.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int open_library(void **state)
{
    struct peal_library *library = NULL;
    enum peal_status status = peal_library_open(NULL, &library);
    *state = library;
    return status == PEAL_OK ? 0 : -1;
}

static int close_library(void **state)
{
    peal_library_close(*state);
    return 0;
}

/* The module of a text that must be right. The source must outlive the module. */
static struct peal_module *deduced(void **state, int line, const struct peal_source *source)
{
    struct peal_diags diags;
    struct peal_module *module = NULL;
    peal_diags_init(&diags);
    enum peal_status status = peal_parse(source, &diags, &module);
    if (status == PEAL_OK)
        status = peal_deduce(module, peal_library_module(*state), &diags);
    if (status != PEAL_OK) {
        struct peal_text out = {0};
        peal_diags_print(&diags, false, &out);
        fail_msg("row at line %d:\n%s", line, peal_text_get(&out));
    }
    peal_diags_release(&diags);
    return module;
}

/* The last kernel of the module. */
static struct peal_kernel *last_kernel(const struct peal_module *module)
{
    struct peal_kernel *kernel = module->kernels;
    while (kernel->next)
        kernel = kernel->next;
    return kernel;
}

TEST(directions_follow_from_what_is_done)
{
    static const struct {
        int line;
        const char *dirs; /* of x and y: - never touched counts as in */
        const char *body;
    } rows[] = {
        {__LINE__, "in,out", "y = x"},
        {__LINE__, "in,in", ""},
        {__LINE__, "in,inout", "y += x"},
        {__LINE__, "in,out", "y[0 of 2] = x[0 of 2] + 1 y[1 of 2] = 0"},
        {__LINE__, "in,out", "send x to rank y = recv from rank"},
        {__LINE__, "inout,in", "let t = y x = op(x, t)"},
        {__LINE__, "in,out",
         "if rank == 0 { y = x } else { y = select(rank == 1, x, recv from 0) }"},
        {__LINE__, "in,out", "y[0 +: len(x)] = recv from 0 send x to 0"},
        {__LINE__, "inout,in", "allreduce(x, op)"},
        {__LINE__, "in,out", "allreduce(x, y, op, ring)"},
        {__LINE__, "inout,in", "allreduce(x, op, ring)"},
        {__LINE__, "inout,in", "for i in 0 .. 3 { allreduce(x, op) }"},
        {__LINE__, "in,out", "y = x@((rank + 1) % nranks)"},
        {__LINE__, "inout,in", "x@0[rank] max= y[0]"},
    };
    static const char *const names[] = {"?", "in", "out", "inout"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        char dirs[32];
        int len =
            snprintf(text, sizeof text,
                     "kernel k(x: window T[n], y: window T[n], op: reduce) { %s }", rows[i].body);
        struct peal_source source = {"t.peal", text, (size_t)len};
        struct peal_module *module = deduced(state, rows[i].line, &source);
        const struct peal_kernel *k = module->kernels;
        snprintf(dirs, sizeof dirs, "%s,%s", names[k->params[0]->dir], names[k->params[1]->dir]);
        if (strcmp(dirs, rows[i].dirs) != 0)
            fail_msg("row at line %d: %s", rows[i].line, dirs);
        peal_module_free(module);
    }
}

TEST(tiles_are_wide_where_arithmetic_reaches_them)
{
    static const struct {
        int line;
        bool wide; /* is tile a */
        const char *body;
    } rows[] = {
        {__LINE__, false, "let a = x"},
        {__LINE__, true, "let a = x + x"},
        {__LINE__, true, "let a = x a = op(a, x)"},
        {__LINE__, true, "let a = x for i in 0 .. 3 { a = op(a, recv from i) }"},
        {__LINE__, false, "let a = x for i in 0 .. 3 { a = recv from i }"},
        {__LINE__, false, "let a: T[n] = recv from 0"},
        {__LINE__, true, "let a: T[n] = recv from 0 a = a * 2"},
        {__LINE__, true, "let a: wide T[n] = recv from 0"},
        {__LINE__, true, "let a = x let b = x + x let c = b a = c"},
        {__LINE__, true, "let a = x let b = x for i in 0 .. 9 { a = b b = x * x }"},
        {__LINE__, true, "let a = w"},
        {__LINE__, false, "let a = fill(0, n)"},
        {__LINE__, true, "let a = select(rank == 0, x, exp(x))"},
        {__LINE__, false, "let a = id(x)"},
        {__LINE__, false, "let a = f + f"}, /* f32 has nothing wider */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        int len = snprintf(text, sizeof text,
                           "kernel k(x: T[n], f: f32[n], op: reduce) { window wide w: T[n] %s }",
                           rows[i].body);
        struct peal_source source = {"t.peal", text, (size_t)len};
        struct peal_module *module = deduced(state, rows[i].line, &source);
        const struct peal_symbol *a = module->kernels->symbols;
        while (strcmp(a->name, "a") != 0)
            a = a->next;
        if (a->kind != PEAL_SYMBOL_TILE || a->type.elem.wide != rows[i].wide)
            fail_msg("row at line %d", rows[i].line);
        peal_module_free(module);
    }
}

TEST(calls_find_their_kernel_and_its_arguments)
{
    static const struct {
        int line;
        const char *call;
        const char *callee;
        const char *args; /* by parameter; '-' = left out */
        const char *signal;
    } rows[] = {
        {__LINE__, "allreduce(g, sum)", "allreduce_window", "g sum", ""},
        {__LINE__, "allreduce(g, s, sum)", "allreduce_window", "g sum", "s"},
        {__LINE__, "allreduce(g, sum, ring)", "allreduce_ring", "g g sum", ""},
        {__LINE__, "allreduce(g, h, op, ring)", "allreduce_ring", "g h op", ""},
        {__LINE__, "allreduce_ring(g, h, op)", "allreduce_ring", "g h op", ""},
        {__LINE__, "allreduce(g[0 of 2], max, small)", "allreduce_small",
         "g[0 of 2] g[0 of 2] max -", ""},
        {__LINE__, "allreduce(g, max, 2 * n, small)", "allreduce_small", "g g max 2 * n", ""},
        {__LINE__, "broadcast(g, 3)", "broadcast_window", "g 3", ""},
        {__LINE__, "barrier()", "barrier_window", "", ""},
        {__LINE__, "barrier(s)", "barrier_window", "", "s"},
        {__LINE__, "mine(g, h)", "mine", "g h", ""},
        {__LINE__, "mine(g)", "mine", "g g", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        int len = snprintf(text, sizeof text,
                           "kernel mine(a: T[m], b: T[m]) { b = a }\n"
                           "kernel k(g: window T[n], h: T[n], op: reduce) { signal s[nranks] %s }",
                           rows[i].call);
        struct peal_source source = {"t.peal", text, (size_t)len};
        struct peal_module *module = deduced(state, rows[i].line, &source);
        const struct peal_stmt *stmt = last_kernel(module)->body->next;
        struct peal_call_expr call = peal_call_bind(stmt);
        struct peal_text args = {0};
        struct peal_text signal = {0};
        for (int j = 0; j < call.callee->nparams; j++) {
            peal_text_puts(&args, j ? " " : "");
            if (call.args[j])
                peal_print_expr(call.args[j], &args);
            else
                peal_text_puts(&args, "-");
        }
        if (call.signal)
            peal_print_expr(call.signal, &signal);
        if (strcmp(call.callee->name, rows[i].callee) != 0 ||
            strcmp(peal_text_get(&args), rows[i].args) != 0 ||
            strcmp(peal_text_get(&signal), rows[i].signal) != 0)
            fail_msg("row at line %d: %s(%s) with '%s'", rows[i].line, call.callee->name,
                     peal_text_get(&args), peal_text_get(&signal));
        peal_text_release(&args);
        peal_text_release(&signal);
        peal_module_free(module);
    }
}

TEST(the_period_is_the_least_common_one)
{
    static const struct {
        int line;
        int period;
        const char *body;
    } rows[] = {
        {__LINE__, 1, "y = x"},
        {__LINE__, 2, "y = s[launch mod 2 of 2]"},
        {__LINE__, 12,
         "y = s[launch mod 4 of 4] y = s[launch mod 3 of 3] y = s[launch mod 2 of 2]"},
        {__LINE__, 2, "allreduce(x, y, sum, small)"},
        {__LINE__, 6, "allreduce(x, y, sum, small) y = s[launch mod 3 of 3]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        int len = snprintf(text, sizeof text, "kernel k(x: T[n], y: T[n]) { window s: T[9] %s }",
                           rows[i].body);
        struct peal_source source = {"t.peal", text, (size_t)len};
        struct peal_module *module = deduced(state, rows[i].line, &source);
        if (module->kernels->period != rows[i].period)
            fail_msg("row at line %d: %d", rows[i].line, module->kernels->period);
        peal_module_free(module);
    }
}

/* `head`, `count` times `unit` with %d replaced by a running number, `end`. */
static struct peal_text repeated(const char *head, const char *unit, int count, const char *end)
{
    struct peal_text text = {0};
    peal_text_puts(&text, head);
    for (int i = 0; i < count; i++) {
        const char *at = strstr(unit, "%d");
        const char *rest = unit;
        for (; at; rest = at + 2, at = strstr(rest, "%d")) {
            peal_text_add(&text, rest, (size_t)(at - rest));
            peal_text_printf(&text, "%d", i);
        }
        peal_text_puts(&text, rest);
    }
    peal_text_puts(&text, end);
    return text;
}

/* Texts that would take very long if any step visited all names, kernels or tiles. */
TEST(large_texts_take_no_longer_than_their_length)
{
    static const struct {
        int line;
        const char *head, *unit, *end;
        enum peal_status expected;
    } rows[] = {
        {__LINE__, "kernel k() {\n", "let a%d = rank + %d\n", "}", PEAL_OK},
        {__LINE__, "kernel k() {\n", "let a%d = b%d\n", "}", PEAL_INVALID},
        {__LINE__, "kernel k() {\n", "for i in 0 .. 2 { let a = i }\n", "}", PEAL_OK},
        {__LINE__, "kernel k(x: T[n]) {\nlet a = x\n", "let t%d = a a = t%d\n", "a = a + a }",
         PEAL_OK},
        {__LINE__, "", "kernel k%d(x: T[n]) { let t = x }\n", "kernel k(x: T[n]) { k9(x) }",
         PEAL_OK},
        {__LINE__, "", "kernel k%d(x: T[n]) { x = x x%d(x) }\n", "", PEAL_INVALID},
        {__LINE__, "kernel k() {\nlet c = 1\n",
         "signal s%d[c] notify s%d[0] += 1 wait s%d[0] >= 1\n", "}", PEAL_OK},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_text text = repeated(rows[i].head, rows[i].unit, 50000, rows[i].end);
        struct peal_source source = {"t.peal", peal_text_get(&text), text.len};
        struct peal_module *module = NULL;
        assert_int_equal(peal_parse(&source, NULL, &module), PEAL_OK);
        enum peal_status status = peal_deduce(module, peal_library_module(*state), NULL);
        if (status != rows[i].expected)
            fail_msg("row at line %d: %s", rows[i].line, peal_status_text(status));
        peal_module_free(module);
        peal_text_release(&text);
    }
}

/* Nesting that could double the work at every level. */
TEST(deep_texts_take_no_longer_than_their_length)
{
    static const struct {
        int line;
        const char *head, *open, *middle, *close, *end;
    } rows[] = {
        {__LINE__, "kernel k(c: int[9]) { let a = ", "c[", "0", "]", "}"},
        {__LINE__, "kernel k() { let a = ", "min(1, ", "0", ")", "}"},
        {__LINE__, "kernel k(x: T[n]) { x = ", "max(x, ", "x", ")", "}"},
        {__LINE__, "kernel k(x: T[n]) { x = ", "select(rank == 0, x, ", "x", ")", "}"},
        {__LINE__, "kernel k(x: T[n]) { x = ", "((recv from 0) + ", "x", ")", "}"},
        {__LINE__, "kernel k(x: T[n]) { x = ", "fill(len(x) - ", "0", ", n)", "}"},
        {__LINE__, "kernel k() { ", "if rank == 0 { ", "barrier()", "}", "}"},
    };
    enum { LEVELS = 90 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_text text = {0};
        peal_text_puts(&text, rows[i].head);
        for (int j = 0; j < LEVELS; j++)
            peal_text_puts(&text, rows[i].open);
        peal_text_puts(&text, rows[i].middle);
        for (int j = 0; j < LEVELS; j++)
            peal_text_puts(&text, rows[i].close);
        peal_text_puts(&text, rows[i].end);
        struct peal_source source = {"t.peal", peal_text_get(&text), text.len};
        struct peal_module *module = NULL;
        if (peal_parse(&source, NULL, &module) != PEAL_OK)
            fail_msg("row at line %d does not parse", rows[i].line);
        (void)peal_deduce(module, peal_library_module(*state), NULL); /* it ends */
        peal_module_free(module);
        peal_text_release(&text);
    }
}

int main(void)
{
    return unit_run_with(open_library, close_library);
}
