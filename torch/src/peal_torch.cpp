// SPDX-License-Identifier: Apache-2.0
// The backend "peal" of torch.distributed: translation between torch's calls and peal.h, and nothing else.
//
// Calls run inline: they return when they are done, and their Work is complete. Send and recv are the exception, because
// both sides may start with a send: their Work completes in wait. With a progress thread (asked for by
// PEAL_TORCH_ASYNC=1 or peal_torch.set_async) collectives are queued, run in order by the thread, and overlap with the
// caller. Both ways make the same calls in the same order, so ranks need not agree on one.
//
// One source for torch 1.13, where a backend is a c10d::ProcessGroup, and for 2.x, where it is a c10d::Backend.
#include <peal/peal.h>

#include <torch/extension.h>
#include <pybind11/chrono.h>
#include <torch/version.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
namespace {
using Base = c10d::Backend;
}
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
namespace {
using Base = c10d::ProcessGroup;
}
#endif

namespace {

using at::Tensor;
using c10d::OpType;
using c10d::Work;
using Tensors = std::vector<Tensor>;
using WorkPtr = c10::intrusive_ptr<Work>;

// ---- words of refusal -------------------------------------------------------------------------------------------

void check_cpu(const Tensor &tensor, const char *what)
{
    TORCH_CHECK(tensor.device().is_cpu(), "peal ", what, ": only CPU tensors are supported, not ",
                tensor.device());
    TORCH_CHECK(tensor.layout() == at::kStrided, "peal ", what,
                ": sparse tensors are not supported; make it dense first");
}

Tensor &only(Tensors &tensors, const char *what)
{
    TORCH_CHECK(tensors.size() == 1, "peal ", what, ": one tensor a rank, not ", tensors.size());
    check_cpu(tensors[0], what);
    return tensors[0];
}

void check_same(const Tensor &tensor, const Tensor &like, const char *what)
{
    check_cpu(tensor, what);
    TORCH_CHECK(tensor.scalar_type() == like.scalar_type(), "peal ", what, ": tensors of ",
                tensor.scalar_type(), " and ", like.scalar_type(), " in one call");
}

// ---- types and operations -----------------------------------------------------------------------------------------

struct Reduction {
    peal_dtype dtype;
    enum peal_reduce op; // peal_reduce alone is the function
};

peal_dtype arithmetic_dtype(const Tensor &tensor, const char *what)
{
    switch (tensor.scalar_type()) {
    case at::kHalf:
        return PEAL_F16;
    case at::kBFloat16:
        return PEAL_BF16;
    case at::kFloat:
        return PEAL_F32;
    case at::kDouble:
        return PEAL_F64;
    case at::kChar:
        return PEAL_I8;
    case at::kByte:
    case at::kBool:
        return PEAL_U8;
    case at::kInt:
        return PEAL_I32;
    case at::kLong:
        return PEAL_I64;
    default:
        TORCH_CHECK(false, "peal ", what, ": ", tensor.scalar_type(),
                    " cannot be reduced; supported are float16, bfloat16, float32, float64, int8, uint8, "
                    "int32, int64 and bool");
    }
}

// A bool is a byte that is 0 or 1: its sum is `or`, its product `and`.
enum peal_reduce bool_op(c10d::ReduceOp::RedOpType op, const char *what)
{
    switch (op) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::MAX:
    case c10d::ReduceOp::BOR:
        return PEAL_OR;
    case c10d::ReduceOp::PRODUCT:
    case c10d::ReduceOp::MIN:
    case c10d::ReduceOp::BAND:
        return PEAL_AND;
    case c10d::ReduceOp::BXOR:
        return PEAL_XOR;
    default:
        TORCH_CHECK(false, "peal ", what, ": this reduce operation is not defined for bool");
    }
}

