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
};
void peal_story_put(const struct story_view *view, struct story_files *files,
                    const struct peal_verification *v, struct peal_text *out);
/* Does the step only carry order between pipes? */
bool peal_story_is_order(const struct peal_verify_step *s);

#endif
