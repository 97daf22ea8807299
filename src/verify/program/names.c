/* SPDX-License-Identifier: Apache-2.0 */
/* Equal names are the same memory, signal or channel in every launch. If scopes of one plan use a
 * name several times, the first use is the same in every launch, and so is the second. */
#include "verify/program/program.h"

#include <string.h>

static uint32_t find_memory(struct program *p, uint32_t launch, uint32_t b)
{
    const struct peal_plan *plan = p->plans[launch];
    const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
    const char *name = peal_plan_string(plan, buf->name);
    /* Tiles and private scratch may have equal names in different scopes. They are distinguished by
     * their order, which is the same in all launches of plans of one kernel. */
    bool scoped = buf->kind == PEAL_BUF_TILE || buf->kind == PEAL_BUF_PRIVATE;
    size_t candidates = scoped ? 0 : p->memory.len;
    for (uint32_t i = 0; i < candidates; i++) {
        struct memory *m = &p->memory.at[i];
        if (m->kind == buf->kind && m->named != launch + 1 && strcmp(m->name, name) == 0) {
            m->named = launch + 1;
            return i;
        }
    }
    struct memory m = {name, buf->kind, buf->dtype, false, buf->cols, buf->lane, launch + 1};
    if (!peal_vec_push(&p->memory, m))
        peal_program_fail(p, PEAL_NO_MEMORY, "out of memory");
    return (uint32_t)p->memory.len - 1;
}

static uint32_t find_signal(struct program *p, uint32_t launch, uint32_t s)
{
    const struct peal_plan *plan = p->plans[launch];
    const struct peal_signal *signal = &peal_plan_signals(plan)[s];
    const char *name = peal_plan_string(plan, signal->name);
    for (uint32_t i = 0; i < p->signals.len; i++) {
        struct signal *known = &p->signals.at[i];
        if (known->named == launch + 1 || strcmp(known->name, name) != 0)
            continue;
        known->named = launch + 1;
        if (known->kind != signal->kind)
            peal_program_fail(p, PEAL_INVALID,
                              "a signal has two kinds in one sequence of launches");
        if (signal->cells > known->cells)
            known->cells = signal->cells;
        return i;
    }
    struct signal fresh = {name, signal->kind, signal->cells, 0, launch + 1};
    if (!peal_vec_push(&p->signals, fresh))
        peal_program_fail(p, PEAL_NO_MEMORY, "out of memory");
    return (uint32_t)p->signals.len - 1;
}

static uint32_t find_channel(struct program *p, uint32_t launch, uint32_t c)
{
    const struct peal_plan *plan = p->plans[launch];
    const struct peal_channel *ch = &peal_plan_channels(plan)[c];
    const char *name = peal_plan_string(plan, ch->name);
    /* Plans list channels in the order of first use, so an equal key is usually at the same
     * index. */
    for (uint32_t k = 0; k < p->channels.len; k++) {
        uint32_t i = (c + k) % (uint32_t)p->channels.len;
        struct channel *known = &p->channels.at[i];
        if (known->port == ch->port && known->sender == ch->sender &&
            known->receiver == ch->receiver && strcmp(known->name, name) == 0) {
            if (ch->depth < known->depth)
                known->depth = ch->depth;
            return i;
        }
        if (plan == p->plans[0])
            break; /* keys are unique within a plan */
    }
    struct channel fresh = {
        .name = name,
        .port = ch->port,
        .sender = ch->sender,
        .receiver = ch->receiver,
        .depth = ch->depth,
        .sender_thread = PEAL_NONE,
        .receiver_thread = PEAL_NONE,
    };
    if (!peal_vec_push(&p->channels, fresh))
        peal_program_fail(p, PEAL_NO_MEMORY, "out of memory");
    return (uint32_t)p->channels.len - 1;
}

typedef uint32_t find_name(struct program *, uint32_t launch, uint32_t index);

/* Maps launch's table entries to program-wide ones; launches of the same plan share a map. */
static void map_names(struct program *p, uint32_t **maps, uint32_t launch, uint64_t count,
                      find_name *find)
{
    for (uint32_t i = 0; i < launch; i++) {
        if (p->plans[i] == p->plans[launch]) {
            maps[launch] = maps[i];
            return;
        }
    }
    maps[launch] = peal_program_take(p, count, sizeof **maps);
    for (uint64_t i = 0; i < count && p->status == PEAL_OK; i++)
        maps[launch][i] = find(p, launch, (uint32_t)i);
}

void peal_program_name(struct program *p)
{
    p->memory_of = peal_program_take(p, p->launches, sizeof *p->memory_of);
    p->signal_of = peal_program_take(p, p->launches, sizeof *p->signal_of);
    p->channel_of = peal_program_take(p, p->launches, sizeof *p->channel_of);
    for (uint32_t i = 0; i < p->launches && p->status == PEAL_OK; i++) {
        const struct peal_plan *plan = p->plans[i];
        map_names(p, p->memory_of, i, plan->bufs.count, find_memory);
        map_names(p, p->signal_of, i, plan->signals.count, find_signal);
        map_names(p, p->channel_of, i, plan->channels.count, find_channel);
    }
}
