// SPDX-License-Identifier: Apache-2.0
// Sums of sparse tensors. Every rank gathers the indices and values of all ranks and adds them up in the order of the ranks, so
// all ranks get the same bits.
#pragma once

#include "comm.h"

namespace peal {

void check_sparse(const Tensor &tensor, const char *call);
// Collective.
Tensor sum_sparse(Comm &comm, const Tensor &tensor);

} // namespace peal
