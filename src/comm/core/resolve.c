/* SPDX-License-Identifier: Apache-2.0 */
/* From checked arguments to a call: which plan (run/choose says), and which memory is bound where.
 *
 * The plan follows from what is the same on all ranks: collective, count, type, operation, root,
 * and whether buffers are symmetric or in place where peers must know of it. Each rank chooses by
 * itself. The call's signature is a hash of everything that the choice depended on, and ranks
 * compare signatures when they meet in the launch. If a rank has chosen another plan, the call ends
 * with PEAL_MISMATCH and does not hang.
 *
 * Memory follows from the rank's own arguments. A plan is made for a class of counts, so the bounds
 * give the actual length of each parameter, and steps are clipped to it (run/exec/image.h).
 *
 * Plans belong to the cache, which frees all of them when there are too many; every memo is then
 * dropped too. That happens only while no request is under way. */
#include "comm/core/arguments.h"

#include "comm/core/reductions.h"

#include "base/base.h"
#include "run/run.h"

#include <string.h>

/* ---- identity ---- */

static const struct peal_contract_info *contract_of(uint32_t collective)
{
    return peal_contract_info(peal_collective_contract(collective));
}

static bool send_has_blocks(uint32_t collective)
{
    return peal_side_has_blocks(contract_of(collective)->in);
}

static bool recv_has_blocks(uint32_t collective)
{
    return peal_side_has_blocks(contract_of(collective)->out);
}

static uint64_t identity_count(const struct peal_comm *comm, const struct peal_arguments *args)
{
    if (!args->counts)
        return args->count;
    if (args->recv_counts) /* every rank has its own */
        return args->largest_block;
    /* Offsets may differ between ranks: they describe this rank's memory. */
    return peal_hash_bytes(args->counts, comm->team->size * sizeof(uint64_t), 1);
}

static uint64_t largest_block(const struct peal_comm *comm, const struct peal_arguments *args)
{
    if (args->recv_counts)
        return args->largest_block;
    return peal_arguments_largest(args, comm->team->size);
}

/* Both sides in symmetric memory: offsets that must be the same everywhere go into the hash. */
static bool is_symmetric(const struct peal_comm *comm, const struct peal_arguments *args,
                         uint64_t *offsets)
{
    uint64_t bytes = args->count * peal_dtype_size(args->dtype);
    if (!comm->symmetric || args->counts || bytes == 0)
        return false;
    uint64_t send_bytes = bytes * (send_has_blocks(args->collective) ? comm->team->size : 1);
    uint64_t recv_bytes = bytes * (recv_has_blocks(args->collective) ? comm->team->size : 1);
    const struct peal_symmetric *send = peal_symmetric_find(comm, args->send, send_bytes);
    const struct peal_symmetric *recv = peal_symmetric_find(comm, args->recv, recv_bytes);
    if (!send || !recv)
        return false;
    uint32_t rank = comm->team->rank;
    uint64_t send_at = send->offset + (uint64_t)((const char *)args->send - send->at[rank]);
    uint64_t recv_at = recv->offset + (uint64_t)((const char *)args->recv - recv->at[rank]);
    /* In place, one is this rank's part of the other: not at the same place everywhere. */
    if (args->in_place)
        *offsets = recv_has_blocks(args->collective) ? recv_at : send_at;
    else
        *offsets = peal_hash_u64(send_at, peal_hash_u64(recv_at, 1));
    return true;
}

/* ---- binding ---- */

static const struct peal_image_param *param_of(const struct peal_image *image, uint32_t buf)
{
    for (uint32_t i = 0; i < image->nparams; i++) {
        if (image->params[i].buf == buf)
            return &image->params[i];
    }
    return NULL;
}

/* The first of a parameter's bases that are this rank's. */
static uint32_t own_base(const struct peal_comm *comm, const struct peal_image_param *param)
{
    return param->base + (param->symmetric ? comm->team->rank * param->rows : 0);
}

/* One side that is a vector: as it is, or cut into rows. */
static uint32_t bind_vector(const struct peal_comm *comm, const struct peal_image_param *param,
                            const void *at, uint64_t bytes, bool rows, struct peal_bound *out)
{
    *out = (struct peal_bound){.base = own_base(comm, param),
                               .rows = rows ? param->rows : 0,
                               .at = (char *)(uintptr_t)at,
                               .bytes = bytes};
    return 1;
}

