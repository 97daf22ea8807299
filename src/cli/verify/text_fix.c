/* SPDX-License-Identifier: Apache-2.0 */
/* See text_fix.h. What advice is about is read from its words, which advice/ writes; its places come
 * with it. That a change means what the advice tried is not relied upon: the caller verifies the
 * changed text. */
#include "cli/verify/text_fix.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_EDITS = 32, MAX_CODE = 200 };

/* Replaces len bytes from `at` on. */
struct text_edit {
    size_t at, len;
    struct peal_text text;
};

struct text_fixer {
    const struct peal_source *source;
    const struct peal_kernel *kernel;
    const struct peal_verify_advice *advice;
    struct text_edit edits[MAX_EDITS];
    size_t nedits;
    bool failed;
};

static void add_edit(struct text_fixer *f, size_t at, size_t len, const char *text)
{
    if (f->nedits == MAX_EDITS) {
        f->failed = true;
        return;
    }
    struct text_edit *edit = &f->edits[f->nedits++];
    *edit = (struct text_edit){.at = at, .len = len};
    peal_text_puts(&edit->text, text);
    f->failed = f->failed || edit->text.failed;
}

/* ---- places ---- */

/* Where a line begins; the length of the text if there is none. */
static size_t line_start(const struct text_fixer *f, uint32_t line)
{
    size_t at = 0;
    for (uint32_t i = 1; i < line; i++) {
        const char *newline = memchr(f->source->text + at, '\n', f->source->len - at);
        if (!newline)
            return f->source->len;
        at = (size_t)(newline - f->source->text) + 1;
    }
    return at;
}

static size_t offset_of(const struct text_fixer *f, const struct peal_pos *pos)
{
    return line_start(f, pos->line) + pos->col - 1;
}

static size_t end_of(const struct text_fixer *f, const struct peal_expr *expr)
{
    return offset_of(f, &expr->pos) + expr->pos.len;
}

/* The white space that a line begins with. */
static int indent_of(const struct text_fixer *f, size_t at)
{
    int n = 0;
    while (at + (size_t)n < f->source->len && f->source->text[at + (size_t)n] == ' ')
        n++;
    return n;
}

/* Does an advice's place lie in this text, and not in that of a kernel that is called? */
static bool is_here(const struct text_fixer *f, const struct peal_verify_place *place)
{
    return place->line && strcmp(place->file, f->source->name) == 0;
}

/* Past a comment or a string that begins here; otherwise the next byte. */
static size_t skip(const struct text_fixer *f, size_t at)
{
    const char *text = f->source->text;
    size_t len = f->source->len;
    if (text[at] == '/' && at + 1 < len && text[at + 1] == '/') {
        while (at < len && text[at] != '\n')
            at++;
        return at;
    }
    if (text[at] != '"')
        return at + 1;
    for (at++; at < len; at++) {
        if (text[at] == '\\')
            at++;
        else if (text[at] == '"')
            break;
    }
    return at + 1;
}

/* What lies between the kernel's braces. */
static bool find_braces(const struct text_fixer *f, size_t *open, size_t *close)
{
    *open = *close = 0;
    uint32_t depth = 0;
    for (size_t at = offset_of(f, &f->kernel->pos); at < f->source->len; at = skip(f, at)) {
        char c = f->source->text[at];
        if (c == '{' && depth++ == 0)
            *open = at + 1;
        if (c == '}' && depth && --depth == 0) {
            *close = at;
            return true;
        }
    }
    return false;
}

/* ---- statements ---- */

typedef void visit_stmt(struct text_fixer *f, const struct peal_stmt *stmt, const void *context);

static void walk(struct text_fixer *f, const struct peal_stmt *body, visit_stmt *visit,
                 const void *context)
{
    for (const struct peal_stmt *s = body; s; s = s->next) {
        visit(f, s, context);
        walk(f, s->body, visit, context);
        walk(f, s->other, visit, context);
    }
}

static bool is_advised(const struct text_fixer *f, const struct peal_stmt *s)
{
    return s->pos.line == f->advice->at.line && s->pos.col == f->advice->at.col;
}

