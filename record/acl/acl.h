// SPDX-License-Identifier: Apache-2.0
// Names of the host's libraries that files with kernels mention. None of it is there to be called in a recording.
#pragma once

using aclrtStream = void *;
using aclError = int;
using HcclComm = void *;
enum aclDataType { ACL_FLOAT, ACL_FLOAT16, ACL_INT8, ACL_INT32, ACL_UINT8, ACL_INT16, ACL_UINT16, ACL_UINT32, ACL_INT64 };
enum aclFormat { ACL_FORMAT_UNDEFINED = -1, ACL_FORMAT_NCHW, ACL_FORMAT_NHWC, ACL_FORMAT_ND };
enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE
};
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY };
enum HcclResult { HCCL_SUCCESS };
enum HcclDataType { HCCL_DATA_TYPE_INT8, HCCL_DATA_TYPE_INT16, HCCL_DATA_TYPE_INT32, HCCL_DATA_TYPE_FP16, HCCL_DATA_TYPE_FP32 };
enum HcclReduceOp { HCCL_REDUCE_SUM, HCCL_REDUCE_PROD, HCCL_REDUCE_MAX, HCCL_REDUCE_MIN };
constexpr int ACL_SUCCESS = 0, ACL_ERROR_NONE = 0, HCCL_ROOT_INFO_BYTES = 4108;
struct HcclRootInfo {
    char internal[HCCL_ROOT_INFO_BYTES];
};

extern "C" {
aclError aclInit(...), aclFinalize(...), aclrtSetDevice(...), aclrtResetDevice(...), aclrtGetDeviceCount(...);
aclError aclrtMalloc(...), aclrtMallocHost(...), aclrtFree(...), aclrtFreeHost(...), aclrtMemcpy(...), aclrtMemset(...);
aclError aclrtMemcpyAsync(...), aclrtMemsetAsync(...), aclrtCreateStream(...), aclrtDestroyStream(...);
aclError aclrtSynchronizeStream(...), aclrtSynchronizeDevice(...);
HcclResult HcclGetRootInfo(...), HcclCommInitRootInfo(...), HcclCommDestroy(...), HcclGetCommName(...), HcclBarrier(...);
}
namespace pto::comm::sdma {
struct SdmaWorkspaceManager {
    bool Init();
    void *GetWorkspaceAddr();
    void Finalize();
};
} // namespace pto::comm::sdma
