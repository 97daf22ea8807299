/* SPDX-License-Identifier: Apache-2.0 */
/* run: plans on real ranks, processes of one host or of several, or threads of one process.
 *
 *   team/    ranks that share windows: how they meet (rendezvous.h), what lies in the windows
 *            (shared.h), cores and binding (topo.h, own_core.h), failure (team.h);
 *            memory/: shared memory (window.h), what communicators share of it (windows.h), available
 *            memory (memory_limit.h, prefault.h)
 *   exec/    a plan made ready for one rank (image.h), and the loop that executes it (exec.h):
 *            channels, cells that share a line (multicast.h), memory of other processes (remote.h)
 *   call/    one collective call, blocking or not (call.h): the kinds of calls (collective.h), where
 *            their launches live (family.h), how they wait (backoff.h), point-to-point messages
 *            (mail.h), why a rank waits (doctor.h)
 *   span/    teams on several hosts: what a team knows of far ranks, failure across hosts
 *   net/     transports between hosts: what one provides (net.h), the transports, and how ranks meet
 *            that cannot reach each other yet (meet.h, hosts.h)
 *   choose/  from a call to the plan it launches: which algorithm (select.h), class and segments
 *            (segments.h), the plan cache (plans.h)
 *
 * Start reading at exec/exec.c: everything else prepares what its loop needs.
 */
#ifndef PEAL_RUN_RUN_H
#define PEAL_RUN_RUN_H

#include "run/call/backoff.h"
#include "run/call/call.h"
#include "run/call/collective.h"
#include "run/call/doctor.h"
#include "run/call/under_way.h"
#include "run/choose/plans.h"
#include "run/choose/segments.h"
#include "run/choose/select.h"
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
#include "run/team/rendezvous.h"
#include "run/team/shared.h"
#include "run/team/survivors.h"
#include "run/team/team.h"
#include "run/team/topo.h"
#include "run/team/memory/window.h"
#include "run/team/memory/windows.h"

#endif