/* What a visit of waits changes. */
struct wait_change {
    const char *signal; /* those on this signal; NULL: the one that is advised */
    bool all;           /* or all */
    const char *more;   /* added to the threshold; NULL: '==' becomes '>=' */
    int64_t by;         /* the same as a number */
};

static void change_wait(struct text_fixer *f, const struct peal_stmt *s, const void *context)
{
    const struct wait_change *change = context;
    if (s->kind != PEAL_STMT_WAIT)
        return;
    const struct peal_expr *cell = s->a;
    while (cell->kind != PEAL_EXPR_NAME && cell->a)
        cell = cell->a;
    bool named = change->signal && cell->name && strcmp(cell->name, change->signal) == 0;
    if (!change->all && !named && (change->signal || !is_advised(f, s)))
        return;
    if (change->more && s->b->kind == PEAL_EXPR_INT) {
        char number[32];
        snprintf(number, sizeof number, "%" PRId64, s->b->value + change->by);
        add_edit(f, offset_of(f, &s->b->pos), s->b->pos.len, number);
        return;
    }
    if (change->more) {
        add_edit(f, end_of(f, s->b), 0, change->more);
        return;
    }
    size_t from = end_of(f, s->a), to = offset_of(f, &s->b->pos);
    for (size_t at = from; s->is_equal && at + 1 < to; at++) {
        if (memcmp(f->source->text + at, "==", 2) == 0)
            add_edit(f, at, 2, ">=");
    }
}

static void remove_notify(struct text_fixer *f, const struct peal_stmt *s, const void *context)
{
    (void)context;
    if (s->kind != PEAL_STMT_NOTIFY || !is_advised(f, s))
        return;
    size_t from = offset_of(f, &s->pos), to = end_of(f, s->b);
    size_t start = line_start(f, s->pos.line), next = line_start(f, s->pos.line + 1);
    bool alone = from == start + (size_t)indent_of(f, start) && to + 1 == next;
    if (alone)
        add_edit(f, start, next - start, "");
    else
        add_edit(f, from, to - from, "");
}

/* ---- insertions ---- */

/* A line of its own, indented as the line that begins at `like`. */
static void insert_line(struct text_fixer *f, size_t at, int indent, const char *code)
{
    struct peal_text line = {0};
    peal_text_printf(&line, "%*s%s\n", indent, "", code);
    add_edit(f, at, 0, peal_text_get(&line));
    peal_text_release(&line);
}

static void insert_before(struct text_fixer *f, uint32_t line, const char *code)
{
    size_t at = line_start(f, line);
    insert_line(f, at, indent_of(f, at), code);
}

static void insert_after(struct text_fixer *f, uint32_t line, const char *code)
{
    insert_line(f, line_start(f, line + 1), indent_of(f, line_start(f, line)), code);
}

/* At the beginning or the end of the kernel, whose braces then stand on lines of their own. */
static void insert_at(struct text_fixer *f, bool end, const char *code)
{
    enum { INDENT = 4 };
    size_t open, close;
    if (!find_braces(f, &open, &close)) {
        f->failed = true;
        return;
    }
    size_t at = end ? close : open;
    size_t from = at;
    while (from && f->source->text[from - 1] == ' ')
        from--;
    bool own_line = from && f->source->text[from - 1] == '\n';
    struct peal_text text = {0};
    if (end && own_line)
        peal_text_printf(&text, "%*s%s\n", INDENT, "", code);
    else
        peal_text_printf(&text, "\n%*s%s%s", INDENT, "", code, end ? "\n" : "");
    add_edit(f, end ? from : at, 0, peal_text_get(&text));
    peal_text_release(&text);
}

/* A name for a signal that the kernel does not have yet. */
static void find_name(const struct text_fixer *f, char *out, size_t size)
{
    int number = 1;
    snprintf(out, size, "left");
    for (const struct peal_symbol *s = f->kernel->symbols; s;) {
        bool taken = strcmp(s->name, out) == 0;
        s = s->next;
        if (taken) {
            snprintf(out, size, "left_%d", ++number);
            s = f->kernel->symbols;
        }
    }
}