enum peal_reduce plain_op(c10d::ReduceOp::RedOpType op, bool is_float, const char *what)
{
    TORCH_CHECK(!is_float || op < c10d::ReduceOp::BAND || op > c10d::ReduceOp::BXOR, "peal ", what,
                ": bitwise operations are for integers");
    switch (op) {
    case c10d::ReduceOp::SUM:
        return PEAL_SUM;
    case c10d::ReduceOp::AVG:
        TORCH_CHECK(is_float, "peal ", what, ": AVG is for floating-point tensors");
        return PEAL_AVG;
    case c10d::ReduceOp::PRODUCT:
        return PEAL_PROD;
    case c10d::ReduceOp::MIN:
        return PEAL_MIN;
    case c10d::ReduceOp::MAX:
        return PEAL_MAX;
    case c10d::ReduceOp::BAND:
        return PEAL_AND;
    case c10d::ReduceOp::BOR:
        return PEAL_OR;
    case c10d::ReduceOp::BXOR:
        return PEAL_XOR;
    default:
        TORCH_CHECK(false, "peal ", what, ": this reduce operation is not supported");
    }
}

Reduction reduction(const Tensor &tensor, const c10d::ReduceOp &op, const char *what)
{
    c10d::ReduceOp::RedOpType kind = op.op_;
    peal_dtype dtype = arithmetic_dtype(tensor, what);
    if (tensor.scalar_type() == at::kBool)
        return {dtype, bool_op(kind, what)};
    return {dtype, plain_op(kind, at::isFloatingType(tensor.scalar_type()), what)};
}

uint64_t bytes_of(const Tensor &tensor)
{
    return static_cast<uint64_t>(tensor.nbytes());
}

// ---- work -----------------------------------------------------------------------------------------------------------

// The result list that DDP and others want; made only when asked for.
c10::intrusive_ptr<c10::ivalue::Future> new_future()
{
    return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
}

// A call that has been made already.
class DoneWork : public Work {
  public:
    DoneWork(int rank, OpType op, Tensors outputs) : Work(rank, op), outputs_(std::move(outputs))
    {
        completed_ = true;
    }
    bool isCompleted() override
    {
        return true;
    }
    bool isSuccess() const override
    {
        return true;
    }
    bool wait(std::chrono::milliseconds) override
    {
        return true;
    }
    Tensors result() override
    {
        return outputs_;
    }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override
    {
        auto future = new_future();
        future->markCompleted(c10::IValue(outputs_));
        return future;
    }

  private:
    Tensors outputs_;
};

// A call that the progress thread makes.
class QueuedWork : public Work {
  public:
    QueuedWork(int rank, OpType op, Tensors outputs, std::function<void()> call)
        : Work(rank, op), outputs_(std::move(outputs)), call_(std::move(call)), future_(new_future())
    {
    }
    void run()
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
    Tensors result() override
    {
        return outputs_;
    }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override
    {
        return future_;
    }

  private:
    Tensors outputs_;
    std::function<void()> call_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
};

class Group;

// A send or recv under way. It ends in wait, or when somebody asks and it has ended.
class MessageWork : public Work {
  public:
    MessageWork(c10::intrusive_ptr<Group> group, OpType op, peal_request *request, Tensor target,
                Tensor staging);
    ~MessageWork() override;
    bool isCompleted() override;
    bool isSuccess() const override;
    bool wait(std::chrono::milliseconds timeout) override;
    int sourceRank() const override;
    Tensors result() override;

  private:
    void end(peal_status status);

    c10::intrusive_ptr<Group> group_;
    peal_request *request_;
    Tensor target_, staging_;
    uint32_t source_ = 0;
};

// ---- the group ----------------------------------------------------------------------------------------------------

struct StoreContext {
    c10::intrusive_ptr<c10d::Store> store;
};

int store_set(void *context, const char *key, const void *value, size_t len)
{
    try {
        const uint8_t *bytes = static_cast<const uint8_t *>(value);
        static_cast<StoreContext *>(context)->store->set(key, std::vector<uint8_t>(bytes, bytes + len));
        return 0;
    } catch (...) {
        return -1;
    }
}

int store_get(void *context, const char *key, void *value, size_t cap, size_t *len)
{
    try {
        std::vector<uint8_t> got = static_cast<StoreContext *>(context)->store->get(key);
        if (got.size() > cap)
            return -1;
        std::copy(got.begin(), got.end(), static_cast<uint8_t *>(value));
        *len = got.size();
        return 0;
    } catch (...) {
        return -1;
    }
}

