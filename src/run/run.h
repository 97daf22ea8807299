/* SPDX-License-Identifier: Apache-2.0 */
/* run: plans on real ranks, processes of one host or of several, or threads of one process.
 *
 *   bootstrap/    how a team is made: ranks meet (rendezvous.h), open or derive it (open.c,
 *                 derive.c), and meet again after a failure (survivors.h)
 *   choose/       from a call to the plan it launches: class and segments (segments.h), the plan
 *                 cache (plans.h)
 *   call/         one collective call, blocking or not (call.h), point-to-point messages (mail.h)
 *   exec/         a plan made ready for one rank (image.h), where its launches live (family.h), and
 *                 the loop that executes it (exec.h): channels, cells that share a line
 *                 (multicast.h), memory of other processes (remote.h), of other hosts (far.h)
 *   wait/         how ranks wait (backoff.h), why one waits (doctor.h), failure and its report
 *   algorithms/   the kinds of calls (collective.h), and which algorithm serves each (select.h)
 *   span/         teams on several hosts: what a team knows of far ranks, failure across hosts
 *   net/          transports between hosts: what one provides (net.h), the transports, and how
 *                 ranks meet that cannot reach each other yet (meet.h, hosts.h)
 *   team/memory/  shared memory (window.h), what communicators share of it (windows.h), available
 *                 memory (memory_limit.h, prefault.h)
 *   team/         ranks that share windows (team.h), what lies in a window (shared.h), cores and
 *                 binding (topo.h)
 *
 * Each includes only folders below it in this list. Start reading at exec/exec.c: everything else
 * prepares what its loop needs.
 */
#ifndef PEAL_RUN_RUN_H
#define PEAL_RUN_RUN_H

#include "run/algorithms/collective.h"
#include "run/algorithms/select.h"
#include "run/bootstrap/open.h"
#include "run/bootstrap/rendezvous.h"
#include "run/bootstrap/survivors.h"
#include "run/call/call.h"
#include "run/call/under_way.h"
#include "run/choose/plans.h"
#include "run/choose/segments.h"
#include "run/exec/image.h"
#include "run/exec/multicast.h"
#include "run/exec/remote.h"
#include "run/exec/trace.h"
#include "run/net/crypto.h"
#include "run/net/hosts.h"
#include "run/net/meet.h"
#include "run/net/net.h"
#include "run/span/span.h"
#include "run/team/memory/memory_limit.h"
#include "run/team/memory/window.h"
#include "run/team/memory/windows.h"
#include "run/team/shared.h"
#include "run/team/team.h"
#include "run/team/topo.h"
#include "run/wait/backoff.h"
#include "run/wait/doctor.h"

#endif
