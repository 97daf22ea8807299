// SPDX-License-Identifier: Apache-2.0
// A backend that does nothing: it shows what torch itself takes for a call, and how long a training step takes without
// communication. For measurements only: tensors keep their contents.
#pragma once

#include "work.h"

namespace peal {

class FreeGroup : public Base {
  public:
    FreeGroup(int rank, int size) : Base(rank, size)
    {
    }
    const std::string getBackendName() const override
    {
        return "peal_free";
    }
    void setSequenceNumberForGroup() override
    {
    }
    uint64_t getSequenceNumberForGroup() override
    {
        return 0;
    }
    WorkPtr broadcast(Tensors &tensors, const c10d::BroadcastOptions &) override
    {
        return done(OpType::BROADCAST, tensors);
    }
    WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &) override
    {
        return done(OpType::ALLREDUCE, tensors);
    }
    // DDP examines what it gathers, so every rank's part is a copy of this rank's.
    WorkPtr allgather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &) override
    {
        for (Tensor &output : outputs[0]) {
            if (output.numel() <= SMALL)
                output.copy_(inputs[0]);
        }
        return done(OpType::ALLGATHER, outputs[0]);
    }
    WorkPtr reduce_scatter(Tensors &outputs, std::vector<Tensors> &, const c10d::ReduceScatterOptions &) override
    {
        return done(OpType::REDUCE_SCATTER, outputs);
    }
    WorkPtr alltoall_base(Tensor &output, Tensor &, std::vector<int64_t> &, std::vector<int64_t> &,
                          const c10d::AllToAllOptions &) override
    {
        return done(OpType::ALLTOALL_BASE, {output});
    }
    WorkPtr barrier(const c10d::BarrierOptions &) override
    {
        return done(OpType::BARRIER, {});
    }

  private:
    static const int64_t SMALL = 1 << 12;

    WorkPtr done(OpType op, const Tensors &outputs)
    {
        return c10::make_intrusive<DoneWork>(getRank(), op, outputs);
    }
};

} // namespace peal
