/* SPDX-License-Identifier: Apache-2.0 */
/* See machine_plans.h. */
#include "comm/simulated/machine_plans.h"

#include "comm/core/reductions.h"
#include "comm/simulated/machine_kernel.h"

#include "lang/lang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel of the library, or of the machine's own algorithm. */
struct opened_kernel {
    const char *name; /* in the library; NULL: the machine's, for this collective: */
    enum peal_collective collective;
    struct peal_program *program;
    const struct peal_kernel *kernel;
};

/* A plan made once for equal calls, and the segment that was found for them. */
struct made_plan {
    const struct peal_kernel *kernel;
    uint64_t serial; /* of a user kernel; otherwise 0 */
    uint64_t count;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    uint32_t root;
    uint64_t segment;       /* 0: not known */
    struct peal_plan *plan; /* NULL: not made, because calls of this count are cut */
};

struct peal_machine_plans {
    const struct peal_machine *machine;
    PEAL_VEC(struct opened_kernel) opened;
    PEAL_VEC(struct made_plan) made;
};

/* Kernels that combine from rank 0 on, from the left: for user-defined reductions. */
static const char *const in_order[PEAL_CALL_COUNT] = {
    [PEAL_CALL_ALLREDUCE] = "allreduce_mesh",
    [PEAL_CALL_REDUCE] = "reduce_mesh",
    [PEAL_CALL_REDUCE_SCATTER] = "reduce_scatter_mesh",
    [PEAL_CALL_SCAN] = "scan_relay",
    [PEAL_CALL_EXSCAN] = "exscan_relay",
};

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
    for (size_t i = 0; i < plans->opened.len; i++)
        peal_program_close(plans->opened.at[i].program);
    peal_vec_release(&plans->made);
    peal_vec_release(&plans->opened);
    free(plans);
}

/* ---- which kernel ---- */

static enum peal_status open_kernel(struct peal_machine_plans *plans, struct opened_kernel *wanted,
                                    struct peal_diags *diags)
{
    for (size_t i = 0; i < plans->opened.len; i++) {
        const struct opened_kernel *opened = &plans->opened.at[i];
        if (opened->name == wanted->name && opened->collective == wanted->collective) {
            *wanted = *opened;
            return PEAL_OK;
        }
    }
    enum peal_contract contract = peal_collective_contract(wanted->collective);
    enum peal_status status = PEAL_OK;
    if (wanted->name)
        status = peal_program_builtin(wanted->name, diags, &wanted->program);
    else
        status = peal_machine_kernel_open(plans->machine, contract, diags, &wanted->program,
                                          &wanted->kernel);
    if (status == PEAL_OK && wanted->name)
        wanted->kernel = peal_program_kernel(wanted->program, NULL, diags);
    if (status == PEAL_OK && !wanted->kernel)
        status = PEAL_INVALID;
    struct peal_text why = {0};
    if (status == PEAL_OK && !peal_kernel_serves(wanted->kernel, contract, &why)) {
        peal_diag_error(diags, (struct peal_pos){0}, "%s", peal_text_get(&why));
        status = PEAL_INVALID;
    }
    peal_text_release(&why);
    if (status == PEAL_OK && !peal_vec_push(&plans->opened, *wanted))
        status = PEAL_NO_MEMORY;
    return status;
}

static enum peal_status fail_diags(struct peal_comm *comm, enum peal_status status,
                                   struct peal_diags *diags)
{
    struct peal_text why = {0};
    peal_diags_quote(diags, &why);
    peal_comm_fail(comm, status, "%s", why.len ? peal_text_get(&why) : peal_status_text(status));
    peal_text_release(&why);
    return status;
}

/* What this communicator was told to take comes first, then what the order of a user-defined
 * reduction needs, then the machine's choice. */
static enum peal_status find_kernel(struct peal_machine_plans *plans, struct peal_comm *comm,
                                    const struct peal_arguments *args, struct made_plan *out)
{
    const struct peal_user_kernel *user = comm->from_file[args->collective];
    const struct peal_algo *forced = comm->forced[args->collective];
    bool ordered =
        peal_comm_moves(comm, args->reduce) != PEAL_MOVES_ANY && in_order[args->collective];
    *out = (struct made_plan){
        .dtype = args->dtype, .reduce = args->reduce, .root = args->root, .count = args->count};
    if (user) {
        out->kernel = peal_user_kernel_lowered(user);
        out->serial = peal_user_kernel_serial(user);
        return PEAL_OK;
    }
    struct opened_kernel wanted = {.collective = args->collective};
    if (forced)
        wanted.name = forced->kernel;
    if (ordered && !(forced && peal_algo_keeps(forced, peal_comm_moves(comm, args->reduce))))
        wanted.name = in_order[args->collective];
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status = open_kernel(plans, &wanted, &diags);
    if (status != PEAL_OK) {
        fail_diags(comm, status, &diags);
        peal_program_close(wanted.program);
    }
    peal_diags_release(&diags);
    out->kernel = wanted.kernel;
    return status;
}

/* ---- its plan ---- */

/* Bound as a call of the collective on this host would be: by what each parameter is to the
 * contract. */
static enum peal_status bind_call(struct peal_plan_request *request,
                                  const struct peal_call_shape *shape, uint64_t count,
                                  struct peal_arena *arena, struct peal_text *why)
{
    const struct peal_kernel *kernel = request->kernel;
    struct peal_plan_arg args[PEAL_MAX_PARAMS];
    int64_t *counts = peal_arena_alloc(arena, request->bind.nranks * sizeof *counts);
    if (!counts)
        return PEAL_NO_MEMORY;
    for (uint32_t r = 0; r < request->bind.nranks; r++)
        counts[r] = (int64_t)count;
    peal_call_arguments(kernel, shape, counts, &request->bind, args);
    return peal_request_take(request, args, (size_t)kernel->nparams, arena, why);
}

