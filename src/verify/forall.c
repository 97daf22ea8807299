/* SPDX-License-Identifier: Apache-2.0 */
/* Class, cutoff, and what has to be shown on plans for up to cutoff ranks. See
 * docs/verifier-all-ranks.md, "Every number of ranks".
 *
 * The caller proves the kernel for 1 to cutoff ranks, all roots and pairs of roots, with one count
 * that leaves no part empty. This file does the rest: other counts, in place, that no rank can get
 * stuck, and that plans for cutoff ranks are made of those for fewer.
 */
#include "verify/forall/forall.h"

#include "verify/forall/halo.h"
#include "verify/forall/mesh.h"
#include "verify/forall/rounds.h"
#include "verify/forall/tree.h"
#include "verify/ring/ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CUTOFF = 14, MAX_SUBSET = 6, MORE_COUNTS = 6 };

const char *peal_forall_class_name(enum peal_forall_class in)
{
    static const char *const names[] = {"none", "mesh", "ring", "tree", "rounds", "halo"};
    return names[in];
}

static bool refuse(struct peal_forall *f, const char *why)
{
    f->proved = false;
    snprintf(f->why, sizeof f->why, "%s", why);
    return false;
}

/* The ranks that matter: those of two accesses, or of a contribution, its target and its way there;
 * and those that the text names. A clause names parts of its own, on both sides. */
static uint32_t cutoff_of(const struct mesh *m)
{
    uint32_t deep = m->max_depth ? m->max_depth : 1;
    uint32_t way = m->remote * deep > m->clause_depth ? m->remote * deep : m->clause_depth;
    uint32_t pair = 2 * (1 + deep), value = m->clauses ? 2 + m->clause_digits + way : 3 + way;
    uint32_t named = m->zero + m->last + 2u * m->root;
    uint32_t least = m->least_ranks > 1 ? (uint32_t)m->least_ranks - 1 : 0;
    return (pair > value ? pair : value) + named + least;
}

static bool read_mesh(struct mesh *m, const struct peal_kernel *kernel, struct peal_forall *out)
{
    *out = (struct peal_forall){0};
    if (!peal_mesh_read(m, kernel, out))
        return false;
    out->cutoff = cutoff_of(m);
    if (out->cutoff > MAX_CUTOFF)
        return peal_mesh_refuse(m, kernel->pos, "more ranks matter at once than can be verified");
    out->even = m->even;
    out->pieces = m->pieces;
    out->messages = m->messages;
    out->least_ranks = m->least_ranks;
    out->least_count = m->least_count;
    out->in = PEAL_FORALL_MESH;
    return true;
}

/* If neither class fits, the reason that comes later in the text belongs to the class that fits
 * better. */
static bool is_later(struct peal_pos a, struct peal_pos b)
{
    return a.line != b.line ? a.line > b.line : a.col > b.col;
}

/* Trees are chosen by contract; barriers may be in rounds. */
static bool read_tree(const struct peal_kernel *kernel, struct peal_forall *out)
{
    struct peal_forall down = {0}, up = {0}, rounds = {0};
    *out = (struct peal_forall){.in = PEAL_FORALL_TREE, .cutoff = PEAL_TREE_CUTOFF};
    if (peal_tree_classify(kernel, &down) || peal_tree_classify_reduce(kernel, &up))
        return true;
    *out = (struct peal_forall){.in = PEAL_FORALL_ROUNDS, .cutoff = PEAL_ROUNDS_CUTOFF};
    if (peal_rounds_classify(kernel, &rounds))
        return true;
    *out = is_later(up.at, down.at) ? up : down;
    if (is_later(rounds.at, out->at))
        *out = rounds;
    return false;
}

