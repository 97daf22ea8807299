/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces read.c if expat was not available when Peal was built. */
#include "import/msccl/msccl.h"

enum peal_status peal_msccl_read(struct peal_import *import, struct peal_diags *diags)
{
    (void)import;
    peal_diag_error(
        diags, (struct peal_pos){0},
        "this build reads no XML: expat (libexpat1-dev) was not there when it was made");
    return PEAL_UNSUPPORTED;
}
