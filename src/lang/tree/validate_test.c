/* SPDX-License-Identifier: Apache-2.0 */
/* A good kernel is accepted, and every way of breaking it is found. */
#include "lang/deduce/deduce.h"
#include "lang/library.h"
#include "lang/syntax/parse.h"
#include "lang/tree/validate.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "kernel other(in z: T[n]) {\n"
                           "    let t = z\n"
                           "}\n"
                           "kernel k(in x: T[n], out y: T[n], op: reduce) {\n"
                           "    let a = rank + 1\n"
                           "    for i in 0 .. a {\n"
                           "        let b = i\n"
                           "        y[b] = op(x[i], x[b])\n"
                           "    }\n"
                           "    other(x)\n"
                           "}\n";

/* Statements of kernel k, after deduce. */
struct parts {
    struct peal_kernel *other, *k;
    struct peal_stmt *let_a, *loop, *let_b, *assign, *call;
};

static void break_slot(struct parts *p)
{
    p->let_a->symbol->slot = p->k->params[0]->slot;
}

static void break_count(struct parts *p)
{
    p->k->nslots++;
}

static void break_type(struct parts *p)
{
    p->let_a->a->b->type.kind = PEAL_TYPE_NONE;
}

static void break_symbol(struct parts *p)
{
    p->let_a->a->a->symbol = p->other->params[0];
    p->let_a->a->a->name = p->other->params[0]->name;
}

static void break_no_symbol(struct parts *p)
{
    p->let_a->a->a->symbol = NULL;
}

static void break_sharing(struct parts *p)
{
    p->loop->other = p->loop->body;
}

static void break_cycle(struct parts *p)
{
    p->assign->next = p->let_b;
}

static void break_tree(struct parts *p)
{
    p->let_a->a->a = p->let_a->a;
}

static void break_scope(struct parts *p)
{
    p->loop->b->symbol = p->let_b->symbol;
    p->loop->b->name = p->let_b->symbol->name;
}

static void break_names(struct parts *p)
{
    p->let_b->symbol->name = p->let_a->symbol->name;
}

static void break_lowered(struct parts *p)
{
    p->k->lowered = true;
}

static void break_callee(struct parts *p)
{
    p->call->callee = NULL;
}

static void break_function(struct parts *p)
{
    p->assign->b->builtin = PEAL_BUILTIN_NONE;
}

static void break_period(struct parts *p)
{
    p->k->period = 0;
}

static void break_direction(struct parts *p)
{
    p->k->params[0]->dir = 0;
}

static void break_nothing(struct parts *p)
{
    (void)p;
}

TEST(every_violation_is_seen)
{
    static const struct {
        int line;
        void (*change)(struct parts *p);
        const char *expected; /* part of the message; "" = none */
    } rows[] = {
        {__LINE__, break_nothing, ""},
        {__LINE__, break_slot, "has no slot of its own"},
        {__LINE__, break_count, "symbols and"},
        {__LINE__, break_type, "an expression has no type"},
        {__LINE__, break_symbol, "name 'z' has the symbol of another kernel"},
        {__LINE__, break_no_symbol, "name 'rank' has no symbol"},
        {__LINE__, break_sharing, "a statement stands in two places"},
        {__LINE__, break_cycle, "a statement stands in two places"},
        {__LINE__, break_tree, "an expression has no end"},
        {__LINE__, break_scope, "'b' is used where it is not visible"},
        {__LINE__, break_names, "two visible symbols are called 'a'"},
        {__LINE__, break_lowered, "it is lowered, and a call of 'other' is left"},
        {__LINE__, break_callee, "the call of 'other' is not resolved"},
        {__LINE__, break_function, "function 'op' is not resolved"},
        {__LINE__, break_period, "its period is 0"},
        {__LINE__, break_direction, "parameter 'x' has no direction"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_source source = {"t.peal", text, strlen(text)};
        struct peal_diags diags;
        struct peal_module *module = NULL;
        peal_diags_init(&diags);
        assert_int_equal(peal_parse(&source, &diags, &module), PEAL_OK);
        assert_int_equal(peal_deduce(module, NULL, &diags), PEAL_OK);
        struct parts p = {.other = module->kernels, .k = module->kernels->next};
        p.let_a = p.k->body;
        p.loop = p.let_a->next;
        p.let_b = p.loop->body;
        p.assign = p.let_b->next;
        p.call = p.loop->next;
        rows[i].change(&p);
        bool good = peal_validate(module, "a pass", &diags);
        const char *message = diags.list.len ? diags.list.at[0].message : "";
        if (good != !*rows[i].expected || !strstr(message, rows[i].expected) ||
            (!good && !strstr(message, "after a pass, kernel 'k' is not well formed: ")))
            fail_msg("row at line %d: %s", rows[i].line, message);
        peal_diags_release(&diags);
        peal_module_free(module);
    }
}

TEST(the_library_is_well_formed)
{
    struct peal_library *library = NULL;
    assert_int_equal(peal_library_open(NULL, &library), PEAL_OK);
    assert_true(peal_validate(peal_library_module(library), "deduce", NULL));
    peal_library_close(library);
}

int main(void)
{
    return unit_run();
}
