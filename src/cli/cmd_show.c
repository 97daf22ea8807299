/* SPDX-License-Identifier: Apache-2.0 */
/* peal show: a kernel as canonical text. */
#include "cli/cli.h"
#include "ir/deduce.h"
#include "ir/library.h"
#include "ir/parse.h"
#include "ir/print.h"

#include <string.h>

struct show_options {
    const char *kernel;
};

static const struct peal_option options_table[] = {
    {"kernel", 'k', PEAL_OPTION_STRING, offsetof(struct show_options, kernel), "NAME",
     "only this kernel of the file", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static bool is_path(const char *what)
{
    size_t len = strlen(what);
    return strchr(what, '/') || (len > 5 && strcmp(what + len - 5, ".peal") == 0);
}

/* The whole module, or one kernel of it. */
static int show(struct peal_cli *cli, const struct peal_module *module, const char *name)
{
    struct peal_text text = {0};
    if (!name) {
        peal_print_module(module, &text);
        return peal_cli_print(cli, &text, PEAL_EXIT_OK);
    }
    const struct peal_kernel *kernel = peal_module_find(module, name);
    if (!kernel) {
        const char *names[1000] = {NULL};
        size_t count = 0;
        for (const struct peal_kernel *k = module->kernels; k && count < 999; k = k->next)
            names[count++] = k->name;
        const char *meant = peal_suggest(name, names);
        return peal_cli_usage(cli, "there is no kernel '%s'%s%s%s", name,
                              meant ? "; did you mean '" : "", meant ? meant : "",
                              meant ? "'?" : "");
    }
    peal_print_kernel(kernel, &text);
    return peal_cli_print(cli, &text, PEAL_EXIT_OK);
}

static int show_file(struct peal_cli *cli, const char *path, const struct peal_module *library,
                     const char *name)
{
    struct peal_source source;
    struct peal_diags diags;
    struct peal_module *module = NULL;
    if (!peal_cli_read(cli, path, &source))
        return PEAL_EXIT_OTHER;
    peal_diags_init(&diags);
    enum peal_status status = peal_parse(&source, &diags, &module);
    if (status == PEAL_OK)
        status = peal_deduce(module, library, &diags);
    int code = status == PEAL_OK ? show(cli, module, name) : peal_cli_diags(cli, status, &diags);
    peal_module_free(module);
    peal_diags_release(&diags);
    return code;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)nargs;
    const char *name = ((const struct show_options *)options)->kernel;
    struct peal_library *library = NULL;
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status = peal_library_open(&diags, &library);
    int code;
    if (status != PEAL_OK)
        code = peal_cli_diags(cli, status, &diags);
    else if (is_path(args[0]))
        code = show_file(cli, args[0], peal_library_module(library), name);
    else
        code = show(cli, peal_library_module(library), args[0]);
    peal_library_close(library);
    peal_diags_release(&diags);
    return code;
}

static const struct show_options defaults = {.kernel = NULL};

const struct peal_command peal_cmd_show = {
    .name = "show",
    .args = "KERNEL",
    .summary = "print a kernel as canonical text",
    .details = "KERNEL is a file or the name of a built-in kernel. The text is printed in its "
               "canonical form, with the directions of parameters that were deduced; reading it "
               "back gives the same text.\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .least_args = 1,
    .most_args = 1,
    .run = run,
};
