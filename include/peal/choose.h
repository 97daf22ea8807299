/* SPDX-License-Identifier: Apache-2.0 */
/* peal/choose.h: the algorithms of the collectives, which one a call takes, and tables of measured
 * choices. `peal bench` and `peal tune` use this header.
 *
 *     struct peal_algorithm algo = {.struct_size = sizeof algo};
 *     for (size_t i = 0; peal_algorithm_get(i, &algo) == PEAL_OK; i++)
 *         printf("%s: %s\n", algo.collective, algo.name);
 *
 * A call takes the forced algorithm, if there is one (peal_comm_set_algo, PEAL_ALGO); otherwise
 * that of the first rule that covers it in the table of measured choices; otherwise that of the
 * built-in table. The table of measured choices is read from the file that peal_tuning_path names
 * when a communicator is opened; peal_comm_set_tuning replaces it.
 */
#ifndef PEAL_CHOOSE_H
#define PEAL_CHOOSE_H

#include <peal/peal.h>
#include <peal/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- algorithms ---- */

/* Texts and arrays are valid as long as the library is loaded. */
struct peal_algorithm {
    uint32_t struct_size; /* sizeof(struct peal_algorithm), or 0: as it is in 0.2.0 */
    int reaches; /* peers use the caller's buffers in place, in symmetric memory or by reading them */
    const char *collective; /* "allreduce" */
    const char *name;       /* "ring", as peal_comm_set_algo takes it */
    const char *kernel;     /* of the library: "allreduce_ring" */
    const uint64_t
        *segments; /* segment sizes worth trying, in bytes, ascending; a 0 ends the list */
};
/* The algorithm of this number; those of one collective follow each other. PEAL_INVALID: there are
 * fewer algorithms. */
PEAL_API enum peal_status peal_algorithm_get(size_t index, struct peal_algorithm *out);

/* What peal_comm_explain says, as data. Texts are valid until the communicator's tables or forced
 * algorithms change. */
struct peal_chosen {
    uint32_t struct_size; /* sizeof(struct peal_chosen), or 0: as it is in 0.2.0 */
    int measured;         /* chosen by the table of measured choices */
    const char *algo;     /* as in struct peal_algorithm; for a kernel from a file: its name */
    const char *kernel;
    uint64_t segment; /* largest number of bytes per launch; 0: no limit */
    const char *why;  /* "forced", "built-in table", ... */
};
/* Properties of a call: both buffers are in symmetric memory; the result replaces the input. */
enum peal_choose_flags { PEAL_CHOOSE_SYMMETRIC = 1, PEAL_CHOOSE_IN_PLACE = 2 };
/* Which algorithm a call would take whose vector, or block, has that many bytes. Not collective;
 * the answer is the same on all ranks. PEAL_INVALID: no such collective, or no communicator. */
PEAL_API enum peal_status peal_comm_chosen(struct peal_comm *comm, const char *collective,
                                           uint64_t bytes, uint32_t flags, struct peal_chosen *out);

/* ---- measured choices ---- */

/* A rule: with that many ranks, calls of up to that many bytes take this algorithm. */
struct peal_tuned {
    uint32_t struct_size; /* sizeof(struct peal_tuned), the same in all, or 0: as it is in 0.2.0 */
    uint32_t ranks;
    int symmetric;  /* 1: for calls with both buffers in symmetric memory; 0: for all others */
    uint32_t hosts; /* for ranks on that many hosts, with any memory; 0: for ranks on one host */
    const char *collective;
    const char *algo;
    uint64_t bytes;   /* of a vector, or of a block */
    uint64_t segment; /* largest number of bytes per launch; not 0 */
};

/* Replaces the communicator's rules by a copy of these. The first rule that covers a call is taken.
 * All ranks must set the same rules: calls that take different algorithms end with PEAL_MISMATCH.
 * PEAL_INVALID: a rule names a collective or an algorithm that does not exist. */
PEAL_API enum peal_status peal_comm_set_tuning(struct peal_comm *comm,
                                               const struct peal_tuned *rules, size_t count);

/* The path of the file that communicators read rules from: $PEAL_TUNE_FILE, or peal/tune in
 * $XDG_CONFIG_HOME or ~/.config. PEAL_INVALID: none of these variables is set, or `cap` is too
 * small. */
PEAL_API enum peal_status peal_tuning_path(char *out, size_t cap);
/* Calls `each` for every rule of a file, in order; a missing file has none. Lines that are not
 * rules are skipped. The rule and its texts are valid only during the call. */
PEAL_API void peal_tuning_read(const char *path,
                               void (*each)(void *context, const struct peal_tuned *rule),
                               void *context);
/* Writes a file of rules, and makes the folders of its path. A reader sees either the old file or
 * the new one. PEAL_SYSTEM: the file cannot be written, errno says why, and the old one is
 * unchanged. */
PEAL_API enum peal_status peal_tuning_write(const char *path, const struct peal_tuned *rules,
                                            size_t count);
/* Checks whether peal_tuning_write could write the file. Makes the folders of the path, and changes
 * nothing else. */
PEAL_API enum peal_status peal_tuning_check(const char *path);

#ifdef __cplusplus
}
#endif
#endif
