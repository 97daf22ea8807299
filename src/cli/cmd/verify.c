/* SPDX-License-Identifier: Apache-2.0 */
/* peal verify: prove a kernel over all schedules, or show how it goes wrong. */
#include "lang/lang.h"
#include "cli/import/files.h"
#include "cli/kernel_args.h"
#include "cli/page/page_file.h"
#include "cli/page/page_verify.h"
#include "cli/progress.h"
#include "cli/verify/require.h"
#include "cli/verify/fault_report.h"
#include "cli/verify/verify_report.h"
#include "verify/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct verify_options {
    struct peal_kernel_options kernel;
    int64_t launches, states, jobs;
    uint64_t memory;
    int order;
    bool json, advice, alone, no_cache, plain, flush, allow_sample, fix, fix_all;
    const char *html, *require, *fault, *sarif, *certificate, *check;
};

enum { ORDER_WINDOWS, ORDER_PAIRWISE };

static const struct peal_option options_table[] = {
    PEAL_KERNEL_ROWS_OR_ALL(struct verify_options, kernel,
                            ", or all: every number of ranks (default 2..8)"),
    {"launches", 'l', PEAL_OPTION_INT, offsetof(struct verify_options, launches), "L",
     "launches back to back (default: as many as make the proof sound)", 1, 64},
    {"order", 0, PEAL_OPTION_CHOICE, offsetof(struct verify_options, order), "windows|pairwise",
     "what orders ranks of different nodes (--nodes; without it, all): notifies as in windows of "
     "one host, or a network, which orders pairs of ranks only",
     0, 0},
    {"flush", 0, PEAL_OPTION_FLAG, offsetof(struct verify_options, flush), NULL,
     "with the flushes that make notifies between nodes release everything", 0, 0},
    {"advice", 'a', PEAL_OPTION_FLAG, offsetof(struct verify_options, advice), NULL,
     "look for what would fix it, or for what could be left out", 0, 0},
    {"alone", 0, PEAL_OPTION_FLAG, offsetof(struct verify_options, alone), NULL,
     "each plan by itself: no sequences of different roots and counts", 0, 0},
    {"plain", 0, PEAL_OPTION_FLAG, offsetof(struct verify_options, plain), NULL,
     "every rank by itself: no use of symmetry between ranks", 0, 0},
    {"allow-sample", 0, PEAL_OPTION_FLAG, offsetof(struct verify_options, allow_sample), NULL,
     "exit with 0 also where sequences were sampled, not proved", 0, 0},
    {"certificate", 0, PEAL_OPTION_STRING, offsetof(struct verify_options, certificate), "FILE",
     "-n all: write what was shown of a ring, in a form that can be checked again", 0, 0},
    {"check", 0, PEAL_OPTION_STRING, offsetof(struct verify_options, check), "FILE",
     "-n all: check this certificate of a ring instead of looking for one", 0, 0},
    {"fault", 0, PEAL_OPTION_STRING, offsetof(struct verify_options, fault), "stop",
     "instead of a proof: which ranks wait for ever if one stops, by the op where it stops", 0, 0},
    {"states", 0, PEAL_OPTION_INT, offsetof(struct verify_options, states), "N",
     "limit of exploration (default 20 million)", 1, INT64_C(4000000000)},
    {"memory", 0, PEAL_OPTION_SIZE, offsetof(struct verify_options, memory), "B",
     "limit of working memory (default 2G)", 0, 0},
    {"jobs", 'j', PEAL_OPTION_INT, offsetof(struct verify_options, jobs), "J",
     "threads (default: one per core)", 1, 64},
    {"no-cache", 0, PEAL_OPTION_FLAG, offsetof(struct verify_options, no_cache), NULL,
     "neither read nor write the folder of verdicts", 0, 0},
    {"require", 0, PEAL_OPTION_STRING, offsetof(struct verify_options, require), "LIST",
     "what else must hold, or the exit code is 1: same-bits, closed, repeatable", 0, 0},
    {"sarif", 0, PEAL_OPTION_STRING, offsetof(struct verify_options, sarif), "FILE",
     "write SARIF 2.1.0 for reviews and CI (plans in XML and JSON)", 0, 0},
    {"fix", 0, PEAL_OPTION_FLAG, offsetof(struct verify_options, fix), NULL,
     "put verified fixes into the file (XML, JSON), which is kept as FILE.orig", 0, 0},
    {"fix-all", 0, PEAL_OPTION_FLAG, offsetof(struct verify_options, fix_all), NULL,
     "the same for several files", 0, 0},
    {"json", 0, PEAL_OPTION_FLAG, offsetof(struct verify_options, json), NULL, "print JSON", 0, 0},
    {"html", 0, PEAL_OPTION_STRING, offsetof(struct verify_options, html), "FILE",
     "write a page that shows it (or a picture: FILE.svg)", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static const struct verify_options defaults = {.kernel = PEAL_KERNEL_DEFAULTS};

static bool write_page(struct peal_cli *cli, const struct peal_claim *claim, const char *path,
                       const char *file)
{
    struct peal_page page;
    struct peal_page_answer *answers =
        peal_arena_alloc(cli->arena, (claim->ntasks + 1) * sizeof *answers);
    size_t n = 0;
    if (!answers) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *t = &claim->tasks[i];
        if (t->answer)
            answers[n++] =
                (struct peal_page_answer){t->answer, t->plan, (uint64_t)t->count, t->launched};
    }
    if (!n)
        return true; /* no plan could be made; the messages say why */
    peal_page_begin(cli, &page, PEAL_PAGE_VERIFY, claim->request.kernel->name, file);
    peal_page_verify(&page, answers, n);
    return peal_page_save(cli, &page, path);
}

/* Roughly how long a task takes compared with others. */
static uint64_t weigh(const struct peal_claim_task *task)
{
    return (uint64_t)task->nranks * task->nranks * (task->sequences ? 8 : 1);
}

static void step(void *progress, const struct peal_claim_task *task)
{
    peal_progress_step(progress, weigh(task));
}

/* After Ctrl-C: prints the finished rows. */
static void report_finished(void *opaque)
{
    struct peal_text out = {0};
    peal_verify_report_table(opaque, &out);
    fputs(peal_text_get(&out), stdout);
    peal_text_release(&out);
}

static int exit_code(enum peal_outcome verdict, bool allow_sample)
{
    if (verdict == PEAL_REFUTED)
        return PEAL_EXIT_NO;
    bool good = verdict == PEAL_PROVED || (verdict == PEAL_SAMPLED && allow_sample);
    if (good)
        return PEAL_EXIT_OK;
    return PEAL_EXIT_OTHER;
}

/* Reports which plans lack what --require names. True: some do. */
static bool lacks_required(const struct peal_claim *claim, uint32_t require)
{
    bool any = false;
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_verification *v = claim->tasks[i].answer;
        const char *lacks = NULL;
        if (v)
            lacks = peal_require_lacks(require, v);
        if (!lacks)
            continue;
        any = true;
        fprintf(stderr, "peal verify: required at %u ranks, but %s", claim->tasks[i].nranks, lacks);
        if (v->bits_why)
            fprintf(stderr, ": %s", v->bits_why);
        fputs("\n", stderr);
    }
    return any;
}

