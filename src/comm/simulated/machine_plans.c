/* SPDX-License-Identifier: Apache-2.0 */
/* See machine_plans.h. */
#include "comm/choice/reductions.h"
#include "comm/simulated/machine_plans.h"

#include "lang/lang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A plan made once for equal calls, and the segment that was found for them. */
struct made_plan {
    enum peal_collective collective;
    uint64_t count;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    uint32_t root;
    uint64_t segment;       /* 0: not known */
    struct peal_plan *plan; /* NULL: not made, because calls of this count are cut */
};

struct peal_machine_plans {
    const struct peal_machine *machine;
    PEAL_VEC(struct made_plan) made;
};

static const char *const fallback[] = {
    [PEAL_CALL_BARRIER] = "barrier_dissemination",
    [PEAL_CALL_ALLREDUCE] = "allreduce_chunked",
    [PEAL_CALL_REDUCE] = "reduce_binomial",
    [PEAL_CALL_BROADCAST] = "broadcast_binomial",
    [PEAL_CALL_ALLGATHER] = "allgather_ring",
    [PEAL_CALL_REDUCE_SCATTER] = "reduce_scatter_ring",
    [PEAL_CALL_GATHER] = "gather_flat",
    [PEAL_CALL_SCATTER] = "scatter_flat",
    [PEAL_CALL_SCAN] = "scan_doubling",
    [PEAL_CALL_EXSCAN] = "exscan_doubling",
    [PEAL_CALL_ALL_TO_ALL] = "all_to_all_pairwise",
};

/* Kernels that combine from rank 0 on, from the left: for user-defined reductions. */
static const char *const in_order[PEAL_CALL_COUNT] = {
    [PEAL_CALL_ALLREDUCE] = "allreduce_mesh",
    [PEAL_CALL_REDUCE] = "reduce_mesh",
    [PEAL_CALL_REDUCE_SCATTER] = "reduce_scatter_mesh",
    [PEAL_CALL_SCAN] = "scan_relay",
    [PEAL_CALL_EXSCAN] = "exscan_relay",
};

const char *peal_machine_plans_fallback(enum peal_collective collective)
{
    if ((size_t)collective < sizeof fallback / sizeof *fallback)
        return fallback[collective];
    return NULL;
}

struct peal_machine_plans *peal_machine_plans_new(const struct peal_machine *machine)
{
    struct peal_machine_plans *plans = calloc(1, sizeof *plans);
    if (plans)
        plans->machine = machine;
    return plans;
}

void peal_machine_plans_free(struct peal_machine_plans *plans)
{
    if (!plans)
        return;
    for (size_t i = 0; i < plans->made.len; i++)
        free(plans->made.at[i].plan);
    peal_vec_release(&plans->made);
    free(plans);
}

struct peal_call_shape peal_call_shape(enum peal_collective collective, uint64_t count,
                                       uint32_t size)
{
    uint64_t all = count * size;
    switch (collective) {
    case PEAL_CALL_ALLGATHER:
    case PEAL_CALL_GATHER:
        return (struct peal_call_shape){count, all, all};
    case PEAL_CALL_REDUCE_SCATTER:
    case PEAL_CALL_SCATTER:
        return (struct peal_call_shape){all, count, all};
    case PEAL_CALL_ALL_TO_ALL:
        return (struct peal_call_shape){all, all, all};
    case PEAL_CALL_BARRIER:
        return (struct peal_call_shape){0, 0, 0};
    default:
        return (struct peal_call_shape){count, count, count};
    }
}

/* Does the last kernel of the file implement the collective of this built-in? If so, it is left
 * open. */
static bool implements(const char *path, const char *builtin, struct peal_program **out)
{
    if (peal_program_file(path, NULL, out) != PEAL_OK)
        return false;
    size_t prefix = (size_t)(strrchr(builtin, '_') - builtin);
    const struct peal_kernel *kernel = peal_program_kernel(*out, NULL, NULL);
    if (kernel && kernel->implements && strlen(kernel->implements) == prefix &&
        strncmp(kernel->implements, builtin, prefix) == 0)
        return true;
    peal_program_close(*out);
    *out = NULL;
    return false;
}

