/* SPDX-License-Identifier: Apache-2.0 */
/* peal export KERNEL --to ENGINE: a proved plan as another engine's file. */
#include "cli/import/import_args.h"
#include "cli/progress.h"
#include "cli/record/record.h"
#include "cli/run/ranks.h"
#include "cli/kernel_args.h"
#include "export/export.h"
#include "lang/lang.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct export_options {
    struct peal_kernel_options kernel;
    const char *to, *folder;
};

static const struct peal_option options_table[] = {
    PEAL_KERNEL_MACHINE_ROW(struct export_options, kernel),
    PEAL_KERNEL_ROWS(struct export_options, kernel, " (default: that of -m)"),
    {"to", 0, PEAL_OPTION_STRING, offsetof(struct export_options, to), "ENGINE",
     "what it is written for: msccl, mscclpp or pto; or goal, LogGOPSim's (must be given)", 0, 0},
    {"output", 'o', PEAL_OPTION_STRING, offsetof(struct export_options, folder), "DIR",
     "the folder that gets the files (default: the current one)", 0, 0},
    PEAL_RECORDED_ROWS(struct export_options, kernel.recorded),
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

/* Makes the folder and those above it. False: errno says why. */
static bool make_folder(const char *folder)
{
    char path[4096];
    size_t len = strlen(folder);
    if (len >= sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (size_t i = 1; i <= len; i++) {
        if (folder[i] != '/' && folder[i] != '\0')
            continue;
        memcpy(path, folder, i);
        path[i] = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return false;
    }
    return true;
}

static bool write_file(const struct peal_cli *cli, const char *folder,
                       const struct peal_exported *done, const struct peal_exported_file *file)
{
    struct peal_text path = {0};
    peal_text_printf(&path, "%s/%s%s", folder, peal_text_get(&done->name), file->ending);
    bool good = peal_cli_write(cli, peal_text_get(&path), &file->text);
    peal_text_release(&path);
    return good;
}

static int write_files(const struct peal_cli *cli, const struct export_options *o,
                       const struct peal_plan *plan, const struct peal_exported *done)
{
    const char *folder = ".";
    if (o->folder)
        folder = o->folder;
    struct peal_text said = {0};
    if (!make_folder(folder))
        return peal_cli_fail(cli, "%s: %s", folder, strerror(errno));
    for (uint32_t i = 0; i < done->nfiles; i++) {
        if (!write_file(cli, folder, done, &done->files[i]))
            return PEAL_EXIT_OTHER;
        peal_text_printf(&said, "%s%s/%s%s", i ? ", " : "", folder, peal_text_get(&done->name),
                         done->files[i].ending);
    }
    peal_text_printf(&said, ": %u ranks; read back and proved, reuse: %s\n", plan->nranks,
                     peal_reuse_name(done->after->reuse));
    peal_text_fold(&said, 0, 2, PEAL_TEXT_WIDTH);
    if (done->uses_sends)
        peal_text_puts(&said, "accesses to other ranks' windows were turned into messages\n");
    if (done->before->bits == PEAL_BITS_SAME && done->after->bits != PEAL_BITS_SAME)
        peal_text_puts(&said, "the engine's order of operands loses 'same bits on all ranks'\n");
    return peal_cli_print(cli, &said, PEAL_EXIT_OK);
}

/* GOAL is a schedule for a simulator: one text, which no engine runs. */
static int write_goal(const struct peal_cli *cli, const struct export_options *o,
                      const struct peal_plan *plan)
{
    struct peal_diags diags;
    struct peal_text text = {0}, path = {0};
    peal_diags_init(&diags);
    enum peal_status status = peal_goal_write(plan, &diags, &text);
    int code = PEAL_EXIT_OK;
    if (status != PEAL_OK) {
        code = peal_cli_diags(cli, status, &diags);
        code = status == PEAL_INVALID ? PEAL_EXIT_NO : code;
    } else if (!o->folder) {
        code = peal_cli_print(cli, &text, PEAL_EXIT_OK);
    } else {
        peal_text_printf(&path, "%s/%s.goal", o->folder, peal_plan_string(plan, plan->kernel));
        if (!make_folder(o->folder))
            code = peal_cli_fail(cli, "%s: %s", o->folder, strerror(errno));
        else if (!peal_cli_write(cli, peal_text_get(&path), &text))
            code = PEAL_EXIT_OTHER;
    }
    peal_text_release(&path);
    peal_text_release(&text);
    peal_diags_release(&diags);
    return code;
}

static int export_plan(const struct peal_cli *cli, const struct export_options *o,
                       enum peal_target target, const struct peal_plan *plan)
{
    if (target == PEAL_TARGETS)
        return write_goal(cli, o, plan);
    struct peal_diags diags;
    struct peal_exported done;
    struct peal_verify_options verify = {0};
    peal_diags_init(&diags);
    struct peal_progress progress = {.label = "proving it, before and after"};
    peal_progress_begin(&progress);
    enum peal_status status = peal_export(plan, target, &verify, &diags, &done);
    peal_progress_end(&progress);
    int code =
        status == PEAL_OK ? write_files(cli, o, plan, &done) : peal_cli_diags(cli, status, &diags);
    if (status == PEAL_INVALID)
        code = PEAL_EXIT_NO;
    peal_exported_release(&done);
    peal_diags_release(&diags);
    return code;
}

static int export_kernel(struct peal_cli *cli, const struct export_options *o,
                         enum peal_target target, const struct peal_kernel *kernel)
{
    int64_t nranks, count;
    struct peal_bind bind;
    struct peal_diags diags;
    struct peal_plan *plan = NULL;
    if (!peal_kernel_ranks(cli, &o->kernel, -1, &nranks) ||
        !peal_kernel_one(cli, &o->kernel.counts, "count", PEAL_KERNEL_COUNT, &count) ||
        !peal_kernel_bind(cli, kernel, &o->kernel, (uint32_t)nranks, count, &bind))
        return PEAL_EXIT_USAGE;
    bind.symmetric = true;
    bind.no_fuse = true; /* engines have no ops with many operands */
    peal_diags_init(&diags);
    enum peal_status status = peal_instantiate(kernel, &bind, &diags, &plan);
    int code =
        status == PEAL_OK ? export_plan(cli, o, target, plan) : peal_cli_diags(cli, status, &diags);
    free(plan);
    peal_diags_release(&diags);
    return code;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    const struct export_options *o = options;
    enum peal_target target;
    int code;
    (void)nargs;
    target = PEAL_TARGETS;
    if (!o->to || (!peal_target_find(o->to, &target) && strcmp(o->to, "goal") != 0))
        return peal_cli_usage(cli, "--to names an engine: msccl, mscclpp or pto; or goal");
    if (!peal_import_options_fit(cli, &o->kernel, args[0]))
        return PEAL_EXIT_USAGE;
    if (peal_import_names_file(args[0])) {
        struct peal_import_file file;
        if (peal_import_file_open(cli, args[0], &o->kernel, &file, &code))
            code = export_plan(cli, o, target, file.plan);
        peal_import_file_release(&file);
        return code;
    }
    struct peal_program *program;
    struct export_options own = *o;
    peal_kernel_take_machine(&own.kernel, peal_ranks_machine());
    const struct peal_kernel *kernel = peal_kernel_open(cli, args[0], &own.kernel, &program);
    if (!kernel)
        return PEAL_EXIT_OTHER;
    code = export_kernel(cli, &own, target, kernel);
    peal_program_close(program);
    return code;
}

static const struct export_options defaults = {.kernel = PEAL_KERNEL_DEFAULTS};

const struct peal_command peal_cmd_export = {
    .name = "export",
    .args = "KERNEL",
    .arg_names = PEAL_ARGUMENT_KERNEL,
    .summary = "write a proved plan for another engine",
    .details =
        "KERNEL is a file (Peal text, MSCCL XML or MSCCL++ JSON) or a built-in kernel. The plan is "
        "proved, written for the engine, read back as the engine would and proved again before "
        "anything is kept. What the engine cannot express is refused with the op, its source line "
        "and the reason; accesses to other ranks' windows become messages where that keeps the "
        "proof. See docs/formats.md.\n\n"
        "GOAL, the input of LogGOPSim, is the schedule alone: sends, recvs and computations (a "
        "nanosecond per byte), printed, or written into DIR; it is not read back.\n\n"
        "  peal export allreduce_chunked -n 4 --to msccl -o out\n"
        "  peal export allreduce_ring -n 4 --to mscclpp -o out\n"
        "  peal export allreduce_mesh -n 8 --count 4K --to pto -o out\n"
        "  peal export allreduce_chunked -n 4 --to goal\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof(struct export_options),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
