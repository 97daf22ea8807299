// SPDX-License-Identifier: Apache-2.0
// See queue.h. Works are let go of without the lock: their tensors may need Python's interpreter for it.
#include "queue.h"

#include "turns.h"
#include "work.h"

#include <thread>

namespace peal {

// How long the thread stays without a call: longer than a program takes from one to the next of a burst.
static const Milliseconds LINGER(1);
// How long calls that nobody waited for may take when the program ends.
static const Milliseconds LAST_CHANCE(1000);

Queue::Queue(c10::intrusive_ptr<Comm> comm) : comm_(std::move(comm)), forks_(forks())
{
}

std::shared_ptr<Queue> Queue::make(c10::intrusive_ptr<Comm> comm)
{
    std::shared_ptr<Queue> queue(new Queue(std::move(comm)));
    queue->exit_id_ = at_exit::add([weak = std::weak_ptr<Queue>(queue)] {
        if (auto self = weak.lock())
            self->drain(LAST_CHANCE);
    });
    return queue;
}

Queue::~Queue()
{
    at_exit::remove(exit_id_);
}

void Queue::refuse_after_fork() const
{
    PEAL_CHECK_GROUP(forks_ == forks(), "peal: a forked process is not a rank of its parent's groups");
}

bool Queue::take_turn()
{
    refuse_after_fork();
    std::lock_guard<std::mutex> lock(mutex_);
    if (busy_ || !works_.empty())
        return false;
    busy_ = true;
    return true;
}

void Queue::end_turn()
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        busy_ = false;
    }
    changed_.notify_all();
}

void Queue::push(c10::intrusive_ptr<QueuedWork> work)
{
    refuse_after_fork();
    {
        std::lock_guard<std::mutex> lock(mutex_);
        works_.push_back(std::move(work));
        if (!posted_)
            start_thread();
    }
    changed_.notify_all();
}

void Queue::start_thread()
{
    posted_ = true;
    std::thread([self = shared_from_this()] { self->loop(); }).detach();
}

c10::intrusive_ptr<QueuedWork> Queue::run_first(std::unique_lock<std::mutex> &lock)
{
    auto work = std::move(works_.front());
    works_.pop_front();
    busy_ = true;
    lock.unlock();
    work->run();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
    return work;
}

void Queue::loop()
{
    const Turns turns;
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        changed_.wait_for(lock, LINGER, [this] { return !works_.empty(); });
        changed_.wait(lock, [this] { return !busy_ || works_.empty(); });
        if (works_.empty())
            break;
        turns.begin_short();
        auto work = run_first(lock);
        turns.end_short();
        bool may_take_long = work->has_future();
        if (may_take_long) {
            posted_ = false;
            if (!works_.empty())
                start_thread();
        }
        lock.unlock();
        work->complete();
        work.reset();
        lock.lock();
        if (may_take_long && posted_)
            return; // another thread has the post
        posted_ = true;
    }
    posted_ = false;
    changed_.notify_all();
}

void Queue::finish(const QueuedWork &work)
{
    refuse_after_fork();
    std::unique_lock<std::mutex> lock(mutex_);
    while (!work.has_run()) {
        if (!busy_ && !works_.empty()) {
            auto first = run_first(lock);
            lock.unlock();
            first->complete();
            first.reset();
            raise_kept();
            lock.lock();
            continue;
        }
        if (changed_.wait_for(lock, SIGNAL_CHECK) == std::cv_status::no_timeout)
            continue;
        lock.unlock();
        give_up_on_signal();
        lock.lock();
    }
}

void Queue::give_up_on_signal()
{
    std::exception_ptr raised = raised_by_signal();
    if (!raised)
        return;
    peal_comm_revoke(comm_->get());
    std::rethrow_exception(raised);
}

void Queue::drain(Milliseconds patience)
{
    if (forks_ != forks())
        return; // the thread and its calls are the parent's
    std::unique_lock<std::mutex> lock(mutex_);
    auto idle = [this] { return !busy_ && works_.empty() && !posted_; };
    if (patience.count() > 0 && !changed_.wait_for(lock, patience, idle))
        peal_comm_revoke(comm_->get());
    changed_.wait(lock, idle);
}

} // namespace peal