/* One side that has all blocks: a base for each. */
static uint32_t bind_blocks(const struct peal_comm *comm, const struct peal_arguments *args,
                            const struct peal_image_param *param, bool output, bool here,
                            struct peal_bound *out)
{
    uint64_t element = peal_dtype_size(args->dtype), offset = 0;
    const void *at = output ? args->recv : args->send;
    bool own = args->recv_counts && output; /* with counts of its own */
    const uint64_t *counts = own ? args->recv_counts : args->counts;
    const uint64_t *offsets = own ? args->recv_offsets : args->offsets;
    for (uint32_t r = 0; r < comm->team->size; r++) {
        uint64_t count = counts ? counts[r] : args->count;
        uint64_t from = offsets ? offsets[r] : offset;
        out[r] =
            (struct peal_bound){.base = own_base(comm, param) + r, .at = (char *)(uintptr_t)at};
        if (here) {
            out[r].at += from * element;
            out[r].bytes = count * element;
        }
        offset += count;
    }
    return comm->team->size;
}

static uint32_t bind_sides(const struct peal_comm *comm, const struct peal_arguments *args,
                           const struct peal_memo *memo, struct peal_bound *out)
{
    const struct peal_image *image = memo->image;
    uint32_t collective = memo->algo->collective, rank = comm->team->rank, n = 0;
    bool root = rank == args->root;
    const struct peal_contract_info *sides = contract_of(collective);
    const struct peal_image_param *x = param_of(image, image->plan->contract_in);
    const struct peal_image_param *y = param_of(image, image->plan->contract_out);
    uint64_t element = peal_dtype_size(args->dtype);
    uint64_t own = peal_arguments_block(args, rank) * element;
    bool rows = memo->algo->shape == PEAL_SHAPE_ROWS;
    bool blocks = memo->algo->shape == PEAL_SHAPE_BLOCKS;
    if (x && blocks && send_has_blocks(collective))
        n += bind_blocks(comm, args, x, false, !peal_side_is_roots(sides->in) || root, out);
    else if (x)
        n += bind_vector(comm, x, args->send, own, rows, out);
    if (y && y != x && blocks && recv_has_blocks(collective))
        n += bind_blocks(comm, args, y, true, !peal_side_is_roots(sides->out) || root, out + n);
    else if (y && y != x) {
        bool here = !peal_side_is_roots(sides->out) || root;
        n += bind_vector(comm, y, args->recv, here ? own : 0, rows, out + n);
    }
    return n;
}

/* Where peers' window parameters are: they lie as this rank's do. */
static void reach_peers(const struct peal_comm *comm, const struct peal_arguments *args,
                        const struct peal_memo *memo, struct peal_call *out)
{
    const struct peal_image *image = memo->image;
    out->reach = memo->algo->memory != PEAL_PEERS_STAGE;
    for (uint32_t i = 0; i < image->nparams && out->reach; i++) {
        bool is_x = image->params[i].buf == image->plan->contract_in;
        const struct peal_symmetric *found = NULL;
        if (!memo->remote)
            found = peal_symmetric_find(comm, is_x ? args->send : args->recv, 1);
        out->mapped[i] = NULL;
        if (found)
            out->mapped[i] = found->at;
        out->segments[i] = NULL;
        if (found)
            out->segments[i] = found->segments;
    }
}

/* ---- the memo ---- */

static void resolve(const struct peal_comm *comm, const struct peal_wish *wish,
                    const struct peal_arguments *args, struct peal_resolved *out)
{
    struct peal_plan_key call = {.root = args->root,
                                 .dtype = (uint8_t)args->dtype,
                                 .reduce = (uint8_t)args->reduce,
                                 .in_place = args->in_place};
    struct peal_wish own = *wish;
    own.uneven = args->counts != NULL;
    own.moves = peal_comm_moves(comm, args->reduce);
    peal_resolve(&comm->rules, comm->forced[wish->collective], &own, &call, out);
}

/* Where every rank has input and output, being in place is part of the call: kernels that access
 * peers' memory depend on it, and the same rule holds for all other kernels. Uneven blocks are
 * never accessed by peers, and a rank with an empty block cannot tell whether it is in place. */
static uint64_t place_bit(const struct peal_arguments *args)
{
    bool told = args->collective == PEAL_CALL_ALLREDUCE ||
                args->collective == PEAL_CALL_ALLGATHER ||
                args->collective == PEAL_CALL_REDUCE_SCATTER;
    if (told && args->in_place)
        return PEAL_CALL_IN_PLACE;
    return 0;
}

