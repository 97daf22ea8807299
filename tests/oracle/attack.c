/* SPDX-License-Identifier: Apache-2.0 */
/* attack SEED RANKS COUNTS FILE.peal...: is there a bad run of anything that is called proved?
 *
 * Every kernel of every file is verified for each number of ranks and each count (lists: 2,3,5), in
 * place and not where that makes a plan. What is proved is run by the oracle, more launches than
 * the proof took, under bad schedules; what is refuted is replayed from its counterexample. Whether
 * a kernel is closed, and its least depth of channels, are held against the runs too, and so is
 * what is claimed without looking: that a plan with fusion leaves what the plan without it leaves,
 * and that plans of one shape have one verdict. Kernels are also run with roots, counts and arrays
 * in turn; the verifier is asked about a sequence that goes wrong, and whether sequences were
 * claimed to be safe is for the caller to see (lines that begin with "turns"). Lines that begin
 * with "DEFECT" are defects.
 */
#include "lang/lang.h"
#include "base/base.h"
#include "oracle/oracle.h"
#include "oracle/replay.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEDULES = 24, MOST_VARIANTS = 12, MOST_TURNS = 6 };

/* What was said of plans of a shape. */
struct shape {
    char name[PEAL_SHA256_HEX + 1];
    enum peal_outcome verdict;
    enum peal_reuse reuse;
    enum peal_bits bits;
    uint32_t least_depth;
};

struct attack {
    uint64_t seed;
    uint64_t arrays; /* other numbers in arrays */
    bool other_fusion;
    PEAL_VEC(struct shape) shapes; /* of one file */
    const char *file;
    const struct peal_kernel *kernel;
    uint32_t nranks;
    int64_t count, most, root;
    bool in_place;
    uint32_t depth;
    uint64_t plans, proved, refuted, undecided, runs, replayed, defects, skipped;
    uint64_t faults[PEAL_FAULT_COUNT];
};

static void defect(struct attack *a, const char *what, const char *why)
{
    a->defects++;
    printf("DEFECT %s kernel %s ranks %u count %lld root %lld%s: %s: %s\n", a->file,
           a->kernel->name, a->nranks, (long long)a->count, (long long)a->root,
           a->in_place ? " in place" : "", what, why);
}

/* --- plans ----------------------------------------------------------------------------------- */

struct values {
    struct peal_bind_value at[32];
    int64_t numbers[32][128];
    size_t n;
};

static int64_t *add_value(struct values *v, const char *name, size_t count)
{
    v->at[v->n] = (struct peal_bind_value){name, v->numbers[v->n], count, true};
    return v->numbers[v->n++];
}

/* Parts of n elements, uneven; and blocks, the same seen from both sides. */
static void make_arrays(const struct attack *a, struct values *v, const char *name)
{
    uint32_t p = a->nranks;
    int64_t left = a->count, *at = add_value(v, name, p);
    bool counts = strcmp(name, "counts") == 0, receives = strcmp(name, "recvs") == 0;
    for (uint32_t r = 0; r < p && counts; r++) {
        uint64_t seed = a->seed + 7 + 1000 * a->arrays;
        int64_t some = (int64_t)(peal_hash_u64(r, seed) % (uint64_t)(2 * a->count / p + 2));
        at[r] = r + 1 == p || some > left ? left : some;
        left -= at[r];
    }
    for (uint32_t i = 0; i < p * p && !counts && i < 128; i++) {
        uint64_t h =
            peal_hash_u64(receives ? i % p * p + i / p : i, a->seed + 5 + 1000 * a->arrays);
        at[i] = h % 3 == 0 ? 0 : (int64_t)(h >> 8) % (a->count / p + 2);
    }
}

static struct peal_plan *make_plan(const struct attack *a)
{
    static struct values v;
    struct peal_plan *plan = NULL;
    struct peal_diags diags;
    v.n = 0;
    for (const struct peal_symbol *s = a->kernel->symbols; s && v.n < 32; s = s->next) {
        if (s->kind == PEAL_SYMBOL_DIM)
            *add_value(&v, s->name, 1) = a->count;
        else if (s->kind == PEAL_SYMBOL_INT && strcmp(s->name, "most") == 0)
            *add_value(&v, s->name, 1) = a->most;
        else if (s->kind == PEAL_SYMBOL_INT && strcmp(s->name, "k") == 0)
            *add_value(&v, s->name, 1) = (int64_t)(peal_hash_u64(a->arrays, a->seed) % 5);
        else if (s->kind == PEAL_SYMBOL_INTS)
            make_arrays(a, &v, s->name);
    }
    struct peal_bind bind = {.nranks = a->nranks,
                             .rank = PEAL_NONE,
                             .dtype = a->seed % 3 ? PEAL_I32 : PEAL_F32,
                             .reduce = PEAL_SUM,
                             .values = v.at,
                             .nvalues = v.n,
                             .root = a->root,
                             .in_place = a->in_place,
                             .symmetric = true,
                             .lenient = true,
                             .no_fuse = (a->seed / 3 % 2) != a->other_fusion,
                             .channel_depth = a->depth};
    peal_diags_init(&diags);
    if (peal_instantiate(a->kernel, &bind, &diags, &plan) != PEAL_OK)
        plan = NULL;
    peal_diags_release(&diags);
    return plan;
}

