/* SPDX-License-Identifier: Apache-2.0 */
/* peal ci: proves what a change of a Git repository could break. See ci/ci.h for what is trusted. */
#include "cli/ci/ci.h"

#include "cli/progress.h"
#include "cli/verify/sarif.h"
#include "cli/verify/verify_kernel.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct options {
    const char *base, *sarif, *summary;
    int64_t time, jobs;
    bool all, staged, allow_skipped;
};

static const struct peal_option options_table[] = {
    {"base", 'b', PEAL_OPTION_STRING, offsetof(struct options, base), "REV",
     "the revision to compare with: origin/main, a commit", 0, 0},
    {"all", 'a', PEAL_OPTION_FLAG, offsetof(struct options, all), NULL,
     "prove all files, not only those that a change could break", 0, 0},
    {"staged", 0, PEAL_OPTION_FLAG, offsetof(struct options, staged), NULL,
     "look at what is staged, compared with HEAD, instead of at HEAD", 0, 0},
    {"time", 0, PEAL_OPTION_INT, offsetof(struct options, time), "S",
     "give a kernel up after this many seconds (default: as in peal.yaml, or 60)", 1, 86400},
    {"jobs", 'j', PEAL_OPTION_INT, offsetof(struct options, jobs), "J",
     "threads (default: one per core)", 1, 64},
    {"allow-skipped", 0, PEAL_OPTION_FLAG, offsetof(struct options, allow_skipped), NULL,
     "exit with 0 also where kernels had to be run, and the base does not allow it", 0, 0},
    {"sarif", 0, PEAL_OPTION_STRING, offsetof(struct options, sarif), "FILE",
     "write SARIF 2.1.0 for reviews", 0, 0},
    {"summary", 0, PEAL_OPTION_STRING, offsetof(struct options, summary), "FILE",
     "add a summary in Markdown to this file", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static const struct options defaults;

static const char settings_name[] = "peal.yaml";

/* A file, and how it is verified. */
struct task {
    struct peal_ci_file *file;
    const struct peal_ci_entry *entry;
    bool runs; /* it has to be compiled or executed */
};

struct review {
    struct peal_cli *cli;
    const struct options *options;
    struct peal_ci_tree tree;
    struct peal_ci_settings own, base; /* of what is looked at, and of the base */
    struct peal_ci_entry plans;        /* for plans that no entry names */
    struct peal_source own_text, base_text;
    bool settings_changed, has_runs;
    PEAL_VEC(struct task) tasks;
    size_t files, affected;
    struct peal_ci_rows rows;
    _Atomic int child;
};

static bool ends_in(const char *path, const char *end)
{
    size_t len = strlen(path), n = strlen(end);
    return len > n && strcmp(path + len - n, end) == 0;
}

/* By the name alone: whatever peal verify might compile or hand to Python. */
static bool has_to_run(const char *path)
{
    static const char *const ends[] = {".cpp", ".cc", ".cxx", ".cce", ".py", ".yaml", ".yml"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (ends_in(path, ends[i]))
            return true;
    }
    return false;
}

/* A plan of MSCCL or MSCCL++, among all files in XML and JSON. */
static bool is_plan(const struct peal_ci_file *file)
{
    const char *at = file->text;
    if (at && ends_in(file->path, ".json")) {
        at += strncmp(at, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        at += strspn(at, " \t\r\n");
        return *at == '{' && strstr(at, "\"gpus\"");
    }
    while (at && (at = strchr(at, '<')) && (at[1] == '?' || at[1] == '!'))
        at++;
    return at && strncmp(at, "<algo", 5) == 0;
}

static bool may_be_plan(const char *path)
{
    return ends_in(path, ".xml") || ends_in(path, ".json");
}

/* Do its options name a file of the repository? */
static bool names_files(const struct peal_ci_entry *entry)
{
    static const char *const of_files[] = {"--machine=", "--pipes=", "--input=", "--op="};
    for (int i = 0; i < entry->noptions; i++) {
        const char *option = entry->options[i];
        for (size_t k = 0; k < sizeof of_files / sizeof *of_files; k++) {
            if (strncmp(option, of_files[k], strlen(of_files[k])) == 0 && strpbrk(option, "./"))
                return true;
        }
    }
    return false;
}

/* Did a file change that the options name, or that `uses` names? */
static bool settings_use_change(const struct review *review, const struct peal_ci_entry *entry)
{
    for (size_t i = 0; i < review->tree.changed.len; i++) {
        const char *changed = review->tree.changed.at[i];
        if (peal_ci_patterns_name(&entry->uses, changed))
            return true;
        for (int k = 0; k < entry->noptions; k++) {
            if (strstr(entry->options[k], changed))
                return true;
        }
    }
    return false;
}

static bool is_affected(struct review *review, const struct task *task)
{
    if (review->options->all || !review->tree.base || review->settings_changed ||
        peal_ci_changed(&review->tree, task->file->path) ||
        settings_use_change(review, task->entry))
        return true;
    return task->runs && peal_ci_uses_change(&review->tree, task->file, &task->entry->uses);
}

/* ---- settings ---- */

static bool read_settings(struct review *review, const char *commit, struct peal_source *text,
                          struct peal_ci_settings *out, bool *broken)
{
    struct peal_cli *cli = review->cli;
    struct peal_diags diags;
    *broken = false;
    if (!peal_ci_commit_file(cli, commit, settings_name, text))
        return false;
    if (!text->text)
        return true;
    peal_diags_init(&diags);
    enum peal_status status =
        peal_ci_settings_read(text, &peal_cmd_verify, cli->arena, &diags, out);
    *broken = status != PEAL_OK;
    if (*broken)
        peal_cli_diags(cli, status, &diags);
    peal_diags_release(&diags);
    return true;
}

/* For plans: what the usual settings say about any plan, not about numbers of ranks. */
static void keep_for_plans(struct review *review)
{
    static const char *const kept[] = {"--require=", "--states=", "--memory="};
    const struct peal_ci_entry *usual = &review->own.usual;
    review->plans = (struct peal_ci_entry){.pos = usual->pos, .time = usual->time};
    review->plans.options =
        peal_arena_alloc(review->cli->arena, ((size_t)usual->noptions + 1) * sizeof(char *));
    for (int i = 0; review->plans.options && i < usual->noptions; i++) {
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
            if (strncmp(usual->options[i], kept[k], strlen(kept[k])) == 0)
                review->plans.options[review->plans.noptions++] = usual->options[i];
        }
    }
}

/* Of what is looked at, and of the base. False after a message. */
static bool read_all_settings(struct review *review)
{
    bool broken, base_broken = false;
    if (!read_settings(review, review->tree.root, &review->own_text, &review->own, &broken))
        return false;
    if (review->tree.base_tip && !read_settings(review, review->tree.base_tip, &review->base_text,
                                                &review->base, &base_broken))
        return false;
    if (base_broken)
        peal_cli_note(review->cli,
                      "peal.yaml of the base cannot be read: it allows nothing to run");
    if (base_broken)
        review->base.run.len = 0;
    review->settings_changed = peal_ci_changed(&review->tree, settings_name);
    keep_for_plans(review);
    return !broken;
}

/* ---- tasks ---- */

static bool add_task(struct review *review, struct peal_ci_file *file,
                     const struct peal_ci_entry *entry)
{
    struct task task = {file, entry, has_to_run(file->path)};
    review->has_runs |= task.runs || names_files(entry);
    return peal_vec_push(&review->tasks, task);
}

/* All that could be proved: by an entry, or by what a file is. Plans are recognised later. */
static bool find_tasks(struct review *review)
{
    bool good = true;
    size_t links = 0;
    for (size_t i = 0; i < review->tree.files.len && good; i++) {
        struct peal_ci_file *file = &review->tree.files.at[i];
        bool named = false, is_text = ends_in(file->path, ".peal");
        if (peal_ci_patterns_name(&review->own.exclude, file->path))
            continue;
        for (size_t k = 0; k < review->own.entries.len && good && !file->is_link; k++) {
            const struct peal_ci_entry *entry = &review->own.entries.at[k];
            if (!peal_ci_patterns_name(&entry->files, file->path))
                continue;
            named = true;
            good = add_task(review, file, entry);
        }
        links += file->is_link && is_text;
        if (file->is_link || named)
            continue;
        if (is_text)
            good = add_task(review, file, &review->own.usual);
        else if (may_be_plan(file->path) && file->bytes <= PEAL_CI_FILE_BYTES)
            good = add_task(review, file, &review->plans);
    }
    if (links)
        peal_cli_note(review->cli, "%zu symbolic link%s not followed", links,
                      links == 1 ? " is" : "s are");
    return good || !peal_cli_fail(review->cli, "out of memory");
}

/* Reads what the tasks need, and keeps those that are affected. False after a message. */
static bool choose_tasks(struct review *review)
{
    size_t kept = 0;
    for (size_t i = 0; i < review->tree.files.len; i++)
        review->tree.files.at[i].wanted = review->has_runs;
    if (review->has_runs && !peal_ci_tree_read(review->cli, &review->tree))
        return false;
    for (size_t i = 0; i < review->tasks.len; i++) {
        struct task *task = &review->tasks.at[i];
        bool affected = is_affected(review, task);
        task->file->wanted |= affected;
        task->file->affected |= affected;
    }
    if (!peal_ci_tree_read(review->cli, &review->tree))
        return false;
    for (size_t i = 0; i < review->tasks.len; i++) {
        struct task task = review->tasks.at[i];
        bool guess = task.entry == &review->plans;
        bool first = i == 0 || review->tasks.at[i - 1].file != task.file;
        if (guess && task.file->text && !is_plan(task.file))
            continue;
        review->files += first && !(guess && !task.file->text);
        review->affected += first && task.file->affected;
        if (task.file->affected)
            review->tasks.at[kept++] = task;
    }
    review->tasks.len = kept;
    return true;
}

/* ---- verdicts ---- */

/* A row for what is not tried. */
static void refuse(struct review *review, const struct task *task, const char *why, bool skipped)
{
    struct peal_text sarif = {0};
    struct peal_json json;
    peal_json_init(&json, &sarif, 1);
    peal_sarif_result(&json, &(struct peal_sarif_result){.rule = PEAL_SARIF_UNDECIDED,
                                                         .level = "warning",
                                                         .message = why,
                                                         .path = task->file->path});
    peal_json_object_end(&json);
    struct peal_ci_row row = {.path = task->file->path,
                              .kernel = "",
                              .code = PEAL_EXIT_OTHER,
                              .skipped = skipped,
                              .line = why,
                              .text = ""};
    row.sarif = peal_arena_copy(review->cli->arena, peal_text_get(&sarif), sarif.len);
    if (row.sarif)
        (void)peal_vec_push(&review->rows.list, row);
    peal_text_release(&sarif);
}

static uint64_t seconds_of(const struct review *review, const struct peal_ci_entry *entry)
{
    uint64_t seconds = PEAL_CI_SECONDS;
    if (entry->time || review->own.usual.time)
        seconds = entry->time ? entry->time : review->own.usual.time;
    if (review->options->time && seconds > (uint64_t)review->options->time)
        seconds = (uint64_t)review->options->time;
    return seconds;
}

static bool run_task(struct review *review, const struct task *task, const char *folder,
                     const struct peal_progress *progress)
{
    size_t from = review->rows.list.len;
    bool good = true;
    if (!task->file->text) {
        refuse(review, task, "not read: larger than 64 MiB", false);
    } else if (task->runs && !peal_ci_patterns_name(&review->base.run, task->file->path)) {
        refuse(review, task,
               "not run: it would have to be compiled or executed, which 'run' in the base's "
               "peal.yaml does not allow",
               true);
    } else {
        struct peal_ci_job job = {.folder = folder,
                                  .path = task->file->path,
                                  .entry = task->entry,
                                  .seconds = seconds_of(review, task->entry),
                                  .threads = review->options->jobs,
                                  .progress = progress,
                                  .child = &review->child};
        good = peal_ci_job_run(review->cli, &job, &review->rows);
    }
    struct peal_text out = {.colors = review->cli->color};
    for (size_t i = from; i < review->rows.list.len; i++)
        peal_ci_report_row(&review->rows.list.at[i], &out);
    peal_progress_print(progress, &out);
    peal_text_release(&out);
    return good;
}

/* After Ctrl-C: nothing that was started goes on. */
static void end_child(void *context)
{
    struct review *review = context;
    int child = atomic_load(&review->child); /* partner: ci/job.c */
    if (child > 0)
        kill(-child, SIGKILL);
}

/* What is only read before what is run: a program cannot touch a verdict that was printed. */
static bool run_tasks(struct review *review)
{
    char folder[PEAL_CLI_FOLDER];
    bool good = true;
    if (!review->tasks.len)
        return true;
    if (!peal_cli_folder_open(review->cli, folder))
        return false;
    good = peal_ci_tree_write(review->cli, &review->tree, folder);
    struct peal_progress progress = {
        .label = "files", .total = review->tasks.len, .report = end_child, .context = review};
    peal_progress_begin(&progress);
    for (int runs = 0; runs <= 1; runs++) {
        for (size_t i = 0; i < review->tasks.len && good; i++) {
            const struct task *task = &review->tasks.at[i];
            if (task->runs != (runs == 1))
                continue;
            good = run_task(review, task, folder, &progress);
            peal_progress_step(&progress, 1);
        }
    }
    peal_progress_end(&progress);
    peal_cli_folder_remove(folder);
    return good;
}

static int exit_code(const struct review *review)
{
    int code = PEAL_EXIT_OK;
    for (size_t i = 0; i < review->rows.list.len; i++) {
        const struct peal_ci_row *row = &review->rows.list.at[i];
        if (row->code == PEAL_EXIT_OK || (row->skipped && review->options->allow_skipped))
            continue;
        if (row->code == PEAL_EXIT_NO)
            return PEAL_EXIT_NO;
        code = PEAL_EXIT_OTHER;
    }
    return code;
}

/* Adds to a file, as services want it. */
static bool append(const struct peal_cli *cli, const char *path, const struct peal_text *text)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "ab");
    bool good = file && fwrite(peal_text_get(text), 1, text->len, file) == text->len;
    if (file && file != stdout)
        good = fclose(file) == 0 && good;
    if (!good)
        peal_cli_fail(cli, "could not write '%s'", path);
    return good;
}

