/* SPDX-License-Identifier: Apache-2.0 */
/* One file, verified by peal verify's own code in a forked process, which reports each kernel when its
 * verdict is known. A kernel that takes too long is given up, and the ones after it go on in another
 * process.
 *
 * A report is a record: its length, a letter, then texts that end in NUL. 'b': a kernel begins; 'e': it
 * has ended (exit code, kernel, line, text, results); 'd': all have (code, text, results since then).
 */
#include "cli/ci/ci.h"

#include "cli/progress.h"
#include "cli/verify/sarif.h"
#include "cli/verify/verify_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_TEXT = 64 << 10, MAX_RECORD = 16 << 20, MAX_FIELDS = 5, NAME = 512 };

/* ---- the process ---- */

struct ci_child {
    int reports; /* where records go */
    int output;  /* the file that is stdout and stderr */
    off_t shown; /* bytes of it that have been reported */
    struct peal_text sarif;
    struct peal_json results; /* an open list in `sarif` */
};

static void begin_results(struct ci_child *child)
{
    child->sarif.len = 0;
    peal_json_init(&child->results, &child->sarif, 1);
    peal_json_array(&child->results);
}

/* The results since begin_results, without the brackets. */
static void end_results(struct ci_child *child, struct peal_text *out)
{
    peal_json_array_end(&child->results);
    if (child->sarif.len > 2)
        peal_text_add(out, peal_text_get(&child->sarif) + 1, child->sarif.len - 2);
    begin_results(child);
}

static void send_record(const struct ci_child *child, const struct peal_text *record)
{
    uint32_t len = (uint32_t)record->len;
    struct peal_text whole = {0};
    peal_text_add(&whole, (const char *)&len, sizeof len);
    peal_text_add(&whole, peal_text_get(record), record->len);
    for (size_t at = 0; at < whole.len && !whole.failed && !record->failed;) {
        ssize_t n = write(child->reports, whole.at + at, whole.len - at);
        if (n <= 0 && errno != EINTR)
            break; /* nobody listens: the other side has been ended */
        at += n > 0 ? (size_t)n : 0;
    }
    peal_text_release(&whole);
}

/* What was printed since the last time, up to a limit. */
static void take_output(struct ci_child *child, struct peal_text *out)
{
    char piece[4096];
    fflush(stdout);
    fflush(stderr);
    off_t end = lseek(child->output, 0, SEEK_END);
    for (size_t got = 0; child->shown < end && got < MAX_TEXT;) {
        ssize_t n = pread(child->output, piece, sizeof piece, child->shown);
        if (n <= 0)
            break;
        for (ssize_t i = 0; i < n; i++)
            piece[i] = piece[i] ? piece[i] : ' ';
        peal_text_add(out, piece, (size_t)n);
        child->shown += n;
        got += (size_t)n;
    }
    child->shown = end;
    peal_text_add(out, "", 1);
}

static void kernel_begins(void *context, const char *kernel)
{
    struct peal_text record = {0};
    peal_text_puts(&record, "b");
    peal_text_add(&record, kernel, strlen(kernel) + 1);
    send_record(context, &record);
    peal_text_release(&record);
}

static void kernel_ended(void *context, const char *kernel, int code, const char *line)
{
    struct ci_child *child = context;
    struct peal_text record = {0};
    peal_text_printf(&record, "e%d", code);
    peal_text_add(&record, "", 1);
    peal_text_add(&record, kernel, strlen(kernel) + 1);
    peal_text_add(&record, line, strlen(line) + 1);
    take_output(child, &record);
    end_results(child, &record);
    peal_text_add(&record, "", 1);
    send_record(child, &record);
    peal_text_release(&record);
}

static void send_done(struct ci_child *child, int code)
{
    struct peal_text record = {0};
    peal_text_printf(&record, "d%d", code);
    peal_text_add(&record, "", 1);
    take_output(child, &record);
    end_results(child, &record);
    peal_text_add(&record, "", 1);
    send_record(child, &record);
    peal_text_release(&record);
}

/* Nothing of what a service gives to its jobs reaches a compiler or a program: only what these need. */
static void clean_environment(const char *folder)
{
    static const char *const kept[] = {
        "PATH",       "TMPDIR",          "CXX",  "CC",     "PEAL_CACHE",     "PEAL_PYTHON",
        "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "XDG_CACHE_HOME", "COLUMNS"};
    const char *values[sizeof kept / sizeof *kept];
    struct peal_text base = {0}, cache = {0};
    const char *home = getenv("HOME");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        values[i] = getenv(kept[i]);
    if (home) { /* packages and verdicts of this user */
        peal_text_printf(&base, "%s/.local", home);
        peal_text_printf(&cache, "%s/.cache", home);
    }
    clearenv();
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (values[i])
            setenv(kept[i], values[i], 1);
    }
    setenv("HOME", folder, 1);
    setenv("NO_COLOR", "1", 1);
    if (base.len)
        setenv("PYTHONUSERBASE", peal_text_get(&base), 0);
    if (cache.len)
        setenv("XDG_CACHE_HOME", peal_text_get(&cache), 0);
    peal_text_release(&base);
    peal_text_release(&cache);
}

