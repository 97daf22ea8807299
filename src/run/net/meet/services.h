/* SPDX-License-Identifier: Apache-2.0 */
/* The services that meetings go through, each opened from what its launcher left in the environment. */
#ifndef PEAL_RUN_SERVICES_H
#define PEAL_RUN_SERVICES_H

#include "run/net/hosts.h"
#include "run/net/meet.h"

/* peal exec --hosts: messages (hosts.h) on a socket that the rank inherits as descriptor PEAL_MEET_FD. */
enum peal_status peal_meet_open_hosts(uint32_t timeout_ms, struct peal_text *why,
                                      struct peal_meet **out);
enum peal_status peal_meet_open_pmix(uint32_t timeout_ms, struct peal_text *why,
                                     struct peal_meet **out);
enum peal_status peal_meet_open_pmi(uint32_t timeout_ms, struct peal_text *why,
                                    struct peal_meet **out);

#endif
