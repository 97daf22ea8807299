/* SPDX-License-Identifier: Apache-2.0 */
/* peal doctor PID: who waits for whom in a running job, and why. */
#include "cli/cli.h"
#include "cli/jobs.h"

#include "run/doctor.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void describe_rank(const struct peal_control *control, struct peal_text *out)
{
    peal_text_printf(out, "  rank %u (pid %d)%s ", control->rank, control->pid,
                     kill(control->pid, 0) != 0 ? " is gone, last seen" : "");
    peal_doctor_describe(control, out);
    peal_text_puts(out, "\n");
    /* For the reader's eyes: the words of a report that is being written may be torn. */
    if (atomic_load_explicit(&control->report_done, memory_order_acquire) == 0)
        return;
    peal_text_puts(out, "  the job has failed:\n    ");
    for (int i = 0; i < PEAL_REPORT_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&control->report_text[i], memory_order_relaxed);
        for (int k = 0; k < 8; k++, word >>= 8) {
            char c = (char)(word & 0xff);
            if (c == '\0')
                return;
            peal_text_add(out, &c, 1);
            if (c == '\n')
                peal_text_puts(out, "    ");
        }
    }
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)options, (void)nargs;
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
    const char *job = "";
    for (size_t i = 0; i < jobs.ranks.len; i++) {
        const struct peal_control *control = jobs.ranks.at[i].control;
        if (i == 0 || strcmp(job, control->job) != 0)
            peal_text_printf(&out, "job %.23s, %u ranks\n", control->job, control->size);
        job = control->job;
        describe_rank(control, &out);
    }
    int code = peal_cli_print(cli, &out, PEAL_EXIT_OK);
    peal_jobs_release(&jobs);
    return code;
}

const struct peal_command peal_cmd_doctor = {
    .name = "doctor",
    .args = "PID",
    .summary = "say who waits for whom in a running job, and why",
    .details =
        "PID is any process of the job. For each rank: the call it is in, or outside of any; "
        "where it waits, for which cell and value, if it has waited for some milliseconds. "
        "The job is only looked at, never disturbed.",
    .least_args = 1,
    .most_args = 1,
    .run = run,
};
