/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a call. All of them follow from its seed, so that every rank knows every other
 * rank's input and offsets. */
#include "chaos.h"

#include <string.h>

const char *spec_name(const struct spec *spec)
{
    static const char *const kernels[] = {"kernel shift", "kernel forward",
                                          "kernel allreduce_ring"};
    return spec->kind < COLLECTIVES ? kind_name(spec->kind) : kernels[spec->kind - COLLECTIVES];
}

bool spec_is_v(const struct spec *spec)
{
    return spec->kind >= ALLGATHER_V && spec->kind <= ALL_TO_ALL_V;
}

bool spec_scatters(const struct spec *spec)
{
    return spec->kind == REDUCE_SCATTER || spec->kind == REDUCE_SCATTER_V ||
           spec->kind == SCATTER || spec->kind == SCATTER_V;
}

static bool has_root(const struct spec *spec)
{
    return spec->kind == REDUCE || spec->kind == BROADCAST || spec->kind == GATHER ||
           spec->kind == SCATTER || spec->kind == GATHER_V || spec->kind == SCATTER_V;
}

bool spec_reduces(const struct spec *spec)
{
    return kind_reduces(spec->kind) || spec->kind == KERNEL_FORWARD || spec->kind == KERNEL_BUILTIN;
}

static uint64_t draw_count(uint64_t *state, uint32_t size)
{
    switch (below(state, 24)) {
    case 0:
        return 0;
    case 1:
    case 2:
        return 1;
    case 3:
        return size - 1;
    case 4:
        return size + 1;
    case 5:
    case 6:
        return 200 + below(state, 4000);
    case 7:
        return 2049;
    case 8:
        return 1000 + below(state, 30000);
    case 9:
        return below(state, 4) ? 20000 : 65537 + below(state, 70000);
    default:
        return below(state, 300);
    }
}

void spec_make(struct spec *spec, uint32_t size, bool can_block, bool has_symmetric, uint64_t seed)
{
    uint64_t state = seed;
    *spec = (struct spec){.key = mix(seed, 1), .size = size};
    spec->nonblocking = !can_block || below(&state, 5) < 2;
    spec->kind = (enum kind)below(&state, spec->nonblocking ? KERNEL_SHIFT : KINDS);
    spec->dtype = (enum peal_dtype)below(&state, DTYPES);
    do
        spec->op = (enum peal_reduction)below(&state, REDUCTIONS);
    while (!value_takes(spec->dtype, spec->op));
    if (spec->op == PEAL_AVG && (spec->kind == SCAN || spec->kind == EXSCAN))
        spec->op = PEAL_SUM;
    spec->flavour = BITS;
    if (spec_reduces(spec))
        spec->flavour = below(&state, 3) ? EXACT : ROUGH;
    spec->root = below(&state, size);
    spec->in_place = below(&state, 3) == 0;
    bool symmetric = has_symmetric && below(&state, 2);
    spec->send = symmetric && below(&state, 8) ? SYMMETRIC : PRIVATE;
    spec->recv = symmetric && below(&state, 8) ? SYMMETRIC : PRIVATE;
    spec->count = draw_count(&state, size);
    if (!spec->nonblocking && spec->count < 3000 && below(&state, 4) == 0)
        spec->repeats = 1 + below(&state, 3);
    for (uint32_t r = 0; r < size; r++) {
        spec->counts[r] = spec->count;
        if (spec_is_v(spec))
            spec->counts[r] = below(&state, 4) == 0 ? 0 : below(&state, (uint32_t)spec->count + 1);
    }
    if (spec->kind == BROADCAST || spec->kind >= KERNEL_SHIFT)
        spec->in_place = spec->kind == BROADCAST;
    if (spec->kind == ALL_TO_ALL || spec->kind == ALL_TO_ALL_V || spec->kind == BARRIER)
        spec->in_place = false;
    if (spec->kind >= KERNEL_SHIFT) {
        spec->count = spec->count > 3000 ? 3000 : spec->count + (spec->count == 0);
        spec->send = spec->recv = PRIVATE;
    }
}

void spec_spoil(struct spec *spec, uint64_t seed)
{
    uint64_t state = seed;
    struct spec before = *spec;
    spec->send = spec->recv = PRIVATE;
    switch (below(&state, 5)) {
    case 0:
        if (spec->kind != BARRIER && !spec_is_v(spec)) {
            spec->count++;
            for (uint32_t r = 0; r < spec->size; r++)
                spec->counts[r] = spec->count;
            return;
        }
        break;
    case 1:
        if (spec_reduces(spec) && spec->op <= PEAL_MIN && spec->kind < KERNEL_SHIFT &&
            spec->count > 0) {
            spec->op = spec->op == PEAL_MIN ? PEAL_MAX : PEAL_MIN;
            return;
        }
        break;
    case 2:
        if (has_root(spec) && spec->size > 1) {
            spec->root = (spec->root + 1) % spec->size;
            return;
        }
        break;
    default:
        break;
    }
    do
        spec->kind = (enum kind)below(&state, SCAN);
    while (spec->kind == before.kind);
    spec->count = 1 + below(&state, 500);
    spec->in_place = spec->kind == BROADCAST;
    spec->flavour = spec_reduces(spec) ? EXACT : BITS;
    for (uint32_t r = 0; r < spec->size; r++)
        spec->counts[r] = spec->count;
}

