/* SPDX-License-Identifier: Apache-2.0 */
/* See text_search.h. Works on lines and words, because a kernel in which a line is missing may have no
 * tree: "signal 'ready' is never waited on".
 *
 * The pieces are the notifies and waits of the text, each alone and with the loop or condition that is
 * on its line. From each come the same for another signal of the kernel, with another threshold of
 * it, and its other half: of `notify s[rank]@p += 1`, `wait s[p] >= 1`. A guess puts one of these on a
 * line of its own, or in a block of one line; or it moves, changes or leaves out a piece; or lets all
 * ranks meet.
 */
#include "cli/verify/text_search.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PIECES = 64, MAX_GUESSED = 256, MAX_NAMES = 32, MAX_WORD = 64, MAX_LINE = 200 };

struct text_piece {
    size_t at, len; /* the statement */
    size_t line,
        whole; /* its line, without comment, if nothing else is there; whole is 0 otherwise */
};

struct text_search {
    const struct peal_source *source;
    peal_text_try *good;
    void *context;
    struct peal_text *out, *what;
    size_t begin, end; /* what lies between the kernel's braces */
    struct text_piece pieces[MAX_PIECES];
    size_t npieces;
    char guessed[MAX_GUESSED][MAX_LINE]; /* lines to be put in */
    size_t nguessed;
    char signals[MAX_NAMES][MAX_WORD], thresholds[MAX_NAMES][MAX_WORD], peers[MAX_NAMES][MAX_WORD];
    size_t nsignals, nthresholds, npeers;
    bool weaker; /* of the guess: ranks wait for less */
    bool found;
};

/* --- words ----------------------------------------------------------------------------------- */

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_word(const struct peal_source *s, size_t at, const char *word)
{
    size_t len = strlen(word);
    return at + len < s->len && memcmp(s->text + at, word, len) == 0 &&
           !in_word(s->text[at + len]) && (at == 0 || !in_word(s->text[at - 1]));
}

/* Past a comment that begins here; otherwise the next byte. */
static size_t next_of(const struct peal_source *s, size_t at)
{
    if (at + 1 < s->len && s->text[at] == '/' && s->text[at + 1] == '/') {
        while (at < s->len && s->text[at] != '\n')
            at++;
        return at;
    }
    return at + 1;
}

static size_t line_of(const struct peal_source *s, size_t at)
{
    while (at > 0 && s->text[at - 1] != '\n')
        at--;
    return at;
}

/* Behind the last byte of the line. */
static size_t line_end(const struct peal_source *s, size_t at)
{
    while (at < s->len && s->text[at] != '\n')
        at++;
    return at;
}

static size_t indent_of(const struct peal_source *s, size_t line)
{
    size_t n = 0;
    while (line + n < s->len && s->text[line + n] == ' ')
        n++;
    return n;
}

static void add_name(char (*list)[MAX_WORD], size_t *count, const char *from, size_t len)
{
    while (len && from[0] == ' ')
        from++, len--;
    while (len && from[len - 1] == ' ')
        len--;
    if (!len || len >= MAX_WORD || *count == MAX_NAMES)
        return;
    for (size_t i = 0; i < *count; i++) {
        if (strlen(list[i]) == len && memcmp(list[i], from, len) == 0)
            return;
    }
    memcpy(list[*count], from, len);
    list[(*count)++][len] = '\0';
}

/* --- the kernel ------------------------------------------------------------------------------ */

void peal_text_next_kernel(const struct peal_source *s, size_t *at, char *name, size_t size)
{
    name[0] = '\0';
    for (; *at < s->len; *at = next_of(s, *at)) {
        if (!is_word(s, *at, "kernel"))
            continue;
        size_t from = *at + strlen("kernel"), len = 0;
        while (from < s->len && s->text[from] == ' ')
            from++;
        while (from + len < s->len && in_word(s->text[from + len]))
            len++;
        *at = from + len;
        if (len && len < size) {
            memcpy(name, s->text + from, len);
            name[len] = '\0';
            return;
        }
    }
}

static bool find_kernel(struct text_search *f, const char *kernel)
{
    const struct peal_source *s = f->source;
    char name[MAX_WORD];
    size_t at = 0, depth = 0;
    do
        peal_text_next_kernel(s, &at, name, sizeof name);
    while (name[0] && strcmp(name, kernel) != 0);
    for (; name[0] && at < s->len; at = next_of(s, at)) {
        if (s->text[at] == '{' && depth++ == 0)
            f->begin = at + 1;
        if (s->text[at] == '}' && depth && --depth == 0) {
            f->end = at;
            return true;
        }
    }
    return false;
}

