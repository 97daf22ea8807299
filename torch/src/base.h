// SPDX-License-Identifier: Apache-2.0
// The backend "peal" of torch.distributed: translation between torch's calls and peal.h, and nothing else.
//
//   base.h        this file: torch's two kinds of backend, and words that all files use
//   translate.h   types, operations, refusals, lists of tensors
//   comm.h        a communicator with its lock; how ranks find each other
//   queue.h       calls in order, and the thread that makes those which nobody waits for
//   work.h        what torch waits for            messages.h     send and recv
//   turns.h       how that thread shares its core
//   sparse.h      sums of sparse tensors          options.h      what new_group may say about a group
//   group.h       the backend: start reading here
//   interpreter.h Python's interpreter: waiting without it, signals, its end
//   free.h        a backend that does nothing     module.cpp     what Python sees
//
// One source for torch 1.13, where a backend is a c10d::ProcessGroup, and for 2.x, where it is a c10d::Backend.
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

// A failure of the group, not of the arguments: torch's own class for it, where there is one.
#if TORCH_VERSION_MAJOR >= 2
#define PEAL_CHECK_GROUP(...) TORCH_CHECK_WITH(DistBackendError, __VA_ARGS__)
#else
#define PEAL_CHECK_GROUP(...) TORCH_CHECK(__VA_ARGS__)
#endif
