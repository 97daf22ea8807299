/* SPDX-License-Identifier: Apache-2.0 */
/* peal ps: the jobs of this user on this host. */
#include "cli/cli.h"
#include "cli/jobs.h"

#include "report/report.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct ps_options {
    bool json, wide;
};

/* Maximal length of a line; 0: no limit. */
static size_t line_width(const struct ps_options *o)
{
    struct winsize size;
    if (o->wide || o->json)
        return 0;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 40)
        return size.ws_col;
    return 80;
}

/* Shortens longer lines, with a mark at the end. */
static void cut_lines(const struct peal_text *from, size_t width, struct peal_text *out)
{
    for (const char *line = peal_text_get(from); *line;) {
        size_t len = strcspn(line, "\n");
        if (width == 0 || len <= width)
            peal_text_printf(out, "%.*s\n", (int)len, line);
        else
            peal_text_printf(out, "%.*s...\n", (int)(width - 3), line);
        line += len + (line[len] == '\n');
    }
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)args, (void)nargs;
    const struct ps_options *o = options;
    struct peal_jobs jobs;
    peal_jobs_find(0, &jobs);
    struct peal_report_table *table = peal_report_table_new();
    peal_report_table_column(table, "job", PEAL_ALIGN_LEFT);
    peal_report_table_column(table, "rank", PEAL_ALIGN_RIGHT);
    peal_report_table_column(table, "of", PEAL_ALIGN_RIGHT);
    peal_report_table_column(table, "pid", PEAL_ALIGN_RIGHT);
    peal_report_table_column(table, "doing", PEAL_ALIGN_LEFT);
    for (size_t i = 0; i < jobs.ranks.len; i++) {
        const struct peal_control *control = jobs.ranks.at[i].control;
        struct peal_text doing = {0};
        peal_job_describe(control, &doing);
        peal_report_table_cell(table, "%.63s", control->job);
        peal_report_table_cell(table, "%u", control->rank);
        peal_report_table_cell(table, "%u", control->size);
        peal_report_table_cell(table, "%d", control->pid);
        peal_report_table_cell(table, "%s", peal_text_get(&doing));
        peal_text_release(&doing);
    }
    struct peal_text out = {0};
    if (o->json) {
        struct peal_json json = {.out = &out};
        peal_report_table_json(table, &json);
        peal_text_puts(&out, "\n");
    } else if (jobs.ranks.len == 0) {
        peal_text_puts(&out, "no jobs\n");
    } else {
        struct peal_text whole = {0};
        peal_report_table_text(table, &whole);
        cut_lines(&whole, line_width(o), &out);
        peal_text_release(&whole);
    }
    peal_report_table_free(table);
    peal_jobs_release(&jobs);
    return peal_cli_print(cli, &out, PEAL_EXIT_OK);
}

static const struct ps_options defaults = {false, false};
static const struct peal_option table[] = {
    {"json", 0, PEAL_OPTION_FLAG, offsetof(struct ps_options, json), NULL, "print JSON", 0, 0},
    {"wide", 'w', PEAL_OPTION_FLAG, offsetof(struct ps_options, wide), NULL,
     "whole lines, however long", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

const struct peal_command peal_cmd_ps = {
    .name = "ps",
    .args = "",
    .summary = "list the jobs of this user that have ranks on this host",
    .details =
        "One line for each rank that is a process: what it is doing, and where it waits if it has "
        "waited for a while. Lines are cut to the terminal, or to 80 columns; 'peal doctor PID' "
        "shows everything. For ranks on other hosts it shows what the ranks here heard last. Jobs "
        "are only read, never disturbed.",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 0,
    .max_args = 0,
    .run = run,
};
