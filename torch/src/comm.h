// SPDX-License-Identifier: Apache-2.0
// A communicator, its lock and its time-outs. It lives until nobody needs it: the group, works under way, and tensors
// whose memory is its symmetric memory.
#pragma once

#include "base.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace peal {

class Comm : public c10::intrusive_ptr_target {
  public:
    // The clock is the rank's on a simulated machine; it lives as long as somebody has it.
    Comm(peal_comm *comm, Milliseconds timeout, std::shared_ptr<peal_clock> clock = nullptr);
    ~Comm() override;

    // Meets the other ranks through torch's store.
    static c10::intrusive_ptr<Comm> open(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                                         Milliseconds timeout);
    // The same ranks again, on memory of their own. Collective.
    c10::intrusive_ptr<Comm> again();
    // Those of them that say so; null on the others. Collective. Hold the lock.
    c10::intrusive_ptr<Comm> split(bool member, Milliseconds timeout);

    // For the next call; the group's own where the caller gave none. Hold the lock.
    void set_timeout(Milliseconds timeout);
    // The group's own from now on.
    void set_default_timeout(Milliseconds timeout);
    // Ends the call under way, and those to come, as if their time were up; any thread may do it. The call may have
    // ended in time all the same: then take it back.
    void cut();
    void take_back_cut();
    // Ends in an exception that says what happened, in the words of peal's report. Hold the lock.
    void check(peal_status status, const char *what) const;

    peal_comm *get() const
    {
        return comm_;
    }
    int rank() const
    {
        return static_cast<int>(peal_comm_rank(comm_));
    }

    // One communicator belongs to one thread at a time.
    class Lock {
      public:
        explicit Lock(Comm &comm);
        ~Lock();
        Lock(const Lock &) = delete;
        Lock &operator=(const Lock &) = delete;

      private:
        Comm &comm_;
    };
    // For those who may not wait.
    bool try_lock()
    {
        return mutex_.try_lock();
    }
    void unlock()
    {
        mutex_.unlock();
    }
    // Another thread has wanted the lock while it was taken: do not keep it for long.
    bool shared() const
    {
        // Relaxed: a hint. Partner: Lock's constructor.
        return shared_.load(std::memory_order_relaxed);
    }
    // Lets those who wait for the lock have it first: mutexes are not fair.
    void give_way() const;

  private:
    peal_comm *comm_;
    std::shared_ptr<peal_clock> clock_;
    Milliseconds default_timeout_, timeout_; // under the lock
    std::atomic<bool> cut_{false};
    std::mutex mutex_;
    std::atomic<int> waiting_{0};
    std::atomic<bool> shared_{false};
};

} // namespace peal
