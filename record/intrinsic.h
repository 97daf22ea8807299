// SPDX-License-Identifier: Apache-2.0
// Which of the blocks of a launch this is.
#pragma once

#include "peal/record.hpp"

static inline int32_t get_block_idx(const int64_t *) { return rec_block; }
static inline int32_t get_block_num(const int64_t *) { return rec_blocks; }
static inline int32_t get_sub_block_id(const int64_t *) { return 0; }

// Memory of the engine for asynchronous moves: only its address is passed on.
enum DmaWorkspaceKind { DMA_WORKSPACE_SDMA, DMA_WORKSPACE_URMA };
static inline uint8_t *get_dma_workspace(const int64_t *, DmaWorkspaceKind) { return reinterpret_cast<uint8_t *>(uintptr_t{64}); }