class Group : public Base {
  public:
    Group(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
          std::chrono::milliseconds timeout, bool async)
        : Base(rank, size)
    {
        StoreContext context{store};
        peal_store callbacks{&context, store_set, store_get};
        peal_open how{};
        how.size = static_cast<uint32_t>(size);
        how.rank = static_cast<uint32_t>(rank);
        how.store = &callbacks;
        default_timeout_ = timeout_ = std::min(timeout, std::chrono::milliseconds(INT32_MAX));
        how.timeout_ms = static_cast<uint32_t>(timeout_.count());
        how.quiet = 1;
        peal_status status = peal_comm_open(&how, &comm_);
        TORCH_CHECK(status == PEAL_OK, "peal: rank ", rank, " of ", size, " cannot join: ",
                    peal_comm_error(nullptr));
        if (async)
            thread_ = std::thread([this] { run_queue(); });
    }

    ~Group() override
    {
        // The thread may need the interpreter to let go of its last tensors, and whoever destroys a group may hold it.
        if (thread_.joinable() && PyGILState_Check()) {
            py::gil_scoped_release release;
            end_thread();
        } else if (thread_.joinable()) {
            end_thread();
        }
        peal_comm_close(comm_);
    }

    const std::string getBackendName() const override
    {
        return "peal";
    }

    void setSequenceNumberForGroup() override
    {
    }

    uint64_t getSequenceNumberForGroup() override
    {
        return sequence_;
    }

