/* SPDX-License-Identifier: Apache-2.0 */
/* A trace of what really ran, in the format that Perfetto opens: a file for all ranks of a job.
 *
 * A rank collects its events as text and appends them when there are many, and when the
 * communicator is closed. The file is a complete JSON document after every append: under a lock of
 * the file, the closing brackets are overwritten and written again. So it does not matter which
 * rank writes last, and the file stays readable if a rank is killed. */
#ifndef PEAL_COMM_WATCH_TRACER_H
#define PEAL_COMM_WATCH_TRACER_H

#include "run/run.h"

struct peal_tracer;

/* The file of a job's trace; false: PEAL_TRACE is not set, or its path is too long. */
bool peal_tracer_path(const char *job, char *out, size_t cap);

/* For a communicator that is rank `group` of its job's first one. NULL: no memory. */
struct peal_tracer *peal_tracer_new(const char *path, uint32_t group, const struct peal_team *team);
/* The file, and the rank in it: for communicators that are made from this one. */
const char *peal_tracer_file(const struct peal_tracer *tracer);
uint32_t peal_tracer_group(const struct peal_tracer *tracer);

/* The frame's next launch is to be traced. */
void peal_tracer_prepare(struct peal_tracer *tracer, const struct peal_call *call,
                         struct peal_frame *frame);
void peal_tracer_launch(struct peal_tracer *tracer, const struct peal_call *call,
                        struct peal_frame *frame);
void peal_tracer_call(struct peal_tracer *tracer, const struct peal_call *call,
                      enum peal_status status);

/* Appends what is left, and frees; no call may follow. NULL is ignored. */
void peal_tracer_free(struct peal_tracer *tracer);

#endif