/* A forced algorithm that combines in another order than a user-defined reduction allows is
 * refused. */
static enum peal_status check_order(struct peal_comm *comm, const struct peal_arguments *args,
                                    uint32_t collective)
{
    const struct peal_algo *forced = comm->forced[collective];
    enum peal_moves moves = peal_comm_moves(comm, args->reduce);
    if (!forced || peal_algo_keeps(forced, moves))
        return PEAL_OK;
    const char *changed = "order", *missing = "commutative and associative";
    if (peal_algo_keeps(forced, PEAL_MOVES_GROUPS)) {
        changed = "grouping";
        missing = "associative";
    }
    return peal_comm_fail(
        comm, PEAL_UNSUPPORTED,
        "%s: algorithm '%s' would change the %s of '%s', which is not declared %s",
        peal_collective_name(args->collective), forced->name, changed,
        peal_comm_reduce_name(comm, args->reduce), missing);
}

/* The memo says which call it is of. */
static enum peal_status remember(struct peal_comm *comm, const struct peal_arguments *args,
                                 struct peal_memo *memo)
{
    uint32_t element = (uint32_t)peal_dtype_size(args->dtype);
    uint64_t elements = memo->largest;
    const struct peal_team *team = comm->team;
    struct peal_wish wish = {.collective = peal_collective_even(args->collective),
                             .ranks = team->size,
                             .cores = team->policy.cores,
                             .keeps_writes = team->policy.keeps_writes,
                             .bytes = elements * element,
                             .symmetric = memo->symmetric,
                             /* Where uneven blocks lie is known on their own rank only. */
                             .reads = !args->counts && peal_remote_agree(comm->team),
                             .writes = !args->counts && team->threads,
                             .hosts = team->span ? team->span->nodes : 0,
                             .in_place = args->in_place};
    struct peal_resolved found;
    enum peal_status kept = check_order(comm, args, wish.collective);
    if (kept != PEAL_OK)
        return kept;
    resolve(comm, &wish, args, &found);
    const struct peal_algo *algo = found.choice.algo;
    struct peal_text why = {0};
    if (peal_plans_are_many(&comm->plans) && !comm->engine.active) {
        peal_comm_forget(comm);
        peal_calls_forget(&comm->engine, NULL);
        peal_plans_forget(&comm->plans);
    }
    enum peal_status status = peal_plans_find(&comm->plans, &found.key, &why, &memo->image);
    if (status != PEAL_OK) {
        peal_comm_fail(comm, status, "%s: cannot make the plan of '%s': %s",
                       peal_collective_name(args->collective), algo->kernel,
                       why.len ? peal_text_get(&why) : peal_status_text(status));
        peal_text_release(&why);
        return status;
    }
    memo->algo = algo;
    memo->segment = found.cutting.segment;
    memo->launches = found.cutting.launches;
    uint64_t hash = peal_hash_u64(memo->code | place_bit(args), memo->count);
    hash = peal_hash_u64(found.cutting.segment, hash);
    hash = peal_hash_bytes(algo->kernel, strlen(algo->kernel), hash);
    if (algo->has_groups)
        hash = peal_hash_u64(team->policy.cores, hash);
    const struct peal_formula *formula = peal_comm_formula(comm, args->reduce);
    if (formula && contract_of(args->collective)->has_reduce)
        hash = peal_hash_u64(peal_formula_hash(formula), hash);
    memo->remote = found.key.remote;
    if (found.key.symmetric) /* peers must know whether x is separate, or in y */
        hash = peal_hash_u64(found.key.in_place, hash);
    if (found.key.symmetric && !found.key.remote)
        hash = peal_hash_u64(memo->offsets, hash);
    memo->signature = (uint32_t)(hash ^ hash >> 32);
    uint64_t total = elements * element * (algo->shape == PEAL_SHAPE_BLOCKS ? team->size : 1);
    memo->stream = peal_call_streams(team, args->collective, total, &comm->core_cache);
    return PEAL_OK;
}

/* Makes the plans of a collective for a root, in place or not: of every class, or only the first of
 * every algorithm, which is the template of the others. A class may have two algorithms, one for
 * its smallest sizes and one for its largest. */