static bool has_symbol(const struct peal_kernel *kernel, enum peal_symbol_kind kind,
                       const char *name)
{
    for (const struct peal_symbol *s = kernel->symbols; s; s = s->next) {
        if (s->kind == kind && (!name || strcmp(s->name, name) == 0))
            return true;
    }
    return false;
}

/* --- running --------------------------------------------------------------------------------- */

static struct oracle_schedule schedule_of(const struct attack *a, uint32_t k)
{
    static const uint32_t restless[] = {0, 0, 1, 3, 10, 40};
    return (struct oracle_schedule){peal_hash_u64(k, a->seed), restless[k % 6]};
}

/* Runs of the plans in this order; what goes wrong is in `o`, which the caller frees. */
static bool goes_wrong(struct attack *a, struct oracle *o, bool same, uint32_t schedules)
{
    uint64_t outputs = 0;
    for (uint32_t k = 0; k < schedules; k++) {
        struct oracle_schedule schedule = schedule_of(a, k);
        o->data = a->seed;
        a->runs++;
        if (!oracle_run(o, &schedule))
            return o->wrong != ORACLE_UNABLE;
        if (same && k && outputs != o->outputs) {
            oracle_is_wrong(o, ORACLE_RESULT, "two schedules leave different results");
            return true;
        }
        outputs = o->outputs;
    }
    return false;
}

static bool run_plan(struct attack *a, const struct peal_plan *plan, uint32_t launches, bool closed,
                     bool same, struct peal_text *why)
{
    const struct peal_plan *plans[64];
    for (uint32_t i = 0; i < 64; i++)
        plans[i] = plan;
    struct oracle *o = oracle_new(plans, launches);
    if (!o) {
        a->skipped++;
        return false;
    }
    o->watch_closed = closed;
    bool wrong = goes_wrong(a, o, same, SCHEDULES);
    if (wrong)
        peal_text_printf(why, "%u launches: %s: %s", launches, oracle_wrong_name(o->wrong),
                         peal_text_get(&o->why));
    oracle_free(o);
    return wrong;
}

static void check_depth(struct attack *a, uint32_t least)
{
    for (int less = 0; less < 2 && least > (uint32_t)less; less++) {
        struct peal_text why = {0};
        a->depth = least - (uint32_t)less;
        struct peal_plan *plan = make_plan(a);
        a->depth = 0;
        if (!plan)
            continue;
        bool wrong = run_plan(a, plan, 2, false, false, &why);
        if (wrong != less)
            defect(a, less ? "least depth could be less" : "least depth is not enough",
                   peal_text_get(&why));
        peal_text_release(&why);
        free(plan);
    }
}

/* With fusion, or without: the same results. A tile of 16 bits would be rounded otherwise; here are
 * none. */
static void check_fusion(struct attack *a, const struct peal_plan *plan)
{
    a->other_fusion = true;
    struct peal_plan *other = make_plan(a);
    a->other_fusion = false;
    uint64_t outputs[2] = {0};
    bool ran = other;
    for (int i = 0; i < 2 && ran; i++) {
        const struct peal_plan *one = i ? other : plan, *plans[] = {one, one};
        struct oracle *o = oracle_new(plans, 2);
        struct oracle_schedule schedule = schedule_of(a, 1);
        if (o)
            o->data = a->seed;
        ran = o && oracle_run(o, &schedule);
        outputs[i] = o ? o->outputs : 0;
        oracle_free(o);
        a->runs++;
    }
    if (ran && outputs[0] != outputs[1])
        defect(a, "fusion", "the plan without it leaves other results");
    free(other);
}

