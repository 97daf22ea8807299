/* SPDX-License-Identifier: Apache-2.0 */
/* peal/choose.h: the algorithms of the collectives, which one a call takes, and tables of what was
 * measured. It is what `peal bench` and `peal tune` use.
 *
 *     struct peal_algorithm algo = {.struct_size = sizeof algo};
 *     for (size_t i = 0; peal_algorithm_get(i, &algo) == PEAL_OK; i++)
 *         printf("%s: %s\n", algo.collective, algo.name);
 *
 * A call takes the algorithm that was forced (peal_comm_set_algo, PEAL_ALGO); otherwise the first
 * rule of the table of measured choices that covers it; otherwise what the library's own table
 * says. The table of measured choices is the file that peal_tuning_path names, read when a
 * communicator is opened, or what peal_comm_set_tuning gave it since.
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

/* Texts and arrays live as long as the library. */
struct peal_algorithm {
    uint32_t struct_size; /* sizeof(struct peal_algorithm), or 0: as it is in 0.2.0 */
    int reaches; /* peers use the caller's memory where it lies: symmetric, or reachable otherwise */
    const char *collective;   /* "allreduce" */
    const char *name;         /* "ring", as peal_comm_set_algo takes it */
    const char *kernel;       /* in the library: "allreduce_ring" */
    const uint64_t *segments; /* bytes of segments worth trying, ascending; 0 ends them */
};
/* The algorithms of all collectives by number, those of one collective one after the other.
 * PEAL_INVALID: there are fewer. */
PEAL_API enum peal_status peal_algorithm_get(size_t index, struct peal_algorithm *out);

/* What peal_comm_explain says, as data. Texts live until the communicator's tables or forced
 * algorithms change. */
struct peal_chosen {
    uint32_t struct_size; /* sizeof(struct peal_chosen), or 0: as it is in 0.2.0 */
    int measured;         /* from the table of measured choices */
    const char *algo;     /* as in struct peal_algorithm; of a file: its kernel's name */
    const char *kernel;
    uint64_t segment; /* bytes that one launch takes at most; 0: all */
    const char *why;  /* "forced", "built-in table", ... */
};
/* Of the call: both buffers in symmetric memory; the result in the place of the input. */
enum peal_choose_flags { PEAL_CHOOSE_SYMMETRIC = 1, PEAL_CHOOSE_IN_PLACE = 2 };
/* Which algorithm a call of that many bytes, a vector's or a block's, would take. Not collective, and
 * the same on all ranks. PEAL_INVALID: no such collective, or no communicator. */
PEAL_API enum peal_status peal_comm_chosen(struct peal_comm *comm, const char *collective,
                                           uint64_t bytes, uint32_t flags, struct peal_chosen *out);

/* ---- measured choices ---- */

/* A rule: on that many ranks, calls of up to that many bytes take this algorithm. */
struct peal_tuned {
    uint32_t struct_size; /* sizeof(struct peal_tuned), the same in all, or 0: as it is in 0.2.0 */
    uint32_t ranks;
    int symmetric; /* for calls with both buffers in symmetric memory; 0: for all others */
    uint32_t
        hosts; /* for calls between ranks on that many hosts, whatever their memory; 0: on one */
    const char *collective;
    const char *algo;
    uint64_t bytes;   /* of a vector, or of a block */
    uint64_t segment; /* bytes that one launch takes at most; not 0 */
};

/* From now on the communicator has these rules instead of what it read when it was opened; of several that
 * cover a call, the first. They are copied. All ranks must give the same: calls that take different
 * algorithms are PEAL_MISMATCH. PEAL_INVALID: a rule names what does not exist. */
PEAL_API enum peal_status peal_comm_set_tuning(struct peal_comm *comm,
                                               const struct peal_tuned *rules, size_t count);

/* Where communicators look for a table: $PEAL_TUNE_FILE, or peal/tune in $XDG_CONFIG_HOME or ~/.config.
 * PEAL_INVALID: none of these variables is set, or the path does not fit. */
PEAL_API enum peal_status peal_tuning_path(char *out, size_t cap);
/* Calls `each` for every rule of a file, in order; a missing file has none. Lines that are not rules are
 * left out. The rule and its texts are valid during the call. */
PEAL_API void peal_tuning_read(const char *path,
                               void (*each)(void *context, const struct peal_tuned *rule),
                               void *context);
/* Writes a table, and the folders of its path. Readers see the old table or the new one. PEAL_SYSTEM:
 * errno says why it cannot be written, and the old one is still there. */
PEAL_API enum peal_status peal_tuning_write(const char *path, const struct peal_tuned *rules,
                                            size_t count);
/* Could it be written now? Changes nothing but the folders of the path, which it makes. */
PEAL_API enum peal_status peal_tuning_check(const char *path);

#ifdef __cplusplus
}
#endif
#endif
