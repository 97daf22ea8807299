/* SPDX-License-Identifier: Apache-2.0 */
/* Findings: what else there is to say about a file besides the verdict, and the edit that would fix
 * it.
 *
 * A finding has a rule (a short name that does not change between versions, so that tools can
 * filter), a level, a place in the user's file and one sentence. An edit replaces `len` bytes at
 * `offset` of the file by `text`.
 */
#ifndef PEAL_IMPORT_FINDING_H
#define PEAL_IMPORT_FINDING_H

#include "base/base.h"

enum peal_finding_level { PEAL_FINDING_NOTE, PEAL_FINDING_WARNING, PEAL_FINDING_ERROR };

struct peal_edit {
    uint64_t offset, len;
    const char *text;
};

enum { PEAL_FINDING_EDITS = 64 }; /* of one finding */

struct peal_finding {
    enum peal_finding_level level;
    const char *rule;
    struct peal_pos pos;
    const char *message;
    struct peal_edit edits[PEAL_FINDING_EDITS]; /* what would fix it, all of them together */
    uint32_t nedits;
};

struct peal_findings {
    struct peal_arena arena; /* owns the texts */
    PEAL_VEC(struct peal_finding) list;
};

void peal_findings_init(struct peal_findings *findings);
void peal_findings_release(struct peal_findings *findings);
/* Adds a finding, and returns it, so that edits can be added. NULL: out of memory, and the finding
 * is dropped. */
struct peal_finding *peal_finding_add(struct peal_findings *findings, enum peal_finding_level level,
                                      const char *rule, struct peal_pos pos, const char *format,
                                      ...) __attribute__((format(printf, 5, 6)));
void peal_finding_edit(struct peal_findings *findings, struct peal_finding *finding,
                       uint64_t offset, uint64_t len, const char *text);
const char *peal_finding_level_name(enum peal_finding_level level);

#endif
