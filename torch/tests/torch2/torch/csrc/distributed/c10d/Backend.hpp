// SPDX-License-Identifier: Apache-2.0
// torch 2's Backend: the calls that a backend overrides.
#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace c10d {

class Backend : public torch::CustomClassHolder {
    using List = std::vector<at::Tensor>;
    using Lists = std::vector<List>;
    using Splits = std::vector<int64_t>;
    using Result = c10::intrusive_ptr<Work>;

  public:
    explicit Backend(int rank, int size);
    ~Backend() override = 0;
    int getRank() const;
    int getSize() const;
#ifdef PEAL_TORCH_NEWEST
    virtual bool supportsSplitting() const;
    virtual bool supportsCoalescing() const;
    virtual void setTimeout(std::chrono::milliseconds);
    // The newest names of these calls; each forwards to the one that was before, and back.
    virtual Result all_gather_single(at::Tensor &, at::Tensor &, const AllgatherOptions & = AllgatherOptions());
    virtual Result all_gather_single_coalesced(List &, List &, const AllgatherOptions & = AllgatherOptions());
    virtual Result reduce_scatter_single(at::Tensor &, at::Tensor &,
                                         const ReduceScatterOptions & = ReduceScatterOptions());
    virtual Result reduce_scatter_single_coalesced(List &, List &,
                                                   const ReduceScatterOptions & = ReduceScatterOptions());
    virtual Result all_to_all_single(at::Tensor &, at::Tensor &, Splits &, Splits &,
                                     const AllToAllOptions & = AllToAllOptions());
    // New, and not overridden here: it is refused.
    virtual Result gather_single(at::Tensor &, at::Tensor &, const GatherOptions & = GatherOptions());
    virtual Result gather_into_tensor(at::Tensor &, at::Tensor &, const GatherOptions & = GatherOptions());
#endif
    virtual void startCoalescing();
    virtual Result endCoalescing();
    virtual const std::string getBackendName() const;
    virtual Result broadcast(List &, const BroadcastOptions & = BroadcastOptions());
    virtual Result allreduce(List &, const AllreduceOptions & = AllreduceOptions());
    virtual Result allreduce_sparse(List &, const AllreduceOptions & = AllreduceOptions());
    virtual Result allreduce_coalesced(List &, const AllreduceCoalescedOptions & = AllreduceCoalescedOptions());
    virtual Result reduce(List &, const ReduceOptions & = ReduceOptions());
    virtual Result allgather(Lists &, List &, const AllgatherOptions & = AllgatherOptions());
    virtual Result _allgather_base(at::Tensor &, at::Tensor &, const AllgatherOptions & = AllgatherOptions());
    virtual Result allgather_coalesced(Lists &, List &, const AllgatherOptions & = AllgatherOptions());
#ifndef PEAL_TORCH_2_0
    virtual Result allgather_into_tensor_coalesced(List &, List &,
                                                   const AllgatherOptions & = AllgatherOptions());
#endif
    virtual Result gather(Lists &, List &, const GatherOptions & = GatherOptions());
    virtual Result scatter(List &, Lists &, const ScatterOptions & = ScatterOptions());
    virtual Result reduce_scatter(List &, Lists &, const ReduceScatterOptions & = ReduceScatterOptions());
    virtual Result _reduce_scatter_base(at::Tensor &, at::Tensor &,
                                        const ReduceScatterOptions & = ReduceScatterOptions());
#ifndef PEAL_TORCH_2_0
    virtual Result reduce_scatter_tensor_coalesced(List &, List &,
                                                   const ReduceScatterOptions & = ReduceScatterOptions());
#endif
    virtual Result alltoall_base(at::Tensor &, at::Tensor &, Splits &, Splits &,
                                 const AllToAllOptions & = AllToAllOptions());
    virtual Result alltoall(List &, List &, const AllToAllOptions & = AllToAllOptions());
    virtual void monitoredBarrier(const BarrierOptions &, bool = false);
    virtual void setSequenceNumberForGroup();
    virtual uint64_t getSequenceNumberForGroup();
    virtual Result send(List &, int, int);
    virtual Result recv(List &, int, int);
    virtual Result recvAnysource(List &, int);
    virtual Result barrier(const BarrierOptions & = BarrierOptions());

  protected:
#ifdef PEAL_TORCH_NEWEST
    int rank_;
    int size_;
#else
    const int rank_;
    const int size_;
#endif
};

} // namespace c10d
