// SPDX-License-Identifier: Apache-2.0
// What a kernel knows of its ranks.
#pragma once

#include <cstdint>

static constexpr uint32_t COMM_MAX_RANK_NUM = 64;

struct CommContext {
    uint64_t workSpace;
    uint64_t workSpaceSize;
    uint32_t rankId;
    uint32_t rankNum;
    uint64_t winSize;
    uint64_t windowsIn[COMM_MAX_RANK_NUM];
    uint64_t windowsOut[COMM_MAX_RANK_NUM];
};
using CommDeviceContext = CommContext;
using HcclDeviceContext = CommContext;
