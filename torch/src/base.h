// SPDX-License-Identifier: Apache-2.0
// The backend "peal" of torch.distributed. It translates torch's calls into those of peal.h, and does nothing else.
//
//   group.h        the backend: start reading here
//   queue.h        the calls of a group, in order, and the thread that makes asynchronous ones
//   turns.h        how that thread shares its core with the program
//   work.h         the Work objects of collectives
//   messages.h     send and recv
//   comm.h         a communicator with its lock and time-outs, and how ranks find each other
//   translate.h    types, operations, lists of tensors, argument checks
//   sparse.h       sums of sparse tensors
//   options.h      pg_options
//   interpreter.h  releasing Python's interpreter, signals, the end of the program
//   free.h         a backend that does nothing, for measurements
//   module.cpp     the Python module
//
// The same source is built for torch 1.13, where a backend is a c10d::ProcessGroup, and for 2.x, where it is a c10d::Backend.
#pragma once

#include <peal/peal.h>

#include <ATen/ATen.h>
#include <torch/version.h>

#include <chrono>
#include <vector>

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

namespace peal {

#if TORCH_VERSION_MAJOR >= 2
using Base = c10d::Backend;
#else
using Base = c10d::ProcessGroup;
#endif

using at::Tensor;
using c10d::OpType;
using c10d::Work;
using Tensors = std::vector<Tensor>;
using WorkPtr = c10::intrusive_ptr<Work>;
using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

} // namespace peal

// For failures of the group rather than of the arguments: raises DistBackendError where torch has it, else RuntimeError.
#if TORCH_VERSION_MAJOR >= 2
#define PEAL_CHECK_GROUP(...) TORCH_CHECK_WITH(DistBackendError, __VA_ARGS__)
#else
#define PEAL_CHECK_GROUP(...) TORCH_CHECK(__VA_ARGS__)
#endif
