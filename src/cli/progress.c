/* SPDX-License-Identifier: Apache-2.0 */
/* A separate thread draws, so that a long step does not stop the display. It also waits for Ctrl-C,
 * so that ordinary code and not a signal handler makes the report. Signals are blocked in all other
 * threads, which start later. */
#include "cli/progress.h"

#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum { DRAW_AFTER_MS = 1000, DRAW_EVERY_MS = 250 };

static const char wipe[] = "\r\033[K";

/* The one that is open and draws, for messages; part of the exception for the Ctrl-C handler, because a
 * process has one terminal. */
static _Atomic bool is_drawing;

/* In one call, so that lines of several processes on one terminal do not mix. */
static void put(int fd, const char *text, size_t len)
{
    ssize_t written = write(fd, text, len);
    (void)written; /* a closed terminal is no reason to end */
}

int peal_progress_line(const struct peal_progress_state *state, char *out, int size)
{
    enum { BAR = 20 };
    char bar[BAR + 1];
    if (state->total == 0 && state->done == 0)
        return snprintf(out, (size_t)size, "%s, %" PRIu64 " s", state->label,
                        state->elapsed_ms / 1000);
    if (state->total == 0)
        return snprintf(out, (size_t)size, "%" PRIu64 " %s, %" PRIu64 " s", state->done,
                        state->label, state->elapsed_ms / 1000);
    int filled = state->part >= 1 ? BAR : (int)(state->part * BAR);
    memset(bar, ' ', BAR);
    memset(bar, '=', (size_t)filled);
    if (filled < BAR)
        bar[filled] = '>';
    bar[BAR] = '\0';
    int len = snprintf(out, (size_t)size, "[%s] %" PRIu64 " of %" PRIu64 " %s, %" PRIu64 " s", bar,
                       state->done, state->total, state->label, state->elapsed_ms / 1000);
    if (state->part > 0 && state->part < 1 && len < size) {
        double left = (double)state->elapsed_ms / state->part * (1 - state->part) / 1000;
        len += snprintf(out + len, (size_t)(size - len), ", about %.0f s left", left);
    }
    return len;
}

static struct peal_progress_state state_of(struct peal_progress *progress)
{
    const struct peal_progress_counts *counts = progress->counts;
    struct peal_progress_state state = {.label = progress->label, .total = progress->total};
    if (progress->look) {
        progress->look(progress->context, &state);
        if (state.label != progress->phase) {
            progress->phase = state.label;
            progress->phase_ms = peal_now_ms();
        }
        state.elapsed_ms = peal_now_ms() - progress->phase_ms;
        return state;
    }
    /* relaxed: only numbers for display, nothing depends on them */
    state.done = atomic_load_explicit(&counts->steps, memory_order_relaxed);
    double weight = (double)atomic_load_explicit(&counts->weight, memory_order_relaxed);
    if (progress->weight)
        state.part = weight / (double)progress->weight;
    else if (progress->total)
        state.part = (double)state.done / (double)progress->total;
    state.elapsed_ms = peal_now_ms() - progress->began_ms;
    return state;
}

static void draw(struct peal_progress *progress)
{
    struct peal_progress_state state = state_of(progress);
    if (!progress->draws || peal_now_ms() - progress->began_ms < DRAW_AFTER_MS)
        return;
    char line[160], text[200];
    peal_progress_line(&state, line, sizeof line);
    int len = snprintf(text, sizeof text, "%s%.79s", wipe, line);
    put(STDERR_FILENO, text, (size_t)len);
    progress->drawn = true;
}

static void report_and_die(struct peal_progress *progress, int number)
{
    struct peal_progress_state state = state_of(progress);
    char line[160];
    const char *clear = progress->draws ? wipe : ""; /* the line, or the terminal's ^C */
    put(STDERR_FILENO, clear, strlen(clear));
    if (progress->report)
        progress->report(progress->context);
    fflush(stdout);
    /* The terminal may write its ^C after the signal: cleared once more, together with the text. */
    int len;
    if (progress->look && !state.total) {
        len = snprintf(line, sizeof line, "%sinterrupted: %s\n", clear, state.label);
    } else {
        len = snprintf(line, sizeof line, "%sinterrupted: %" PRIu64, clear, state.done);
        if (state.total)
            len += snprintf(line + len, sizeof line - (size_t)len, " of %" PRIu64, state.total);
        len += snprintf(line + len, sizeof line - (size_t)len, " %s finished\n", state.label);
    }
    put(STDERR_FILENO, line, (size_t)len);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    signal(number, SIG_DFL);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* the signal takes effect here */
}

