/* SPDX-License-Identifier: Apache-2.0 */
/* See machine_kernel.h. */
#include "comm/simulated/machine_kernel.h"

#include "plan/plan.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 64, PATH_BYTES = 4096 };

static const char *const fallback[PEAL_CONTRACT_COUNT] = {
    [PEAL_CONTRACT_BARRIER] = "barrier_dissemination",
    [PEAL_CONTRACT_ALLREDUCE] = "allreduce_chunked",
    [PEAL_CONTRACT_REDUCE] = "reduce_binomial",
    [PEAL_CONTRACT_BROADCAST] = "broadcast_binomial",
    [PEAL_CONTRACT_ALLGATHER] = "allgather_ring",
    [PEAL_CONTRACT_REDUCE_SCATTER] = "reduce_scatter_ring",
    [PEAL_CONTRACT_GATHER] = "gather_flat",
    [PEAL_CONTRACT_SCATTER] = "scatter_flat",
    [PEAL_CONTRACT_SCAN] = "scan_doubling",
    [PEAL_CONTRACT_EXSCAN] = "exscan_doubling",
    [PEAL_CONTRACT_ALL_TO_ALL] = "all_to_all_pairwise",
};

/* One item of the list: COLLECTIVE=ALGORITHM, or an algorithm for all. */
struct item {
    enum peal_contract contract; /* NONE: for all */
    bool unknown;                /* there is no such collective */
    char collective[NAME_BYTES];
    char algorithm[1024];
};

/* The next item of a list; false: there is none. */
static bool next_item(const char **rest, struct item *out)
{
    size_t len = strcspn(*rest, ",");
    *out = (struct item){0};
    if (**rest == '\0')
        return false;
    const char *equals = memchr(*rest, '=', len), *algorithm = *rest;
    if (equals) {
        snprintf(out->collective, sizeof out->collective, "%.*s", (int)(equals - *rest), *rest);
        out->unknown =
            !peal_contract_find(out->collective, strlen(out->collective), &out->contract);
        algorithm = equals + 1;
    }
    snprintf(out->algorithm, sizeof out->algorithm, "%.*s", (int)(*rest + len - algorithm),
             algorithm);
    *rest += len;
    *rest += **rest == ',';
    return true;
}

/* Beside the machine's file, or as written. */
static void find_file(const struct peal_machine *machine, const char *path, char out[PATH_BYTES])
{
    const char *slash = strrchr(machine->name, '/');
    snprintf(out, PATH_BYTES, "%.*s/%s", slash ? (int)(slash - machine->name) : 1,
             slash ? machine->name : ".", path);
    if (path[0] == '/' || access(out, R_OK) != 0)
        snprintf(out, PATH_BYTES, "%s", path);
}

static bool library_has(const struct peal_module *library, enum peal_contract contract,
                        const char *algorithm)
{
    char name[NAME_BYTES + 1024];
    snprintf(name, sizeof name, "%s_%s", peal_contract_info(contract)->name, algorithm);
    return peal_module_find(library, name) != NULL;
}

/* What was meant by the name of an algorithm, among those of a collective, or of all. */
static const char *nearest_algorithm(const struct peal_module *library, const struct item *item)
{
    const char *best = NULL;
    for (const struct peal_kernel *k = library->kernels; k; k = k->next) {
        enum peal_contract contract = peal_kernel_ends(k).contract;
        size_t prefix = strlen(peal_contract_info(contract)->name) + 1;
        bool fits = contract != PEAL_CONTRACT_NONE && strlen(k->name) > prefix &&
                    (!item->contract || item->contract == contract);
        if (fits)
            best = peal_nearer(item->algorithm, best, k->name + prefix);
    }
    return best;
}

static enum peal_status refuse(struct peal_diags *diags, const char *before, const char *name,
                               const char *meant)
{
    if (meant)
        peal_diag_error(diags, (struct peal_pos){0}, "'ccl.algorithm': %s '%s'; did you mean '%s'?",
                        before, name, meant);
    else
        peal_diag_error(diags, (struct peal_pos){0}, "'ccl.algorithm': %s '%s'", before, name);
    return PEAL_INVALID;
}

static enum peal_status check_name(const struct item *item, const struct peal_module *library,
                                   struct peal_diags *diags)
{
    char before[NAME_BYTES + 32];
    bool found = false;
    for (int c = PEAL_CONTRACT_NONE + 1; c < PEAL_CONTRACT_COUNT; c++) {
        if (!item->contract || item->contract == (enum peal_contract)c)
            found = found || library_has(library, (enum peal_contract)c, item->algorithm);
    }
    if (found)
        return PEAL_OK;
    snprintf(before, sizeof before, "%s%sthere is no algorithm", item->collective,
             item->contract ? ": " : "");
    return refuse(diags, before, item->algorithm, nearest_algorithm(library, item));
}

/* Opens a file; *kernel is its last. It must serve a collective: that of the item, if it has one. */
static enum peal_status open_file(const struct peal_machine *machine, const struct item *item,
                                  struct peal_diags *diags, struct peal_program **program,
                                  const struct peal_kernel **kernel)
{
    char path[PATH_BYTES];
    struct peal_text why = {0};
    find_file(machine, item->algorithm, path);
    enum peal_status status = peal_program_file(path, diags, program);
    if (status != PEAL_OK)
        return status;
    *kernel = peal_program_kernel(*program, NULL, diags);
    if (!*kernel)
        return PEAL_INVALID;
    enum peal_contract contract = peal_kernel_ends(*kernel).contract;
    if (contract == PEAL_CONTRACT_NONE)
        peal_text_printf(&why, "'%s' implements no collective", (*kernel)->name);
    else
        peal_kernel_serves(*kernel, item->contract ? item->contract : contract, &why);
    if (why.len) {
        peal_diag_error(diags, (struct peal_pos){0}, "'ccl.algorithm': %s: %s", path,
                        peal_text_get(&why));
        status = PEAL_INVALID;
    }
    peal_text_release(&why);
    return status;
}

