/* SPDX-License-Identifier: Apache-2.0 */
/* peal doctor PID: who waits for whom in a running job, and why. */
#include "cli/cli.h"
#include "cli/jobs.h"

#include "report/report.h"
#include "run/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct doctor_options {
    bool json;
};

/* Why the job has failed, line ends followed by `indent`; false: it has not. For the reader's eyes:
 * the words of a report that is being written may be torn. */
static bool read_report(const struct peal_control *control, const char *indent,
                        struct peal_text *out)
{
    /* acquire: partner is the release of whoever wrote the report */
    if (atomic_load_explicit(&control->report_done, memory_order_acquire) == 0)
        return false;
    for (int i = 0; i < PEAL_REPORT_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&control->report_text[i], memory_order_relaxed);
        for (int k = 0; k < 8; k++, word >>= 8) {
            char c = (char)(word & 0xff);
            if (c == '\0')
                return true;
            peal_text_add(out, &c, 1);
            if (c == '\n')
                peal_text_puts(out, indent);
        }
    }
    return true;
}

static bool is_gone(const struct peal_control *control)
{
    return kill(control->pid, 0) != 0;
}

static void describe_rank(const struct peal_control *control, struct peal_text *out)
{
    struct peal_text report = {0};
    peal_text_printf(out, "  rank %u (pid %d)%s ", control->rank, control->pid,
                     is_gone(control) ? " is gone, last seen" : "");
    peal_doctor_describe(control, out);
    peal_text_puts(out, "\n");
    if (read_report(control, "    ", &report))
        peal_text_printf(out, "  the job has failed:\n    %s", peal_text_get(&report));
    peal_text_release(&report);
}

static void put_rank_json(const struct peal_control *control, struct peal_json *json)
{
    struct peal_text doing = {0}, report = {0};
    char job[24];
    snprintf(job, sizeof job, "%.23s", control->job);
    peal_doctor_describe(control, &doing);
    peal_json_object(json);
    peal_json_put_string(json, "job", job);
    peal_json_put_uint(json, "rank", control->rank);
    peal_json_put_uint(json, "of", control->size);
    peal_json_put_int(json, "pid", control->pid);
    peal_json_put_bool(json, "gone", is_gone(control));
    peal_json_put_string(json, "doing", peal_text_get(&doing));
    peal_json_key(json, "failed");
    if (read_report(control, "", &report))
        peal_json_string(json, peal_text_get(&report));
    else
        peal_json_null(json);
    peal_json_object_end(json);
    peal_text_release(&doing);
    peal_text_release(&report);
}

static void put_text(const struct peal_jobs *jobs, struct peal_text *out)
{
    const char *job = "";
    for (size_t i = 0; i < jobs->ranks.len; i++) {
        const struct peal_control *control = jobs->ranks.at[i].control;
        if (i == 0 || strcmp(job, control->job) != 0)
            peal_text_printf(out, "job %.23s, %u ranks\n", control->job, control->size);
        job = control->job;
        describe_rank(control, out);
    }
    peal_text_fold(out, 0, 6, PEAL_TEXT_WIDTH);
}

static void put_json(const struct peal_jobs *jobs, struct peal_text *out)
{
    struct peal_json json;
    peal_json_init(&json, out, 2);
    peal_json_array(&json);
    for (size_t i = 0; i < jobs->ranks.len; i++)
        put_rank_json(jobs->ranks.at[i].control, &json);
    peal_json_array_end(&json);
    peal_text_puts(out, "\n");
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    const struct doctor_options *o = options;
    (void)nargs;
    char *end;
    errno = 0;
    long pid = strtol(args[0], &end, 10);
    if (*end || pid <= 0 || pid > INT32_MAX || errno)
        return peal_cli_usage(cli, "'%s' is not a process id", args[0]);
    struct peal_jobs jobs;
    peal_jobs_find((int32_t)pid, &jobs);
    if (jobs.ranks.len == 0) {
        peal_jobs_release(&jobs);
        return peal_cli_fail(cli, "process %ld is in no job that can be seen", pid);
    }
    struct peal_text out = {0};
    if (o->json)
        put_json(&jobs, &out);
    else
        put_text(&jobs, &out);
    int code = peal_cli_print(cli, &out, PEAL_EXIT_OK);
    peal_jobs_release(&jobs);
    return code;
}

static const struct doctor_options defaults = {false};
static const struct peal_option table[] = {
    {"json", 0, PEAL_OPTION_FLAG, offsetof(struct doctor_options, json), NULL, "print JSON", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

const struct peal_command peal_cmd_doctor = {
    .name = "doctor",
    .args = "PID",
    .summary = "say who waits for whom in a running job, and why",
    .details =
        "PID is any process of the job. For each rank: the call it is in, or outside of any; "
        "where it waits, for which cell and value, if it has waited for some milliseconds. "
        "The job is only looked at, never disturbed.",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .least_args = 1,
    .most_args = 1,
    .run = run,
};
