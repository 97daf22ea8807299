/* SPDX-License-Identifier: Apache-2.0 */
/* peal verify KERNEL.cpp. */
#include "cli/verify/verify_recorded.h"

#include "cli/record/record.h"
#include "cli/record/story.h"
#include "cli/page/page_file.h"
#include "cli/page/page_verify.h"
#include "cli/progress.h"
#include "cli/verify/sarif.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ANSWERS = 256 };

/* The verdict at one number of ranks and one level. */
struct level_answer {
    uint32_t ranks;
    bool by_pipe;
    bool returns;                /* the kernel does nothing at this number of ranks */
    const char *error;           /* or there is no plan: why */
    struct peal_verification *v; /* or NULL */
    struct peal_plan *plan;      /* of `v`, kept for a page */
};

struct verify_job {
    struct peal_cli *cli;
    const struct peal_verify_settings *o;
    const char *path, *entry;
    struct signature signature;
    struct pipe_table pipes;
    struct compiled compiled;
    struct level_answer answers[MAX_ANSWERS];
    size_t nanswers;
    uint32_t launches;
    bool polls, acts_on_data, reads_clock;
    const char *fix;    /* what was tried and found to help, or NULL ... */
    uint32_t fix_ranks; /* ... at this number of ranks */
};

static bool has_zeroed(const struct signature *s)
{
    bool zeroed = false;
    for (uint32_t i = 0; i < s->len; i++)
        zeroed |= s->items[i].flags & PEAL_RECORD_ZEROED;
    return zeroed;
}

/* Proves the plan of one level. */
static void prove(struct verify_job *job, struct recorded *all, bool by_pipe)
{
    struct level_answer *a = &job->answers[job->nanswers];
    char error[1024] = "";
    if (job->nanswers == MAX_ANSWERS)
        return;
    *a = (struct level_answer){.ranks = all->ranks, .by_pipe = by_pipe};
    job->nanswers++;
    struct peal_plan *plan = peal_recorded_plan(all, by_pipe, error, sizeof error);
    if (!plan) {
        a->error = peal_arena_copy(job->cli->arena, error, strlen(error));
        return;
    }
    struct peal_verify_options options = {.launches = job->launches,
                                          .max_states = (uint64_t)job->o->states,
                                          .max_bytes = job->o->memory,
                                          .workers = peal_verify_workers(job->o)};
    a->returns = plan->ops.count == 0;
    if (!a->returns && peal_verify_plan(plan, &options, &a->v) != PEAL_OK)
        a->error = "out of memory";
    if (all->beyond && a->v && a->v->verdict == PEAL_PROVED) {
        a->error = all->beyond;
        peal_verification_free(a->v);
        a->v = NULL;
    }
    if (a->v && job->o->html)
        a->plan = plan;
    else
        free(plan);
}

/* Is the kernel proved with a barrier of all pipes before this line? */
static bool helps(const struct verify_job *job, struct recorded *all,
                  const struct peal_verify_place *place)
{
    char error[256];
    struct peal_verification *v = NULL;
    all->barrier_line = place->line;
    all->barrier_file = place->file;
    struct peal_plan *plan = peal_recorded_plan(all, true, error, sizeof error);
    all->barrier_line = 0;
    struct peal_verify_options options = {
        .launches = job->launches, .max_states = 100000, .no_story = true};
    bool good =
        plan && peal_verify_plan(plan, &options, &v) == PEAL_OK && v->verdict == PEAL_PROVED;
    peal_verification_free(v);
    free(plan);
    return good;
}

