/* SPDX-License-Identifier: Apache-2.0 */
/* peal show: a kernel as canonical text, as written or lowered. */
#include "lang/lang.h"
#include "cli/import/import_args.h"
#include "cli/kernel_args.h"
#include "export/export.h"

#include <string.h>

struct show_options {
    const char *kernel;
    bool lowered;
    const char *print_after;
    const char *nodes;
};

static const struct peal_option options_table[] = {
    {"kernel", 'k', PEAL_OPTION_STRING, offsetof(struct show_options, kernel), "NAME",
     "only this kernel of the file", 0, 0},
    {"lowered", 'l', PEAL_OPTION_FLAG, offsetof(struct show_options, lowered), NULL,
     "after all passes: calls replaced by what they stand for", 0, 0},
    {"print-after", 0, PEAL_OPTION_STRING, offsetof(struct show_options, print_after), "PASS",
     "after this pass (inline, fold), or after each one (all)", 0, 0},
    {"nodes", 0, PEAL_OPTION_STRING, offsetof(struct show_options, nodes), "SHAPE",
     "also which rank sits where: 5+3, 2x4, or every rank's node, 0,1,1,0", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

struct show_printer {
    const char *after; /* a pass, or "all" */
    struct peal_text *out;
};

static void print_after(const char *pass, const struct peal_kernel *kernel, void *context)
{
    struct show_printer *printer = context;
    bool all = strcmp(printer->after, "all") == 0;
    if (!all && strcmp(printer->after, pass) != 0)
        return;
    if (all)
        peal_text_printf(printer->out, "// %s%s\n", *pass ? "after " : "as written", pass);
    peal_print_kernel(kernel, printer->out);
}

/* Prints the placement as comments. False after a message. */
static bool show_nodes(const struct peal_cli *cli, const char *shape, struct peal_text *out)
{
    struct peal_kernel_options kernel = {.nodes = shape};
    struct peal_node_map placement;
    struct peal_places places;
    if (!peal_kernel_placement(cli, &kernel, &places))
        return false;
    if (peal_placement_init(&placement, places.nranks, places.nodes, places.cubes) != PEAL_OK) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    peal_text_printf(out, "// %u ranks on %u node%s, by seat:\n", places.nranks, placement.nodes,
                     peal_text_plural(placement.nodes));
    for (uint32_t m = 0; m < placement.nodes; m++) {
        peal_text_printf(out, "// node %u: ranks", m);
        for (uint32_t s = 0; s < peal_placement_seats(&placement, m); s++)
            peal_text_printf(out, " %u", placement.ranks[placement.first[m] + s]);
        peal_text_puts(out, "\n");
    }
    peal_text_puts(out, "\n");
    peal_placement_release(&placement);
    return true;
}

static enum peal_status show_lowered(const struct peal_kernel *kernel, const char *after,
                                     struct peal_diags *diags, struct peal_text *out)
{
    struct peal_module *into = peal_module_new();
    struct peal_kernel *lowered;
    struct show_printer printer = {after, out};
    struct peal_lower_hook hook = {print_after, &printer};
    if (!into)
        return PEAL_NO_MEMORY;
    enum peal_status status = peal_lower(kernel, into, after ? &hook : NULL, diags, &lowered);
    if (status == PEAL_OK && !after)
        peal_print_kernel(lowered, out);
    peal_module_free(into);
    return status;
}

static enum peal_status show_all_lowered(const struct peal_module *module, const char *after,
                                         struct peal_diags *diags, struct peal_text *out)
{
    enum peal_status status = PEAL_OK;
    size_t before = out->len;
    for (const struct peal_reduce_decl *r = module->reductions; r; r = r->next)
        peal_print_reduction(r, out);
    for (const struct peal_kernel *k = module->kernels; k; k = k->next) {
        if (out->len > before)
            peal_text_puts(out, "\n");
        status = show_lowered(k, after, diags, out);
        if (status != PEAL_OK)
            break;
    }
    return status;
}

static int no_such_kernel(struct peal_cli *cli, const struct peal_module *module, const char *name)
{
    const char *names[1000] = {NULL};
    size_t count = 0;
    for (const struct peal_kernel *k = module->kernels; k && count < 999; k = k->next)
        names[count++] = k->name;
    const char *meant = peal_nearest(name, names);
    if (meant)
        return peal_cli_usage(cli, "there is no kernel '%s'; did you mean '%s'?", name, meant);
    return peal_cli_usage(cli, "there is no kernel '%s'", name);
}

/* One kernel, or for NULL all kernels of the module. */
static int show(struct peal_cli *cli, const struct show_options *options,
                const struct peal_module *module, const char *name)
{
    struct peal_text text = {0};
    struct peal_diags diags;
    enum peal_status status = PEAL_OK;
    bool lowered = options->lowered || options->print_after;
    const struct peal_kernel *only = NULL;
    if (name)
        only = peal_module_find(module, name);
    if (name && !only)
        return no_such_kernel(cli, module, name);
    if (options->nodes && !show_nodes(cli, options->nodes, &text))
        return PEAL_EXIT_USAGE;
    peal_diags_init(&diags);
    if (only && lowered)
        status = show_lowered(only, options->print_after, &diags, &text);
    else if (only)
        peal_print_kernel(only, &text);
    else if (lowered)
        status = show_all_lowered(module, options->print_after, &diags, &text);
    else
        peal_print_module(module, &text);
    int code = status == PEAL_OK ? PEAL_EXIT_OK : peal_cli_diags(cli, status, &diags);
    peal_diags_release(&diags);
    return peal_cli_print_code(cli, &text, code);
}

static bool is_pass(const char *name)
{
    if (strcmp(name, "all") == 0)
        return true;
    for (int i = 0; peal_lower_pass_name(i); i++) {
        if (strcmp(peal_lower_pass_name(i), name) == 0)
            return true;
    }
    return false;
}

static int no_such_pass(struct peal_cli *cli, const char *name)
{
    struct peal_text names = {0};
    for (int i = 0; peal_lower_pass_name(i); i++)
        peal_text_printf(&names, "%s, ", peal_lower_pass_name(i));
    int code =
        peal_cli_usage(cli, "there is no pass '%s'; there are: %sall", name, peal_text_get(&names));
    peal_text_release(&names);
    return code;
}

/* A plan of another format, as Peal text. */
static int show_file(struct peal_cli *cli, const char *path)
{
    struct peal_kernel_options options = PEAL_KERNEL_DEFAULTS;
    struct peal_import_file file;
    struct peal_text text = {0};
    int code;
    if (peal_import_file_open(cli, path, &options, &file, &code)) {
        peal_plan_show(file.plan, &text);
        code = peal_cli_print_code(cli, &text, PEAL_EXIT_OK);
    }
    peal_import_file_release(&file);
    return code;
}

static int run(struct peal_cli *cli, const void *given, char **args, int nargs)
{
    (void)nargs;
    const struct show_options *options = given;
    struct peal_program *program = NULL;
    struct peal_diags diags;
    int code;
    if (options->print_after && options->lowered)
        return peal_cli_usage(cli, "--lowered and --print-after exclude each other");
    if (options->print_after && !is_pass(options->print_after))
        return no_such_pass(cli, options->print_after);
    if (peal_import_names_file(args[0]))
        return show_file(cli, args[0]);
    peal_diags_init(&diags);
    enum peal_status status = peal_kernel_program(args[0], &diags, &program);
    if (status != PEAL_OK)
        code = peal_cli_diags(cli, status, &diags);
    else
        code = show(cli, options, peal_program_module(program),
                    peal_program_is_path(args[0]) ? options->kernel : args[0]);
    peal_program_close(program);
    peal_diags_release(&diags);
    return code;
}

static const struct show_options defaults = {.kernel = NULL};

const struct peal_command peal_cmd_show = {
    .name = "show",
    .args = "KERNEL",
    .arg_names = PEAL_ARGUMENT_KERNEL,
    .summary = "print a kernel as canonical text",
    .details =
        "KERNEL is a file or the name of a built-in kernel; a plan in MSCCL XML or MSCCL++ JSON "
        "is written out as Peal text, rank by rank. The text is printed in its "
        "canonical form, with the directions of parameters that were deduced; reading it "
        "back gives the same text.\n\n"
        "Lowering replaces calls by the body of the kernel that they name ('inline'), then "
        "decides what constants decide ('fold').\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
