/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the formats: the import behind the entrance's opaque type, and how a collective's
 * buffers become a plan's. Internal to this folder. */
#ifndef PEAL_IMPORT_READER_H
#define PEAL_IMPORT_READER_H

#include "import/import.h"

struct msccl_algo;
struct mscclpp_plan;

struct peal_import {
    struct peal_arena arena; /* owns the model */
    const struct peal_source *source;
    struct peal_import_facts facts;
    struct msccl_algo *msccl;     /* or NULL */
    struct mscclpp_plan *mscclpp; /* or NULL */
};

/* The functions of a format; its row is in import.c. */
struct peal_import_reader {
    const char *name; /* "MSCCL XML" */
    /* Fills import->facts and the model. */
    enum peal_status (*read)(struct peal_import *import, struct peal_diags *diags);
    enum peal_status (*make)(const struct peal_import *import,
                             const struct peal_import_options *options, struct peal_diags *diags,
                             struct peal_plan **out);
    uint64_t (*count)(const struct peal_import *import);
    struct peal_pos (*rank_pos)(const struct peal_import *import, uint32_t rank);
    /* What the engine will do with the file, which needs this depth of its FIFOs (0: not known). */
    void (*judge)(const struct peal_import *import, uint32_t least_depth,
                  struct peal_findings *out);
    /* Adds edits that may repair the fault at `site`. NULL: it has no proposals. */
    void (*propose)(const struct peal_import *import, const struct peal_fix_site *site,
                    struct peal_findings *out);
};

enum peal_status peal_msccl_read(struct peal_import *import, struct peal_diags *diags);
enum peal_status peal_mscclpp_read(struct peal_import *import, struct peal_diags *diags);
enum peal_status peal_msccl_make(const struct peal_import *import,
                                 const struct peal_import_options *options,
                                 struct peal_diags *diags, struct peal_plan **out);
enum peal_status peal_mscclpp_make(const struct peal_import *import,
                                   const struct peal_import_options *options,
                                   struct peal_diags *diags, struct peal_plan **out);
uint64_t peal_mscclpp_count(const struct peal_import *import);
uint64_t peal_msccl_count(const struct peal_import *import);
struct peal_pos peal_msccl_rank_pos(const struct peal_import *import, uint32_t rank);
struct peal_pos peal_mscclpp_rank_pos(const struct peal_import *import, uint32_t rank);
void peal_msccl_judge(const struct peal_import *import, uint32_t least_depth,
                      struct peal_findings *out);
void peal_msccl_propose(const struct peal_import *import, const struct peal_fix_site *site,
                        struct peal_findings *out);
void peal_mscclpp_propose(const struct peal_import *import, const struct peal_fix_site *site,
                          struct peal_findings *out);
enum peal_status peal_recording_read(struct peal_import *import, struct peal_diags *diags);
enum peal_status peal_recording_make(const struct peal_import *import,
                                     const struct peal_import_options *options,
                                     struct peal_diags *diags, struct peal_plan **out);
uint64_t peal_recording_count(const struct peal_import *import);
struct peal_pos peal_recording_rank_pos(const struct peal_import *import, uint32_t rank);
void peal_recording_judge(const struct peal_import *import, uint32_t least_depth,
                          struct peal_findings *out);
void peal_mscclpp_judge(const struct peal_import *import, uint32_t least_depth,
                        struct peal_findings *out);

/* The collective of that name in any of the engines' spellings. False: unknown. `custom` and the
 * point-to-point ones have no contract. */
bool peal_import_contract(const char *name, enum peal_contract *out);

enum { IMPORT_MAX_CELLS = 1 << 24 };            /* of all ranks together */
#define IMPORT_MAX_ELEMENTS (UINT64_C(1) << 34) /* of a chunk or a buffer */

/* Where the engines' buffers `i` and `o` are in the plan. In place, one of them is a part of the
 * other, and is accessed through the whole. */
enum { IMPORT_INPUT, IMPORT_OUTPUT, IMPORT_SCRATCH, IMPORT_KINDS };

struct peal_import_bufs {
    struct peal_assembler *a;
    uint32_t nranks;
    enum peal_contract contract;
    enum peal_dtype dtype;
    uint32_t root;
    bool in_place;
    uint32_t x, y;
    uint64_t x_len, y_len; /* elements on every rank, unless set per rank afterwards */
};

/* Declares x and y with `flags`, binds the contract and records the count as parameter `n`. With
 * `writes_input`, x is an inout parameter out of place. */
void peal_import_declare(struct peal_import_bufs *bufs, const struct peal_import_options *options,
                         uint32_t flags, bool writes_input, uint64_t count);
/* Element `first` of input or output on `rank`, as a ref. */
struct peal_ref peal_import_ref(const struct peal_import_bufs *bufs, int kind, uint32_t rank,
                                uint64_t first);

#endif