    WorkPtr broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts) override
    {
        Tensor tensor = only(tensors, "broadcast");
        uint32_t root = static_cast<uint32_t>(opts.rootRank);
        return collective(OpType::BROADCAST, "broadcast", opts.timeout, {tensor}, [=] {
            in_place(tensor, [&](Tensor &flat) {
                return peal_broadcast(comm_, flat.data_ptr(), bytes_of(flat), PEAL_U8, root);
            }, "broadcast");
        });
    }

    WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts) override
    {
        Tensor tensor = only(tensors, "allreduce");
        Reduction r = reduction(tensor, opts.reduceOp, "allreduce");
        return collective(OpType::ALLREDUCE, "allreduce", opts.timeout, {tensor}, [=] {
            in_place(tensor, [&](Tensor &flat) {
                return peal_allreduce(comm_, flat.data_ptr(), flat.data_ptr(),
                                      static_cast<uint64_t>(flat.numel()), r.dtype, r.op);
            }, "allreduce");
        });
    }

    WorkPtr allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts) override
    {
        TORCH_CHECK(!tensors.empty(), "peal allreduce_coalesced: no tensors");
        for (const Tensor &tensor : tensors)
            check_same(tensor, tensors[0], "allreduce_coalesced");
        Reduction r = reduction(tensors[0], opts.reduceOp, "allreduce_coalesced");
        Tensors list = tensors;
        return collective(OpType::ALLREDUCE_COALESCED, "allreduce_coalesced", opts.timeout, list, [=] {
            Tensors parts;
            for (const Tensor &tensor : list)
                parts.push_back(tensor.reshape({-1}));
            Tensor flat = at::cat(parts);
            check(peal_allreduce(comm_, flat.data_ptr(), flat.data_ptr(),
                                 static_cast<uint64_t>(flat.numel()), r.dtype, r.op),
                  "allreduce_coalesced");
            int64_t at = 0;
            for (const Tensor &tensor : list) {
                Tensor target = tensor;
                target.copy_(flat.narrow(0, at, tensor.numel()).view(tensor.sizes()));
                at += tensor.numel();
            }
        });
    }

    WorkPtr reduce(Tensors &tensors, const c10d::ReduceOptions &opts) override
    {
        Tensor tensor = only(tensors, "reduce");
        Reduction r = reduction(tensor, opts.reduceOp, "reduce");
        uint32_t root = static_cast<uint32_t>(opts.rootRank);
        return collective(OpType::REDUCE, "reduce", opts.timeout, {tensor}, [=] {
            Tensor flat = tensor.contiguous();
            bool is_root = getRank() == static_cast<int>(root);
            check(peal_reduce(comm_, flat.data_ptr(), is_root ? flat.data_ptr() : nullptr,
                              static_cast<uint64_t>(flat.numel()), r.dtype, r.op, root),
                  "reduce");
            if (is_root && !flat.is_same(tensor))
                Tensor(tensor).copy_(flat);
        });
    }

    WorkPtr allgather(std::vector<Tensors> &outputs, Tensors &inputs,
                      const c10d::AllgatherOptions &opts) override
    {
        Tensor input = only(inputs, "allgather");
        TORCH_CHECK(outputs.size() == 1 && static_cast<int>(outputs[0].size()) == getSize(),
                    "peal allgather: one list of ", getSize(), " tensors is wanted");
        Tensors list = outputs[0];
        check_list(list, input, "allgather");
        return collective(OpType::ALLGATHER, "allgather", opts.timeout, list, [=] {
            Tensor send = input.contiguous();
            Tensor flat = room_for(list, send);
            check(peal_allgather(comm_, send.data_ptr(), flat.data_ptr(), bytes_of(send), PEAL_U8),
                  "allgather");
            spread(flat, list);
        });
    }

    WorkPtr _allgather_base(Tensor &output, Tensor &input, const c10d::AllgatherOptions &opts) override
    {
        check_same(output, input, "_allgather_base");
        TORCH_CHECK(output.numel() == input.numel() * getSize(),
                    "peal _allgather_base: the output must have ", getSize(), " times the input's elements");
        Tensor out = output, in = input;
        return collective(OpType::_ALLGATHER_BASE, "_allgather_base", opts.timeout, {out}, [=] {
            Tensor send = in.contiguous();
            with_output(out, [&](Tensor &flat) {
                return peal_allgather(comm_, send.data_ptr(), flat.data_ptr(), bytes_of(send), PEAL_U8);
            }, "_allgather_base");
        });
    }

    WorkPtr allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
                                const c10d::AllgatherOptions &opts) override
    {
        TORCH_CHECK(static_cast<int>(outputs.size()) == getSize(), "peal allgather_coalesced: ", getSize(),
                    " lists of tensors are wanted");
        for (const Tensors &list : outputs)
            TORCH_CHECK(list.size() == inputs.size(),
                        "peal allgather_coalesced: every list must have as many tensors as the input");
        WorkPtr last;
        Tensors all;
        for (size_t i = 0; i < inputs.size(); i++) {
            std::vector<Tensors> one(1);
            for (Tensors &list : outputs)
                one[0].push_back(list[i]);
            Tensors input{inputs[i]};
            last = allgather(one, input, opts);
        }
        if (!last)
            last = c10::make_intrusive<DoneWork>(getRank(), OpType::ALLGATHER_COALESCED, Tensors{});
        return last;
    }

    WorkPtr gather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::GatherOptions &opts) override
    {
        Tensor input = only(inputs, "gather");
        uint32_t root = static_cast<uint32_t>(opts.rootRank);
        bool is_root = getRank() == static_cast<int>(root);
        Tensors list;
        if (is_root) {
            TORCH_CHECK(outputs.size() == 1 && static_cast<int>(outputs[0].size()) == getSize(),
                        "peal gather: one list of ", getSize(), " tensors is wanted on the root");
            list = outputs[0];
            check_list(list, input, "gather");
        } else {
            TORCH_CHECK(outputs.empty(), "peal gather: only the root has outputs");
        }
        return collective(OpType::GATHER, "gather", opts.timeout, list, [=] {
            Tensor send = input.contiguous();
            Tensor flat = is_root ? room_for(list, send) : Tensor();
            check(peal_gather(comm_, send.data_ptr(), is_root ? flat.data_ptr() : nullptr, bytes_of(send),
                              PEAL_U8, root),
                  "gather");
            if (is_root)
                spread(flat, list);
        });
    }

    WorkPtr scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ScatterOptions &opts) override
    {
        Tensor output = only(outputs, "scatter");
        uint32_t root = static_cast<uint32_t>(opts.rootRank);
        bool is_root = getRank() == static_cast<int>(root);
        Tensors list;
        if (is_root) {
            TORCH_CHECK(inputs.size() == 1 && static_cast<int>(inputs[0].size()) == getSize(),
                        "peal scatter: one list of ", getSize(), " tensors is wanted on the root");
            list = inputs[0];
            check_list(list, output, "scatter");
        } else {
            TORCH_CHECK(inputs.empty(), "peal scatter: only the root has inputs");
        }
        return collective(OpType::SCATTER, "scatter", opts.timeout, {output}, [=] {
            Tensor flat = is_root ? joined(list) : Tensor();
            with_output(output, [&](Tensor &recv) {
                return peal_scatter(comm_, is_root ? flat.data_ptr() : nullptr, recv.data_ptr(),
                                    bytes_of(recv), PEAL_U8, root);
            }, "scatter");
        });
    }

    WorkPtr reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                           const c10d::ReduceScatterOptions &opts) override
    {
        Tensor output = only(outputs, "reduce_scatter");
        TORCH_CHECK(inputs.size() == 1 && static_cast<int>(inputs[0].size()) == getSize(),
                    "peal reduce_scatter: one list of ", getSize(), " tensors is wanted");
        Tensors list = inputs[0];
        for (const Tensor &tensor : list)
            check_same(tensor, output, "reduce_scatter");
        Reduction r = reduction(output, opts.reduceOp, "reduce_scatter");
        std::vector<uint64_t> counts;
        for (const Tensor &tensor : list)
            counts.push_back(static_cast<uint64_t>(tensor.numel()));
        TORCH_CHECK(counts[getRank()] == static_cast<uint64_t>(output.numel()),
                    "peal reduce_scatter: the output must be as large as the own input");
        bool even = std::all_of(counts.begin(), counts.end(), [&](uint64_t c) { return c == counts[0]; });
        return collective(OpType::REDUCE_SCATTER, "reduce_scatter", opts.timeout, {output}, [=] {
            Tensor flat = joined(list);
            with_output(output, [&](Tensor &recv) {
                return even ? peal_reduce_scatter(comm_, flat.data_ptr(), recv.data_ptr(), counts[0], r.dtype,
                                                  r.op)
                            : peal_reduce_scatter_v(comm_, flat.data_ptr(), recv.data_ptr(), counts.data(),
                                                    r.dtype, r.op);
            }, "reduce_scatter");
        });
    }

    WorkPtr _reduce_scatter_base(Tensor &output, Tensor &input,
                                 const c10d::ReduceScatterOptions &opts) override
    {
        check_same(output, input, "_reduce_scatter_base");
        TORCH_CHECK(input.numel() == output.numel() * getSize(),
                    "peal _reduce_scatter_base: the input must have ", getSize(),
                    " times the output's elements");
        Reduction r = reduction(output, opts.reduceOp, "_reduce_scatter_base");
        Tensor out = output, in = input;
        return collective(OpType::_REDUCE_SCATTER_BASE, "_reduce_scatter_base", opts.timeout, {out}, [=] {
            Tensor send = in.contiguous();
            with_output(out, [&](Tensor &recv) {
                return peal_reduce_scatter(comm_, send.data_ptr(), recv.data_ptr(),
                                           static_cast<uint64_t>(recv.numel()), r.dtype, r.op);
            }, "_reduce_scatter_base");
        });
    }

    WorkPtr alltoall_base(Tensor &output, Tensor &input, std::vector<int64_t> &output_splits,
                          std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &opts) override
    {
        check_same(output, input, "alltoall_base");
        TORCH_CHECK(output.is_contiguous() && input.is_contiguous(),
                    "peal alltoall_base: tensors must be contiguous");
        std::vector<uint64_t> sends = split_bytes(input, input_splits, "input");
        std::vector<uint64_t> recvs = split_bytes(output, output_splits, "output");
        bool even = input_splits.empty() && output_splits.empty();
        Tensor out = output, in = input;
        return collective(OpType::ALLTOALL_BASE, "alltoall_base", opts.timeout, {out}, [=] {
            if (even) {
                check(peal_all_to_all(comm_, in.data_ptr(), out.data_ptr(), sends.empty() ? 0 : sends[0],
                                      PEAL_U8),
                      "alltoall_base");
                return;
            }
            peal_blocks from{sends.data(), nullptr}, to{recvs.data(), nullptr};
            check(peal_all_to_all_v(comm_, in.data_ptr(), &from, out.data_ptr(), &to, PEAL_U8),
                  "alltoall_base");
        });
    }

    WorkPtr alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts) override
    {
        TORCH_CHECK(static_cast<int>(outputs.size()) == getSize() &&
                        static_cast<int>(inputs.size()) == getSize(),
                    "peal alltoall: ", getSize(), " tensors each way are wanted");
        std::vector<uint64_t> sends, recvs;
        uint64_t total = 0;
        for (int i = 0; i < getSize(); i++) {
            check_same(inputs[i], inputs[0], "alltoall");
            check_same(outputs[i], inputs[0], "alltoall");
            sends.push_back(bytes_of(inputs[i]));
            recvs.push_back(bytes_of(outputs[i]));
            total += recvs.back();
        }
        Tensors in = inputs, out = outputs;
        return collective(OpType::ALLTOALL, "alltoall", opts.timeout, out, [=] {
            Tensor send = joined(in);
            Tensor recv = at::empty({static_cast<int64_t>(total)}, at::kByte);
            peal_blocks from{sends.data(), nullptr}, to{recvs.data(), nullptr};
            check(peal_all_to_all_v(comm_, send.data_ptr(), &from, recv.data_ptr(), &to, PEAL_U8), "alltoall");
            spread(recv, out);
        });
    }

    WorkPtr send(Tensors &tensors, int to, int tag) override
    {
        Tensor &tensor = only(tensors, "send");
        Tensor flat = tensor.contiguous();
        peal_request *request = nullptr;
        std::lock_guard<std::mutex> lock(comm_mutex_);
        check(peal_isend(comm_, flat.data_ptr(), bytes_of(flat), static_cast<uint32_t>(to),
                         static_cast<uint32_t>(tag), &request),
              "send");
        return c10::make_intrusive<MessageWork>(self(), OpType::SEND, request, tensor, flat);
    }

    WorkPtr recv(Tensors &tensors, int from, int tag) override
    {
        return receive(tensors, static_cast<uint32_t>(from), tag, OpType::RECV);
    }

    WorkPtr recvAnysource(Tensors &tensors, int tag) override
    {
        return receive(tensors, PEAL_ANY_SOURCE, tag, OpType::RECVANYSOURCE);
    }

    WorkPtr barrier(const c10d::BarrierOptions &opts) override
    {
        return collective(OpType::BARRIER, "barrier", opts.timeout, {},
                          [=] { check(peal_barrier(comm_), "barrier"); });
    }

    // Ends in an exception that says what happened, in the words of peal's report. "Timed out" is what programs look
    // for in the text of other backends.
    void check(peal_status status, const char *what) const
    {
        TORCH_CHECK(status == PEAL_OK, "peal ", what, " failed on rank ", getRank(), " of ", getSize(), ": ",
                    status == PEAL_TIMEOUT ? "Timed out after waiting" : peal_status_text(status), "\n",
                    peal_comm_error(comm_));
    }

    // For the next call; the group's own where the caller gave none.
    void set_timeout(std::chrono::milliseconds timeout)
    {
        timeout = timeout.count() > 0 ? std::min(timeout, std::chrono::milliseconds(INT32_MAX)) : default_timeout_;
        if (timeout.count() > 0 && timeout != timeout_) {
            peal_comm_set_timeout(comm_, static_cast<uint32_t>(timeout.count()));
            timeout_ = timeout;
        }
    }

    uint64_t simulated_ps() const
    {
        return peal_comm_simulated_ps(comm_);
    }

    std::mutex comm_mutex_; // one communicator belongs to one thread at a time

  private:
    c10::intrusive_ptr<Group> self()
    {
        return c10::intrusive_ptr<Group>::unsafe_reclaim_from_nonowning(this);
    }

    // Runs the call now, or hands it to the progress thread.
    template <typename Call>
    WorkPtr collective(OpType op, const char *what, std::chrono::milliseconds timeout, Tensors outputs,
                       Call call)
    {
        (void)what;
        sequence_++;
        if (!thread_.joinable()) {
            std::lock_guard<std::mutex> lock(comm_mutex_);
            set_timeout(timeout);
            call();
            return c10::make_intrusive<DoneWork>(getRank(), op, std::move(outputs));
        }
        auto work = c10::make_intrusive<QueuedWork>(getRank(), op, std::move(outputs), [=] {
            std::lock_guard<std::mutex> lock(comm_mutex_);
            set_timeout(timeout);
            call();
        });
        {
            std::lock_guard<std::mutex> lock(queue_mutex_);
            queue_.push_back(work);
        }
        queue_cv_.notify_one();
        return work;
    }

    void end_thread()
    {
        {
            std::lock_guard<std::mutex> lock(queue_mutex_);
            stop_ = true;
        }
        queue_cv_.notify_all();
        thread_.join();
    }

    void run_queue()
    {
        std::unique_lock<std::mutex> lock(queue_mutex_);
        while (true) {
            queue_cv_.wait(lock, [this] { return stop_ || !queue_.empty(); });
            if (queue_.empty())
                return;
            auto work = queue_.front();
            queue_.pop_front();
            lock.unlock();
            work->run();
            work.reset(); // its tensors may need the interpreter: not under the lock
            lock.lock();
        }
    }

    // Gives a call the tensor's own memory, or a dense copy that is written back.
    template <typename Call> void in_place(const Tensor &tensor, Call call, const char *what)
    {
        Tensor flat = tensor.contiguous();
        check(call(flat), what);
        if (!flat.is_same(tensor))
            Tensor(tensor).copy_(flat);
    }

    template <typename Call> void with_output(const Tensor &tensor, Call call, const char *what)
    {
        Tensor flat = tensor.is_contiguous() ? tensor : at::empty(tensor.sizes(), tensor.options());
        check(call(flat), what);
        if (!flat.is_same(tensor))
            Tensor(tensor).copy_(flat);
    }

    void check_list(const Tensors &list, const Tensor &like, const char *what) const
    {
        for (const Tensor &tensor : list) {
            check_same(tensor, like, what);
            TORCH_CHECK(tensor.numel() == like.numel(), "peal ", what, ": tensors of ", tensor.numel(), " and ",
                        like.numel(), " elements in one call");
        }
    }

    // Are these tensors one after the other in one piece of memory?
    static bool adjacent(const Tensors &list)
    {
        const char *next = nullptr;
        for (const Tensor &tensor : list) {
            const char *at = static_cast<const char *>(tensor.data_ptr());
            if (!tensor.is_contiguous() || (next && at != next))
                return false;
            next = at + tensor.nbytes();
        }
        return true;
    }

    static int64_t total_bytes(const Tensors &list)
    {
        int64_t total = 0;
        for (const Tensor &tensor : list)
            total += static_cast<int64_t>(tensor.nbytes());
        return total;
    }

    // Memory for all of `list`: its own where that is one piece.
    static Tensor room_for(const Tensors &list, const Tensor &)
    {
        if (adjacent(list))
            return at::from_blob(list[0].data_ptr(), {total_bytes(list)}, at::kByte);
        return at::empty({total_bytes(list)}, at::kByte);
    }

    static Tensor joined(const Tensors &list)
    {
        Tensor flat = room_for(list, list[0]);
        if (!adjacent(list)) {
            char *at = static_cast<char *>(flat.data_ptr());
            for (const Tensor &tensor : list) {
                Tensor dense = tensor.contiguous();
                std::memcpy(at, dense.data_ptr(), dense.nbytes());
                at += dense.nbytes();
            }
        }
        return flat;
    }

    // The inverse of joined.
    static void spread(const Tensor &flat, const Tensors &list)
    {
        if (list.empty() || flat.data_ptr() == list[0].data_ptr())
            return;
        const char *at = static_cast<const char *>(flat.data_ptr());
        for (const Tensor &tensor : list) {
            if (tensor.is_contiguous()) {
                std::memcpy(tensor.data_ptr(), at, tensor.nbytes());
            } else {
                Tensor dense = at::empty(tensor.sizes(), tensor.options());
                std::memcpy(dense.data_ptr(), at, dense.nbytes());
                Tensor(tensor).copy_(dense);
            }
            at += tensor.nbytes();
        }
    }

    // Bytes for each rank: rows of the first dimension, or equal parts.
    std::vector<uint64_t> split_bytes(const Tensor &tensor, const std::vector<int64_t> &splits,
                                      const char *which) const
    {
        uint64_t size = static_cast<uint64_t>(getSize()), total = bytes_of(tensor);
        std::vector<uint64_t> out(size, total / size);
        if (splits.empty()) {
            TORCH_CHECK(tensor.dim() == 0 || tensor.size(0) % getSize() == 0, "peal alltoall_base: the ", which,
                        "'s first dimension does not divide by ", getSize());
            return out;
        }
        TORCH_CHECK(splits.size() == size, "peal alltoall_base: ", getSize(), " ", which, " splits are wanted");
        int64_t rows = tensor.dim() ? tensor.size(0) : 0, sum = 0;
        uint64_t row = rows ? total / static_cast<uint64_t>(rows) : 0;
        for (uint64_t i = 0; i < size; i++) {
            TORCH_CHECK(splits[i] >= 0, "peal alltoall_base: a negative ", which, " split");
            out[i] = static_cast<uint64_t>(splits[i]) * row;
            sum += splits[i];
        }
        TORCH_CHECK(sum == rows, "peal alltoall_base: the ", which, " splits add up to ", sum, ", not ", rows);
        return out;
    }

    WorkPtr receive(Tensors &tensors, uint32_t from, int tag, OpType op)
    {
        Tensor &tensor = only(tensors, "recv");
        Tensor flat = tensor.is_contiguous() ? tensor : at::empty(tensor.sizes(), tensor.options());
        peal_request *request = nullptr;
        std::lock_guard<std::mutex> lock(comm_mutex_);
        check(peal_irecv(comm_, flat.data_ptr(), bytes_of(flat), from, static_cast<uint32_t>(tag), &request),
              "recv");
        return c10::make_intrusive<MessageWork>(self(), op, request, tensor, flat);
    }

    peal_comm *comm_ = nullptr;
    uint64_t sequence_ = 0;
    std::chrono::milliseconds default_timeout_{0}, timeout_{0};
    std::thread thread_;
    std::mutex queue_mutex_;
    std::condition_variable queue_cv_;
    std::deque<c10::intrusive_ptr<QueuedWork>> queue_;
    bool stop_ = false;
};

