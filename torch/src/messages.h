// SPDX-License-Identifier: Apache-2.0
// send and recv. They have a communicator of their own, so messages and collectives do not wait for each other.
//
// A message progresses while some thread waits for one. A waiting thread holds the communicator's lock for short periods, so that
// several threads can send and receive at once. A program may never wait for a work whose future it has asked for, or which it has
// dropped: the group then has a thread, the watch, which makes progress until these messages have ended.
//
// Memory of a message belongs to its request until that has ended. If its work is dropped before, the request and its tensor
// become an orphan, which `sweep` frees later. Dropping a work never blocks, because its destructor may run with the interpreter's
// lock held: the orphan first goes to `dropped_`, whose mutex is only held for short moments.
#pragma once

#include "comm.h"

#include <condition_variable>
#include <list>

namespace peal {

class Byte;
class MessageWork;

class Messages : public c10::intrusive_ptr_target {
  public:
    static c10::intrusive_ptr<Messages> make(c10::intrusive_ptr<Comm> comm);
    explicit Messages(c10::intrusive_ptr<Comm> comm);
    // Called when the last owner is gone. Drops the weak reference of at_exit, so that the object is destroyed.
    void release_resources() override;
    // The group ends: waits a moment for dropped messages. Works may live on.
    void close();

    void set_default_timeout(Milliseconds timeout)
    {
        comm_->set_default_timeout(timeout);
    }

    WorkPtr send(const Tensor &tensor, int to, int tag);
    WorkPtr receive(const Tensor &tensor, uint32_t from, int tag, OpType op);

    // Returns when all ranks have called it. After the time-out rank 0 raises an error that names the first missing rank, or all
    // of them, and the ranks that have called it raise too. The group stays usable.
    void monitored_barrier(Milliseconds timeout, bool wait_all_ranks);

  private:
    friend class MessageWork;
    friend class Byte;
    struct Orphan {
        peal_request *request;
        Tensor tensor;
    };

    void adopt(peal_request *request, Tensor tensor);
    // Makes progress and frees the orphans that have ended. True if some are left. Takes the lock.
    bool sweep();
    // Adds a work, if any, to the watch, whose thread lives until all works and orphans have ended.
    void watch(c10::intrusive_ptr<MessageWork> work);
    void watch_all();
    // The program ends: ends the thread.
    void end_watch();

    const c10::intrusive_ptr<Comm> comm_;
    const unsigned forks_; // see forks()
    uint64_t exit_id_ = 0;
    uint32_t barriers_ = 0;     // monitored_barrier calls so far
    std::list<Orphan> orphans_; // under the communicator's lock
    std::mutex watch_mutex_;    // only held for short moments
    std::list<Orphan> dropped_; // under watch_mutex_: future orphans
    std::vector<c10::intrusive_ptr<MessageWork>> watched_;
    bool watching_ = false, closing_ = false; // under watch_mutex_
    std::condition_variable watch_ended_;
};

class MessageWork : public Work {
  public:
    MessageWork(c10::intrusive_ptr<Messages> messages, OpType op, peal_request *request, Tensor target,
                Tensor dense);
    ~MessageWork() override;
    bool isCompleted() override;
    bool isSuccess() const override;
    bool wait(Milliseconds timeout) override;
    int sourceRank() const override;
    Tensors result() override;
    FuturePtr getFuture() override;

    // Makes progress for at most that long. True once this message has ended.
    bool move(uint64_t microseconds, Milliseconds timeout);

  private:
    void end(peal_status status);
    void complete_future();

    c10::intrusive_ptr<Messages> messages_;
    peal_request *request_; // under the communicator's lock, like completed_ and exception_ while it is not null
    Tensor target_, dense_;
    uint32_t source_ = 0;
    FuturePtr future_; // under mutex_
};

} // namespace peal
