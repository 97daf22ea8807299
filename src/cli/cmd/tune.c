/* SPDX-License-Identifier: Apache-2.0 */
/* peal tune: measures the algorithms on this machine and keeps the best of each size.
 *
 * Ranks measure (tune_measure.c) and rank 0 puts rules into memory shared with this process, which
 * writes the table when all is done: whatever ends the command before that leaves nothing. */
#include "cli/progress.h"
#include "cli/run/collective_case.h"
#include "cli/run/tune_measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct tune_options {
    struct peal_ints ranks;
    const char *collective, *output;
    uint64_t begin, end;
    int64_t factor, budget;
};

enum { LONGEST_PATH = 4096 };

/* Makes the folders of a path. */
static void make_folders(const char *path)
{
    char copy[LONGEST_PATH];
    if ((size_t)snprintf(copy, sizeof copy, "%s", path) >= sizeof copy)
        return;
    for (char *slash = copy + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(copy, 0777);
        *slash = '/';
    }
}

static bool is_replaced(const struct peal_tuning *tuning, const struct peal_rule *old)
{
    for (uint32_t i = 0; i < tuning->count; i++) {
        const struct peal_rule *rule = &tuning->rules[i];
        if (rule->collective == old->collective && rule->symmetric == old->symmetric &&
            rule->least_ranks == old->least_ranks)
            return true;
    }
    return false;
}

static void write_rule(FILE *file, const struct peal_rule *rule)
{
    fprintf(file, "%s %s %u %llu %s %llu\n", peal_collective_name(rule->collective),
            rule->symmetric ? "symmetric" : "private", rule->least_ranks,
            (unsigned long long)rule->bytes, rule->algo->name, (unsigned long long)rule->segment);
}

/* Where the new table is made, beside the old one. NULL after a message. */
static FILE *open_fresh(const struct peal_cli *cli, const char *path, char *fresh, size_t size)
{
    make_folders(path);
    FILE *file = NULL;
    errno = ENAMETOOLONG;
    if ((size_t)snprintf(fresh, size, "%s.%d", path, (int)getpid()) < size)
        file = fopen(fresh, "we");
    if (!file)
        peal_cli_fail(cli, "cannot write '%s': %s", path, strerror(errno));
    return file;
}

/* Asked before minutes are spent on measuring. */
static bool can_keep(const struct peal_cli *cli, const char *path)
{
    char fresh[LONGEST_PATH];
    struct stat there;
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode)) {
        peal_cli_fail(cli, "cannot write '%s': %s", path, strerror(EISDIR));
        return false;
    }
    FILE *file = open_fresh(cli, path, fresh, sizeof fresh);
    if (!file)
        return false;
    fclose(file);
    (void)remove(fresh);
    return true;
}

/* The new rules, and the old ones of what was not measured now. Written beside, then moved: readers
 * see the old table or the new one. */
static int keep(const struct peal_cli *cli, const struct peal_tuning *tuning, const char *path)
{
    char fresh[LONGEST_PATH];
    struct peal_table_of_rules old;
    FILE *file = open_fresh(cli, path, fresh, sizeof fresh);
    if (!file)
        return PEAL_EXIT_OTHER;
    peal_rules_load(path, &old);
    fputs("# by 'peal tune': collective, memory, ranks, bytes up to, algorithm, segment\n", file);
    for (size_t i = 0; i < old.count; i++) {
        if (!is_replaced(tuning, &old.rules[i]))
            write_rule(file, &old.rules[i]);
    }
    for (uint32_t i = 0; i < tuning->count; i++) {
        const struct peal_rule *rule = &tuning->rules[i], *next = rule + 1;
        bool same = i + 1 < tuning->count && next->collective == rule->collective &&
                    next->symmetric == rule->symmetric && next->least_ranks == rule->least_ranks &&
                    next->algo == rule->algo && next->segment == rule->segment;
        if (!same) /* otherwise the next one says it all */
            write_rule(file, rule);
    }
    peal_rules_release(&old);
    bool bad = ferror(file) != 0;
    bad |= fclose(file) != 0;
    if (bad || rename(fresh, path) != 0) {
        int code = peal_cli_fail(cli, "cannot write '%s': %s", path, strerror(errno));
        (void)remove(fresh);
        return code;
    }
    printf("kept in %s\n", path);
    return PEAL_EXIT_OK;
}