static int report(struct peal_cli *cli, const struct verify_options *o,
                  const struct peal_claim *claim, const struct peal_forall *all, const char *file)
{
    struct peal_claim_sum sum = peal_claim_add_up(claim);
    struct peal_text out = {0};
    uint32_t require = 0;
    (void)peal_require_parse(cli, o->require, &require); /* run() has checked it */
    int code = exit_code(peal_claim_verdict(&sum), o->allow_sample);
    if (all && code == PEAL_EXIT_OK && !all->proved)
        code = PEAL_EXIT_OTHER;
    if (o->json) {
        peal_verify_report_json(claim, &sum, all, &out);
    } else {
        out.colors = cli->color;
        peal_verify_report_text(cli->arena, claim, &sum, &out);
        if (all)
            peal_verify_all_text(claim, &sum, all, &out);
    }
    code = peal_cli_print(cli, &out, code);
    if (lacks_required(claim, require) && code != PEAL_EXIT_OTHER)
        code = PEAL_EXIT_NO;
    if (o->html && !write_page(cli, claim, o->html, file))
        return PEAL_EXIT_OTHER;
    return code;
}

static const int64_t default_ranks[] = {2, 3, 4, 5, 6, 7, 8};
static const int64_t default_counts[] = {256};

static uint32_t count_workers(const struct verify_options *o)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (o->jobs)
        return (uint32_t)o->jobs;
    if (cores > 0)
        return (uint32_t)cores;
    return 1;
}

