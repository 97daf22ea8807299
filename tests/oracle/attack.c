/* SPDX-License-Identifier: Apache-2.0 */
/* attack SEED RANKS COUNTS FILE.peal...: searches for bad runs of plans that were proved.
 *
 * Every kernel of every file is verified for each number of ranks and each count (lists: 2,3,5), in
 * place and not, if that makes a plan. A proved plan is run by the oracle under bad schedules, for
 * more launches than the proof took; a refuted plan is replayed from its counterexample. The runs
 * also check what the verifier says of closed kernels and of the least depth of channels, that
 * fusion changes no result, and that plans of one shape have one verdict.
 *
 * Kernels that are proved are also launched with different roots, counts and arrays in turn. If
 * such a sequence goes wrong, the verifier must not prove it. Whether the verifier claims that all
 * sequences are safe is for the caller to find out: a line that begins with "turns" names a kernel
 * of which this would be false. Lines that begin with "DEFECT" are defects.
 */
#include "lang/lang.h"
#include "base/base.h"
#include "oracle/oracle.h"
#include "oracle/replay.h"
#include "symmetry/each.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCHEDULES = 24,
    SEQUENCES = 40, /* per kernel and number of ranks */
    MAX_VARIANTS = 12,
    MAX_TURNS = 6, /* launches in a sequence */
    MAX_LIST = 16, /* numbers of ranks, counts */
    MAX_VALUES = 32,
    MAX_NUMBERS = 128 /* in an array */
};

/* The verdict on plans of a shape. */
struct shape {
    char name[PEAL_SHA256_HEX + 1];
    enum peal_outcome verdict;
    enum peal_reuse reuse;
    enum peal_bits bits;
    uint32_t least_depth;
};

struct list {
    int64_t at[MAX_LIST];
    size_t n;
};

struct attack {
    struct list ranks, counts;
    uint64_t seed;
    uint64_t arrays;               /* changes the numbers in arrays */
    bool other_fusion;             /* fuses if the seed says not, and the reverse */
    PEAL_VEC(struct shape) shapes; /* of one file */
    const char *file;
    const struct peal_kernel *kernel;
    uint32_t nranks;
    int64_t count, max_count, root;
    bool in_place;
    uint32_t depth; /* of channels; 0: as the text says */
    uint64_t plans, proved, refuted, undecided, runs, replayed, defects, skipped;
    uint64_t faults[PEAL_FAULT_COUNT];
};

static void report_defect(struct attack *a, const char *claim, const char *why)
{
    a->defects++;
    printf("DEFECT %s kernel %s ranks %u count %lld root %lld%s: %s: %s\n", a->file,
           a->kernel->name, a->nranks, (long long)a->count, (long long)a->root,
           peal_text_if(a->in_place, " in place"), claim, why);
}

/* --- plans ------------------------------------------------------------------------------------ */

struct values {
    struct peal_bind_value at[MAX_VALUES];
    int64_t numbers[MAX_VALUES][MAX_NUMBERS];
    size_t n;
};

static int64_t *add_value(struct values *v, const char *name, size_t count)
{
    v->at[v->n] = (struct peal_bind_value){name, v->numbers[v->n], count, true};
    return v->numbers[v->n++];
}

/* `counts`: uneven parts of all elements. */
static void add_counts(const struct attack *a, struct values *v, const char *name)
{
    uint32_t p = a->nranks;
    uint64_t seed = a->seed + 7 + 1000 * a->arrays;
    int64_t left = a->count, *counts = add_value(v, name, p);
    for (uint32_t r = 0; r < p; r++) {
        int64_t some = (int64_t)(peal_hash_u64(r, seed) % (uint64_t)(2 * a->count / p + 2));
        counts[r] = r + 1 == p || some > left ? left : some;
        left -= counts[r];
    }
}

