// SPDX-License-Identifier: Apache-2.0
// See group.h. Every function checks its tensors, then issues one call of peal.h.
#include "group.h"

#include "interpreter.h"
#include "sparse.h"
#include "translate.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <cstring>
#include <map>

namespace peal {

// From torch 2.7 on all options have asyncOp; earlier versions have it in some or none, and peal_torch tells the backend instead
// (see Inline). A call without either counts as asynchronous.
template <typename Opts> static auto caller_waits(const Opts &opts, int) -> decltype(opts.asyncOp)
{
    return !opts.asyncOp || Inline::here();
}
template <typename Opts> static bool caller_waits(const Opts &, long)
{
    return Inline::here();
}

thread_local int Inline::depth = 0;

Group::Group(c10::intrusive_ptr<Comm> comm, c10::intrusive_ptr<GroupOptions> options)
    : Base(comm->rank(), static_cast<int>(peal_comm_size(comm->get()))), comm_(std::move(comm)),
      options_(options ? std::move(options) : c10::make_intrusive<GroupOptions>()), queue_(Queue::make(comm_))
{
}

void Group::join()
{
    messages_ = Messages::make(comm_->again());
}

Messages &Group::messages()
{
    std::lock_guard<std::mutex> lock(messages_mutex_);
    if (!messages_)
        messages_ = Messages::make((maker_ ? maker_ : comm_)->twin());
    return *messages_;
}

Group::~Group()
{
    WithoutInterpreter released; // the queue's thread or a message may need it
    queue_->drain(Milliseconds(0));
    if (messages_)
        messages_->close();
}

// Makes a synchronous call, or puts an asynchronous one into the queue.
template <typename Opts, typename Call>
WorkPtr Group::collective(const Kind &kind, const Opts &opts, Tensors outputs, Call call)
{
    sequence_++;
    auto run = [comm = comm_, timeout = opts.timeout, call = std::move(call)] {
        comm->set_timeout(timeout);
        call(*comm);
    };
    const char *title = title_for_profiler(kind.title);
    if (!caller_waits(opts, 0)) {
        auto work = c10::make_intrusive<QueuedWork>(getRank(), kind.op, std::move(outputs), title, queue_,
                                                    std::move(run));
        queue_->push(work);
        return work;
    }
    auto done = c10::make_intrusive<DoneWork>(getRank(), kind.op, std::move(outputs), title);
    in_turn(run);
    done->end();
    return done;
}

template <typename Call> void Group::in_turn(const Call &call)
{
    if (queue_->run_alone(call))
        return;
    auto work = c10::make_intrusive<QueuedWork>(getRank(), OpType::UNKNOWN, Tensors(), nullptr, queue_, call);
    queue_->push(work);
    work->wait(kNoTimeout);
}

WorkPtr Group::broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts)
{
    Tensor tensor = only(tensors, "broadcast");
    uint32_t root = static_cast<uint32_t>(opts.rootRank);
    bool is_root = getRank() == static_cast<int>(root);
    if (!is_root)
        check_output(tensor, "broadcast");
    return collective({OpType::BROADCAST, "peal:broadcast"}, opts, {tensor}, [=](Comm &comm) {
        Tensor dense = tensor.contiguous();
        comm.check(peal_broadcast(comm.get(), dense.data_ptr(), bytes_of(dense), PEAL_U8, root), "broadcast");
        if (!is_root)
            write_back(dense, tensor);
    });
}

WorkPtr Group::allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    if (tensors.size() == 1 && tensors[0].is_sparse())
        return allreduce_sparse(tensors, opts);
    Tensor tensor = only(tensors, "allreduce");
    check_output(tensor, "allreduce");
    Reduction r = reduction(tensor, opts.reduceOp, "allreduce");
    return collective({OpType::ALLREDUCE, "peal:all_reduce"}, opts, {tensor}, [=](Comm &comm) {
        Tensor dense = tensor.contiguous();
        comm.check(peal_allreduce(comm.get(), dense.data_ptr(), dense.data_ptr(), count_of(dense), r.dtype, r.op),
                     "allreduce");
        write_back(dense, tensor);
    });
}