/* --nodes places one number of ranks. False after a message. */
static bool claim_nodes(const struct peal_cli *cli, const struct verify_options *o,
                        struct peal_claim *claim)
{
    const struct peal_ints *ranks = &o->kernel.ranks;
    if (!o->kernel.nodes)
        return true;
    if (ranks->all || ranks->len > 1) {
        peal_cli_usage(cli, "--nodes %s places %u ranks: it goes with that number alone",
                       o->kernel.nodes, claim->request.bind.nranks);
        return false;
    }
    if (ranks->len)
        return peal_kernel_places(cli, &o->kernel, claim->request.bind.nranks, ranks->at[0]);
    int64_t *placed = peal_arena_alloc(cli->arena, sizeof *placed);
    if (!placed) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    *placed = claim->request.bind.nranks;
    claim->ranks = placed;
    claim->nranks = 1;
    return true;
}

/* -n all: the numbers of ranks and the count that a proof for all starts from. A kernel of no class
 * is verified for a few ranks, so that there is some answer. False: out of memory. */
static bool ask_for_all(struct peal_cli *cli, const struct peal_forall *all,
                        struct peal_claim *claim)
{
    if (all->in == PEAL_FORALL_NONE)
        return true;
    int64_t *at = peal_arena_alloc(cli->arena, (all->cutoff + 1) * sizeof *at);
    if (!at)
        return false;
    for (uint32_t i = 0; i < all->cutoff; i++)
        at[i] = i + 1;
    at[all->cutoff] = 3 * (int64_t)all->cutoff + 2; /* no part is empty, and they are uneven */
    claim->ranks = at;
    claim->nranks = all->cutoff;
    claim->counts = at + all->cutoff;
    claim->ncounts = 1;
    return true;
}

/* After the proofs for few ranks: the rest, and the certificate. False after a message. */
static bool finish_all(struct peal_cli *cli, const struct verify_options *o,
                       const struct peal_claim *claim, struct peal_forall *all)
{
    struct peal_source given = {0};
    struct peal_text text = {0};
    if (o->check && !peal_cli_read(cli, o->check, &given))
        return false;
    peal_text_add(&text, peal_text_or_empty(given.text), given.len);
    bool good = !text.failed;
    if (good)
        peal_forall_finish(all, claim, o->check ? peal_text_get(&text) : NULL);
    peal_text_release(&text);
    if (!good)
        return peal_cli_fail(cli, "out of memory") == PEAL_EXIT_OK;
    if (!o->certificate || !all->proved)
        return true;
    if (all->certificate.len)
        return peal_cli_write(cli, o->certificate, &all->certificate);
    fprintf(stderr, "peal verify: no certificate: the proof for a %s needs none\n",
            peal_forall_class_name(all->in));
    return true;
}

