/* SPDX-License-Identifier: Apache-2.0 */
/* peal verify --fix for kernels: advice becomes a change of the text, which keeps
 * its comments and layout. A change is used only if the changed text is proved. */
#ifndef PEAL_CLI_VERIFY_TEXT_FIX_H
#define PEAL_CLI_VERIFY_TEXT_FIX_H

#include "lang/lang.h"
#include "verify/verify.h"

/* The text with the advice applied to that kernel of it. False: this advice is about something else
 * than the text, or cannot be written down simply. */
bool peal_text_fix(const struct peal_source *source, const struct peal_kernel *kernel,
                   const struct peal_verify_advice *advice, struct peal_text *out);

#endif
