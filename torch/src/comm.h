// SPDX-License-Identifier: Apache-2.0
// A communicator, its lock and its time-outs. The group, works under way, and tensors in its symmetric memory share its
// ownership. Calls of a group's communicator are ordered by the group's queue and need no lock; that of messages is locked.
#pragma once

#include "options.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace peal {

class Comm : public c10::intrusive_ptr_target {
  public:
    // `clock` is the rank's clock on a simulated machine.
    Comm(peal_comm *comm, Milliseconds timeout, std::shared_ptr<peal_clock> clock = nullptr);
    ~Comm() override;

    // Meets the other ranks through torch's store. A store can be used for several groups, one after the other.
    static c10::intrusive_ptr<Comm> open(const Joining &joining);
    // A communicator of the same ranks with memory of its own. Collective.
    c10::intrusive_ptr<Comm> again();
    // A communicator of the ranks that pass `member`; null on the others. Collective, so in turn with other calls.
    c10::intrusive_ptr<Comm> split(bool member, Milliseconds timeout);
    // A second communicator of the same ranks, once, if this one came from `split`. Not collective, and allowed while another
    // thread is in a call.
    c10::intrusive_ptr<Comm> twin();
    // A communicator of the same ranks from which others, and the twin for messages, can be made. Collective.
    c10::intrusive_ptr<Comm> maker();
    // Takes over time-out, global ranks and options of the group that this communicator was prepared for.
    void become(const Joining &joining);

    // For the next call: the group's default if the caller gave none. In turn with calls.
    void set_timeout(Milliseconds timeout);
    // The default from now on.
    void set_default_timeout(Milliseconds timeout);
    // Throws an exception with Peal's report unless `status` is PEAL_OK. In turn with calls.
    void check(peal_status status, const char *call) const;

    peal_comm *get() const
    {
        return comm_;
    }
    Milliseconds default_timeout() const
    {
        // Relaxed: no other data depends on it. Partner: set_default_timeout.
        return default_timeout_.load(std::memory_order_relaxed);
    }
    // The rank in the default group of this communicator's `rank`.
    int64_t global_rank(int rank) const
    {
        return global_ranks_.empty() ? rank : global_ranks_.at(static_cast<size_t>(rank));
    }
    int rank() const
    {
        return static_cast<int>(peal_comm_rank(comm_));
    }

    // For communicators whose calls are not ordered by a queue: one thread at a time may use one.
    class Lock {
      public:
        explicit Lock(Comm &comm);
        ~Lock();
        Lock(const Lock &) = delete;
        Lock &operator=(const Lock &) = delete;

      private:
        Comm &comm_;
    };
    // For callers that must not block.
    bool try_lock()
    {
        return mutex_.try_lock();
    }
    void unlock()
    {
        mutex_.unlock();
    }
    // Another thread has had to wait for the lock: hold it for short periods only.
    bool shared() const
    {
        // Relaxed: a hint. Partner: Lock's constructor.
        return shared_.load(std::memory_order_relaxed);
    }
    // Lets waiting threads take the lock first: mutexes are not fair.
    void give_way() const;

  private:
    std::string global_names() const;
    // Wraps a new communicator of the same ranks.
    c10::intrusive_ptr<Comm> alike(peal_comm *made) const;

    peal_comm *comm_;
    std::shared_ptr<peal_clock> clock_;
    std::atomic<Milliseconds> default_timeout_;
    Milliseconds timeout_;                   // of the next call
    std::vector<int64_t> global_ranks_;      // by rank; empty: global ranks are the same
    std::mutex mutex_;
    std::atomic<int> waiting_{0};
    std::atomic<bool> shared_{false};
};

} // namespace peal