/* The options of the entry, then those of this run; the copy's path. */
static int verify(struct peal_cli *cli, const struct peal_ci_job *job, struct ci_child *child,
                  const char *after)
{
    struct peal_verify_settings settings;
    struct peal_args args;
    struct peal_text error = {0};
    const struct peal_verify_watch watch = {kernel_begins, kernel_ended, child, after};
    memcpy(&settings, peal_cmd_verify.defaults, sizeof settings);
    if (!peal_options_parse(peal_cmd_verify.options, false, job->entry->noptions,
                            job->entry->options, &settings, cli->arena, &args, &error))
        return peal_cli_fail(cli, "%s", peal_text_get(&error));
    settings.jobs = job->threads;
    settings.results = &child->results;
    settings.watch = &watch;
    char *path = peal_arena_copy(cli->arena, job->path, strlen(job->path));
    if (!path)
        return peal_cli_fail(cli, "out of memory");
    return peal_cmd_verify.run(cli, &settings, &path, 1);
}

/* Never returns. */
static void run_child(const struct peal_cli *from, const struct peal_ci_job *job,
                      struct ci_child *child, const char *after)
{
    struct peal_cli cli = {.command = &peal_cmd_verify, .arena = from->arena};
    const struct rlimit no_core = {0, 0};
    setpgid(0, 0); /* so that all it starts can be ended */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &no_core);
    peal_progress_leave(job->progress);
    int nothing = open("/dev/null", O_RDONLY);
    bool good = nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
                dup2(child->output, STDOUT_FILENO) >= 0 &&
                dup2(child->output, STDERR_FILENO) >= 0 && chdir(job->folder) == 0;
    int code = PEAL_EXIT_OTHER;
    clean_environment(job->folder);
    begin_results(child);
    if (good)
        code = verify(&cli, job, child, after);
    send_done(child, code);
    _exit(code);
}

/* ---- the process that watches ---- */

struct watcher {
    const struct peal_cli *cli;
    const struct peal_ci_job *job;
    struct peal_ci_rows *rows;
    struct peal_text bytes; /* records that are not complete yet */
    char kernel[NAME];      /* that has begun and not ended; "" = none */
    char last[NAME];        /* that ended last */
    bool has_rows, done;
    uint64_t began_ms, deadline_ms;
};

static const char *keep(const struct watcher *w, const char *text)
{
    const char *copy = peal_arena_copy(w->rows->arena, text, strlen(text));
    return copy ? copy : "";
}

static void add_row(struct watcher *w, const char *kernel, int code, const char *const text[3])
{
    uint64_t now = peal_now_ms();
    struct peal_ci_row row = {.path = w->job->path,
                              .kernel = keep(w, kernel),
                              .code = code,
                              .line = keep(w, text[0]),
                              .text = keep(w, text[1]),
                              .sarif = keep(w, text[2]),
                              .ms = now - w->began_ms};
    (void)peal_vec_push(&w->rows->list, row);
    w->has_rows = true;
    w->began_ms = now;
    w->deadline_ms = now + w->job->seconds * 1000;
}

/* A kernel that got no verdict, and why. */
static void add_failure(struct watcher *w, const char *why)
{
    struct peal_text line = {0}, sarif = {0};
    struct peal_json json;
    bool named = w->kernel[0] != '\0';
    peal_text_printf(&line, "%s%s%s", w->kernel, named ? ": " : "", why);
    peal_json_init(&json, &sarif, 1);
    peal_sarif_result(&json, &(struct peal_sarif_result){.rule = PEAL_SARIF_UNDECIDED,
                                                         .level = "warning",
                                                         .message = peal_text_get(&line),
                                                         .path = w->job->path});
    peal_json_object_end(&json);
    const char *const texts[3] = {peal_text_get(&line), "", peal_text_get(&sarif)};
    add_row(w, w->kernel, PEAL_EXIT_OTHER, texts);
    peal_text_release(&line);
    peal_text_release(&sarif);
}

/* All kernels are done; what none of them has said is about the file, or about one that gave up. */
static void take_done(struct watcher *w, int code, const char *text, const char *sarif)
{
    static const char *const words[] = {[PEAL_EXIT_OK] = "proved",
                                        [PEAL_EXIT_NO] = "refuted",
                                        [PEAL_EXIT_USAGE] = "peal.yaml does not fit it",
                                        [PEAL_EXIT_OTHER] = "not decided"};
    bool known = code >= PEAL_EXIT_OK && code <= PEAL_EXIT_OTHER;
    const char *const texts[3] = {known ? words[code] : words[PEAL_EXIT_OTHER], text, sarif};
    if (w->kernel[0] || !w->has_rows || *sarif)
        add_row(w, w->kernel, known ? code : PEAL_EXIT_OTHER, texts);
    w->kernel[0] = '\0';
    w->done = true;
}

