/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of measured times: which collective, how many ranks, how many bytes, how long.
 *
 * Read as they are:
 *
 *   nccl-tests, rccl-tests   "size count type redop root time algbw busbw #wrong ..." rows; ranks from
 *                            "# Rank" lines; the collective from its name, if the output has it, else
 *                            from reduction, root and busbw / algbw
 *   columns with a head      separated by tabs, commas or blanks; known by name: bytes, time_us (_ns, _ms,
 *                            ip_ or in_place: in place), ranks, collective, dtype; others are for `where`
 *   two or three columns     size, time in us, time in place
 *
 * Lines that begin with # are comments, with the exceptions above. A size that is there several times
 * (several runs) counts once, with the median. Rows of size 0 or time 0 are left out, and counted.
 */
#ifndef PEAL_SIM_FIT_TIMINGS_H
#define PEAL_SIM_FIT_TIMINGS_H

#include "base/base.h"

enum {
    PEAL_TIMINGS_MAX_ROWS = 65536,
    PEAL_TIMINGS_MAX_SERIES = 256,
    PEAL_TIMINGS_MAX_FIELDS = 64 /* of a line */
};

struct peal_measured_time {
    uint64_t bytes; /* of a rank's larger buffer, as in nccl-tests */
    double us;
    uint32_t series, line, runs;
};

/* What one collective takes on one number of ranks. */
struct peal_timing_series {
    enum peal_contract collective;
    uint32_t ranks; /* 0: the table does not say */
    enum peal_dtype dtype;
};

struct peal_timings {
    PEAL_VEC(struct peal_timing_series) series;
    PEAL_VEC(struct peal_measured_time) rows; /* by series, then by size; each size once */
    uint32_t skipped, first_skipped;          /* rows without size or time; the first one's line */
};

struct peal_timings_where {
    const char *column, *value;
};

struct peal_timings_options {
    enum peal_contract
        collective; /* instead of what the table says; PEAL_CONTRACT_NONE: as it says */
    uint32_t ranks; /* likewise; 0 */
    bool in_place;
    const struct peal_timings_where *where; /* only rows that have all these values */
    size_t nwhere;
};

/* PEAL_INVALID: errors by line. Release it in every case. */
enum peal_status peal_timings_read(const struct peal_source *source,
                                   const struct peal_timings_options *options,
                                   struct peal_diags *diags, struct peal_timings *out);
void peal_timings_release(struct peal_timings *timings);

#endif
