/* SPDX-License-Identifier: Apache-2.0 */
/* What `peal verify -n all` prints about every number of ranks, besides the answers for few. */
#include "cli/verify/verify_report.h"

#include "lang/lang.h"

#include <inttypes.h>

static const char proved[] = "proved for every number of ranks";
static const char undecided[] = "not decided for all";
static const char not_covered[] =
    "launches whose counts differ, other element types and reductions than the one here, the "
    "hardware, and the caller's own use of its buffers";

static void put_reason(const struct peal_forall *all, struct peal_text *out)
{
    if (all->at.line)
        peal_text_printf(out, "line %" PRIu32 ": ", all->at.line);
    peal_text_puts(out, all->why);
}

/* How it is known: by few ranks that stand for all, or by formulas about all. */
static void put_how(const struct peal_forall *all, struct peal_text *out)
{
    static const char *const by[] = {"", "z3", "cvc5", "z3 and cvc5"};
    if (all->in != PEAL_FORALL_RING) {
        peal_text_printf(out, "  What up to %u ranks do stands for all", all->cutoff);
        if (all->messages)
            peal_text_printf(out, "; channels have %u %s", all->depth,
                             all->depth == 1 ? "slot" : "slots");
        peal_text_puts(out, ".\n");
        return;
    }
    size_t from = out->len;
    peal_text_printf(
        out,
        "  Shown for more than %u ranks by %u formulas that %s found to hold, for fewer "
        "plan by plan; channels have %u %s.\n",
        all->above, all->obligations, by[all->solvers & 3], all->depth,
        all->depth == 1 ? "slot" : "slots");
    peal_text_fold(out, from, 2, PEAL_TEXT_WIDTH);
}

void peal_verify_all_text(const struct peal_claim *claim, const struct peal_claim_sum *t,
                          const struct peal_forall *all, struct peal_text *out)
{
    const char *name = claim->request.kernel->name;
    if (all->proved) {
        peal_text_printf(out, "\n%s: ", name);
        peal_text_toned(out, PEAL_TONE_GOOD, proved);
        peal_text_printf(out, " (%s%s),\n  every %s, every root, any number of ",
                         all->in == PEAL_FORALL_ROUNDS ? "in " : "a ",
                         peal_forall_class_name(all->in),
                         all->even ? "multiple of nranks as count" : "count");
        peal_text_puts(out, all->in_place ? "launches, in place or not.\n" : "launches.\n");
        put_how(all, out);
        if (t->required) {
            size_t from = out->len;
            peal_text_printf(out, "  requires of the caller: %s.\n", t->required);
            peal_text_fold(out, from, 4, PEAL_TEXT_WIDTH);
        }
        peal_text_puts(
            out, "  does not cover: launches whose counts differ, other element types and\n"
                 "  reductions than the one here, the hardware, and the caller's own use of its\n"
                 "  buffers.\n");
        return;
    }
    peal_text_printf(out, "\n%s: ", name);
    if (peal_claim_verdict(t) == PEAL_REFUTED) {
        peal_text_toned(out, PEAL_TONE_BAD, "refuted");
        peal_text_puts(out, ", so not right for every number of ranks.\n");
        return;
    }
    peal_text_toned(out, PEAL_TONE_UNSURE, undecided);
    peal_verify_report_proved(claim, out);
    peal_text_puts(out, ".\n");
    size_t from = out->len;
    peal_text_puts(out, "  ");
    put_reason(all, out);
    peal_text_puts(out, "\n");
    peal_text_fold(out, from, 4, PEAL_TEXT_WIDTH);
    const char *instead = peal_forall_hint(all->why);
    if (instead)
        peal_text_printf(out, "  instead:\n  %s\n", instead);
}

static void put_number(struct peal_json *json, const char *key, uint32_t number)
{
    peal_json_key(json, key);
    if (number)
        peal_json_uint(json, number);
    else
        peal_json_null(json);
}

static void put_solvers(struct peal_json *json, const struct peal_forall *all)
{
    static const char *const names[] = {"z3", "cvc5"};
    peal_json_put_array(json, "solvers");
    for (uint32_t i = 0; i < 2; i++) {
        if (all->proved && (all->solvers >> i & 1))
            peal_json_string(json, names[i]);
    }
    peal_json_array_end(json);
}

void peal_verify_all_json(const struct peal_claim *claim, const struct peal_claim_sum *t,
                          const struct peal_forall *all, struct peal_json *json)
{
    const char *verdict = all->proved ? proved : undecided;
    if (peal_claim_verdict(t) == PEAL_REFUTED)
        verdict = peal_outcome_name(PEAL_REFUTED);
    peal_json_put_object(json, "all_ranks");
    peal_json_put_string(json, "verdict", verdict);
    peal_json_put_string(json, "class", peal_forall_class_name(all->in));
    put_number(json, "cutoff", all->cutoff);
    peal_json_put_int(json, "examined_up_to", claim->nranks ? claim->ranks[claim->nranks - 1] : 0);
    peal_json_put_string(json, "why", all->proved ? NULL : all->why);
    put_number(json, "line", all->proved ? 0 : all->at.line);
    peal_json_put_string(json, "instead", all->proved ? NULL : peal_forall_hint(all->why));
    peal_json_put_string(json, "requires", all->proved ? t->required : NULL);
    put_number(json, "formulas", all->proved ? all->obligations : 0);
    put_solvers(json, all);
    peal_json_put_string(json, "not_covered", not_covered);
    peal_json_object_end(json);
}