WorkPtr Group::allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    TORCH_CHECK(tensors.size() == 1, "peal allreduce_sparse: expected one tensor, not ", tensors.size());
    TORCH_CHECK(opts.reduceOp.op_ == c10d::ReduceOp::SUM, "peal allreduce: sparse tensors can only be summed");
    Tensor tensor = tensors[0];
    check_sparse(tensor, "allreduce");
    return collective({OpType::ALLREDUCE, "peal:sparse_all_reduce"}, opts, {tensor}, [=](Comm &comm) {
        Tensor sum = sum_sparse(comm, tensor);
        at::NoGradGuard unrecorded;
        Tensor(tensor).copy_(sum);
    });
}

// Small tensors are joined into one call; for large ones the copies would cost more than calls of their own.
WorkPtr Group::allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts)
{
    static const int64_t ALONE_BYTES = 64 << 10;
    TORCH_CHECK(!tensors.empty(), "peal allreduce_coalesced: no tensors");
    for (const Tensor &tensor : tensors) {
        check_same(tensor, tensors[0], "allreduce_coalesced");
        check_output(tensor, "allreduce_coalesced");
    }
    Reduction r = reduction(tensors[0], opts.reduceOp, "allreduce_coalesced");
    uint64_t element = static_cast<uint64_t>(tensors[0].element_size());
    Tensors large, small;
    for (const Tensor &tensor : tensors)
        (static_cast<int64_t>(tensor.nbytes()) >= ALONE_BYTES ? large : small).push_back(tensor);
    return collective({OpType::ALLREDUCE_COALESCED, "peal:all_reduce_coalesced"}, opts, tensors, [=](Comm &comm) {
        auto sum = [&](const Tensor &flat, uint64_t count) {
            comm.check(peal_allreduce(comm.get(), flat.data_ptr(), flat.data_ptr(), count, r.dtype, r.op),
                         "allreduce_coalesced");
        };
        for (const Tensor &tensor : large) {
            Tensor dense = tensor.contiguous();
            sum(dense, count_of(dense));
            write_back(dense, tensor);
        }
        Tensor flat = joined(small);
        sum(flat, bytes_of(flat) / element);
        spread(flat, small);
    });
}

WorkPtr Group::reduce(Tensors &tensors, const c10d::ReduceOptions &opts)
{
    Tensor tensor = only(tensors, "reduce");
    Reduction r = reduction(tensor, opts.reduceOp, "reduce");
    uint32_t root = static_cast<uint32_t>(opts.rootRank);
    bool is_root = getRank() == static_cast<int>(root);
    if (is_root)
        check_output(tensor, "reduce");
    return collective({OpType::REDUCE, "peal:reduce"}, opts, {tensor}, [=](Comm &comm) {
        Tensor dense = tensor.contiguous();
        comm.check(peal_reduce(comm.get(), dense.data_ptr(), is_root ? dense.data_ptr() : nullptr,
                                 count_of(dense), r.dtype, r.op, root),
                     "reduce");
        if (is_root)
            write_back(dense, tensor);
    });
}

WorkPtr Group::allgather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts)
{
    Tensor input = only(inputs, "allgather");
    TORCH_CHECK(outputs.size() == 1 && static_cast<int>(outputs[0].size()) == getSize(),
                "peal allgather: expected one list of ", getSize(), " tensors");
    Tensors list = outputs[0];
    bool even = std::all_of(list.begin(), list.end(), [&](const Tensor &t) { return t.numel() == list[0].numel(); });
    check_list({list[static_cast<size_t>(getRank())]}, input, "allgather");
    for (const Tensor &tensor : list) {
        check_same(tensor, input, "allgather");
        check_output(tensor, "allgather");
    }
    return collective({OpType::ALLGATHER, "peal:all_gather"}, opts, list, [=](Comm &comm) {
        Tensor send = input.contiguous();
        if (!even || is_large(bytes_of(send))) {
            Places to = places_of(list, 1, Use::OUTPUT);
            comm.check(peal_allgather_v(comm.get(), send.data_ptr(), to.first, to.counts.data(),
                                          to.offsets.data(), PEAL_U8),
                         "allgather");
            return write_back(to, list);
        }
        Tensor flat = room_for(list);
        comm.check(peal_allgather(comm.get(), send.data_ptr(), flat.data_ptr(), bytes_of(send), PEAL_U8),
                     "allgather");
        spread(flat, list);
    });
}

