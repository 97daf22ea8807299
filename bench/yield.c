/* SPDX-License-Identifier: Apache-2.0 */
/* A preload for MPICH with more ranks than processors: its progress loop spins, and a rank that
 * spins keeps the one it waits for from running. Here it gives the processor away whenever progress
 * found nothing to do. It is not a stock setting; without it MPICH's figures there are
 * milliseconds.
 */
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
