// SPDX-License-Identifier: Apache-2.0
// Tile kernels, recorded: the types and intrinsics that such kernels use, which report what they would
// do instead of doing it. Written from the published descriptions of the instructions; which pipe each
// runs on is not said here but in a table (`peal verify --pipes`).
//
// Line numbers come from default arguments, which are evaluated where the intrinsic is called.
#pragma once

#include "pto/event.hpp"
#include "pto/moves.hpp"
#include "pto/sync.hpp"
#include "pto/tiles.hpp"

// Kernels call these without their namespace.
using pto::TLOAD_IMPL;
using pto::TSTORE_IMPL;