static int verify_kernel(struct peal_cli *cli, const struct verify_options *o,
                         const struct peal_kernel *kernel, const char *file)
{
    struct peal_claim claim = {
        .verify = {.launches = (uint32_t)o->launches,
                   .max_states = (uint64_t)o->states,
                   .max_bytes = o->memory,
                   .advice = o->advice,
                   .pairwise = o->order == ORDER_PAIRWISE,
                   .plain = o->plain},
        .ranks = default_ranks,
        .nranks = sizeof default_ranks / sizeof *default_ranks,
        .counts = default_counts,
        .ncounts = 1,
        .alone = o->alone || o->launches == 1,
        .flush = o->flush,
        .keep_plans = o->html != NULL,
        .workers = count_workers(o),
    };
    if (o->kernel.ranks.len) {
        claim.ranks = o->kernel.ranks.at;
        claim.nranks = o->kernel.ranks.len;
    }
    if (o->kernel.counts.len) {
        claim.counts = o->kernel.counts.at;
        claim.ncounts = o->kernel.counts.len;
    }
    struct peal_progress progress = {.label = "plans"};
    struct peal_forall all = {0}, *asked = o->kernel.ranks.all ? &all : NULL;
    if (asked)
        all = peal_forall_classify(kernel);
    if (asked && !ask_for_all(cli, &all, &claim))
        return peal_cli_fail(cli, "out of memory");
    if (!peal_kernel_request(cli, kernel, &o->kernel, &claim.request) ||
        !claim_nodes(cli, o, &claim))
        return PEAL_EXIT_USAGE;
    claim.request.bind.no_fuse = o->advice; /* so that there is a place between any two lines */
    if (!o->no_cache && !o->advice && !o->plain)
        claim.cache = peal_cache_folder(cli->arena);
    if (peal_claim_begin(&claim) != PEAL_OK)
        return peal_cli_fail(cli, "out of memory");
    claim.done = step;
    claim.done_with = &progress;
    progress.total = claim.ntasks;
    for (size_t i = 0; i < claim.ntasks; i++)
        progress.weight += weigh(&claim.tasks[i]);
    progress.report = report_finished;
    if (o->json)
        progress.report = NULL;
    progress.context = &claim;
    peal_progress_begin(&progress);
    peal_claim_run(&claim);
    if (o->advice)
        peal_claim_judge_advice(&claim);
    bool finished = !asked || finish_all(cli, o, &claim, &all);
    peal_progress_end(&progress);
    int code = PEAL_EXIT_OTHER;
    if (finished)
        code = report(cli, o, &claim, asked, file);
    peal_forall_release(&all);
    peal_claim_release(&claim);
    return code;
}

/* --fault stop, for every number of ranks and the first count. */
static int report_stops(struct peal_cli *cli, const struct verify_options *o,
                        const struct peal_kernel *kernel)
{
    static const int64_t four[] = {4};
    struct peal_plan_request request = {0};
    struct peal_text out = {0};
    size_t n = 1;
    if (o->kernel.ranks.len)
        n = o->kernel.ranks.len;
    int code = PEAL_EXIT_OK;
    if (!peal_kernel_request(cli, kernel, &o->kernel, &request))
        return PEAL_EXIT_USAGE;
    if (o->json && n > 1)
        return peal_cli_usage(cli, "--fault with --json takes one number of ranks");
    int64_t placed[] = {request.bind.nranks};
    const int64_t *unless_given = four;
    if (o->kernel.nodes)
        unless_given = placed;
    for (size_t i = 0; i < o->kernel.ranks.len; i++) {
        if (!peal_kernel_places(cli, &o->kernel, request.bind.nranks, o->kernel.ranks.at[i]))
            return PEAL_EXIT_USAGE;
    }
    request.count = o->kernel.counts.len ? o->kernel.counts.at[0] : default_counts[0];
    request.max_count = 1;
    if (request.count)
        request.max_count = request.count;
    request.invent = true;
    request.bind.rank = PEAL_NONE;
    request.bind.symmetric = true;
    for (size_t i = 0; i < n; i++) {
        struct peal_stops stops = {0};
        struct peal_plan *plan = NULL;
        request.bind.nranks =
            (uint32_t)(o->kernel.ranks.len ? o->kernel.ranks.at : unless_given)[i];
        struct peal_diags diags;
        peal_diags_init(&diags);
        enum peal_status status = peal_plan_make(&request, &diags, &plan);
        if (!plan)
            code = peal_cli_diags(cli, status, &diags);
        peal_diags_release(&diags);
        if (!plan)
            continue;
        status = peal_stops_find(plan, &stops);
        if (status != PEAL_OK) {
            code = peal_cli_fail(cli, "no table at %u ranks: %s", request.bind.nranks,
                                 stops.why ? stops.why : peal_status_text(status));
        } else if (o->json) {
            peal_fault_report_json(kernel->name, &stops, &out);
        } else {
            peal_fault_report_text(kernel->name, &stops, &out);
        }
        peal_stops_release(&stops);
        free(plan);
    }
    return peal_cli_print(cli, &out, code);
}

