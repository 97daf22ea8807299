/* SPDX-License-Identifier: Apache-2.0 */
/* A host on a modelled machine: peal_host_open refuses it. */
#include "host/state.h"

enum peal_status peal_simulated_flush(struct peal_host *host)
{
    return peal_host_fail(host, PEAL_UNSUPPORTED, "hosts do not run on machines yet");
}
