// SPDX-License-Identifier: Apache-2.0
// See work.h.
#include "work.h"

namespace peal {

FuturePtr DoneWork::getFuture()
{
    auto future = new_future();
    future->markCompleted(c10::IValue(outputs_));
    return future;
}

bool QueuedWork::wait(Milliseconds timeout)
{
    queue_->run_if_next(this, timeout);
    if (timeout.count() > 0) {
        bool late;
        {
            std::unique_lock<std::mutex> lock(mutex_);
            late = !cv_.wait_for(lock, timeout, [this] { return completed_; });
        }
        if (late) { // the thread makes this call, or one before it: it ends now, with a report
            comm_->cut();
            bool success = Work::wait(kNoTimeout);
            comm_->take_back_cut();
            return success;
        }
    }
    return Work::wait(kNoTimeout);
}

void QueuedWork::run(Milliseconds timeout)
{
    std::exception_ptr failure;
    try {
        call_(timeout);
    } catch (...) {
        failure = std::current_exception();
    }
    call_ = nullptr;
    if (failure)
        future_->setError(failure);
    else
        future_->markCompleted(c10::IValue(outputs_));
    finish(failure);
}

void Queue::push(c10::intrusive_ptr<QueuedWork> work)
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!thread_.joinable())
            thread_ = std::thread([self = shared_from_this()] { self->loop(); });
        works_.push_back(std::move(work));
    }
    changed_.notify_one();
}

void Queue::end_turn()
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        busy_ = false;
    }
    changed_.notify_all();
}

bool Queue::run_alone(const Call &call)
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (busy_ || !works_.empty())
            return false;
        busy_ = true;
    }
    try {
        call(Milliseconds(0));
    } catch (...) {
        end_turn();
        throw;
    }
    end_turn();
    return true;
}

void Queue::run_if_next(QueuedWork *work, Milliseconds timeout)
{
    c10::intrusive_ptr<QueuedWork> mine;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (busy_ || works_.empty() || works_.front().get() != work)
            return;
        mine = std::move(works_.front());
        works_.pop_front();
        busy_ = true;
    }
    mine->run(timeout);
    end_turn();
}

void Queue::loop()
{
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return !busy_ && (stop_ || !works_.empty()); });
        if (works_.empty())
            return;
        auto work = std::move(works_.front());
        works_.pop_front();
        busy_ = true;
        lock.unlock();
        work->run(Milliseconds(0));
        work.reset(); // its tensors may need the interpreter: not under the lock
        lock.lock();
        busy_ = false;
        changed_.notify_all();
    }
}

void Queue::close()
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable())
        thread_.join();
}

} // namespace peal