/* A proof found by the shape of another plan must be that of this one. */
static void check_shape(struct attack *a, const struct peal_plan *plan,
                        const struct peal_verification *v)
{
    struct shape mine = {{0}, v->verdict, v->reuse, v->bits, v->least_depth};
    if (!peal_plan_shape(plan, mine.name) || v->verdict == PEAL_UNDECIDED)
        return;
    for (size_t i = 0; i < a->shapes.len; i++) {
        const struct shape *s = &a->shapes.at[i];
        if (strcmp(s->name, mine.name) != 0)
            continue;
        if (s->verdict != mine.verdict || s->reuse != mine.reuse || s->bits != mine.bits ||
            s->least_depth != mine.least_depth)
            defect(a, "shape", "another plan of it has another verdict");
        return;
    }
    (void)peal_vec_push(&a->shapes, mine);
}

static void check_proved(struct attack *a, const struct peal_plan *plan,
                         const struct peal_verification *v)
{
    struct peal_text why = {0};
    uint32_t launches = v->launches, most = v->reuse >= PEAL_REUSE_REPEATABLE ? 6 : 0;
    launches = launches < most ? launches + (uint32_t)(a->seed % (most - launches + 1)) : launches;
    bool closed = v->reuse == PEAL_REUSE_CLOSED;
    if (launches <= 64 && run_plan(a, plan, launches, closed, v->monotone, &why))
        defect(a, "proved, but", peal_text_get(&why));
    peal_text_release(&why);
    if (v->least_depth)
        check_depth(a, v->least_depth);
    if (v->monotone)
        check_fusion(a, plan);
}

static void check_refuted(struct attack *a, const struct peal_plan *plan,
                          const struct peal_verification *v)
{
    struct peal_text why = {0};
    enum replay_end end = replay_story(plan, v, a->seed, &why);
    a->replayed += end == REPLAY_GOOD;
    if (end == REPLAY_BAD)
        defect(a, peal_fault_name(v->fault), peal_text_get(&why));
    peal_text_release(&why);
}

/* True: proved, however often it is launched. */
static bool attack_plan(struct attack *a)
{
    struct peal_plan *plan = make_plan(a);
    struct peal_verification *v = NULL;
    struct peal_verify_options o = {.max_states = 200000};
    if (!plan)
        return false;
    a->plans++;
    if (peal_verify_plan(plan, &o, &v) != PEAL_OK) {
        defect(a, "no verdict", "");
        free(plan);
        return false;
    }
    bool proved = v->verdict == PEAL_PROVED;
    check_shape(a, plan, v);
    a->proved += proved;
    a->refuted += v->verdict == PEAL_REFUTED;
    a->undecided += v->verdict == PEAL_UNDECIDED;
    a->faults[v->fault] += v->verdict == PEAL_REFUTED;
    if (proved)
        check_proved(a, plan, v);
    else if (v->verdict == PEAL_REFUTED)
        check_refuted(a, plan, v);
    else
        printf("undecided %s ranks %u: %s\n", a->file, a->nranks, v->why);
    bool again = proved && v->reuse >= PEAL_REUSE_REPEATABLE;
    peal_verification_free(v);
    free(plan);
    return again;
}

/* Does the verifier call the sequence that went wrong proved? */
static void check_sequence(struct attack *a, const struct peal_plan *const *plans,
                           uint32_t launches, const char *why)
{
    struct peal_verification *v = NULL;
    struct peal_verify_options o = {.max_states = 200000};
    if (peal_verify_sequence(plans, launches, &o, &v) == PEAL_OK && v->verdict == PEAL_PROVED)
        defect(a, "a proved sequence", why);
    peal_verification_free(v);
}