static int measure_all(struct peal_cli *cli, const struct tune_options *o,
                       struct peal_tuning *tuning)
{
    static int64_t usual[] = {2, 4, 8};
    struct peal_ints ranks = o->ranks.len ? o->ranks : (struct peal_ints){.at = usual, .len = 3};
    struct peal_progress progress = {.what = "measurements"};
    int code = PEAL_EXIT_OK;
    for (size_t i = 0; i < ranks.len; i++)
        peal_tuning_count(tuning, (uint32_t)ranks.at[i], &progress);
    tuning->progress = &progress;
    peal_progress_begin(&progress);
    for (size_t i = 0; i < ranks.len && code == PEAL_EXIT_OK; i++) {
        struct peal_ranks start = {.count = (uint32_t)ranks.at[i],
                                   .bind = true,
                                   .bytes = peal_tuning_need(tuning, (uint32_t)ranks.at[i]),
                                   .body = peal_tuning_measure,
                                   .context = tuning};
        code = peal_ranks_run(cli, &start);
    }
    peal_progress_end(&progress);
    tuning->progress = NULL;
    return code;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)args, (void)nargs;
    const struct tune_options *o = options;
    char usual[LONGEST_PATH];
    const char *path = o->output ? o->output : usual;
    if (!o->output && !peal_tune_path(usual, sizeof usual))
        return peal_cli_fail(cli, "neither HOME nor XDG_CONFIG_HOME is set; use --output");
    if (o->begin == 0 || o->begin > o->end || o->end > 1 << 30)
        return peal_cli_usage(cli, "sizes are 1 to 1G, and --begin is at most --end");
    if (o->collective && !peal_tuning_has_choice(o->collective))
        return peal_cli_usage(cli,
                              peal_case_find(o->collective)
                                  ? "'%s' has one algorithm: there is nothing to choose"
                                  : "there is no collective '%s'",
                              o->collective);
    if (!can_keep(cli, path))
        return PEAL_EXIT_OTHER;
    struct peal_tuning *tuning = mmap(NULL, sizeof *tuning, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (tuning == MAP_FAILED)
        return peal_cli_fail(cli, "out of memory");
    tuning->collective = o->collective;
    tuning->begin = o->begin;
    tuning->end = o->end;
    tuning->factor = (uint64_t)o->factor;
    tuning->budget_ns = (uint64_t)o->budget * 1000000;
    setenv("PEAL_TUNE_FILE", "/dev/null", 1); /* the old table must not decide */
    int code = measure_all(cli, o, tuning);
    if (code == PEAL_EXIT_OK)
        code = keep(cli, tuning, path);
    munmap(tuning, sizeof *tuning);
    return code;
}

#define ROW(name, letter, kind, field, value, help, least, most)                                   \
    {                                                                                              \
        name, letter, kind, offsetof(struct tune_options, field), value, help, least, most         \
    }
static const struct tune_options defaults = {
    .begin = 8, .end = 16 << 20, .factor = 4, .budget = 20};
static const struct peal_option table[] = {
    ROW("ranks", 'n', PEAL_OPTION_LIST, ranks, "P", "numbers of ranks (default 2,4,8)", 2,
        PEAL_MOST_RANKS),
    ROW("collective", 0, PEAL_OPTION_STRING, collective, "C", "only this one", 0, 0),
    ROW("begin", 'b', PEAL_OPTION_SIZE, begin, "B", "smallest size (default 8)", 0, 0),
    ROW("end", 'e', PEAL_OPTION_SIZE, end, "B", "largest size (default 16M)", 0, 0),
    ROW("factor", 'f', PEAL_OPTION_INT, factor, "F", "from one size to the next (default 4)", 2,
        1 << 20),
    ROW("budget", 0, PEAL_OPTION_INT, budget, "MS",
        "milliseconds of calls a measurement (default 20)", 1, 60000),
    ROW("output", 'o', PEAL_OPTION_STRING, output, "FILE",
        "where the table is kept (default: peal/tune in the configuration folder)", 0, 0),
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

const struct peal_command peal_cmd_tune = {
    .name = "tune",
    .args = "",
    .summary = "measure the algorithms on this machine and keep the best",
    .details =
        "Times every algorithm of every collective that has several, over a range of sizes (of the "
        "larger buffer of a rank), and writes a table that communicators read when they are "
        "opened: peal/tune in $XDG_CONFIG_HOME or ~/.config, or $PEAL_TUNE_FILE. What the built-in "
        "table takes is kept unless another one is at least 3 % faster. Lines of an older table "
        "for other collectives and ranks stay. Ctrl-C ends at once and leaves all as it was. "
        "'peal bench --explain' says what a call takes, and why.",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .least_args = 0,
    .most_args = 0,
    .run = run,
};
