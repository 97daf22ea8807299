// SPDX-License-Identifier: Apache-2.0
// The calls of one group: one at a time, in the order in which they were issued.
//
// A synchronous call with nothing before it is made where it is issued, and never enters the queue. Otherwise a call is a
// QueuedWork at the queue's end, and whoever comes first makes it: the queue's thread, or a caller that waits for this call or
// a later one. Hence a callback, which may run in the queue's thread, can make synchronous calls of the same group.
//
// The thread starts with the first call that is left to it, and ends a moment after the last. It takes calls only while
// it has the post (`posted_`), which one thread has at a time. It gives the post up before it runs callbacks, since these may
// take any time: another thread then takes calls.
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

    // Makes the call here if nothing is before it. False: it must be pushed.
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
    // Leaves it to the thread, or to `finish`.
    void push(c10::intrusive_ptr<QueuedWork> work);
    // Returns when the call has been made, by this thread or another. Ends with what a signal handler raised.
    void finish(const QueuedWork &work);
    // By a thread that waits while another makes the call: ends with what a signal handler raised, if one did. The group is
    // finished then, on all ranks, as if the waiting thread had made the call itself.
    void give_up_on_signal();
    // Returns when all calls have been made. After `patience` the communicator is revoked, so that they end; 0: never.
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
    // Makes the first call of the queue. With the lock, which is released meanwhile.
    c10::intrusive_ptr<QueuedWork> run_first(std::unique_lock<std::mutex> &lock);
    void start_thread();
    void loop();
    void refuse_after_fork() const;

    const c10::intrusive_ptr<Comm> comm_;
    const unsigned forks_; // of the process that made it
    uint64_t exit_id_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<c10::intrusive_ptr<QueuedWork>> works_;
    bool busy_ = false;   // a call is being made
    bool posted_ = false; // a thread takes calls
};

} // namespace peal
