/* SPDX-License-Identifier: Apache-2.0 */
/* comm: implements peal.h and peal/verify.h, and brings the folders together.
 *
 *   communicator.h  the communicator                  env.h        what launchers say
 *   arguments.h     arguments of calls, checked       collective.c arguments -> calls
 *   resolve.c       calls -> plans and bound memory
 *   uneven.c, exchange.c  calls with counts           message.c    point to point, requests
 *   symmetric.c     symmetric memory                  user.c       user kernels
 *   group.c         split and shrink                  label.h      what reports call a launch
 *   verify.c        peal_verify                       verdict.h    a claim's answers, in public
 *   simulated/      a modelled machine instead of this host: its clocks, what messages cost there
 *   tests/          programs against peal.h
 */
#ifndef PEAL_COMM_COMM_H
#define PEAL_COMM_COMM_H

#include "comm/communicator.h"
#include "comm/label.h"
#include "comm/rules.h"

#endif