// ---- messages -------------------------------------------------------------------------------------------------------

MessageWork::MessageWork(c10::intrusive_ptr<Group> group, OpType op, peal_request *request, Tensor target,
                         Tensor staging)
    : Work(group->getRank(), op), group_(std::move(group)), request_(request), target_(std::move(target)),
      staging_(std::move(staging))
{
}

// Buffers belong to the request until it has ended, so a work that nobody waited for ends here.
MessageWork::~MessageWork()
{
    if (request_) {
        std::lock_guard<std::mutex> lock(group_->comm_mutex_);
        peal_request_wait(request_);
    }
}

void MessageWork::end(peal_status status)
{
    request_ = nullptr;
    completed_ = true;
    try {
        group_->check(status, opType_ == OpType::SEND ? "send" : "recv");
        if (opType_ != OpType::SEND && !staging_.is_same(target_))
            target_.copy_(staging_);
    } catch (...) {
        exception_ = std::current_exception();
    }
}

bool MessageWork::isCompleted()
{
    if (request_) {
        std::lock_guard<std::mutex> lock(group_->comm_mutex_);
        peal_status status = peal_request_test(request_);
        if (status != PEAL_PENDING)
            end(status);
    }
    return completed_;
}

bool MessageWork::isSuccess() const
{
    return completed_ && !exception_;
}

bool MessageWork::wait(std::chrono::milliseconds timeout)
{
    if (request_) {
        std::lock_guard<std::mutex> lock(group_->comm_mutex_);
        group_->set_timeout(timeout);
        end(peal_request_wait_recv(request_, nullptr, &source_));
    }
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

c10::intrusive_ptr<Base> create(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                                std::chrono::duration<float> timeout, bool async)
{
    return c10::make_intrusive<Group>(
        store, rank, size, std::chrono::duration_cast<std::chrono::milliseconds>(timeout), async);
}

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    m.def("simulated_ps", [](const c10::intrusive_ptr<Base> &group) {
        auto *own = dynamic_cast<Group *>(group.get());
        TORCH_CHECK(own, "not a group of the backend 'peal'");
        return own->simulated_ps();
    });
    m.def("create", &create, py::call_guard<py::gil_scoped_release>());
}