static void take_record(struct watcher *w, const char *record, size_t len)
{
    const char *field[MAX_FIELDS] = {"", "", "", "", ""};
    const char *at = record + 1, *end = record + len;
    for (int i = 0; i < MAX_FIELDS && at < end && memchr(at, '\0', (size_t)(end - at)); i++) {
        field[i] = at;
        at += strlen(at) + 1;
    }
    if (record[0] == 'b') {
        snprintf(w->kernel, sizeof w->kernel, "%s", field[0]);
    } else if (record[0] == 'e') {
        const char *const texts[3] = {field[2], field[3], field[4]};
        add_row(w, field[1], atoi(field[0]), texts);
        snprintf(w->last, sizeof w->last, "%s", field[1]);
        w->kernel[0] = '\0';
    } else if (record[0] == 'd') {
        take_done(w, atoi(field[0]), field[1], field[2]);
    }
}

/* Takes the records that are complete. */
static void take_bytes(struct watcher *w)
{
    uint32_t len;
    size_t at = 0;
    while (w->bytes.len - at >= sizeof len) {
        memcpy(&len, w->bytes.at + at, sizeof len);
        if (len == 0 || len > MAX_RECORD || w->bytes.len - at - sizeof len < len)
            break;
        take_record(w, w->bytes.at + at + sizeof len, len);
        at += sizeof len + len;
    }
    memmove(w->bytes.at, w->bytes.at + at, w->bytes.len - at);
    w->bytes.len -= at;
}

/* Until the process ends its reports. False: the time is over. */
static bool listen_to(struct watcher *w, int reports)
{
    for (;;) {
        char piece[4096];
        uint64_t now = peal_now_ms();
        struct pollfd wait = {.fd = reports, .events = POLLIN};
        if (now >= w->deadline_ms)
            return false;
        int ready = poll(&wait, 1, (int)(w->deadline_ms - now));
        ssize_t n = ready > 0 ? read(reports, piece, sizeof piece) : 1;
        if (n == 0)
            return true;
        if (ready <= 0 || n < 0)
            continue;
        peal_text_add(&w->bytes, piece, (size_t)n);
        if (!w->bytes.failed && w->bytes.len)
            take_bytes(w);
        if (w->done)
            return true;
    }
}

/* One process, for the kernels after `after`. False: it could not be started. */
static bool run_once(struct watcher *w, const char *after)
{
    int ends[2] = {-1, -1}, status = 0;
    char why[96];
    FILE *output = tmpfile();
    struct ci_child child = {.reports = -1, .output = output ? fileno(output) : -1};
    if (!output || pipe2(ends, O_CLOEXEC) != 0) {
        if (output)
            fclose(output);
        return false;
    }
    child.reports = ends[1];
    fflush(NULL);
    w->began_ms = peal_now_ms();
    w->deadline_ms = w->began_ms + w->job->seconds * 1000;
    pid_t pid = fork();
    if (pid == 0)
        run_child(w->cli, w->job, &child, after);
    close(ends[1]);
    if (pid > 0) {
        setpgid(pid, pid);                /* whichever of the two is first */
        atomic_store(w->job->child, pid); /* partner: the report after Ctrl-C, in cmd/ci.c */
        bool in_time = listen_to(w, ends[0]);
        kill(-pid, SIGKILL); /* with all that it has started */
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        atomic_store(w->job->child, 0);
        if (!in_time)
            snprintf(why, sizeof why, "given up after %llu s", (unsigned long long)w->job->seconds);
        else
            snprintf(why, sizeof why, "the proof ended by signal %d", WTERMSIG(status));
        if (!w->done)
            add_failure(w, why);
    }
    close(ends[0]);
    fclose(output);
    return pid > 0;
}

bool peal_ci_job_run(const struct peal_cli *cli, const struct peal_ci_job *job,
                     struct peal_ci_rows *rows)
{
    struct watcher w = {.cli = cli, .job = job, .rows = rows};
    char after[NAME] = "";
    bool good, again;
    do {
        w.bytes.len = 0;
        w.kernel[0] = '\0';
        good = run_once(&w, after[0] ? after : NULL);
        /* The kernel that was given up, if it has a name: others may follow it. */
        again = good && !w.done && w.kernel[0] && strcmp(after, w.kernel) != 0;
        memcpy(after, w.kernel, sizeof after);
    } while (again);
    peal_text_release(&w.bytes);
    if (!good)
        peal_cli_fail(cli, "a process cannot be started: %s", strerror(errno));
    return good;
}