static int report(struct review *review)
{
    const struct options *o = review->options;
    struct peal_ci_report report = {&review->rows, &review->tree, review->files, review->affected,
                                    review->settings_changed && review->tree.base};
    struct peal_text out = {0}, summary = {0}, sarif = {0};
    int code = exit_code(review);
    peal_ci_report_end(&report, &out);
    code = peal_cli_print(review->cli, &out, code);
    peal_ci_report_markdown(&report, &summary);
    peal_ci_report_sarif(&report, &sarif);
    if (o->summary && !append(review->cli, o->summary, &summary))
        code = PEAL_EXIT_OTHER;
    if (o->sarif && !peal_cli_write(review->cli, o->sarif, &sarif))
        code = PEAL_EXIT_OTHER;
    peal_text_release(&summary);
    peal_text_release(&sarif);
    return code;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    const struct options *o = options;
    struct review review = {.cli = cli, .options = o, .rows.arena = cli->arena};
    struct peal_ci_revisions revisions = {.base = o->base, .staged = o->staged};
    (void)args, (void)nargs;
    if (!o->base && !o->all && !o->staged)
        return peal_cli_usage(cli, "compared with what? --base REV, --staged, or --all");
    bool good = peal_ci_tree_open(cli, &revisions, &review.tree) && read_all_settings(&review);
    if (good && review.tree.no_common)
        peal_cli_note(cli, "no common ancestor with '%s' in this clone: compared with it directly",
                      o->base);
    good = good && find_tasks(&review) && choose_tasks(&review) && run_tasks(&review);
    int code = PEAL_EXIT_OTHER;
    if (good)
        code = report(&review);
    peal_vec_release(&review.tasks);
    peal_vec_release(&review.rows.list);
    peal_ci_settings_release(&review.own);
    peal_ci_settings_release(&review.base);
    peal_ci_tree_release(&review.tree);
    return code;
}

