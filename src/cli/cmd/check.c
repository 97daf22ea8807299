/* SPDX-License-Identifier: Apache-2.0 */
/* peal check: parse and type-check texts, and say what was deduced. */
#include "cli/cli.h"
#include "lang/lang.h"
#include "report/report.h"

#include <stdio.h>

struct check_options {
    bool json, quiet;
};

static const struct peal_option options_table[] = {
    {"json", 0, PEAL_OPTION_FLAG, offsetof(struct check_options, json), NULL,
     "print JSON: kernels and diagnostics of every file", 0, 0},
    {"quiet", 'q', PEAL_OPTION_FLAG, offsetof(struct check_options, quiet), NULL,
     "print nothing about files that are right", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static void put_kernels(struct peal_json *json, const struct peal_module *module)
{
    peal_json_put_array(json, "kernels");
    for (const struct peal_kernel *k = module ? module->kernels : NULL; k; k = k->next) {
        struct peal_text signature = {0};
        peal_print_signature(k, &signature);
        peal_json_object(json);
        peal_json_put_string(json, "name", k->name);
        peal_json_put_string(json, "implements", k->implements);
        peal_json_put_string(json, "signature", peal_text_get(&signature));
        peal_json_put_int(json, "period", k->period);
        peal_json_object_end(json);
        peal_text_release(&signature);
    }
    peal_json_array_end(json);
}

static void put_diags(struct peal_json *json, const struct peal_diags *diags)
{
    peal_json_put_array(json, "diagnostics");
    for (size_t i = 0; i < diags->list.len; i++) {
        const struct peal_diag *diag = &diags->list.at[i];
        peal_json_object(json);
        peal_json_put_string(json, "severity", diag->severity == PEAL_ERROR ? "error" : "note");
        peal_json_put_string(json, "message", diag->message);
        if (diag->pos.source && diag->pos.line) {
            peal_json_put_string(json, "file", diag->pos.source->name);
            peal_json_put_uint(json, "line", diag->pos.line);
            peal_json_put_uint(json, "column", diag->pos.col);
            peal_json_put_uint(json, "length", diag->pos.len);
        }
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_put_uint(json, "errors", diags->errors);
}

/* reduce mine(a, b): f16 bf16 ... */
static void say_reduction(const struct peal_reduce_decl *reduce, struct peal_text *out)
{
    peal_text_printf(out, "reduce %s(%s, %s):", reduce->name, reduce->operands[0],
                     reduce->operands[1]);
    for (int i = 0; i < PEAL_DTYPES; i++) {
        if (peal_formula_takes(&reduce->formula, (enum peal_dtype)i))
            peal_text_printf(out, " %s", peal_dtype_name((enum peal_dtype)i));
    }
    peal_text_puts(out, "\n");
}

static void say_signatures(const struct peal_module *module, struct peal_text *out)
{
    for (const struct peal_reduce_decl *r = module->reductions; r; r = r->next)
        say_reduction(r, out);
    for (const struct peal_kernel *k = module->kernels; k; k = k->next) {
        peal_print_signature(k, out);
        peal_text_puts(out, "\n");
    }
}

/* Checks one file; appends the results to `out` and `json`. */
static int check_file(struct peal_cli *cli, const char *path, const struct peal_module *library,
                      const struct check_options *options, struct peal_json *json)
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
    if (options->json) {
        peal_json_object(json);
        peal_json_put_string(json, "file", path);
        put_kernels(json, status == PEAL_OK ? module : NULL);
        put_diags(json, &diags);
        peal_json_object_end(json);
    } else if (status != PEAL_OK) {
        peal_cli_diags(cli, status, &diags);
    } else if (!options->quiet) {
        say_signatures(module, json->out);
    }
    peal_module_free(module);
    peal_diags_release(&diags);
    if (status == PEAL_OK)
        return PEAL_EXIT_OK;
    if (status == PEAL_INVALID)
        return PEAL_EXIT_NO;
    return PEAL_EXIT_OTHER;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    const struct check_options *check = options;
    struct peal_library *library = NULL;
    struct peal_diags diags;
    struct peal_text text = {0};
    struct peal_json json;
    peal_diags_init(&diags);
    enum peal_status status = peal_library_open(&diags, &library);
    if (status != PEAL_OK) {
        int failed = peal_cli_diags(cli, status, &diags);
        peal_diags_release(&diags);
        return failed;
    }
    peal_json_init(&json, &text, 2);
    if (check->json)
        peal_json_array(&json);
    int code = PEAL_EXIT_OK;
    for (int i = 0; i < nargs; i++) {
        int result = check_file(cli, args[i], peal_library_module(library), check, &json);
        if (result > code)
            code = result;
    }
    if (check->json) {
        peal_json_array_end(&json);
        peal_text_puts(&text, "\n");
    }
    peal_library_close(library);
    peal_diags_release(&diags);
    if (check->json)
        return peal_cli_print(cli, &text, code);
    return peal_cli_print_code(cli, &text, code);
}

static const struct check_options defaults = {.json = false};

const struct peal_command peal_cmd_check = {
    .name = "check",
    .args = "FILE...",
    .summary = "parse and type-check kernels",
    .details =
        "Reads each file, resolves names and calls (to kernels of the file, then of the library), "
        "and checks types, shapes, signals and contracts. Prints the signature of every kernel "
        "with "
        "the directions that were deduced.\n\n"
        "Ends with 1 if a file was rejected.\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