/* `sends` or `recvs`: the same blocks between all pairs of ranks, as either end counts them. */
static void add_blocks(const struct attack *a, struct values *v, const char *name)
{
    uint32_t p = a->nranks, blocks = p * p < MAX_NUMBERS ? p * p : MAX_NUMBERS;
    uint64_t seed = a->seed + 5 + 1000 * a->arrays;
    int64_t *sizes = add_value(v, name, p);
    bool receives = strcmp(name, "recvs") == 0;
    for (uint32_t i = 0; i < blocks; i++) {
        uint32_t block = receives ? i % p * p + i / p : i;
        uint64_t random = peal_hash_u64(block, seed);
        sizes[i] = random % 3 == 0 ? 0 : (int64_t)(random >> 8) % (a->count / p + 2);
    }
}

static struct peal_plan *make_plan(const struct attack *a)
{
    static struct values v;
    struct peal_plan *plan = NULL;
    struct peal_diags diags;
    v.n = 0;
    for (const struct peal_symbol *s = a->kernel->symbols; s; s = s->next) {
        if (v.n == MAX_VALUES)
            break;
        if (s->kind == PEAL_SYMBOL_DIM)
            *add_value(&v, s->name, 1) = a->count;
        else if (s->kind == PEAL_SYMBOL_INT && strcmp(s->name, "most") == 0)
            *add_value(&v, s->name, 1) = a->max_count;
        else if (s->kind == PEAL_SYMBOL_INT && strcmp(s->name, "k") == 0)
            *add_value(&v, s->name, 1) = (int64_t)(peal_hash_u64(a->arrays, a->seed) % 5);
        else if (s->kind == PEAL_SYMBOL_INTS && strcmp(s->name, "counts") == 0)
            add_counts(a, &v, s->name);
        else if (s->kind == PEAL_SYMBOL_INTS)
            add_blocks(a, &v, s->name);
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

/* --- running ---------------------------------------------------------------------------------- */

static struct oracle_schedule schedule_of(const struct attack *a, uint32_t k)
{
    static const uint32_t restless[] = {0, 0, 1, 3, 10, 40};
    return (struct oracle_schedule){peal_hash_u64(k, a->seed), restless[k % 6]};
}

/* Runs the oracle's plans under several schedules; the fault is in `o`. `same`: all schedules must
 * leave the same results. */
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
            oracle_report(o, ORACLE_RESULT, "two schedules leave different results");
            return true;
        }
        outputs = o->outputs;
    }
    return false;
}

struct trial {
    uint32_t launches;
    bool closed, same; /* watch for open windows; for schedules that leave different results */
};

static bool run_plan(struct attack *a, const struct peal_plan *plan, const struct trial *trial,
                     struct peal_text *why)
{
    const struct peal_plan *plans[ORACLE_LAUNCHES];
    for (uint32_t i = 0; i < ORACLE_LAUNCHES; i++)
        plans[i] = plan;
    struct oracle *o = oracle_new(plans, trial->launches);
    if (!o) {
        a->skipped++;
        return false;
    }
    o->watch_closed = trial->closed;
    bool wrong = goes_wrong(a, o, trial->same, SCHEDULES);
    if (wrong)
        peal_text_printf(why, "%u launches: %s: %s", trial->launches, oracle_wrong_name(o->wrong),
                         peal_text_get(&o->why));
    oracle_free(o);
    return wrong;
}

/* The least depth suffices, and one less does not. */
static void check_depth(struct attack *a, uint32_t least)
{
    for (uint32_t less = 0; less < 2; less++) {
        if (least <= less)
            return;
        struct peal_text why = {0};
        a->depth = least - less;
        struct peal_plan *plan = make_plan(a);
        a->depth = 0;
        if (!plan)
            continue;
        bool wrong = run_plan(a, plan, &(struct trial){.launches = 2}, &why);
        if (wrong != (less > 0))
            report_defect(a, less ? "least depth could be less" : "least depth is not enough",
                          peal_text_get(&why));
        peal_text_release(&why);
        free(plan);
    }
}

/* The results of two launches; false: they went wrong, or the oracle does not support the plan. */
static bool find_outputs(struct attack *a, const struct peal_plan *plan, uint64_t *outputs)
{
    const struct peal_plan *plans[] = {plan, plan};
    struct oracle_schedule schedule = schedule_of(a, 1);
    struct oracle *o = oracle_new(plans, 2);
    a->runs++;
    if (!o)
        return false;
    o->data = a->seed;
    bool ran = oracle_run(o, &schedule);
    *outputs = o->outputs;
    oracle_free(o);
    return ran;
}

