/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser reports about texts outside the grammar, and what it survives. */
#include "lang/syntax/parse.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The diagnostics of a text that must be refused. Released by the caller. */
static struct peal_text errors_of(const char *text, size_t len, enum peal_status *status)
{
    struct peal_source source = {"t.peal", text, len};
    struct peal_diags diags;
    struct peal_module *module = NULL;
    struct peal_text out = {0};
    peal_diags_init(&diags);
    *status = peal_parse(&source, &diags, &module);
    peal_diags_print(&diags, false, &out);
    peal_module_free(module);
    peal_diags_release(&diags);
    return out;
}

TEST(errors_are_reported_with_their_place)
{
    static const struct {
        int line;
        const char *text;
        const char *expected;
    } rows[] = {
        {__LINE__, "", "t.peal:1:1: error: there is no kernel in this text\n"},
        {__LINE__, "kernel k(x: T[n]",
         "t.peal:1:17: error: expected ')', found the end of the text\n    kernel k(x: T[n]\n"
         "                    ^\n"},
        {__LINE__, "kernel k(in op: reduce) { }",
         "t.peal:1:17: error: only buffers have a direction; 'op' is always read\n"
         "    kernel k(in op: reduce) { }\n                    ^~~~~~\n"},
        {__LINE__, "kernel k(x: q8[n]) { }",
         "t.peal:1:13: error: expected an element type (T, f16, bf16, f32, f64, i8, u8,\n"
         "  i32 or i64), found 'q8'\n    kernel k(x: q8[n]) { }\n                ^~\n"},
        {__LINE__, "kernel k() {\n    let for = 1\n    wait s > 1\n}",
         "t.peal:2:9: error: 'for' is a word of the language and cannot be a new name\n"
         "        let for = 1\n            ^~~\n"
         "t.peal:3:12: error: expected '>=' or '==', found '>'\n"
         "        wait s > 1\n               ^\n"},
        {__LINE__, "kernel k() {\n  for i in 0 .. {\n    x = \"a\"\n  }\n  y = = 2\n}",
         "t.peal:2:17: error: expected an expression, found '{'\n      for i in 0 .. {\n"
         "                    ^\n"
         "t.peal:5:7: error: expected an expression, found '='\n      y = = 2\n          ^\n"},
        {__LINE__, "kernel k() {\n  if a {\n    if b {\n  x = 1\n}\n",
         "t.peal:6:1: error: expected '}', found the end of the text\n"
         "t.peal:2:8: note: the block starts here\n      if a {\n           ^\n"},
        {__LINE__, "kernel a() {\n  x = 1\nkernel b() { }",
         "t.peal:3:1: error: expected '}', found 'kernel'\n    kernel b() { }\n    ^~~~~~\n"
         "t.peal:1:12: note: the block starts here\n    kernel a() {\n               ^\n"},
        {__LINE__, "kernel k() { let a = 12ab }",
         "t.peal:1:22: error: a number may not end in letters\n    kernel k() { let a = 12ab }\n"
         "                         ^~~~\n"},
        {__LINE__, "kernel k() { let a = 9223372036854775808 }",
         "t.peal:1:22: error: this number is too large\n    kernel k() { let a = "
         "9223372036854775808 }\n"
         "                         ^~~~~~~~~~~~~~~~~~~\n"},
        {__LINE__, "kernel k() { assert a, \"b\n}",
         "t.peal:1:24: error: this string does not end on its line\n    kernel k() { assert a, "
         "\"b\n"
         "                           ^~\n"},
        {__LINE__, "kernel k() { let a = launch mod 5 }",
         "t.peal:1:33: error: launch mod 5: the number must be from 1 to 4\n"
         "    kernel k() { let a = launch mod 5 }\n                                    ^\n"},
        {__LINE__, "kernel k() { let a = b == not c }",
         "t.peal:1:27: error: 'not' as an operand needs parentheses\n"
         "    kernel k() { let a = b == not c }\n                              ^~~\n"},
        {__LINE__, "// a comment, then no kernel\n/\n",
         "t.peal:2:1: error: expected 'kernel', found '/'\n    /\n    ^\n"},
        {__LINE__, "kernel k() { x *= 2 }",
         "t.peal:1:16: error: expected '=', '+=' or a reduce operation and '=', found '*'\n"
         "    kernel k() { x *= 2 }\n                   ^\n"},
        {__LINE__, "kernel k() { \xc3\xa9 }",
         "t.peal:1:14: error: this character has no meaning here\n    kernel k() { \xc3\xa9 }\n"
         "                 ^~\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum peal_status status;
        struct peal_text out = errors_of(rows[i].text, strlen(rows[i].text), &status);
        if (status != PEAL_INVALID || strcmp(peal_text_get(&out), rows[i].expected) != 0)
            fail_msg("row at line %d: status %d\n%s", rows[i].line, status, peal_text_get(&out));
        peal_text_release(&out);
    }
}

/* Sanitizers take terabytes of address space. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TAKES_TERABYTES true
#else
#define TAKES_TERABYTES false
#endif

static char *repeat(const char *head, const char *unit, size_t len);

/* With little address space, the reason is not the limit of a text. */
TEST(a_system_without_memory_is_not_a_long_text)
{
    enum { MORE = 8 << 20 };
    if (TAKES_TERABYTES)
        skip();
    char *text = repeat("kernel k() {\n", "let a = 1\n", (size_t)10 << 20);
    const struct peal_source source = {"t.peal", text, strlen(text)};
    struct peal_diags diags;
    struct peal_module *module = NULL;
    struct peal_text out = {0};
    struct rlimit before;
    unsigned long pages = 0;
    peal_diags_init(&diags);
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    /* There is room for one message more. */
    peal_diag_error(&diags, (struct peal_pos){.source = &source}, "another one");
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + MORE;
    assert_int_equal(setrlimit(RLIMIT_AS, &(struct rlimit){bytes, before.rlim_max}), 0);
    enum peal_status status = peal_parse(&source, &diags, &module);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    peal_diags_print(&diags, false, &out);
    assert_int_equal(status, PEAL_NO_MEMORY);
    assert_non_null(strstr(peal_text_get(&out), "the system has no memory for the text"));
    peal_text_release(&out);
    peal_module_free(module);
    peal_diags_release(&diags);
    free(text);
}

/* `head`, then `unit` repeated up to len bytes. */
static char *repeat(const char *head, const char *unit, size_t len)
{
    size_t head_len = strlen(head);
    size_t unit_len = strlen(unit);
    char *text = malloc(len + 1);
    assert_non_null(text);
    memcpy(text, head, head_len);
    for (size_t at = head_len; at < len; at++)
        text[at] = unit[(at - head_len) % unit_len];
    text[len] = '\0';
    return text;
}

TEST(ten_megabytes_of_anything_end_in_an_error)
{
    static const struct {
        int line;
        const char *head;
        const char *unit;
        const char *expected;
    } rows[] = {
        {__LINE__, "", "\x01\xff ", "has no meaning here"},
        {__LINE__, "", "(", "expected 'kernel'"},
        {__LINE__, "kernel k() { let a = ", "(", "nested deeper than 200 levels"},
        {__LINE__, "kernel k() { let a = ", "-", "nested deeper than 200 levels"},
        {__LINE__, "kernel k() { let a = ", "x@(", "nested deeper than 200 levels"},
        {__LINE__, "kernel k() { let a = ", "recv from ", "nested deeper than 200 levels"},
        {__LINE__, "kernel k() { let a = 1", " + 1", "an expression of more than 500 levels"},
        {__LINE__, "kernel k() { let a = x", "[0]", "an expression of more than 500 levels"},
        {__LINE__, "kernel k() { ", "for i in 0 .. 2 {", "nested deeper than 200 levels"},
        {__LINE__, "kernel k() { if a { }", " else if a { }", "nested deeper than 200 levels"},
        {__LINE__, "kernel k() {\n", "let a = 1\n", "needs more than 256 MiB of memory"},
        {__LINE__, "kernel k(", "a: int, ", "has more than 64 parameters"},
        {__LINE__, "", "kernel k() {\n", "expected '}', found 'kernel'"},
        {__LINE__, "kernel k() {\n", "x y z\n", "and"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = repeat(rows[i].head, rows[i].unit, (size_t)10 << 20);
        enum peal_status status;
        struct peal_text out = errors_of(text, strlen(text), &status);
        if (status == PEAL_OK || !strstr(peal_text_get(&out), rows[i].expected))
            fail_msg("row at line %d: status %d\n%.2000s", rows[i].line, status,
                     peal_text_get(&out));
        peal_text_release(&out);
        free(text);
    }
}

int main(void)
{
    return unit_run();
}