WorkPtr Group::_allgather_base(Tensor &output, Tensor &input, const c10d::AllgatherOptions &opts)
{
    check_same(output, input, "_allgather_base");
    check_output(output, "_allgather_base");
    TORCH_CHECK(output.numel() == input.numel() * getSize(), "peal _allgather_base: the output must have ",
                getSize(), " times the input's elements");
    Tensor out = output, in = input;
    return collective({OpType::_ALLGATHER_BASE, "peal:_all_gather_base"}, opts, {out}, [=](Comm &comm) {
        Tensor send = in.contiguous(), dense = room_of(out);
        comm.check(peal_allgather(comm.get(), send.data_ptr(), dense.data_ptr(), bytes_of(send), PEAL_U8),
                     "_allgather_base");
        write_back(dense, out);
    });
}

WorkPtr Group::allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
                                   const c10d::AllgatherOptions &opts)
{
    TORCH_CHECK(static_cast<int>(outputs.size()) == getSize(), "peal allgather_coalesced: expected ",
                getSize(), " lists of tensors");
    for (const Tensors &list : outputs)
        TORCH_CHECK(list.size() == inputs.size(),
                    "peal allgather_coalesced: every list must have as many tensors as the input");
    WorkPtr last = c10::make_intrusive<DoneWork>(getRank(), OpType::ALLGATHER_COALESCED, Tensors{});
    for (size_t i = 0; i < inputs.size(); i++) {
        std::vector<Tensors> one(1);
        for (Tensors &list : outputs)
            one[0].push_back(list[i]);
        Tensors input{inputs[i]};
        last = allgather(one, input, opts);
    }
    return last;
}

WorkPtr Group::gather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::GatherOptions &opts)
{
    Tensor input = only(inputs, "gather");
    uint32_t root = static_cast<uint32_t>(opts.rootRank);
    bool is_root = getRank() == static_cast<int>(root);
    Tensors list;
    if (is_root) {
        TORCH_CHECK(outputs.size() == 1 && static_cast<int>(outputs[0].size()) == getSize(),
                    "peal gather: expected one list of ", getSize(), " tensors on the root");
        list = outputs[0];
        check_outputs(list, input, "gather");
    } else {
        TORCH_CHECK(outputs.empty(), "peal gather: only the root has outputs");
    }
    size_t size = static_cast<size_t>(getSize());
    return collective({OpType::GATHER, "peal:gather"}, opts, list, [=](Comm &comm) {
        Tensor send = input.contiguous();
        if (is_large(bytes_of(send))) {
            Places to = is_root ? places_of(list, 1, Use::OUTPUT) : Places();
            std::vector<uint64_t> counts(size, bytes_of(send));
            comm.check(peal_gather_v(comm.get(), send.data_ptr(), to.first, counts.data(),
                                       is_root ? to.offsets.data() : nullptr, PEAL_U8, root),
                         "gather");
            return write_back(to, list);
        }
        Tensor flat = is_root ? room_for(list) : Tensor();
        comm.check(peal_gather(comm.get(), send.data_ptr(), is_root ? flat.data_ptr() : nullptr, bytes_of(send),
                                 PEAL_U8, root),
                     "gather");
        if (is_root)
            spread(flat, list);
    });
}