/* False after a message: -n all covers all counts, roots and launches, so none can be chosen. */
static bool check_all(const struct peal_cli *cli, const struct verify_options *o)
{
    const struct peal_kernel_options *k = &o->kernel;
    if (!k->ranks.all && (o->certificate || o->check)) {
        peal_cli_usage(cli, "--certificate and --check go with -n all");
        return false;
    }
    if (!k->ranks.all || (!k->counts.len && !k->set.len && !k->root && !k->in_place && !o->alone &&
                          !o->launches && !o->advice && !o->fault))
        return true;
    peal_cli_usage(cli, "-n all covers every count, root and number of launches, in place or not: "
                        "it goes without --count, --set, --root, --in-place, --alone, --launches, "
                        "--advice and --fault");
    return false;
}

/* False after a message: options that are only decided for the order of windows. */
static bool check_order(const struct peal_cli *cli, const struct verify_options *o)
{
    if (o->order == ORDER_WINDOWS || (!o->advice && !o->fault && !o->kernel.ranks.all))
        return true;
    peal_cli_usage(cli, "--order pairwise goes without --advice, --fault and -n all");
    return false;
}

/* False after a message: the root is not a rank for any of the numbers of ranks. */
static bool check_root(const struct peal_cli *cli, const struct peal_kernel_options *o)
{
    uint32_t placed;
    const uint32_t *nodes;
    if (!peal_kernel_placement(cli, o, &placed, &nodes))
        return false;
    int64_t max_ranks = placed;
    if (!placed && !o->ranks.len)
        max_ranks = default_ranks[sizeof default_ranks / sizeof *default_ranks - 1];
    for (size_t i = 0; i < o->ranks.len; i++)
        if (o->ranks.at[i] > max_ranks)
            max_ranks = o->ranks.at[i];
    if (o->root >= max_ranks)
        peal_cli_usage(cli, "--root %lld is not a rank: there are %lld", (long long)o->root,
                       (long long)max_ranks);
    return o->root < max_ranks;
}

/* Files of other formats, one or many. */
static int verify_files(struct peal_cli *cli, const struct verify_options *o, char **args,
                        int nargs)
{
    uint32_t require = 0;
    (void)peal_require_parse(cli, o->require, &require); /* run() has checked it */
    if (o->kernel.set.len || o->kernel.kernel || o->kernel.nodes)
        return peal_cli_usage(
            cli, "--set, --kernel and --nodes are for kernels, not for plans in files");
    struct peal_files_job job = {
        .options = &o->kernel,
        .verify = {.launches = (uint32_t)o->launches,
                   .max_states = (uint64_t)o->states,
                   .max_bytes = o->memory,
                   .pairwise = o->order == ORDER_PAIRWISE,
                   .advice = o->advice},
        .require = require,
        .workers = count_workers(o),
        .cache = o->no_cache || o->advice ? NULL : peal_cache_folder(cli->arena),
    };
    if (o->fix && !o->fix_all && nargs > 1)
        return peal_cli_usage(cli, "--fix changes one file; --fix-all changes several");
    job.fix = o->fix || o->fix_all;
    job.find_fixes = job.fix || nargs == 1 || o->sarif || o->advice;
    struct peal_files_out out = {.json = o->json, .sarif = o->sarif};
    return peal_verify_files(cli, &job, &out, args, nargs);
}

/* A built-in kernel from the library that an earlier argument has opened. NULL: it must be
 * opened. */
static const struct peal_kernel *find_builtin(struct peal_program *library, const char *name)
{
    struct peal_diags diags;
    const struct peal_kernel *kernel = NULL;
    if (!library || peal_program_is_path(name))
        return NULL;
    peal_diags_init(&diags);
    if (peal_module_find(peal_program_module(library), name))
        kernel = peal_program_kernel(library, name, &diags);
    peal_diags_release(&diags);
    return kernel;
}