/* A race between pipes: tries a barrier before each line of the counterexample, notifies first. */
static void find_fix(struct verify_job *job, struct recorded *all)
{
    const struct level_answer *a = &job->answers[job->nanswers - 1];
    if (job->fix || !a->by_pipe || !a->v || a->v->fault != PEAL_FAULT_RACE)
        return;
    for (int notifies = 1; notifies >= 0; notifies--) {
        for (uint32_t i = 0; i < a->v->nsteps; i++) {
            const struct peal_verify_step *s = &a->v->steps[i];
            bool is_notify = s->kind && strcmp(s->kind, "notify") == 0;
            if (peal_story_is_order(s) || is_notify != (notifies == 1) || !s->place.line ||
                !helps(job, all, &s->place))
                continue;
            struct peal_text text = {0};
            peal_text_printf(&text, "a pipe_barrier(PIPE_ALL) before line %u proves it",
                             s->place.line);
            job->fix = peal_arena_copy(job->cli->arena, peal_text_get(&text), text.len);
            job->fix_ranks = all->ranks;
            peal_text_release(&text);
            return;
        }
    }
}

static bool prove_ranks(struct verify_job *job, uint32_t ranks)
{
    const struct peal_verify_settings *o = job->o;
    int level = o->kernel.recorded.level;
    struct recorded all = {.cli = job->cli,
                           .path = job->path,
                           .entry = job->entry,
                           .options = &o->kernel.recorded,
                           .signature = &job->signature,
                           .pipes = &job->pipes,
                           .compiled = &job->compiled,
                           .ranks = ranks,
                           .op = o->kernel.op.reduce,
                           .launches = job->launches};
    all.has_contents = o->kernel.recorded.inputs.len > 0;
    if (o->kernel.roots.len)
        all.root = (uint32_t)o->kernel.roots.at[0];
    bool good = peal_recorded_run(&all);
    if (good && level != PEAL_LEVEL_PIPE)
        prove(job, &all, false);
    if (good && level != PEAL_LEVEL_CORE) {
        prove(job, &all, true);
        find_fix(job, &all);
    }
    job->polls |= all.polls;
    job->reads_clock |= all.reads_clock;
    job->acts_on_data |= all.acts_on_data;
    peal_recorded_release(&all);
    return good;
}

/* ---- reports ---- */

static const char *word_of(const struct level_answer *a)
{
    if (a->returns)
        return "does nothing";
    if (!a->v)
        return "not recorded";
    if (a->v->verdict == PEAL_REFUTED)
        return peal_fault_name(a->v->fault);
    return a->v->verdict == PEAL_PROVED ? "proved" : "not decided";
}

static enum peal_outcome outcome_of(const struct level_answer *a)
{
    return a->v ? a->v->verdict : PEAL_UNDECIDED;
}

/* The answer that decides: refuted before not decided; by the order of the text before pipes. */
static const struct level_answer *worst_of(const struct verify_job *job)
{
    const struct level_answer *worst = NULL;
    for (size_t i = 0; i < job->nanswers; i++) {
        const struct level_answer *a = &job->answers[i];
        if (a->returns || outcome_of(a) == PEAL_PROVED)
            continue;
        if (!worst || (outcome_of(worst) != PEAL_REFUTED && outcome_of(a) == PEAL_REFUTED))
            worst = a;
    }
    return worst;
}

static bool any_proved(const struct verify_job *job)
{
    for (size_t i = 0; i < job->nanswers; i++) {
        if (job->answers[i].v && job->answers[i].v->verdict == PEAL_PROVED)
            return true;
    }
    return false;
}

/* What the verdict rests on. */
static void put_assumptions(const struct verify_job *job, struct peal_text *out)
{
    const struct signature *s = &job->signature;
    struct peal_text words = {0};
    const char *implements = job->o->kernel.recorded.implements;
    peal_text_printf(&words, "for %s", implements ? implements : "any result (no --implements)");
    for (uint32_t i = 0; i < s->len; i++) {
        const struct signature_item *item = &s->items[i];
        if (item->flags & PEAL_RECORD_ZEROED)
            peal_text_printf(&words, "; '%s' is zeroed before the first launch", item->name);
        if (item->flags & PEAL_RECORD_KEPT)
            peal_text_printf(&words, "; the caller leaves '%s' alone between launches", item->name);
        if (item->contents.text)
            peal_text_printf(&words, "; '%s' holds %s", item->name, item->contents.name);
    }
    if (job->launches)
        peal_text_printf(&words, "; %u launch%s", job->launches, job->launches == 1 ? "" : "es");
    if (job->o->kernel.recorded.level != PEAL_LEVEL_CORE)
        peal_text_printf(&words, "; pipes as in %s", job->pipes.name);
    if (job->polls)
        peal_text_puts(&words, "; a loop of TTEST is taken as a wait: nothing else ends it");
    if (job->reads_clock)
        peal_text_puts(&words, "; the kernel reads a clock: it does the same whatever that says");
    if (job->acts_on_data)
        peal_text_puts(&words, "; the kernel acts on data: the verdict is for these contents only");
    peal_text_puts(out, "  ");
    peal_text_words(out, peal_text_get(&words), words.len, 2, 2);
    peal_text_release(&words);
}

