/* SPDX-License-Identifier: Apache-2.0 */
/* A preload for MPICH with more ranks than processors. MPICH's progress loop spins, and a spinning
 * rank keeps the rank that it waits for from running; with this preload it yields whenever progress
 * found nothing to do. This is not a setting of MPICH itself, whose calls take milliseconds there
 * without it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker);

unsigned ucp_worker_progress(void *worker)
{
    /* Set once to the same value by the thread that comes first. */
    static unsigned (*progress)(void *);
    if (!progress)
        *(void **)&progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
    unsigned done = progress(worker);
    if (done == 0)
        sched_yield();
    return done;
}
