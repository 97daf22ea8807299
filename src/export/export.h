/* SPDX-License-Identifier: Apache-2.0 */
/* export: plans written for other engines.
 *
 *   export.c   the entrance: writes, reads back, verifies; nothing leaves this folder unverified
 *   writer.h   what the formats share
 *   layout.c   where a plan's buffers are in an engine's input, output and scratch, in chunks
 *   sends.c    a pass over plans: reads and writes of peers' windows become sends and recvs
 *   msccl.c    MSCCL XML          mscclpp.c   MSCCL++ JSON
 *   pto/       pto-isa C++: kernel, orchestration, driver, and the reader of what is written
 *   show.c     a plan as Peal text
 *   goal.c     a plan as GOAL, for LogGOPSim
 *
 * What an engine cannot express is refused with the op, its source line and the reason. Every text
 * is imported again and verified before it is handed out, because exporters have had faults that
 * the engines' own parsers accept.
 */
#ifndef PEAL_EXPORT_EXPORT_H
#define PEAL_EXPORT_EXPORT_H

#include "import/import.h"
#include "plan/plan.h"
#include "verify/verify.h"

enum peal_target { PEAL_TARGET_MSCCL, PEAL_TARGET_MSCCLPP, PEAL_TARGET_PTO, PEAL_TARGETS };

/* "msccl", "mscclpp", "pto"; false: there is no such target. */
bool peal_target_find(const char *name, enum peal_target *out);

enum { PEAL_EXPORTED_FILES = 4 };

struct peal_exported_file {
    const char *ending; /* of its name: ".xml", "_kernel.cpp" */
    struct peal_text text;
};

struct peal_exported {
    /* what all file names begin with: the kernel's name in a form that files may have */
    struct peal_text name;
    struct peal_exported_file files[PEAL_EXPORTED_FILES];
    uint32_t nfiles;
    struct peal_verification *before; /* of the plan */
    struct peal_verification *after;  /* of the text, read back */
    bool uses_sends;                  /* one-sided accesses were turned into messages */
    bool in_pieces;                   /* `after` is for large calls, which send chunks one by one */
};

/* Writes all ranks of a proved plan as an engine's files. PEAL_INVALID: diags say why it cannot be
 * expressed, or what is wrong with the plan or with what was read back; `out` is then empty except
 * for `before`. Release it in every case. */
enum peal_status peal_export(const struct peal_plan *plan, enum peal_target target,
                             const struct peal_verify_options *verify, struct peal_diags *diags,
                             struct peal_exported *out);
void peal_exported_release(struct peal_exported *exported);

/* The plan as Peal text, with every rank written out: for people who know the language. */
void peal_plan_show(const struct peal_plan *plan, struct peal_text *out);

/* All ranks as GOAL, a schedule for LogGOPSim, which is not read back. PEAL_INVALID: diags say why. */
enum peal_status peal_goal_write(const struct peal_plan *plan, struct peal_diags *diags,
                                 struct peal_text *out);

/* The same plan with messages instead of accesses to peers' windows; freed with
 * free. Signals between ranks are left out if messages replace them. The result is not verified
 * here. PEAL_INVALID: diags say why. */
enum peal_status peal_plan_use_sends(const struct peal_plan *plan, struct peal_diags *diags,
                                     struct peal_plan **out);

#endif