static void prepare_classes(struct peal_comm *comm, struct peal_wish *wish,
                            const struct peal_arguments *args, bool all)
{
    const uint64_t max_bytes = UINT64_C(64) << 20;
    const struct peal_algo *last = NULL;
    for (uint64_t i = 0, bytes = 16; bytes <= max_bytes; bytes *= 1 + 3 * (i++ % 2)) {
        struct peal_resolved found;
        struct peal_image *image;
        struct peal_text why = {0};
        wish->bytes = i % 2 == 0 ? bytes : bytes + peal_dtype_size(args->dtype);
        resolve(comm, wish, args, &found);
        /* A failure here is reported by the call that needs the plan. */
        if ((all || found.key.algo != last) &&
            peal_plans_find(&comm->plans, &found.key, &why, &image) == PEAL_OK)
            (void)peal_frame_prepare(&comm->engine.frames[0], image);
        last = found.key.algo;
        peal_text_release(&why);
    }
}

void peal_arguments_prepare(struct peal_comm *comm)
{
    /* With more ranks, most plans will not be called often enough; and those for other roots, which
     * are examined as a whole, would take longer than all else. */
    enum { MAX_RANKS = 16, MAX_ROOTS = 4 };
    const struct peal_team *team = comm->team;
    if (team->size < 2 || team->size > MAX_RANKS || comm->plans.prove || team->lazy)
        return;
    struct peal_wish wish = {.ranks = team->size,
                             .cores = team->policy.cores,
                             .keeps_writes = team->policy.keeps_writes,
                             .reads = peal_remote_expect(team),
                             .writes = team->threads,
                             .hosts = team->span ? team->span->nodes : 0};
    for (uint32_t c = PEAL_CALL_BARRIER; c <= PEAL_CALL_ALL_TO_ALL; c++) {
        uint32_t roots = 1;
        if (contract_of(c)->has_root && team->size <= MAX_ROOTS)
            roots = team->size;
        wish.collective = c;
        for (uint32_t i = 0; i < 2 * roots; i++) {
            struct peal_arguments args = {
                .dtype = PEAL_F32, .reduce = PEAL_SUM, .root = i / 2, .in_place = i % 2};
            wish.in_place = args.in_place;
            prepare_classes(comm, &wish, &args, args.root == 0);
        }
    }
}

/* Of the program's data, on the side that has more. */
static uint64_t count_bytes(const struct peal_comm *comm, const struct peal_arguments *args)
{
    uint64_t sent = 0, received = 0, size = comm->team->size;
    if (args->counts) {
        for (uint32_t r = 0; r < size; r++) {
            sent += args->counts[r];
            received += args->recv_counts ? args->recv_counts[r] : 0;
        }
    }
    if (!args->counts) {
        bool blocks = send_has_blocks(args->collective) || recv_has_blocks(args->collective);
        sent = args->count * (blocks ? size : 1);
    }
    return (peal_size_max(sent, received)) * peal_dtype_size(args->dtype);
}

enum peal_status peal_arguments_resolve(struct peal_comm *comm, const struct peal_arguments *args,
                                        struct peal_bound *bounds, struct peal_call *out)
{
    struct peal_memo *memo = &comm->memos[args->collective];
    uint64_t code =
        peal_call_code(args->collective, (uint32_t)args->dtype, (uint32_t)args->reduce, args->root);
    uint64_t count = identity_count(comm, args), largest = largest_block(comm, args);
    uint64_t offsets = 0;
    bool symmetric = is_symmetric(comm, args, &offsets);
    if (!memo->image || memo->code != code || memo->count != count || memo->largest != largest ||
        memo->in_place != args->in_place || memo->symmetric != symmetric ||
        memo->offsets != offsets) {
        memo->image = NULL;
        memo->code = code;
        memo->count = count;
        memo->largest = largest;
        memo->in_place = args->in_place;
        memo->symmetric = symmetric;
        memo->offsets = offsets;
        enum peal_status status = remember(comm, args, memo);
        if (status != PEAL_OK) {
            memo->image = NULL;
            return status;
        }
    }
    out->image = memo->image;
    out->bounds = bounds;
    out->nbounds = bind_sides(comm, args, memo, bounds);
    reach_peers(comm, args, memo, out);
    out->segment = memo->segment;
    out->launches = memo->launches;
    out->element = (uint32_t)peal_dtype_size(args->dtype);
    out->bytes = count_bytes(comm, args);
    out->stream = memo->stream;
    out->code = code | place_bit(args) | peal_call_by(peal_algo_index(memo->algo));
    out->count = count;
    out->signature = memo->signature;
    return PEAL_OK;
}
