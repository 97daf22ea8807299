// SPDX-License-Identifier: Apache-2.0
// See messages.h.
#include "messages.h"

#include "interpreter.h"
#include "translate.h"
#include "work.h"

#include <thread>

namespace peal {

// How long a waiting thread holds the lock at a time, if it is the only one and if others wait for the lock.
static const uint64_t ALONE_US = 20000, SHARED_US = 300;
// How long a group that ends waits for dropped messages.
static const std::chrono::seconds LAST_MESSAGES(1);

// ---- all messages of a group ----

Messages::Messages(c10::intrusive_ptr<Comm> comm) : comm_(std::move(comm)), forks_(forks())
{
}

c10::intrusive_ptr<Messages> Messages::make(c10::intrusive_ptr<Comm> comm)
{
    auto messages = c10::make_intrusive<Messages>(std::move(comm));
    messages->exit_id_ = at_exit::add([weak = c10::weak_intrusive_ptr<Messages>(messages)] {
        if (auto self = weak.lock())
            self->end_watch();
    });
    return messages;
}

void Messages::release_resources()
{
    at_exit::remove(exit_id_);
}

void Messages::end_watch()
{
    if (forks_ != forks())
        return; // the thread exists in the parent only
    std::unique_lock<std::mutex> lock(watch_mutex_);
    closing_ = true;
    auto ended = [this] { return !watching_; };
    if (watch_ended_.wait_for(lock, LAST_MESSAGES, ended))
        return;
    peal_comm_revoke(comm_->get());
    watch_ended_.wait(lock, ended);
}

void Messages::close()
{
    if (forks_ != forks())
        return;
    auto until = std::chrono::steady_clock::now() + LAST_MESSAGES;
    while (sweep() && std::chrono::steady_clock::now() < until)
        std::this_thread::yield();
    std::lock_guard<std::mutex> lock(watch_mutex_);
    closing_ = true;
}

static c10::intrusive_ptr<Messages> self(Messages *messages)
{
    return c10::intrusive_ptr<Messages>::unsafe_reclaim_from_nonowning(messages);
}

WorkPtr Messages::send(const Tensor &tensor, int to, int tag)
{
    sweep();
    Tensor dense = tensor.contiguous();
    peal_request *request = nullptr;
    {
        Comm::Lock lock(*comm_);
        comm_->check(peal_isend(comm_->get(), dense.data_ptr(), bytes_of(dense), static_cast<uint32_t>(to),
                                static_cast<uint32_t>(tag), &request),
                     "send");
    }
    return c10::make_intrusive<MessageWork>(self(this), OpType::SEND, request, tensor, dense);
}

WorkPtr Messages::receive(const Tensor &tensor, uint32_t from, int tag, OpType op)
{
    check_output(tensor, "recv");
    sweep();
    Tensor dense = room_of(tensor);
    peal_request *request = nullptr;
    {
        Comm::Lock lock(*comm_);
        comm_->check(peal_irecv(comm_->get(), dense.data_ptr(), bytes_of(dense), from,
                                static_cast<uint32_t>(tag), &request),
                     "recv");
    }
    return c10::make_intrusive<MessageWork>(self(this), op, request, tensor, dense);
}

void Messages::adopt(peal_request *request, Tensor tensor)
{
    if (comm_->try_lock()) {
        bool ended = peal_request_test(request) != PEAL_PENDING;
        comm_->unlock();
        if (ended)
            return;
    }
    {
        std::lock_guard<std::mutex> lock(watch_mutex_);
        dropped_.push_back({request, std::move(tensor)});
    }
    watch({});
}

bool Messages::sweep()
{
    std::list<Orphan> ended, dropped; // freed without the lock: freeing a tensor may need the interpreter
    {
        std::lock_guard<std::mutex> lock(watch_mutex_);
        dropped.swap(dropped_);
    }
    Comm::Lock lock(*comm_);
    orphans_.splice(orphans_.end(), dropped);
    for (auto orphan = orphans_.begin(); orphan != orphans_.end();) {
        auto next = std::next(orphan);
        if (peal_request_test(orphan->request) != PEAL_PENDING)
            ended.splice(ended.end(), orphans_, orphan);
        orphan = next;
    }
    return !orphans_.empty();
}

void Messages::watch(c10::intrusive_ptr<MessageWork> work)
{
    std::lock_guard<std::mutex> lock(watch_mutex_);
    if (work)
        watched_.push_back(std::move(work));
    if (watching_ || closing_)
        return;
    watching_ = true;
    // The thread shares ownership of this object and ends by itself, so it need not be joined.
    std::thread([keep = self(this)] { keep->watch_all(); }).detach();
}

void Messages::watch_all()
{
    std::vector<c10::intrusive_ptr<MessageWork>> mine;
    while (true) {
        bool orphans = sweep();
        {
            std::lock_guard<std::mutex> lock(watch_mutex_);
            mine.insert(mine.end(), watched_.begin(), watched_.end());
            watched_.clear();
            if (mine.empty() && dropped_.empty() && (!orphans || closing_)) {
                watching_ = false;
                watch_ended_.notify_all();
                return;
            }
        }
        for (auto &work : mine) {
            if (work->move(SHARED_US, Milliseconds(0)))
                work.reset();
        }
        mine.erase(std::remove(mine.begin(), mine.end(), nullptr), mine.end());
        if (mine.empty())
            std::this_thread::sleep_for(std::chrono::microseconds(SHARED_US));
    }
}

// ---- one message ----

MessageWork::MessageWork(c10::intrusive_ptr<Messages> messages, OpType op, peal_request *request, Tensor target,
                         Tensor dense)
    : Work(messages->comm_->rank(), op), messages_(std::move(messages)), request_(request),
      target_(std::move(target)), dense_(std::move(dense))
{
}

MessageWork::~MessageWork()
{
    if (request_)
        messages_->adopt(request_, std::move(dense_));
}

void MessageWork::end(peal_status status)
{
    request_ = nullptr;
    try {
        messages_->comm_->check(status, opType_ == OpType::SEND ? "send" : "recv");
        if (opType_ != OpType::SEND)
            write_back(dense_, target_);
    } catch (...) {
        exception_ = std::current_exception();
    }
    completed_ = true;
}

bool MessageWork::move(uint64_t microseconds, Milliseconds timeout)
{
    Comm &comm = *messages_->comm_;
    bool ended;
    {
        Comm::Lock lock(comm);
        if (request_) {
            comm.set_timeout(timeout);
            peal_status status = peal_request_wait_for(request_, microseconds, nullptr, &source_);
            if (status != PEAL_PENDING)
                end(status);
        }
        ended = completed_;
    }
    if (ended)
        complete_future();
    else
        comm.give_way();
    return ended;
}

// Runs callbacks, so no lock is held.
void MessageWork::complete_future()
{
    FuturePtr future;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        future.swap(future_);
    }
    if (!future)
        return;
    if (exception_)
        future->setError(exception_);
    else
        future->markCompleted(c10::IValue(result()));
}

bool MessageWork::isCompleted()
{
    WithoutInterpreter released; // torch holds the interpreter's lock here
    return move(0, Milliseconds(0));
}

bool MessageWork::isSuccess() const
{
    WithoutInterpreter released;
    Comm::Lock lock(*messages_->comm_);
    return completed_ && !exception_;
}

bool MessageWork::wait(Milliseconds timeout)
{
    while (!move(messages_->comm_->shared() ? SHARED_US : ALONE_US, timeout)) {
    }
    raise_kept();
    if (exception_)
        std::rethrow_exception(exception_);
    return true;
}

int MessageWork::sourceRank() const
{
    return static_cast<int>(source_);
}

Tensors MessageWork::result()
{
    return {target_};
}

FuturePtr MessageWork::getFuture()
{
    FuturePtr future;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (future_)
            return future_;
        future = future_ = new_future();
    }
    messages_->watch(c10::intrusive_ptr<MessageWork>::unsafe_reclaim_from_nonowning(this));
    return future;
}

} // namespace peal
