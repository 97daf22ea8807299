/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics: collected while reading input, printed once at the end.
 *
 *   ring.peal:7:12: error: signal 'ready' is never waited on
 *       notify ready@right += 1
 *              ^~~~~
 *   ring.peal:3:12: note: declared here
 *
 * Messages are lower case, without a full stop, the subject in single quotes. A note belongs to the
 * error before it and points at the other place. At most PEAL_DIAG_LIMIT errors are kept; more are
 * counted.
 */
#ifndef PEAL_BASE_DIAG_H
#define PEAL_BASE_DIAG_H

#include "base/arena.h"
#include "base/text.h"
#include "base/vec.h"

#include <stdarg.h>
#include <stdint.h>

enum { PEAL_DIAG_LIMIT = 20 };

/* A text to be read: a file, a built-in kernel, a generated one. Borrowed by whatever points into
 * it. */
struct peal_source {
    const char *name; /* as shown before line and column */
    const char *text;
    size_t len;
};

/* A place in a source. line 0 = no particular place. */
struct peal_pos {
    const struct peal_source *source; /* may be NULL */
    uint32_t line;                    /* from 1 */
    uint32_t col;                     /* from 1, in bytes */
    uint32_t len;                     /* bytes to underline; 0 counts as 1 */
};

enum peal_severity { PEAL_ERROR, PEAL_NOTE };

struct peal_diag {
    enum peal_severity severity;
    struct peal_pos pos;
    const char *message;
};

struct peal_diags {
    struct peal_arena arena;
    PEAL_VEC(struct peal_diag) list;
    size_t errors; /* all of them, kept or not */
};

void peal_diags_init(struct peal_diags *diags);
void peal_diags_release(struct peal_diags *diags);

/* diags may be NULL in every call: the message is then dropped. */
void peal_diag_error(struct peal_diags *diags, struct peal_pos pos, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void peal_diag_note(struct peal_diags *diags, struct peal_pos pos, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For functions that take a format themselves. */
void peal_diag_add(struct peal_diags *diags, enum peal_severity severity, struct peal_pos pos,
                   const char *format, va_list args) __attribute__((format(printf, 4, 0)));

/* All diagnostics as text, source line and caret included; `color` adds terminal colours. */
void peal_diags_print(const struct peal_diags *diags, bool color, struct peal_text *out);
/* The same inside another message: an error that has no place does not begin with "error:". */
void peal_diags_quote(const struct peal_diags *diags, struct peal_text *out);

#endif
