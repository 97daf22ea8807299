/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's memory for tensors: first fit among holes, which are kept in order of address and
 * joined. Free memory is always zero, and large pieces of it are given back to the system until
 * they are used again. */
#include "driver/hosts/hosts.h"
#include "driver/state/state.h"

#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, PAGE = 4096, LARGE = 16 * PAGE };

static uint64_t round_up(uint64_t bytes)
{
    if (bytes == 0)
        return LINE;
    return peal_size_align(bytes, bytes >= LARGE ? PAGE : LINE);
}

bool peal_area_init(struct peal_host_area *area, char *base, uint64_t bytes)
{
    struct peal_host_hole all = {(uint64_t)(uintptr_t)base, (uint64_t)(uintptr_t)base + bytes};
    area->base = base;
    return peal_vec_push(&area->holes, all);
}

static void remove_hole(struct peal_host_area *area, size_t i)
{
    area->holes.len--;
    memmove(&area->holes.at[i], &area->holes.at[i + 1],
            (area->holes.len - i) * sizeof *area->holes.at);
}

static bool insert_hole(struct peal_host_area *area, size_t i, struct peal_host_hole hole)
{
    if (!peal_vec_reserve(&area->holes, 1))
        return false;
    memmove(&area->holes.at[i + 1], &area->holes.at[i],
            (area->holes.len - i) * sizeof *area->holes.at);
    area->holes.at[i] = hole;
    area->holes.len++;
    return true;
}

uint64_t peal_area_take(struct peal_host_area *area, uint64_t bytes)
{
    if (bytes > UINT64_MAX / 2)
        return 0;
    uint64_t rounded = round_up(bytes), unit = rounded >= LARGE ? PAGE : LINE;
    for (size_t i = 0; i < area->holes.len; i++) {
        struct peal_host_hole hole = area->holes.at[i];
        uint64_t at = peal_size_align(hole.begin, unit);
        if (at > hole.end || hole.end - at < rounded)
            continue;
        struct peal_host_hole rest = {at + rounded, hole.end};
        bool has_front = at > hole.begin, has_rest = rest.begin < rest.end;
        if (has_front && has_rest && !insert_hole(area, i + 1, rest))
            return 0;
        if (has_front)
            area->holes.at[i].end = at;
        else if (has_rest)
            area->holes.at[i] = rest;
        else
            remove_hole(area, i);
        return at;
    }
    return 0;
}

void peal_area_clear(uint64_t at, uint64_t bytes)
{
    char *memory = (char *)(uintptr_t)at;
    if (bytes >= LARGE && madvise(memory, bytes, MADV_REMOVE) == 0)
        return;
    memset(memory, 0, bytes);
}

void peal_area_give(struct peal_host_area *area, uint64_t at, uint64_t bytes)
{
    uint64_t rounded = round_up(bytes);
    size_t i = 0;
    if (area->away)
        peal_away_zero(area->away, area->worker, at, rounded);
    else
        peal_area_clear(at, rounded);
    while (i < area->holes.len && area->holes.at[i].begin < at)
        i++;
    bool joins_front = i > 0 && area->holes.at[i - 1].end == at;
    bool joins_rest = i < area->holes.len && area->holes.at[i].begin == at + rounded;
    if (joins_front && joins_rest) {
        area->holes.at[i - 1].end = area->holes.at[i].end;
        remove_hole(area, i);
    } else if (joins_front) {
        area->holes.at[i - 1].end = at + rounded;
    } else if (joins_rest) {
        area->holes.at[i].begin = at;
    } else {
        /* If there is no memory for the hole, its bytes stay unused until the host is closed. */
        insert_hole(area, i, (struct peal_host_hole){at, at + rounded});
    }
}
