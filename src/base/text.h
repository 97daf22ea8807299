/* SPDX-License-Identifier: Apache-2.0 */
/* A growing string for printers and dumps. Sticky: after a failed allocation, writes do nothing. */
#ifndef PEAL_BASE_TEXT_H
#define PEAL_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct peal_text {
    char *at; /* NUL-terminated once anything was added; NULL before */
    size_t len;
    size_t cap;
    bool failed;
    bool colors; /* tones become colours, for a terminal; otherwise they are not written */
};

/* Whether a text is good or bad news. */
enum peal_tone { PEAL_TONE_NEUTRAL, PEAL_TONE_GOOD, PEAL_TONE_BAD, PEAL_TONE_UNSURE };

void peal_text_release(struct peal_text *text);
void peal_text_add(struct peal_text *text, const char *bytes, size_t len);
void peal_text_puts(struct peal_text *text, const char *string);
void peal_text_printf(struct peal_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void peal_text_vprintf(struct peal_text *text, const char *format, va_list args);
void peal_text_toned(struct peal_text *text, enum peal_tone tone, const char *string);
/* Words, with one blank between them, broken before column PEAL_TEXT_WIDTH and going on at column
 * `indent`, then a newline. The cursor is at `column`. */
enum { PEAL_TEXT_WIDTH = 80 };
void peal_text_words(struct peal_text *text, const char *words, size_t len, size_t column,
                     size_t indent);
/* Bytes of a code point in UTF-8, by its first one, which is 0x80 or more. */
static inline size_t peal_utf8_length(unsigned char first)
{
    if (first >= 0xf0)
        return 4;
    return first >= 0xe0 ? 3 : 2;
}
/* How many columns of a terminal a text takes: its code points; colours take none. */
size_t peal_text_columns(const char *text, size_t len);
/* Breaks lines longer than `width`, from byte `from` on, at the last space that fits; what follows
 * is indented by `hang`. A word longer than a line stays whole. */
void peal_text_fold(struct peal_text *text, size_t from, size_t hang, size_t width);
/* "" for one of something and "s" for any other number: "3 ranks". */
static inline const char *peal_text_plural(long long count)
{
    return count == 1 ? "" : "s";
}
/* Adds a file. At most a little more than `max_bytes` bytes are read: a longer text means that the
 * file is too large. False: errno says why it cannot be read. */
bool peal_text_read(struct peal_text *text, const char *path, size_t max_bytes);
/* The text if the condition holds, otherwise "": for optional words of a message. */
static inline const char *peal_text_if(bool holds, const char *text)
{
    return holds ? text : "";
}
/* For texts that may be missing. */
static inline const char *peal_text_or_empty(const char *text)
{
    return text ? text : "";
}
/* Never NULL: an empty text reads as "". */
const char *peal_text_get(const struct peal_text *text);

#endif
