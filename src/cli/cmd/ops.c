/* SPDX-License-Identifier: Apache-2.0 */
/* peal ops: the tables of operations, functions and reduce operations. */
#include "cli/cli.h"
#include "base/base.h"
#include "report/report.h"

#include <string.h>

struct ops_options {
    bool json;
};

static const struct peal_option options_table[] = {
    {"json", 0, PEAL_OPTION_FLAG, offsetof(struct ops_options, json), NULL, "print JSON", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static const char *const effects[] = {"-", "read", "write", "update"};
static const char *const orders[] = {"-", "acquire", "release", "both"};
static const char *const uses[] = {[PEAL_CHANNEL_NONE] = "-",
                                   [PEAL_CHANNEL_SEND] = "write",
                                   [PEAL_CHANNEL_HOLD] = "read",
                                   [PEAL_CHANNEL_RECEIVE] = "read",
                                   [PEAL_CHANNEL_FREE] = "update"};

static const char *operands_text(int operands, char buf[static 8])
{
    buf[0] = (char)('0' + operands);
    buf[1] = '\0';
    if (operands)
        return buf;
    return "2...";
}

static void print_text(struct peal_text *out)
{
    char buf[8];
    peal_text_puts(out, "operations\n");
    for (int i = 0; i < PEAL_OP_KIND_COUNT; i++) {
        const struct peal_op_info *op = peal_op_info((enum peal_op_kind)i);
        const struct peal_op_facts *row = peal_op_facts((enum peal_op_kind)i);
        const char *order = "";
        if (row->order)
            order = orders[row->order];
        peal_text_printf(out, "  %-11s %-*s%s\n%14s", op->name, *order ? 40 : 0, op->syntax, order,
                         "");
        peal_text_words(out, op->meaning, strlen(op->meaning), 14, 14);
    }
    peal_text_puts(out, "\nfunctions of data, element by element\n");
    for (int i = 0; i < PEAL_FN_COUNT; i++) {
        const struct peal_fn_info *fn = peal_fn_info((enum peal_fn)i);
        peal_text_printf(out, "  %-11s %-5s %-15s %s\n", fn->name, operands_text(fn->operands, buf),
                         peal_fn_types_text(fn->types), fn->meaning);
    }
    peal_text_puts(out, "\nreduce operations\n");
    for (int i = 0; i < PEAL_REDUCTIONS; i++) {
        enum peal_reduction reduce = (enum peal_reduction)i;
        peal_text_printf(out, "  %-11s %-5s %-15s combines with %s%s\n", peal_reduce_name(reduce),
                         "", peal_fn_types_text(peal_reduce_types(reduce)),
                         peal_fn_info(peal_reduce_fn(reduce))->name,
                         reduce == PEAL_AVG ? "; final divides by nranks" : "");
    }
}

static void put_op(struct peal_json *json, enum peal_op_kind kind)
{
    const struct peal_op_info *op = peal_op_info(kind);
    const struct peal_op_facts *row = peal_op_facts(kind);
    peal_json_object(json);
    peal_json_put_string(json, "name", op->name);
    peal_json_put_string(json, "syntax", op->syntax);
    peal_json_put_string(json, "meaning", op->meaning);
    peal_json_put_string(json, "destination", effects[row->dst]);
    peal_json_put_string(json, "source", effects[row->src]);
    peal_json_put_string(json, "cell", effects[row->cell & PEAL_EFFECT_UPDATE]);
    peal_json_put_string(json, "channel", uses[row->channel]);
    peal_json_put_string(json, "order", orders[row->order]);
    peal_json_put_bool(json, "blocks", row->blocks);
    peal_json_object_end(json);
}

static void put_words(struct peal_json *json)
{
    size_t count;
    const struct peal_word *words = peal_words(&count);
    peal_json_put_array(json, "words");
    for (size_t i = 0; i < count; i++) {
        peal_json_object(json);
        peal_json_put_string(json, "name", words[i].text);
        peal_json_put_string(json, "role", peal_word_role_name(words[i].role));
        peal_json_put_bool(json, "reserved", words[i].reserved);
        peal_json_put_string(json, "syntax", peal_word_syntax(&words[i]));
        peal_json_put_string(json, "meaning", peal_word_meaning(&words[i]));
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_put_array(json, "types");
    for (int i = 0; i < PEAL_DTYPES; i++)
        peal_json_string(json, peal_dtype_name((enum peal_dtype)i));
    peal_json_array_end(json);
    peal_json_put_array(json, "contracts");
    for (int i = PEAL_CONTRACT_NONE + 1; i < PEAL_CONTRACT_COUNT; i++)
        peal_json_string(json, peal_contract_info((enum peal_contract)i)->name);
    peal_json_array_end(json);
}

static void print_json(struct peal_text *out)
{
    struct peal_json json;
    peal_json_init(&json, out, 2);
    peal_json_object(&json);
    peal_json_put_array(&json, "operations");
    for (int i = 0; i < PEAL_OP_KIND_COUNT; i++)
        put_op(&json, (enum peal_op_kind)i);
    peal_json_array_end(&json);
    peal_json_put_array(&json, "functions");
    for (int i = 0; i < PEAL_FN_COUNT; i++) {
        const struct peal_fn_info *fn = peal_fn_info((enum peal_fn)i);
        peal_json_object(&json);
        peal_json_put_string(&json, "name", fn->name);
        peal_json_put_int(&json, "operands", fn->operands);
        peal_json_put_string(&json, "types", peal_fn_types_text(fn->types));
        peal_json_put_bool(&json, "commutes", fn->commutes);
        peal_json_put_string(&json, "meaning", fn->meaning);
        peal_json_object_end(&json);
    }
    peal_json_array_end(&json);
    peal_json_put_array(&json, "reduces");
    for (int i = 0; i < PEAL_REDUCTIONS; i++) {
        enum peal_reduction reduce = (enum peal_reduction)i;
        peal_json_object(&json);
        peal_json_put_string(&json, "name", peal_reduce_name(reduce));
        peal_json_put_string(&json, "types", peal_fn_types_text(peal_reduce_types(reduce)));
        peal_json_put_string(&json, "function", peal_fn_info(peal_reduce_fn(reduce))->name);
        peal_json_object_end(&json);
    }
    peal_json_array_end(&json);
    put_words(&json);
    peal_json_object_end(&json);
    peal_text_puts(out, "\n");
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)args;
    (void)nargs;
    struct peal_text text = {0};
    if (((const struct ops_options *)options)->json)
        print_json(&text);
    else
        print_text(&text);
    return peal_cli_print(cli, &text, PEAL_EXIT_OK);
}

static const struct ops_options defaults = {.json = false};

const struct peal_command peal_cmd_ops = {
    .name = "ops",
    .args = "",
    .summary = "show the table of operations",
    .details = "The operations that every kernel is made of, with their order; the elementwise "
               "functions with the number and type of their operands; the reduce operations.\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
