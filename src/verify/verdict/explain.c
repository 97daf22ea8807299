/* SPDX-License-Identifier: Apache-2.0 */
/* The answer as text for people. */
#include "verify/verdict/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The following three are public: a caller may pass any number. */
const char *peal_outcome_name(enum peal_outcome outcome)
{
    static const char *const names[] = {"proved", "refuted", "not decided", "sampled, not proved"};
    if ((unsigned)outcome < sizeof names / sizeof *names)
        return names[outcome];
    return "unknown";
}

enum peal_tone peal_outcome_tone(enum peal_outcome outcome)
{
    if (outcome == PEAL_PROVED)
        return PEAL_TONE_GOOD;
    return outcome == PEAL_REFUTED ? PEAL_TONE_BAD : PEAL_TONE_UNSURE;
}

const char *peal_fault_name(enum peal_fault fault)
{
    static const char *const names[] = {
        "none", "out of bounds",      "overlap",     "channel", "signal", "deadlock",
        "race", "uninitialised read", "wrong result"};
    if ((unsigned)fault < sizeof names / sizeof *names)
        return names[fault];
    return "unknown";
}

const char *peal_reuse_name(enum peal_reuse reuse)
{
    static const char *const names[] = {"none", "single-shot", "repeatable", "closed"};
    if ((unsigned)reuse < sizeof names / sizeof *names)
        return names[reuse];
    return "unknown";
}

const char *peal_story_name(enum peal_story story)
{
    static const char *const names[] = {"shortest", "minimal", "as found"};
    return names[story];
}

const char *peal_contract_name(enum peal_contract contract)
{
    if (contract < PEAL_CONTRACT_COUNT)
        return peal_contract_info(contract)->name;
    return "unknown";
}

enum { WIDTH = 80 };

/* The file that the counterexample begins in: it is named only once. */
static const char *main_file(const struct peal_verification *v)
{
    for (uint32_t i = 0; i < v->nsteps; i++) {
        if (v->steps[i].place.line)
            return v->steps[i].place.file;
    }
    if (v->wrong.has_writer)
        return v->wrong.writer.place.file;
    return "";
}

/* "4:5", or "other.peal:4:5" outside the main file. */
static void put_place(const struct peal_verification *v, const struct peal_verify_place *at,
                      struct peal_text *out)
{
    if (!at->line) {
        peal_text_puts(out, "-");
        return;
    }
    if (strcmp(at->file, main_file(v)) != 0)
        peal_text_printf(out, "%s:", at->file);
    peal_text_printf(out, "%u:%u", at->line, at->col);
}

struct peal_cell_words peal_verify_cell_words(int64_t value)
{
    struct peal_cell_words words;
    bool is_unknown = value >= PEAL_VERIFY_ANY / 2 || value <= -PEAL_VERIFY_ANY / 2;
    int64_t more = value - (value > 0 ? PEAL_VERIFY_ANY : -PEAL_VERIFY_ANY);
    if (value == PEAL_VERIFY_LATER)
        snprintf(words.text, sizeof words.text, "a later launch's");
    else if (!is_unknown)
        snprintf(words.text, sizeof words.text, "%" PRId64, value);
    else if (more)
        snprintf(words.text, sizeof words.text, "unknown %c %" PRId64, more > 0 ? '+' : '-',
                 more > 0 ? more : -more);
    else
        snprintf(words.text, sizeof words.text, "unknown");
    return words;
}

static void put_value(int64_t value, struct peal_text *out)
{
    peal_text_puts(out, peal_verify_cell_words(value).text);
}

