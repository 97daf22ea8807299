/* SPDX-License-Identifier: Apache-2.0 */
/* The proof behind peal run --verify; verdicts are looked up and kept (verify/cache.h). */
#include "cli/verify/verify_first.h"

#include "verify/verify.h"

#include <stdio.h>

int peal_verify_first(const struct peal_cli *cli, const struct peal_plan *plan)
{
    struct peal_verification *verification;
    struct peal_verify_options options = {0};
    enum peal_status status =
        peal_verify_cached(plan, &options, peal_cache_folder(cli->arena), &verification);
    if (status != PEAL_OK)
        return peal_cli_fail(cli, "cannot verify: %s", peal_status_text(status));
    int code = PEAL_EXIT_OK;
    if (verification->verdict != PEAL_PROVED) {
        struct peal_text text = {0};
        peal_verification_explain(verification, &text);
        fputs(peal_text_get(&text), stderr);
        peal_text_release(&text);
        code = verification->verdict == PEAL_REFUTED ? PEAL_EXIT_NO : PEAL_EXIT_OTHER;
    }
    peal_verification_free(verification);
    return code;
}
