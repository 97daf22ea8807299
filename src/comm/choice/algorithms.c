/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms of a communicator: which there are, which one is forced, which one a call would
 * take, and why. */
#include "comm/choice/from_file.h"
#include "comm/core/growth.h"

#include <peal/choose.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct peal_algorithm) == PEAL_ALGORITHM_FIRST_BYTES, "0.2.0 has this size");
static_assert(sizeof(struct peal_chosen) == PEAL_CHOSEN_FIRST_BYTES, "0.2.0 has this size");

/* Segments that may make a difference, by how a kernel takes its vectors. */
static const uint64_t *segments_of(const struct peal_algo *algo)
{
    static const uint64_t none[] = {64 << 10, 0};
    static const uint64_t flat[] = {64 << 10, 256 << 10, 0};
    static const uint64_t rows[] = {256 << 10, 1 << 20, 0};
    static const uint64_t blocks[] = {64 << 10, 128 << 10, 0};
    switch ((enum peal_shape)algo->shape) {
    case PEAL_SHAPE_FLAT:
        return flat;
    case PEAL_SHAPE_ROWS:
        return rows;
    case PEAL_SHAPE_BLOCKS:
        return blocks;
    default:
        return none;
    }
}

enum peal_status peal_algorithm_get(size_t index, struct peal_algorithm *out)
{
    size_t count;
    const struct peal_algo *algos = peal_algos(&count);
    if (!out || index >= count)
        return PEAL_INVALID;
    const struct peal_algo *algo = &algos[index];
    size_t size = peal_growth_size(out->struct_size, PEAL_ALGORITHM_FIRST_BYTES);
    struct peal_algorithm made = {.struct_size = (uint32_t)size,
                                  .reaches = algo->memory != PEAL_PEERS_STAGE,
                                  .collective = peal_collective_name(algo->collective),
                                  .name = algo->name,
                                  .kernel = algo->kernel,
                                  .segments = segments_of(algo)};
    peal_growth_write(out, size, &made, sizeof made);
    return PEAL_OK;
}

uint32_t peal_collective_named(const char *name)
{
    for (uint32_t c = PEAL_CALL_BARRIER; c <= PEAL_CALL_ALL_TO_ALL; c++) {
        if (strcmp(peal_collective_name(c), name) == 0)
            return c;
    }
    return PEAL_CALL_NONE;
}

/* Ranks, cores and memory as this communicator's calls choose by. The same on all ranks. */
static void wish_of(const struct peal_comm *comm, struct peal_wish *out)
{
    *out = (struct peal_wish){.ranks = comm->team->size,
                              .cores = comm->team->policy.cores,
                              .keeps_writes = comm->team->policy.keeps_writes,
                              .reads = peal_remote_agree(comm->team),
                              .writes = comm->team->threads,
                              .hosts = comm->team->span ? comm->team->span->nodes : 0};
}

static struct peal_chosen choose(struct peal_comm *comm, uint32_t collective, uint64_t bytes,
                                 uint32_t flags)
{
    const struct peal_user_kernel *file = comm->from_file[collective];
    if (file) {
        const char *name = peal_user_kernel_lowered(file)->name;
        return (struct peal_chosen){.algo = name, .kernel = name, .why = "forced"};
    }
    struct peal_wish wish;
    wish_of(comm, &wish);
    wish.collective = collective;
    wish.bytes = bytes;
    wish.symmetric = flags & PEAL_CHOOSE_SYMMETRIC;
    wish.in_place = flags & PEAL_CHOOSE_IN_PLACE;
    struct peal_choice choice = peal_choose(&comm->rules, comm->forced[collective], &wish);
    return (struct peal_chosen){.measured = choice.tuned,
                                .algo = choice.algo->name,
                                .kernel = choice.algo->kernel,
                                .segment = choice.segment,
                                .why = choice.why};
}

enum peal_status peal_comm_chosen(struct peal_comm *comm, const char *collective, uint64_t bytes,
                                  uint32_t flags, struct peal_chosen *out)
{
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK)
        return status;
    uint32_t c = collective ? peal_collective_named(collective) : PEAL_CALL_NONE;
    if (c == PEAL_CALL_NONE || !out)
        return peal_comm_fail(comm, PEAL_INVALID, "there is no such collective");
    size_t size = peal_growth_size(out->struct_size, PEAL_CHOSEN_FIRST_BYTES);
    struct peal_chosen made = choose(comm, c, bytes, flags);
    made.struct_size = (uint32_t)size;
    peal_growth_write(out, size, &made, sizeof made);
    return PEAL_OK;
}