static void *watch(void *argument)
{
    struct peal_progress *progress = argument;
    struct pollfd polls[2] = {{progress->signals, POLLIN, 0}, {progress->ending, POLLIN, 0}};
    atomic_store(&progress->up, true); /* partner: the loop in peal_progress_begin */
    for (;;) {
        int ready = poll(polls, 2, DRAW_EVERY_MS);
        if (ready > 0 && polls[1].revents)
            return NULL;
        struct signalfd_siginfo info;
        if (ready > 0 && read(progress->signals, &info, sizeof info) == sizeof info)
            report_and_die(progress, (int)info.ssi_signo);
        draw(progress);
    }
}

/* The signals that would end the program; one that is ignored (nohup, a job of a script) stays
 * ignored. */
static void fill_signals(sigset_t *out)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    sigemptyset(out);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(out, numbers[i]);
    }
}

void peal_progress_begin(struct peal_progress *progress)
{
    sigset_t set;
    fflush(stdout);
    progress->began_ms = peal_now_ms();
    const char *term = getenv("TERM");
    bool erases = !term || strcmp(term, "dumb") != 0;
    progress->draws = erases && isatty(STDERR_FILENO);
    progress->drawn = progress->watches = false;
    atomic_store(&progress->up, false);
    progress->phase = NULL;
    progress->phase_ms = progress->began_ms;
    progress->own_counts = (struct peal_progress_counts){0};
    progress->counts = mmap(NULL, sizeof *progress->counts, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress->counts == MAP_FAILED) /* then the steps of forked processes are not counted */
        progress->counts = &progress->own_counts;
    atomic_store(&is_drawing, progress->draws); /* partner: peal_progress_say */
    fill_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, &progress->before);
    progress->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    progress->ending = eventfd(0, EFD_CLOEXEC);
    if (progress->signals >= 0 && progress->ending >= 0)
        progress->watches = pthread_create(&progress->thread, NULL, watch, progress) == 0;
    while (progress->watches && !atomic_load(&progress->up)) /* partner: watch */
        sched_yield();
    if (!progress->watches) /* then Ctrl-C has its default effect */
        pthread_sigmask(SIG_SETMASK, &progress->before, NULL);
}

void peal_progress_step(struct peal_progress *progress, uint64_t weight)
{
    fflush(stdout);
    /* relaxed: see state_of */
    atomic_fetch_add_explicit(&progress->counts->weight, weight, memory_order_relaxed);
    atomic_fetch_add_explicit(&progress->counts->steps, 1, memory_order_relaxed);
}

void peal_progress_print(const struct peal_progress *progress, const struct peal_text *lines)
{
    if (progress->draws && isatty(STDOUT_FILENO))
        fputs(wipe, stdout);
    fwrite(peal_text_get(lines), 1, lines->len, stdout);
    fflush(stdout);
}

void peal_progress_say(const char *lines)
{
    fprintf(stderr, "%s%s", atomic_load(&is_drawing) ? wipe : "",
            lines); /* partners: begin and end */
}

void peal_progress_leave(const struct peal_progress *progress)
{
    atomic_store(&is_drawing, false); /* partner: peal_progress_say */
    pthread_sigmask(SIG_SETMASK, &progress->before, NULL);
}

void peal_progress_end(struct peal_progress *progress)
{
    if (progress->watches) {
        const uint64_t one = 1;
        put(progress->ending, (const char *)&one, sizeof one);
        pthread_join(progress->thread, NULL);
        pthread_sigmask(SIG_SETMASK, &progress->before, NULL);
    }
    atomic_store(&is_drawing, false); /* partner: peal_progress_say */
    if (progress->drawn)
        put(STDERR_FILENO, wipe, sizeof wipe - 1);
    if (progress->signals >= 0)
        close(progress->signals);
    if (progress->ending >= 0)
        close(progress->ending);
    if (progress->counts != &progress->own_counts)
        munmap(progress->counts, sizeof *progress->counts);
    progress->counts = &progress->own_counts;
}