static enum peal_status plan_collective(const struct peal_machine_plans *plans,
                                        struct peal_comm *comm, const struct peal_arguments *args,
                                        struct made_plan *made)
{
    uint32_t size = peal_comm_size(comm);
    struct peal_call_shape shape = peal_call_shape(args->collective, made->count, size);
    struct peal_plan_request request = {
        .kernel = made->kernel,
        .bind = {.nranks = size,
                 .rank = PEAL_NONE,
                 .dtype = args->dtype,
                 .reduce = args->reduce,
                 .formula = peal_comm_formula(comm, args->reduce),
                 .root = args->root,
                 .channel_depth = (uint32_t)plans->machine->keys.slots,
                 .slot_bytes = plans->machine->keys.slot_bytes},
        .count = (int64_t)shape.n,
    };
    struct peal_arena arena;
    struct peal_diags diags;
    struct peal_text why = {0};
    peal_arena_init(&arena, 0);
    peal_diags_init(&diags);
    bool reduces = peal_contract_info(peal_kernel_ends(made->kernel).contract)->has_reduce;
    enum peal_status status = PEAL_OK;
    if (reduces && args->reduce == PEAL_AVG && !peal_kernel_averages(made->kernel, &why))
        status = PEAL_UNSUPPORTED;
    if (status == PEAL_OK)
        status = bind_call(&request, &shape, made->count, &arena, &why);
    request.bind.symmetric = false; /* the machine addresses every rank's buffers */
    if (status == PEAL_OK &&
        !peal_machine_kernel_seat(plans->machine, made->kernel, NULL, &arena, &request.bind))
        status = PEAL_NO_MEMORY;
    if (status == PEAL_OK)
        status = peal_plan_make(&request, &diags, &made->plan);
    if (status == PEAL_OK && !peal_shape_fits(made->plan, &shape, args->root, &why)) {
        free(made->plan);
        made->plan = NULL;
        status = PEAL_INVALID;
    }
    if (status != PEAL_OK && why.len)
        peal_comm_fail(comm, status, "%s: %s", peal_collective_name(args->collective),
                       peal_text_get(&why));
    else if (status != PEAL_OK)
        fail_diags(comm, status, &diags);
    peal_text_release(&why);
    peal_diags_release(&diags);
    peal_arena_release(&arena);
    return status;
}

static struct made_plan *find(const struct peal_machine_plans *plans,
                              const struct made_plan *wanted)
{
    for (size_t i = 0; i < plans->made.len; i++) {
        struct made_plan *made = &plans->made.at[i];
        if (made->kernel == wanted->kernel && made->serial == wanted->serial &&
            made->count == wanted->count && made->dtype == wanted->dtype &&
            made->reduce == wanted->reduce && made->root == wanted->root)
            return made;
    }
    return NULL;
}

/* Keeps a plan, which may be NULL, and the segment; frees the plan if it cannot. */
static enum peal_status keep(struct peal_machine_plans *plans, struct peal_comm *comm,
                             const struct made_plan *fresh)
{
    struct made_plan *made = find(plans, fresh);
    if (made) {
        made->plan = fresh->plan ? fresh->plan : made->plan;
        made->segment = fresh->segment ? fresh->segment : made->segment;
        return PEAL_OK;
    }
    if (peal_vec_push(&plans->made, *fresh))
        return PEAL_OK;
    free(fresh->plan);
    return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a plan");
}

enum peal_status peal_machine_plans_get(struct peal_machine_plans *plans, struct peal_comm *comm,
                                        const struct peal_arguments *args, uint64_t count,
                                        const struct peal_plan **out)
{
    struct made_plan wanted;
    enum peal_status status = find_kernel(plans, comm, args, &wanted);
    if (status != PEAL_OK)
        return status;
    wanted.count = count;
    const struct made_plan *made = find(plans, &wanted);
    if (made && made->plan) {
        *out = made->plan;
        return PEAL_OK;
    }
    status = plan_collective(plans, comm, args, &wanted);
    if (status == PEAL_OK)
        status = keep(plans, comm, &wanted);
    if (status == PEAL_OK)
        *out = wanted.plan;
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
    struct peal_sim_turns twice = {.options = &options, .launches = 2};
    enum peal_status status = peal_sim_run_plan(plans->machine, plan, &twice, &diags, &sim);
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
    struct made_plan whole;
    if (!may_be_cut(plans, comm, args)) {
        *out = args->count;
        return PEAL_OK;
    }
    enum peal_status status = find_kernel(plans, comm, args, &whole);
    if (status != PEAL_OK)
        return status;
    const struct made_plan *made = find(plans, &whole);
    if (made && made->segment) {
        *out = made->segment;
        return PEAL_OK;
    }
    struct made_plan found = whole;
    found.count = first_guess(plans, comm, args);
    while (!found.plan) {
        status = plan_collective(plans, comm, args, &found);
        if (status != PEAL_OK)
            return status;
        if (found.count == 1 || try_plan(plans, found.plan, 0) != TRIAL_STOPS)
            break;
        free(found.plan);
        found.plan = NULL;
        found.count -= found.count / 2;
    }
    found.segment = whole.segment = found.count;
    status = keep(plans, comm, &found);
    if (status == PEAL_OK)
        status = keep(plans, comm, &whole);
    if (status == PEAL_OK)
        *out = found.segment;
    return status;
}

bool peal_machine_plans_wants_slots(const struct peal_machine_plans *plans,
                                    const struct peal_plan *plan)
{
    return plan->channels.count > 0 && try_plan(plans, plan, PEAL_NONE) == TRIAL_ENDS;
}
