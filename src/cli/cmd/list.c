/* SPDX-License-Identifier: Apache-2.0 */
/* peal list: the built-in kernels. */
#include "base/base.h"
#include "cli/cli.h"
#include "lang/lang.h"
#include "report/report.h"

#include <string.h>

struct list_options {
    bool names, json;
};

static const struct peal_option options_table[] = {
    {"names", 0, PEAL_OPTION_FLAG, offsetof(struct list_options, names), NULL,
     "print names only, one per line", 0, 0},
    {"json", 0, PEAL_OPTION_FLAG, offsetof(struct list_options, json), NULL, "print JSON", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

enum { ABOUT = 25 }; /* the column where the description begins */

/* The name, then the first sentence or clause of the comment. */
static void add_line(const struct peal_kernel *k, struct peal_text *out)
{
    const char *end = k->doc;
    while (*end && !((*end == '.' || *end == ';') && (end[1] == ' ' || end[1] == '\n' || !end[1])))
        end++;
    peal_text_printf(out, "  %-*s", ABOUT - 2, k->name);
    if (strlen(k->name) + 2 >= ABOUT)
        peal_text_printf(out, "\n%*s", ABOUT, "");
    peal_text_words(out, k->doc, (size_t)(end - k->doc), ABOUT, ABOUT);
}

/* NULL: kernels that implement none. */
static bool belongs(const struct peal_kernel *k, const char *collective)
{
    if (!collective)
        return !k->implements;
    return k->implements && strcmp(k->implements, collective) == 0;
}

static void put_title(const char *collective, struct peal_text *out)
{
    if (out->len)
        peal_text_puts(out, "\n");
    peal_text_printf(out, "%s\n", collective ? collective : "no collective");
}

/* The kernels of one collective under its name. */
static void add_group(const struct peal_kernel *kernels, const char *collective,
                      struct peal_text *out)
{
    bool any = false;
    for (const struct peal_kernel *k = kernels; k; k = k->next) {
        if (!belongs(k, collective))
            continue;
        if (!any)
            put_title(collective, out);
        any = true;
        add_line(k, out);
    }
}

static void put_kernel(struct peal_json *json, const struct peal_kernel *k)
{
    struct peal_text signature = {0};
    peal_print_signature(k, &signature);
    peal_json_object(json);
    peal_json_put_string(json, "name", k->name);
    peal_json_put_string(json, "implements", k->implements);
    peal_json_put_string(json, "file", k->pos.source->name);
    peal_json_put_uint(json, "line", k->pos.line);
    peal_json_put_string(json, "signature", peal_text_get(&signature));
    peal_json_put_string(json, "about", k->doc);
    peal_json_object_end(json);
    peal_text_release(&signature);
}

static bool is_wanted(const struct peal_kernel *k, char **args, int nargs)
{
    for (int i = 0; i < nargs; i++) {
        if (k->implements && strcmp(k->implements, args[i]) == 0)
            return true;
    }
    return nargs == 0;
}

static void add_all(const struct peal_kernel *kernels, const struct list_options *list, char **args,
                    int nargs, struct peal_text *out)
{
    struct peal_json json;
    peal_json_init(&json, out, 2);
    if (list->json)
        peal_json_array(&json);
    for (const struct peal_kernel *k = kernels; k; k = k->next) {
        if (list->json && is_wanted(k, args, nargs))
            put_kernel(&json, k);
        else if (list->names && is_wanted(k, args, nargs))
            peal_text_printf(out, "%s\n", k->name);
    }
    if (list->json) {
        peal_json_array_end(&json);
        peal_text_puts(out, "\n");
    }
    if (list->json || list->names)
        return;
    for (int i = 0; i < nargs; i++)
        add_group(kernels, args[i], out);
    if (nargs == 0) {
        for (int i = PEAL_CONTRACT_NONE + 1; i < PEAL_CONTRACT_COUNT; i++)
            add_group(kernels, peal_contract_info((enum peal_contract)i)->name, out);
    }
    if (nargs == 0)
        add_group(kernels, NULL, out);
}

static int reject(struct peal_cli *cli, const char *name)
{
    const char *near = NULL;
    for (int i = PEAL_CONTRACT_NONE + 1; i < PEAL_CONTRACT_COUNT; i++)
        near = peal_nearer(name, near, peal_contract_info((enum peal_contract)i)->name);
    if (near)
        return peal_cli_usage(cli, "'%s' is not a collective; did you mean '%s'?", name, near);
    return peal_cli_usage(cli, "'%s' is not a collective; 'peal show %s' prints a kernel", name,
                          name);
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    struct peal_library *library = NULL;
    struct peal_diags diags;
    struct peal_text text = {0};
    enum peal_contract contract;
    for (int i = 0; i < nargs; i++) {
        if (!peal_contract_find(args[i], strlen(args[i]), &contract))
            return reject(cli, args[i]);
    }
    peal_diags_init(&diags);
    enum peal_status status = peal_library_open(&diags, &library);
    int code = PEAL_EXIT_OK;
    if (status == PEAL_OK)
        add_all(peal_library_module(library)->kernels, options, args, nargs, &text);
    else
        code = peal_cli_diags(cli, status, &diags);
    peal_library_close(library);
    peal_diags_release(&diags);
    return peal_cli_print(cli, &text, code);
}

static const struct list_options defaults = {.json = false};

const struct peal_command peal_cmd_list = {
    .name = "list",
    .args = "[COLLECTIVE...]",
    .arg_names = PEAL_ARGUMENT_COLLECTIVE,
    .summary = "list the built-in kernels",
    .details = "All of them, or those that implement one of the given collectives: name and "
               "what it does. 'peal show NAME' prints a kernel's text.\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .max_args = -1,
    .run = run,
};
