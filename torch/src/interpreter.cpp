// SPDX-License-Identifier: Apache-2.0
// See interpreter.h.
#include "interpreter.h"

#include <pybind11/pybind11.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace peal {

std::exception_ptr raised_by_signal()
{
    if (syscall(SYS_gettid) != getpid() || !Py_IsInitialized())
        return nullptr;
    pybind11::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() == 0)
        return nullptr;
    return std::make_exception_ptr(pybind11::error_already_set());
}

static thread_local std::exception_ptr kept;

void keep_for_this_thread(std::exception_ptr raised)
{
    kept = std::move(raised);
}

void raise_kept()
{
    if (kept)
        std::rethrow_exception(std::exchange(kept, nullptr));
}

namespace at_exit {

static std::mutex mutex;
static uint64_t last_id;
static std::map<uint64_t, std::function<void()>> ends;

uint64_t add(std::function<void()> end)
{
    std::lock_guard<std::mutex> lock(mutex);
    ends.emplace(++last_id, std::move(end));
    return last_id;
}

void remove(uint64_t id)
{
    std::lock_guard<std::mutex> lock(mutex);
    ends.erase(id);
}

void run()
{
    std::map<uint64_t, std::function<void()>> all;
    {
        std::lock_guard<std::mutex> lock(mutex);
        all.swap(ends);
    }
    for (auto &entry : all)
        entry.second();
}

} // namespace at_exit

static std::atomic<unsigned> fork_count{0};

unsigned forks()
{
    // Relaxed, like the increment, which happens in a child that has one thread.
    static const int watched = pthread_atfork(nullptr, nullptr,
                                              [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
    (void)watched;
    return fork_count.load(std::memory_order_relaxed);
}

} // namespace peal
