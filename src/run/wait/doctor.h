/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor: why a rank waits, and the report when the wait does not end.
 *
 * A rank that waits for long publishes where (publish) and checks its peers (check): has one died,
 * left, or come to another call? The first rank that finds something wrong, or whose time-out ends,
 * reports for all.
 */
#ifndef PEAL_RUN_DOCTOR_H
#define PEAL_RUN_DOCTOR_H

#include "run/wait/backoff.h"

void peal_doctor_publish(struct peal_team *team, const struct peal_backoff *pause);
void peal_doctor_unpublish(struct peal_team *team);

/* Sets the text, name and arguments, by which reports describe kernel launches of this rank whose
 * call has that count. The last few are remembered. */
bool peal_doctor_has_label(const struct peal_team *team, uint64_t count);
void peal_doctor_label(struct peal_team *team, uint64_t count, const char *text);

/* PEAL_OK to go on waiting; otherwise the team has failed. */
enum peal_status peal_doctor_check(struct peal_team *team, struct peal_backoff *pause,
                                   uint64_t waited_ns);

/* A peer's message did not fit this rank's call: finds out which peer, reports, fails the team. */
enum peal_status peal_doctor_mismatch(struct peal_team *team, const struct peal_backoff *pause);

/* A peer's memory could not be read: dead, or the system's refusal (errno). */
enum peal_status peal_doctor_unread(struct peal_team *team, const struct peal_backoff *pause,
                                    uint32_t rank, int error);

/* What a rank is doing, as one line without newline; also for a job that is only observed. */
void peal_doctor_describe(const struct peal_control *control, struct peal_text *out);

/* Whom to suspect when nothing moves: a rank that is outside any call, else one that waits for no
 * rank; `self` if there is none. Entries may be NULL. */
uint32_t peal_doctor_suspect(struct peal_control *const *controls, uint32_t count, uint32_t self);

/* How a process ended, if the launcher has reported it: ", killed by signal 9", or "". Launchers
 * pass a file as descriptor PEAL_STATUS_FD: a word for each rank, 0 until that has ended, then its
 * process and wait status (pid << 32 | status). By process, as ranks have other numbers after a
 * split. */
void peal_doctor_exit_text(int32_t pid, struct peal_text *out);

#endif
