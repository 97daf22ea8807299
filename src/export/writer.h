/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the writers of this folder. */
#ifndef PEAL_EXPORT_WRITER_H
#define PEAL_EXPORT_WRITER_H

#include "export/export.h"

/* Reports that an op cannot be expressed: the op as text, where it was written, and why. */
void peal_export_refuse(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                        struct peal_diags *diags, const char *why);

/* Declares the plan's buffers, with their lengths on every rank. */
void peal_export_copy_buffers(const struct peal_plan *plan, struct peal_assembler *to);

/* Where things are, in chunks of `chunk` elements: the largest size that divides every operand
 * evenly. */
struct peal_export_layout {
    const struct peal_plan *plan;
    uint64_t chunk;
    uint64_t *scratch; /* [buf] first chunk of scratch buffers */
    uint64_t scratch_chunks;
    bool in_place;
};

/* False: diags say why. Every operand must be one range of the plan's own type without phases. */
bool peal_export_layout_find(const struct peal_plan *plan, struct peal_diags *diags,
                             struct peal_export_layout *out);
void peal_export_layout_release(struct peal_export_layout *layout);

struct peal_chunk {
    char buffer;    /* i, o or s */
    uint64_t index; /* chunk */
};
struct peal_chunk peal_export_layout_place(const struct peal_export_layout *layout,
                                           const struct peal_ref *ref);

/* The engines' name of the contract; NULL: they have none. */
const char *peal_export_layout_collective(const struct peal_plan *plan);

bool peal_msccl_write(const struct peal_plan *plan, const char *proto, struct peal_diags *diags,
                      struct peal_text *out);

bool peal_mscclpp_write(const struct peal_plan *plan, struct peal_diags *diags,
                        struct peal_text *out);

/* Header, kernel, orchestration and driver; `name` is an identifier. */
bool peal_pto_write(const struct peal_plan *plan, const char *name, bool closed,
                    struct peal_diags *diags, struct peal_exported *out);
/* Reads the kernel back as a plan. */
enum peal_status peal_pto_read_back(const struct peal_exported *written,
                                    const struct peal_plan *like, struct peal_diags *diags,
                                    struct peal_plan **out);

#endif
