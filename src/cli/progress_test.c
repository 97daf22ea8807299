/* SPDX-License-Identifier: Apache-2.0 */
/* The line of a progress, and what Ctrl-C leaves. */
#include "cli/progress.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(the_line_estimates_what_is_left)
{
    static const struct {
        int line;
        struct peal_progress_state state;
        const char *text;
    } rows[] = {
        {__LINE__, {"plans", 0, 4, 0, 2000}, "[>                   ] 0 of 4 plans, 2 s"},
        {__LINE__,
         {"plans", 1, 4, 0.25, 2000},
         "[=====>              ] 1 of 4 plans, 2 s, about 6 s left"},
        {__LINE__,
         {"plans", 1, 4, 0.5, 2000},
         "[==========>         ] 1 of 4 plans, 2 s, about 2 s left"},
        {__LINE__, {"plans", 4, 4, 1, 9999}, "[====================] 4 of 4 plans, 9 s"},
        {__LINE__, {"plans", 7, 0, 0, 3000}, "7 plans, 3 s"},
        {__LINE__, {"making the plan", 0, 0, 0, 3000}, "making the plan, 3 s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[160];
        peal_progress_line(&rows[i].state, text, sizeof text);
        if (strcmp(text, rows[i].text) != 0)
            fail_msg("line %d: '%s'", rows[i].line, text);
    }
}

static void print_late(void *text)
{
    puts(text);
}

/* Writes a result, finishes one step, lets another process finish one, and is interrupted. */
static void interrupted_child(int out)
{
    static char late[] = "finished late";
    struct peal_progress progress = {
        .label = "plans", .total = 5, .report = print_late, .context = late};
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    peal_progress_begin(&progress);
    printf("row 1\n");
    peal_progress_step(&progress, 1);
    pid_t grandchild = fork();
    if (grandchild == 0) {
        peal_progress_step(&progress, 1);
        _exit(0);
    }
    waitpid(grandchild, NULL, 0);
    kill(getpid(), SIGINT);
    for (;;)
        pause();
}

/* Runs the body with its output in `text`; returns its exit status. */
static int run_child(void (*body)(int out), char *text, size_t size)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        body(ends[1]);
    close(ends[1]);
    size_t len = 0;
    ssize_t got;
    while (len < size - 1 && (got = read(ends[0], text + len, size - 1 - len)) > 0)
        len += (size_t)got;
    text[len] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

TEST(an_interrupt_reports_what_was_finished)
{
    char text[256];
    int status = run_child(interrupted_child, text, sizeof text);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    assert_string_equal(text, "row 1\nfinished late\ninterrupted: 2 of 5 plans finished\n");
}

/* Like `nohup peal ...`: signals that were ignored before stay ignored, during and after. */
static void deaf_child(int out)
{
    struct peal_progress progress = {.label = "plans", .total = 1};
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    signal(SIGHUP, SIG_IGN);
    peal_progress_begin(&progress);
    kill(getpid(), SIGHUP);
    peal_progress_step(&progress, 1);
    peal_progress_end(&progress);
    _exit(7);
}

TEST(an_ignored_signal_stays_ignored)
{
    char text[256];
    int status = run_child(deaf_child, text, sizeof text);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_string_equal(text, "");
}

TEST(nothing_is_drawn_into_a_pipe)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    struct peal_progress progress = {.label = "plans", .total = 1};
    peal_progress_begin(&progress);
    bool draws = progress.draws;
    peal_progress_step(&progress, 1);
    peal_progress_end(&progress);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    assert_false(draws);
}

int main(void)
{
    return unit_run();
}
