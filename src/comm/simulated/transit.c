/* SPDX-License-Identifier: Apache-2.0 */
/* The times of messages on a simulated machine: what one costs is simulated once for each size and
 * peer, and kept. See transit.h. */
#include "comm/simulated/transit.h"

#include "lang/lang.h"
#include "base/base.h"
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

/* The cost of a message, simulated once. */
struct postage {
    uint64_t bytes;
    uint32_t to;
    uint64_t sent, arrives; /* after it left */
};

struct peal_transit {
    struct peal_clock *clock;
    uint32_t rank, size;
    struct peal_machine *machine;
    struct peal_program *program;
    PEAL_VEC(struct postage) known;
    char path[];
};

static const char text[] = "kernel message(in x: T[n], out y: T[n], source: int, target: int) {\n"
                           "    if rank == source { send x to target }\n"
                           "    if rank == target { y = recv from source }\n"
                           "}\n";

struct peal_transit *peal_transit_new(const char *path, uint32_t rank, uint32_t size,
                                      struct peal_clock *clock)
{
    struct peal_transit *transit = calloc(1, sizeof *transit + strlen(path) + 1);
    if (!transit)
        return NULL;
    if (clock) {
        transit->clock = peal_clock_keep(clock);
    } else if (peal_clock_new(&transit->clock) != PEAL_OK) {
        free(transit);
        return NULL;
    }
    transit->rank = rank;
    transit->size = size;
    memcpy(transit->path, path, strlen(path) + 1);
    return transit;
}

void peal_transit_free(struct peal_transit *transit)
{
    if (!transit)
        return;
    peal_clock_free(transit->clock);
    peal_program_close(transit->program);
    peal_machine_free(transit->machine);
    peal_vec_release(&transit->known);
    free(transit);
}

const char *peal_transit_path(const struct peal_transit *transit)
{
    return transit->path;
}

struct peal_clock *peal_transit_clock(const struct peal_transit *transit)
{
    return transit->clock;
}

/* ---- what a message costs ---- */

static enum peal_status plan_message(struct peal_transit *transit, const struct postage *asked,
                                     struct peal_diags *diags, struct peal_plan **out)
{
    enum peal_status status = PEAL_OK;
    if (!transit->program)
        status = peal_program_text("message.peal", text, sizeof text - 1, diags, &transit->program);
    const struct peal_kernel *kernel =
        status == PEAL_OK ? peal_program_kernel(transit->program, "message", diags) : NULL;
    int64_t n = asked->bytes ? (int64_t)asked->bytes : 1, source = transit->rank,
            target = asked->to;
    struct peal_bind_value given[] = {{"source", &source, 1, true}, {"target", &target, 1, true}};
    struct peal_plan_request request = {
        .kernel = kernel,
        .bind = {.nranks = transit->size,
                 .rank = PEAL_NONE,
                 .dtype = PEAL_U8,
                 .channel_depth = (uint32_t)transit->machine->keys.slots,
                 .slot_bytes = transit->machine->keys.slot_bytes},
        .given = given,
        .ngiven = sizeof given / sizeof *given,
        .count = n,
    };
    if (kernel)
        return peal_plan_make(&request, diags, out);
    return PEAL_INVALID;
}

/* Runs the one message on a machine of its own: time only. */
static enum peal_status ask(struct peal_transit *transit, struct peal_diags *diags,
                            struct postage *asked)
{
    struct peal_plan *plan = NULL;
    struct peal_sim *sim = NULL;
    enum peal_status status = PEAL_OK;
    if (!transit->machine)
        status = peal_machine_open(transit->path, diags, &transit->machine);
    if (status == PEAL_OK)
        status = plan_message(transit, asked, diags, &plan);
    if (status == PEAL_OK)
        status = peal_sim_run_plan(transit->machine, plan, &(struct peal_sim_turns){.launches = 1},
                                   diags, &sim);
    if (status == PEAL_OK) {
        struct peal_sim_rank_stats from, to;
        peal_sim_rank(sim, transit->rank, &from);
        peal_sim_rank(sim, asked->to, &to);
        asked->sent = from.end;
        asked->arrives = to.end;
    }
    peal_sim_free(sim);
    free(plan);
    return status;
}

static enum peal_status find(struct peal_transit *transit, struct peal_diags *diags,
                             struct postage *asked)
{
    if (asked->to == transit->rank) /* it stays where it is */
        return PEAL_OK;
    for (size_t i = 0; i < transit->known.len; i++) {
        const struct postage *known = &transit->known.at[i];
        if (known->bytes == asked->bytes && known->to == asked->to) {
            *asked = *known;
            return PEAL_OK;
        }
    }
    enum peal_status status = ask(transit, diags, asked);
    if (status == PEAL_OK && !peal_vec_push(&transit->known, *asked))
        status = PEAL_NO_MEMORY;
    return status;
}

enum peal_status peal_transit_send(struct peal_transit *transit, uint32_t to, uint64_t bytes,
                                   struct peal_diags *diags, uint64_t *sent, uint64_t *arrives)
{
    struct postage asked = {.bytes = bytes, .to = to};
    enum peal_status status = find(transit, diags, &asked);
    if (status == PEAL_OK) {
        uint64_t leaves = peal_clock_send(transit->clock, asked.sent);
        *sent = leaves + asked.sent;
        *arrives = leaves + asked.arrives;
    }
    return status;
}
