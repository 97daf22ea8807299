/* SPDX-License-Identifier: Apache-2.0 */
/* comm: implements peal.h, choose.h, plan.h, onesided.h and verify.h on top of all folders but driver
 * and cli.
 *
 *   communicator.c  opens and closes                  collective.c arguments -> calls
 *   exchange.c      calls with counts                 message.c    point to point, requests
 *   probe.c         messages both ways, and examined before they are received
 *   requests.c      several requests at once          launchers.c  before any communicator is open
 *   symmetric.c     symmetric memory                  group.c      split and shrink
 *   verify.c        peal_verify                       verdict.h    a claim's answers as public structs
 *   tests/          programs against peal.h
 *
 *   choice/         peal/choose.h: algorithms, measured choices, algorithms from files
 *   user/           user kernels from text and from plans, and the names of launches in reports
 *   simulated/      a modelled machine instead of this host: its clocks, what messages cost there
 *   hosts/          opening on several hosts: who this rank is, and how it meets the others
 *   onesided/       put, get, signals and atomic operations on symmetric memory
 *   watch/          statistics, traces, observers
 *   core/           the communicator (communicator.h), what launchers set (env.h), arguments of
 *                   calls, checked (arguments.h), calls -> plans and bound memory (resolve.c),
 *                   user-defined reductions (reductions.h), what calls move (shape.h), public
 *                   structures that may grow (growth.h)
 *
 * Files of the folder itself include the sub-folders; of these, choice includes user, both include
 * simulated, and all include core.
 */
#ifndef PEAL_COMM_COMM_H
#define PEAL_COMM_COMM_H

#include "comm/core/communicator.h"
#include "comm/core/env.h"
#include "comm/core/growth.h"
#include "comm/simulated/machine_kernel.h"
#include "comm/user/label.h"

#endif
