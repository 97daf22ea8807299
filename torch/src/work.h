// SPDX-License-Identifier: Apache-2.0
// The Work objects of collectives: DoneWork for synchronous calls, QueuedWork for asynchronous ones. (Messages: messages.h.)
#pragma once

#include "queue.h"

#include <functional>
#include <thread>

namespace peal {

// A future of a list of tensors, which is the type that DDP and others expect.
inline FuturePtr new_future()
{
    return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
}

// `title` if a profiler is active, else null: torch's Work allocates memory if it has a title.
const char *title_for_profiler(const char *title);

// A call that is made by the thread that issues it.
class DoneWork : public Work {
  public:
    // Begins a span of the profiler if there is a title.
    DoneWork(int rank, OpType op, Tensors outputs, const char *title = nullptr)
        : Work(rank, op, title), outputs_(std::move(outputs))
    {
        completed_ = true;
    }
    // Ends the span.
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

// A call in the queue. It is issued, taken by the thread that makes it, run, and completed, which includes callbacks.
// is_completed() is true when it has run, so it is true for all calls that were issued before a synchronous call that has
// returned. wait() returns when it has completed. It keeps the tensors of the call alive.
class QueuedWork : public Work {
  public:
    using Call = std::function<void()>;

    QueuedWork(int rank, OpType op, Tensors outputs, const char *title, std::shared_ptr<Queue> queue, Call call)
        : Work(rank, op, title), outputs_(std::move(outputs)), queue_(std::move(queue)), call_(std::move(call))
    {
    }
    // Without a time-out the caller makes queued calls itself. With one it waits as torch's own Work does: it raises after the
    // time-out, and the call goes on.
    bool wait(Milliseconds timeout) override;
    bool isCompleted() override;
    Tensors result() override
    {
        return outputs_;
    }
    FuturePtr getFuture() override;

    // ---- for the queue ----
    // A thread has taken it from the queue to make the call. Both under the queue's lock.
    void set_taken()
    {
        taken_ = true;
    }
    bool is_taken() const
    {
        return taken_;
    }
    // Makes the call. Once, under no lock.
    void run();
    bool has_run() const
    {
        return has_run_.load(std::memory_order_acquire); // partner: run
    }
    // Whether the future has been asked for, so that there may be callbacks.
    bool has_future();
    // Runs callbacks, then wakes waiting threads. Once, after `run`, under no lock.
    void complete();

  private:
    void settle(const FuturePtr &future) const;
    // False if the call has not completed by then.
    bool wait_until(Clock::time_point until);

    Tensors outputs_;
    std::shared_ptr<Queue> queue_;
    Call call_;
    std::exception_ptr failure_; // written by run
    bool taken_ = false;         // under the queue's lock
    std::atomic<bool> has_run_{false};
    FuturePtr future_;                                   // under mutex_
    bool settled_ = false;                               // under mutex_: new futures are complete at once
    std::atomic<std::thread::id> completing_{}; // the thread that runs the callbacks, which may wait for this work
};

} // namespace peal
