// SPDX-License-Identifier: Apache-2.0
// The backend: one Group per process group and rank.
//
// A synchronous call is made in the calling thread, and its Work is complete when it returns. An asynchronous call is put into the
// group's queue and returns at once; the queue's thread, or a caller that waits, makes it later (queue.h). Both make the same
// calls of peal.h in the order of issue, so a call may be synchronous on one rank and asynchronous on another.
//
// Who owns what: the group owns its queue and its messages; works and the queue's thread share ownership of the queue and of the
// communicator, so these outlive the group while calls are under way. Messages have a communicator of their own (messages.h),
// which is made with the first message. A group that met through the store, such as the default group, has a third one, `maker_`,
// from which new_group splits the communicators of other groups. Calls under way on the first one thus do not delay new_group.
#pragma once

#include "messages.h"
#include "work.h"

namespace peal {

// Between begin and end, calls of this thread are synchronous. peal_torch/waiting.py brackets torch's functions with them.
class Inline {
  public:
    static void begin()
    {
        depth++;
    }
    static void end()
    {
        depth--;
    }
    static bool here()
    {
        return depth > 0;
    }

  private:
    static thread_local int depth;
};

class Group : public Base {
  public:
    explicit Group(c10::intrusive_ptr<Comm> comm, c10::intrusive_ptr<GroupOptions> options = {});
    ~Group() override;
    // Meets the other ranks. Collective.
    static c10::intrusive_ptr<Group> make(const Joining &joining);
    // Makes the communicator of the messages, where the group's has no twin. Collective, once, before any call.
    void join();
    // Makes the communicator of a new group of these ranks, in this order, and keeps it until `make` is called for them: much
    // cheaper than meeting through the store. Collective over this group, whatever calls are under way.
    void prepare(const std::vector<int64_t> &ranks);
    // Drops a communicator that was prepared and not used.
    static void forget_prepared();

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
    // These override functions of torch 2.1 (setTimeout: 2.6) and later. Earlier versions lack them, hence no `override`.
    WorkPtr allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts);
    WorkPtr reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::ReduceScatterOptions &opts);
    void setTimeout(Milliseconds timeout);
    WorkPtr allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &opts);
    void monitoredBarrier(const c10d::BarrierOptions &opts, bool wait_all_ranks) override;
    c10::intrusive_ptr<Base::Options> getBackendOptions()
    {
        return options_;
    }
#if defined(C10D_BACKEND_HAS_RECONFIGURE)
    bool supportsSplitting() const override
    {
        return true;
    }
    c10::intrusive_ptr<Base> split(const StorePtr &store, const std::vector<int> &ranks,
                                   const c10::intrusive_ptr<Base::Options> &opts) override;
#endif

    // Moves a tensor's storage to symmetric memory, where collectives need one copy less. Collective, with storages of equal
    // size. The memory lives as long as the storage does, and is reusable when the group has ended.
    void make_symmetric(const Tensor &tensor);
    uint64_t simulated_ps();
    // A communicator of the ranks that pass `member`; null on the others. Collective.
    c10::intrusive_ptr<Comm> split_off(bool member, Milliseconds timeout);

  private:
    struct Kind {
        OpType op;
        const char *title; // for profilers
    };
    template <typename Opts, typename Call>
    WorkPtr collective(const Kind &kind, const Opts &opts, Tensors outputs, Call call);
    // Makes the call and returns when it has ended. Calls that were issued before come first.
    template <typename Call> void in_turn(const Call &call);
    // Makes them on first use.
    Messages &messages();

    const c10::intrusive_ptr<Comm> comm_;
    const c10::intrusive_ptr<GroupOptions> options_;
    const std::shared_ptr<Queue> queue_;
    std::mutex messages_mutex_;
    c10::intrusive_ptr<Messages> messages_; // under messages_mutex_
    c10::intrusive_ptr<Comm> maker_;        // null if the group was split from another
    std::atomic<uint64_t> sequence_{0}; // a count for torch's reports
};

} // namespace peal
