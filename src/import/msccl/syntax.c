/* SPDX-License-Identifier: Apache-2.0 */
/* Does RCCL's own reader accept this XML? It is not an XML parser. It knows elements, comments and
 * attributes in double quotes, with blanks before each; no line breaks inside a tag, no tabs, no
 * declaration, and values of at most 255 characters. It may refuse a file that every other program
 * reads. */
#include "import/msccl/msccl.h"

#include <string.h>

enum { MAX_VALUE_LEN = 255 };

struct scan {
    const char *at, *end, *begin;
    const char *why; /* NULL: no fault so far */
};

static char peek(const struct scan *s)
{
    if (s->at < s->end)
        return *s->at;
    return '\0';
}

static bool stop(struct scan *s, const char *why)
{
    if (!s->why)
        s->why = why;
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r';
}

/* From the character after '=' to the one after the closing quote. */
static bool skip_value(struct scan *s)
{
    if (peek(s) != '"')
        return stop(s, "a value is wanted in double quotes, right after '='");
    const char *from = ++s->at;
    while (s->at < s->end && *s->at != '"')
        s->at++;
    if (s->at == s->end)
        return stop(s, "a value has no end");
    if (s->at - from > MAX_VALUE_LEN)
        return stop(s, "a value of more than 255 characters");
    s->at++;
    return true;
}

/* From the blank in front of an attribute to the character after its value. */
static bool skip_attribute(struct scan *s)
{
    s->at++;
    const char *from = s->at;
    while (s->at < s->end && !strchr("= >/\n\r\t", *s->at))
        s->at++;
    if (peek(s) == '=') {
        s->at++;
        if (s->at - 1 > from)
            return skip_value(s);
        return stop(s, "an attribute without a name");
    }
    if (s->at == from && strchr("/> ", peek(s)) && peek(s))
        return true; /* more blanks, or one before the end of the tag: an empty attribute */
    return stop(s, "attributes are wanted as name=\"value\"");
}

static bool skip_comment(struct scan *s)
{
    while (s->end - s->at >= 3) {
        if (memcmp(s->at, "-->", 3) == 0) {
            s->at += 3;
            return true;
        }
        s->at++;
    }
    return stop(s, "a comment has no end");
}

/* From '<' to the character after '>'. */
static bool skip_tag(struct scan *s)
{
    s->at++;
    if (peek(s) == '?')
        return stop(s, "a declaration");
    if (s->end - s->at >= 3 && memcmp(s->at, "!--", 3) == 0)
        return skip_comment(s);
    bool closes = peek(s) == '/';
    s->at += closes;
    while (s->at < s->end && !strchr(" >/\n\r\t", *s->at))
        s->at++;
    while (!closes && peek(s) == ' ') {
        if (!skip_attribute(s))
            return false;
    }
    if (!closes && peek(s) == '/')
        s->at++;
    if (peek(s) != '>')
        return stop(s, closes ? "'>' is wanted right after the name"
                              : "a line break or a tab inside a tag");
    s->at++;
    return true;
}

static bool skip_elements(struct scan *s)
{
    for (;;) {
        while (s->at < s->end && is_blank(*s->at))
            s->at++;
        if (s->at == s->end)
            return true;
        if (*s->at != '<')
            return stop(s, *s->at == '\t' ? "a tab" : "text between elements");
        if (!skip_tag(s))
            return false;
    }
}

const char *peal_msccl_syntax(const struct peal_source *source, struct peal_pos *pos)
{
    struct scan s = {source->text, source->text + source->len, source->text, NULL};
    if (skip_elements(&s))
        return NULL;
    *pos = (struct peal_pos){source, 1, 1, 0};
    for (const char *c = s.begin; c < s.at; c++) {
        pos->col++;
        if (*c == '\n') {
            pos->line++;
            pos->col = 1;
        }
    }
    return s.why;
}
