// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pto/pto-inst.hpp"

namespace AscendC {
using pto::GlobalTensor;
}
