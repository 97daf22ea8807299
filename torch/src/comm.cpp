// SPDX-License-Identifier: Apache-2.0
// See comm.h.
#include "comm.h"

#include <sched.h>

namespace peal {

static const uint32_t SOON_MS = 1;

static Milliseconds bounded(Milliseconds timeout)
{
    return std::min(timeout, Milliseconds(INT32_MAX));
}

Comm::Comm(peal_comm *comm, Milliseconds timeout, std::shared_ptr<peal_clock> clock)
    : comm_(comm), clock_(std::move(clock)), default_timeout_(bounded(timeout)), timeout_(bounded(timeout))
{
    peal_comm_set_timeout(comm_, static_cast<uint32_t>(timeout_.count()));
}

Comm::~Comm()
{
    peal_comm_close(comm_);
}

// ---- meeting ----

static int store_set(void *context, const char *key, const void *value, size_t len)
{
    try {
        const uint8_t *bytes = static_cast<const uint8_t *>(value);
        static_cast<c10d::Store *>(context)->set(key, std::vector<uint8_t>(bytes, bytes + len));
        return 0;
    } catch (...) {
        return -1;
    }
}

static int store_get(void *context, const char *key, void *value, size_t cap, size_t *len)
{
    try {
        std::vector<uint8_t> got = static_cast<c10d::Store *>(context)->get(key);
        if (got.size() > cap)
            return -1;
        std::copy(got.begin(), got.end(), static_cast<uint8_t *>(value));
        *len = got.size();
        return 0;
    } catch (...) {
        return -1;
    }
}

// A process is a rank: all its groups share one clock, which starts anew when the last of them is gone. (Ranks that are
// threads have theirs from peal_comm_open_threads.)
static std::shared_ptr<peal_clock> clock_of_process()
{
    static std::mutex mutex;
    static std::weak_ptr<peal_clock> shared;
    std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<peal_clock> clock = shared.lock();
    if (!clock) {
        peal_clock *made = nullptr;
        TORCH_CHECK(peal_clock_new(&made) == PEAL_OK, "peal: no memory for a clock");
        clock.reset(made, peal_clock_free);
        shared = clock;
    }
    return clock;
}

c10::intrusive_ptr<Comm> Comm::open(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                                    Milliseconds timeout)
{
    peal_store callbacks{store.get(), store_set, store_get};
    peal_open how{};
    how.size = static_cast<uint32_t>(size);
    how.rank = static_cast<uint32_t>(rank);
    how.store = &callbacks;
    how.timeout_ms = static_cast<uint32_t>(bounded(timeout).count());
    how.quiet = 1;
    std::shared_ptr<peal_clock> clock = clock_of_process();
    how.clock = clock.get();
    peal_comm *comm = nullptr;
    peal_status status = peal_comm_open(&how, &comm);
    TORCH_CHECK(status == PEAL_OK, "peal: rank ", rank, " of ", size, " cannot join: ", peal_comm_error(nullptr));
    return c10::make_intrusive<Comm>(comm, timeout, std::move(clock));
}

c10::intrusive_ptr<Comm> Comm::again()
{
    peal_comm *comm = nullptr;
    check(peal_comm_dup(comm_, &comm), "init");
    return c10::make_intrusive<Comm>(comm, default_timeout_, clock_);
}

c10::intrusive_ptr<Comm> Comm::split(bool member, Milliseconds timeout)
{
    peal_comm *comm = nullptr;
    check(peal_comm_split(comm_, member ? 0 : -1, rank(), &comm), "new_group");
    if (!comm)
        return {};
    return c10::make_intrusive<Comm>(comm, timeout.count() > 0 ? timeout : default_timeout_, clock_);
}

// ---- calls ----

void Comm::set_timeout(Milliseconds timeout)
{
    timeout = timeout.count() > 0 ? bounded(timeout) : default_timeout_;
    if (timeout != timeout_) {
        peal_comm_set_timeout(comm_, static_cast<uint32_t>(timeout.count()));
        timeout_ = timeout;
    }
    // Of this and cut, the later sets the time-out: each sets one word, passes the fence, then looks at or sets the other.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (cut_.load(std::memory_order_relaxed))
        peal_comm_set_timeout(comm_, SOON_MS);
}

void Comm::set_default_timeout(Milliseconds timeout)
{
    Lock lock(*this);
    default_timeout_ = bounded(timeout);
}

void Comm::cut()
{
    cut_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst); // partner: set_timeout
    peal_comm_set_timeout(comm_, SOON_MS);
}

void Comm::take_back_cut()
{
    Lock lock(*this);
    cut_.store(false, std::memory_order_relaxed);
    timeout_ = Milliseconds(-1); // the next call sets it again
}

// "Timed out" is what programs look for in the text of other backends.
void Comm::check(peal_status status, const char *what) const
{
    TORCH_CHECK(status == PEAL_OK, "peal ", what, " failed on rank ", rank(), " of ", peal_comm_size(comm_),
                ": ", status == PEAL_TIMEOUT ? "Timed out after waiting" : peal_status_text(status), "\n",
                peal_comm_error(comm_));
}

// ---- the lock ----

Comm::Lock::Lock(Comm &comm) : comm_(comm)
{
    if (comm_.mutex_.try_lock())
        return;
    // Relaxed: hints for shared and give_way; the mutex orders everything else.
    comm_.shared_.store(true, std::memory_order_relaxed);
    comm_.waiting_.fetch_add(1, std::memory_order_relaxed);
    comm_.mutex_.lock();
    comm_.waiting_.fetch_sub(1, std::memory_order_relaxed);
}

Comm::Lock::~Lock()
{
    comm_.mutex_.unlock();
}

void Comm::give_way() const
{
    // Relaxed: see Lock. Bounded, because others may keep coming.
    for (int i = 0; i < 64 && waiting_.load(std::memory_order_relaxed) > 0; i++)
        sched_yield();
}

} // namespace peal
