/* SPDX-License-Identifier: Apache-2.0 */
/* peal_simulate: one kernel on a modelled machine, with the caller's buffers. The arguments are
 * bound by name, the plan is made and checked against the buffers, then launched as often as asked.
 * All of it belongs to one `struct alone_run`, which is released in one place. */
#include "base/base.h"
#include "comm/comm.h"
#include "import/import.h"
#include "lang/lang.h"
#include "plan/plan.h"
#include "sim/sim.h"

#include <peal/simulate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LAUNCHES = 65536 };

/* One call of peal_simulate. */
struct alone_run {
    const struct peal_simulate *request;
    struct peal_simulate own; /* what `request` is, with the ranks of the machine */
    struct peal_diags diags;
    struct peal_text why; /* an error that is not in `diags` */
    struct peal_program *program;
    const struct peal_kernel *kernel; /* NULL: the text is a recording */
    struct peal_source recording;
    struct peal_import *import;
    struct peal_machine *machine;
    struct peal_plan *plan;
    struct peal_sim *sim;
    struct peal_plan_request plan_request;
    struct peal_arena arena;
    struct peal_formula formula; /* of a user-defined reduction */
    bool has_data, lacks_data;
};

static enum peal_status refuse(struct alone_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum peal_status refuse(struct alone_run *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    peal_text_vprintf(&run->why, format, args);
    va_end(args);
    return PEAL_INVALID;
}

/* ---- arguments ---- */

static enum peal_status take_reduction(struct alone_run *run, const struct peal_simulate_arg *arg)
{
    struct peal_bind *bind = &run->plan_request.bind;
    if (run->request->reduction) {
        bind->reduce = PEAL_USER_REDUCTION;
        bind->formula = &run->formula;
        return peal_formula_given(run->kernel, run->request->reduction, &run->formula, &run->why);
    }
    if (peal_reduce_is_user(arg->reduce))
        return refuse(run, "a user-defined reduction is given as 'reduction'");
    if ((unsigned)arg->reduce >= PEAL_REDUCTIONS)
        return refuse(run, "there is no operation %d", (int)arg->reduce);
    bind->reduce = arg->reduce;
    return PEAL_OK;
}

/* What the binder has to know of an argument. Values of a local array are those of every rank. */
static enum peal_status read_argument(struct alone_run *run, const struct peal_symbol *param,
                                      const struct peal_simulate_arg *arg,
                                      struct peal_plan_arg *out)
{
    const struct peal_elem *elem = &param->type.elem;
    switch (arg->kind) {
    case PEAL_ARG_BUFFER:
        run->has_data |= arg->data != NULL;
        run->lacks_data |= arg->data == NULL;
        *out = (struct peal_plan_arg){
            .kind = PEAL_GIVES_BUFFER,
            .elements =
                arg->bytes / peal_dtype_size(elem->generic ? run->request->dtype : elem->dtype)};
        return PEAL_OK;
    case PEAL_ARG_INT:
        *out = (struct peal_plan_arg){.kind = PEAL_GIVES_INT, .values = &arg->value, .nvalues = 1};
        return PEAL_OK;
    case PEAL_ARG_INTS: {
        size_t members = param->is_local ? run->request->ranks : 1;
        if ((!arg->values && arg->nvalues) || arg->nvalues % members != 0)
            return refuse(run, "'%s' has %zu values for %zu ranks", param->name, arg->nvalues,
                          members);
        *out = (struct peal_plan_arg){
            .kind = PEAL_GIVES_INTS, .values = arg->values, .nvalues = arg->nvalues / members};
        return PEAL_OK;
    }
    case PEAL_ARG_REDUCE:
        *out = (struct peal_plan_arg){.kind = PEAL_GIVES_REDUCE};
        return take_reduction(run, arg);
    }
    return refuse(run, "the argument for '%s' is of no known kind", param->name);
}

/* One value of a local int is for all ranks. */
static enum peal_status spread_locals(struct alone_run *run, struct peal_plan_arg *args)
{
    for (size_t i = 0; i < run->request->nargs; i++) {
        if (args[i].kind != PEAL_GIVES_INT || !run->kernel->params[i]->is_local)
            continue;
        int64_t *all = peal_arena_alloc(&run->arena, run->request->ranks * sizeof *all);
        if (!all)
            return PEAL_NO_MEMORY;
        for (uint32_t r = 0; r < run->request->ranks; r++)
            all[r] = args[i].values[0];
        args[i].values = all;
    }
    return PEAL_OK;
}

static enum peal_status bind(struct alone_run *run)
{
    const struct peal_simulate *request = run->request;
    struct peal_plan_arg args[PEAL_MAX_PARAMS];
    enum peal_status status = PEAL_OK;
    struct peal_bind_value *dims =
        peal_arena_alloc(&run->arena, (request->ndims + 1) * sizeof *dims);
    size_t nparams = (size_t)run->kernel->nparams;
    if (request->nargs > nparams || (!request->args && request->nargs > 0))
        return refuse(run, "'%s' takes %zu arguments, not %zu", run->kernel->name, nparams,
                      request->nargs);
    if (!dims)
        return PEAL_NO_MEMORY;
    for (size_t i = 0; i < request->ndims; i++)
        dims[i] =
            (struct peal_bind_value){request->dims[i].name, &request->dims[i].value, 1, false};
    run->plan_request =
        (struct peal_plan_request){.kernel = run->kernel,
                                   .bind = {.nranks = request->ranks,
                                            .rank = PEAL_NONE,
                                            .dtype = request->dtype,
                                            .in_place = request->in_place != 0,
                                            .channel_depth = (uint32_t)run->machine->keys.slots,
                                            .slot_bytes = run->machine->keys.slot_bytes},
                                   .given = dims,
                                   .ngiven = request->ndims,
                                   .count = -1};
    for (size_t i = 0; i < request->nargs; i++) {
        if (status == PEAL_OK)
            status = read_argument(run, run->kernel->params[i], &request->args[i], &args[i]);
    }
    if (status == PEAL_OK && run->has_data && run->lacks_data)
        status = refuse(run, "some buffers have data and some have none");
    if (status == PEAL_OK)
        status = spread_locals(run, args);
    if (status == PEAL_OK)
        status =
            peal_request_take(&run->plan_request, args, request->nargs, &run->arena, &run->why);
    return status;
}

/* Every buffer must have the bytes that the plan touches. */
static enum peal_status check_sizes(struct alone_run *run,
                                    const struct peal_simulate_arg *const *buffers, uint32_t count)
{
    const struct peal_buf *bufs = peal_plan_bufs(run->plan);
    for (uint32_t b = 0; b < run->plan->bufs.count; b++) {
        if (bufs[b].kind != PEAL_BUF_PARAM || bufs[b].param >= count)
            continue;
        const struct peal_simulate_arg *arg = buffers[bufs[b].param];
        uint64_t size = peal_dtype_size((enum peal_dtype)bufs[b].dtype);
        for (uint32_t r = 0; r < run->request->ranks; r++) {
            uint64_t need = peal_plan_len(run->plan, r, b) * size;
            if (need > arg->bytes || (need && arg->data && !arg->data[r]))
                return refuse(run, "'%s' needs %llu bytes on rank %u, there are %llu",
                              peal_plan_string(run->plan, bufs[b].name), (unsigned long long)need,
                              r, (unsigned long long)arg->bytes);
        }
    }
    return PEAL_OK;
}

/* In place, the input and output of the contract must be the same memory, and the contract must
 * have such a plan; otherwise a buffer that is written shares no memory with another. Contracts
 * whose input or output is a part of the other are not examined. */
static enum peal_status check_overlap(struct alone_run *run)
{
    const struct peal_simulate *request = run->request;
    enum peal_in_place kind = peal_contract_info(peal_kernel_ends(run->kernel).contract)->in_place;
    if (request->in_place && kind == PEAL_IN_PLACE_NEVER)
        return refuse(run, "'%s' has no in-place plan", run->kernel->name);
    bool parts = request->in_place && kind != PEAL_IN_PLACE_SAME;
    uint32_t compared = run->has_data && !parts ? request->ranks : 0;
    for (uint32_t r = 0; r < compared; r++) {
        struct peal_range ranges[PEAL_MAX_PARAMS] = {{0}};
        const struct peal_symbol *which[2] = {NULL, NULL};
        for (size_t i = 0; i < request->nargs; i++) {
            if (request->args[i].kind == PEAL_ARG_BUFFER && request->args[i].data[r])
                ranges[i] = (struct peal_range){request->args[i].data[r], request->args[i].bytes};
        }
        enum peal_sharing sharing =
            peal_kernel_sharing(run->kernel, ranges, request->nargs, r, request->ranks, which);
        struct peal_ends ends = peal_kernel_ends(run->kernel);
        if (request->in_place && ends.x != ends.y && sharing != PEAL_IN_PLACE)
            return refuse(run, "in place, '%s' and '%s' have the same data on each rank",
                          ends.x->name, ends.y->name);
        if (!request->in_place && sharing != PEAL_APART)
            return refuse(run, "the data of '%s' and '%s' overlaps, and the call is not in place",
                          which[0]->name, which[1]->name);
    }
    return PEAL_OK;
}

/* ---- running ---- */

static enum peal_status launch(struct alone_run *run)
{
    const struct peal_simulate *request = run->request;
    const struct peal_simulate_arg *args[PEAL_MAX_PARAMS];
    uint32_t count = 0, launches = request->launches ? request->launches : 1;
    if (request->nargs > PEAL_MAX_PARAMS)
        return refuse(run, "%zu arguments, at most %d", request->nargs, PEAL_MAX_PARAMS);
    for (size_t i = 0; i < request->nargs; i++) {
        if (request->args[i].kind == PEAL_ARG_BUFFER)
            args[count++] = &request->args[i];
    }
    enum peal_status status = check_sizes(run, args, count);
    if (status == PEAL_OK && run->kernel)
        status = check_overlap(run);
    if (status != PEAL_OK)
        return status;
    void **buffers = calloc((size_t)request->ranks * count + 1, sizeof *buffers);
    if (!buffers)
        return PEAL_NO_MEMORY;
    for (uint32_t r = 0; r < request->ranks && run->has_data; r++) {
        for (uint32_t i = 0; i < count; i++)
            buffers[(size_t)r * count + i] = args[i]->data[r];
    }
    bool data = run->has_data || count == 0;
    struct peal_sim_options options = {.data = data ? PEAL_SIM_DATA_FULL : PEAL_SIM_DATA_OFF};
    struct peal_sim_args given = {.buffers = data ? buffers : NULL};
    struct peal_sim_turns turns = {&options, &given, launches};
    status = peal_sim_run_plan(run->machine, run->plan, &turns, &run->diags, &run->sim);
    if (status == PEAL_OK && peal_sim_deadlock(run->sim)) {
        peal_sim_deadlock_print(run->sim, &run->why);
        status = PEAL_TIMEOUT;
    }
    if (status == PEAL_OK)
        status = peal_sim_sync(run->sim);
    free(buffers);
    return status;
}

/* A recording's plan has a buffer for each region that is a parameter; the recording may also ask
 * something of the machine. */
static enum peal_status take_recording(struct alone_run *run)
{
    const struct peal_simulate *request = run->request;
    uint32_t params = 0;
    run->recording = (struct peal_source){
        .name = "recording", .text = request->text, .len = strlen(request->text)};
    enum peal_status status = peal_import_open(&run->recording, &run->diags, &run->import);
    if (status != PEAL_OK)
        return status;
    const struct peal_import_facts *facts = peal_import_facts(run->import);
    if (facts->nranks != request->ranks)
        return refuse(run, "the recording is for %u ranks, not %u", facts->nranks, request->ranks);
    status = peal_machine_set(run->machine, facts->settings, facts->nsettings, &run->diags);
    if (status == PEAL_OK)
        status = peal_import_plan(run->import, &(struct peal_import_options){0}, &run->diags,
                                  &run->plan);
    if (status != PEAL_OK)
        return status;
    for (size_t i = 0; i < request->nargs; i++) {
        const struct peal_simulate_arg *arg = &request->args[i];
        if (arg->kind != PEAL_ARG_BUFFER)
            return refuse(run, "the arguments of a recording are buffers");
        run->has_data |= arg->data != NULL;
        run->lacks_data |= arg->data == NULL;
    }
    for (uint32_t b = 0; b < run->plan->bufs.count; b++)
        params += peal_plan_bufs(run->plan)[b].kind == PEAL_BUF_PARAM;
    if (params != request->nargs)
        return refuse(run, "the recording has %u buffers, not %zu", params, request->nargs);
    if (run->has_data && run->lacks_data)
        return refuse(run, "some buffers have data and some have none");
    if (run->has_data && request->launches > 1 && peal_plan_starts_at_zero(run->plan))
        return refuse(run, "with data: the recording is of one launch on a zeroed window");
    struct peal_text why = {0};
    if (run->has_data && !peal_plan_fits(run->plan, &why))
        status = refuse(run, "with data: %s", peal_text_get(&why));
    peal_text_release(&why);
    return status;
}

static enum peal_status set_up(struct alone_run *run)
{
    const struct peal_simulate *request = run->request;
    if (!request->machine || (!request->text && !request->name))
        return refuse(run, "no machine, or no kernel");
    if ((unsigned)request->dtype >= PEAL_DTYPES)
        return refuse(run, "there is no data type %d", (int)request->dtype);
    if (request->launches > MAX_LAUNCHES)
        return refuse(run, "%u launches, at most %d", request->launches, MAX_LAUNCHES);
    enum peal_status status = peal_machine_open(request->machine, &run->diags, &run->machine);
    if (status == PEAL_OK)
        status = peal_machine_kernels_check(run->machine, &run->diags);
    if (status == PEAL_OK && request->ranks == 0)
        run->own.ranks = peal_machine_ranks(run->machine);
    if (status == PEAL_OK && request->ranks > run->machine->pes)
        return refuse(run, "%u ranks on a machine of %u PEs", request->ranks, run->machine->pes);
    if (status == PEAL_OK && request->text &&
        peal_import_format(request->text, strlen(request->text)) == PEAL_FORMAT_RECORDING)
        return take_recording(run);
    if (status == PEAL_OK && request->text)
        status = peal_program_text("kernel", request->text, strlen(request->text), &run->diags,
                                   &run->program);
    else if (status == PEAL_OK)
        status = peal_program_open(request->name, &run->diags, &run->program);
    if (status != PEAL_OK)
        return status;
    run->kernel = peal_program_kernel(run->program, request->name, &run->diags);
    if (!run->kernel)
        return PEAL_INVALID;
    status = bind(run);
    if (status == PEAL_OK && !peal_machine_kernel_seat(run->machine, run->kernel, NULL, &run->arena,
                                                       &run->plan_request.bind))
        status = PEAL_NO_MEMORY;
    if (status == PEAL_OK)
        status = peal_plan_make(&run->plan_request, &run->diags, &run->plan);
    return status;
}

static void answer(const struct alone_run *run, struct peal_simulated *out)
{
    const struct peal_sim_stats *s = peal_sim_stats(run->sim);
    *out = (struct peal_simulated){.time_ps = s->time,
                                   .issue_ps = s->causes[PEAL_CAUSE_ISSUE],
                                   .latency_ps = s->causes[PEAL_CAUSE_LATENCY],
                                   .serial_ps = s->causes[PEAL_CAUSE_SERIAL],
                                   .queue_ps = s->causes[PEAL_CAUSE_QUEUE],
                                   .credit_ps = s->causes[PEAL_CAUSE_CREDIT],
                                   .memory_ps = s->causes[PEAL_CAUSE_MEMORY],
                                   .math_ps = s->causes[PEAL_CAUSE_MATH],
                                   .wake_ps = s->causes[PEAL_CAUSE_WAKE],
                                   .messages = s->messages,
                                   .transfers = s->transfers,
                                   .bytes = s->bytes,
                                   .credit_stalls = s->credit_stalls,
                                   .events = s->events,
                                   .hash = s->hash};
    if (!run->request->rank_ps)
        return;
    for (uint32_t r = 0; r < run->request->ranks; r++) {
        struct peal_sim_rank_stats rank;
        peal_sim_rank(run->sim, r, &rank);
        run->request->rank_ps[r] = rank.end;
    }
}

static enum peal_status simulate(const struct peal_simulate *request, struct peal_simulated *out)
{
    struct alone_run *run = calloc(1, sizeof *run);
    if (!run)
        return PEAL_NO_MEMORY;
    run->own = *request;
    run->request = &run->own;
    peal_diags_init(&run->diags);
    peal_arena_init(&run->arena, 0);
    enum peal_status status = set_up(run);
    if (status == PEAL_OK)
        status = launch(run);
    if (status == PEAL_OK)
        answer(run, out);
    if (request->error && request->error_cap) {
        if (status != PEAL_OK && !run->why.len)
            peal_diags_quote(&run->diags, &run->why);
        const char *words;
        if (run->why.len)
            words = peal_text_get(&run->why);
        else
            words = peal_status_text(status);
        snprintf(request->error, request->error_cap, "%s", status == PEAL_OK ? "" : words);
    }
    peal_sim_free(run->sim);
    free(run->plan);
    peal_import_close(run->import);
    peal_program_close(run->program);
    peal_machine_free(run->machine);
    peal_text_release(&run->why);
    peal_diags_release(&run->diags);
    peal_arena_release(&run->arena);
    free(run);
    return status;
}

enum peal_status peal_simulate_ranks(const char *machine, uint32_t *ranks)
{
    struct peal_machine *opened = NULL;
    struct peal_diags diags;
    if (!machine || !ranks)
        return PEAL_INVALID;
    peal_diags_init(&diags);
    enum peal_status status = peal_machine_open(machine, &diags, &opened);
    if (status == PEAL_OK)
        *ranks = peal_machine_ranks(opened);
    peal_machine_free(opened);
    peal_diags_release(&diags);
    return status;
}

enum peal_status peal_simulate(const struct peal_simulate *request, struct peal_simulated *out,
                               size_t out_size)
{
    void *made, *made_args = NULL;
    struct peal_simulated answered;
    if (!request || !out)
        return PEAL_INVALID;
    const struct peal_simulate *known =
        peal_growth_view(request, 1, PEAL_SIMULATE_FIRST_BYTES, sizeof *known, &made);
    if (!known)
        return PEAL_UNSUPPORTED;
    struct peal_simulate own = *known;
    free(made);
    const struct peal_simulate_arg *given = own.args;
    own.args = peal_growth_view(given, own.nargs, PEAL_SIMULATE_ARG_FIRST_BYTES, sizeof *given,
                                &made_args);
    enum peal_status status = PEAL_UNSUPPORTED;
    if (!given || own.args)
        status = simulate(&own, &answered);
    if (status == PEAL_OK)
        peal_growth_write(out, out_size, &answered, sizeof answered);
    free(made_args);
    return status;
}
