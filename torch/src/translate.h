// SPDX-License-Identifier: Apache-2.0
// Translates torch's types, operations and lists of tensors into Peal's. Arguments that Peal
// cannot take are refused before anything is sent, with a message that begins with "peal".
#pragma once

#include "base.h"

namespace peal {

struct Reduction {
    peal_dtype dtype;
    enum peal_reduction op;
};

// ---- checks of arguments, which throw ----

void check_cpu(const Tensor &tensor, const char *call);
// The tensor of a list that must have exactly one.
Tensor &only(Tensors &tensors, const char *call);
void check_same(const Tensor &tensor, const Tensor &like, const char *call);
// Every tensor has the type and the size of `like`.
void check_list(const Tensors &list, const Tensor &like, const char *call);
// The tensor can be written: no two elements share memory, as they do after expand.
void check_output(const Tensor &tensor, const char *call);
void check_outputs(const Tensors &list, const Tensor &like, const char *call);

// ---- types and operations ----

Reduction reduction(const Tensor &tensor, const c10d::ReduceOp &op, const char *call);

inline uint64_t bytes_of(const Tensor &tensor)
{
    return static_cast<uint64_t>(tensor.nbytes());
}

inline uint64_t count_of(const Tensor &tensor)
{
    return static_cast<uint64_t>(tensor.numel());
}

// ---- dense memory ----

// The tensor itself if it is dense, else a dense tensor of its shape, uninitialised, for write_back.
inline Tensor room_of(const Tensor &tensor)
{
    return tensor.is_contiguous() ? tensor : at::empty(tensor.sizes(), tensor.options());
}

inline void write_back(const Tensor &dense, const Tensor &tensor)
{
    if (!dense.is_same(tensor)) {
        at::NoGradGuard unrecorded; // autograd does not see writes to the memory either
        Tensor(tensor).copy_(dense);
    }
}

// ---- lists of tensors as one piece of memory ----

// Memory for all tensors of `list`: their own if they lie one after another, else a new tensor.
Tensor room_for(const Tensors &list);
// Where the tensors of a list are. Large ones are sent and received in place instead of being copied into one tensor.
struct Places {
    Tensors dense;                         // each tensor itself, or a dense copy
    char *first = nullptr;                 // the lowest address
    std::vector<uint64_t> counts, offsets; // of each tensor, in elements of `unit` bytes, relative to `first`
};
enum class Use { INPUT, OUTPUT };
Places places_of(const Tensors &list, uint64_t unit, Use use);
// After a call that wrote to these places: copies dense copies back.
void write_back(const Places &places, const Tensors &list);
// Whether tensors of this size are left in place. All ranks must get the same answer.
inline bool is_large(uint64_t bytes)
{
    return bytes >= 64 << 10;
}

// The tensors of `list`, one after another in one tensor. Copied only if they do not lie so already.
Tensor joined(const Tensors &list);
// The inverse.
void spread(const Tensor &flat, const Tensors &list);

// Bytes per rank: `splits` rows of the first dimension, or equal parts if there are no splits.
std::vector<uint64_t> split_bytes(const Tensor &tensor, const std::vector<int64_t> &splits, int size,
                                  const char *which);

} // namespace peal