struct peal_forall peal_forall_classify(const struct peal_kernel *kernel)
{
    struct peal_forall out, ring = {0}, tree = {0}, halo = {0};
    struct mesh m;
    bool good = read_mesh(&m, kernel, &out);
    peal_mesh_release(&m);
    if (good)
        return out;
    if (peal_ring_classify(kernel, &ring)) {
        ring.in = PEAL_FORALL_RING;
        ring.cutoff = PEAL_RING_CUTOFF;
        return ring;
    }
    if (read_tree(kernel, &tree))
        return tree;
    if (peal_halo_classify(kernel, &halo))
        return halo;
    bool other = strstr(ring.why, "no collective of a ring");
    if (other || is_later(halo.at, ring.at))
        ring = halo;
    /* It names neighbours, so it is no mesh. */
    if (strstr(out.why, "rank that is computed") && ring.at.line > kernel->pos.line)
        return ring;
    bool tried = tree.at.line > kernel->pos.line; /* and not refused as another collective */
    if (tried && is_later(tree.at, ring.at) && is_later(tree.at, out.at))
        return tree;
    return is_later(ring.at, out.at) ? ring : out;
}

void peal_forall_release(struct peal_forall *forall)
{
    peal_text_release(&forall->certificate);
}

/* --- plans ----------------------------------------------------------------------------------- */

/* Of the text as it was written, or with its loops divided (see normal.h). */
static struct peal_plan *make_plan(const struct mesh *m, const struct peal_claim *claim,
                                   uint32_t nranks, uint32_t root)
{
    struct peal_plan_request request = claim->request;
    struct peal_diags diags;
    struct peal_plan *plan = NULL;
    if (m->normal.divided)
        request.kernel = m->normal.kernel;
    request.count = claim->counts[0];
    request.invent = true;
    request.bind.nranks = nranks;
    request.bind.rank = PEAL_NONE;
    request.bind.root = root;
    request.bind.symmetric = request.bind.lenient = true;
    peal_diags_init(&diags);
    if (peal_plan_make(&request, &diags, &plan) != PEAL_OK)
        plan = NULL;
    peal_diags_release(&diags);
    return plan;
}

/* Visits every set of this many ranks that contains the ranks that the text names. */
static bool projects_everywhere(const struct mesh *m, const struct peal_claim *claim,
                                const struct peal_plan *whole, uint32_t root, uint32_t size)
{
    bool good = false;
    struct peal_plan *parts[MAX_SUBSET] = {NULL};
    for (uint32_t set = 0; set < UINT32_C(1) << whole->nranks; set++) {
        uint32_t keep[MAX_CUTOFF], n = 0, at = 0;
        for (uint32_t r = 0; r < whole->nranks; r++) {
            at = r == root ? n : at;
            if (set >> r & 1)
                keep[n++] = r;
        }
        bool last = set >> (whole->nranks - 1) & 1;
        if (n != size || (m->zero && !(set & 1)) || (m->root && !(set >> root & 1)) ||
            (m->last && !last))
            continue;
        uint32_t now = m->root ? at : 0;
        if (!parts[now])
            parts[now] = make_plan(m, claim, size, now);
        if (!parts[now] || !peal_mesh_projects(whole, parts[now], keep))
            goto free_parts;
    }
    good = true;
free_parts:
    for (uint32_t i = 0; i < MAX_SUBSET; i++)
        free(parts[i]);
    return good;
}

/* Plans for all numbers of ranks up to the cutoff show what is waited for in shared cells. */
static bool check_totals(struct peal_forall *f, const struct mesh *m,
                         const struct peal_claim *claim, struct mesh_totals *totals)
{
    bool good = true;
    uint32_t from = m->least_ranks > 2 ? (uint32_t)m->least_ranks : 2;
    for (uint32_t n = from; n <= f->cutoff && m->shared && good; n++) {
        for (uint32_t root = 0; root < (m->root ? n : 1) && good; root++) {
            struct peal_plan *plan = make_plan(m, claim, n, root);
            struct mesh_view v = {0};
            good = plan && peal_mesh_view(&v, m, plan, totals) &&
                   peal_mesh_waits_for_totals(&v, totals);
            peal_mesh_release_view(&v);
            free(plan);
        }
    }
    if (!good)
        return refuse(f, "a wait for less, or for more, than is added to a shared cell before it");
    if (!peal_mesh_adds_in_time(totals))
        return refuse(f, "a rank may add to a shared cell what the next launch waits for");
    return true;
}

