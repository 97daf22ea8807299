// SPDX-License-Identifier: Apache-2.0
// monitored_barrier. It consists of messages, as Gloo's does, so that rank 0 knows which ranks are missing and the group survives:
// every rank sends a byte to rank 0, which answers with 1 if all ranks have come, else 0. The errors contain Gloo's words, for
// programs that search for them.
#include "interpreter.h"
#include "messages.h"

#include <deque>

#include <sched.h>

namespace peal {


// The highest tags are reserved for these messages (docs/pytorch.md). They differ, because several barriers may be under way at
// once.
static const uint32_t BARRIER_TAG = UINT32_C(0x7fff0000), BARRIER_TAGS = UINT32_C(0xffff);

// A message of one byte. If it has not ended in time, Messages takes over its request and memory.
class Byte {
  public:
    Byte(Messages &messages, Comm &comm) : messages_(messages), comm_(comm), data_(at::zeros({1}, at::kByte))
    {
    }
    ~Byte()
    {
        if (request_)
            messages_.adopt(request_, data_);
    }
    Byte(const Byte &) = delete;
    Byte &operator=(const Byte &) = delete;
    void send(uint8_t value, uint32_t to, uint32_t tag)
    {
        *data_.data_ptr<uint8_t>() = value;
        Comm::Lock lock(comm_);
        comm_.check(peal_isend(comm_.get(), data_.data_ptr(), 1, to, tag, &request_), "monitored_barrier");
    }
    void receive(uint32_t from, uint32_t tag)
    {
        Comm::Lock lock(comm_);
        comm_.check(peal_irecv(comm_.get(), data_.data_ptr(), 1, from, tag, &request_), "monitored_barrier");
    }
    bool has_ended()
    {
        if (!request_)
            return true;
        Comm::Lock lock(comm_);
        peal_status status = peal_request_test(request_);
        if (status == PEAL_PENDING)
            return false;
        request_ = nullptr;
        comm_.check(status, "monitored_barrier");
        return true;
    }
    // False if it has not ended by then.
    bool wait_until(Clock::time_point until)
    {
        auto asked = Clock::now();
        while (!has_ended()) {
            auto now = Clock::now();
            if (now >= until)
                return false;
            if (now - asked >= SIGNAL_CHECK) {
                asked = now;
                if (std::exception_ptr raised = raised_by_signal())
                    std::rethrow_exception(raised);
            }
            sched_yield();
        }
        return true;
    }
    uint8_t value() const
    {
        return *data_.data_ptr<uint8_t>();
    }

  private:
    Messages &messages_;
    Comm &comm_;
    Tensor data_;
    peal_request *request_ = nullptr;
};

// On rank 0: the ranks that have not come in time, or only the first of them.
static std::vector<uint32_t> missing_ranks(std::deque<Byte> &came, Clock::time_point until, bool all)
{
    std::vector<uint32_t> missing;
    for (size_t rank = 1; rank < came.size(); rank++) {
        if (came[rank].wait_until(until))
            continue;
        missing.push_back(static_cast<uint32_t>(rank));
        if (!all)
            break;
    }
    return missing;
}

void Messages::monitored_barrier(Milliseconds timeout, bool wait_all_ranks)
{
    WithoutInterpreter released;
    uint32_t size = peal_comm_size(comm_->get());
    uint32_t tag = BARRIER_TAG | (barriers_++ & BARRIER_TAGS);
    auto until = Clock::now() + timeout;
    if (comm_->rank() != 0) {
        Byte arrival(*this, *comm_), verdict(*this, *comm_);
        verdict.receive(0, tag);
        arrival.send(1, 0, tag);
        // Rank 0 may have come later than this rank, and then waits as long again.
        bool heard = verdict.wait_until(until + timeout);
        PEAL_CHECK_GROUP(heard, "peal monitored_barrier: rank ", comm_->rank(), " heard nothing from rank 0 in ",
                         2 * timeout.count(), " ms");
        PEAL_CHECK_GROUP(verdict.value() == 1, "Rank ", comm_->rank(), " successfully reached monitoredBarrier, ",
                         "but received errors while waiting for send/recv from rank 0, which says who was missing");
        return;
    }
    PEAL_CHECK_GROUP(timeout.count() > 0, "Rank 0 timed out in monitoredBarrier after ", timeout.count(), " ms");
    std::deque<Byte> arrivals;
    for (uint32_t rank = 0; rank < size; rank++) {
        arrivals.emplace_back(*this, *comm_);
        if (rank > 0)
            arrivals.back().receive(rank, tag);
    }
    std::vector<uint32_t> missing = missing_ranks(arrivals, until, wait_all_ranks);
    std::deque<Byte> verdicts;
    for (uint32_t rank = 1; rank < size; rank++) {
        verdicts.emplace_back(*this, *comm_);
        verdicts.back().send(missing.empty() ? 1 : 0, rank, tag);
    }
    std::string names;
    for (uint32_t rank : missing)
        names += (names.empty() ? "" : ", ") + std::to_string(comm_->global_rank(static_cast<int>(rank)));
    PEAL_CHECK_GROUP(missing.empty(), wait_all_ranks ? "Ranks " : "Rank ", names,
                     " failed to pass monitoredBarrier in ", timeout.count(), " ms");
}

} // namespace peal