/* The machine's algorithm: a file's kernel if it implements the collective, or where there is a
 * kernel of that name; otherwise the fallback. */
static enum peal_status open_kernel(const struct peal_machine_plans *plans,
                                    enum peal_collective collective, struct peal_diags *diags,
                                    struct peal_program **out)
{
    char name[64];
    const char *builtin = fallback[collective], *algorithm = plans->machine->keys.algorithm;
    if (peal_program_is_path(algorithm) && implements(algorithm, builtin, out))
        return PEAL_OK;
    int prefix = (int)(strrchr(builtin, '_') - builtin);
    snprintf(name, sizeof name, "%.*s_%s", prefix, builtin, algorithm);
    if (peal_program_open(name, NULL, out) == PEAL_OK)
        return PEAL_OK;
    return peal_program_open(builtin, diags, out);
}

static enum peal_status plan_collective(const struct peal_machine_plans *plans,
                                        struct peal_comm *comm, const struct peal_arguments *args,
                                        uint64_t count, struct peal_plan **out)
{
    struct peal_diags diags;
    struct peal_program *program = NULL;
    peal_diags_init(&diags);
    bool ordered =
        peal_comm_moves(comm, args->reduce) != PEAL_MOVES_ANY && in_order[args->collective];
    enum peal_status status = ordered
                                  ? peal_program_open(in_order[args->collective], &diags, &program)
                                  : open_kernel(plans, args->collective, &diags, &program);
    const struct peal_kernel *kernel =
        status == PEAL_OK ? peal_program_kernel(program, NULL, &diags) : NULL;
    int64_t n = (int64_t)peal_call_shape(args->collective, count, peal_comm_size(comm)).n;
    struct peal_plan_request request = {
        .kernel = kernel,
        .bind = {.nranks = peal_comm_size(comm),
                 .rank = PEAL_NONE,
                 .dtype = args->dtype,
                 .reduce = args->reduce,
                 .formula = peal_comm_formula(comm, args->reduce),
                 .root = args->root,
                 .channel_depth = (uint32_t)plans->machine->keys.slots,
                 .slot_bytes = plans->machine->keys.slot_bytes},
        .count = n,
    };
    status = PEAL_INVALID;
    if (kernel)
        status = peal_plan_make(&request, &diags, out);
    if (status != PEAL_OK) {
        struct peal_text why = {0};
        peal_diags_print(&diags, false, &why);
        peal_comm_fail(comm, status, "%s", peal_text_get(&why));
        peal_text_release(&why);
    }
    peal_program_close(program);
    peal_diags_release(&diags);
    return status;
}

static struct made_plan *find(const struct peal_machine_plans *plans,
                              const struct peal_arguments *args, uint64_t count)
{
    for (size_t i = 0; i < plans->made.len; i++) {
        struct made_plan *made = &plans->made.at[i];
        if (made->collective == args->collective && made->count == count &&
            made->dtype == args->dtype && made->reduce == args->reduce && made->root == args->root)
            return made;
    }
    return NULL;
}

/* Keeps a plan, which may be NULL, and the segment; frees the plan if it cannot. */
static enum peal_status keep(struct peal_machine_plans *plans, struct peal_comm *comm,
                             const struct peal_arguments *args, const struct made_plan *fresh)
{
    struct made_plan *made = find(plans, args, fresh->count);
    if (made) {
        made->plan = fresh->plan ? fresh->plan : made->plan;
        made->segment = fresh->segment ? fresh->segment : made->segment;
        return PEAL_OK;
    }
    struct made_plan row = {args->collective, fresh->count,   args->dtype, args->reduce,
                            args->root,       fresh->segment, fresh->plan};
    if (peal_vec_push(&plans->made, row))
        return PEAL_OK;
    free(fresh->plan);
    return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a plan");
}

