/* SPDX-License-Identifier: Apache-2.0 */
/* See require.h. */
#include "cli/verify/require.h"

#include <string.h>

bool peal_require_parse(const struct peal_cli *cli, const char *text, uint32_t *out)
{
    static const struct {
        const char *name;
        uint32_t flag;
    } known[] = {{"same-bits", PEAL_REQUIRE_SAME_BITS},
                 {"closed", PEAL_REQUIRE_CLOSED},
                 {"repeatable", PEAL_REQUIRE_REPEATABLE},
                 {"result", PEAL_REQUIRE_RESULT}};
    const size_t count = sizeof known / sizeof *known;
    *out = 0;
    while (text && *text) {
        size_t len = strcspn(text, ","), i = 0;
        while (i < count && (strlen(known[i].name) != len || memcmp(known[i].name, text, len) != 0))
            i++;
        if (i == count) {
            peal_cli_usage(cli,
                           "--require %.*s: there are same-bits, closed, repeatable and result",
                           (int)len, text);
            return false;
        }
        *out |= known[i].flag;
        text += len + (text[len] == ',');
    }
    return true;
}

const char *peal_require_lacks(uint32_t require, const struct peal_verification *v)
{
    if (v->verdict != PEAL_PROVED)
        return NULL;
    if ((require & PEAL_REQUIRE_SAME_BITS) && v->bits == PEAL_BITS_DIFFERENT)
        return "the bits are not the same on all ranks";
    if ((require & PEAL_REQUIRE_CLOSED) && v->reuse < PEAL_REUSE_CLOSED)
        return "it is not closed";
    if ((require & PEAL_REQUIRE_REPEATABLE) && v->reuse < PEAL_REUSE_REPEATABLE)
        return "it is not repeatable";
    if ((require & PEAL_REQUIRE_RESULT) && v->contract == PEAL_CONTRACT_NONE && !v->promises)
        return "it has no contract, so the result is not checked";
    return NULL;
}