/* Fusion changes no result. */
static void check_fusion(struct attack *a, const struct peal_plan *plan)
{
    uint64_t one, two;
    a->other_fusion = true;
    struct peal_plan *other = make_plan(a);
    a->other_fusion = false;
    if (other && find_outputs(a, plan, &one) && find_outputs(a, other, &two) && one != two)
        report_defect(a, "fusion", "the plan without it leaves other results");
    free(other);
}

/* The cache finds proofs by shape, so all plans of one shape must have the same verdict. */
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
            report_defect(a, "shape", "another plan of it has another verdict");
        return;
    }
    (void)peal_vec_push(&a->shapes, mine);
}

static void check_proved(struct attack *a, const struct peal_plan *plan,
                         const struct peal_verification *v)
{
    struct peal_text why = {0};
    uint32_t launches = v->launches, limit = v->reuse >= PEAL_REUSE_REPEATABLE ? 6 : 0;
    if (launches < limit)
        launches += (uint32_t)(a->seed % (limit - launches + 1));
    struct trial trial = {launches, v->reuse == PEAL_REUSE_CLOSED, v->monotone};
    if (launches <= ORACLE_LAUNCHES && run_plan(a, plan, &trial, &why))
        report_defect(a, "proved, but", peal_text_get(&why));
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
    enum replay_end end = replay_counterexample(plan, v, a->seed, &why);
    a->replayed += end == REPLAY_GOOD;
    if (end == REPLAY_BAD)
        report_defect(a, peal_fault_name(v->fault), peal_text_get(&why));
    peal_text_release(&why);
}