const struct peal_command peal_cmd_ci = {
    .name = "ci",
    .args = "",
    .summary = "prove what a change in a Git repository could break",
    .details =
        "Proves the kernels of a repository that a change could break: files in Peal's language, "
        "plans in MSCCL XML and MSCCL++ JSON, and what peal.yaml names. What is looked at is the "
        "commit HEAD (with --staged, what is staged), not the work tree, and a change is what "
        "differs from the last common ancestor with the base. A file that uses a changed one is "
        "proved, too, and everything if peal.yaml changes.\n\n"
        "Nothing of the repository is executed: no hooks and filters of Git, and kernels that have "
        "to be compiled or run (C++, Python) only if the peal.yaml of the base revision names them "
        "under 'run'. docs/ci.md describes peal.yaml, and how services call this.\n\n"
        "Exit code: 0 all proved, or nothing to prove; 1 refuted, or without what is required; 2 "
        "wrong usage; 3 not decided, unreadable, given up after --time, or not run (0 with "
        "--allow-skipped).\n\n"
        "  peal ci --base origin/main\n"
        "  peal ci --base origin/main --sarif peal.sarif --summary \"$GITHUB_STEP_SUMMARY\"\n"
        "  peal ci --all\n"
        "  peal ci --staged",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof(struct options),
    .min_args = 0,
    .max_args = 0,
    .run = run,
};
