// SPDX-License-Identifier: Apache-2.0
// What the recording headers and the runtime share: events and spans.
#pragma once

#include "peal/events.h"

#include <cstddef>
#include <cstdint>

// The numbers of enum peal_dtype.
enum rec_dtype : uint8_t {
    REC_F16, REC_BF16, REC_F32, REC_F64, REC_I8, REC_U8, REC_I32, REC_I64, REC_I16, REC_U16, REC_U32, REC_U64
};

inline uint32_t rec_size(uint8_t dtype) {
    constexpr uint8_t sizes[] = {2, 2, 4, 8, 1, 1, 4, 8, 2, 2, 4, 8};
    return sizes[dtype];
}

inline rec_span rec_flat(uint64_t address, uint64_t count, uint8_t dtype) {
    rec_span s = {};
    s.address = address;
    s.count = count;
    s.rows = 1;
    s.dtype = dtype;
    return s;
}

inline rec_span rec_number(double value, uint8_t dtype) {
    rec_span s = rec_flat(0, 1, dtype);
    s.constant = 1;
    s.value = value;
    return s;
}

// runtime.cpp
void rec_put(rec_event e, const char *op, const char *text, const char *file, const rec_span *spans);
[[noreturn]] void rec_refuse(const char *op, const char *why, const char *file, int line);
// A load or store by S, before it happens.
void rec_scalar(uint64_t address, uint32_t bytes, bool writes, int line, const char *file);
bool rec_test(rec_event e, const char *op, const char *file, const rec_span *cell);
extern int32_t rec_block, rec_blocks;
// Where the last event was recorded.
extern int rec_last_line;
extern const char *rec_last_file;
