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
    queue_->run_if_next(this);
    return Work::wait(timeout);
}

void QueuedWork::run()
{
    std::exception_ptr failure;
    try {
        call_();
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

bool Queue::run_alone(const std::function<void()> &call)
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (busy_ || !works_.empty())
            return false;
        busy_ = true;
    }
    try {
        call();
    } catch (...) {
        end_turn();
        throw;
    }
    end_turn();
    return true;
}

void Queue::run_if_next(QueuedWork *work)
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
    mine->run();
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
        work->run();
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
