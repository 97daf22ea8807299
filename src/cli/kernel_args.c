/* SPDX-License-Identifier: Apache-2.0 */
/* Binding a kernel's dimensions and parameters from the command line. */
#include "cli/kernel_args.h"

#include "cli/museum/museum.h"
#include "sim/sim.h"

#include <string.h>

bool peal_kernel_one(const struct peal_cli *cli, const struct peal_ints *list, const char *name,
                     int64_t fallback, int64_t *out)
{
    if (list->len > 1) {
        peal_cli_usage(cli, "--%s takes one value here", name);
        return false;
    }
    if (list->len == 0 && fallback < 0) {
        peal_cli_usage(cli, "--%s is missing", name);
        return false;
    }
    *out = list->len ? list->at[0] : fallback;
    return true;
}

/* The machine of -m. NULL after a message. */
static struct peal_machine *open_machine(const struct peal_cli *cli, const char *path)
{
    struct peal_machine *machine = NULL;
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status = peal_machine_open(path, &diags, &machine);
    if (status != PEAL_OK)
        peal_cli_diags(cli, status, &diags);
    peal_diags_release(&diags);
    return machine;
}

uint32_t peal_kernel_machine_ranks(const struct peal_cli *cli, const char *path)
{
    struct peal_machine *machine = open_machine(cli, path);
    uint32_t ranks = 0;
    if (machine)
        ranks = peal_machine_ranks(machine);
    peal_machine_free(machine);
    return ranks;
}

void peal_kernel_take_machine(struct peal_kernel_options *options, const char *platform)
{
    if (!options->machine && !options->nodes && !options->ranks.all)
        options->machine = platform;
}

/* Where a machine has its ranks: those of -n, or all that it is made for. */
static bool place_on_machine(const struct peal_cli *cli, const struct peal_kernel_options *options,
                             struct peal_places *out)
{
    struct peal_machine *machine = open_machine(cli, options->machine);
    if (!machine)
        return false;
    int64_t nranks = peal_machine_ranks(machine);
    for (size_t i = 0; i < options->ranks.len; i++)
        nranks = i && options->ranks.at[i] < nranks ? nranks : options->ranks.at[i];
    struct peal_machine_group all = {(uint32_t)nranks, (uint32_t)nranks, NULL};
    bool good = nranks <= machine->pes;
    if (!good)
        peal_cli_usage(cli, "%lld ranks on a machine of %u PEs", (long long)nranks, machine->pes);
    else if (!(good = peal_machine_places(machine, &all, cli->arena, out)))
        peal_cli_fail(cli, "out of memory");
    peal_machine_free(machine);
    return good;
}

bool peal_kernel_placement(const struct peal_cli *cli, const struct peal_kernel_options *options,
                           struct peal_places *out)
{
    struct peal_text error = {0};
    *out = (struct peal_places){0};
    if (!options->nodes)
        return !options->machine || place_on_machine(cli, options, out);
    bool good = peal_placement_parse(options->nodes, cli->arena, out, &error);
    if (!good)
        peal_cli_usage(cli, "--nodes: %s", peal_text_get(&error));
    peal_text_release(&error);
    return good;
}

bool peal_kernel_places(const struct peal_cli *cli, const struct peal_kernel_options *options,
                        uint32_t placed, int64_t nranks)
{
    if (!options->nodes || placed == nranks)
        return true;
    peal_cli_usage(cli, "--nodes %s places %u ranks, and there are %lld", options->nodes, placed,
                   (long long)nranks);
    return false;
}

bool peal_kernel_ranks(const struct peal_cli *cli, const struct peal_kernel_options *options,
                       int64_t fallback, int64_t *out)
{
    struct peal_places places;
    if (!peal_kernel_placement(cli, options, &places))
        return false;
    return peal_kernel_one(cli, &options->ranks, "ranks", places.nranks ? places.nranks : fallback,
                           out);
}

enum peal_status peal_kernel_program(const char *argument, struct peal_diags *diags,
                                     struct peal_program **out)
{
    const struct peal_source *exhibit = peal_museum_instead_of(argument);
    if (exhibit)
        return peal_program_text(argument, exhibit->text, exhibit->len, diags, out);
    return peal_program_open(argument, diags, out);
}

