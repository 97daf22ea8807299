/* SPDX-License-Identifier: Apache-2.0 */
/* What programs that start ranks ask before any communicator is open. */
#include "comm/core/communicator.h"

#include <stdio.h>

enum peal_status peal_job_name(char *out, size_t cap)
{
    char name[40];
    if (!out || cap < sizeof name)
        return PEAL_INVALID;
    peal_job_make(name);
    snprintf(out, cap, "%s", name);
    return PEAL_OK;
}

enum peal_status peal_memory_check(uint32_t ranks, int threads, uint64_t bytes, char *why,
                                   size_t cap)
{
    struct peal_text text = {0};
    enum peal_status status = PEAL_OK;
    if (ranks < 1 || ranks > PEAL_MOST_RANKS)
        return PEAL_INVALID;
    uint64_t all = peal_size_add_capped(bytes, peal_team_need(ranks, threads != 0));
    if (!peal_memory_limit_has(all, ranks, &text)) {
        status = PEAL_NO_MEMORY;
        if (why && cap > 0)
            snprintf(why, cap, "%s", peal_text_get(&text));
    }
    peal_text_release(&text);
    return status;
}
