/* SPDX-License-Identifier: Apache-2.0 */
/* Binding a kernel's dimensions and parameters from the command line. */
#include "cli/kernel_args.h"

bool peal_kernel_one(const struct peal_cli *cli, const struct peal_ints *list, const char *name,
                     int64_t fallback, int64_t *out)
{
    if (list->len > 1) {
        peal_cli_usage(cli, "--%s takes one value here", name);
        return false;
    }
    if (list->len == 0 && fallback < 0) {
        peal_cli_usage(cli, "--%s is missing", name);
        return false;
    }
    *out = list->len ? list->at[0] : fallback;
    return true;
}

const struct peal_kernel *peal_kernel_open(const struct peal_cli *cli, const char *what,
                                           const struct peal_kernel_options *options,
                                           struct peal_program **program)
{
    struct peal_diags diags;
    peal_diags_init(&diags);
    const struct peal_kernel *kernel = NULL;
    struct peal_program *opened = NULL;
    enum peal_status status = peal_program_open(what, &diags, &opened);
    if (status == PEAL_OK) {
        kernel = peal_program_kernel(opened, options->kernel, &diags);
        status = kernel ? PEAL_OK : PEAL_INVALID;
    }
    if (status == PEAL_OK) {
        *program = opened;
    } else {
        peal_cli_diags(cli, status, &diags);
        peal_program_close(opened);
    }
    peal_diags_release(&diags);
    return kernel;
}

static bool read_pair(const struct peal_cli *cli, const struct peal_kernel *kernel,
                      const struct peal_pair *pair, struct peal_bind_value *out)
{
    struct peal_text error = {0};
    struct peal_ints ints;
    bool is_known = peal_request_has(kernel, pair->key);
    bool good = is_known && peal_ints_parse(pair->value, cli->arena, &ints, &error);
    if (!is_known) {
        peal_request_reject(kernel, pair->key, &error);
        peal_cli_usage(cli, "--set: %s", peal_text_get(&error));
    } else if (!good) {
        peal_cli_usage(cli, "--set %s: %s", pair->key, peal_text_get(&error));
    } else {
        *out = (struct peal_bind_value){pair->key, ints.at, ints.len, true};
    }
    peal_text_release(&error);
    return good;
}

bool peal_kernel_request(const struct peal_cli *cli, const struct peal_kernel *kernel,
                         const struct peal_kernel_options *options, struct peal_plan_request *out)
{
    struct peal_bind_value *given =
        peal_arena_alloc(cli->arena, (options->set.len + 1) * sizeof *given);
    if (!given) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    for (size_t i = 0; i < options->set.len; i++) {
        if (!read_pair(cli, kernel, &options->set.at[i], &given[i]))
            return false;
    }
    *out = (struct peal_plan_request){
        .kernel = kernel,
        .bind = {.rank = PEAL_NONE,
                 .dtype = options->dtype,
                 .reduce = options->reduce,
                 .root = options->root,
                 .in_place = options->in_place,
                 .channel_depth = (uint32_t)options->depth,
                 .slot_bytes = options->slot_bytes},
        .given = given,
        .ngiven = options->set.len,
    };
    return true;
}

bool peal_kernel_request_one(const struct peal_cli *cli, const struct peal_kernel *kernel,
                             const struct peal_kernel_options *options, uint32_t nranks,
                             int64_t count, struct peal_plan_request *out)
{
    if (!peal_kernel_request(cli, kernel, options, out))
        return false;
    if (options->root >= nranks) {
        peal_cli_usage(cli, "--root %lld is not a rank: there are %u", (long long)options->root,
                       nranks);
        return false;
    }
    out->bind.nranks = nranks;
    out->count = count;
    return true;
}

bool peal_kernel_bind(const struct peal_cli *cli, const struct peal_kernel *kernel,
                      const struct peal_kernel_options *options, uint32_t nranks, int64_t count,
                      struct peal_bind *out)
{
    struct peal_plan_request request;
    struct peal_diags diags;
    if (!peal_kernel_request_one(cli, kernel, options, nranks, count, &request))
        return false;
    peal_diags_init(&diags);
    enum peal_status status = peal_request_bind(&request, cli->arena, &diags, out);
    peal_diags_release(&diags);
    if (status != PEAL_OK)
        peal_cli_fail(cli, "out of memory"); /* all names are known by now */
    return status == PEAL_OK;
}
