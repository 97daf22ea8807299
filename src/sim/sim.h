/* SPDX-License-Identifier: Apache-2.0 */
/* sim: plans on a modelled machine. Time first, data afterwards.
 *
 *   fit/      a machine's keys from measured times (fit.h), and tables of those (timings.h)
 *   parts/    one component per file: dma.c protocol.c link.c fluid.c memory.c math.c ipcq.c credit.c
 *             signal.c, host.c (cores and caches instead of engines), and ops that end while others begin: async.c, writes.c
 *   data/     phase 2: the log on real data (replay.c), or on a sample of it (sample.h)
 *   engine/   run plans, read results (simulation.h): the event queue (queue.h), the loop
 *             (engine.c), what each op costs (code.c), lanes (pe.c), the ways between ranks
 *             (router.c), plans too large to hold (stream.c), what is
 *             recorded (oplog.c) and what that shows: path.c, deadlock.c, bound.h
 *   machine/  a machine file, resolved (machine.h), and where its ranks are (place.c)
 *
 * Each includes only folders below it in this list. Start reading at simulation.h, then
 * engine/engine.c.
 */
#ifndef PEAL_SIM_SIM_H
#define PEAL_SIM_SIM_H

#include "sim/engine/bound.h"
#include "sim/engine/simulation.h"
#include "sim/fit/fit.h"
#include "sim/fit/search.h"
#include "sim/fit/timings.h"
#include "sim/machine/machine.h"

#endif
