/* SPDX-License-Identifier: Apache-2.0 */
/* Characters that mean something in HTML and SVG. */
#ifndef PEAL_REPORT_ESCAPE_H
#define PEAL_REPORT_ESCAPE_H

#include <stddef.h>

/* How `c` is written as text; NULL: as itself. */
static inline const char *peal_markup_escape(char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    default:
        return NULL;
    }
}

#endif
