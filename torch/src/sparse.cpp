// SPDX-License-Identifier: Apache-2.0
// See sparse.h.
#include "sparse.h"

#include "translate.h"

namespace peal {

static const char *const WHAT = "allreduce of a sparse tensor";
// A tensor is described by its number of values, of sparse dimensions and of dimensions, followed by its sizes.
static const int64_t HEAD = 3, MAX_DIMS = 29;

void check_sparse(const Tensor &tensor, const char *call)
{
    TORCH_CHECK(tensor.device().is_cpu(), "peal ", call, ": only CPU tensors are supported, not ", tensor.device());
    TORCH_CHECK(tensor.dim() <= MAX_DIMS, "peal ", call, ": a sparse tensor of more than ", MAX_DIMS, " dimensions");
}

static Tensor describe(const Tensor &tensor)
{
    Tensor out = at::zeros({HEAD + MAX_DIMS}, at::kLong);
    int64_t *numbers = out.data_ptr<int64_t>();
    numbers[0] = tensor._nnz();
    numbers[1] = tensor.sparse_dim();
    numbers[2] = tensor.dim();
    for (int64_t i = 0; i < tensor.dim(); i++)
        numbers[HEAD + i] = tensor.size(i);
    return out;
}

// The descriptions of all ranks, one per row; all but the number of values must agree.
static Tensor gather_descriptions(Comm &comm, const Tensor &own)
{
    Tensor all = at::empty({static_cast<int64_t>(peal_comm_size(comm.get())), own.numel()}, at::kLong);
    comm.check(peal_allgather(comm.get(), own.data_ptr(), all.data_ptr(), count_of(own), PEAL_I64), WHAT);
    for (int64_t rank = 0; rank < all.size(0); rank++) {
        Tensor theirs = all[rank];
        TORCH_CHECK(at::equal(theirs.slice(0, 1), own.slice(0, 1)), "peal ", WHAT, ": rank ", rank,
                    " has a tensor of another shape than rank ", comm.rank());
    }
    return all;
}

// The parts of all ranks, one after another: rank r has counts[r] rows like those of `part`.
static Tensor gather_rows(Comm &comm, const Tensor &part, const Tensor &counts)
{
    Tensor own = part.contiguous();
    std::vector<int64_t> sizes = own.sizes().vec();
    sizes[0] = counts.sum().item<int64_t>();
    Tensor all = at::empty(sizes, own.options());
    uint64_t row = own.size(0) ? bytes_of(own) / static_cast<uint64_t>(own.size(0))
                               : static_cast<uint64_t>(own.element_size());
    if (sizes[0] > 0)
        row = bytes_of(all) / static_cast<uint64_t>(sizes[0]);
    std::vector<uint64_t> bytes;
    for (int64_t rank = 0; rank < counts.numel(); rank++)
        bytes.push_back(static_cast<uint64_t>(counts[rank].item<int64_t>()) * row);
    comm.check(peal_allgather_v(comm.get(), own.data_ptr(), all.data_ptr(), bytes.data(), nullptr, PEAL_U8), WHAT);
    return all;
}

Tensor sum_sparse(Comm &comm, const Tensor &tensor)
{
    at::NoGradGuard unrecorded;
    Tensor own = tensor.coalesce();
    Tensor counts = gather_descriptions(comm, describe(own)).select(1, 0).contiguous();
    Tensor indices = gather_rows(comm, own.indices().t(), counts);
    Tensor values = gather_rows(comm, own.values(), counts);
    return at::sparse_coo_tensor(indices.t(), values, tensor.sizes()).coalesce();
}

} // namespace peal