/* A statement ends with the line, the block, a comment, or two spaces. */
static size_t statement_len(const struct peal_source *s, size_t at)
{
    size_t end = at;
    while (end < s->len && !strchr("\n{}", s->text[end]) &&
           !(end + 1 < s->len && memcmp(s->text + end, "//", 2) == 0) &&
           !(end + 1 < s->len && memcmp(s->text + end, "  ", 2) == 0))
        end++;
    while (end > at && s->text[end - 1] == ' ')
        end--;
    return end - at;
}

/* The line of a piece without indent and comment: its length if it holds nothing but the piece and
 * whole blocks around it. */
static size_t whole_line(const struct peal_source *s, size_t line, const struct text_piece *p)
{
    size_t from = line + indent_of(s, line), end = from, opened = 0, closed = 0;
    while (end < s->len && s->text[end] != '\n' && memcmp(s->text + end, "//", 2) != 0) {
        opened += s->text[end] == '{';
        closed += s->text[end] == '}';
        end++;
    }
    while (end > from && s->text[end - 1] == ' ')
        end--;
    bool alone = p->at == from && p->len == end - from;
    bool block = (is_word(s, from, "for") || is_word(s, from, "if")) && opened && opened == closed;
    for (size_t i = p->at + p->len; i < end && block; i++)
        block = s->text[i] == ' ' || s->text[i] == '}';
    return alone || block ? end - from : 0;
}

/* Names after `signal`, up to the end of the line. */
static void read_signals(struct text_search *f, size_t at)
{
    const struct peal_source *s = f->source;
    size_t end = line_end(s, at), from = at + strlen("signal");
    if (is_word(s, from + 1, "shared"))
        from += strlen(" shared");
    bool expected = true; /* a name */
    for (size_t i = from, depth = 0; i < end && s->text[i] != '/'; i++) {
        size_t len = 0;
        while (expected && i + len < end && in_word(s->text[i + len]))
            len++;
        if (len) {
            add_name(f->signals, &f->nsignals, s->text + i, len);
            expected = false;
            i += len - 1;
            continue;
        }
        depth += s->text[i] == '[';
        depth -= s->text[i] == ']' && depth;
        expected = expected || (s->text[i] == ',' && !depth);
    }
}

static void add_piece(struct text_search *f, size_t at)
{
    const struct peal_source *s = f->source;
    struct text_piece p = {.at = at, .len = statement_len(s, at), .line = line_of(s, at)};
    const char *text = s->text + at;
    if (f->npieces == MAX_PIECES || p.len >= MAX_LINE)
        return;
    p.whole = whole_line(s, p.line, &p);
    for (size_t i = 0; i + 2 < p.len; i++) {
        bool wait = memcmp(text + i, ">=", 2) == 0 || memcmp(text + i, "==", 2) == 0;
        if (wait)
            add_name(f->thresholds, &f->nthresholds, text + i + 2, p.len - i - 2);
        if (text[i] != '@')
            continue;
        size_t to = i + 1;
        while (to + 1 < p.len && memcmp(text + to, "+=", 2) != 0)
            to++;
        add_name(f->peers, &f->npeers, text + i + 1, to - i - 1);
    }
    f->pieces[f->npieces++] = p;
}

static void read_kernel(struct text_search *f)
{
    const struct peal_source *s = f->source;
    for (size_t at = f->begin; at < f->end; at = next_of(s, at)) {
        if (is_word(s, at, "signal"))
            read_signals(f, at);
        if (is_word(s, at, "notify") || is_word(s, at, "wait"))
            add_piece(f, at);
    }
    add_name(f->thresholds, &f->nthresholds, "1", 1);
    add_name(f->thresholds, &f->nthresholds, "2", 1);
}

/* --- lines by analogy ------------------------------------------------------------------------- */

static void guess_line(struct text_search *f, const char *before, const char *statement,
                       const char *after)
{
    char line[MAX_LINE];
    int len = snprintf(line, sizeof line, "%s%s%s", before, statement, after);
    if (len >= MAX_LINE || f->nguessed == MAX_GUESSED)
        return;
    for (size_t i = 0; i < f->nguessed; i++) {
        if (strcmp(f->guessed[i], line) == 0)
            return;
    }
    memcpy(f->guessed[f->nguessed++], line, (size_t)len + 1);
}

