/* SPDX-License-Identifier: Apache-2.0 */
/* Characters with a special meaning in HTML and SVG. */
#ifndef PEAL_REPORT_ESCAPE_H
#define PEAL_REPORT_ESCAPE_H

#include <stddef.h>

/* The escaped form of `c`. NULL: it needs none. */
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
