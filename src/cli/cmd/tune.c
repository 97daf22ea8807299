/* SPDX-License-Identifier: Apache-2.0 */
/* peal tune: measures the algorithms on this machine and keeps the best of each size.
 *
 * Ranks measure (tune_measure.c), and rank 0 puts rules into memory shared with this process, which
 * writes the table at the end. If the command ends earlier for any reason, it leaves nothing
 * behind.
 */
#include "cli/progress.h"
#include "cli/run/collective_case.h"
#include "cli/run/tune_measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct tune_options {
    struct peal_ints ranks;
    const char *collective, *output;
    uint64_t begin, end;
    int64_t factor, budget;
};

enum { LONGEST_PATH = 4096 };

/* Are the two for the same calls, except for their sizes? */
static bool is_same_kind(const struct peal_tuned *a, const struct peal_tuned *b)
{
    return a->symmetric == b->symmetric && a->hosts == b->hosts && a->ranks == b->ranks &&
           strcmp(a->collective, b->collective) == 0;
}

/* The table under construction. */
struct table {
    const struct peal_tuning *tuning;
    PEAL_VEC(struct peal_tuned) rules;
    struct peal_arena *arena; /* of texts */
    bool failed;
};

static void add(struct table *table, const struct peal_tuned *rule)
{
    if (!peal_vec_push(&table->rules, *rule))
        table->failed = true;
}

/* An old rule for something that was not measured this time. */
static void add_old(void *context, const struct peal_tuned *old)
{
    struct table *table = context;
    for (uint32_t i = 0; i < table->tuning->count; i++) {
        if (is_same_kind(&table->tuning->rules[i], old))
            return;
    }
    struct peal_tuned copy = *old;
    copy.collective = peal_arena_copy(table->arena, old->collective, strlen(old->collective));
    copy.algo = peal_arena_copy(table->arena, old->algo, strlen(old->algo));
    if (!copy.collective || !copy.algo)
        table->failed = true;
    else
        add(table, &copy);
}

static void add_measured(struct table *table)
{
    const struct peal_tuning *tuning = table->tuning;
    for (uint32_t i = 0; i < tuning->count; i++) {
        const struct peal_tuned *rule = &tuning->rules[i], *next = rule + 1;
        bool says_all = i + 1 < tuning->count && is_same_kind(next, rule) &&
                        next->segment == rule->segment && strcmp(next->algo, rule->algo) == 0;
        if (!says_all)
            add(table, rule);
    }
}

/* The new rules, and the old ones for what was not measured this time. */
static int keep(const struct peal_cli *cli, const struct peal_tuning *tuning, const char *path)
{
    struct table table = {.tuning = tuning, .arena = cli->arena};
    int code = PEAL_EXIT_OK;
    peal_tuning_read(path, add_old, &table);
    add_measured(&table);
    if (table.failed)
        code = peal_cli_fail(cli, "out of memory");
    else if (peal_tuning_write(path, table.rules.at, table.rules.len) != PEAL_OK)
        code = peal_cli_fail(cli, "cannot write '%s': %s", path, strerror(errno));
    else
        printf("kept in %s\n", path);
    peal_vec_release(&table.rules);
    return code;
}

static int measure_all(struct peal_cli *cli, const struct tune_options *o,
                       struct peal_tuning *tuning)
{
    static int64_t usual[] = {2, 4, 8};
    struct peal_ints ranks = o->ranks;
    if (!ranks.len)
        ranks = (struct peal_ints){.at = usual, .len = 3};
    struct peal_progress progress = {.label = "measurements"};
    int code = PEAL_EXIT_OK;
    for (size_t i = 0; i < ranks.len; i++)
        peal_tuning_count(tuning, (uint32_t)ranks.at[i], &progress);
    tuning->progress = &progress;
    peal_progress_begin(&progress);
    for (size_t i = 0; i < ranks.len; i++) {
        struct peal_ranks start = {.count = (uint32_t)ranks.at[i],
                                   .bind = true,
                                   .bytes = peal_tuning_need(tuning, (uint32_t)ranks.at[i]),
                                   .body = peal_tuning_measure,
                                   .context = tuning};
        code = peal_ranks_run(cli, &start);
        if (code != PEAL_EXIT_OK)
            break;
    }
    peal_progress_end(&progress);
    tuning->progress = NULL;
    return code;
}

/* ---- ranks that a launcher has started, on several hosts ---- */

