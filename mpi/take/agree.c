/* SPDX-License-Identifier: Apache-2.0 */
/* See agree.h. */
#include "agree.h"

#include "attach.h"
#include "speed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a rank tells the others, in words of 8 bytes. */
struct answer {
    uint64_t settings;
    uint64_t names; /* bit i: rule i applies to a communicator of this name */
    uint64_t host;
    uint64_t cores;
    uint64_t is_off;
    uint64_t has_threads; /* MPI_THREAD_MULTIPLE */
};
enum { WORDS = sizeof(struct answer) / sizeof(uint64_t) };

/* The answers of the ranks of MPI_COMM_WORLD, valid once `is_world_known`. */
static struct answer world[PEAL_MOST_RANKS];
static _Atomic bool is_world_known;

/* ---- this rank's answer ---- */

/* Ranks share a host if they run under one user on one boot of one system, in one network
 * namespace. As everywhere in Peal, PEAL_HOST overrides this. */
static uint64_t identify_host(void)
{
    const char *told = getenv("PEAL_HOST");
    if (told && told[0])
        return peal_mpi_hash(PEAL_MPI_HASH_START, told, strlen(told));
    char boot[64] = "", net[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    size_t len = file ? fread(boot, 1, sizeof boot - 1, file) : 0;
    if (file)
        fclose(file);
    ssize_t net_len = readlink("/proc/self/ns/net", net, sizeof net - 1);
    uint32_t user = (uint32_t)geteuid();
    uint64_t hash = peal_mpi_hash(PEAL_MPI_HASH_START, boot, len);
    hash = peal_mpi_hash(hash, net, net_len > 0 ? (uint64_t)net_len : 0);
    return peal_mpi_hash(hash, &user, sizeof user);
}

static bool has_named_rules(void)
{
    const struct peal_mpi_settings *settings = peal_mpi_settings();
    for (uint32_t i = 0; i < settings->nrules; i++) {
        if (settings->rules[i].has_name)
            return true;
    }
    return false;
}

/* The rules that apply to a communicator of this name: those without a name, and those with this
 * name. */
static uint64_t select_names(const struct peal_mpi_comm *state)
{
    const struct peal_mpi_settings *settings = peal_mpi_settings();
    char name[256] = "";
    int len = 0;
    uint64_t rules = 0;
    if (has_named_rules())
        peal_mpi()->pmpi.Comm_get_name(state->comm, name, &len);
    for (uint32_t i = 0; i < settings->nrules; i++) {
        const struct peal_mpi_rule *rule = &settings->rules[i];
        if (!rule->has_name || strcmp(rule->name, name) == 0)
            rules |= UINT64_C(1) << i;
    }
    return rules;
}

static struct answer answer(const struct peal_mpi_comm *state)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    const struct peal_mpi_settings *settings = peal_mpi_settings();
    int threads = 0;
    abi->pmpi.Query_thread(&threads);
    return (struct answer){.settings = settings->hash,
                           .names = select_names(state),
                           .host = identify_host(),
                           .cores = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
                           .is_off = settings->off,
                           .has_threads = threads >= abi->thread_multiple};
}

/* ---- the answers of all ranks ---- */

bool peal_mpi_find_in_world(void *comm, uint32_t size, int out[static PEAL_MOST_RANKS])
{
    const struct peal_mpi_abi *abi = peal_mpi();
    char world_group[8], group[8];
    int ranks[PEAL_MOST_RANKS];
    for (uint32_t r = 0; r < size; r++)
        ranks[r] = (int)r;
    memcpy(out, ranks, size * sizeof *out);
    if (comm == abi->comm_world)
        return true;
    abi->pmpi.Comm_group(abi->comm_world, world_group);
    abi->pmpi.Comm_group(comm, group);
    abi->pmpi.Group_translate_ranks(peal_mpi_load(abi, group), (int)size, ranks,
                                    peal_mpi_load(abi, world_group), out);
    abi->pmpi.Group_free(group);
    abi->pmpi.Group_free(world_group);
    for (uint32_t r = 0; r < size; r++) {
        if (out[r] == PEAL_MPI_UNDEFINED)
            return false;
    }
    return true;
}

static bool has_same_settings(const struct answer *answers, uint32_t size)
{
    for (uint32_t r = 1; r < size; r++) {
        if (answers[r].settings != answers[0].settings || answers[r].names != answers[0].names)
            return false;
    }
    return true;
}

/* Takes the answers from those of the world. False if they do not suffice. */
static bool recall(const struct peal_mpi_comm *state, struct answer *out)
{
    int places[PEAL_MOST_RANKS];
    uint64_t names = select_names(state);
    /* Acquire; partner: keep_world. */
    if (!atomic_load_explicit(&is_world_known, memory_order_acquire))
        return false;
    if (!peal_mpi_find_in_world(state->comm, state->size, places))
        return false;
    for (uint32_t r = 0; r < state->size; r++) {
        out[r] = world[places[r]];
        out[r].names = names; /* the kept ones are for the name of the world */
    }
    /* Ranks with the same settings have the same rules, so either all of them ask or none does. */
    return !has_named_rules() || !has_same_settings(out, state->size);
}

static bool ask(const struct peal_mpi_comm *state, struct answer *out)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    struct answer own = answer(state);
    return abi->pmpi.Allgather(&own, WORDS, abi->uint64, out, WORDS, abi->uint64, state->comm) ==
           PEAL_MPI_SUCCESS;
}

static void keep_world(const struct answer *answers, uint32_t size)
{
    for (uint32_t r = 0; r < size; r++) {
        if (answers[r].has_threads)
            return;
    }
    memcpy(world, answers, size * sizeof *answers);
    /* Release: all of it is written; partner: recall. */
    atomic_store_explicit(&is_world_known, true, memory_order_release);
}

/* ---- conclusions ---- */

/* The rules that apply to a communicator of this size, on one host or several. */
static uint64_t select_kinds(const struct peal_mpi_comm *state)
{
    const struct peal_mpi_settings *settings = peal_mpi_settings();
    uint64_t rules = 0;
    for (uint32_t i = 0; i < settings->nrules; i++) {
        const struct peal_mpi_rule *rule = &settings->rules[i];
        if (rule->has_ranks && rule->ranks != state->size)
            continue;
        if (rule->spans && !state->spans)
            continue;
        rules |= UINT64_C(1) << i;
    }
    return rules;
}

static void settle(struct peal_mpi_comm *state, const struct answer *answers)
{
    bool is_off = false;
    for (uint32_t r = 0; r < state->size; r++) {
        state->spans |= answers[r].host != answers[0].host;
        state->shares_cores |= state->size > answers[r].cores;
        is_off |= answers[r].is_off != 0;
    }
    state->rules = answers[0].names & select_kinds(state);
    peal_mpi_speed_look_up(state);
    if (is_off)
        peal_mpi_refuse(state, PEAL_MPI_OFF);
    else if (!has_same_settings(answers, state->size))
        peal_mpi_refuse(state, PEAL_MPI_DIFFERS);
    else
        state->phase = PEAL_MPI_COUNTING;
    peal_mpi_left_set(state);
}

void peal_mpi_agree(struct peal_mpi_comm *state)
{
    struct answer answers[PEAL_MOST_RANKS];
    if (!recall(state, answers)) {
        if (!ask(state, answers)) {
            peal_mpi_refuse(state, PEAL_MPI_DIFFERS);
            return;
        }
        if (state->comm == peal_mpi()->comm_world)
            keep_world(answers, state->size);
    }
    settle(state, answers);
}
