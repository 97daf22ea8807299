// SPDX-License-Identifier: Apache-2.0
// The backend. Calls run inline: they return when they are done, and their Work is complete. Send and recv are the
// exception, because both sides may start with a send: their Work ends in wait. A group with a progress thread (asked for
// by PEAL_TORCH_ASYNC=1 or peal_torch.set_async) queues its collectives; the thread makes them in order and overlaps with
// the caller. Both ways make the same calls in the same order, so ranks need not agree on one.
#pragma once

#include "messages.h"
#include "work.h"

namespace peal {

class Group : public Base {
  public:
    Group(c10::intrusive_ptr<Comm> comm, bool async);
    ~Group() override;
    // Collective, once, before anything else.
    void join();

    const std::string getBackendName() const override
    {
        return "peal";
    }
    void setSequenceNumberForGroup() override
    {
    }
    uint64_t getSequenceNumberForGroup() override
    {
        return sequence_;
    }

    WorkPtr broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts) override;
    WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts) override;
    WorkPtr allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts) override;
    WorkPtr reduce(Tensors &tensors, const c10d::ReduceOptions &opts) override;
    WorkPtr allgather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts) override;
    WorkPtr _allgather_base(Tensor &output, Tensor &input, const c10d::AllgatherOptions &opts) override;
    WorkPtr allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
                                const c10d::AllgatherOptions &opts) override;
    WorkPtr gather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::GatherOptions &opts) override;
    WorkPtr scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ScatterOptions &opts) override;
    WorkPtr reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                           const c10d::ReduceScatterOptions &opts) override;
    WorkPtr _reduce_scatter_base(Tensor &output, Tensor &input, const c10d::ReduceScatterOptions &opts) override;
    WorkPtr alltoall_base(Tensor &output, Tensor &input, std::vector<int64_t> &output_splits,
                          std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &opts) override;
    WorkPtr alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts) override;
    WorkPtr send(Tensors &tensors, int to, int tag) override;
    WorkPtr recv(Tensors &tensors, int from, int tag) override;
    WorkPtr recvAnysource(Tensors &tensors, int tag) override;
    WorkPtr barrier(const c10d::BarrierOptions &opts) override;
    // Overrides where torch has them, which is from 2.1 on, the last from 2.6 on: hence without the word.
    WorkPtr allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts);
    WorkPtr reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::ReduceScatterOptions &opts);
    void setTimeout(Milliseconds timeout);

    // Moves a tensor's storage to symmetric memory, where collectives need one copy less. Collective; the storages must
    // be of one size. The memory lives as long as the storage does, and stays taken until the group ends.
    void make_symmetric(const Tensor &tensor);
    uint64_t simulated_ps();
    // A communicator of those ranks that say so; null on the others. Collective.
    c10::intrusive_ptr<Comm> split(bool member, Milliseconds timeout);

  private:
    template <typename Opts, typename Call>
    WorkPtr collective(OpType op, const Opts &opts, Tensors outputs, Call call);

    c10::intrusive_ptr<Comm> comm_;
    c10::intrusive_ptr<Messages> messages_;
    std::shared_ptr<Queue> queue_; // of a group with a progress thread
    uint64_t sequence_ = 0;
};

} // namespace peal
