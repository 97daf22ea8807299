/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of one host meet under a job name of their own, and by their positions among themselves
 * instead of their ranks. See near.h. */
#include "run/bootstrap/near.h"

#include "run/wait/backoff.h"

#include <stdio.h>

static int is_near_gone(void *context, uint32_t seat, struct peal_text *text)
{
    const struct peal_near *near = context;
    return near->options->gone(near->options->context, near->ranks[seat], text);
}

void peal_near_find(const struct peal_team_options *options, struct peal_near *out,
                    struct peal_rendezvous *meet)
{
    out->options = options;
    out->count = peal_span_near(options->span, options->size, options->rank, out->ranks);
    while (out->ranks[out->seat] != options->rank)
        out->seat++;
    snprintf(out->job, sizeof out->job, "%s@%u", options->job,
             peal_endpoint_node(options->span->endpoint, options->span->members[options->rank]));
    meet->job = out->job;
    meet->rank = out->seat;
    meet->size = out->count;
    meet->gone = options->gone ? is_near_gone : NULL;
    meet->context = out;
}

/* Whether each rank has a core depends on its host. Algorithms are chosen by it, so all ranks must
 * find the same number: as many cores as ranks if that holds on every host, else the fewest of any
 * host. */
static void choose_policy(struct peal_team *team)
{
    uint32_t near = 0, fewest = UINT32_MAX;
    bool fits = true;
    for (uint32_t r = 0; r < team->size; r++) {
        uint32_t neighbours = 0; /* on the host of r, with it */
        for (uint32_t q = 0; q < team->size; q++)
            neighbours += team->span->peers[q].node == team->span->peers[r].node;
        fewest = team->controls[r]->cores < fewest ? team->controls[r]->cores : fewest;
        fits = fits && neighbours <= team->controls[r]->cores;
        near += !peal_team_is_far(team, r);
    }
    peal_policy_choose(near, fewest, &team->policy);
    team->policy.cores = fits ? team->size : fewest;
    /* Sleep later: a rank of this host cannot end a sleep, see peal_span_sleep. */
    team->policy.yield_ns *= 10;
}

enum peal_status peal_team_meet_far(struct peal_team *team, const struct peal_span_hello *all,
                                    struct peal_text *why)
{
    enum peal_status status = peal_span_meet(team, all, why);
    if (status == PEAL_OK)
        choose_policy(team);
    return status;
}