/* What a step does to its cell, and what is special about it. */
static void put_remarks(const struct peal_verify_step *s, struct peal_text *out)
{
    const char *gap = "";
    if (s->cell) {
        peal_text_printf(out, s->before != s->after ? "%s: " : "%s is ", s->cell);
        put_value(s->before, out);
    }
    if (s->cell && s->before != s->after) {
        peal_text_puts(out, " -> ");
        put_value(s->after, out);
    }
    if (s->waits_for != PEAL_NONE && s->cell)
        peal_text_printf(out, " (by step %u)", s->waits_for + 1);
    if (s->older != PEAL_NONE)
        peal_text_printf(out, " still, as before step %u", s->older + 1);
    gap = s->cell ? "  " : "";
    if (s->collides || s->blocked)
        peal_text_puts(out, gap);
    if (s->collides)
        peal_text_toned(out, PEAL_TONE_BAD, "<- collides");
    if (s->blocked)
        peal_text_toned(out, PEAL_TONE_BAD, "<- waits for ever");
}

/* One line if it fits in WIDTH columns; otherwise the remarks have a line of their own. */
static void put_step(const struct peal_verification *v, uint32_t i, bool lanes,
                     struct peal_text *out)
{
    enum { HANG = 9 };
    const struct peal_verify_step *s = &v->steps[i];
    struct peal_text remarks = {.colors = out->colors};
    size_t start = out->len;
    peal_text_printf(out, "  %3u  rank %u", i + 1, s->rank);
    if (lanes)
        peal_text_printf(out, " lane %u", s->lane);
    if (v->launches > 1)
        peal_text_printf(out, " launch %u", s->launch);
    peal_text_puts(out, "  ");
    put_place(v, &s->place, out);
    peal_text_printf(out, "  %s", s->text);
    put_remarks(s, &remarks);
    size_t used = out->len - start;
    size_t more = peal_text_columns(peal_text_get(&remarks), remarks.len);
    peal_text_fold(out, start, HANG, WIDTH);
    if (more && used + 2 + more > WIDTH)
        peal_text_printf(out, "\n%*s", HANG, "");
    else if (more)
        peal_text_puts(out, used + 4 + more > WIDTH ? "  " : "    ");
    peal_text_puts(out, peal_text_get(&remarks));
    peal_text_puts(out, "\n");
    peal_text_release(&remarks);
}

static void put_steps(const struct peal_verification *v, struct peal_text *out)
{
    enum { HEAD = 60, TAIL = 30 };
    bool lanes = false;
    if (!v->nsteps)
        return;
    for (uint32_t i = 0; i < v->nsteps; i++)
        lanes = lanes || v->steps[i].lane > 0;
    static const char *const kinds[] = {"the shortest counterexample", "a minimal counterexample",
                                        "a counterexample as it was found, not made minimal"};
    peal_text_printf(out, "\nhow it happens (%s, %u step%s):\n", kinds[v->story], v->nsteps,
                     v->nsteps == 1 ? "" : "s");
    for (uint32_t i = 0; i < v->nsteps; i++) {
        if (v->nsteps > HEAD + TAIL && i == HEAD) {
            peal_text_printf(out, "       ... %u steps left out here; --json has them all\n",
                             v->nsteps - HEAD - TAIL);
            i = v->nsteps - TAIL;
        }
        put_step(v, i, lanes, out);
    }
}

static void put_accesses(const struct peal_verification *v, struct peal_text *out)
{
    for (uint32_t i = 0; i < v->naccesses; i++) {
        const struct peal_verify_access *a = &v->accesses_at[i];
        const struct peal_verify_step *s = &v->steps[a->step];
        if (i == 0)
            peal_text_puts(out, "\n");
        peal_text_printf(out,
                         "rank %u %s %s@%u, elements %" PRIu64 "..%" PRIu64 " (bytes %" PRIu64
                         "..%" PRIu64 "), at ",
                         s->rank, a->writes ? "writes" : "reads", a->buf, a->rank, a->first_element,
                         a->first_element + a->elements - 1, a->first_byte,
                         a->first_byte + a->bytes - 1);
        put_place(v, &s->place, out);
        peal_text_puts(out, "\n");
    }
}