WorkPtr Group::scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ScatterOptions &opts)
{
    Tensor output = only(outputs, "scatter");
    check_output(output, "scatter");
    uint32_t root = static_cast<uint32_t>(opts.rootRank);
    bool is_root = getRank() == static_cast<int>(root);
    Tensors list;
    if (is_root) {
        TORCH_CHECK(inputs.size() == 1 && static_cast<int>(inputs[0].size()) == getSize(),
                    "peal scatter: expected one list of ", getSize(), " tensors on the root");
        list = inputs[0];
        check_list(list, output, "scatter");
    } else {
        TORCH_CHECK(inputs.empty(), "peal scatter: only the root has inputs");
    }
    size_t size = static_cast<size_t>(getSize());
    return collective({OpType::SCATTER, "peal:scatter"}, opts, {output}, [=](Comm &comm) {
        Tensor dense = room_of(output);
        if (is_large(bytes_of(dense))) {
            Places from = is_root ? places_of(list, 1, Use::INPUT) : Places();
            std::vector<uint64_t> counts(size, bytes_of(dense));
            comm.check(peal_scatter_v(comm.get(), from.first, dense.data_ptr(), counts.data(),
                                        is_root ? from.offsets.data() : nullptr, PEAL_U8, root),
                         "scatter");
            return write_back(dense, output);
        }
        Tensor flat = is_root ? joined(list) : Tensor();
        comm.check(peal_scatter(comm.get(), is_root ? flat.data_ptr() : nullptr, dense.data_ptr(),
                                  bytes_of(dense), PEAL_U8, root),
                     "scatter");
        write_back(dense, output);
    });
}

WorkPtr Group::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                              const c10d::ReduceScatterOptions &opts)
{
    Tensor output = only(outputs, "reduce_scatter");
    check_output(output, "reduce_scatter");
    TORCH_CHECK(inputs.size() == 1 && static_cast<int>(inputs[0].size()) == getSize(),
                "peal reduce_scatter: expected one list of ", getSize(), " tensors");
    Tensors list = inputs[0];
    for (const Tensor &tensor : list)
        check_same(tensor, output, "reduce_scatter");
    Reduction r = reduction(output, opts.reduceOp, "reduce_scatter");
    std::vector<uint64_t> counts;
    for (const Tensor &tensor : list)
        counts.push_back(count_of(tensor));
    TORCH_CHECK(counts[static_cast<size_t>(getRank())] == count_of(output),
                "peal reduce_scatter: the output must be as large as this rank's input");
    bool even = std::all_of(counts.begin(), counts.end(), [&](uint64_t c) { return c == counts[0]; });
    bool apart = !even || is_large(bytes_of(output));
    return collective({OpType::REDUCE_SCATTER, "peal:reduce_scatter"}, opts, {output}, [=](Comm &comm) {
        Tensor dense = room_of(output);
        if (apart) {
            Places from = places_of(list, static_cast<uint64_t>(dense.element_size()), Use::INPUT);
            comm.check(peal_reduce_scatter_v(comm.get(), from.first, dense.data_ptr(), from.counts.data(),
                                               from.offsets.data(), r.dtype, r.op),
                         "reduce_scatter");
        } else {
            Tensor flat = joined(list);
            comm.check(peal_reduce_scatter(comm.get(), flat.data_ptr(), dense.data_ptr(), counts[0], r.dtype, r.op),
                         "reduce_scatter");
        }
        write_back(dense, output);
    });
}

WorkPtr Group::_reduce_scatter_base(Tensor &output, Tensor &input, const c10d::ReduceScatterOptions &opts)
{
    check_same(output, input, "_reduce_scatter_base");
    check_output(output, "_reduce_scatter_base");
    TORCH_CHECK(input.numel() == output.numel() * getSize(), "peal _reduce_scatter_base: the input must have ",
                getSize(), " times the output's elements");
    Reduction r = reduction(output, opts.reduceOp, "_reduce_scatter_base");
    Tensor out = output, in = input;
    return collective({OpType::_REDUCE_SCATTER_BASE, "peal:_reduce_scatter_base"}, opts, {out}, [=](Comm &comm) {
        Tensor send = in.contiguous(), dense = room_of(out);
        comm.check(peal_reduce_scatter(comm.get(), send.data_ptr(), dense.data_ptr(), count_of(dense), r.dtype,
                                         r.op),
                     "_reduce_scatter_base");
        write_back(dense, out);
    });
}

