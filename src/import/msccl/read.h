/* SPDX-License-Identifier: Apache-2.0 */
/* What read.c collects and order.c sorts. Internal to this folder. */
#ifndef PEAL_IMPORT_MSCCL_READ_H
#define PEAL_IMPORT_MSCCL_READ_H

#include "import/msccl/msccl.h"

struct msccl_reader {
    struct peal_import *import;
    struct peal_diags *diags;
    enum peal_status status;
    struct msccl_algo *algo;
    PEAL_VEC(struct msccl_gpu) gpus; /* in the order of the file */
    PEAL_VEC(struct msccl_tb) tbs;
    PEAL_VEC(struct msccl_step) steps;
};

/* Sorts, checks numbers, and moves the lists into the model. False: diags or status say why. */
bool peal_msccl_order(struct msccl_reader *r);

#endif