uint64_t spec_block(const struct spec *spec, uint32_t from, uint32_t to)
{
    if (spec->kind == ALL_TO_ALL_V) {
        uint64_t key = mix(mix(spec->key, from), 100 + to);
        return key % 4 == 0 ? 0 : (key >> 8) % (spec->count + 1);
    }
    bool gathers = spec->kind == ALLGATHER_V || spec->kind == GATHER_V;
    return spec->counts[gathers ? from : to];
}

/* Does the rank's input or output have a block for each rank? */
static bool has_blocks(const struct spec *spec, uint32_t rank, bool output)
{
    bool root = rank == spec->root;
    switch (spec->kind) {
    case ALLGATHER:
    case ALLGATHER_V:
        return output;
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_V:
        return !output;
    case GATHER:
    case GATHER_V:
        return output && root;
    case SCATTER:
    case SCATTER_V:
        return !output && root;
    case ALL_TO_ALL:
    case ALL_TO_ALL_V:
        return true;
    default:
        return false;
    }
}

bool spec_offsets(const struct spec *spec, uint32_t rank, bool output,
                  uint64_t out[static MAX_RANKS])
{
    uint64_t at = 0, state = mix(spec->key, 1000 + 2 * rank + output);
    uint32_t order[MAX_RANKS];
    bool given = spec_is_v(spec) && has_blocks(spec, rank, output) && below(&state, 3) != 0;
    bool shuffled = given && below(&state, 2), gaps = given && below(&state, 2);
    /* Blocks that are only read may overlap. */
    bool overlaps = given && !output && !spec->in_place && below(&state, 4) == 0;
    for (uint32_t r = 0; r < spec->size; r++) {
        uint32_t swap = shuffled ? below(&state, r + 1) : r;
        order[r] = r;
        order[r] = order[swap];
        order[swap] = r;
    }
    for (uint32_t i = 0; i < spec->size; i++) {
        uint32_t r = order[i];
        uint64_t block = output ? spec_block(spec, r, rank) : spec_block(spec, rank, r);
        if (gaps)
            at += below(&state, 20);
        out[r] = at;
        at += overlaps ? block / 2 : block;
    }
    return given;
}

static uint64_t extent(const struct spec *spec, uint32_t rank, bool output)
{
    uint64_t offsets[MAX_RANKS], end = 0;
    (void)spec_offsets(spec, rank, output, offsets);
    for (uint32_t r = 0; r < spec->size; r++) {
        uint64_t block = output ? spec_block(spec, r, rank) : spec_block(spec, rank, r);
        end = offsets[r] + block > end ? offsets[r] + block : end;
    }
    return end;
}

uint64_t spec_sends(const struct spec *spec, uint32_t rank)
{
    if (has_blocks(spec, rank, false))
        return extent(spec, rank, false);
    switch (spec->kind) {
    case BARRIER:
    case SCATTER:
    case SCATTER_V:
        return 0;
    case ALLGATHER_V:
    case GATHER_V:
        return spec->counts[rank];
    default:
        return spec->count;
    }
}

uint64_t spec_takes(const struct spec *spec, uint32_t rank)
{
    if (has_blocks(spec, rank, true))
        return extent(spec, rank, true);
    switch (spec->kind) {
    case BARRIER:
    case GATHER:
    case GATHER_V:
        return 0;
    case REDUCE:
        return rank == spec->root ? spec->count : 0;
    case REDUCE_SCATTER_V:
    case SCATTER_V:
        return spec->counts[rank];
    default:
        return spec->count;
    }
}

uint64_t spec_value(const struct spec *spec, uint32_t rank, uint64_t at)
{
    return value_make(spec->dtype, spec->op, spec->flavour,
                      mix(mix(spec->key, 2000 + rank + (spec->salt << 20)), at));
}

uint64_t spec_max_bytes(const struct spec *spec)
{
    uint64_t longest = 0;
    for (uint32_t r = 0; r < spec->size; r++) {
        uint64_t sends = spec_sends(spec, r), takes = spec_takes(spec, r);
        longest = sends > longest ? sends : longest;
        longest = takes > longest ? takes : longest;
    }
    return longest * value_size(spec->dtype);
}
