// SPDX-License-Identifier: Apache-2.0
// See work.h.
#include "work.h"

#include "interpreter.h"

#include <ATen/record_function.h>

#include <sched.h>

namespace peal {

// The test of torch's own macros: unlike at::hasCallbacks it takes no lock.
const char *title_for_profiler(const char *title)
{
    return at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE) ? title : nullptr;
}

FuturePtr DoneWork::getFuture()
{
    auto future = new_future();
    future->markCompleted(c10::IValue(outputs_));
    return future;
}

// ---- for the queue ----

void QueuedWork::run()
{
    try {
        call_();
    } catch (...) {
        failure_ = std::current_exception();
    }
    call_ = nullptr;
    has_run_.store(true, std::memory_order_release); // partner: has_run
}

bool QueuedWork::has_future()
{
    std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<bool>(future_);
}

void QueuedWork::settle(const FuturePtr &future) const
{
    if (failure_)
        future->setError(failure_);
    else
        future->markCompleted(c10::IValue(outputs_));
}

void QueuedWork::complete()
{
    FuturePtr future;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        future = future_;
        settled_ = true;
    }
    // Relaxed: a thread compares it with its own id only.
    completing_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    if (future)
        settle(future);
    finish(failure_);
}

// ---- for the program ----

FuturePtr QueuedWork::getFuture()
{
    FuturePtr future;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (future_)
            return future_;
        future = future_ = new_future();
        if (!settled_)
            return future;
    }
    settle(future);
    return future;
}

bool QueuedWork::isCompleted()
{
    if (has_run())
        return true;
    // The program may be polling: let the threads run that it waits for.
    WithoutInterpreter released;
    sched_yield();
    return false;
}

bool QueuedWork::wait_until(Clock::time_point until)
{
    std::unique_lock<std::mutex> lock(mutex_);
    while (!completed_ && Clock::now() < until) {
        auto next = std::min(until, Clock::now() + SIGNAL_CHECK);
        if (cv_.wait_until(lock, next) == std::cv_status::no_timeout)
            continue;
        lock.unlock();
        queue_->give_up_on_signal();
        lock.lock();
    }
    return completed_;
}

bool QueuedWork::wait(Milliseconds timeout)
{
    // Relaxed: see complete.
    if (completing_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
        if (failure_)
            std::rethrow_exception(failure_);
        return true;
    }
    WithoutInterpreter released;
    if (timeout <= kNoTimeout) {
        queue_->finish(*this);
        wait_until(Clock::time_point::max());
        return Work::wait(kNoTimeout);
    }
    if (wait_until(Clock::now() + timeout))
        return Work::wait(kNoTimeout);
    return Work::wait(Milliseconds(1)); // raises as this torch's Gloo does
}

} // namespace peal
