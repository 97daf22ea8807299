/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about programs in Python whose kernels were recorded: what was proved for how many calls, what that assumes, and
 * counterexamples with the author's lines, programs and calls. */
#ifndef PEAL_CLI_IMPORT_FILES_PROGRAM_H
#define PEAL_CLI_IMPORT_FILES_PROGRAM_H

#include "cli/import/files.h"

#define PEAL_PROGRAM_FIX "tried" /* the rule of findings that would fix a program */

/* Finds out which call and program each step of the run's counterexample belongs to, while the plan and the recording's text
 * are there. */
void peal_program_place_steps(struct peal_file_task *task, struct peal_file_run *run,
                              const struct peal_plan *plan);
/* "for any number of calls", "for 3 calls": what a proof speaks of. */
void peal_program_scope(const struct peal_file_task *task, const struct peal_verification *v,
                        struct peal_text *out);
/* files_program_fix.c. Where some calls of a program are proved that are no launches: does that tell of any number of calls? */
void peal_program_ask_for_all_calls(const struct peal_files_job *job);
/* Looks for a change of one line that proves the first number of ranks that is refuted, and adds it to its
 * findings. */
void peal_program_find_fix(const struct peal_files_job *job);
/* --fix: makes that change in the author's file, if it is one of a line, and says so. After the reports, which show the file as it was. */
void peal_program_fix(const struct peal_files_job *job, struct peal_text *out);
/* The task that is told: the first refuted one, or else the first that is not proved; NULL: all are. */
const struct peal_file_task *peal_program_worst(const struct peal_files_job *job);
/* Are all tasks of the job recordings of programs? */
bool peal_program_is(const struct peal_files_job *job);
/* Everything up to the line of totals. */
void peal_program_report(const struct peal_files_job *job, struct peal_text *out);

#endif
