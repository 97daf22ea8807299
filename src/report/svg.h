/* SPDX-License-Identifier: Apache-2.0 */
/* A space-time picture as SVG: the tracks, bars and arrows of a page, for documents. It follows the
 * reader's light or dark setting, and needs no script. */
#ifndef PEAL_REPORT_SVG_H
#define PEAL_REPORT_SVG_H

#include "report/page.h"

struct peal_svg_options {
    uint64_t from, to; /* the time shown; to 0 = all */
    unsigned width;    /* pixels; 0 = 900 */
    unsigned row;      /* pixels per track; 0 = 34 */
    unsigned tracks;   /* at most this many, from the first; 0 = 64 */
};

/* options may be NULL. PEAL_NO_MEMORY if the page or the text had failed. */
enum peal_status peal_page_svg(struct peal_page *page, const struct peal_svg_options *options,
                               struct peal_text *out);

#endif
