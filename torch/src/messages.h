// SPDX-License-Identifier: Apache-2.0
// send and recv, on a communicator of their own: a message that waits does not stop a collective, nor the other way round.
//
// A message moves inside the calls of whoever waits for one. Waiting takes the lock for short stretches only, so that
// several threads can send and receive at once. Where a future is asked for, or a work is dropped before it has ended,
// nobody may ever wait: then a thread moves the messages until that is done. Dropping a work waits for nobody: whoever does it
// may hold the interpreter.
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
    // The last owner has let go: gives up the weak reference that at_exit has, so that it is destroyed.
    void release_resources() override;
    // Gives dropped messages a last chance. The group ends; works may live on.
    void close();

    void set_default_timeout(Milliseconds timeout)
    {
        comm_->set_default_timeout(timeout);
    }

    WorkPtr send(const Tensor &tensor, int to, int tag);
    WorkPtr receive(const Tensor &tensor, uint32_t from, int tag, OpType op);

    // Returns when all ranks are in it. When the time is up, or at the first that is missing, rank 0 raises with the names of
    // those that are, and the ranks that have come raise too. The group stays usable.
    void monitored_barrier(Milliseconds timeout, bool wait_all_ranks);

  private:
    friend class MessageWork;
    friend class Byte;
    // A message whose work was dropped before it ended: its memory still belongs to the request.
    struct Orphan {
        peal_request *request;
        Tensor tensor;
    };

    void adopt(peal_request *request, Tensor tensor);
    // Moves the orphans and lets go of those that have ended. True if some are left. Without the lock.
    bool sweep();
    // Moves this work, and all orphans, until they have ended, in a thread that lives as long as there are any.
    void watch(c10::intrusive_ptr<MessageWork> work);
    void watch_all();
    // The program ends, and with it the thread.
    void end_watch();

    const c10::intrusive_ptr<Comm> comm_;
    const unsigned forks_; // of the process that made it
    uint64_t exit_id_ = 0;
    uint32_t barriers_ = 0;     // monitored ones so far
    std::list<Orphan> orphans_; // under the communicator's lock
    std::mutex watch_mutex_;    // never held for long
    std::list<Orphan> dropped_; // under watch_mutex_: orphans to be
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

    // Moves messages for that long. True once this one has ended.
    bool move(uint64_t microseconds, Milliseconds timeout);

  private:
    void end(peal_status status);
    void complete_future();

    c10::intrusive_ptr<Messages> messages_;
    peal_request *request_; // under the communicator's lock, as completed_ and exception_ until it is null
    Tensor target_, dense_;
    uint32_t source_ = 0;
    FuturePtr future_; // under mutex_
};

} // namespace peal
