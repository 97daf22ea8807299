/* SPDX-License-Identifier: Apache-2.0 */
/* What memory holds, as text, while the ops of a schedule are replayed one by one.
 *
 *   slot@0: [0 .. 256) x@0[256 .. 512)      y@1: [0 .. 256) x@1   [256 .. 512) x@1 + x@0
 *
 * Each buffer is a list of ranges with an expression over the inputs. The replay adds accesses and
 * changes to the page's latest step. It judges nothing: the verifier finds races and faults.
 */
#ifndef PEAL_CLI_PAGE_CONTENTS_H
#define PEAL_CLI_PAGE_CONTENTS_H

#include "cli/page/page_plan.h"

struct peal_contents;

/* An access that collides: marked in red if the step's op makes it. */
struct peal_contents_mark {
    const char *buf;
    uint32_t rank;
    uint64_t first_byte, bytes;
    bool writes;
};

/* NULL: out of memory; the page then shows no contents. */
struct peal_contents *peal_contents_new(struct peal_page *page, const struct peal_plan *plan);
void peal_contents_free(struct peal_contents *c);

/* Before the first step: the op will be replayed, so its buffers are shown from the start. */
void peal_contents_touch(struct peal_contents *c, const struct peal_op *op);
/* After all touches, before the first step: fills inputs with their names. */
void peal_contents_start(struct peal_contents *c);
/* The op of the page's latest step; marks may be NULL. */
void peal_contents_step(struct peal_contents *c, uint32_t rank, uint64_t launch,
                        const struct peal_op *op, const struct peal_contents_mark *marks,
                        uint32_t nmarks);
/* An op that no step shows, but that has happened by now: its effect is shown, but not
 * highlighted. */
void peal_contents_skip(struct peal_contents *c, uint32_t rank, uint64_t launch,
                        const struct peal_op *op);

#endif
