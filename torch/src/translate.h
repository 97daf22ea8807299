// SPDX-License-Identifier: Apache-2.0
// torch's types, operations and lists of tensors in Peal's words. What cannot be said in them is refused, in words that
// begin with "peal", before anything is sent.
#pragma once

#include "base.h"

namespace peal {

struct Reduction {
    peal_dtype dtype;
    enum peal_reduction op;
};

// ---- refusals ----

void check_cpu(const Tensor &tensor, const char *what);
// The one tensor of a list of one.
Tensor &only(Tensors &tensors, const char *what);
void check_same(const Tensor &tensor, const Tensor &like, const char *what);
// Every tensor is of `like`'s type and as large.
void check_list(const Tensors &list, const Tensor &like, const char *what);
// Can be written: no two elements are one piece of memory, as after expand.
void check_output(const Tensor &tensor, const char *what);
void check_outputs(const Tensors &list, const Tensor &like, const char *what);

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
    if (!dense.is_same(tensor)) {
        at::NoGradGuard unrecorded; // as where the memory itself is written
        Tensor(tensor).copy_(dense);
    }
}

// ---- lists of tensors as one piece of memory ----

// Memory for all of `list`: its own where that is one piece.
Tensor room_for(const Tensors &list);
// Large ones are moved where they lie, in any order, instead of being copied into one piece first.
struct Places {
    Tensors dense;                         // each itself, or a dense copy
    char *first = nullptr;                 // of the one that lies lowest
    std::vector<uint64_t> counts, offsets; // of each, in elements of `unit` bytes, from there on
};
enum class Use { INPUT, OUTPUT };
Places places_of(const Tensors &list, uint64_t unit, Use use);
// After a call that wrote them.
void write_back(const Places &places, const Tensors &list);
// Tensors of that size are worth it. All ranks must decide the same.
inline bool is_large(uint64_t bytes)
{
    return bytes >= 64 << 10;
}

// All of `list` in one piece of memory, copied only where it is not one already.
Tensor joined(const Tensors &list);
// The inverse.
void spread(const Tensor &flat, const Tensors &list);

// Bytes for each rank: rows of the first dimension, or equal parts where no splits are given.
std::vector<uint64_t> split_bytes(const Tensor &tensor, const std::vector<int64_t> &splits, int size,
                                  const char *which);

} // namespace peal