WorkPtr Group::alltoall_base(Tensor &output, Tensor &input, std::vector<int64_t> &output_splits,
                             std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &opts)
{
    check_same(output, input, "alltoall_base");
    TORCH_CHECK(output.is_contiguous() && input.is_contiguous(),
                "peal alltoall_base: tensors must be contiguous");
    std::vector<uint64_t> sends = split_bytes(input, input_splits, getSize(), "input");
    std::vector<uint64_t> recvs = split_bytes(output, output_splits, getSize(), "output");
    bool even = input_splits.empty() && output_splits.empty();
    Tensor out = output, in = input;
    return collective({OpType::ALLTOALL_BASE, "peal:all_to_all"}, opts, {out}, [=](Comm &comm) {
        peal_blocks from{sends.data(), nullptr}, to{recvs.data(), nullptr};
        comm.check(even ? peal_all_to_all(comm.get(), in.data_ptr(), out.data_ptr(), sends[0], PEAL_U8)
                          : peal_all_to_all_v(comm.get(), in.data_ptr(), &from, out.data_ptr(), &to, PEAL_U8),
                     "alltoall_base");
    });
}

WorkPtr Group::alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts)
{
    size_t size = static_cast<size_t>(getSize());
    TORCH_CHECK(outputs.size() == size && inputs.size() == size, "peal alltoall: expected ", getSize(),
                " tensors each way");
    for (size_t i = 0; i < size; i++) {
        check_same(inputs[i], inputs[0], "alltoall");
        check_same(outputs[i], inputs[0], "alltoall");
        check_output(outputs[i], "alltoall");
    }
    Tensors in = inputs, out = outputs;
    return collective({OpType::ALLTOALL, "peal:all_to_all"}, opts, out, [=](Comm &comm) {
        Places from = places_of(in, 1, Use::INPUT), to = places_of(out, 1, Use::OUTPUT);
        peal_blocks sends{from.counts.data(), from.offsets.data()}, recvs{to.counts.data(), to.offsets.data()};
        comm.check(peal_all_to_all_v(comm.get(), from.first, &sends, to.first, &recvs, PEAL_U8), "alltoall");
        write_back(to, out);
    });
}

WorkPtr Group::barrier(const c10d::BarrierOptions &opts)
{
    return collective({OpType::BARRIER, "peal:barrier"}, opts, {}, [=](Comm &comm) { comm.check(peal_barrier(comm.get()), "barrier"); });
}

void Group::monitoredBarrier(const c10d::BarrierOptions &opts, bool wait_all_ranks)
{
    auto timeout = opts.timeout == c10d::kUnsetTimeout ? comm_->default_timeout() : opts.timeout;
    messages().monitored_barrier(timeout, wait_all_ranks);
}

WorkPtr Group::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                               const c10d::AllgatherOptions &opts)
{
    TORCH_CHECK(outputs.size() == inputs.size(),
                "peal allgather_into_tensor_coalesced: expected as many outputs as inputs");
    WorkPtr last = c10::make_intrusive<DoneWork>(getRank(), OpType::_ALLGATHER_BASE, Tensors{});
    for (size_t i = 0; i < inputs.size(); i++)
        last = _allgather_base(outputs[i], inputs[i], opts);
    return last;
}

WorkPtr Group::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                               const c10d::ReduceScatterOptions &opts)
{
    TORCH_CHECK(outputs.size() == inputs.size(),
                "peal reduce_scatter_tensor_coalesced: expected as many outputs as inputs");
    WorkPtr last = c10::make_intrusive<DoneWork>(getRank(), OpType::_REDUCE_SCATTER_BASE, Tensors{});
    for (size_t i = 0; i < inputs.size(); i++)
        last = _reduce_scatter_base(outputs[i], inputs[i], opts);
    return last;
}

WorkPtr Group::send(Tensors &tensors, int to, int tag)
{
    return messages().send(only(tensors, "send"), to, tag);
}

WorkPtr Group::recv(Tensors &tensors, int from, int tag)
{
    return messages().receive(only(tensors, "recv"), static_cast<uint32_t>(from), tag, OpType::RECV);
}

WorkPtr Group::recvAnysource(Tensors &tensors, int tag)
{
    return messages().receive(only(tensors, "recv"), PEAL_ANY_SOURCE, tag, OpType::RECVANYSOURCE);
}

