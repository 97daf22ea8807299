/* SPDX-License-Identifier: Apache-2.0 */
/* The line of a progress, and what Ctrl-C leaves behind. */
#include "cli/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void the_line_estimates_what_is_left(void **state)
{
    (void)state;
    static const struct {
        int line;
        uint64_t done, total, elapsed_ms;
        const char *text;
    } rows[] = {
        {__LINE__, 0, 4, 2000, "[>                   ] 0 of 4 plans, 2 s"},
        {__LINE__, 1, 4, 2000, "[=====>              ] 1 of 4 plans, 2 s, about 6 s left"},
        {__LINE__, 4, 4, 9999, "[====================] 4 of 4 plans, 9 s"},
        {__LINE__, 7, 0, 3000, "7 plans, 3 s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[160];
        peal_progress_line("plans", rows[i].done, rows[i].total, rows[i].elapsed_ms, text,
                           sizeof text);
        if (strcmp(text, rows[i].text) != 0)
            fail_msg("line %d: '%s'", rows[i].line, text);
    }
}

/* The child writes a result, finishes two steps, and is interrupted. */
static void interrupted_child(int out)
{
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    struct peal_progress progress;
    peal_progress_begin(&progress, "plans", 5);
    printf("row 1\n");
    peal_progress_step(&progress);
    peal_progress_step(&progress);
    raise(SIGINT);
    _exit(0);
}

static void an_interrupt_reports_what_was_finished(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        interrupted_child(ends[1]);
    close(ends[1]);
    char text[256] = "";
    size_t len = 0;
    ssize_t got;
    while (len < sizeof text - 1 && (got = read(ends[0], text + len, sizeof text - 1 - len)) > 0)
        len += (size_t)got;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    assert_string_equal(text, "row 1\n\ninterrupted: 2 of 5 plans finished\n");
}

static void nothing_is_drawn_into_a_pipe(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    struct peal_progress progress;
    peal_progress_begin(&progress, "plans", 1);
    bool draws = progress.draws;
    peal_progress_step(&progress);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_estimates_what_is_left),
        cmocka_unit_test(an_interrupt_reports_what_was_finished),
        cmocka_unit_test(nothing_is_drawn_into_a_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
