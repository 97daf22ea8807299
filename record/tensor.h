// SPDX-License-Identifier: Apache-2.0
// Tensor descriptors, as kernels read them.
#pragma once

#include <cstdint>

struct PTOBufferHandle {
    uint64_t addr;
    uint64_t size;
};

struct ChipTensor {
    PTOBufferHandle buffer;
    uint64_t start_offset; // in elements
    uint32_t ndims;
    uint32_t shapes[5];
    uint32_t strides[5];

    uint64_t numel() const {
        uint64_t n = 1;
        for (uint32_t i = 0; i < ndims; i++) n *= shapes[i];
        return n;
    }
    template <typename T>
    T *data_as() const {
        return reinterpret_cast<T *>(static_cast<uintptr_t>(buffer.addr));
    }
};
using Tensor = ChipTensor;
using ContinuousTensor = ChipTensor;

// Numbers among the arguments, by their bits.
template <typename T>
inline T from_u64(uint64_t bits) {
    T value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
template <typename T>
inline uint64_t to_u64(T value) {
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    return bits;
}