/* ---- forced ones ---- */

static enum peal_status refuse_algo(struct peal_comm *comm, uint32_t collective, const char *algo)
{
    size_t count;
    const struct peal_algo *all = peal_algos(&count);
    const char *before = " ", *meant = NULL;
    for (size_t i = 0; i < count; i++) {
        if (all[i].collective == collective)
            meant = peal_nearer(algo, meant, all[i].name);
    }
    if (meant)
        return peal_comm_fail(comm, PEAL_INVALID, "%s has no algorithm '%s'; did you mean '%s'?",
                              peal_collective_name(collective), algo, meant);
    peal_comm_fail(comm, PEAL_INVALID, "%s has no algorithm '%s'; it has",
                   peal_collective_name(collective), algo);
    for (size_t i = 0; i < count; i++) {
        if (all[i].collective != collective)
            continue;
        peal_text_printf(&comm->error, "%s%s", before, all[i].name);
        before = ", ";
    }
    return PEAL_INVALID;
}

static enum peal_status refuse_collective(struct peal_comm *comm, const char *name)
{
    const char *meant = NULL;
    for (uint32_t c = PEAL_CALL_BARRIER; c <= PEAL_CALL_ALL_TO_ALL; c++)
        meant = peal_nearer(name, meant, peal_collective_name(c));
    if (meant)
        return peal_comm_fail(comm, PEAL_INVALID, "there is no collective '%s'; did you mean '%s'?",
                              name, meant);
    return peal_comm_fail(comm, PEAL_INVALID, "there is no collective '%s'", name);
}

enum peal_status peal_comm_set_algo(struct peal_comm *comm, const char *collective,
                                    const char *algo)
{
    if (!comm)
        return PEAL_INVALID;
    if (!collective)
        collective = "";
    uint32_t c = peal_collective_named(collective);
    if (c == PEAL_CALL_NONE)
        return refuse_collective(comm, collective);
    if (algo && peal_program_is_path(algo))
        return peal_from_file_use(comm, c, algo);
    const struct peal_algo *found = NULL;
    if (algo && algo[0]) {
        found = peal_algo_find(c, algo);
        if (!found)
            return refuse_algo(comm, c, algo);
    }
    peal_from_file_drop(comm, c);
    comm->forced[c] = found;
    peal_comm_forget(comm);
    return PEAL_OK;
}

/* ---- in words ---- */

static void explain(struct peal_comm *comm, uint32_t collective, uint64_t bytes, uint32_t flags)
{
    struct peal_text *out = &comm->explained;
    struct peal_chosen chosen = choose(comm, collective, bytes, flags);
    struct peal_chosen in_place = choose(comm, collective, bytes, flags | PEAL_CHOOSE_IN_PLACE);
    struct peal_wish wish;
    char size[24], segment[24];
    wish_of(comm, &wish);
    const char *described = getenv("PEAL_CORES") ? NULL : peal_topo_described();
    peal_text_printf(
        out, "%s of %s bytes on %u ranks and %u cores%s%s: '%s' (%s), segments of %s bytes: %s",
        peal_collective_name(collective), peal_size_format(bytes, size), wish.ranks, wish.cores,
        described ? " of " : "", described ? described : "", chosen.algo, chosen.kernel,
        peal_size_format(chosen.segment, segment), chosen.why);
    if (in_place.kernel != chosen.kernel)
        peal_text_printf(out, "; in place '%s' (%s)", in_place.algo, in_place.kernel);
    if (!wish.reads && !wish.hosts)
        peal_text_puts(out, "; peers' private memory cannot be read, so it is staged");
    if (chosen.measured)
        peal_text_printf(out, " (%s)", comm->rules.path);
}

const char *peal_comm_explain(struct peal_comm *comm, const char *collective, uint64_t bytes,
                              int symmetric)
{
    if (!comm || !collective)
        return "";
    uint32_t c = peal_collective_named(collective);
    comm->explained.len = 0;
    if (peal_team_is_closed(comm->team))
        peal_text_puts(&comm->explained, peal_text_get(&comm->team->error));
    else if (c == PEAL_CALL_NONE)
        peal_text_printf(&comm->explained, "there is no collective '%s'", collective);
    else if (!peal_from_file_explain(comm, c))
        explain(comm, c, bytes, symmetric ? PEAL_CHOOSE_SYMMETRIC : 0);
    return peal_text_get(&comm->explained);
}
