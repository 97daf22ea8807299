/* SPDX-License-Identifier: Apache-2.0 */
/* SARIF 2.1.0, for code reviews and CI: results with places, a counterexample as a code flow. For
 * kernels and for plans of other formats. */
#ifndef PEAL_CLI_VERIFY_SARIF_H
#define PEAL_CLI_VERIFY_SARIF_H

#include "verify/verify.h"

enum peal_sarif_rule {
    PEAL_SARIF_REFUTED,
    PEAL_SARIF_UNDECIDED,
    PEAL_SARIF_UNREADABLE,
    PEAL_SARIF_REQUIRED,
    PEAL_SARIF_FINDING,
    PEAL_SARIF_RULES
};

struct peal_sarif_result {
    enum peal_sarif_rule rule;
    const char *level, *message, *path;
    uint32_t line, col; /* line 0: the file as a whole */
};

/* The document, up to its results, and from their end on. */
void peal_sarif_begin(struct peal_json *json, struct peal_text *out);
void peal_sarif_end(struct peal_json *json, struct peal_text *out);
/* Opens a result object; the caller adds to it and ends it. */
void peal_sarif_result(struct peal_json *json, const struct peal_sarif_result *r);
/* Members of such an object: the steps of a counterexample, each in `path` or, with of_steps, in the file that it names
 * itself; a path as `uri`; a text object. */
void peal_sarif_flow(struct peal_json *json, const struct peal_verification *v, const char *path,
                     bool of_steps);
void peal_sarif_uri(struct peal_json *json, const char *path);
void peal_sarif_text(struct peal_json *json, const char *key, const char *text);
/* The place that a refutation is about, or line 0. */
struct peal_verify_place peal_sarif_place(const struct peal_verification *v);

#endif
