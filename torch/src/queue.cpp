// SPDX-License-Identifier: Apache-2.0
// See queue.h. References to works are dropped without mutex_ locked: freeing tensors may need Python's interpreter.
#include "queue.h"

#include "turns.h"
#include "work.h"

#include <thread>

#include <sched.h>

namespace peal {

// How long the thread lives without a call: longer than the time between two calls of a burst.
static const Milliseconds LINGER(1);
// How long it waits at a time while a caller makes a call and more calls are queued. The end of that call wakes it, unless callers
// have made all of them.
static const Milliseconds BUSY(100);
// How long pending calls may take when the program ends.
static const Milliseconds LAST_CHANCE(1000);

Queue::Queue(c10::intrusive_ptr<Comm> comm)
    : comm_(std::move(comm)), forks_(forks()), program_is_plain_(sched_getscheduler(0) == SCHED_OTHER)
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
    std::lock_guard<std::mutex> lock(mutex_);
    end_call();
}

void Queue::end_call()
{
    busy_ = false;
    call_ended_.notify_all();
    if (!works_.empty())
        call_possible_.notify_one();
}

void Queue::push(c10::intrusive_ptr<QueuedWork> work)
{
    refuse_after_fork();
    std::unique_lock<std::mutex> lock(mutex_);
    works_.push_back(std::move(work));
    if (!has_thread_)
        start_thread();
    bool idle = !busy_; // otherwise the end of that call wakes the thread
    lock.unlock();      // the thread may preempt this one as soon as it is woken
    if (idle)
        call_possible_.notify_one();
}

void Queue::start_thread()
{
    has_thread_ = true;
    std::thread([self = shared_from_this()] { self->loop(); }).detach();
}

c10::intrusive_ptr<QueuedWork> Queue::run_first(std::unique_lock<std::mutex> &lock)
{
    auto work = std::move(works_.front());
    works_.pop_front();
    busy_ = true;
    work->set_taken();
    lock.unlock();
    work->run();
    lock.lock();
    end_call();
    return work;
}

void Queue::loop()
{
    const Turns turns(program_is_plain_);
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        call_possible_.wait_for(lock, works_.empty() ? LINGER : BUSY, [this] { return !works_.empty() && !busy_; });
        if (works_.empty())
            break;
        if (busy_)
            continue;
        turns.begin_call();
        auto work = run_first(lock);
        turns.end_call();
        bool may_take_long = work->has_future();
        if (may_take_long) {
            has_thread_ = false;
            if (!works_.empty())
                start_thread();
        }
        lock.unlock();
        work->complete();
        work.reset();
        lock.lock();
        if (may_take_long && has_thread_)
            return; // another thread takes calls now
        has_thread_ = true;
    }
    has_thread_ = false;
    call_ended_.notify_all();
}

void Queue::finish(const QueuedWork &work)
{
    refuse_after_fork();
    std::unique_lock<std::mutex> lock(mutex_);
    while (!work.is_taken()) {
        if (!busy_ && !works_.empty()) {
            auto first = run_first(lock);
            lock.unlock();
            first->complete();
            first.reset();
            raise_kept();
            lock.lock();
            continue;
        }
        if (call_ended_.wait_for(lock, SIGNAL_CHECK) == std::cv_status::no_timeout)
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
        return; // the thread and its calls belong to the parent
    std::unique_lock<std::mutex> lock(mutex_);
    auto idle = [this] { return !busy_ && works_.empty() && !has_thread_; };
    if (patience.count() > 0 && !call_ended_.wait_for(lock, patience, idle))
        peal_comm_revoke(comm_->get());
    call_ended_.wait(lock, idle);
}

} // namespace peal