/* The parts of `notify s[i]@p += 1` and `wait s[i] >= 1`; peer is empty in a wait. */
struct parts {
    bool notify;
    char signal[MAX_WORD], index[MAX_WORD], peer[MAX_WORD], amount[MAX_WORD];
};

static bool copy_word(char *to, const char *from, size_t len)
{
    while (len && *from == ' ')
        from++, len--;
    while (len && from[len - 1] == ' ')
        len--;
    if (len >= MAX_WORD)
        return false;
    memcpy(to, from, len);
    to[len] = '\0';
    return true;
}

static bool take_apart(const char *text, size_t len, struct parts *out)
{
    *out = (struct parts){.notify = text[0] == 'n'};
    size_t at = out->notify ? strlen("notify") : strlen("wait"), name = 0, depth = 0, end;
    while (at < len && text[at] == ' ')
        at++;
    while (at + name < len && in_word(text[at + name]))
        name++;
    if (!copy_word(out->signal, text + at, name))
        return false;
    at += name;
    if (at < len && text[at] == '[') {
        for (end = at; end < len; end++) {
            depth += text[end] == '[';
            depth -= text[end] == ']';
            if (!depth)
                break;
        }
        if (end == len || !copy_word(out->index, text + at + 1, end - at - 1))
            return false;
        at = end + 1;
    }
    for (end = at; end + 2 < len; end++) {
        if (strchr("+>=", text[end]) && text[end + 1] == '=')
            break;
    }
    if (end + 2 >= len)
        return false;
    bool peer = text[at] == '@';
    return peer == out->notify && (!peer || copy_word(out->peer, text + at + 1, end - at - 1)) &&
           copy_word(out->amount, text + end + 2, len - end - 2);
}

/* For one signal, in the same surroundings: the statement itself, and its other half. */
static void guess_from(struct text_search *f, const struct parts *p, const char *signal,
                       const char *before, const char *after)
{
    char statement[MAX_LINE];
    bool array = p->index[0];
    for (size_t i = 0; i < f->nthresholds; i++) {
        const char *index = p->notify ? p->peer : p->index;
        snprintf(statement, sizeof statement, "wait %s%s%.60s%s >= %.60s", signal, array ? "[" : "",
                 array ? index : "", array ? "]" : "", f->thresholds[i]);
        guess_line(f, before, statement, after);
    }
    if (p->notify || array) {
        snprintf(statement, sizeof statement, "notify %s%s%.60s%s@%.60s += 1", signal,
                 array ? "[" : "",
                 !array      ? ""
                 : p->notify ? p->index
                             : "rank",
                 array ? "]" : "", p->notify ? p->peer : p->index);
        guess_line(f, before, statement, after);
        return;
    }
    for (size_t i = 0; i < f->npeers; i++) {
        snprintf(statement, sizeof statement, "notify %s@%.60s += 1", signal, f->peers[i]);
        guess_line(f, before, statement, after);
    }
}

/* What kernels often have, whatever is left of this one. */
static void guess_usual(struct text_search *f)
{
    char line[MAX_LINE];
    for (size_t k = 0; k < f->nsignals; k++) {
        const char *s = f->signals[k];
        snprintf(line, sizeof line, "for p in peers { notify %s[rank]@p += 1 }", s);
        guess_line(f, "", line, "");
        snprintf(line, sizeof line, "for p in peers { notify %s@p += 1 }", s);
        guess_line(f, "", line, "");
        for (size_t i = 0; i < f->nthresholds; i++) {
            snprintf(line, sizeof line, "for p in peers { wait %s[p] >= %s }", s, f->thresholds[i]);
            guess_line(f, "", line, "");
        }
    }
}

static void guess_lines(struct text_search *f)
{
    const char *text = f->source->text;
    for (int whole = 1; whole >= 0; whole--) {
        for (size_t i = 0; i < f->npieces; i++) {
            const struct text_piece *p = &f->pieces[i];
            char before[MAX_LINE] = "", after[MAX_LINE] = "";
            struct parts parts;
            size_t from = p->line + indent_of(f->source, p->line);
            bool block = p->whole && p->whole != p->len;
            if (block != whole || !take_apart(text + p->at, p->len, &parts))
                continue;
            if (whole && p->whole < MAX_LINE) {
                memcpy(before, text + from, p->at - from);
                before[p->at - from] = '\0';
                size_t rest = from + p->whole - p->at - p->len;
                memcpy(after, text + p->at + p->len, rest);
                after[rest] = '\0';
            }
            for (size_t k = 0; k < f->nsignals; k++)
                guess_from(f, &parts, f->signals[k], before, after);
        }
    }
}

