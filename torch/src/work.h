// SPDX-License-Identifier: Apache-2.0
// What a call gives back: a call that has been made already, or one in the queue. (Messages: messages.h.)
#pragma once

#include "queue.h"

#include <functional>
#include <thread>

namespace peal {

// The result list that DDP and others want.
inline FuturePtr new_future()
{
    return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
}

// The name of a call for profilers: null where none is at work, since torch's Work allocates for it.
const char *title_for_profiler(const char *title);

// A call that is made where it is issued. Its future is made when asked for.
class DoneWork : public Work {
  public:
    // Begins a profiler's span, if there is a title.
    DoneWork(int rank, OpType op, Tensors outputs, const char *title = nullptr)
        : Work(rank, op, title), outputs_(std::move(outputs))
    {
        completed_ = true;
    }
    // Ends it.
    void end()
    {
        if (recordFunctionEndCallback_)
            finish();
    }
    bool isCompleted() override
    {
        return true;
    }
    bool isSuccess() const override
    {
        return true;
    }
    bool wait(Milliseconds) override
    {
        return true;
    }
    Tensors result() override
    {
        return outputs_;
    }
    FuturePtr getFuture() override;

  private:
    Tensors outputs_;
};

// A call in the queue: issued, then run, then completed. is_completed sees the second, so that it is true for all calls that
// were issued before a synchronous one which has ended; wait sees the last. It keeps the tensors of the call.
class QueuedWork : public Work {
  public:
    using Call = std::function<void()>;

    QueuedWork(int rank, OpType op, Tensors outputs, const char *title, std::shared_ptr<Queue> queue, Call call)
        : Work(rank, op, title), outputs_(std::move(outputs)), queue_(std::move(queue)), call_(std::move(call))
    {
    }
    // Without a time-out it helps the queue. With one it does as torch's own Work: it raises, and the call goes on.
    bool wait(Milliseconds timeout) override;
    bool isCompleted() override;
    Tensors result() override
    {
        return outputs_;
    }
    FuturePtr getFuture() override;

    // ---- by the queue ----
    // Makes the call, once. Not under a lock.
    void run();
    bool has_run() const
    {
        return has_run_.load(std::memory_order_acquire); // partner: run
    }
    // Somebody has asked for the future, so there may be callbacks.
    bool has_future();
    // Runs callbacks, then lets go of those who wait. Once, after `run`, under no lock.
    void complete();

  private:
    void settle(const FuturePtr &future) const;
    // Waits until it is completed; false if it is not by then.
    bool wait_until(Clock::time_point until);

    Tensors outputs_;
    std::shared_ptr<Queue> queue_;
    Call call_;
    std::exception_ptr failure_; // written by run
    std::atomic<bool> has_run_{false};
    FuturePtr future_;                                   // under mutex_
    bool settled_ = false;                               // under mutex_: futures that are made from now on are complete
    std::atomic<std::thread::id> completing_{}; // runs the callbacks, which may wait for this very work
};

} // namespace peal
