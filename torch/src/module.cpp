// SPDX-License-Identifier: Apache-2.0
// The Python module peal_torch._C: functions that make groups, and those that torch's interface lacks. Users call
// peal_torch/__init__.py.
#include "free.h"
#include "group.h"
#include "interpreter.h"

#include <peal/simulate.h>
#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;

namespace peal {

using BasePtr = c10::intrusive_ptr<Base>;
// Whether torch tells the backend for every call if it is synchronous: see Inline.
template <typename Opts, typename = void> struct SaysAsync : std::false_type {};
template <typename Opts> struct SaysAsync<Opts, std::void_t<decltype(Opts::asyncOp)>> : std::true_type {};
static const bool HAS_ASYNC_FLAGS = SaysAsync<c10d::AllreduceOptions>::value;

using Seconds = std::chrono::duration<float>;

static Milliseconds milliseconds(Seconds timeout)
{
    return std::chrono::duration_cast<Milliseconds>(timeout);
}

// The groups of all ranks in one process, where every rank is a thread that joins and uses its own.
// As many ranks as a machine, a file or the name of a built-in one, is made for.
static uint32_t machine_ranks(const std::string &machine)
{
    uint32_t ranks = 0;
    TORCH_CHECK(peal_simulate_ranks(machine.c_str(), &ranks) == PEAL_OK, "peal: '", machine,
                "' is neither a machine file nor the name of a built-in machine");
    return ranks;
}

static std::vector<BasePtr> create_threads(int size, Seconds timeout)
{
    std::vector<peal_comm *> comms(static_cast<size_t>(std::max(size, 1)));
    TORCH_CHECK(peal_comm_open_threads(static_cast<uint32_t>(size), comms.data()) == PEAL_OK, "peal: ",
                peal_comm_error(nullptr));
    std::vector<BasePtr> out;
    for (peal_comm *comm : comms) {
        auto owned = c10::make_intrusive<Comm>(comm, milliseconds(timeout));
        out.push_back(c10::make_intrusive<Group>(std::move(owned)));
    }
    return out;
}

static Group &own(const BasePtr &group)
{
    auto *found = dynamic_cast<Group *>(group.get());
    TORCH_CHECK(found, "not a group of the backend 'peal'");
    return *found;
}

// A new group of the ranks that pass `member`, in the same order; none on the others. Collective.
static BasePtr split(const BasePtr &group, bool member, Seconds timeout)
{
    auto comm = own(group).split_off(member, milliseconds(timeout));
    if (!comm)
        return {};
    return c10::make_intrusive<Group>(std::move(comm));
}

// Called before and after every synchronous call, so they are plain C functions, which take a third of the time of pybind11's.
static PyObject *begin_inline(PyObject *, PyObject *)
{
    Inline::begin();
    Py_RETURN_NONE;
}

static PyObject *end_inline(PyObject *, PyObject *)
{
    Inline::end();
    Py_RETURN_NONE;
}

static PyMethodDef inline_functions[] = {
    {"begin_inline", begin_inline, METH_NOARGS, nullptr},
    {"end_inline", end_inline, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

} // namespace peal

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    using namespace peal;
    using released = py::call_guard<py::gil_scoped_release>;
    py::module_::import("torch.distributed"); // registers the type of groups
    py::class_<GroupOptions, c10::intrusive_ptr<GroupOptions>, Base::Options>(m, "Options")
        .def(py::init<std::map<std::string, std::string>>(), py::arg("algorithms"))
        .def_readwrite("algorithms", &GroupOptions::algorithms);
    m.def(
        "create",
        [](StorePtr store, int rank, int size, Seconds timeout, std::vector<int64_t> global_ranks,
           c10::intrusive_ptr<GroupOptions> options) {
            return BasePtr(Group::make({std::move(store), rank, size, milliseconds(timeout), std::move(global_ranks), std::move(options)}));
        },
        released());
    m.def("prepare",
          [](const BasePtr &group, const std::vector<int64_t> &ranks) { own(group).prepare(ranks); }, released());
    m.def("forget_prepared", &Group::forget_prepared, released());
    if (PyModule_AddFunctions(m.ptr(), inline_functions) != 0)
        throw py::error_already_set();
    m.def("at_exit", &at_exit::run, released());
    m.attr("has_async_flags") = HAS_ASYNC_FLAGS;
    m.attr("headers_version") = PEAL_VERSION_NUMBER;
    m.def("library_version", &peal_version);
    m.def("library_version_text", &peal_version_text);
    m.def("machine_ranks", &machine_ranks);
    m.def("create_threads", &create_threads, released());
    m.def("join", [](const BasePtr &group) { own(group).join(); }, released());
    m.def("split", &split, released());
    m.def("create_free", [](int rank, int size) -> BasePtr { return c10::make_intrusive<FreeGroup>(rank, size); });
    m.def("simulated_ps", [](const BasePtr &group) { return own(group).simulated_ps(); }, released());
    m.def("symmetric", [](const BasePtr &group, const at::Tensor &tensor) { own(group).make_symmetric(tensor); },
          released());
}
