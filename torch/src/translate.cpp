// SPDX-License-Identifier: Apache-2.0
// See translate.h.
#include "translate.h"

#include <ATen/MemoryOverlap.h>

#include <cstring>

namespace peal {

// ---- checks of arguments ----

void check_cpu(const Tensor &tensor, const char *call)
{
    TORCH_CHECK(tensor.device().is_cpu(), "peal ", call, ": only CPU tensors are supported, not ",
                tensor.device());
    TORCH_CHECK(tensor.layout() == at::kStrided, "peal ", call,
                ": sparse tensors can only be summed, by all_reduce; make it dense first");
}

Tensor &only(Tensors &tensors, const char *call)
{
    TORCH_CHECK(tensors.size() == 1, "peal ", call, ": expected one tensor, not ", tensors.size());
    check_cpu(tensors[0], call);
    return tensors[0];
}

void check_same(const Tensor &tensor, const Tensor &like, const char *call)
{
    check_cpu(tensor, call);
    TORCH_CHECK(tensor.scalar_type() == like.scalar_type(), "peal ", call, ": tensors of ",
                tensor.scalar_type(), " and ", like.scalar_type(), " in one call");
}

void check_list(const Tensors &list, const Tensor &like, const char *call)
{
    for (const Tensor &tensor : list) {
        check_same(tensor, like, call);
        TORCH_CHECK(tensor.numel() == like.numel(), "peal ", call, ": tensors of ", tensor.numel(), " and ",
                    like.numel(), " elements in one call");
    }
}

void check_output(const Tensor &tensor, const char *call)
{
    TORCH_CHECK(at::has_internal_overlap(tensor) != at::MemOverlap::Yes, "peal ", call,
                ": elements of the result share memory; clone() the tensor first");
}

void check_outputs(const Tensors &list, const Tensor &like, const char *call)
{
    check_list(list, like, call);
    for (const Tensor &tensor : list)
        check_output(tensor, call);
}

// ---- types and operations ----

static peal_dtype arithmetic_dtype(const Tensor &tensor, const char *call)
{
    switch (tensor.scalar_type()) {
    case at::kHalf:
        return PEAL_F16;
    case at::kBFloat16:
        return PEAL_BF16;
    case at::kFloat:
        return PEAL_F32;
    case at::kDouble:
        return PEAL_F64;
    case at::kChar:
        return PEAL_I8;
    case at::kByte:
    case at::kBool:
        return PEAL_U8;
    case at::kInt:
        return PEAL_I32;
    case at::kLong:
        return PEAL_I64;
    case at::kShort:
        return PEAL_I16;
    case at::kComplexFloat:
        return PEAL_CF32;
    case at::kComplexDouble:
        return PEAL_CF64;
#if TORCH_VERSION_MAJOR >= 2
    case at::ScalarType::Float8_e4m3fn:
        return PEAL_F8E4M3;
    case at::ScalarType::Float8_e5m2:
        return PEAL_F8E5M2;
    case at::ScalarType::UInt16:
        return PEAL_U16;
    case at::ScalarType::UInt32:
        return PEAL_U32;
    case at::ScalarType::UInt64:
        return PEAL_U64;
#endif
    default:
        TORCH_CHECK(false, "peal ", call, ": ", tensor.scalar_type(),
                    " cannot be reduced; supported are float16, bfloat16, float32, float64, float8_e4m3fn, "
                    "float8_e5m2, int8 to int64, uint8 to uint64, complex64, complex128 and bool");
    }
}

// A bool is a byte that is 0 or 1: its sum is a logical or, its product a logical and.
static enum peal_reduction bool_op(c10d::ReduceOp::RedOpType op, const char *call)
{
    switch (op) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::MAX:
    case c10d::ReduceOp::BOR:
        return PEAL_OR;
    case c10d::ReduceOp::PRODUCT:
    case c10d::ReduceOp::MIN:
    case c10d::ReduceOp::BAND:
        return PEAL_AND;
    case c10d::ReduceOp::BXOR:
        return PEAL_XOR;
    default:
        TORCH_CHECK(false, "peal ", call, ": this reduce operation is not defined for bool");
    }
}

static enum peal_reduction plain_op(c10d::ReduceOp::RedOpType op, bool is_float, const char *call)
{
    TORCH_CHECK(!is_float || op < c10d::ReduceOp::BAND || op > c10d::ReduceOp::BXOR, "peal ", call,
                ": bitwise operations are for integers");
    switch (op) {
    case c10d::ReduceOp::SUM:
        return PEAL_SUM;
    case c10d::ReduceOp::AVG:
        TORCH_CHECK(is_float, "peal ", call, ": AVG is for floating-point tensors");
        return PEAL_AVG;
    case c10d::ReduceOp::PRODUCT:
        return PEAL_PROD;
    case c10d::ReduceOp::MIN:
        return PEAL_MIN;
    case c10d::ReduceOp::MAX:
        return PEAL_MAX;
    case c10d::ReduceOp::BAND:
        return PEAL_AND;
    case c10d::ReduceOp::BOR:
        return PEAL_OR;
    case c10d::ReduceOp::BXOR:
        return PEAL_XOR;
    default:
        TORCH_CHECK(false, "peal ", call, ": this reduce operation is not supported");
    }
}

