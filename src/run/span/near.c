/* SPDX-License-Identifier: Apache-2.0 */
/* See near.h. */
#include "run/span/near.h"

#include "run/call/backoff.h"

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

/* Whether ranks have a core each is a matter of each host. Algorithms are chosen by it, so all ranks come
 * to the same answer: if all have, as many cores as ranks. */
static void choose_policy(struct peal_team *team)
{
    uint32_t near = 0, fewest = UINT32_MAX;
    bool fits = true;
    for (uint32_t r = 0; r < team->size; r++) {
        uint32_t mates = 0;
        for (uint32_t q = 0; q < team->size; q++)
            mates += team->span->peers[q].node == team->span->peers[r].node;
        fewest = team->controls[r]->cores < fewest ? team->controls[r]->cores : fewest;
        fits = fits && mates <= team->controls[r]->cores;
        near += !peal_team_is_far(team, r);
    }
    peal_policy_choose(near, fewest, &team->policy);
    team->policy.cores = fits ? team->size : fewest;
    /* A rank of this host cannot end a sleep: see peal_span_sleep. */
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
