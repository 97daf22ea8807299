// SPDX-License-Identifier: Apache-2.0
// torch 2's options of calls; later ones know whether anybody will wait (asyncOp).
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <ATen/ATen.h>

#include <chrono>
#include <optional>

namespace c10d {

struct _SupplementBase : torch::CustomClassHolder {};

struct ReduceOp : torch::CustomClassHolder {
    enum RedOpType : uint8_t { SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, UNUSED };
    ReduceOp() = default;
    ReduceOp(RedOpType op) : op_(op)
    {
    }
    ReduceOp(const ReduceOp &other) = default;
    ReduceOp &operator=(const ReduceOp &other) = default;
    operator RedOpType() const
    {
        return op_;
    }
    RedOpType op_ = SUM;
    c10::intrusive_ptr<_SupplementBase> supplement_;
};

constexpr auto kUnsetTimeout = std::chrono::milliseconds(-1);

struct CallOptions { // what all of them have; torch repeats it in each
    std::chrono::milliseconds timeout = kUnsetTimeout;
#ifndef PEAL_TORCH_2_0
    bool asyncOp = true;
#endif
};
struct BroadcastOptions : CallOptions {
    int64_t rootRank = 0;
    int64_t rootTensor = 0;
};
struct AllreduceOptions : CallOptions {
    ReduceOp reduceOp = ReduceOp::SUM;
    std::optional<at::Tensor> sparseIndices = std::nullopt;
};
struct AllreduceCoalescedOptions : AllreduceOptions {};
struct ReduceOptions : CallOptions {
    ReduceOp reduceOp = ReduceOp::SUM;
    int64_t rootRank = 0;
    int64_t rootTensor = 0;
};
struct AllgatherOptions : CallOptions {};
struct GatherOptions : CallOptions {
    int64_t rootRank = 0;
};
struct ScatterOptions : CallOptions {
    int64_t rootRank = 0;
};
struct ReduceScatterOptions : CallOptions {
    ReduceOp reduceOp = ReduceOp::SUM;
};
struct AllToAllOptions : CallOptions {};
struct BarrierOptions : CallOptions {
    std::vector<int64_t> device_ids;
    std::optional<at::Device> device;
};

} // namespace c10d
