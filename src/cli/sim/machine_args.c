/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/machine_args.h"

#include "cli/run/ranks.h"
#include "cli/sim/sim_job.h"

bool peal_machine_args_open(const struct peal_cli *cli, const char *path,
                            const struct peal_pairs *settings, struct peal_machine **out, int *code)
{
    struct peal_diags diags;
    const char **list = peal_arena_alloc(cli->arena, (settings->len + 1) * sizeof *list);
    *out = NULL;
    if (!path)
        path = peal_ranks_machine();
    if (!path) {
        *code = peal_cli_usage(cli, "a machine is needed: -m FILE, -m NAME, or "
                                    "PEAL_PLATFORM=sim:NAME");
        return false;
    }
    for (size_t i = 0; list && i < settings->len; i++) {
        list[i] = peal_sim_setting(cli->arena, &settings->at[i]);
        if (!list[i])
            list = NULL;
    }
    if (!list) {
        *code = peal_cli_fail(cli, "out of memory");
        return false;
    }
    peal_diags_init(&diags);
    enum peal_status status = peal_machine_open(path, &diags, out);
    if (status == PEAL_OK)
        status = peal_machine_set(*out, list, settings->len, &diags);
    if (status != PEAL_OK) {
        *code = peal_cli_diags(cli, status, &diags);
        peal_machine_free(*out);
    }
    peal_diags_release(&diags);
    return status == PEAL_OK;
}