static void release_comm(void *context)
{
    delete static_cast<c10::intrusive_ptr<Comm> *>(context);
}

static const void *storage_of(const Tensor &tensor)
{
    return static_cast<const char *>(tensor.data_ptr()) - tensor.storage_offset() * tensor.element_size();
}

void Group::make_symmetric(const Tensor &tensor)
{
    check_cpu(tensor, "symmetric");
    in_turn([tensor, comm = comm_] {
        void *memory = nullptr;
        size_t bytes = tensor.storage().nbytes();
        comm->check(peal_symmetric_alloc(comm->get(), bytes, &memory), "symmetric");
        if (bytes > 0)
            std::memcpy(memory, storage_of(tensor), bytes);
        tensor.storage().set_data_ptr(
            at::DataPtr(memory, new c10::intrusive_ptr<Comm>(comm), release_comm, tensor.device()));
    });
}

c10::intrusive_ptr<Comm> Group::split_off(bool member, Milliseconds timeout)
{
    auto made = std::make_shared<c10::intrusive_ptr<Comm>>(); // shared, because the call goes on if a signal ends the wait
    in_turn([made, member, timeout, comm = comm_] { *made = comm->split(member, timeout); });
    return *made;
}

void Group::setTimeout(Milliseconds timeout)
{
    comm_->set_default_timeout(timeout);
    if (maker_)
        maker_->set_default_timeout(timeout);
    std::lock_guard<std::mutex> lock(messages_mutex_);
    if (messages_)
        messages_->set_default_timeout(timeout);
}

uint64_t Group::simulated_ps()
{
    return peal_comm_simulated_ps(comm_->get());
}

#if defined(C10D_BACKEND_HAS_RECONFIGURE)
c10::intrusive_ptr<Base> Group::split(const StorePtr &store, const std::vector<int> &ranks,
                                      const c10::intrusive_ptr<Base::Options> &opts)
{
    auto own = std::find(ranks.begin(), ranks.end(), getRank());
    if (own == ranks.end())
        return {};
    Joining joining;
    joining.store = c10::make_intrusive<c10d::PrefixStore>(opts->group_name, store);
    joining.rank = static_cast<int>(own - ranks.begin());
    joining.size = static_cast<int>(ranks.size());
    joining.timeout = opts->timeout;
    for (int rank : ranks)
        joining.global_ranks.push_back(comm_->global_rank(rank));
    joining.options = c10::dynamic_intrusive_pointer_cast<GroupOptions>(opts);
    return make(joining);
}
#endif

// ---- groups made from this one ----

// By global ranks. At most one entry: torch does not allow new_group in several threads at once.
static std::map<std::vector<int64_t>, c10::intrusive_ptr<Comm>> prepared;
static std::mutex prepared_mutex;

void Group::prepare(const std::vector<int64_t> &ranks)
{
    bool member = std::find(ranks.begin(), ranks.end(), getRank()) != ranks.end();
    c10::intrusive_ptr<Comm> made;
    {
        Comm::Lock lock(*maker_);
        made = maker_->split(member, Milliseconds(0));
    }
    std::lock_guard<std::mutex> lock(prepared_mutex);
    prepared.clear();
    if (made)
        prepared.emplace(ranks, std::move(made));
}

void Group::forget_prepared()
{
    std::lock_guard<std::mutex> lock(prepared_mutex);
    prepared.clear();
}

static c10::intrusive_ptr<Comm> take_prepared(const Joining &joining)
{
    std::lock_guard<std::mutex> lock(prepared_mutex);
    auto found = prepared.find(joining.global_ranks);
    if (found == prepared.end())
        return {};
    auto comm = std::move(found->second);
    prepared.erase(found);
    comm->become(joining);
    return comm;
}

c10::intrusive_ptr<Group> Group::make(const Joining &joining)
{
    auto comm = take_prepared(joining);
    auto group = c10::make_intrusive<Group>(comm ? comm : Comm::open(joining), joining.options);
    if (!comm)
        group->maker_ = group->comm_->maker();
    return group;
}

} // namespace peal
