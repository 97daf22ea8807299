// SPDX-License-Identifier: Apache-2.0
// What a call gives back: done already, or queued for the progress thread. (Messages: messages.h.)
#pragma once

#include "comm.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace peal {

// The result list that DDP and others want.
inline FuturePtr new_future()
{
    return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
}

// A call that has been made already. Its future is made when asked for.
class DoneWork : public Work {
  public:
    DoneWork(int rank, OpType op, Tensors outputs) : Work(rank, op), outputs_(std::move(outputs))
    {
        completed_ = true;
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

class Queue;

// A call that the progress thread makes, or whoever waits for it first. It is told how long it may take; 0: as long as the
// group's time-out says.
using Call = std::function<void(Milliseconds)>;

class QueuedWork : public Work {
  public:
    QueuedWork(OpType op, Tensors outputs, std::shared_ptr<Queue> queue, c10::intrusive_ptr<Comm> comm, Call call)
        : Work(comm->rank(), op), outputs_(std::move(outputs)), queue_(std::move(queue)), comm_(std::move(comm)),
          call_(std::move(call)), future_(new_future())
    {
    }
    bool wait(Milliseconds timeout) override;
    Tensors result() override
    {
        return outputs_;
    }
    FuturePtr getFuture() override
    {
        return future_;
    }
    // By the queue, once.
    void run(Milliseconds timeout);

  private:
    Tensors outputs_;
    std::shared_ptr<Queue> queue_;
    c10::intrusive_ptr<Comm> comm_;
    Call call_;
    FuturePtr future_;
};

// Calls in the order in which they were made; one at a time. The thread starts with the first of them.
class Queue : public std::enable_shared_from_this<Queue> {
  public:
    void push(c10::intrusive_ptr<QueuedWork> work);
    // Runs a call here if nothing is before it. False: it must be pushed.
    bool run_alone(const Call &call);
    // Runs it here if it is the next one and nobody is at work: a call that is waited for at once needs no other thread.
    void run_if_next(QueuedWork *work, Milliseconds timeout);
    // Lets the thread end what was pushed, then ends it. Not with the interpreter in hand: the thread may need it to let
    // go of its last tensors.
    void close();

  private:
    void loop();
    void end_turn();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<c10::intrusive_ptr<QueuedWork>> works_;
    std::thread thread_;
    bool busy_ = false, stop_ = false;
};

} // namespace peal
