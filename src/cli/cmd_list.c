/* SPDX-License-Identifier: Apache-2.0 */
/* peal list: the built-in kernels. */
#include "cli/cli.h"
#include "ir/contract.h"
#include "ir/library.h"
#include "ir/print.h"
#include "report/json.h"

#include <string.h>

struct list_options {
    bool json;
};

static const struct peal_option options_table[] = {
    {"json", 0, PEAL_OPTION_FLAG, offsetof(struct list_options, json), NULL, "print JSON", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

/* The first sentence or clause of a comment, on one line. */
static void add_summary(const char *doc, struct peal_text *out)
{
    for (; *doc; doc++) {
        if ((*doc == '.' || *doc == ';') && (doc[1] == ' ' || doc[1] == '\n' || !doc[1]))
            break;
        peal_text_add(out, *doc == '\n' ? " " : doc, 1);
    }
    peal_text_puts(out, "\n");
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

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    const struct list_options *list = options;
    struct peal_library *library = NULL;
    struct peal_diags diags;
    struct peal_text text = {0};
    struct peal_json json;
    enum peal_contract contract;
    for (int i = 0; i < nargs; i++) {
        if (!peal_contract_find(args[i], strlen(args[i]), &contract))
            return peal_cli_usage(cli, "'%s' is no collective", args[i]);
    }
    peal_diags_init(&diags);
    enum peal_status status = peal_library_open(&diags, &library);
    if (status != PEAL_OK) {
        int failed = peal_cli_diags(cli, status, &diags);
        peal_diags_release(&diags);
        return failed;
    }
    peal_json_init(&json, &text, 2);
    if (list->json)
        peal_json_array(&json);
    for (const struct peal_kernel *k = peal_library_module(library)->kernels; k; k = k->next) {
        if (!is_wanted(k, args, nargs))
            continue;
        if (list->json)
            put_kernel(&json, k);
        if (list->json)
            continue;
        peal_text_printf(&text, "%-26s %-15s ", k->name, k->implements ? k->implements : "-");
        add_summary(k->doc, &text);
    }
    if (list->json) {
        peal_json_array_end(&json);
        peal_text_puts(&text, "\n");
    }
    peal_library_close(library);
    peal_diags_release(&diags);
    return peal_cli_print(cli, &text, PEAL_EXIT_OK);
}

static const struct list_options defaults = {.json = false};

const struct peal_command peal_cmd_list = {
    .name = "list",
    .args = "[COLLECTIVE...]",
    .summary = "list the built-in kernels",
    .details =
        "All of them, or those that implement one of the given collectives: name, collective, "
        "what it does. 'peal show NAME' prints a kernel's text.\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .most_args = -1,
    .run = run,
};
