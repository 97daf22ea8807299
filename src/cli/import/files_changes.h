/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that may fix a program which is refuted, in the author's terms, at lines of the counterexample. Nothing is tried here. */
#ifndef PEAL_CLI_IMPORT_FILES_CHANGES_H
#define PEAL_CLI_IMPORT_FILES_CHANGES_H

#include "cli/import/files.h"

enum { PEAL_PROGRAM_TRIES = 12 };

/* A change: the setting of the recorder that makes it, and its name in the author's terms; without a name, the recorder says it in a note. */
struct program_change {
    char setting[512], words[512];
    struct peal_verify_place place;
};

struct program_changes {
    struct program_change at[PEAL_PROGRAM_TRIES];
    uint32_t count;
    uint32_t together; /* of the first: they are tried as one, too */
};

/* Those for the counterexample of the task, likely ones first. */
void peal_program_list_changes(const struct peal_files_job *job, const struct peal_file_task *task,
                               struct program_changes *all);
/* Is the task a Pallas kernel? */
bool peal_program_is_pallas(const struct peal_file_task *task);

#endif
