/* SPDX-License-Identifier: Apache-2.0 */
/* comm: implements peal.h, choose.h, plan.h, onesided.h and verify.h on top of all folders but host
 * and cli.
 *
 *   communicator.h  the communicator                  env.h        what launchers set
 *   arguments.h     arguments of calls, checked       collective.c arguments -> calls
 *   resolve.c       calls -> plans and bound memory
 *   uneven.c, exchange.c  calls with counts           message.c    point to point, requests
 *   probe.c         messages both ways, and examined before they are received
 *   requests.c      several requests at once          growth.h     public structures that may grow
 *   symmetric.c     symmetric memory                  group.c      split and shrink
 *   launchers.c     before any communicator is open
 *   verify.c        peal_verify                       verdict.h    a claim's answers as public structs
 *   choice/         peal/choose.h: algorithms, measured choices, algorithms from files
 *   user/           user kernels from text and from plans, and the names of launches in reports
 *   hosts/          opening on several hosts: who this rank is, and how it meets the others
 *   simulated/      a modelled machine instead of this host: its clocks, what messages cost there
 *   onesided/       put, get, signals and atomic operations on symmetric memory
 *   watch/          statistics, traces, observers
 *   tests/          programs against peal.h
 */
#ifndef PEAL_COMM_COMM_H
#define PEAL_COMM_COMM_H

#include "comm/communicator.h"
#include "comm/growth.h"
#include "comm/user/label.h"

#endif
