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
};

void peal_text_release(struct peal_text *text);
void peal_text_add(struct peal_text *text, const char *bytes, size_t len);
void peal_text_puts(struct peal_text *text, const char *string);
void peal_text_printf(struct peal_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void peal_text_vprintf(struct peal_text *text, const char *format, va_list args);
/* Words, with one blank between them, broken before column PEAL_TEXT_WIDTH and going on at column
 * `indent`, then a newline. The cursor is at `column`. */
enum { PEAL_TEXT_WIDTH = 80 };
void peal_text_words(struct peal_text *text, const char *words, size_t len, size_t column,
                     size_t indent);
/* How many columns of a terminal a text takes: its code points. */
size_t peal_text_columns(const char *text, size_t len);
/* Breaks lines longer than `width`, from byte `from` on, at the last space that fits; what follows
 * is indented by `hang`. A word longer than a line stays whole. */
void peal_text_fold(struct peal_text *text, size_t from, size_t hang, size_t width);
/* Never NULL: an empty text reads as "". */
const char *peal_text_get(const struct peal_text *text);

#endif