static void insert_barrier(struct text_fixer *f, uint32_t before_line)
{
    char name[32], code[2][MAX_CODE], declaration[64];
    find_name(f, name, sizeof name);
    snprintf(declaration, sizeof declaration, "signal %s[nranks]", name);
    snprintf(code[0], MAX_CODE, "for p in peers { notify %s[rank]@p += 1 }", name);
    snprintf(code[1], MAX_CODE, "for p in peers { wait %s[p] >= 1 }", name);
    insert_at(f, false, declaration);
    for (int i = 0; i < 2; i++) {
        if (before_line)
            insert_before(f, before_line, code[i]);
        else
            insert_at(f, true, code[i]);
    }
}

/* The k-th text in single quotes. */
static bool quoted(const char *text, int k, char *out, size_t size)
{
    for (; *text; text++) {
        const char *end = *text == '\'' ? strchr(text + 1, '\'') : NULL;
        if (!end)
            continue;
        if (k-- == 0) {
            snprintf(out, size, "%.*s", (int)(end - text - 1), text + 1);
            return true;
        }
        text = end;
    }
    return false;
}

/* "after every read ... 'notify done@...', and before the first write ... 'wait done >= 1 ...'" */
static void insert_pair(struct text_fixer *f)
{
    char notify[MAX_CODE], wait[MAX_CODE];
    const char *text = f->advice->text;
    bool at_end = strstr(text, "at the end of the kernel");
    bool counts = strstr(text, "the k-th");
    if (counts || !quoted(text, 0, notify, MAX_CODE) || !quoted(text, 1, wait, MAX_CODE) ||
        !is_here(f, &f->advice->at) || (!at_end && !is_here(f, &f->advice->second))) {
        f->failed = true;
        return;
    }
    insert_at(f, false, "signal done");
    insert_after(f, f->advice->at.line, notify);
    if (at_end)
        insert_at(f, true, wait);
    else
        insert_before(f, f->advice->second.line, wait);
}

/* "a notify that is missing: rank 1, before line 74: 'notify here[1]@0 += 1'; rank 2, ..." */
static void insert_missing(struct text_fixer *f)
{
    const char *at = strstr(f->advice->text, "rank ");
    if (strstr(f->advice->text, "more like these"))
        f->failed = true;
    while (at && !f->failed) {
        char code[MAX_CODE], statement[MAX_CODE + 40];
        unsigned rank, line = 0;
        const char *place = strchr(at, ',');
        if (sscanf(at, "rank %u,", &rank) != 1 || !place || !quoted(at, 0, code, MAX_CODE)) {
            f->failed = true;
            break;
        }
        snprintf(statement, sizeof statement, "if rank == %u { %s }", rank, code);
        if (sscanf(place, ", before line %u", &line) == 1)
            insert_before(f, line, statement);
        else
            insert_at(f, strncmp(place, ", at the end", 12) == 0, statement);
        at = strchr(strchr(at, '\'') + 1, '\'');
        at = strstr(at, "rank ");
    }
}

/* Whole lines: a loop that holds the statement goes with it. */
static void move_line(struct text_fixer *f, bool after)
{
    uint32_t from = f->advice->at.line, to = f->advice->second.line;
    if (!is_here(f, &f->advice->at) || !is_here(f, &f->advice->second) || from == to) {
        f->failed = true;
        return;
    }
    size_t start = line_start(f, from), end = line_start(f, from + 1);
    char *line = strndup(f->source->text + start, end - start);
    if (line)
        add_edit(f, line_start(f, after ? to + 1 : to), 0, line);
    add_edit(f, start, end - start, "");
    f->failed = f->failed || !line;
    free(line);
}

/* ---- the text ---- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void read_threshold(struct text_fixer *f)
{
    char name[MAX_CODE], more[32];
    const char *text = f->advice->text, *by = strstr(text, " by ");
    struct wait_change change = {.more = more};
    if (!by || (begins(text, "the thresholds") && !quoted(text, 0, name, MAX_CODE))) {
        f->failed = true;
        return;
    }
    snprintf(more, sizeof more, " %c %s", strstr(text, "lowered") ? '-' : '+', by + 4);
    change.by = strtoll(by + 4, NULL, 10);
    if (strstr(text, "lowered"))
        change.by = -change.by;
    if (begins(text, "the thresholds"))
        change.signal = name;
    walk(f, f->kernel->body, change_wait, &change);
}

/* The words between an op on a cell and the cell, or after a fence: the default has none. A statement that is
 * advised, or any. */
