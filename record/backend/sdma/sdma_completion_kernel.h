// SPDX-License-Identifier: Apache-2.0
// Transfers by the engine beside the core, which a kernel's task waits for and the kernel does not.
#pragma once

#include "pto_async_kernel_api.h"

inline constexpr uint32_t SDMA_SCRATCH_ALIGNMENT = pto::comm::sdma::UB_ALIGN_SIZE;

template <typename D, typename S>
struct SdmaRequestDescriptor {
    D dst;
    S src;
    bool puts;
};
template <typename D, typename S, typename T>
inline SdmaRequestDescriptor<D, S> SdmaTget(const D &dst, const S &src, const T &, uint8_t *, uint32_t = 0) {
    return {dst, src, false};
}
template <typename D, typename S, typename T>
inline SdmaRequestDescriptor<D, S> SdmaTput(const D &dst, const S &src, const T &, uint8_t *, uint32_t = 0) {
    return {dst, src, true};
}
template <typename D, typename S>
inline bool send_request_entry(AsyncCtx &, SdmaRequestDescriptor<D, S> what, REC_AT) {
    pto::comm::AsyncSession session;
    if (what.puts) pto::comm::TPUT_ASYNC(what.dst, what.src, session, rec_line, rec_file);
    else pto::comm::TGET_ASYNC(what.dst, what.src, session, rec_line, rec_file);
    return true;
}
