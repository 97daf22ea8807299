/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing is done by a thread of its own, so that a step that takes long does not stop the clock.
 */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DRAW_AFTER_MS = 1000, DRAW_EVERY_MS = 250 };

/* What the Ctrl-C handler reports. Signals belong to the process, so this cannot live in a struct.
 * Stored with release by begin and end; loaded with acquire in the handler. */
static _Atomic(struct peal_progress *) current;

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int peal_progress_line(const char *what, uint64_t done, uint64_t total, uint64_t elapsed_ms,
                       char *out, int size)
{
    enum { BAR = 20 };
    char bar[BAR + 1];
    if (total == 0)
        return snprintf(out, (size_t)size, "%" PRIu64 " %s, %" PRIu64 " s", done, what,
                        elapsed_ms / 1000);
    int filled = (int)(done >= total ? BAR : done * BAR / total);
    memset(bar, ' ', BAR);
    memset(bar, '=', (size_t)filled);
    if (filled < BAR)
        bar[filled] = '>';
    bar[BAR] = '\0';
    int len = snprintf(out, (size_t)size, "[%s] %" PRIu64 " of %" PRIu64 " %s, %" PRIu64 " s", bar,
                       done, total, what, elapsed_ms / 1000);
    if (done > 0 && done < total && len < size) {
        double left = (double)elapsed_ms / (double)done * (double)(total - done) / 1000;
        len += snprintf(out + len, (size_t)(size - len), ", about %.0f s left", left);
    }
    return len;
}

static void draw(struct peal_progress *progress)
{
    uint64_t elapsed = now_ms() - progress->began_ms;
    if (elapsed < DRAW_AFTER_MS)
        return;
    char line[160];
    /* relaxed: only a number to show, nothing is read on its strength */
    uint64_t done = atomic_load_explicit(&progress->done, memory_order_relaxed);
    peal_progress_line(progress->what, done, progress->total, elapsed, line, sizeof line);
    fprintf(stderr, "\r\033[K%.79s", line);
    fflush(stderr);
    progress->drawn = true;
}

static void *draw_until_ended(void *arg)
{
    struct peal_progress *progress = arg;
    pthread_mutex_lock(&progress->lock);
    while (!progress->ending) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += DRAW_EVERY_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&progress->wake, &progress->lock, &until);
        if (!progress->ending)
            draw(progress);
    }
    pthread_mutex_unlock(&progress->lock);
    return NULL;
}

/* snprintf may not be called in a signal handler. */
static size_t put_number(uint64_t value, char *out)
{
    char digits[20];
    size_t len = 0;
    do {
        digits[len++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    for (size_t i = 0; i < len; i++)
        out[i] = digits[len - 1 - i];
    return len;
}

static size_t put_text(const char *text, char *out, size_t room)
{
    size_t len = 0;
    while (text[len] && len < room) {
        out[len] = text[len];
        len++;
    }
    return len;
}

static void report_and_end(int number)
{
    /* acquire: partner is the release in begin */
    struct peal_progress *progress = atomic_load_explicit(&current, memory_order_acquire);
    if (progress) {
        char line[160];
        size_t len = put_text("\ninterrupted: ", line, 40);
        /* relaxed: a count for people; the flushed output is what was finished */
        len += put_number(atomic_load_explicit(&progress->done, memory_order_relaxed), line + len);
        if (progress->total) {
            len += put_text(" of ", line + len, 8);
            len += put_number(progress->total, line + len);
        }
        line[len++] = ' ';
        len += put_text(progress->what, line + len, 40);
        len += put_text(" finished\n", line + len, 16);
        ssize_t written = write(STDERR_FILENO, line, len);
        (void)written;
    }
    signal(number, SIG_DFL);
    raise(number);
}

void peal_progress_begin(struct peal_progress *progress, const char *what, uint64_t total)
{
    *progress = (struct peal_progress){.what = what, .total = total, .began_ms = now_ms()};
    pthread_mutex_init(&progress->lock, NULL);
    pthread_cond_init(&progress->wake, NULL);
    fflush(stdout);
    /* release: the handler's acquire sees what and total */
    atomic_store_explicit(&current, progress, memory_order_release);
    struct sigaction action = {.sa_handler = report_and_end};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &progress->before);
    progress->draws = isatty(STDERR_FILENO) &&
                      pthread_create(&progress->thread, NULL, draw_until_ended, progress) == 0;
}

void peal_progress_step(struct peal_progress *progress)
{
    fflush(stdout);
    /* relaxed: see draw and report_and_end */
    atomic_fetch_add_explicit(&progress->done, 1, memory_order_relaxed);
}

void peal_progress_end(struct peal_progress *progress)
{
    sigaction(SIGINT, &progress->before, NULL);
    /* release: orders nothing more than begin's; the handler is no longer there */
    atomic_store_explicit(&current, NULL, memory_order_release);
    if (progress->draws) {
        pthread_mutex_lock(&progress->lock);
        progress->ending = true;
        pthread_cond_signal(&progress->wake);
        pthread_mutex_unlock(&progress->lock);
        pthread_join(progress->thread, NULL);
        if (progress->drawn) {
            fputs("\r\033[K", stderr);
            fflush(stderr);
        }
    }
    pthread_cond_destroy(&progress->wake);
    pthread_mutex_destroy(&progress->lock);
}
