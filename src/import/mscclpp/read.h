/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a tree with names, kinds and ranges checked. Internal to this folder. */
#ifndef PEAL_IMPORT_MSCCLPP_READ_H
#define PEAL_IMPORT_MSCCLPP_READ_H

#include "import/mscclpp/mscclpp.h"

enum { MPP_MAX_CHUNKS = 1 << 20 }; /* of a buffer, and in an operand */

struct mpp_reader {
    struct peal_import *import;
    struct peal_diags *diags;
    enum peal_status status;
    struct mscclpp_plan *plan;
    bool failed;
};

/* Records that something was refused; the message is a format. */
void peal_mpp_refuse(struct mpp_reader *r, const struct peal_json_value *node, const char *format,
                     ...) __attribute__((format(printf, 3, 4)));
/* Zeroed memory of the import; never NULL unless it failed. */
void *peal_mpp_take(struct mpp_reader *r, uint64_t count, size_t size);

/* The member with this name or an older one (which may be NULL). NULL: there is none. */
const struct peal_json_value *peal_mpp_get(const struct peal_json_value *object, const char *name,
                                           const char *older);
/* A member that must exist and have that kind. NULL after a failure. */
const struct peal_json_value *peal_mpp_need(struct mpp_reader *r,
                                            const struct peal_json_value *object, const char *name,
                                            const char *older, enum peal_json_kind kind);
/* An integer member from lo to hi. It is required if `otherwise` is below lo. */
int64_t peal_mpp_int(struct mpp_reader *r, const struct peal_json_value *object, const char *name,
                     const char *older, int64_t lo, int64_t hi, int64_t otherwise);
/* The value itself. */
int64_t peal_mpp_value(struct mpp_reader *r, const struct peal_json_value *node, int64_t lo,
                       int64_t hi);
enum mscclpp_channel_type peal_mpp_channel_type(struct mpp_reader *r,
                                                const struct peal_json_value *node);
uint8_t peal_mpp_buffer(struct mpp_reader *r, const struct peal_json_value *node);

/* read_older.c: a block of a plan for the first executors. */
void peal_mpp_read_older_block(struct mpp_reader *r, const struct peal_json_value *node,
                               uint32_t rank, struct mscclpp_tb *out);
/* read_ops.c: a block with its ops. */
void peal_mpp_read_block(struct mpp_reader *r, const struct peal_json_value *gpu_node,
                         const struct peal_json_value *node, uint32_t rank, struct mscclpp_tb *out);

#endif