static bool check_plan(struct peal_forall *f, const struct mesh *m, const struct peal_claim *claim,
                       const struct mesh_totals *totals, uint32_t root)
{
    uint32_t size = 3u + m->zero + m->root + m->last;
    struct peal_plan *plan = make_plan(m, claim, f->cutoff, root);
    struct mesh_view v = {0};
    bool earlier = plan && peal_mesh_view(&v, m, plan, totals) && peal_mesh_waits_for_earlier(&v);
    bool projects =
        earlier && (size >= f->cutoff || projects_everywhere(m, claim, plan, root, size));
    peal_mesh_release_view(&v);
    free(plan);
    if (!earlier)
        return refuse(f, m->messages
                             ? "a recv may need a send that does not come earlier in the text"
                             : "a wait may need a notify that does not come earlier in the text");
    return projects || refuse(f, "the plan for many ranks is not made of the plans for few");
}

static bool check_plans(struct peal_forall *f, const struct mesh *m, const struct peal_claim *claim)
{
    struct mesh_totals totals = {.until = calloc(m->blocks + 1u, sizeof *totals.until)};
    bool good = totals.until && check_totals(f, m, claim, &totals);
    for (uint32_t root = 0; root < (m->root ? f->cutoff : 1) && good; root++)
        good = check_plan(f, m, claim, &totals, root);
    free(totals.until);
    return good;
}

/* --- proofs for few ranks -------------------------------------------------------------------- */

/* Does the kernel's caller promise that there is no such launch? What a call in the kernel asks for
 * is no promise of the caller. */
static bool is_unmet(const struct peal_forall *f, const struct peal_claim_task *t)
{
    bool said = f->in == PEAL_FORALL_HALO || (int64_t)t->nranks < f->least_ranks ||
                t->count < f->least_count;
    return said && !t->answer && t->status == PEAL_INVALID && t->excluded == PEAL_EXCLUDED_UNMET;
}

/* Is everything that was asked for proved, for any number of launches and all sequences? With
 * `some`, numbers of ranks without a plan are allowed. */
static bool is_whole(const struct peal_forall *f, const struct peal_claim *claim,
                     const struct peal_claim_sum *sum, bool some)
{
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *t = &claim->tasks[i];
        bool sequences_done = t->sequences && t->status == PEAL_OK && !t->answer;
        if (some && !t->answer && t->status == PEAL_INVALID)
            continue;
        if (is_unmet(f, t))
            continue;
        if (!sequences_done && (!t->answer || t->answer->verdict != PEAL_PROVED))
            return false;
        if (t->answer && t->nranks > 1 &&
            (t->answer->reuse < PEAL_REUSE_REPEATABLE || !t->answer->in_order))
            return false;
    }
    return (some || sum->proved) && !sum->two_only && sum->sequences == sum->all_sequences;
}

/* Is the claim the one that the theorem needs? */
static bool is_the_base(const struct peal_forall *f, const struct peal_claim *claim)
{
    if (claim->alone || claim->verify.launches || claim->verify.no_result || claim->plan ||
        claim->ncounts != 1 || claim->counts[0] != peal_forall_count(f) || claim->request.ngiven ||
        claim->nranks != f->cutoff)
        return false;
    for (size_t i = 0; i < claim->nranks; i++) {
        if (claim->ranks[i] != (int64_t)i + 1)
            return false;
    }
    return true;
}

/* The least number that is divisible by all of 1 to n: with this many elements, all parts are
 * equally long. */
