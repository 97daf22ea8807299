/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of a text: see fix.h. What is proposed: msccl/propose.c, mscclpp/propose.c. */
#include "import/fix.h"

#include <stdlib.h>
#include <string.h>

char *peal_edits_apply(const struct peal_source *source, const struct peal_edit *edits,
                       uint32_t count, size_t *len)
{
    size_t extra = 0, at = 0, n = 0;
    for (uint32_t i = 0; i < count; i++)
        extra += strlen(edits[i].text);
    char *out = malloc(source->len + extra + 1);
    bool used[PEAL_FINDING_EDITS] = {false};
    if (!out)
        return NULL;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t next = count;
        for (uint32_t i = 0; i < count; i++) {
            if (!used[i] && (next == count || edits[i].offset < edits[next].offset))
                next = i;
        }
        const struct peal_edit *e = &edits[next];
        used[next] = true;
        if (e->offset < at || e->offset + e->len > source->len) {
            free(out);
            return NULL;
        }
        memcpy(out + n, source->text + at, e->offset - at);
        n += e->offset - at;
        memcpy(out + n, e->text, strlen(e->text));
        n += strlen(e->text);
        at = e->offset + e->len;
    }
    memcpy(out + n, source->text + at, source->len - at);
    n += source->len - at;
    out[n] = '\0';
    *len = n;
    return out;
}

size_t peal_edits_offset(const struct peal_source *source, uint32_t line, uint32_t col)
{
    size_t at = 0;
    for (uint32_t l = 1; l < line && at < source->len; l++) {
        const char *end = memchr(source->text + at, '\n', source->len - at);
        if (end)
            at = (size_t)(end - source->text) + 1;
        else
            at = source->len;
    }
    at += col - 1;
    return peal_size_min(at, source->len);
}
