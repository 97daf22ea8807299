// SPDX-License-Identifier: Apache-2.0
// The backend. A call whose caller waits for it is made where it is issued, and its Work is complete when it returns. Any other
// call is queued: it returns at once, and the group's queue makes it (queue.h). Both ways make the same calls of peal.h in the
// same order, so ranks need not agree on one. Messages have a communicator of their own (messages.h).
#pragma once

#include "messages.h"
#include "work.h"

namespace peal {

// Between begin and end this thread waits for the calls that it issues: they are made inline.
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
    // Meets the others. Collective.
    static c10::intrusive_ptr<Group> make(const Joining &joining);
    // Collective, once, before anything else, where the communicator has no twin: makes that of the messages.
    void join();
    // Collective over this group: makes the communicator of a new group of these ranks, in this order, and keeps it until
    // `make` is called for them. Much cheaper than meeting through the store. Calls that are under way do not matter.
    void prepare(const std::vector<int64_t> &ranks);
    // Forgets what was prepared and not taken.
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
    // Overrides where torch has them, which is from 2.1 on, the last from 2.6 on: hence without the word.
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

    // Moves a tensor's storage to symmetric memory, where collectives need one copy less. Collective; the storages must
    // be of one size. The memory lives as long as the storage does, and stays taken until the group ends.
    void make_symmetric(const Tensor &tensor);
    uint64_t simulated_ps();
    // A communicator of those ranks that say so; null on the others. Collective.
    c10::intrusive_ptr<Comm> split_off(bool member, Milliseconds timeout);

  private:
    struct Kind {
        OpType op;
        const char *title; // for profilers
    };
    template <typename Opts, typename Call>
    WorkPtr collective(const Kind &kind, const Opts &opts, Tensors outputs, Call call);
    // Makes the call here, after everything that was issued before.
    template <typename Call> void in_turn(const Call &call);
    // Made when the first message is sent or wanted.
    Messages &messages();

    const c10::intrusive_ptr<Comm> comm_;
    const c10::intrusive_ptr<GroupOptions> options_;
    const std::shared_ptr<Queue> queue_;
    std::mutex messages_mutex_;
    c10::intrusive_ptr<Messages> messages_; // under messages_mutex_
    c10::intrusive_ptr<Comm> maker_;        // of other groups' communicators; null in those
    std::atomic<uint64_t> sequence_{0}; // relaxed everywhere: a number for reports
};

} // namespace peal
