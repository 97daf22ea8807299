/* SPDX-License-Identifier: Apache-2.0 */
/* See plan_time.h. */
#include "cli/sim/plan_time.h"

#include "sim/sim.h"

int peal_plan_time(const struct peal_cli *cli, const char *argument, const struct peal_plan *plan,
                   const char *machine, double *out)
{
    struct peal_machine *opened = NULL;
    struct peal_sim *sim = NULL;
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status = peal_machine_open(machine, &diags, &opened);
    if (status == PEAL_OK)
        status =
            peal_sim_run_plan(opened, plan, &(struct peal_sim_turns){.launches = 1}, &diags, &sim);
    int code = PEAL_EXIT_OK;
    if (status != PEAL_OK) {
        code = peal_cli_diags(cli, status, &diags);
    } else if (peal_sim_deadlock(sim)) {
        peal_cli_fail(cli, "deadlock on '%s'; 'peal sim %s -m %s' shows it", machine, argument,
                      machine);
        code = PEAL_EXIT_NO;
    } else {
        *out = (double)peal_sim_stats(sim)->time / 1e6;
    }
    peal_sim_free(sim);
    peal_machine_free(opened);
    peal_diags_release(&diags);
    return code;
}