static int64_t common_multiple(uint32_t n)
{
    int64_t product = 1;
    for (uint32_t i = 2; i <= n; i++) {
        int64_t a = product, b = i;
        while (b) {
            int64_t rest = a % b;
            a = b;
            b = rest;
        }
        product = product / a * i;
    }
    return product;
}

/* Proves another count, or in place; `some`: where there is a plan. In place there may be no plan for uneven parts, or none at
 * all. */
static bool prove_more(struct peal_forall *f, const struct peal_claim *base, int64_t count,
                       bool in_place, bool some)
{
    struct peal_claim claim = {.request = base->request,
                               .ranks = base->ranks,
                               .nranks = base->nranks,
                               .counts = &count,
                               .ncounts = 1,
                               .verify = base->verify,
                               .workers = base->workers,
                               .done = base->done,
                               .done_with = base->done_with};
    struct peal_claim_sum sum = {0};
    claim.request.bind.in_place = in_place;
    claim.verify.advice = false;
    enum peal_status status = peal_claim_prove(&claim, &sum);
    bool none = in_place && status == PEAL_INVALID;
    for (size_t i = 0; status == PEAL_INVALID && !none && is_unmet(f, &claim.tasks[i]); i++)
        none = i + 1 == claim.ntasks;
    bool uneven = !count || count % common_multiple(f->cutoff) != 0;
    some = some || (in_place && uneven);
    bool good = none || (status == PEAL_OK && is_whole(f, &claim, &sum, some));
    peal_claim_release(&claim);
    if (!good)
        snprintf(f->why, sizeof f->why, "not proved for %lld elements%s at 1 to %u ranks",
                 (long long)count, in_place ? " in place" : "", f->cutoff);
    return good;
}

bool peal_forall_may_be_in_place(const struct peal_kernel *kernel)
{
    enum peal_contract contract;
    if (!kernel->implements ||
        !peal_contract_find(kernel->implements, strlen(kernel->implements), &contract))
        return false; /* which parameters could be one, only a contract says */
    return peal_contract_info(contract)->in_place != PEAL_IN_PLACE_NEVER;
}

uint32_t peal_forall_claims(const struct peal_forall *f)
{
    if (f->in == PEAL_FORALL_NONE)
        return 1;
    if (f->in == PEAL_FORALL_HALO)
        return (uint32_t)f->least + 3;
    return 1 + 2 * (MORE_COUNTS + (f->pieces > 1 ? (uint32_t)f->pieces : 0));
}

int64_t peal_forall_count(const struct peal_forall *f)
{
    int64_t pieces = f->pieces > 1 ? f->pieces : 1;
    if (f->in == PEAL_FORALL_HALO)
        return f->least;
    if (f->even)
        return common_multiple(f->cutoff) * pieces;
    return 3 * (int64_t)f->cutoff * pieces + 2;
}

/* Counts with empty, even and uneven parts. */
static void choose_counts(const struct peal_forall *f, int64_t *out)
{
    int64_t base = peal_forall_count(f), n = f->cutoff, pieces = f->pieces > 1 ? f->pieces : 1;
    const int64_t any[MORE_COUNTS] = {0,          1,    n - 1,
                                      n * pieces, base, common_multiple(f->cutoff) * pieces};
    const int64_t even[MORE_COUNTS] = {0, base, 2 * base, 3 * base, base, 0};
    memcpy(out, f->even ? even : any, sizeof any);
}

/* A count that no number divides which divides the pieces; as many other numbers of ranks as can. */
static int64_t least_odd(const struct peal_forall *f)
{
    int64_t count = f->even ? common_multiple(f->cutoff) : 1;
    for (int64_t i = 2; i <= f->pieces; i++) {
        while (count % i == 0 && f->pieces % i == 0)
            count /= i;
    }
    return count;
}

/* Pieces of a count differ in length, depending on its rest: every rest. Where all parts of ranks are
 * equally long, numbers of ranks that do not divide a count have no plan. */
