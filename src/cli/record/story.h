/* SPDX-License-Identifier: Apache-2.0 */
/* Counterexamples of recorded kernels, told with the kernel's own lines. */
#ifndef PEAL_CLI_RECORD_STORY_H
#define PEAL_CLI_RECORD_STORY_H

#include "cli/record/record.h"
#include "verify/verify.h"

/* Source files that were read; zeroed at first. */
struct story_files {
    struct {
        const char *path;
        struct peal_text text;
    } at[16];
    size_t len;
};
void peal_story_release(struct story_files *files);

struct story_view {
    bool by_pipe;
    uint32_t blocks, launches;
    /* Of a program in Python instead: who does this step, and in which call. Then `why` is not repeated, and what one
     * line does to several signals in a row is one step. NULL: pipes and blocks. */
    void (*who)(const void *context, uint32_t step, struct peal_text *out);
    const void *context;
};
void peal_story_put(const struct story_view *view, struct story_files *files,
                    const struct peal_verification *v, struct peal_text *out);
/* A line of a source file, without the blanks around it and not more than `most` bytes; nothing if it cannot be
 * read. */
void peal_story_source(struct story_files *files, const char *path, uint32_t line, size_t most,
                       struct peal_text *out);
/* Does the step only carry order between pipes? */
bool peal_story_is_order(const struct peal_verify_step *s);

#endif