static void put_wait(const struct peal_verify_wait *w, struct peal_text *out)
{
    peal_text_printf(out, "rank %u%s waits for %s %s %s; it is ", w->rank,
                     w->in_cycle ? " (in the cycle)" : "", w->cell, w->relation,
                     peal_verify_cell_words(w->expected).text);
    put_value(w->actual, out);
    peal_text_puts(out, "; ");
    if (w->nnotifiers == 0)
        peal_text_puts(out, "no rank is left to notify it");
    for (uint32_t k = 0; k < w->nnotifiers; k++)
        peal_text_printf(out, "%s%u", k == 0 ? "could be notified by rank " : ", ",
                         w->notifiers[k]);
    peal_text_puts(out, "\n");
}

/* The whole cycle first, then some of the other lanes, and how many more there are. */
static void put_waits(const struct peal_verification *v, struct peal_text *out)
{
    enum { SHOWN = 8 };
    uint32_t others = 0;
    if (v->nwaits)
        peal_text_puts(out, "\n");
    for (uint32_t i = 0; i < v->nwaits; i++) {
        if (v->waits[i].in_cycle)
            put_wait(&v->waits[i], out);
    }
    for (uint32_t i = 0; i < v->nwaits; i++) {
        if (!v->waits[i].in_cycle && others++ < SHOWN)
            put_wait(&v->waits[i], out);
    }
    if (others > SHOWN)
        peal_text_printf(out, "%u more lanes wait\n", others - SHOWN);
}

/* Whether all ranks have the same bits, and whether all elements are added in one order. */
static void put_bits(const struct peal_verification *v, struct peal_text *out)
{
    if (v->bits == PEAL_BITS_UNKNOWN)
        return;
    bool same = v->bits == PEAL_BITS_SAME;
    peal_text_puts(out,
                   same ? "  bits: the same on all ranks" : "  bits: not the same on all ranks");
    if (v->bits_why)
        peal_text_printf(out, ": %s", v->bits_why);
    if (v->contract == PEAL_CONTRACT_ALLREDUCE) {
        if (v->same_order)
            peal_text_puts(out, "; one order for all elements");
        else if (!same || !v->bits_why)
            peal_text_puts(out, "; the order depends on the element's place");
    }
    peal_text_puts(out, "\n");
}

static void put_proof(const struct peal_verification *v, struct peal_text *out)
{
    peal_text_printf(out,
                     "  no deadlock, no race, no uninitialised read, over all schedules of "
                     "%u launch%s back to back\n",
                     v->launches, v->launches == 1 ? "" : "es");
    if (v->contract != PEAL_CONTRACT_NONE)
        peal_text_printf(out, "  result: %s, every element on every rank\n",
                         peal_contract_name(v->contract));
    if (v->promises)
        peal_text_puts(out, "  result: what the kernel ensures, on every rank\n");
    if (v->unconstrained)
        peal_text_printf(out, "  not checked, no ensures is about it: %s\n", v->unconstrained);
    if (v->required)
        peal_text_printf(out, "  required of the caller: %s\n", v->required);
    if (v->contract == PEAL_CONTRACT_NONE && !v->promises)
        peal_text_puts(out, "  result: not checked, the kernel has no contract\n");
    peal_text_printf(out, "  reuse: %s", peal_reuse_name(v->reuse));
    if (v->needs_launches == PEAL_NONE)
        peal_text_puts(out, "; raw signals keep values that depend on the schedule, so more "
                            "launches could show more");
    else if (v->needs_launches)
        peal_text_printf(out, "; it would take %u launches to show all that can happen",
                         v->needs_launches);
    if (v->closed_undecided && v->reuse == PEAL_REUSE_REPEATABLE)
        peal_text_printf(out, "; whether it is closed was not decided: %s", v->open_why);
    else if (v->open_why && v->reuse != PEAL_REUSE_CLOSED)
        peal_text_printf(out, "; not closed: %s", v->open_why);
    peal_text_puts(out, "\n");
    put_bits(v, out);
    if (v->least_depth)
        peal_text_printf(out, "  channels: depth %u suffices; this plan has %u\n", v->least_depth,
                         v->depth);
    if (v->has_relaxed)
        peal_text_puts(out, "  relaxed signals carry no order\n");
}

