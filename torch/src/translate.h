// SPDX-License-Identifier: Apache-2.0
// torch's types, operations and lists of tensors in Peal's words. What cannot be said in them is refused, in words that
// begin with "peal", before anything is sent.
#pragma once

#include "base.h"

namespace peal {

struct Reduction {
    peal_dtype dtype;
    enum peal_reduce op; // peal_reduce alone is the function
};

// ---- refusals ----

void check_cpu(const Tensor &tensor, const char *what);
// The one tensor of a list of one.
Tensor &only(Tensors &tensors, const char *what);
void check_same(const Tensor &tensor, const Tensor &like, const char *what);
// Every tensor is of `like`'s type and as large.
void check_list(const Tensors &list, const Tensor &like, const char *what);

// ---- types and operations ----

Reduction reduction(const Tensor &tensor, const c10d::ReduceOp &op, const char *what);

inline uint64_t bytes_of(const Tensor &tensor)
{
    return static_cast<uint64_t>(tensor.nbytes());
}

inline uint64_t count_of(const Tensor &tensor)
{
    return static_cast<uint64_t>(tensor.numel());
}

// ---- dense memory ----

// The tensor itself, or room for a dense copy of it that write_back puts in its place.
inline Tensor room_of(const Tensor &tensor)
{
    return tensor.is_contiguous() ? tensor : at::empty(tensor.sizes(), tensor.options());
}

inline void write_back(const Tensor &dense, const Tensor &tensor)
{
    if (!dense.is_same(tensor))
        Tensor(tensor).copy_(dense);
}

// ---- lists of tensors as one piece of memory ----

// Memory for all of `list`: its own where that is one piece.
Tensor room_for(const Tensors &list);
// The first byte of the tensor that lies lowest, and where all of them begin from there on.
char *lowest(const Tensors &list, std::vector<uint64_t> &offsets);
// All of `list` in one piece of memory, copied only where it is not one already. `kept`, if given, is where copies go; it
// grows, up to a bound.
Tensor joined(const Tensors &list, Tensor *kept = nullptr);
// The inverse.
void spread(const Tensor &flat, const Tensors &list);

// Bytes for each rank: rows of the first dimension, or equal parts where no splits are given.
std::vector<uint64_t> split_bytes(const Tensor &tensor, const std::vector<int64_t> &splits, int size,
                                  const char *which);

} // namespace peal
