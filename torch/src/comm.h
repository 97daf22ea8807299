// SPDX-License-Identifier: Apache-2.0
// A communicator, its lock and its time-outs. It lives until nobody needs it: the group, works under way, and tensors
// whose memory is its symmetric memory.
#pragma once

#include "options.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace peal {

class Comm : public c10::intrusive_ptr_target {
  public:
    // The clock is the rank's on a simulated machine; it lives as long as somebody has it.
    Comm(peal_comm *comm, Milliseconds timeout, std::shared_ptr<peal_clock> clock = nullptr);
    ~Comm() override;

    // Meets the other ranks through torch's store. The same store may serve many times, one after the other.
    static c10::intrusive_ptr<Comm> open(const Joining &joining);
    // The same ranks again, on memory of their own. Collective.
    c10::intrusive_ptr<Comm> again();
    // Those of them that say so; null on the others. Collective. Hold the lock.
    c10::intrusive_ptr<Comm> split(bool member, Milliseconds timeout);
    // The same ranks again, of one that came from `split`, once. Not collective, and not under the lock: another thread may
    // be in a call.
    c10::intrusive_ptr<Comm> twin();
    // The same ranks, to make other communicators from and the twin of messages. Collective.
    c10::intrusive_ptr<Comm> maker();
    // The same before it is known what the group is to be: it takes its time-out and names when it is joined.
    void become(const Joining &joining);

    // For the next call; the group's own where the caller gave none. Hold the lock.
    void set_timeout(Milliseconds timeout);
    // The group's own from now on.
    void set_default_timeout(Milliseconds timeout);
    // Ends in an exception that says what happened, in the words of peal's report. Hold the lock.
    void check(peal_status status, const char *what) const;

    peal_comm *get() const
    {
        return comm_;
    }
    Milliseconds default_timeout() const
    {
        // Relaxed: a number; nothing else hangs on it. Partner: set_default_timeout.
        return default_timeout_.load(std::memory_order_relaxed);
    }
    // Of one of its ranks in the default group.
    int64_t global_rank(int rank) const
    {
        return global_ranks_.empty() ? rank : global_ranks_.at(static_cast<size_t>(rank));
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
    std::string global_names() const;
    // Around a communicator of the same ranks.
    c10::intrusive_ptr<Comm> alike(peal_comm *made) const;

    peal_comm *comm_;
    std::shared_ptr<peal_clock> clock_;
    std::atomic<Milliseconds> default_timeout_;
    Milliseconds timeout_;                   // under the lock
    std::vector<int64_t> global_ranks_;      // of its ranks; empty: they are the same
    std::mutex mutex_;
    std::atomic<int> waiting_{0};
    std::atomic<bool> shared_{false};
};

} // namespace peal