static void put_answers(const struct verify_job *job, struct peal_text *out)
{
    for (size_t i = 0; i < job->nanswers; i++) {
        const struct level_answer *a = &job->answers[i];
        bool again = i > 0 && job->answers[i - 1].ranks == a->ranks;
        if (!again)
            peal_text_printf(out, "  %2u rank%s:", a->ranks, peal_text_plural(a->ranks));
        peal_text_printf(out, "%s %s by %s", again ? "," : "", word_of(a),
                         a->by_pipe ? "pipe" : "core");
        if (i + 1 == job->nanswers || job->answers[i + 1].ranks != a->ranks)
            peal_text_puts(out, "\n");
    }
}

static void put_text(const struct verify_job *job, const struct level_answer *worst,
                     struct peal_text *out)
{
    peal_text_printf(out, "%s, %s", job->path, job->entry);
    for (uint32_t i = 0; i < job->signature.nthen; i++)
        peal_text_printf(out, ", then %s", job->signature.then[i].entry);
    peal_text_puts(out, ": ");
    if (worst)
        peal_text_printf(out, "%s on %u rank%s by %s: %s\n",
                         outcome_of(worst) == PEAL_REFUTED ? "refuted" : "not proved", worst->ranks,
                         peal_text_plural(worst->ranks), worst->by_pipe ? "pipe" : "core",
                         word_of(worst));
    else
        peal_text_puts(out, any_proved(job) ? "proved\n" : "does nothing\n");
    put_answers(job, out);
    put_assumptions(job, out);
    if (worst && worst->error)
        peal_text_printf(out, "\n%s\n", worst->error);
    if (worst && worst->v) {
        struct story_files files = {0};
        struct story_view view = {
            .by_pipe = worst->by_pipe,
            .blocks =
                (uint32_t)(job->o->kernel.recorded.blocks ? job->o->kernel.recorded.blocks : 1),
            .launches = worst->v->launches};
        peal_text_puts(out, "\n");
        peal_story_put(&view, &files, worst->v, out);
        peal_story_release(&files);
    }
    if (worst && job->fix)
        peal_text_printf(out, "%s (tried at %u ranks)\n", job->fix, job->fix_ranks);
    peal_text_fold(out, 0, 4, PEAL_TEXT_WIDTH);
}

static void put_json(const struct verify_job *job, struct peal_text *out)
{
    struct peal_json json;
    peal_json_init(&json, out, PEAL_JSON_ONE_LINE);
    peal_json_object(&json);
    peal_json_put_string(&json, "file", job->path);
    peal_json_put_string(&json, "entry", job->entry);
    peal_json_put_array(&json, "verdicts");
    for (size_t i = 0; i < job->nanswers; i++) {
        const struct level_answer *a = &job->answers[i];
        peal_json_object(&json);
        peal_json_put_uint(&json, "ranks", a->ranks);
        peal_json_put_string(&json, "level", a->by_pipe ? "pipe" : "core");
        peal_json_put_string(&json, "answer", word_of(a));
        if (a->error)
            peal_json_put_string(&json, "why", a->error);
        if (a->v) {
            peal_json_key(&json, "verdict");
            peal_verification_put(a->v, &json);
        }
        peal_json_object_end(&json);
    }
    peal_json_array_end(&json);
    peal_json_object_end(&json);
    peal_text_puts(out, "\n");
}