enum peal_status peal_machine_plans_get(struct peal_machine_plans *plans, struct peal_comm *comm,
                                        const struct peal_arguments *args, uint64_t count,
                                        const struct peal_plan **out)
{
    const struct made_plan *made = find(plans, args, count);
    if (made && made->plan) {
        *out = made->plan;
        return PEAL_OK;
    }
    struct made_plan fresh = {.count = count};
    enum peal_status status = plan_collective(plans, comm, args, count, &fresh.plan);
    if (status == PEAL_OK)
        status = keep(plans, comm, args, &fresh);
    if (status == PEAL_OK)
        *out = fresh.plan;
    return status;
}

enum trial { TRIAL_ENDS, TRIAL_STOPS, TRIAL_FAILS };

/* Two launches in a row, without data. depth: slots, 0 = the plan's. */
static enum trial try_plan(const struct peal_machine_plans *plans, const struct peal_plan *plan,
                           uint32_t depth)
{
    struct peal_sim_options options = {.depth = depth};
    struct peal_sim *sim = NULL;
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status = peal_sim_new(plans->machine, plan->nranks, &options, &diags, &sim);
    for (int i = 0; i < 2; i++) {
        if (status != PEAL_OK)
            break;
        status = peal_sim_launch(sim, plan, NULL, &diags);
    }
    if (status == PEAL_OK)
        status = peal_sim_run(sim);
    enum trial trial = TRIAL_FAILS;
    if (status == PEAL_OK)
        trial = peal_sim_deadlock(sim) ? TRIAL_STOPS : TRIAL_ENDS;
    peal_sim_free(sim);
    peal_diags_release(&diags);
    return trial;
}

/* Can a payload of the call be larger than a slot? */
static bool may_be_cut(const struct peal_machine_plans *plans, const struct peal_comm *comm,
                       const struct peal_arguments *args)
{
    uint64_t slot = plans->machine->keys.slot_bytes;
    uint64_t n = peal_call_shape(args->collective, args->count, peal_comm_size(comm)).n;
    return slot > 0 && n > slot / peal_dtype_size(args->dtype);
}

/* Where to begin to halve: no larger than a ring needs that sends a rank's part four times the slots
 * at once, so that making plans costs the same for any count. */
static uint64_t first_guess(const struct peal_machine_plans *plans, const struct peal_comm *comm,
                            const struct peal_arguments *args)
{
    uint64_t slots = 4 * plans->machine->keys.slots;
    uint64_t per_rank = plans->machine->keys.slot_bytes * slots / peal_dtype_size(args->dtype);
    uint64_t blocks = peal_call_shape(args->collective, 1, peal_comm_size(comm)).n;
    uint64_t max_count = blocks > 1 ? per_rank : per_rank * peal_comm_size(comm);
    if (args->count > max_count && max_count > 0)
        return max_count;
    return args->count;
}

enum peal_status peal_machine_plans_segment(struct peal_machine_plans *plans,
                                            struct peal_comm *comm,
                                            const struct peal_arguments *args, uint64_t *out)
{
    const struct made_plan *made = find(plans, args, args->count);
    if (!may_be_cut(plans, comm, args)) {
        *out = args->count;
        return PEAL_OK;
    }
    if (made && made->segment) {
        *out = made->segment;
        return PEAL_OK;
    }
    struct made_plan found = {.count = first_guess(plans, comm, args)};
    while (!found.plan) {
        enum peal_status status = plan_collective(plans, comm, args, found.count, &found.plan);
        if (status != PEAL_OK)
            return status;
        if (found.count == 1 || try_plan(plans, found.plan, 0) != TRIAL_STOPS)
            break;
        free(found.plan);
        found.plan = NULL;
        found.count -= found.count / 2;
    }
    found.segment = found.count;
    enum peal_status status = keep(plans, comm, args, &found);
    struct made_plan whole = {.count = args->count, .segment = found.segment};
    if (status == PEAL_OK)
        status = keep(plans, comm, args, &whole);
    if (status == PEAL_OK)
        *out = found.segment;
    return status;
}

bool peal_machine_plans_wants_slots(const struct peal_machine_plans *plans,
                                    const struct peal_plan *plan)
{
    return plan->channels.count > 0 && try_plan(plans, plan, PEAL_NONE) == TRIAL_ENDS;
}