/* The number of hosts that a rule must have to apply; 0: all ranks are on one host. */
static uint32_t count_hosts(struct peal_comm *comm)
{
    uint32_t ranks = peal_comm_size(comm);
    for (uint32_t hosts = 2; hosts <= ranks; hosts++) {
        struct peal_tuned rule = {.struct_size = sizeof rule,
                                  .ranks = ranks,
                                  .hosts = hosts,
                                  .collective = "barrier",
                                  .algo = "nodes",
                                  .bytes = UINT64_MAX,
                                  .segment = 64 << 10};
        struct peal_chosen chosen = {.struct_size = sizeof chosen};
        if (peal_comm_set_tuning(comm, &rule, 1) == PEAL_OK &&
            peal_comm_chosen(comm, "barrier", 0, 0, &chosen) == PEAL_OK && chosen.measured)
            return hosts;
    }
    return 0;
}

/* The first rank of each host writes the table there. */
static bool is_first_here(struct peal_comm *comm, const char *symmetric)
{
    for (uint32_t r = 0; r < peal_comm_rank(comm); r++) {
        if (peal_symmetric_at(comm, symmetric, r))
            return false;
    }
    return true;
}

static int tune_hosts(const struct peal_cli *cli, struct peal_tuning *tuning, const char *path)
{
    struct peal_comm *comm = NULL;
    void *symmetric = NULL;
    enum peal_status status = peal_comm_open(NULL, &comm);
    if (status == PEAL_OK)
        status = peal_symmetric_alloc(comm, 64, &symmetric);
    if (status != PEAL_OK)
        return peal_ranks_fail("tune", comm, status);
    struct peal_progress progress = {.label = "measurements"};
    bool writes = is_first_here(comm, symmetric);
    tuning->hosts = count_hosts(comm);
    tuning->progress = &progress;
    int code = PEAL_EXIT_OK;
    if (tuning->hosts == 0)
        code =
            peal_cli_fail(cli, "the launcher's ranks are on one host: use 'peal tune' without it");
    peal_tuning_count(tuning, peal_comm_size(comm), &progress);
    peal_progress_begin(&progress);
    if (code == PEAL_EXIT_OK)
        code = peal_tuning_measure(comm, tuning);
    peal_progress_end(&progress);
    tuning->progress = NULL;
    peal_comm_close(comm);
    if (code != PEAL_EXIT_OK || !writes)
        return code;
    return keep(cli, tuning, path);
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)args, (void)nargs;
    const struct tune_options *o = options;
    char usual[LONGEST_PATH];
    const char *path = usual;
    if (o->output)
        path = o->output;
    if (!o->output && peal_tuning_path(usual, sizeof usual) != PEAL_OK)
        return peal_cli_fail(cli, "neither HOME nor XDG_CONFIG_HOME is set; use --output");
    if (o->begin == 0 || o->begin > o->end || o->end > 1 << 30)
        return peal_cli_usage(cli, "sizes are 1 to 1G, and --begin is at most --end");
    if (o->collective && !peal_tuning_has_choice(o->collective))
        return peal_cli_usage(cli,
                              peal_case_find(o->collective)
                                  ? "'%s' has one algorithm: there is nothing to choose"
                                  : "there is no collective '%s'",
                              o->collective);
    if (peal_tuning_check(path) != PEAL_OK) /* before minutes are spent on measuring */
        return peal_cli_fail(cli, "cannot write '%s': %s", path, strerror(errno));
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
    int code;
    if (getenv("PEAL_RANK")) {
        code = tune_hosts(cli, tuning, path);
    } else {
        code = measure_all(cli, o, tuning);
        if (code == PEAL_EXIT_OK)
            code = keep(cli, tuning, path);
    }
    munmap(tuning, sizeof *tuning);
    return code;
}

#define ROW(name, letter, kind, field, value, help, lowest, highest)                               \
    {                                                                                              \
        name, letter, kind, offsetof(struct tune_options, field), value, help, lowest, highest     \
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
        "milliseconds of calls per measurement (default 20)", 1, 60000),
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
        "opened: peal/tune in $XDG_CONFIG_HOME or ~/.config, or $PEAL_TUNE_FILE. The algorithm "
        "of the built-in table is kept unless another one is at least 3 % faster. Lines of an "
        "older table for other collectives and ranks stay. Ctrl-C ends at once and changes "
        "nothing. 'peal bench --explain' says which algorithm a call uses, and why. Started by "
        "'peal exec --hosts', it measures calls between those hosts, and each host gets the "
        "table.",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 0,
    .max_args = 0,
    .run = run,
};