Reduction reduction(const Tensor &tensor, const c10d::ReduceOp &op, const char *call)
{
    c10d::ReduceOp::RedOpType kind = op.op_;
    peal_dtype dtype = arithmetic_dtype(tensor, call);
    if (tensor.scalar_type() == at::kBool)
        return {dtype, bool_op(kind, call)};
    bool is_complex = at::isComplexType(tensor.scalar_type());
    TORCH_CHECK(!is_complex || (kind != c10d::ReduceOp::MIN && kind != c10d::ReduceOp::MAX), "peal ", call,
                ": complex numbers have no order");
    return {dtype, plain_op(kind, is_complex || at::isFloatingType(tensor.scalar_type()), call)};
}

// ---- lists of tensors as one piece of memory ----

static bool adjacent(const Tensors &list)
{
    const char *next = nullptr;
    for (const Tensor &tensor : list) {
        const char *at = static_cast<const char *>(tensor.data_ptr());
        if (!tensor.is_contiguous() || (next && at != next))
            return false;
        next = at + tensor.nbytes();
    }
    return !list.empty();
}

static int64_t total_bytes(const Tensors &list)
{
    int64_t total = 0;
    for (const Tensor &tensor : list)
        total += static_cast<int64_t>(tensor.nbytes());
    return total;
}

Tensor room_for(const Tensors &list)
{
    if (adjacent(list))
        return at::from_blob(list[0].data_ptr(), {total_bytes(list)}, at::kByte);
    return at::empty({total_bytes(list)}, at::kByte);
}

static uintptr_t address(const Tensor &tensor)
{
    return reinterpret_cast<uintptr_t>(tensor.data_ptr());
}

Places places_of(const Tensors &list, uint64_t unit, Use use)
{
    Places out;
    uintptr_t first = UINTPTR_MAX;
    for (const Tensor &tensor : list) {
        Tensor dense = use == Use::INPUT ? tensor.contiguous() : room_of(tensor);
        if (address(dense) % unit != 0) // memory that torch did not allocate
            dense = use == Use::INPUT ? dense.clone() : at::empty_like(dense);
        if (dense.numel() > 0)
            first = std::min(first, address(dense));
        out.dense.push_back(std::move(dense));
    }
    for (const Tensor &dense : out.dense) {
        out.counts.push_back(bytes_of(dense) / unit);
        out.offsets.push_back(dense.numel() > 0 ? (address(dense) - first) / unit : 0);
    }
    out.first = first == UINTPTR_MAX ? nullptr : reinterpret_cast<char *>(first);
    return out;
}

void write_back(const Places &places, const Tensors &list)
{
    for (size_t i = 0; i < list.size(); i++)
        write_back(places.dense[i], list[i]);
}

Tensor joined(const Tensors &list)
{
    if (list.empty() || adjacent(list))
        return room_for(list);
    Tensor flat = at::empty({total_bytes(list)}, at::kByte);
    char *at = static_cast<char *>(flat.data_ptr());
    for (const Tensor &tensor : list) {
        Tensor dense = tensor.contiguous();
        std::memcpy(at, dense.data_ptr(), dense.nbytes());
        at += dense.nbytes();
    }
    return flat;
}

void spread(const Tensor &flat, const Tensors &list)
{
    if (list.empty() || flat.data_ptr() == list[0].data_ptr())
        return;
    const char *at = static_cast<const char *>(flat.data_ptr());
    for (const Tensor &tensor : list) {
        Tensor dense = room_of(tensor);
        std::memcpy(dense.data_ptr(), at, dense.nbytes());
        write_back(dense, tensor);
        at += dense.nbytes();
    }
}

std::vector<uint64_t> split_bytes(const Tensor &tensor, const std::vector<int64_t> &splits, int size,
                                  const char *which)
{
    uint64_t total = bytes_of(tensor);
    std::vector<uint64_t> out(static_cast<size_t>(size), total / static_cast<uint64_t>(size));
    if (splits.empty()) {
        TORCH_CHECK(tensor.dim() == 0 || tensor.size(0) % size == 0, "peal alltoall_base: the ", which,
                    "'s first dimension does not divide by ", size);
        return out;
    }
    TORCH_CHECK(splits.size() == out.size(), "peal alltoall_base: expected ", size, " ", which, " splits");
    int64_t rows = tensor.dim() ? tensor.size(0) : 0, sum = 0;
    uint64_t row = rows ? total / static_cast<uint64_t>(rows) : 0;
    for (size_t i = 0; i < out.size(); i++) {
        TORCH_CHECK(splits[i] >= 0, "peal alltoall_base: a negative ", which, " split");
        out[i] = static_cast<uint64_t>(splits[i]) * row;
        sum += splits[i];
    }
    TORCH_CHECK(sum == rows, "peal alltoall_base: the ", which, " splits add up to ", sum, ", not ", rows);
    return out;
}

} // namespace peal
