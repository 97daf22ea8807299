/* SPDX-License-Identifier: Apache-2.0 */
/* A team made from another, at new places in the same windows. Nothing is opened, and nothing is
 * mapped but the slabs that hold the control blocks; see windows.h. */
#include "base/base.h"
#include "run/bootstrap/team_make.h"
#include "run/exec/remote.h"
#include "run/span/span.h"
#include "run/team/memory/windows.h"

#include <errno.h>
#include <string.h>

enum peal_status peal_team_reserve(struct peal_team *team, enum peal_life life, uint32_t *place,
                                   struct peal_text *why)
{
    struct peal_layout layout;
    uint32_t file = team->files[team->rank];
    peal_layout_derive(team->size, &layout); /* the new team has at most this many ranks */
    enum peal_status status = peal_windows_take(team->windows, file, layout.bytes, place);
    if (status != PEAL_OK) {
        peal_text_printf(why, "no room for a window: %s", strerror(errno));
        return status;
    }
    struct peal_control *control = peal_windows_head(team->windows, file, *place);
    /* Rank and size are not known yet; what peers read before all have made the team is. */
    peal_control_write(control, 0, 0, "", &layout);
    control->probe_at = peal_team_own(team)->probe_at;
    control->probe = peal_team_own(team)->probe;
    atomic_store_explicit(&control->life, life, memory_order_relaxed);
    return PEAL_OK;
}

void peal_team_give_up(struct peal_team *team, uint32_t place)
{
    uint32_t file = team->files[team->rank];
    peal_windows_clear(team->windows, file, place, true);
    peal_windows_retire(team->windows, file, place);
}

/* Fills in the team's tables for one rank of the group. */
static enum peal_status add_rank(const struct peal_team *old, struct peal_team *team, uint32_t rank,
                                 const struct peal_team_group *group, struct peal_text *why)
{
    uint32_t was = group->ranks[rank], place = group->places[rank];
    uint32_t file = old->files[was];
    struct peal_control *control = peal_windows_head(team->windows, file, place);
    if (!control) {
        peal_text_printf(why, "cannot map the window of rank %u: %s", rank, strerror(errno));
        return PEAL_NO_MEMORY;
    }
    if (control->magic != PEAL_CONTROL_MAGIC || control->version != PEAL_CONTROL_VERSION) {
        peal_text_printf(why, "rank %u has passed what is not a window", rank);
        return PEAL_INVALID;
    }
    team->controls[rank] = control;
    team->files[rank] = file;
    team->places[rank] = place;
    team->starts[rank] = peal_windows_body(place);
    team->fds[rank] = old->fds[was];
    team->pidfds[rank] = old->pidfds[was];
    team->pids[rank] = old->pids[was];
    return PEAL_OK;
}

enum peal_status peal_team_derive(struct peal_team *old, const struct peal_team_group *group,
                                  struct peal_text *why, struct peal_team **out)
{
    struct peal_team *team =
        peal_team_new(group->rank, group->size, group->job, peal_team_timeout(old));
    if (!team) {
        peal_text_puts(why, "no memory for a communicator");
        return PEAL_NO_MEMORY;
    }
    team->windows = old->windows;
    peal_windows_hold(team->windows);
    peal_layout_derive(team->size, &team->layout);
    team->lazy = true;
    team->threads = old->threads;
    team->quiet = old->quiet;
    team->meet_ms = old->meet_ms;
    enum peal_status status = PEAL_OK;
    for (uint32_t r = 0; r < team->size && status == PEAL_OK; r++) {
        if (!peal_team_is_far(old, group->ranks[r]))
            status = add_rank(old, team, r, group, why);
    }
    if (status == PEAL_OK)
        peal_control_name(peal_team_own(team), team->rank, team->size, team->job, &team->layout);
    if (status == PEAL_OK && group->span)
        status = peal_span_attach(team, group->span, group->hello);
    if (status != PEAL_OK) {
        peal_team_close(team);
        return status;
    }
    peal_team_complete(team);
    if (team->threads)
        team->reads = PEAL_READS_YES;
    else
        peal_remote_probe(
            team); /* ranks may read each other although not all of the old team can */
    *out = team;
    return PEAL_OK;
}