/* --- guesses --------------------------------------------------------------------------------- */

/* The text with one stretch replaced, and another put in. */
static void guess(struct text_search *f, size_t at, size_t len, const char *with, size_t add_at,
                  const char *add, const char *what)
{
    const struct peal_source *s = f->source;
    struct peal_text changed = {0};
    if (f->found)
        return;
    bool first = add && add_at < at;
    if (first) {
        peal_text_add(&changed, s->text, add_at);
        peal_text_puts(&changed, add);
    }
    size_t from = first ? add_at : 0;
    peal_text_add(&changed, s->text + from, at - from);
    peal_text_puts(&changed, with);
    from = at + len;
    if (add && !first) {
        peal_text_add(&changed, s->text + from, add_at > from ? add_at - from : 0);
        peal_text_puts(&changed, add);
        from = add_at > from ? add_at : from;
    }
    peal_text_add(&changed, s->text + from, s->len - from);
    struct peal_source now = {s->name, peal_text_get(&changed), changed.len};
    f->found = !changed.failed && f->good(f->context, &now, f->weaker);
    if (f->found) {
        peal_text_add(f->out, now.text, now.len);
        peal_text_puts(f->what, what);
    }
    peal_text_release(&changed);
}

static unsigned number_of(const struct text_search *f, size_t at)
{
    unsigned line = 1;
    for (size_t i = 0; i < at; i++)
        line += f->source->text[i] == '\n';
    return line;
}

/* `==` to `>=`, no `relaxed`, thresholds one higher or lower. */
static void guess_changes(struct text_search *f)
{
    char what[MAX_LINE], number[MAX_WORD];
    for (size_t i = 0; i < f->npieces && !f->found; i++) {
        const struct text_piece *p = &f->pieces[i];
        for (size_t at = p->at; at < p->at + p->len; at++) {
            const char *here = f->source->text + at;
            if (is_word(f->source, at, "relaxed")) {
                snprintf(what, sizeof what, "line %u: not relaxed", number_of(f, at));
                guess(f, at, strlen("relaxed "), "", 0, NULL, what);
            }
            bool wait = f->source->text[p->at] == 'w';
            if (wait && memcmp(here, "==", 2) == 0) {
                snprintf(what, sizeof what, "line %u: '>=' instead of '=='", number_of(f, at));
                guess(f, at, 2, ">=", 0, NULL, what);
            }
            if (!wait || !isdigit((unsigned char)here[0]) || in_word(here[-1]))
                continue;
            long value = strtol(here, NULL, 10);
            size_t len = strspn(here, "0123456789");
            for (long by = 1; by >= -1; by -= 2) {
                if (value + by < 1)
                    continue;
                f->weaker = by < 0;
                snprintf(number, sizeof number, "%ld", value + by);
                snprintf(what, sizeof what, "line %u: %s instead of %ld", number_of(f, at), number,
                         value);
                guess(f, at, len, number, 0, NULL, what);
                f->weaker = false;
            }
        }
    }
}

/* Visits the beginnings of the kernel's lines that are no declarations. */
static size_t next_line(const struct text_search *f, size_t line)
{
    size_t next = line_end(f->source, line) + 1;
    return next <= f->end ? next : 0;
}

static void put_indented(const struct text_search *f, size_t line, const char *text, char *out,
                         size_t size)
{
    size_t indent = indent_of(f->source, line);
    if (line + indent < f->source->len && f->source->text[line + indent] == '}')
        indent += 4;
    snprintf(out, size, "%*s%s\n", (int)indent, "", text);
}

