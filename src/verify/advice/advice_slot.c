/* SPDX-License-Identifier: Apache-2.0 */
/* A second slot for a scratch buffer that races. The plan with two slots is made and verified like
 * any other, with as many launches as its period needs. */
#include "verify/advice/adviser.h"
#include "verify/advice/slot.h"

#include <stdlib.h>

/* Launches of one plan. */
struct launches {
    const struct peal_plan **plans;
    struct program p;
};

static bool launches_init(struct launches *l, const struct peal_plan *plan, uint32_t count,
                          const struct peal_verify_options *options)
{
    *l = (struct launches){.plans = malloc(count * sizeof *l->plans)};
    if (!l->plans)
        return false;
    for (uint32_t i = 0; i < count; i++)
        l->plans[i] = plan;
    return peal_program_build(&l->p, l->plans, count, options->max_bytes) == PEAL_OK;
}

static void launches_release(struct launches *l)
{
    peal_program_release(&l->p);
    free(l->plans);
}

/* The plan with a second slot for a buffer, or NULL. The use of slots is examined over enough
 * launches for each phase to come twice, or over the number of launches that the caller asked
 * for. */
static struct peal_plan *plan_with_fewer(const struct adviser *v, uint32_t buf, uint32_t fewer)
{
    const struct peal_plan *plan = v->p->plans[0];
    struct slot_uses uses = {0};
    struct peal_plan *made = NULL;
    struct launches l;
    if (launches_init(&l, plan, fewer ? fewer : 4 * plan->period, v->options) &&
        l.p.early.fault == PEAL_FAULT_NONE &&
        peal_slot_find(&l.p, l.p.memory_of[0][buf], v->options->workers, &uses))
        made = peal_slot_plan(plan, buf, &uses);
    peal_slot_release(&uses);
    launches_release(&l);
    return made;
}

static bool holds(const struct adviser *v, const struct peal_plan *made, uint32_t fewer)
{
    struct peal_verification *answer = NULL;
    struct peal_verify_options o = *v->options;
    o.advice = false;
    o.no_story = true;
    o.launches = fewer;
    bool good = peal_verify_plan(made, &o, &answer) == PEAL_OK && answer->verdict == PEAL_PROVED &&
                (fewer || !answer->needs_launches);
    peal_verification_free(answer);
    return good;
}

void peal_advice_slot(struct adviser *v, uint32_t memory, uint32_t pos)
{
    const struct program *p = v->p;
    const struct peal_plan *plan = p->plans[0];
    uint8_t kind = p->memory.at[memory].kind;
    uint32_t buf = 0, fewer = p->launches < peal_verify_launches(plan) ? p->launches : 0;
    if (!p->monotone || (kind != PEAL_BUF_WINDOW && kind != PEAL_BUF_PRIVATE))
        return;
    while (buf + 1 < plan->bufs.count && p->memory_of[0][buf] != memory)
        buf++;
    struct peal_plan *made = plan_with_fewer(v, buf, fewer);
    if (made && holds(v, made, fewer))
        peal_advise(v, true,
                    peal_answer_text(
                        v->a,
                        "a second slot for '%s': every write takes the other one than the "
                        "write before, every read the one that was written for it%s",
                        p->memory.at[memory].name,
                        made->period > plan->period
                            ? peal_answer_text(v->a, " ('launch mod %u' tells the launches apart)",
                                               made->period)
                            : ""),
                    pos, PEAL_NONE);
    free(made);
}
