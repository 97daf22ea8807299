/* SPDX-License-Identifier: Apache-2.0 */
/* peal doctor PID: who waits for whom in a running job, and why. */
#include "cli/cli.h"
#include "cli/jobs.h"
#include "cli/process.h"

#include "report/report.h"
#include "run/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FRAMES = 6 };

struct doctor_options {
    bool json, no_stack;
};

/* Why the job has failed, with line ends followed by `indent`. False: it has not. Only for display:
 * a report that is being written may be read incompletely. */
static bool read_report(const struct peal_control *control, const char *indent,
                        struct peal_text *out)
{
    /* acquire: partner is the release of the rank that wrote the report */
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

/* Nothing is known about a process on another host except what it reported. */
static bool is_far(const struct peal_control *control)
{
    return atomic_load_explicit(&control->heard_ns, memory_order_relaxed) != 0; /* for display */
}

static bool is_gone(const struct peal_control *control)
{
    return !is_far(control) && kill(control->pid, 0) != 0;
}

/* The rank is in no call, alive, and not in another container: what it does is up to the
 * program. */
static bool is_outside(const struct peal_control *control)
{
    uint32_t life = atomic_load_explicit(&control->life, memory_order_relaxed); /* for display */
    return life == PEAL_LIFE_OUTSIDE && !is_far(control) && !is_gone(control);
}

static void describe_process(const struct peal_control *control, bool stack, struct peal_text *out)
{
    struct peal_text names = {0};
    if (!is_outside(control) || !peal_process_state(control->pid, out))
        return;
    if (stack && peal_process_stack(control->pid, MAX_FRAMES, &names)) {
        const char *before = ", in ";
        const char *list = peal_text_get(&names);
        for (size_t at = 0; at < names.len; at += strcspn(list + at, "\n") + 1) {
            peal_text_puts(out, before);
            peal_text_add(out, list + at, strcspn(list + at, "\n"));
            before = " < ";
        }
    }
    peal_text_release(&names);
}

static void describe_rank(const struct peal_control *control, bool is_culprit, bool stack,
                          struct peal_text *out)
{
    struct peal_text report = {0}, process = {0};
    peal_text_printf(out, "  rank %u (pid %d)", control->rank, control->pid);
    if (is_culprit)
        peal_text_puts(out, " <--");
    if (is_gone(control))
        peal_text_puts(out, " is gone, last seen");
    peal_text_puts(out, " ");
    peal_job_describe(control, out);
    describe_process(control, stack, &process);
    if (process.len > 0)
        peal_text_printf(out, "; its process is %s", peal_text_get(&process));
    peal_text_puts(out, "\n");
    if (read_report(control, "    ", &report))
        peal_text_printf(out, "  the job has failed:\n    %s", peal_text_get(&report));
    peal_text_release(&report);
    peal_text_release(&process);
}

static void put_rank_json(const struct peal_control *control, bool is_culprit, bool stack,
                          struct peal_json *json)
{
    struct peal_text doing = {0}, report = {0}, process = {0};
    char job[64];
    snprintf(job, sizeof job, "%.63s", control->job);
    peal_job_describe(control, &doing);
    describe_process(control, stack, &process);
    peal_json_object(json);
    peal_json_put_string(json, "job", job);
    peal_json_put_uint(json, "rank", control->rank);
    peal_json_put_uint(json, "of", control->size);
    peal_json_put_int(json, "pid", control->pid);
    peal_json_put_bool(json, "gone", is_gone(control));
    peal_json_put_bool(json, "suspect", is_culprit);
    peal_json_put_string(json, "doing", peal_text_get(&doing));
    peal_json_put_string(json, "process", process.len > 0 ? peal_text_get(&process) : NULL);
    peal_json_key(json, "failed");
    if (read_report(control, "", &report))
        peal_json_string(json, peal_text_get(&report));
    else
        peal_json_null(json);
    peal_json_object_end(json);
    peal_text_release(&doing);
    peal_text_release(&report);
    peal_text_release(&process);
}

/* Ranks of the communicator that begins at `first`. */
static size_t count_ranks(const struct peal_jobs *jobs, size_t first)
{
    size_t end = first + 1;
    while (end < jobs->ranks.len &&
           strcmp(jobs->ranks.at[end].control->job, jobs->ranks.at[first].control->job) == 0)
        end++;
    return end - first;
}

/* The rank that delays the others, as in the report of a failure. `count`: no rank does. */
static size_t find_culprit(const struct peal_jobs *jobs, size_t first, size_t count)
{
    struct peal_control *controls[PEAL_MOST_RANKS];
    bool waits = false;
    if (count > PEAL_MOST_RANKS)
        return count;
    for (size_t i = 0; i < count; i++) {
        controls[i] = (struct peal_control *)(uintptr_t)jobs->ranks.at[first + i].control;
        /* Relaxed: for display. */
        waits |= atomic_load_explicit(&controls[i]->life, memory_order_relaxed) == PEAL_LIFE_INSIDE;
    }
    /* If no rank is in a call, no rank delays another. */
    if (waits)
        return peal_doctor_suspect(controls, (uint32_t)count, (uint32_t)count);
    return count;
}

static void put_text(const struct peal_jobs *jobs, bool stack, struct peal_text *out)
{
    for (size_t i = 0, count; i < jobs->ranks.len; i += count) {
        const struct peal_control *control = jobs->ranks.at[i].control;
        count = count_ranks(jobs, i);
        size_t culprit = find_culprit(jobs, i, count);
        peal_text_printf(out, "job %.63s, %u ranks\n", control->job, control->size);
        for (size_t r = 0; r < count; r++)
            describe_rank(jobs->ranks.at[i + r].control, r == culprit, stack, out);
    }
    peal_text_fold(out, 0, 6, PEAL_TEXT_WIDTH);
}

static void put_json(const struct peal_jobs *jobs, bool stack, struct peal_text *out)
{
    struct peal_json json;
    peal_json_init(&json, out, 2);
    peal_json_array(&json);
    for (size_t i = 0, count; i < jobs->ranks.len; i += count) {
        count = count_ranks(jobs, i);
        size_t culprit = find_culprit(jobs, i, count);
        for (size_t r = 0; r < count; r++)
            put_rank_json(jobs->ranks.at[i + r].control, r == culprit, stack, &json);
    }
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
        return peal_cli_fail(cli, "process %ld is not in any job that this user can see", pid);
    }
    struct peal_text out = {0};
    if (o->json)
        put_json(&jobs, !o->no_stack, &out);
    else
        put_text(&jobs, !o->no_stack, &out);
    int code = peal_cli_print(cli, &out, PEAL_EXIT_OK);
    peal_jobs_release(&jobs);
    return code;
}

static const struct doctor_options defaults = {false, false};
static const struct peal_option table[] = {
    {"json", 0, PEAL_OPTION_FLAG, offsetof(struct doctor_options, json), NULL, "print JSON", 0, 0},
    {"no-stack", 0, PEAL_OPTION_FLAG, offsetof(struct doctor_options, no_stack), NULL,
     "do not ask for the stacks of ranks that are in no call", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

const struct peal_command peal_cmd_doctor = {
    .name = "doctor",
    .args = "PID",
    .summary = "say who waits for whom in a running job, and why",
    .details =
        "PID is any process of the job, or its launcher. For each rank, the command shows the call "
        "that it is in, if any, and where it waits, for which cell and value, if it has waited for "
        "some milliseconds. An arrow marks the rank that holds up the others. For a rank outside "
        "any call it shows the state of its process and, if eu-stack (elfutils) is installed and "
        "allowed, the functions it is in. eu-stack stops that process for some milliseconds; "
        "nothing else is disturbed.",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