static const char *nearest_collective(const char *name)
{
    const char *best = NULL;
    for (int c = PEAL_CONTRACT_NONE + 1; c < PEAL_CONTRACT_COUNT; c++)
        best = peal_nearer(name, best, peal_contract_info((enum peal_contract)c)->name);
    return best;
}

static enum peal_status check_item(const struct peal_machine *machine, const struct item *item,
                                   const struct peal_module *library, struct peal_diags *diags)
{
    if (item->unknown)
        return refuse(diags, "there is no collective", item->collective,
                      nearest_collective(item->collective));
    if (item->contract && !fallback[item->contract])
        return refuse(diags, "on a machine no algorithm is chosen for", item->collective, NULL);
    if (!peal_program_is_path(item->algorithm))
        return check_name(item, library, diags);
    struct peal_program *program = NULL;
    const struct peal_kernel *kernel;
    enum peal_status status = open_file(machine, item, diags, &program, &kernel);
    if (status != PEAL_OK) { /* its words, before the text that they point into is gone */
        struct peal_text words = {0};
        peal_diags_quote(diags, &words);
        while (words.len > 0 && words.at[words.len - 1] == '\n')
            words.at[--words.len] = '\0';
        peal_diags_release(diags);
        peal_diags_init(diags);
        peal_diag_error(diags, (struct peal_pos){0}, "%s", peal_text_get(&words));
        peal_text_release(&words);
    }
    peal_program_close(program);
    return status;
}

enum peal_status peal_machine_kernels_check(const struct peal_machine *machine,
                                            struct peal_diags *diags)
{
    struct peal_program *library = NULL;
    struct item item;
    const char *rest = machine->keys.algorithm;
    enum peal_status status = PEAL_OK;
    if (!machine->given[PEAL_KEY_ALGORITHM])
        return PEAL_OK;
    status = peal_program_builtin(fallback[PEAL_CONTRACT_ALLREDUCE], diags, &library);
    while (status == PEAL_OK && next_item(&rest, &item))
        status = check_item(machine, &item, peal_program_module(library), diags);
    peal_program_close(library);
    return status;
}

static enum peal_status open_builtin(const char *name, struct peal_diags *diags,
                                     struct peal_program **program,
                                     const struct peal_kernel **kernel)
{
    enum peal_status status = peal_program_builtin(name, diags, program);
    if (status != PEAL_OK)
        return status;
    *kernel = peal_program_kernel(*program, NULL, diags);
    return *kernel ? PEAL_OK : PEAL_INVALID;
}

/* Does an item for all collectives name a kernel of this one? */
static bool names_one(const struct peal_machine *machine, const struct item *item,
                      enum peal_contract contract, const struct peal_module *library)
{
    struct peal_program *program = NULL;
    const struct peal_kernel *kernel;
    struct peal_diags ignored;
    if (!peal_program_is_path(item->algorithm))
        return library_has(library, contract, item->algorithm);
    peal_diags_init(&ignored);
    bool found = open_file(machine, item, &ignored, &program, &kernel) == PEAL_OK &&
                 peal_kernel_ends(kernel).contract == contract;
    peal_program_close(program);
    peal_diags_release(&ignored);
    return found;
}

enum peal_status peal_machine_kernel_open(const struct peal_machine *machine,
                                          enum peal_contract contract, struct peal_diags *diags,
                                          struct peal_program **program,
                                          const struct peal_kernel **kernel)
{
    struct item item, chosen = {0};
    struct peal_program *library = NULL;
    const char *rest = machine->keys.algorithm;
    enum peal_status status =
        peal_program_builtin(fallback[PEAL_CONTRACT_ALLREDUCE], diags, &library);
    while (status == PEAL_OK && next_item(&rest, &item)) {
        bool own = item.contract == contract && !item.unknown;
        bool shared = !item.collective[0] && chosen.contract != contract &&
                      names_one(machine, &item, contract, peal_program_module(library));
        if (own || shared)
            chosen = item;
    }
    peal_program_close(library);
    if (status != PEAL_OK)
        return status;
    if (chosen.algorithm[0] && peal_program_is_path(chosen.algorithm))
        return open_file(machine, &chosen, diags, program, kernel);
    if (!chosen.algorithm[0])
        return open_builtin(fallback[contract], diags, program, kernel);
    char name[NAME_BYTES + 1024];
    snprintf(name, sizeof name, "%s_%s", peal_contract_info(contract)->name, chosen.algorithm);
    return open_builtin(name, diags, program, kernel);
}

bool peal_machine_kernel_seat(const struct peal_machine *machine, const struct peal_kernel *kernel,
                              const struct peal_machine_group *group, struct peal_arena *arena,
                              struct peal_bind *bind)
{
    struct peal_places places;
    struct peal_machine_group all = {bind->nranks, bind->nranks, NULL};
    if (bind->nodes || bind->cubes || !peal_kernel_is_placed(kernel))
        return true;
    if (!peal_machine_places(machine, group ? group : &all, arena, &places))
        return false;
    bind->nodes = places.nodes;
    bind->cubes = places.cubes;
    return true;
}
