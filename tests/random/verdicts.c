/* SPDX-License-Identifier: Apache-2.0 */
/* random-verdicts COMMAND FIRST COUNT: the verifier on random programs.
 *
 *   promela    prints a Promela model of all of them; $WHICH chooses one at run time
 *   verdicts   prints a line per program: number, deadlock (0 or 1), race (0 or 1), analysis
 *   agree      compares the two analyses of the verifier on every monotone program
 *   launches   compares a proof with one for more launches
 */
#include "random/program.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const head =
    "c_decl { #include <stdlib.h>\n}\nbyte which;\n"
    "short c[8]; byte rd[8]; byte wr[8]; byte ad[8]; byte mx[8]; byte started[4]; byte ended[4];\n"
    "inline READ(l) { d_step { assert(wr[l] == 0 && ad[l] == 0 && mx[l] == 0); rd[l]++ }; rd[l]-- "
    "}\n"
    "inline WRITE(l) { d_step { assert(wr[l] == 0 && rd[l] == 0 && ad[l] == 0 && mx[l] == 0); "
    "wr[l]++ }; wr[l]-- }\n"
    "inline ADDTO(l) { d_step { assert(wr[l] == 0 && rd[l] == 0 && mx[l] == 0); ad[l]++ }; ad[l]-- "
    "}\n"
    "inline MAXTO(l) { d_step { assert(wr[l] == 0 && rd[l] == 0 && ad[l] == 0); mx[l]++ }; mx[l]-- "
    "}\n";

static int put_promela(uint64_t first, uint64_t count)
{
    struct peal_text out = {0};
    peal_text_puts(&out, head);
    for (uint64_t i = 0; i < count; i++) {
        struct random_program p = random_program_make(first + i);
        random_program_promela(&p, (unsigned)i, &out);
    }
    peal_text_puts(&out, "init {\n  c_code { now.which = atoi(getenv(\"WHICH\")); };\n  if\n");
    for (uint64_t i = 0; i < count; i++)
        peal_text_printf(&out, "  :: which == %u -> run Start%u()\n", (unsigned)i, (unsigned)i);
    peal_text_puts(&out, "  fi\n}\n");
    fputs(peal_text_get(&out), stdout);
    peal_text_release(&out);
    return 0;
}

/* All faults; or, with `reuse`, the verdict on at least two launches. */
static struct peal_verification *judge(uint64_t seed, enum peal_engine engine, bool reuse)
{
    struct random_program p = random_program_make(seed);
    struct peal_plan *plan = random_program_plan(&p);
    struct peal_verification *v = NULL;
    struct peal_verify_options o = {.launches = reuse && p.launches < 2 ? 2 : p.launches,
                                    .engine = engine,
                                    .all_faults = !reuse,
                                    .no_result = true,
                                    .no_story = true};
    if (!plan || peal_verify_plan(plan, &o, &v) != PEAL_OK) {
        fprintf(stderr, "program %llu: no verdict\n", (unsigned long long)seed);
        exit(3);
    }
    free(plan);
    return v;
}

static int put_verdicts(uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct peal_verification *v = judge(first + i, PEAL_ENGINE_AUTO, false);
        const char *way = v->monotone ? "exact" : "explored";
        printf("%llu %d %d %s\n", (unsigned long long)(first + i), v->has_deadlock, v->has_race,
               v->verdict == PEAL_UNDECIDED ? "undecided" : way);
        peal_verification_free(v);
    }
    return 0;
}

/* Compares the two analyses' verdicts on reuse, unless exploration has not decided it. */
static bool reuse_differs(uint64_t seed, unsigned *closed, unsigned *open)
{
    struct peal_verification *a = judge(seed, PEAL_ENGINE_AUTO, true);
    struct peal_verification *b = judge(seed, PEAL_ENGINE_EXPLORE, true);
    /* Exploration knows no number of launches for cells that are set back. */
    bool fewer = b->reuse == PEAL_REUSE_SINGLE_SHOT;
    bool differ = !b->closed_undecided && !fewer && a->reuse != b->reuse;
    *closed += !differ && a->reuse == PEAL_REUSE_CLOSED && a->accesses;
    *open += !differ && !b->closed_undecided && a->reuse == PEAL_REUSE_REPEATABLE;
    if (differ)
        printf("program %llu: exact says %s, exploration %s\n", (unsigned long long)seed,
               peal_reuse_name(a->reuse), peal_reuse_name(b->reuse));
    peal_verification_free(a);
    peal_verification_free(b);
    return differ;
}

/* The polynomial analysis against exploration. */
static int compare(uint64_t first, uint64_t count)
{
    unsigned both = 0, differ = 0, bad = 0, closed = 0, open = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct peal_verification *a = judge(first + i, PEAL_ENGINE_AUTO, false);
        if (a->monotone) {
            struct peal_verification *b = judge(first + i, PEAL_ENGINE_EXPLORE, false);
            both++;
            bad += a->has_deadlock || a->has_race;
            if (a->has_deadlock != b->has_deadlock || a->has_race != b->has_race ||
                b->verdict == PEAL_UNDECIDED) {
                differ++;
                printf("program %llu: exact says deadlock %d race %d, exploration %d %d\n",
                       (unsigned long long)(first + i), a->has_deadlock, a->has_race,
                       b->has_deadlock, b->has_race);
            } else if (!a->has_deadlock && !a->has_race)
                differ += reuse_differs(first + i, &closed, &open);
            peal_verification_free(b);
        }
        peal_verification_free(a);
    }
    printf("%u monotone programs, %u of them faulty, %u closed, %u repeatable: %u differ\n", both,
           bad, closed, open, differ);
    return differ || both < count / 4 || bad == 0 || bad == both || closed == 0 || open == 0;
}

/* A program that is proved repeatable is not refuted for more launches. */
static int launch_more(uint64_t first, uint64_t count)
{
    unsigned proved = 0, longer = 0, single = 0, wrong = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct random_program p = random_program_make(seed);
        struct peal_plan *plan = random_program_plan(&p);
        struct peal_verification *v = NULL, *w = NULL;
        struct peal_verify_options o = {.no_result = true, .no_story = true, .max_states = 300000};
        if (!plan || peal_verify_plan(plan, &o, &v) != PEAL_OK)
            exit(3);
        single += v->verdict == PEAL_PROVED && v->reuse < PEAL_REUSE_REPEATABLE;
        if (v->verdict == PEAL_PROVED && v->reuse >= PEAL_REUSE_REPEATABLE) {
            proved++;
            longer += v->launches > 2;
            o.launches = v->launches + 3;
            if (peal_verify_plan(plan, &o, &w) != PEAL_OK)
                exit(3);
            if (w->verdict == PEAL_REFUTED) {
                wrong++;
                printf("program %llu: proved with %u launches, refuted with %u\n",
                       (unsigned long long)seed, v->launches, w->launches);
            }
            peal_verification_free(w);
        }
        peal_verification_free(v);
        free(plan);
    }
    printf(
        "%u proved repeatable, %u of them with more than two launches, %u single-shot: %u wrong\n",
        proved, longer, single, wrong);
    return wrong || proved < count / 50 || !longer || !single;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    if (strcmp(argv[1], "promela") == 0)
        return put_promela(first, count);
    if (strcmp(argv[1], "verdicts") == 0)
        return put_verdicts(first, count);
    if (strcmp(argv[1], "launches") == 0)
        return launch_more(first, count);
    return strcmp(argv[1], "agree") == 0 ? compare(first, count) : 2;
}
