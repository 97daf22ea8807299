// SPDX-License-Identifier: Apache-2.0
// Names of the host's library that files with kernels mention. None of it can be called in a recording.
#pragma once

using aclrtStream = void *;
using aclError = int;
