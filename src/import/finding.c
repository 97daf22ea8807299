/* SPDX-License-Identifier: Apache-2.0 */
/* A list of findings; see finding.h. */
#include "import/finding.h"

#include <stdarg.h>
#include <string.h>

void peal_findings_init(struct peal_findings *findings)
{
    *findings = (struct peal_findings){0};
    peal_arena_init(&findings->arena, 0);
}

void peal_findings_release(struct peal_findings *findings)
{
    peal_vec_release(&findings->list);
    peal_arena_release(&findings->arena);
}

struct peal_finding *peal_finding_add(struct peal_findings *findings, enum peal_finding_level level,
                                      const char *rule, struct peal_pos pos, const char *format,
                                      ...)
{
    struct peal_text text = {0};
    va_list args;
    va_start(args, format);
    peal_text_vprintf(&text, format, args);
    va_end(args);
    const char *message = peal_arena_copy(&findings->arena, peal_text_get(&text), text.len);
    peal_text_release(&text);
    struct peal_finding finding = {.level = level, .rule = rule, .pos = pos, .message = message};
    if (!message || !peal_vec_push(&findings->list, finding))
        return NULL;
    return &findings->list.at[findings->list.len - 1];
}

void peal_finding_edit(struct peal_findings *findings, struct peal_finding *finding,
                       uint64_t offset, uint64_t len, const char *text)
{
    if (finding)
        finding->edit =
            (struct peal_edit){offset, len, peal_arena_copy(&findings->arena, text, strlen(text))};
}

const char *peal_finding_level_name(enum peal_finding_level level)
{
    static const char *const names[] = {"note", "warning", "error"};
    return names[level];
}
