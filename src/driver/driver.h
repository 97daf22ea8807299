/* SPDX-License-Identifier: Apache-2.0 */
/* driver: implements peal/host.h, one program, the host, that drives many workers.
 *
 *   open.c      platforms, workers' memory, opening and closing
 *   handle.c    numbers for tensors, domains and works; errors for wrong ones
 *   memory.c    where tensors lie in a worker's memory
 *   tensor.c    tensors, their parts, reading and writing
 *   domain.c    domains, their buffers, release
 *   work.c      kernels and functions, plans for their arguments
 *   argument.c  arguments of a task, checked against the work's parameters
 *   submit.c    a task becomes a block in its workers' queues
 *   order.c     which earlier tasks a task must wait for
 *   wait.c      ends of tasks, failures and their messages
 *   worker.c    a worker's two threads
 *   launch.c    one task on one worker: communicators, kernels, functions
 *   taint.c     what failed tasks left undefined
 *   native.c    starting workers, noticing their death
 *   simulate.c  the queues as one plan (made by link.c) on a modelled machine
 *   record.c    times of tasks, the critical path; picture.c draws them
 *   check.c     proves the graph of held tasks
 *   matmul.c    the built-in function
 *   hosts/      workers on other hosts: starting them, and what they and the driver send each other
 *   simulate_kernel.c  peal/simulate.h: one kernel on a modelled machine
 *   state/      what is shared: between the host's files, and between host and workers (state.h)
 *
 * Everything goes through one structure, the block: submit.c writes it once, and workers or the
 * simulator read it. Start reading at state.h, then submit.c and worker.c.
 */
#ifndef PEAL_DRIVER_DRIVER_H
#define PEAL_DRIVER_DRIVER_H

#include <peal/host.h>

#include <stdbool.h>

/* May these be the parameters of a function: "in, out, int"? */
bool peal_function_takes(const char *parameters);

#endif