/* *library: that of the first built-in, so that it is parsed only once. */
static int verify_one(struct peal_cli *cli, const struct verify_options *o, const char *name,
                      struct peal_program **library)
{
    struct peal_program *program = NULL;
    int code = PEAL_EXIT_USAGE;
    const struct peal_kernel *kernel = NULL;
    if (!o->kernel.kernel)
        kernel = find_builtin(*library, name);
    if (!kernel)
        kernel = peal_kernel_open(cli, name, &o->kernel, &program);
    if (!kernel)
        return PEAL_EXIT_OTHER;
    if (check_root(cli, &o->kernel) && check_all(cli, o) && check_order(cli, o))
        code = o->fault ? report_stops(cli, o, kernel) : verify_kernel(cli, o, kernel, name);
    if (program && !*library && !peal_program_is_path(name))
        *library = program;
    else
        peal_program_close(program);
    return code;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    const struct verify_options *o = options;
    bool files = false;
    uint32_t require;
    if (!peal_require_parse(cli, o->require, &require))
        return PEAL_EXIT_USAGE;
    if (o->fault && strcmp(o->fault, "stop") != 0)
        return peal_cli_usage(cli, "--fault knows 'stop', not '%s'", o->fault);
    for (int i = 0; i < nargs; i++)
        files = files || peal_import_names_file(args[i]);
    if (files)
        return verify_files(cli, o, args, nargs);
    if (o->sarif || o->fix || o->fix_all)
        return peal_cli_usage(cli, "--sarif and --fix are for plans in XML and JSON");
    if (nargs > 1 && (o->json || o->html))
        return peal_cli_usage(cli, "--json and --html take one kernel at a time");
    struct peal_program *library = NULL;
    int worst = PEAL_EXIT_OK;
    for (int i = 0; i < nargs; i++) {
        int code = verify_one(cli, o, args[i], &library);
        if (code == PEAL_EXIT_USAGE) {
            worst = code;
            break;
        }
        if (worst == PEAL_EXIT_OK || code == PEAL_EXIT_NO)
            worst = code;
    }
    peal_program_close(library);
    return worst;
}

const struct peal_command peal_cmd_verify = {
    .name = "verify",
    .args = "KERNEL|FILE...",
    .arg_names = PEAL_ARGUMENT_KERNEL,
    .summary = "prove a kernel over all schedules, or show how it goes wrong",
    .details =
        "KERNEL is a file or a built-in kernel's name. For every number of ranks and every count, "
        "the plan is launched back to back as often as a sound proof needs, and every schedule is "
        "covered: bounds, deadlock, races, signals, uninitialised reads and, where the kernel has "
        "a contract, the result. Kernels with a root, and several counts, are also launched in "
        "sequences of different roots and counts.\n\n"
        "--order pairwise proves it also for a network between nodes: what a rank puts into "
        "another "
        "rank's memory is then ordered only for that rank, by a notify to it. Without --nodes "
        "every "
        "rank is a node.\n\n"
        "-n all asks for every number of ranks: 'proved for every number of ranks' covers every "
        "count, root and number of launches, in place or not; otherwise the answer is 'not decided "
        "for all' with what is proved for few ranks, and the exit code 3. Rings need an SMT solver "
        "(z3 or cvc5) in the search path; with both, both must agree.\n\n"
        "If there are too many sequences, only some are examined: the verdict is then 'sampled, "
        "not "
        "proved', which is not a proof.\n\n"
        "Exit code: 0 proved (wherever the kernel has a plan), 1 refuted, 2 wrong usage, 3 not "
        "decided, sampled (0 with --allow-sample) or no plan at all. Of several kernels: 1 if any "
        "is refuted, else 3 if any is not proved or unreadable.\n\n"
        "Files in MSCCL XML or MSCCL++ JSON (docs/formats.md) are verified as they are, one or "
        "many: "
        "ranks, chunks, in place or not and the FIFO depth come from the file. The exit code is "
        "then 1 if any is refuted, else 3 if any is not decided or unreadable.\n\n"
        "  peal verify allreduce_ring -n 2..16\n"
        "  peal verify plans/*.xml --require same-bits\n"
        "  peal verify my.peal -n 4 --count 0,1,100 --advice\n"
        "  peal verify allreduce_nodes -n 8 --nodes 5+3 --order pairwise\n"
        "  peal verify allreduce_mesh -n all\n"
        "  peal verify allreduce_ring -n all --certificate ring.cert",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof(struct verify_options),
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