/* True: proved for any number of launches. */
static bool attack_plan(struct attack *a)
{
    struct peal_plan *plan = make_plan(a);
    struct peal_verification *v = NULL;
    struct peal_verify_options o = {.max_states = 200000};
    if (!plan)
        return false;
    a->plans++;
    if (peal_verify_plan(plan, &o, &v) != PEAL_OK) {
        report_defect(a, "no verdict", "");
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

/* The verifier must not prove a sequence that went wrong. */
static void check_sequence(struct attack *a, const struct peal_plan *const *plans,
                           uint32_t launches, const char *why)
{
    struct peal_verification *v = NULL;
    struct peal_verify_options o = {.max_states = 200000};
    if (peal_verify_sequence(plans, launches, &o, &v) == PEAL_OK && v->verdict == PEAL_PROVED)
        report_defect(a, "a proved sequence", why);
    peal_verification_free(v);
}

/* Plans of the kernel that differ in root, count and arrays: returns how many. */
static uint32_t make_variants(struct attack *a, bool arrays, struct peal_plan **out)
{
    uint32_t roots = has_symbol(a->kernel, PEAL_SYMBOL_INT, "root") ? a->nranks : 1;
    uint32_t n = 0, combinations = roots * (uint32_t)a->counts.n * (arrays ? 3 : 1);
    for (uint32_t i = 0; i < combinations; i++) {
        if (n == MAX_VARIANTS)
            break;
        a->root = i % roots;
        a->count = a->counts.at[i / roots % a->counts.n];
        a->arrays = arrays ? i : 0;
        out[n] = make_plan(a);
        n += out[n] != NULL;
    }
    a->arrays = 0;
    return n;
}

/* Runs the plans one after the other. True: that goes wrong. */
static bool attack_sequence(struct attack *a, const struct peal_plan *const *plans,
                            uint32_t launches, bool arrays)
{
    struct oracle *o = oracle_new(plans, launches);
    bool wrong = o && goes_wrong(a, o, false, 6);
    if (wrong) {
        /* The verifier chooses arrays of its own, so it has claimed nothing of these. */
        printf("%s %s kernel %s ranks %u%s:", arrays ? "arrays" : "turns", a->file, a->kernel->name,
               a->nranks, peal_text_if(a->in_place, " in place"));
        for (uint32_t l = 0; l < launches; l++)
            printf(" root %d/%llu", (int)plans[l]->root, (unsigned long long)plans[l]->ops.count);
        printf(": %s: %s\n", oracle_wrong_name(o->wrong), peal_text_get(&o->why));
        check_sequence(a, plans, launches, peal_text_get(&o->why));
    }
    oracle_free(o);
    return wrong;
}

/* Random sequences of variants, until one goes wrong. */
static void attack_turns(struct attack *a)
{
    struct peal_plan *variants[MAX_VARIANTS];
    bool arrays = has_symbol(a->kernel, PEAL_SYMBOL_INTS, NULL);
    uint32_t n = make_variants(a, arrays, variants);
    uint32_t sequences = n > 1 ? SEQUENCES : 0;
    for (uint32_t k = 0; k < sequences; k++) {
        const struct peal_plan *plans[MAX_TURNS];
        uint32_t launches = 2 + k % (MAX_TURNS - 1);
        for (uint32_t l = 0; l < launches; l++)
            plans[l] = variants[peal_hash_u64(k * 10 + l, a->seed) % n];
        if (attack_sequence(a, plans, launches, arrays))
            break;
    }
    for (uint32_t i = 0; i < n; i++)
        free(variants[i]);
}

static struct list read_list(const char *text)
{
    struct list list = {.n = 0};
    int64_t number;
    for (text = each_number(text, &number); text; text = each_number(text, &number)) {
        if (list.n < MAX_LIST)
            list.at[list.n++] = number;
    }
    return list;
}

static void attack_kernel(void *context, const struct peal_kernel *kernel)
{
    struct attack *a = context;
    a->kernel = kernel;
    for (size_t i = 0; i < 2 * a->ranks.n; i++) {
        a->nranks = (uint32_t)a->ranks.at[i / 2];
        a->in_place = i % 2;
        bool proved = true;
        for (size_t c = 0; c < a->counts.n; c++) {
            a->count = a->counts.at[c];
            a->root = (int64_t)((a->seed + c) % a->nranks);
            bool more = has_symbol(a->kernel, PEAL_SYMBOL_INTS, NULL) ||
                        has_symbol(a->kernel, PEAL_SYMBOL_INT, "k");
            uint64_t choices = more ? 4 : 1;
            for (a->arrays = 0; a->arrays < choices; a->arrays++)
                proved = attack_plan(a) && proved;
            a->arrays = 0;
        }
        if (proved && a->nranks > 1)
            attack_turns(a);
    }
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: attack SEED RANKS COUNTS FILE.peal...\n");
        return 2;
    }
    struct attack a = {.seed = strtoull(argv[1], NULL, 10),
                       .ranks = read_list(argv[2]),
                       .counts = read_list(argv[3])};
    for (size_t c = 0; c < a.counts.n; c++)
        a.max_count = a.counts.at[c] > a.max_count ? a.counts.at[c] : a.max_count;
    uint64_t texts = 0;
    for (int i = 4; i < argc; i++) {
        a.file = argv[i];
        texts += each_kernel(argv[i], attack_kernel, &a);
        a.shapes.len = 0;
    }
    peal_vec_release(&a.shapes);
    printf("seed %llu: %llu of %d texts, %llu plans: %llu proved, %llu refuted (%llu replayed), "
           "%llu not decided; %llu runs, %llu too large, %llu defects\n",
           (unsigned long long)a.seed, (unsigned long long)texts, argc - 4,
           (unsigned long long)a.plans, (unsigned long long)a.proved, (unsigned long long)a.refuted,
           (unsigned long long)a.replayed, (unsigned long long)a.undecided,
           (unsigned long long)a.runs, (unsigned long long)a.skipped,
           (unsigned long long)a.defects);
    for (int f = 1; f < PEAL_FAULT_COUNT; f++)
        printf("  %s %llu", peal_fault_name((enum peal_fault)f), (unsigned long long)a.faults[f]);
    printf("\n");
    return a.defects ? 1 : 0;
}
