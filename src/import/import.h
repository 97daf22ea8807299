/* SPDX-License-Identifier: Apache-2.0 */
/* import: plans that were written for other engines, read directly into Peal's plans.
 *
 *   msccl/     MSCCL XML (RCCL, msccl-executor-nccl): read.c file -> model, make.c model -> plan,
 *              engine.c what RCCL will do with the file
 *   mscclpp/   MSCCL++ JSON (its executor): json.c text -> tree, read.c and read_ops.c tree ->
 *              model, scan.c, make.c and make_op.c model -> plan
 *   recording/ the calls of peal/record.h as text, which front ends in other processes write
 *   reader.h   what a format provides: a table of functions, one row per format in import.c
 *   fix.h      proposed edits for a fault (propose.c of each format), and edits applied
 *   finding.h  what else a reader should know besides the verdict, with places and fixes
 *
 * A file is opened once (text -> model) and gives a plan for each way in which it may be launched:
 * other counts, in place or not, another FIFO depth. Positions in the plan point into the user's
 * file. The content decides the format, not the name. docs/formats.md says what is read and what
 * each engine guarantees; docs/how-to-add-a-format.md walks through an addition.
 *
 * Start reading at msccl/make.c.
 */
#ifndef PEAL_IMPORT_IMPORT_H
#define PEAL_IMPORT_IMPORT_H

#include "import/finding.h"
#include "import/fix.h"
#include "plan/plan.h"

enum peal_format {
    PEAL_FORMAT_NONE,
    PEAL_FORMAT_MSCCL,
    PEAL_FORMAT_MSCCLPP,
    PEAL_FORMAT_RECORDING
};

/* The format of the text, decided by the first byte that is neither blank nor part of a byte order
 * mark. */
enum peal_format peal_import_format(const char *text, size_t len);
/* "MSCCL XML", "MSCCL++ JSON", "a recording". */
const char *peal_format_name(enum peal_format format);

/* How a file is to be launched. Zero: as the file says. */
enum peal_import_place { PEAL_PLACE_FILE, PEAL_PLACE_IN, PEAL_PLACE_OUT };

struct peal_import_options {
    uint64_t
        /* elements, as the contract counts them; 0 = the least that fits, starting with 256 */
        count;
    uint32_t depth; /* slots of a FIFO; 0 = the engine's */
    uint64_t slot_bytes;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    enum peal_import_place place;
    bool has_root;
    uint32_t root;
    bool pieces;  /* a step of several chunks is one message per chunk: facts.sends_pieces */
    bool lenient; /* for verify: leaves faults to the verifier, which explains them better */
};

enum { PEAL_IMPORT_SETTINGS = 16 };
/* What a file says about itself. Texts live as long as the import. */
struct peal_import_facts {
    enum peal_format format;
    const char *name;
    const char *collective;
    const char *protocol;
    enum peal_contract contract;
    uint32_t nranks;
    bool in_place, out_of_place; /* how the engine would use it */
    uint32_t depth;    /* number of chunks in flight that the engine provides; 0 = no FIFOs */
    bool sends_pieces; /* for large sizes the engine divides messages of several chunks: `pieces` */
    uint64_t steps;
    /* KEY=VALUE: what the file asks of the machine that simulates it. */
    const char *settings[PEAL_IMPORT_SETTINGS];
    uint32_t nsettings;
    /* A recording of a program: how many of its calls it is for (0: it does not say what its calls are), and how many of
     * them a launch is (0: all calls are one launch). */
    bool is_program;
    uint32_t calls, period;
    /* A recording that does not stand for all schedules: why, and the user's line. What is not
     * refuted is not decided then. NULL: it does. */
    const char *varies, *varies_file;
    uint32_t varies_line;
};

struct peal_import;

/* Reads a whole file. The source is borrowed for as long as the import and its plans' diagnostics
 * live. PEAL_INVALID: diags say why, with line and column. PEAL_UNSUPPORTED: this build has no
 * reader for the format, and diags say so. */
enum peal_status peal_import_open(const struct peal_source *source, struct peal_diags *diags,
                                  struct peal_import **out);
void peal_import_close(struct peal_import *import);
const struct peal_import_facts *peal_import_facts(const struct peal_import *import);

/* The position in the file where that rank is described. */
struct peal_pos peal_import_rank_pos(const struct peal_import *import, uint32_t rank);

/* The count that a plan is made for when none is given, and whether the engine accepts `count`. */
uint64_t peal_import_count(const struct peal_import *import);

/* A plan of all ranks, freed with free. */
enum peal_status peal_import_plan(const struct peal_import *import,
                                  const struct peal_import_options *options,
                                  struct peal_diags *diags, struct peal_plan **out);

/* What the engine will do with the file. `least_depth` is the least FIFO depth without deadlock
 * that the verifier found; 0 if it is not known. */
void peal_import_judge(const struct peal_import *import, uint32_t least_depth,
                       struct peal_findings *out);

#endif