static void drop_ordering(struct text_fixer *f, const struct peal_stmt *s, const void *context)
{
    const bool *all = context;
    bool second = s->pos.line == f->advice->second.line && s->pos.col == f->advice->second.col;
    bool has_cell =
        s->kind == PEAL_STMT_NOTIFY || s->kind == PEAL_STMT_WAIT || s->kind == PEAL_STMT_TAKE;
    size_t from = offset_of(f, &s->pos);
    if (!*all && !is_advised(f, s) && !second)
        return;
    if (s->kind == PEAL_STMT_FENCE && s->ordering.scope) {
        const char *scope = peal_scope_name(s->ordering.scope);
        size_t len = strlen(scope);
        add_edit(f, from + s->pos.len - len - 1, len + 1, "");
    }
    if (!has_cell || (!s->ordering.order && !s->ordering.scope))
        return;
    while (f->source->text[from] != ' ')
        from++;
    add_edit(f, from, offset_of(f, &s->a->pos) - from, " ");
}

static bool is_order(const char *text)
{
    return begins(text, "release at ") || begins(text, "acquire at ") ||
           begins(text, "acq_rel at ") || begins(text, "system scope at ") ||
           begins(text, "the default order");
}

static void read_advice(struct text_fixer *f)
{
    const char *text = f->advice->text;
    if (is_order(text)) {
        bool all = begins(text, "the default order");
        walk(f, f->kernel->body, drop_ordering, &all);
        return;
    }
    if (begins(text, "'fence release' before") && is_here(f, &f->advice->at)) {
        insert_before(f, f->advice->at.line, "fence release");
        return;
    }
    if (strcmp(text, "a barrier of all ranks at the end of the kernel") == 0) {
        insert_barrier(f, 0);
    } else if (begins(text, "a barrier of all ranks before") && is_here(f, &f->advice->at)) {
        insert_barrier(f, f->advice->at.line);
    } else if (begins(text, "the threshold")) {
        read_threshold(f);
    } else if (begins(text, "'>=' instead of '=='")) {
        struct wait_change change = {.all = strstr(text, "every wait")};
        walk(f, f->kernel->body, change_wait, &change);
    } else if (begins(text, "leave out the notify")) {
        walk(f, f->kernel->body, remove_notify, NULL);
    } else if (begins(text, "move the ") || begins(text, "the notify of ")) {
        move_line(f, strstr(text, " to after "));
    } else if (begins(text, "after every ")) {
        insert_pair(f);
    } else if (begins(text, "a notify that is missing")) {
        insert_missing(f);
    }
}

/* Copies the text with the edits; of those at one place, the first comes first. */
static void put_text(const struct text_fixer *f, struct peal_text *out)
{
    size_t at = 0;
    bool used[MAX_EDITS] = {false};
    for (size_t n = 0; n < f->nedits; n++) {
        size_t next = f->nedits;
        for (size_t i = 0; i < f->nedits; i++) {
            if (!used[i] && (next == f->nedits || f->edits[i].at < f->edits[next].at))
                next = i;
        }
        const struct text_edit *edit = &f->edits[next];
        used[next] = true;
        if (edit->at < at)
            continue; /* within a line that was moved */
        peal_text_add(out, f->source->text + at, edit->at - at);
        peal_text_add(out, edit->text.at ? edit->text.at : "", edit->text.len);
        at = edit->at + edit->len;
    }
    peal_text_add(out, f->source->text + at, f->source->len - at);
}

bool peal_text_fix(const struct peal_source *source, const struct peal_kernel *kernel,
                   const struct peal_verify_advice *advice, struct peal_text *out)
{
    struct text_fixer *f = calloc(1, sizeof *f);
    if (!f)
        return false;
    f->source = source;
    f->kernel = kernel;
    f->advice = advice;
    if (advice->fixes)
        read_advice(f);
    bool good = f->nedits && !f->failed;
    if (good)
        put_text(f, out);
    for (size_t i = 0; i < f->nedits; i++)
        peal_text_release(&f->edits[i].text);
    free(f);
    return good && !out->failed;
}