const struct peal_kernel *peal_kernel_open_quietly(const struct peal_cli *cli, const char *argument,
                                                   const struct peal_kernel_options *options,
                                                   struct peal_diags *diags,
                                                   struct peal_program **program)
{
    const struct peal_kernel *kernel = NULL;
    struct peal_program *opened = NULL;
    enum peal_status status = peal_kernel_program(argument, diags, &opened);
    if (status == PEAL_OK) {
        kernel = peal_program_kernel(opened, options->kernel, diags);
        status = PEAL_INVALID;
        if (kernel)
            status = PEAL_OK;
    }
    if (status == PEAL_OK) {
        *program = opened;
    } else {
        peal_cli_diags(cli, status, diags);
        peal_program_close(opened);
    }
    return kernel;
}

const struct peal_kernel *peal_kernel_open(const struct peal_cli *cli, const char *argument,
                                           const struct peal_kernel_options *options,
                                           struct peal_program **program)
{
    struct peal_diags diags;
    peal_diags_init(&diags);
    const struct peal_kernel *kernel =
        peal_kernel_open_quietly(cli, argument, options, &diags, program);
    peal_diags_release(&diags);
    size_t kernels = 0;
    if (!kernel || options->kernel || !peal_program_is_path(argument))
        return kernel;
    for (const struct peal_kernel *k = peal_program_module(*program)->kernels; k; k = k->next)
        kernels++;
    if (kernels > 1)
        peal_cli_note(cli, "kernel '%s', the last of %zu in '%s'; --kernel names another",
                      kernel->name, kernels, argument);
    return kernel;
}

static bool read_pair(const struct peal_cli *cli, const struct peal_kernel *kernel,
                      const struct peal_pair *pair, struct peal_bind_value *out)
{
    struct peal_text error = {0};
    struct peal_ints ints;
    bool is_known = peal_request_has(kernel, pair->key);
    bool good = is_known && peal_ints_parse(pair->value, cli->arena, &ints, &error);
    if (!is_known) {
        peal_request_reject(kernel, pair->key, &error);
        peal_cli_usage(cli, "--set: %s", peal_text_get(&error));
    } else if (!good) {
        peal_cli_usage(cli, "--set %s: %s", pair->key, peal_text_get(&error));
    } else {
        *out = (struct peal_bind_value){pair->key, ints.at, ints.len, false};
    }
    peal_text_release(&error);
    return good;
}

static void no_such_operation(const struct peal_cli *cli, const struct peal_kernel *kernel,
                              const char *name)
{
    const char *meant = NULL;
    for (int i = 0; i < PEAL_REDUCTIONS; i++)
        meant = peal_nearer(name, meant, peal_reduce_name((enum peal_reduction)i));
    uint32_t nformulas = kernel ? kernel->nformulas : 0;
    for (uint32_t i = 0; i < nformulas; i++)
        meant = peal_nearer(name, meant, kernel->formulas[i].name);
    if (meant)
        peal_cli_usage(cli, "--op: '%s' is not a reduce operation; did you mean '%s'?", name,
                       meant);
    else
        peal_cli_usage(cli,
                       "--op: '%s' is not a reduce operation; user-defined ones are of the "
                       "kernel's file, or FILE.peal:NAME",
                       name);
}

/* The reduction `name` of a file, in the arena. NULL after a message. */
static const struct peal_formula *read_formula(const struct peal_cli *cli, const char *path,
                                               const char *name)
{
    struct peal_formula *formula = NULL;
    struct peal_program *program = NULL;
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status = peal_program_file(path, &diags, &program);
    if (status != PEAL_OK) {
        peal_cli_diags(cli, status, &diags);
    } else {
        const struct peal_reduce_decl *decl =
            peal_module_find_reduction(peal_program_module(program), name);
        if (!decl)
            peal_cli_usage(cli, "--op: there is no reduction '%s' in '%s'", name, path);
        else if (!(formula = peal_arena_alloc(cli->arena, sizeof *formula)))
            peal_cli_fail(cli, "out of memory");
        else
            *formula = decl->formula;
    }
    peal_program_close(program);
    peal_diags_release(&diags);
    return formula;
}

/* From the kernel's own file, or from the one that is named. False after a message. */
static bool bind_operation(const struct peal_cli *cli, const struct peal_kernel *kernel,
                           const struct peal_operation *op, struct peal_bind *bind)
{
    bind->reduce = op->reduce;
    if (!op->user)
        return true;
    const char *colon = strrchr(op->user, ':');
    if (colon) {
        char *path = peal_arena_copy(cli->arena, op->user, (size_t)(colon - op->user));
        bind->formula = path ? read_formula(cli, path, colon + 1) : NULL;
        return bind->formula != NULL;
    }
    for (uint32_t i = 0; i < kernel->nformulas; i++) {
        if (strcmp(kernel->formulas[i].name, op->user) == 0) {
            bind->formula = &kernel->formulas[i];
            return true;
        }
    }
    no_such_operation(cli, kernel, op->user);
    return false;
}

