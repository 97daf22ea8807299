/* SPDX-License-Identifier: Apache-2.0 */
/* Canonical text: what the printer makes of a parsed text, and that it is stable. */
#include "lang/syntax/parse.h"
#include "lang/syntax/print.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The printed form of a text, or its diagnostics. Released by the caller. */
static struct peal_text print_of(const char *text)
{
    struct peal_source source = {"t.peal", text, strlen(text)};
    struct peal_diags diags;
    struct peal_module *module = NULL;
    struct peal_text out = {0};
    peal_diags_init(&diags);
    if (peal_parse(&source, &diags, &module) == PEAL_OK)
        peal_print_module(module, &out);
    else
        peal_diags_print(&diags, false, &out);
    peal_module_free(module);
    peal_diags_release(&diags);
    return out;
}

static void check_text(int line, const char *text, const char *expected)
{
    struct peal_text once = print_of(text);
    struct peal_text twice = print_of(peal_text_get(&once));
    if (strcmp(peal_text_get(&once), expected) != 0)
        fail_msg("row at line %d: printed as\n%s", line, peal_text_get(&once));
    if (strcmp(peal_text_get(&twice), expected) != 0)
        fail_msg("row at line %d: printed the second time as\n%s", line, peal_text_get(&twice));
    peal_text_release(&once);
    peal_text_release(&twice);
}

