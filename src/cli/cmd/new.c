/* SPDX-License-Identifier: Apache-2.0 */
/* peal new: a kernel to start from, for every contract.
 *
 * All of them have one shape, which is right and easy to see: every rank publishes what it has, waits for
 * the others, reads what it needs from their windows, and leaves when no one reads its own any more. A row
 * says what differs. */
#include "cli/cli.h"
#include "lang/lang.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct new_options {
    const char *name, *output;
};

static const struct peal_option options_table[] = {
    {"name", 0, PEAL_OPTION_STRING, offsetof(struct new_options, name), "NAME",
     "the kernel's name (default: my_ and the contract)", 0, 0},
    {"output", 'o', PEAL_OPTION_STRING, offsetof(struct new_options, output), "FILE",
     "write there instead of to standard output; an existing file is left alone", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static const struct new_options defaults = {0};

#define PART "part(rank, n, nranks)"
/* Adds up the same part of all ranks' slots. */
#define FOLD(first, part)                                                                          \
    "let acc = slot@0" part "\nfor q in 1 .. " first " { acc = op(acc, slot@q" part ") }\n"
#define INDENTED(first, part)                                                                      \
    "    let acc = slot@0" part "\n    for q in 1 .. " first " { acc = op(acc, slot@q" part ") "   \
                                                                                            "}\n"

static const struct {
    enum peal_contract contract;
    const char *params, *slot, *publish, *read;
} rows[] = {
    {PEAL_CONTRACT_ALLREDUCE, "in x: T[n], out y: T[n], op: reduce", "n", "slot = x\n",
     FOLD("nranks", "") "y = final(op, acc)\n"},
    {PEAL_CONTRACT_ALLGATHER, "in x: T[" PART "], out y: T[n]", "cdiv(n, nranks)",
     "slot[0 +: " PART "] = x\n",
     "for q in 0 .. nranks { y[q of nranks] = slot@q[0 +: part(q, n, nranks)] }\n"},
    {PEAL_CONTRACT_REDUCE_SCATTER, "in x: T[n], out y: T[" PART "], op: reduce", "n", "slot = x\n",
     FOLD("nranks", "[rank of nranks]") "y = final(op, acc)\n"},
    {PEAL_CONTRACT_BROADCAST, "in x: T[n], out y: T[n], root: int", "n",
     "if rank == root { slot = x }\n", "y = slot@root\n"},
    {PEAL_CONTRACT_REDUCE, "in x: T[n], out y: T[n], op: reduce, root: int", "n", "slot = x\n",
     "if rank == root {\n" INDENTED("nranks", "") "    y = final(op, acc)\n}\n"},
    {PEAL_CONTRACT_GATHER, "in x: T[" PART "], out y: T[n], root: int", "cdiv(n, nranks)",
     "slot[0 +: " PART "] = x\n",
     "if rank == root {\n"
     "    for q in 0 .. nranks { y[q of nranks] = slot@q[0 +: part(q, n, nranks)] }\n}\n"},
    {PEAL_CONTRACT_SCATTER, "in x: T[n], out y: T[" PART "], root: int", "n",
     "if rank == root { slot = x }\n", "y = slot@root[rank of nranks]\n"},
    {PEAL_CONTRACT_SCAN, "in x: T[n], out y: T[n], op: reduce", "n", "slot = x\n",
     FOLD("rank + 1", "") "y = acc\n"},
    {PEAL_CONTRACT_EXSCAN, "in x: T[n], out y: T[n], op: reduce", "n", "slot = x\n",
     "if rank > 0 {\n" INDENTED("rank", "") "    y = acc\n}\n"},
    {PEAL_CONTRACT_ALL_TO_ALL, "in x: T[n], out y: T[nranks * " PART "]", "n", "slot = x\n",
     "for q in 0 .. nranks { y[q * " PART " +: " PART "] = slot@q[rank of nranks] }\n"},
    {PEAL_CONTRACT_ALL_TO_ALL_V,
     "in x: T[sum(sends)], out y: T[sum(recvs)], local sends: int[nranks], local recvs: "
     "int[nranks]",
     NULL, "for p in peers { send x[sum(sends, p) +: sends[p]] to p }\n",
     "y[sum(recvs, rank) +: recvs[rank]] = x[sum(sends, rank) +: sends[rank]]\n"
     "for p in peers { y[sum(recvs, p) +: recvs[p]] = recv from p }\n"},
    {PEAL_CONTRACT_BARRIER, "", NULL, "", ""},
};

/* Lines, indented by four. */
static void put_lines(struct peal_text *out, const char *lines)
{
    while (*lines) {
        size_t len = strcspn(lines, "\n");
        peal_text_printf(out, "    %.*s\n", (int)len, lines);
        lines += len + (lines[len] == '\n');
    }
}

static void put_kernel(size_t row, const char *name, struct peal_text *out)
{
    const char *contract = peal_contract_info(rows[row].contract)->name;
    bool has_slot = rows[row].slot != NULL, has_data = rows[row].params[0];
    const char *about = has_data ? "every rank sends each other rank its block."
                                 : "every rank tells all others, and waits for them.";
    if (has_slot)
        about = "every rank publishes what it has, and reads what it needs from the others.";
    peal_text_printf(out, "// %s: %s\n", contract, about);
    peal_text_puts(
        out, "// Change it, and ask again: peal verify FILE, then peal sim FILE -m mesh4x4.\n");
    peal_text_printf(out, "kernel %s(%s) implements %s {\n", name, rows[row].params, contract);
    if (has_slot)
        peal_text_printf(out, "    window slot: T[%s]\n", rows[row].slot);
    if (has_slot)
        peal_text_puts(out, "    signal ready[nranks], done[nranks]\n");
    else if (!has_data)
        peal_text_puts(out, "    signal ready[nranks]\n");
    put_lines(out, rows[row].publish);
    if (has_slot || !has_data)
        put_lines(out, "for p in peers { notify ready[rank]@p += 1 }\n"
                       "for p in peers { wait ready[p] >= 1 }\n");
    put_lines(out, rows[row].read);
    if (has_slot)
        put_lines(out, "// No rank may fill its slot again, in the next launch, while another "
                       "still reads it.\n"
                       "for p in peers { notify done[rank]@p += 1 }\n"
                       "for p in peers { wait done[p] >= 1 }\n");
    peal_text_puts(out, "}\n");
}

/* Where the contract's row is; the number of rows if there is none, after a message. */
static size_t find_row(const struct peal_cli *cli, const char *name)
{
    const char *meant = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *known = peal_contract_info(rows[i].contract)->name;
        if (strcmp(known, name) == 0)
            return i;
        meant = peal_nearer(name, meant, known);
    }
    if (meant)
        peal_cli_usage(cli, "'%s' is not a contract; did you mean '%s'?", name, meant);
    else
        peal_cli_usage(cli, "'%s' is not a contract: 'peal explain contract' says what they are",
                       name);
    return sizeof rows / sizeof *rows;
}

static int write_new(const struct peal_cli *cli, const char *path, const struct peal_text *text)
{
    FILE *file = text->failed ? NULL : fopen(path, "wbx");
    if (text->failed)
        return peal_cli_fail(cli, "out of memory");
    bool good = file && fwrite(text->at, 1, text->len, file) == text->len;
    if (file)
        good = fclose(file) == 0 && good;
    if (!good)
        return peal_cli_fail(cli, "could not write '%s': %s", path, strerror(errno));
    peal_cli_note(cli, "next: peal verify %s", path);
    return PEAL_EXIT_OK;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)nargs;
    const struct new_options *o = options;
    struct peal_text text = {0}, name = {0};
    size_t row = find_row(cli, args[0]);
    if (row == sizeof rows / sizeof *rows)
        return PEAL_EXIT_USAGE;
    if (o->name)
        peal_text_puts(&name, o->name);
    else
        peal_text_printf(&name, "my_%s", args[0]);
    put_kernel(row, peal_text_get(&name), &text);
    /* A name that cannot be one is found by reading the text. */
    struct peal_source source = {"--name", peal_text_get(&text), text.len};
    struct peal_diags diags;
    struct peal_module *module = NULL;
    int code = PEAL_EXIT_OK;
    peal_diags_init(&diags);
    bool good = peal_parse(&source, &diags, &module) == PEAL_OK && !module->kernels->next &&
                strcmp(module->kernels->name, peal_text_get(&name)) == 0;
    if (!good)
        code = peal_cli_usage(cli, "--name: '%s' cannot be a name", peal_text_or_empty(o->name));
    peal_module_free(module);
    peal_diags_release(&diags);
    peal_text_release(&name);
    if (code == PEAL_EXIT_OK && !o->output)
        return peal_cli_print(cli, &text, code);
    if (code == PEAL_EXIT_OK)
        code = write_new(cli, o->output, &text);
    peal_text_release(&text);
    return code;
}

const struct peal_command peal_cmd_new = {
    .name = "new",
    .args = "CONTRACT",
    .arg_names = PEAL_ARGUMENT_COLLECTIVE,
    .summary = "write a kernel to start from",
    .details = "A kernel that keeps the contract, short and plain rather than fast: every rank "
               "publishes what "
               "it has, and reads what it needs from the others. It is proved as it is.\n\n"
               "  peal new allreduce | peal verify -\n"
               "  peal new scan -o scan.peal",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof(struct new_options),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