/* "FILE:LINE: why": takes the place off. */
static const char *split_place(const struct verify_job *job, const char *text,
                               struct peal_verify_place *place)
{
    const char *colon = strstr(text, ": "), *line = colon;
    while (line && line > text && isdigit((unsigned char)line[-1]))
        line--;
    if (!colon || line == colon || line - 1 <= text || line[-1] != ':')
        return text;
    char *file = peal_arena_copy(job->cli->arena, text, (size_t)(line - 1 - text));
    if (file)
        *place = (struct peal_verify_place){
            .file = file, .line = (uint32_t)strtoul(line, NULL, 10), .col = 1};
    return file ? colon + 2 : text;
}

static void put_sarif(const struct verify_job *job, const struct level_answer *worst)
{
    struct peal_json *json = job->o->results;
    if (!worst)
        return;
    bool refuted = outcome_of(worst) == PEAL_REFUTED;
    struct peal_verify_place place = {"", 0, 0, 0};
    if (worst->v)
        place = peal_sarif_place(worst->v);
    const char *why = worst->error;
    if (why)
        why = split_place(job, why, &place);
    if (worst->v && worst->v->why)
        why = worst->v->why;
    peal_sarif_result(json, &(struct peal_sarif_result){.rule = refuted ? PEAL_SARIF_REFUTED
                                                                        : PEAL_SARIF_UNDECIDED,
                                                        .level = refuted ? "error" : "warning",
                                                        .message = why ? why : word_of(worst),
                                                        .path = place.line ? place.file : job->path,
                                                        .line = place.line,
                                                        .col = place.col});
    if (worst->v && refuted)
        peal_sarif_flow(json, worst->v, job->path, true);
    peal_json_object_end(json);
}

static int report(struct verify_job *job)
{
    const struct level_answer *worst = worst_of(job);
    struct peal_text out = {0};
    int code = worst || !any_proved(job) ? PEAL_EXIT_OTHER : PEAL_EXIT_OK;
    if (worst && outcome_of(worst) == PEAL_REFUTED)
        code = PEAL_EXIT_NO;
    if (job->o->results)
        put_sarif(job, worst);
    if (job->o->json)
        put_json(job, &out);
    else
        put_text(job, worst, &out);
    return peal_cli_print(job->cli, &out, code);
}

/* All answers of the kernel; what was refused has none. */
static bool write_page(const struct verify_job *job)
{
    struct peal_page page;
    struct peal_page_answer answers[MAX_ANSWERS];
    size_t n = 0;
    for (size_t i = 0; i < job->nanswers; i++) {
        const struct level_answer *a = &job->answers[i];
        if (a->v)
            answers[n++] =
                (struct peal_page_answer){.verification = a->v,
                                          .plan = a->plan,
                                          .sequence = a->by_pipe ? "by pipe" : "by core"};
    }
    if (!n) {
        peal_cli_note(job->cli, "no page: there is no plan to show");
        return true;
    }
    peal_page_begin(job->cli, &page, PEAL_PAGE_VERIFY, job->entry, job->path);
    peal_page_verify(&page, answers, n);
    return peal_page_save(job->cli, &page, job->o->html);
}

/* ---- the command ---- */

/* Up to a comma that is not among the arguments of a template. */
static size_t entry_len(const char *names)
{
    size_t len = 0;
    for (int depth = 0; names[len] && (depth > 0 || names[len] != ','); len++)
        depth += (names[len] == '<') - (names[len] == '>');
    return len;
}

