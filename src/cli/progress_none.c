/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h where there are neither threads nor signals: nothing is drawn, and who started the
 * program ends it. */
#include "cli/progress.h"

#include <stdio.h>

void peal_progress_begin(struct peal_progress *progress)
{
    progress->counts = &progress->own_counts;
}

void peal_progress_step(struct peal_progress *progress, uint64_t weight)
{
    (void)progress, (void)weight;
    fflush(stdout);
}

void peal_progress_print(const struct peal_progress *progress, const struct peal_text *lines)
{
    (void)progress;
    fwrite(peal_text_get(lines), 1, lines->len, stdout);
    fflush(stdout);
}

void peal_progress_end(struct peal_progress *progress)
{
    (void)progress;
}

void peal_progress_say(const char *lines)
{
    fputs(lines, stderr);
}