static void put_wrong(const struct peal_verify_wrong *w, struct peal_text *out)
{
    peal_text_printf(
        out, "\nrank %u, launch %u: %s elements %" PRIu64 "..%" PRIu64 "\n  expected  ", w->rank,
        w->launch, w->buf, w->first_element, w->first_element + w->elements - 1);
    peal_text_toned(out, PEAL_TONE_GOOD, w->expected);
    peal_text_puts(out, "\n  obtained  ");
    peal_text_toned(out, PEAL_TONE_BAD, w->obtained);
    peal_text_puts(out, "\n");
}

/* What a wrong result lacks, and which lines are the cause. */
static void put_difference(const struct peal_verification *v, struct peal_text *out)
{
    const struct peal_verify_wrong *w = &v->wrong;
    if (!w->buf)
        return;
    if (w->difference)
        peal_text_printf(out, "  %s\n", w->difference);
    if (w->has_lost) {
        peal_text_printf(out, "  lost when rank %u overwrote it in launch %u, at ", w->lost.rank,
                         w->lost.launch);
        put_place(v, &w->lost.place, out);
        peal_text_printf(out, ": %s\n", w->lost.text);
    }
    if (w->has_writer) {
        peal_text_printf(out, "  last written by rank %u in launch %u, at ", w->writer.rank,
                         w->writer.launch);
        put_place(v, &w->writer.place, out);
        peal_text_printf(out, ": %s\n", w->writer.text);
    } else {
        peal_text_puts(out, "  no rank wrote it\n");
    }
}

void peal_verification_explain(const struct peal_verification *v, struct peal_text *out)
{
    size_t start = out->len;
    peal_text_printf(out, "%s: ", v->kernel);
    peal_text_toned(out, peal_outcome_tone(v->verdict), peal_outcome_name(v->verdict));
    peal_text_printf(out, " on %u rank%s", v->nranks, peal_text_plural(v->nranks));
    if (v->verdict == PEAL_REFUTED)
        peal_text_printf(out, ": %s", peal_fault_name(v->fault));
    peal_text_puts(out, "\n");
    if (*main_file(v))
        peal_text_printf(out, "  in %s\n", main_file(v));
    if (v->why && v->verdict != PEAL_PROVED)
        peal_text_printf(out, "  %s\n", v->why);
    if (v->verdict == PEAL_PROVED)
        put_proof(v, out);
    put_accesses(v, out);
    put_waits(v, out);
    if (v->wrong.buf)
        put_wrong(&v->wrong, out);
    put_difference(v, out);
    peal_text_fold(out, start, 4, WIDTH);
    put_steps(v, out);
    start = out->len;
    if (v->nadvice)
        peal_text_puts(out, "\n");
    for (uint32_t i = 0; i < v->nadvice; i++) {
        peal_text_puts(out, v->advice[i].fixes ? "would fix it: " : "could be left out: ");
        peal_text_puts(out, v->advice[i].text);
        if (v->advice[i].holds_for)
            peal_text_printf(out, " (at %s)", v->advice[i].holds_for);
        peal_text_puts(out, "\n");
    }
    if (v->nadvice && !v->advice[0].fixes)
        peal_text_printf(out, "  (each by itself, for %s)\n",
                         v->advice_holds_for ? v->advice_holds_for
                                             : "this plan launched repeatedly");
    if (v->no_advice)
        peal_text_printf(out, "\n%s\n", v->no_advice);
    const char *from = v->cached ? ", from the cache" : "";
    if (v->monotone)
        peal_text_printf(out,
                         "  %" PRIu64 " ops, %" PRIu64 " contested accesses, %.1f ms, exact%s\n",
                         v->ops, v->accesses, v->milliseconds, from);
    else
        peal_text_printf(out, "  %" PRIu64 " ops, %" PRIu64 " states, %.1f ms, exploration%s\n",
                         v->ops, v->states, v->milliseconds, from);
    peal_text_fold(out, start, 4, WIDTH);
}