static void guess_insertions(struct text_search *f)
{
    char line[2 * MAX_LINE], what[3 * MAX_LINE];
    for (size_t i = 0; i < f->nguessed && !f->found; i++) {
        size_t at = line_end(f->source, f->begin) + 1;
        for (; at && at <= f->end && !f->found; at = next_line(f, at)) {
            put_indented(f, at, f->guessed[i], line, sizeof line);
            snprintf(what, sizeof what, "a line before line %u: %s", number_of(f, at),
                     f->guessed[i]);
            guess(f, at, 0, "", at, line, what);
        }
        /* in a block of one line */
        for (at = f->begin; at < f->end && !f->found; at = next_of(f->source, at)) {
            bool opens = f->source->text[at] == '{', closes = f->source->text[at] == '}';
            size_t from = line_of(f->source, at);
            bool inside = memchr(f->source->text + from, '{', line_end(f->source, at) - from) &&
                          memchr(f->source->text + from, '}', line_end(f->source, at) - from);
            if ((!opens && !closes) || !inside || strchr(f->guessed[i], '{'))
                continue;
            snprintf(line, sizeof line, " %s ", f->guessed[i]);
            snprintf(what, sizeof what, "in line %u: %s", number_of(f, at), f->guessed[i]);
            guess(f, at + opens, 0, "", at + opens, line, what);
        }
    }
}

/* Lines of their own, to another place, or left out. */
static void guess_moves(struct text_search *f, bool leave_out)
{
    char line[2 * MAX_LINE], text[MAX_LINE], what[3 * MAX_LINE];
    for (size_t i = 0; i < f->npieces && !f->found; i++) {
        const struct text_piece *p = &f->pieces[i];
        if (!p->whole || p->whole >= MAX_LINE)
            continue;
        size_t len = line_end(f->source, p->line) + 1 - p->line;
        memcpy(text, f->source->text + p->line + indent_of(f->source, p->line), p->whole);
        text[p->whole] = '\0';
        f->weaker = leave_out;
        if (leave_out) {
            snprintf(what, sizeof what, "without line %u: %s", number_of(f, p->line), text);
            guess(f, p->line, len, "", 0, NULL, what);
            continue;
        }
        size_t at = line_end(f->source, f->begin) + 1;
        for (; at && at <= f->end && !f->found; at = next_line(f, at)) {
            put_indented(f, at, text, line, sizeof line);
            snprintf(what, sizeof what, "line %u before line %u: %s", number_of(f, p->line),
                     number_of(f, at), text);
            if (at < p->line || at > p->line + len)
                guess(f, p->line, len, "", at, line, what);
        }
    }
}

/* All ranks meet, over a signal of its own; in a loop, as often as another wait says. */
static void guess_meetings(struct text_search *f)
{
    char declared[MAX_LINE], lines[4 * MAX_LINE], what[3 * MAX_LINE], name[MAX_WORD] = "met";
    size_t first = line_end(f->source, f->begin) + 1;
    bool taken = true;
    for (int i = 2; taken; i++) {
        taken = false;
        for (size_t at = f->begin; at < f->end; at = next_of(f->source, at))
            taken = taken || is_word(f->source, at, name);
        if (taken)
            snprintf(name, sizeof name, "met%d", i);
    }
    snprintf(declared, sizeof declared, "    signal %s[nranks]\n", name);
    for (size_t i = 0; i < f->nthresholds; i++) {
        size_t at = next_line(f, first);
        for (; first <= f->end && at && at <= f->end && !f->found; at = next_line(f, at)) {
            char notify[MAX_LINE], wait[MAX_LINE];
            snprintf(what, sizeof what, "for p in peers { notify %s[rank]@p += 1 }", name);
            put_indented(f, at, what, notify, sizeof notify);
            snprintf(what, sizeof what, "for p in peers { wait %s[p] >= %s }", name,
                     f->thresholds[i]);
            put_indented(f, at, what, wait, sizeof wait);
            snprintf(lines, sizeof lines, "%s%s", notify, wait);
            snprintf(what, sizeof what, "all ranks meet before line %u", number_of(f, at));
            guess(f, first, 0, declared, at, lines, what);
        }
    }
}

bool peal_text_search(const struct peal_source *source, const char *kernel, peal_text_try *good,
                      void *context, struct peal_text *out, struct peal_text *what)
{
    struct text_search *f = calloc(1, sizeof *f);
    if (!f)
        return false;
    *f = (struct text_search){
        .source = source, .good = good, .context = context, .out = out, .what = what};
    if (find_kernel(f, kernel)) {
        read_kernel(f);
        guess_lines(f);
        guess_usual(f);
        guess_changes(f);
        guess_insertions(f);
        guess_moves(f, false);
        guess_meetings(f);
        guess_moves(f, true);
    }
    bool found = f->found && !out->failed;
    free(f);
    return found;
}
