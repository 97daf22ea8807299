/* SPDX-License-Identifier: Apache-2.0 */
/* peal plan KERNEL -n P: what each rank will do, op by op. */
#include "lang/lang.h"
#include "cli/import/import_args.h"
#include "cli/record/record.h"
#include "cli/run/ranks.h"
#include "cli/kernel_args.h"
#include "cli/progress.h"
#include "plan/plan.h"

#include <stdlib.h>

struct plan_options {
    struct peal_kernel_options kernel;
    int64_t rank; /* -1 = all */
    bool json;
    bool symmetric;
    bool no_fuse;
    bool flush;
};

#define AT(member) offsetof(struct plan_options, member)
static const struct peal_option options_table[] = {
    PEAL_KERNEL_MACHINE_ROW(struct plan_options, kernel),
    PEAL_KERNEL_ROWS(struct plan_options, kernel, " (default: that of -m)"),
    {"rank", 0, PEAL_OPTION_INT, AT(rank), "R", "only this rank's part", 0,
     PEAL_PLAN_MAX_RANKS - 1},
    {"symmetric", 0, PEAL_OPTION_FLAG, AT(symmetric), NULL,
     "window parameters are in symmetric memory", 0, 0},
    {"no-fuse", 0, PEAL_OPTION_FLAG, AT(no_fuse), NULL,
     "leave chains of loads, functions and stores as they are", 0, 0},
    {"flush", 0, PEAL_OPTION_FLAG, AT(flush), NULL,
     "with the flushes that make notifies between nodes release everything", 0, 0},
    {"json", 0, PEAL_OPTION_FLAG, AT(json), NULL, "print JSON", 0, 0},
    PEAL_RECORDED_ROWS(struct plan_options, kernel.recorded),
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static int print_plan(struct peal_cli *cli, const struct peal_plan *plan, uint32_t rank, bool json)
{
    struct peal_text text = {0};
    if (json) {
        peal_plan_dump_json(plan, rank, &text);
        return peal_cli_print(cli, &text, PEAL_EXIT_OK);
    }
    peal_plan_dump(plan, rank, &text);
    return peal_cli_print_code(cli, &text, PEAL_EXIT_OK);
}

static int show_plan(struct peal_cli *cli, const struct peal_kernel *kernel,
                     const struct plan_options *options)
{
    int64_t nranks, count;
    struct peal_plan_request request;
    if (!peal_kernel_ranks(cli, &options->kernel, -1, &nranks) ||
        !peal_kernel_one(cli, &options->kernel.counts, "count", PEAL_KERNEL_COUNT, &count) ||
        !peal_kernel_request_one(cli, kernel, &options->kernel, (uint32_t)nranks, count, &request))
        return PEAL_EXIT_USAGE;
    if (options->rank >= nranks)
        return peal_cli_usage(cli, "--rank %lld is not a rank: there are %lld",
                              (long long)options->rank, (long long)nranks);
    if (options->rank >= 0)
        request.bind.rank = (uint32_t)options->rank;
    request.bind.symmetric = options->symmetric;
    request.bind.no_fuse = options->no_fuse;
    struct peal_diags diags;
    peal_diags_init(&diags);
    struct peal_plan *plan = NULL;
    struct peal_progress progress = {.label = "making the plan"};
    peal_progress_begin(&progress);
    enum peal_status status = peal_plan_make(&request, &diags, &plan);
    if (status == PEAL_OK && options->flush)
        status = peal_plan_flush(&plan);
    peal_progress_end(&progress);
    int code = status == PEAL_OK ? print_plan(cli, plan, PEAL_NONE, options->json)
                                 : peal_cli_diags(cli, status, &diags);
    free(plan);
    peal_diags_release(&diags);
    return code;
}

/* A plan that another format's file gives. */
static int show_file(struct peal_cli *cli, const char *path, const struct plan_options *options)
{
    struct peal_import_file file;
    int code;
    if (peal_import_file_open(cli, path, &options->kernel, &file, &code)) {
        if (options->rank >= file.plan->nranks)
            code = peal_cli_usage(cli, "--rank %lld is not a rank: there are %u",
                                  (long long)options->rank, file.plan->nranks);
        else
            code =
                print_plan(cli, file.plan, options->rank < 0 ? PEAL_NONE : (uint32_t)options->rank,
                           options->json);
    }
    peal_import_file_release(&file);
    return code;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)nargs;
    struct plan_options own = *(const struct plan_options *)options, *plan_options = &own;
    if (!peal_import_options_fit(cli, &plan_options->kernel, args[0]))
        return PEAL_EXIT_USAGE;
    if (peal_import_names_file(args[0]))
        return show_file(cli, args[0], plan_options);
    struct peal_program *program;
    peal_kernel_take_machine(&own.kernel, peal_ranks_machine());
    const struct peal_kernel *kernel =
        peal_kernel_open(cli, args[0], &plan_options->kernel, &program);
    if (!kernel)
        return PEAL_EXIT_OTHER;
    int code = show_plan(cli, kernel, plan_options);
    peal_program_close(program);
    return code;
}

static const struct plan_options defaults = {.kernel = PEAL_KERNEL_DEFAULTS, .rank = -1};

const struct peal_command peal_cmd_plan = {
    .name = "plan",
    .args = "KERNEL",
    .arg_names = PEAL_ARGUMENT_KERNEL,
    .summary = "show what each rank will do, op by op",
    .details =
        "KERNEL is the path of a file (it has a slash or ends in .peal) or the name of a built-in "
        "kernel, see 'peal list'; or a file in MSCCL XML or MSCCL++ JSON, which says itself how "
        "many "
        "ranks it is for.\n\n"
        "--count gives its value to every dimension that --set does not name. Integer parameters "
        "are given by --set, the root by --root.\n\n"
        "  peal plan allreduce_ring -n 4 --count 1K\n"
        "  peal plan ./mine.peal -n 2 --set rows=4 --set cols=64 --rank 0 --json\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