TEST(expressions_print_with_the_fewest_parentheses)
{
    static const struct {
        int line;
        const char *text;
        const char *expected;
    } rows[] = {
        {__LINE__, "(a + b) + c", "a + b + c"},
        {__LINE__, "a + (b + c)", "a + (b + c)"},
        {__LINE__, "(a*b)+(c*d)", "a * b + c * d"},
        {__LINE__, "(a+b)*c % (d)", "(a + b) * c % d"},
        {__LINE__, "a<<(b+1)|c&(d^e)", "a << b + 1 | c & (d ^ e)"},
        {__LINE__, "- - a", "--a"},
        {__LINE__, "-(a + b)", "-(a + b)"},
        {__LINE__, "a - -b", "a - -b"},
        {__LINE__, "not (a == b) and (not c or d)", "not a == b and (not c or d)"},
        {__LINE__, "(not a) == b", "(not a) == b"},
        {__LINE__, "x[1 of 2][(c) of k]@(p+1)[:, a+:len]",
         "x[1 of 2][c of k]@(p + 1)[:, a +: len]"},
        {__LINE__, "x@p@peer(N)", "x@p@peer(N)"},
        {__LINE__, "x@(p[0])", "x@(p[0])"},
        {__LINE__, "op(a, recv from left+1 on up)", "op(a, recv from left + 1 on up)"},
        {__LINE__, "a + recv from left", "a + (recv from left)"},
        {__LINE__, "recv_slot from child (i)", "recv_slot from child i"},
        {__LINE__, "recv from child(i+1)", "recv from child (i + 1)"},
        {__LINE__, "recv from (N)", "recv from (N)"},
        {__LINE__, "recv from (N + 1)", "recv from (N + 1)"},
        {__LINE__, "recv from (recv from N on up) on down",
         "recv from (recv from N on up) on down"},
        {__LINE__, "has(S) or peer(child 2) == N", "has(S) or peer(child 2) == N"},
        {__LINE__, "(peek s[rank])[0] + launch mod 2", "(peek s[rank])[0] + (launch mod 2)"},
        {__LINE__, "2*(launch+1) - (launch mod 2)", "2 * (launch + 1) - (launch mod 2)"},
        {__LINE__, "and(a, b) or or(c, d)", "and(a, b) or or(c, d)"},
        {__LINE__, "f(and, or, xor)", "f(and, or, xor)"},
        {__LINE__, "0.5 + 1e3 + 2.50e-7 + 0.1", "0.5 + 1e+03 + 2.5e-07 + 0.1"},
        {__LINE__, "1.0", "1.0"},
        {__LINE__, "9223372036854775807", "9223372036854775807"},
        {__LINE__, "send[q] + recv[q] + sum(send, q)", "send[q] + recv[q] + sum(send, q)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        char expected[256];
        snprintf(text, sizeof text, "kernel k() { let v = %s }", rows[i].text);
        snprintf(expected, sizeof expected, "kernel k() {\n    let v = %s\n}\n", rows[i].expected);
        check_text(rows[i].line, text, expected);
    }
}

TEST(statements_print_in_their_canonical_form)
{
    static const struct {
        int line;
        const char *text;
        const char *expected;
    } rows[] = {
        {__LINE__, "window wide part:T[n] private tmp:f32[rows,cols]",
         "    window wide part: T[n]\n    private tmp: f32[rows, cols]\n"},
        {__LINE__,
         "signal ready,free[nranks] signal shared a signal raw b signal raw uninitialised c",
         "    signal ready\n    signal free[nranks]\n    signal shared a\n    signal raw b\n"
         "    signal raw uninitialised c\n"},
        {__LINE__, "channel up,down grid R,C torus grid 2,2 tree 2 tree 3 from root",
         "    channel up\n    channel down\n    grid R, C torus\n    grid 2, 2\n    tree 2\n"
         "    tree 3 from root\n"},
        {__LINE__, "let t:wide T[n]=recv from left var i=0 i=i+1",
         "    let t: wide T[n] = recv from left\n    var i = 0\n    i = i + 1\n"},
        {__LINE__, "y[0 of 2] = x y@p sum= x y@p += x exclusive y op = x y and= x",
         "    y[0 of 2] = x\n    y@p += x\n    y@p += x\n    exclusive y op= x\n    y and= x\n"},
        {__LINE__, "notify s[rank]@p+=1 notify relaxed s=2 wait s>=1 wait relaxed s==v at launch-2",
         "    notify s[rank]@p += 1\n    notify relaxed s = 2\n    wait s >= 1\n"
         "    wait relaxed s == v at launch - 2\n"},
        {__LINE__,
         "send x to E send x+y to (rank+1)%n on up free t wait free >= 1 notify free@p += 1",
         "    send x to E\n    send x + y to (rank + 1) % n on up\n    free t\n    wait free >= 1\n"
         "    notify free@p += 1\n"},
        {__LINE__, "for i in 1..n step -1 { } for p in peers { barrier() }",
         "    for i in 1 .. n step -1 {\n    }\n    for p in peers {\n        barrier()\n    }\n"},
        {__LINE__, "if a { f(x) } else if b { g(x, and) } else { h() }",
         "    if a {\n        f(x)\n    } else if b {\n        g(x, and)\n    } else {\n        "
         "h()\n"
         "    }\n"},
        {__LINE__, "assert n > 0, \"a \\\"b\\\" \\\\ \\n\" lane { } lane i in 0 .. 4 { }",
         "    assert n > 0, \"a \\\"b\\\" \\\\ \\n\"\n    lane {\n    }\n    lane i in 0 .. 4 {\n"
         "    }\n"},
        {__LINE__, "scope allreduce_ring { wait s >= 1 }",
         "    scope allreduce_ring {\n        wait s >= 1\n    }\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        char expected[512];
        snprintf(text, sizeof text, "kernel k() { %s }", rows[i].text);
        snprintf(expected, sizeof expected, "kernel k() {\n%s}\n", rows[i].expected);
        check_text(rows[i].line, text, expected);
    }
}

TEST(kernels_keep_their_comment_and_break_long_headers)
{
    check_text(__LINE__,
               "// about the file\n\n//One line.\n//   \n//  Two. \r\nkernel k(in x:T[n],y:window "
               "T[n],op:reduce,"
               "local c:int[nranks]) implements allreduce { y = x // copy\n }\n"
               "kernel b(inout a_rather_long_name: window f32[rows, cols], out another_long_name: "
               "T[n], op: reduce)"
               " { }\nkernel d(most:int=2*n, in x:T[n]) { }",
               "// One line.\n//\n//  Two.\n"
               "kernel k(in x: T[n], y: window T[n], op: reduce, local c: int[nranks]) "
               "implements "
               "allreduce {\n    y = x\n}\n\n"
               "kernel b(\n        inout a_rather_long_name: window f32[rows, cols],\n"
               "        out another_long_name: T[n],\n        op: reduce) {\n}\n\n"
               "kernel d(most: int = 2 * n, in x: T[n]) {\n}\n");
}

int main(void)
{
    return unit_run();
}