static bool prove_rests(struct peal_forall *f, const struct peal_claim *claim)
{
    int64_t unit = least_odd(f), most = f->cutoff * f->pieces / unit + 1;
    for (int64_t i = 0; i < f->pieces && f->pieces > 1; i++) {
        int64_t count = (most * f->pieces + i) * unit;
        if (!prove_more(f, claim, count, false, f->even) ||
            (f->in_place && !prove_more(f, claim, count, true, f->even)))
            return false;
    }
    return true;
}

/* Each in place and not. */
static bool prove_counts(struct peal_forall *f, const struct peal_claim *claim)
{
    int64_t counts[MORE_COUNTS];
    choose_counts(f, counts);
    f->in_place = peal_forall_may_be_in_place(claim->request.kernel);
    for (size_t i = 0; i < MORE_COUNTS; i++) {
        if (!prove_more(f, claim, counts[i], false, false))
            return false;
        if (f->in_place && !prove_more(f, claim, counts[i], true, false))
            return false;
    }
    return prove_rests(f, claim);
}

/* All counts up to the one from which on sizes and places do not change their order, and one
 * more. */
static bool check_halo(struct peal_forall *f, const struct peal_claim *claim)
{
    f->depth = claim->request.bind.channel_depth ? claim->request.bind.channel_depth : 2;
    if (f->ahead > f->depth)
        return refuse(f, "more messages are under way than a channel has slots");
    for (int64_t count = 0; count <= f->least + 1; count++) {
        if (!prove_more(f, claim, count, false, false))
            return false;
    }
    return true;
}

static bool check_mesh(struct peal_forall *f, const struct peal_claim *claim)
{
    struct mesh m;
    bool good = read_mesh(&m, claim->request.kernel, f) && check_plans(f, &m, claim);
    f->depth = claim->request.bind.channel_depth ? claim->request.bind.channel_depth : 2;
    peal_mesh_release(&m);
    return good;
}

/* Is every access to a rank's window between its entry and its exit, with every root? */
static bool is_closed(const struct peal_claim *claim)
{
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_verification *v = claim->tasks[i].answer;
        if (v && claim->tasks[i].nranks > 1 && v->reuse != PEAL_REUSE_CLOSED)
            return false;
    }
    return true;
}

static bool check_tree(struct peal_forall *f, const struct peal_claim *claim)
{
    if (!is_closed(claim))
        return refuse(f, "a rank's memory is used after it has left the launch");
    if (!peal_tree_matches(&claim->request))
        return refuse(f, "the plan for many ranks is not along the tree");
    return true;
}

/* The order of the ranks is part of the contract, which no class can follow. */
static bool has_formulas(const struct peal_claim *claim)
{
    return claim->request.kernel->nformulas || peal_reduce_is_user(claim->request.bind.reduce);
}

void peal_forall_finish(struct peal_forall *f, const struct peal_claim *claim,
                        const char *certificate)
{
    struct peal_claim_sum sum = peal_claim_add_up(claim);
    if (f->in == PEAL_FORALL_NONE || f->why[0])
        return;
    if (has_formulas(claim)) {
        (void)refuse(f, "a user-defined reduction is proved for given numbers of ranks only");
        return;
    }
    bool good = is_the_base(f, claim) && is_whole(f, claim, &sum, false);
    if (!good)
        (void)refuse(f, "not all of it is proved for few ranks");
    switch (f->in) {
    case PEAL_FORALL_MESH:
        good = good && check_mesh(f, claim);
        break;
    case PEAL_FORALL_TREE:
        good = good && check_tree(f, claim);
        break;
    case PEAL_FORALL_ROUNDS:
        break;
    case PEAL_FORALL_HALO:
        f->proved = good && check_halo(f, claim);
        return;
    default:
        good = good && peal_ring_prove(&claim->request, certificate, f);
    }
    f->proved = good && prove_counts(f, claim);
}
