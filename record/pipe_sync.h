// SPDX-License-Identifier: Apache-2.0
// S waits for what the core stores: by MTE3, and by FIX if it is a matrix unit.
#pragma once

#include "pto/pto-inst.hpp"

static inline void pipe_sync(REC_AT) {
    set_flag(PIPE_MTE3, PIPE_S, EVENT_ID7, rec_line, rec_file);
    wait_flag(PIPE_MTE3, PIPE_S, EVENT_ID7, rec_line, rec_file);
    set_flag(PIPE_FIX, PIPE_S, EVENT_ID7, rec_line, rec_file);
    wait_flag(PIPE_FIX, PIPE_S, EVENT_ID7, rec_line, rec_file);
}