bool peal_operation_is_known(const struct peal_cli *cli, const struct peal_operation *op)
{
    if (op->user)
        no_such_operation(cli, NULL, op->user);
    return !op->user;
}

int64_t peal_kernel_root(const struct peal_kernel_options *options)
{
    if (options->roots.len)
        return options->roots.at[0];
    return 0;
}

size_t peal_kernel_nth_root(const struct peal_kernel_options *options, size_t i,
                            struct peal_kernel_options *out)
{
    *out = *options;
    if (!options->roots.len)
        return 1;
    out->roots = (struct peal_ints){.at = &options->roots.at[i], .len = 1};
    return options->roots.len;
}

/* -m: the slots of the machine's queues, unless they are given. */
static bool take_queues(const struct peal_cli *cli, const struct peal_kernel_options *options,
                        struct peal_bind *bind)
{
    struct peal_machine *machine = options->machine ? open_machine(cli, options->machine) : NULL;
    if (!options->machine)
        return true;
    if (!machine)
        return false;
    if (!options->depth)
        bind->channel_depth = (uint32_t)machine->keys.slots;
    if (!options->slot_bytes)
        bind->slot_bytes = machine->keys.slot_bytes;
    peal_machine_free(machine);
    return true;
}

bool peal_kernel_request(const struct peal_cli *cli, const struct peal_kernel *kernel,
                         const struct peal_kernel_options *options, struct peal_plan_request *out)
{
    struct peal_places places;
    if (!peal_kernel_placement(cli, options, &places))
        return false;
    bool is_placed = options->nodes || peal_kernel_is_placed(kernel);
    struct peal_bind_value *given =
        peal_arena_alloc(cli->arena, (options->set.len + 1) * sizeof *given);
    if (!given) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    for (size_t i = 0; i < options->set.len; i++) {
        if (!read_pair(cli, kernel, &options->set.at[i], &given[i]))
            return false;
    }
    *out = (struct peal_plan_request){
        .kernel = kernel,
        .bind = {.rank = PEAL_NONE,
                 .nranks = places.nranks,
                 .nodes = is_placed ? places.nodes : NULL,
                 .cubes = is_placed ? places.cubes : NULL,
                 .dtype = options->dtype,
                 .root = peal_kernel_root(options),
                 .in_place = options->in_place,
                 .channel_depth = (uint32_t)options->depth,
                 .slot_bytes = options->slot_bytes},
        .given = given,
        .ngiven = options->set.len,
    };
    return take_queues(cli, options, &out->bind) &&
           bind_operation(cli, kernel, &options->op, &out->bind);
}

bool peal_kernel_request_one(const struct peal_cli *cli, const struct peal_kernel *kernel,
                             const struct peal_kernel_options *options, uint32_t nranks,
                             int64_t count, struct peal_plan_request *out)
{
    if (!peal_kernel_request(cli, kernel, options, out))
        return false;
    if (!peal_kernel_places(cli, options, out->bind.nranks, nranks))
        return false;
    if (options->roots.len > 1) {
        peal_cli_usage(cli, "--root takes one value here");
        return false;
    }
    if (peal_kernel_root(options) >= nranks) {
        peal_cli_usage(cli, "--root %lld is not a rank: there are %u",
                       (long long)peal_kernel_root(options), nranks);
        return false;
    }
    out->bind.nranks = nranks;
    out->count = count;
    return true;
}

bool peal_kernel_bind(const struct peal_cli *cli, const struct peal_kernel *kernel,
                      const struct peal_kernel_options *options, uint32_t nranks, int64_t count,
                      struct peal_bind *out)
{
    struct peal_plan_request request;
    struct peal_diags diags;
    if (!peal_kernel_request_one(cli, kernel, options, nranks, count, &request))
        return false;
    peal_diags_init(&diags);
    enum peal_status status = peal_request_bind(&request, cli->arena, &diags, out);
    peal_diags_release(&diags);
    if (status != PEAL_OK)
        peal_cli_fail(cli, "out of memory"); /* all names are known by now */
    return status == PEAL_OK;
}
