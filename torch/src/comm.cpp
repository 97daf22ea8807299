// SPDX-License-Identifier: Apache-2.0
// See comm.h.
#include "comm.h"

#include "interpreter.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <sched.h>

namespace peal {

static Milliseconds bounded(Milliseconds timeout)
{
    return std::min(timeout, Milliseconds(INT32_MAX));
}

// Called from time to time by libpeal's waits, in the waiting thread. Not 0: the wait ends.
static int ask_for_signals(void *)
{
    std::exception_ptr raised = raised_by_signal();
    if (!raised)
        return 0;
    keep_for_this_thread(std::move(raised));
    return 1;
}

Comm::Comm(peal_comm *comm, Milliseconds timeout, std::shared_ptr<peal_clock> clock)
    : comm_(comm), clock_(std::move(clock)), default_timeout_(bounded(timeout)), timeout_(bounded(timeout))
{
    peal_comm_set_timeout(comm_, static_cast<uint32_t>(timeout_.count()));
    peal_comm_set_interrupt(comm_, ask_for_signals, nullptr);
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

// All groups of a process, which is one rank, share a clock. It starts again from 0 when the last of them is gone. (Ranks that are
// threads get theirs from peal_comm_open_threads.)
static std::shared_ptr<peal_clock> clock_of_process()
{
    static std::mutex mutex;
    static std::weak_ptr<peal_clock> shared;
    std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<peal_clock> clock = shared.lock();
    if (!clock) {
        peal_clock *made = nullptr;
        TORCH_CHECK(peal_clock_new(&made) == PEAL_OK, "peal: out of memory for a clock");
        clock.reset(made, peal_clock_free);
        shared = clock;
    }
    return clock;
}

// A store may have been used before, so each use has its own keys. All ranks have counted the same number of uses.
static StorePtr keys_of_this_time(const Joining &joining)
{
    std::string rank = std::to_string(joining.rank);
    int64_t times = joining.store->add("peal/joined/" + rank, 1);
    return c10::make_intrusive<c10d::PrefixStore>("peal/" + std::to_string(times), joining.store);
}

static void set_algorithms(peal_comm *comm, const GroupOptions &options)
{
    for (const auto &[collective, algorithm] : options.algorithms) {
        peal_status status = peal_comm_set_algo(comm, collective.c_str(), algorithm.c_str());
        TORCH_CHECK(status == PEAL_OK, "peal: ", peal_comm_error(comm));
    }
}

c10::intrusive_ptr<Comm> Comm::open(const Joining &joining)
{
    StorePtr store = keys_of_this_time(joining);
    peal_store callbacks{store.get(), store_set, store_get};
    peal_open options{};
    options.struct_size = sizeof options;
    options.size = static_cast<uint32_t>(joining.size);
    options.rank = static_cast<uint32_t>(joining.rank);
    options.store = &callbacks;
    options.timeout_ms = static_cast<uint32_t>(bounded(joining.timeout).count());
    options.quiet = 1;
    std::shared_ptr<peal_clock> clock = clock_of_process();
    options.clock = clock.get();
    peal_comm *opened = nullptr;
    peal_status status = peal_comm_open(&options, &opened);
    PEAL_CHECK_GROUP(status == PEAL_OK, "peal: rank ", joining.rank, " of ", joining.size,
                     " cannot join: ", peal_comm_error(nullptr));
    auto comm = c10::make_intrusive<Comm>(opened, joining.timeout, std::move(clock));
    comm->global_ranks_ = joining.global_ranks;
    if (joining.options)
        set_algorithms(opened, *joining.options);
    return comm;
}

c10::intrusive_ptr<Comm> Comm::again()
{
    peal_comm *made = nullptr;
    check(peal_comm_dup(comm_, &made), "init");
    return alike(made);
}

c10::intrusive_ptr<Comm> Comm::maker()
{
    peal_comm *made = nullptr;
    check(peal_comm_split_twin(comm_, 0, rank(), &made), "init");
    return alike(made);
}

c10::intrusive_ptr<Comm> Comm::twin()
{
    peal_comm *made = nullptr;
    peal_status status = peal_comm_twin(comm_, &made);
    PEAL_CHECK_GROUP(status == PEAL_OK, "peal: no communicator for messages on rank ", rank(), ": ", peal_status_text(status));
    return alike(made);
}

c10::intrusive_ptr<Comm> Comm::alike(peal_comm *made) const
{
    auto comm = c10::make_intrusive<Comm>(made, default_timeout(), clock_);
    comm->global_ranks_ = global_ranks_;
    return comm;
}

c10::intrusive_ptr<Comm> Comm::split(bool member, Milliseconds timeout)
{
    peal_comm *made = nullptr;
    check(peal_comm_split_twin(comm_, member ? 0 : -1, rank(), &made), "new_group");
    if (!made)
        return {};
    return c10::make_intrusive<Comm>(made, timeout.count() > 0 ? timeout : default_timeout(), clock_);
}

void Comm::become(const Joining &joining)
{
    set_default_timeout(joining.timeout);
    global_ranks_ = joining.global_ranks;
    if (joining.options)
        set_algorithms(comm_, *joining.options);
}

// ---- calls ----

void Comm::set_timeout(Milliseconds timeout)
{
    timeout = timeout.count() > 0 ? bounded(timeout) : default_timeout();
    if (timeout != timeout_) {
        peal_comm_set_timeout(comm_, static_cast<uint32_t>(timeout.count()));
        timeout_ = timeout;
    }
}

void Comm::set_default_timeout(Milliseconds timeout)
{
    default_timeout_.store(bounded(timeout), std::memory_order_relaxed); // partner: default_timeout
}

// Programs search the messages of other backends for "Timed out".
static const char *heading(peal_status status)
{
    return status == PEAL_TIMEOUT ? "Timed out after waiting" : peal_status_text(status);
}

std::string Comm::global_names() const
{
    std::string names;
    bool same = true;
    for (size_t i = 0; i < global_ranks_.size(); i++) {
        names += (i ? ", " : "") + std::to_string(global_ranks_[i]);
        same = same && global_ranks_[i] == static_cast<int64_t>(i);
    }
    return same ? "" : "\n(ranks are those of this group; they are the global ranks " + names + ")";
}

void Comm::check(peal_status status, const char *call) const
{
    if (status == PEAL_OK)
        return;
    PEAL_CHECK_GROUP(false, "peal ", call, " failed on rank ", rank(), " of ", peal_comm_size(comm_), ": ",
                     heading(status), "\n", peal_comm_error(comm_), global_names());
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
    // Relaxed: see Lock. Bounded, because more threads may keep coming.
    for (int i = 0; i < 64; i++) {
        if (waiting_.load(std::memory_order_relaxed) == 0)
            return;
        sched_yield();
    }
}

} // namespace peal