/* Roots, counts and arrays in turn. */
static void attack_turns(struct attack *a, const int64_t *counts, size_t ncounts)
{
    struct peal_plan *variant[MOST_VARIANTS] = {0};
    const struct peal_plan *plans[MOST_TURNS];
    uint32_t n = 0, roots = has_symbol(a->kernel, PEAL_SYMBOL_INT, "root") ? a->nranks : 1;
    bool arrays = has_symbol(a->kernel, PEAL_SYMBOL_INTS, NULL);
    for (uint32_t i = 0; i < roots * ncounts * (arrays ? 3 : 1) && n < MOST_VARIANTS; i++) {
        a->root = i % roots;
        a->count = counts[i / roots % ncounts];
        a->arrays = arrays ? i : 0;
        if ((variant[n] = make_plan(a)))
            n++;
    }
    a->arrays = 0;
    for (uint32_t k = 0; k < 40 && n > 1; k++) {
        struct peal_text name = {0};
        uint32_t launches = 2 + k % (MOST_TURNS - 1);
        for (uint32_t l = 0; l < launches; l++) {
            plans[l] = variant[peal_hash_u64(k * 10 + l, a->seed) % n];
            peal_text_printf(&name, " root %d/%llu", (int)plans[l]->root,
                             (unsigned long long)plans[l]->ops.count);
        }
        struct oracle *o = oracle_new(plans, launches);
        if (o && goes_wrong(a, o, false, 6)) {
            /* What arrays peal verify makes up are others: of these it has claimed nothing. */
            printf("%s %s kernel %s ranks %u%s:%s: %s: %s\n", arrays ? "arrays" : "turns", a->file,
                   a->kernel->name, a->nranks, peal_text_if(a->in_place, " in place"),
                   peal_text_get(&name), oracle_wrong_name(o->wrong), peal_text_get(&o->why));
            check_sequence(a, plans, launches, peal_text_get(&o->why));
            k = 40;
        }
        oracle_free(o);
        peal_text_release(&name);
    }
    for (uint32_t i = 0; i < n; i++)
        free(variant[i]);
}

static size_t parse_list(const char *text, int64_t *out, size_t most)
{
    size_t n = 0;
    while (*text && n < most) {
        char *end;
        out[n++] = strtoll(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
        if (end == text && *end)
            return 0;
    }
    return n;
}

static void attack_kernel(struct attack *a, const int64_t *ranks, size_t nranks,
                          const int64_t *counts, size_t ncounts)
{
    for (size_t c = 0; c < ncounts; c++)
        a->most = counts[c] > a->most ? counts[c] : a->most;
    for (size_t i = 0; i < 2 * nranks; i++) {
        a->nranks = (uint32_t)ranks[i / 2];
        a->in_place = i % 2;
        bool proved = true;
        for (size_t c = 0; c < ncounts; c++) {
            a->count = counts[c];
            a->root = (int64_t)((a->seed + c) % a->nranks);
            proved = attack_plan(a) && proved;
            bool more = has_symbol(a->kernel, PEAL_SYMBOL_INTS, NULL) ||
                        has_symbol(a->kernel, PEAL_SYMBOL_INT, "k");
            for (a->arrays = 1; more && a->arrays < 4; a->arrays++)
                proved = attack_plan(a) && proved;
            a->arrays = 0;
        }
        if (proved && a->nranks > 1)
            attack_turns(a, counts, ncounts);
    }
}

int main(int argc, char **argv)
{
    int64_t ranks[16], counts[16];
    if (argc < 5) {
        fprintf(stderr, "usage: attack SEED RANKS COUNTS FILE.peal...\n");
        return 2;
    }
    struct attack a = {.seed = strtoull(argv[1], NULL, 10)};
    size_t nranks = parse_list(argv[2], ranks, 16), ncounts = parse_list(argv[3], counts, 16);
    uint64_t files = 0, texts = 0;
    for (int i = 4; i < argc; i++) {
        struct peal_diags diags;
        struct peal_program *program = NULL;
        peal_diags_init(&diags);
        a.file = argv[i];
        files++;
        if (peal_program_open(argv[i], &diags, &program) == PEAL_OK) {
            texts++;
            for (const struct peal_kernel *k = peal_program_module(program)->kernels; k;
                 k = k->next) {
                a.kernel = peal_program_kernel(program, k->name, &diags);
                if (a.kernel)
                    attack_kernel(&a, ranks, nranks, counts, ncounts);
            }
        }
        if (program)
            peal_program_close(program);
        peal_diags_release(&diags);
        a.shapes.len = 0;
    }
    peal_vec_release(&a.shapes);
    printf("seed %llu: %llu of %llu texts, %llu plans: %llu proved, %llu refuted (%llu replayed), "
           "%llu not decided; %llu runs, %llu too large, %llu defects\n",
           (unsigned long long)a.seed, (unsigned long long)texts, (unsigned long long)files,
           (unsigned long long)a.plans, (unsigned long long)a.proved, (unsigned long long)a.refuted,
           (unsigned long long)a.replayed, (unsigned long long)a.undecided,
           (unsigned long long)a.runs, (unsigned long long)a.skipped,
           (unsigned long long)a.defects);
    for (int f = 1; f < PEAL_FAULT_COUNT; f++)
        printf("  %s %llu", peal_fault_name((enum peal_fault)f), (unsigned long long)a.faults[f]);
    printf("\n");
    return a.defects ? 1 : 0;
}