static bool check(struct peal_cli *cli, const struct peal_verify_settings *o)
{
    bool other = o->kernel.set.len || o->kernel.kernel || o->kernel.nodes || o->kernel.machine ||
                 o->kernel.counts.len || o->kernel.ranks.all || o->kernel.in_place ||
                 o->certificate || o->check || o->fault || o->flush || o->fix || o->fix_all ||
                 o->advice || o->order != PEAL_ORDER_WINDOWS;
    if (other)
        peal_cli_usage(cli,
                       "a kernel in C++ takes -n, --op, --root, --launches, --states, "
                       "--memory, --json, --html, --sarif and the options that name KERNEL.cpp");
    if (!other && o->html && o->kernel.recorded.entry &&
        o->kernel.recorded.entry[entry_len(o->kernel.recorded.entry)]) {
        peal_cli_usage(cli, "--html shows one kernel: --entry names several");
        other = true;
    }
    return !other;
}

/* One kernel of the compiled file, and what follows it. */
static int verify_entry(struct verify_job *job)
{
    static const int64_t usual[] = {2, 3, 4, 8};
    const struct peal_ints *given = &job->o->kernel.ranks;
    const int64_t *ranks = given->len ? given->at : usual;
    size_t n = given->len ? given->len : sizeof usual / sizeof *usual;
    bool good = true;
    job->nanswers = 0;
    job->fix = NULL;
    job->polls = job->acts_on_data = job->reads_clock = false;
    struct peal_progress progress = {.label = "numbers of ranks", .total = n};
    for (size_t i = 0; i < n; i++)
        progress.weight += (uint64_t)(ranks[i] * ranks[i]);
    peal_progress_begin(&progress);
    for (size_t i = 0; i < n && good; i++) {
        good = prove_ranks(job, (uint32_t)ranks[i]);
        peal_progress_step(&progress, (uint64_t)(ranks[i] * ranks[i]));
    }
    peal_progress_end(&progress);
    int code = good ? report(job) : PEAL_EXIT_OTHER;
    if (good && job->o->html && !write_page(job))
        code = PEAL_EXIT_OTHER;
    for (size_t i = 0; i < job->nanswers; i++) {
        peal_verification_free(job->answers[i].v);
        free(job->answers[i].plan);
    }
    return code;
}

/* All of them, by commas; the exit code is the worst: a refuted one, then one that is not proved. */
static int verify_entries(struct verify_job *job)
{
    const char *names = job->o->kernel.recorded.entry;
    int code = PEAL_EXIT_OK;
    if (!names)
        names = "kernel_entry";
    while (*names) {
        size_t len = entry_len(names);
        job->entry = peal_arena_copy(job->cli->arena, names, len);
        if (!job->entry)
            return peal_cli_fail(job->cli, "out of memory");
        int one = verify_entry(job);
        if (code != PEAL_EXIT_NO && one != PEAL_EXIT_OK)
            code = one;
        names += len + (names[len] == ',');
    }
    return code;
}

int peal_verify_recorded(struct peal_cli *cli, const struct peal_verify_settings *o,
                         const char *path)
{
    struct verify_job *job = peal_arena_alloc(cli->arena, sizeof *job);
    int code = PEAL_EXIT_USAGE;
    if (!job)
        return peal_cli_fail(cli, "out of memory");
    struct peal_verify_settings with_file = *o;
    *job = (struct verify_job){.cli = cli, .o = &with_file, .path = path};
    if (!check(cli, o) || !peal_beside_read(cli, path, &with_file.kernel.recorded))
        return code;
    o = &with_file;
    if (!peal_signature_read(cli, &o->kernel.recorded, &job->signature))
        return code;
    if (!peal_pipes_read(cli, o->kernel.recorded.pipes ? o->kernel.recorded.pipes : "pto-a2a3",
                         &job->pipes))
        return PEAL_EXIT_OTHER;
    job->launches = (uint32_t)o->launches;
    if (!job->launches && has_zeroed(&job->signature))
        job->launches = 1;
    struct peal_progress progress = {.label = "compiling"};
    peal_progress_begin(&progress);
    bool compiled = peal_compile(cli, path, &job->pipes, &job->signature, &job->compiled, &code);
    peal_progress_end(&progress);
    if (compiled)
        code = verify_entries(job);
    peal_compile_release(&job->compiled);
    return code;
}
