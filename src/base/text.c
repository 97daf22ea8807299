/* SPDX-License-Identifier: Apache-2.0 */
/* The growing string behind text.h. */
#include "base/text.h"

#include "base/size.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void peal_text_release(struct peal_text *text)
{
    free(text->at);
    *text = (struct peal_text){0};
}

static bool make_room(struct peal_text *text, size_t extra)
{
    if (text->failed)
        return false;
    if (text->cap - text->len > extra)
        return true;
    text->failed = !peal_vec_grow((void **)&text->at, &text->cap, text->len, extra + 1, 1);
    return !text->failed;
}

void peal_text_add(struct peal_text *text, const char *bytes, size_t len)
{
    if (!make_room(text, len))
        return;
    memcpy(text->at + text->len, bytes, len);
    text->len += len;
    text->at[text->len] = '\0';
}

void peal_text_puts(struct peal_text *text, const char *string)
{
    peal_text_add(text, string, strlen(string));
}

void peal_text_vprintf(struct peal_text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    if (len >= 0 && make_room(text, (size_t)len)) {
        vsnprintf(text->at + text->len, (size_t)len + 1, format, again);
        text->len += (size_t)len;
    }
    va_end(again);
}

void peal_text_printf(struct peal_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    peal_text_vprintf(text, format, args);
    va_end(args);
}

static void set_tone(struct peal_text *text, enum peal_tone tone)
{
    static const char *const colors[] = {
        [PEAL_TONE_NEUTRAL] = "\033[0m",
        [PEAL_TONE_GOOD] = "\033[32m",
        [PEAL_TONE_UNSURE] = "\033[33m",
        [PEAL_TONE_BAD] = "\033[1;31m",
    };
    if (text->colors)
        peal_text_puts(text, colors[tone]);
}

void peal_text_toned(struct peal_text *text, enum peal_tone tone, const char *string)
{
    set_tone(text, tone);
    peal_text_puts(text, string);
    set_tone(text, PEAL_TONE_NEUTRAL);
}

/* The length of the colour that begins at `at`, ESC [ ... m; 0 where none does. */
static size_t color_length(const char *at, size_t len)
{
    if (len < 2 || at[0] != '\033' || at[1] != '[')
        return 0;
    const char *end = memchr(at, 'm', len);
    return end ? (size_t)(end - at) + 1 : 0;
}

/* The bytes of a line up to that column; colours take no column. */
static size_t bytes_before(const char *line, size_t len, size_t column)
{
    size_t at = 0;
    while (at < len) {
        size_t color = color_length(line + at, len - at);
        if (color == 0 && column-- == 0)
            break;
        at += color ? color : 1;
    }
    return at;
}

const char *peal_text_get(const struct peal_text *text)
{
    if (text->at)
        return text->at;
    return "";
}

void peal_text_fold(struct peal_text *text, size_t from, size_t hang, size_t width)
{
    struct peal_text out = {0};
    size_t at = from;
    while (at < text->len && !text->failed) {
        const char *line = text->at + at, *end = memchr(line, '\n', text->len - at);
        size_t len = end ? (size_t)(end - line) : text->len - at;
        at += len + (end != NULL);
        for (bool first = true; len; first = false) {
            size_t room = width, least = 0, cut = len;
            if (first) {
                size_t blanks = strspn(line, " ");
                least = peal_size_min(blanks, len);
            } else {
                room = 1;
                if (width > hang)
                    room = width - hang;
                peal_text_printf(&out, "\n%*s", (int)hang, "");
            }
            size_t fits = bytes_before(line, len, room);
            if (fits < len) {
                cut = fits;
                while (cut > least && line[cut] != ' ')
                    cut--;
                /* No space fits: the word goes on to its own end. */
                if (cut <= least) {
                    cut = fits;
                    while (cut < len && line[cut] != ' ')
                        cut++;
                }
            }
            size_t keep = cut;
            while (keep && line[keep - 1] == ' ' && cut < len)
                keep--;
            peal_text_add(&out, line, keep);
            line += cut;
            len -= cut;
            while (len && *line == ' ') {
                line++;
                len--;
            }
        }
        if (end)
            peal_text_add(&out, "\n", 1);
    }
    if (out.failed)
        text->failed = true;
    if (!text->failed && out.len) {
        text->len = from;
        peal_text_add(text, out.at, out.len);
    }
    peal_text_release(&out);
}

size_t peal_text_columns(const char *text, size_t len)
{
    size_t columns = 0;
    size_t i = 0;
    while (i < len) {
        size_t color = color_length(text + i, len - i);
        if (!color)
            columns += ((unsigned char)text[i] & 0xc0) != 0x80;
        i += color ? color : 1;
    }
    return columns;
}

void peal_text_words(struct peal_text *text, const char *words, size_t len, size_t column,
                     size_t indent)
{
    const char *end = words + len;
    bool first = true;
    while (words < end) {
        while (words < end && (*words == ' ' || *words == '\n'))
            words++;
        size_t word = 0;
        while (words + word < end && words[word] != ' ' && words[word] != '\n')
            word++;
        if (!word)
            break;
        size_t columns = peal_text_columns(words, word);
        if (!first && column + 1 + columns > PEAL_TEXT_WIDTH) {
            peal_text_printf(text, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            peal_text_puts(text, " ");
            column++;
        }
        peal_text_add(text, words, word);
        column += columns;
        words += word;
        first = false;
    }
    peal_text_puts(text, "\n");
}

bool peal_text_read(struct peal_text *text, const char *path, size_t max_bytes)
{
    enum { PIECE = 16 << 10 };
    char piece[PIECE];
    size_t got;
    FILE *file = fopen(path, "rbe");
    if (!file)
        return false;
    do {
        got = fread(piece, 1, sizeof piece, file);
        peal_text_add(text, piece, got);
    } while (got > 0 && text->len <= max_bytes && !text->failed);
    int error = 0;
    if (ferror(file))
        error = errno;
    fclose(file);
    errno = error;
    return error == 0;
}
