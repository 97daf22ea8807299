// SPDX-License-Identifier: Apache-2.0
// The calls of one group. They are made one at a time, in the order of issue.
//
// A synchronous call that finds the queue empty is made at once by its caller, and never enters the queue. Any other call becomes a
// QueuedWork at the end of the queue. The first thread that is free takes the first call and makes it: either the queue's thread, or
// a caller that waits for this call or a later one. So a callback, which may run in the queue's thread, can make synchronous calls of
// the same group.
//
// The queue's thread starts with an asynchronous call and ends a moment after the last one. At most one thread takes calls for the
// queue (`has_thread_`). Callbacks may take any time, so a thread that is about to run some gives up this role, and a new thread
// takes it over if more calls are waiting.
//
// What never changes: `busy_` is true exactly while some thread is in a call of the communicator, so calls need no other lock. Calls
// and callbacks are made without mutex_. A waiting caller sleeps at most twice: for its turn (`finish`), then for its work.
#pragma once

#include "comm.h"
#include "interpreter.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

namespace peal {

class QueuedWork;

class Queue : public std::enable_shared_from_this<Queue> {
  public:
    static std::shared_ptr<Queue> make(c10::intrusive_ptr<Comm> comm);
    ~Queue();

    // Makes the call in this thread if the queue is empty. False: it has to be pushed.
    template <typename Call> bool run_alone(const Call &call)
    {
        if (!take_turn())
            return false;
        Turn turn{*this};
        try {
            call();
        } catch (...) {
            raise_kept();
            throw;
        }
        return true;
    }
    // Adds a call, for the queue's thread or `finish`.
    void push(c10::intrusive_ptr<QueuedWork> work);
    // Makes calls until this one has been made, or until another thread has taken it. Throws what a signal handler raised.
    void finish(const QueuedWork &work);
    // For a thread that waits while another makes the call: throws what a signal handler raised, if one did. The group is then
    // finished on all ranks, as if the waiting thread had made the call itself.
    void give_up_on_signal();
    // Returns when all calls have been made. After `patience`, unless that is 0, the communicator is revoked, so that they end.
    void drain(Milliseconds patience);

  private:
    struct Turn {
        Queue &queue;
        ~Turn()
        {
            queue.end_turn();
        }
    };

    explicit Queue(c10::intrusive_ptr<Comm> comm);
    bool take_turn();
    void end_turn();
    // With mutex_ locked.
    void end_call();
    // Takes the first call of the queue and makes it. With mutex_ locked, which is released meanwhile.
    c10::intrusive_ptr<QueuedWork> run_first(std::unique_lock<std::mutex> &lock);
    void start_thread();
    void loop();
    void refuse_after_fork() const;

    const c10::intrusive_ptr<Comm> comm_;
    const unsigned forks_;        // see forks()
    const bool program_is_plain_; // see turns.h
    uint64_t exit_id_ = 0;
    std::mutex mutex_;
    std::condition_variable call_possible_; // for the queue's thread: the first call can be made
    std::condition_variable call_ended_;    // for `finish` and `drain`: a call or the thread has ended
    std::deque<c10::intrusive_ptr<QueuedWork>> works_;
    bool busy_ = false;       // a call is being made
    bool has_thread_ = false; // a thread takes calls
};

} // namespace peal
