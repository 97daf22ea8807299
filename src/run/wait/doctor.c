/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor.h. All of it runs in the slow path of waits.
 *
 * Who owns what. Everything that a report says of another rank is read from that rank's control
 * block, which only its owner writes: life, the numbers and a short history of its calls, where it
 * waits, names of kernel launches. Only two things are written by peers: `failure`, once, and the
 * time since which a rank was seen outside any call. Of ranks on other hosts the block is a mirror
 * that span.h keeps up to date.
 *
 * What never changes. Nothing here waits for another rank, except for a moment for the launcher's
 * file, so a report is made whatever state the peers are in. Texts are read without locks: a wait
 * is a seqlock, a history entry is read twice, and a torn text is read again or left out. A wait
 * that looks lost is failed only at the second look, after one more poll, because what it waits for
 * may have arrived just before the peer died, closed or reported.
 *
 * Why by shared memory and not by messages: the rank that is asked may be stopped, dead, or in a
 * loop of its program, which are the cases that a report is for. */
#include "run/wait/doctor.h"

#include "run/algorithms/collective.h"
#include "run/span/span.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void write_words(_Atomic uint64_t *words, size_t n, const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < n; i++) {
        uint64_t word = 0;
        if (i * 8 < len)
            memcpy(&word, text + i * 8, len - i * 8 < 8 ? len - i * 8 : 8);
        if (i == n - 1)
            word &= UINT64_MAX >> 8;                                  /* the last byte stays NUL */
        atomic_store_explicit(&words[i], word, memory_order_release); /* see wait_version */
    }
}

static void put_wait(struct peal_team *team, const char *text, bool is_request, uint64_t since_ns)
{
    struct peal_control *own = peal_team_own(team);
    uint32_t version = atomic_load_explicit(&own->wait_version, memory_order_relaxed); /* ours */
    /* A seqlock: odd first, the words, then even. Partner: read_wait. */
    atomic_store_explicit(&own->wait_version, version + 1, memory_order_release);
    write_words(own->wait_text, PEAL_WAIT_WORDS, text);
    atomic_store_explicit(&own->wait_is_request, is_request, memory_order_release);
    atomic_store_explicit(&own->wait_since, since_ns, memory_order_release);
    atomic_store_explicit(&own->wait_version, version + 2, memory_order_release);
}

static void read_wait(const struct peal_control *control, char out[PEAL_WAIT_WORDS * 8])
{
    for (int attempt = 0; attempt < 100; attempt++) {
        /* Partner: put_wait. A torn text is read again. */
        uint32_t before = atomic_load_explicit(&control->wait_version, memory_order_acquire);
        for (int i = 0; i < PEAL_WAIT_WORDS; i++) {
            uint64_t word = atomic_load_explicit(&control->wait_text[i], memory_order_acquire);
            memcpy(out + i * 8, &word, 8);
        }
        out[PEAL_WAIT_WORDS * 8 - 1] = '\0';
        if (before % 2 == 0 &&
            before == atomic_load_explicit(&control->wait_version, memory_order_acquire))
            return;
    }
}

void peal_doctor_publish(struct peal_team *team, const struct peal_backoff *pause)
{
    struct peal_text text = {0};
    if (pause->describe)
        pause->describe(pause->context, &text);
    put_wait(team, peal_text_get(&text), pause->is_request, peal_backoff_since(pause));
    peal_text_release(&text);
}

void peal_doctor_unpublish(struct peal_team *team)
{
    put_wait(team, "", false, 0);
}

/* ---- looking at a rank ---- */

struct call {
    uint64_t seq, code, count;
};

/* The call with that number of that stream; false if it has not come, or is too long ago. */
static bool read_call(const struct peal_control *control, uint32_t stream, uint64_t seq,
                      struct call *out)
{
    const struct peal_call_record *record = &control->history[stream][seq % PEAL_CALL_HISTORY];
    /* Partner: peal_team_record. */
    out->seq = atomic_load_explicit(&record->seq, memory_order_acquire);
    out->code = atomic_load_explicit(&record->code, memory_order_acquire);
    out->count = atomic_load_explicit(&record->count, memory_order_acquire);
    return out->seq == seq && seq == atomic_load_explicit(&record->seq, memory_order_acquire);
}

bool peal_doctor_has_label(const struct peal_team *team, uint64_t count)
{
    const struct peal_control *own = peal_team_own(team);
    for (int i = 0; i < PEAL_LABELS; i++) {
        if (atomic_load_explicit(&own->labels[i].key, memory_order_relaxed) == count) /* ours */
            return true;
    }
    return false;
}

void peal_doctor_label(struct peal_team *team, uint64_t count, const char *text)
{
    struct peal_label *label = &peal_team_own(team)->labels[team->label++ % PEAL_LABELS];
    /* Partner: add_label. */
    atomic_store_explicit(&label->key, 0, memory_order_release);
    write_words(label->text, PEAL_LABEL_WORDS, text);
    atomic_store_explicit(&label->key, count, memory_order_release);
}

/* The name and arguments of the owner's kernel; false if they are not known. */
static bool add_label(const struct peal_control *control, uint64_t count, struct peal_text *out)
{
    char text[PEAL_LABEL_WORDS * 8];
    if (count == 0)
        return false;
    for (int i = 0; i < PEAL_LABELS; i++) {
        const struct peal_label *label = &control->labels[i];
        /* Partner: peal_doctor_label. */
        if (atomic_load_explicit(&label->key, memory_order_acquire) != count)
            continue;
        for (int w = 0; w < PEAL_LABEL_WORDS; w++) {
            uint64_t word = atomic_load_explicit(&label->text[w], memory_order_acquire);
            memcpy(text + w * 8, &word, 8);
        }
        text[sizeof text - 1] = '\0';
        if (atomic_load_explicit(&label->key, memory_order_acquire) != count)
            continue;
        peal_text_puts(out, text);
        return true;
    }
    return false;
}

static void add_call(const struct peal_control *control, const struct call *call,
                     struct peal_text *out)
{
    bool kernel = call->code >> 48 == PEAL_CALL_KERNEL;
    if (!kernel || !add_label(control, call->count, out))
        peal_collective_describe(call->code, call->count, out);
}

/* Everything that the owner has begun so far. */
static uint64_t count_begun(const struct peal_control *control)
{
    /* Relaxed: only compared with itself at another time. */
    uint64_t begun = atomic_load_explicit(&control->letters, memory_order_relaxed);
    begun += atomic_load_explicit(&control->onesided, memory_order_relaxed) >> 8;
    for (int s = 0; s < PEAL_STREAMS; s++)
        begun += atomic_load_explicit(&control->calls[s], memory_order_relaxed);
    return begun;
}

/* Records which ranks are outside any call, so that reports can say for how long. */
static void note_idle(struct peal_team *team)
{
    for (uint32_t r = 0; r < team->size; r++) {
        struct peal_control *control = team->controls[r];
        uint64_t after = count_begun(control) + 1;
        /* All relaxed: for reports. The time is written first; partner: add_idle. */
        if (atomic_load_explicit(&control->life, memory_order_relaxed) != PEAL_LIFE_OUTSIDE ||
            atomic_load_explicit(&control->idle_after, memory_order_relaxed) == after)
            continue;
        atomic_store_explicit(&control->idle_since, peal_now_ns(), memory_order_relaxed);
        atomic_store_explicit(&control->idle_after, after, memory_order_release);
    }
}

static void add_idle(const struct peal_control *control, struct peal_text *out)
{
    /* Partner: note_idle. */
    uint64_t after = atomic_load_explicit(&control->idle_after, memory_order_acquire);
    uint64_t since = atomic_load_explicit(&control->idle_since, memory_order_relaxed);
    if (after == count_begun(control) + 1)
        peal_text_printf(out, ", for %.1f s or more", (double)(peal_now_ns() - since) / 1e9);
}

/* The owner is in no call that is recorded. True if it makes one-sided calls. */
static bool add_outside(const struct peal_control *control, struct peal_text *out)
{
    static const char *const names[PEAL_ONESIDED_KINDS] = {
        "",          "put",          "get",        "notify", "put_notify",
        "fetch_add", "compare_swap", "wait_until", "fence",  "quiet"};
    enum { IDLE_NS = 100000000 }; /* without any call: it does something else */
    uint64_t onesided = atomic_load_explicit(&control->onesided, memory_order_relaxed);
    uint64_t after = atomic_load_explicit(&control->idle_after, memory_order_acquire);
    uint64_t since = atomic_load_explicit(&control->idle_since, memory_order_relaxed);
    bool idle = after == count_begun(control) + 1 && peal_now_ns() - since > IDLE_NS;
    if (onesided == 0 || idle) {
        peal_text_puts(out, "outside any call, ");
        return false;
    }
    peal_text_printf(out, "making one-sided calls (%llu so far, the last '%s'), ",
                     (unsigned long long)(onesided >> 8),
                     names[(onesided & 0xff) % PEAL_ONESIDED_KINDS]);
    return true;
}

/* Where the owner waits and since when; false if it does not. */
static bool add_wait(const struct peal_control *control, const char *before, struct peal_text *out)
{
    char wait[PEAL_WAIT_WORDS * 8] = "";
    read_wait(control, wait);
    if (!wait[0])
        return false;
    peal_text_printf(out, "%s%s", before, wait);
    /* Partner: put_wait. A time that does not belong to the text is no harm. */
    uint64_t since = atomic_load_explicit(&control->wait_since, memory_order_acquire);
    if (since != 0)
        peal_text_printf(out, ", for %.1f s", (double)(peal_now_ns() - since) / 1e9);
    return true;
}

void peal_doctor_describe(const struct peal_control *control, struct peal_text *out)
{
    /* Acquire on life; partner: peal_team_close. The rest is for the reader's eyes. */
    uint32_t life = atomic_load_explicit(&control->life, memory_order_acquire);
    uint32_t entered = atomic_load_explicit(&control->stream, memory_order_relaxed);
    uint32_t stream = entered < PEAL_STREAMS ? entered : 0;
    uint64_t seq = atomic_load_explicit(&control->calls[stream], memory_order_acquire);
    const char *blocking = stream == 0 ? "" : "non-blocking ";
    struct call call;
    if (life == PEAL_LIFE_LEFT) {
        peal_text_puts(out, "has closed the communicator");
        return;
    }
    if (life == PEAL_LIFE_OPENING) {
        peal_text_puts(out, "is opening the communicator, not all ranks have come");
        return;
    }
    if (life == PEAL_LIFE_KEPT) {
        peal_text_puts(out, "has not used the communicator yet");
        return;
    }
    /* Waits for messages and requests are no calls of a stream. */
    if (life != PEAL_LIFE_INSIDE && add_wait(control, "in ", out))
        return;
    if (life != PEAL_LIFE_INSIDE) {
        bool onesided = add_outside(control, out);
        if (seq == 0)
            peal_text_printf(out, "before its first%s", peal_text_if(onesided, " collective"));
        else
            peal_text_printf(out, "after its %scall %llu", blocking, (unsigned long long)seq);
        if (seq > 0 && read_call(control, stream, seq, &call)) {
            peal_text_puts(out, " (");
            add_call(control, &call, out);
            peal_text_puts(out, ")");
        }
        if (!onesided)
            add_idle(control, out);
        return;
    }
    if (entered == PEAL_STREAM_ONESIDED) {
        peal_text_puts(out, "in a one-sided call");
        (void)add_wait(control, ": ", out);
        return;
    }
    peal_text_printf(out, "in %scall %llu", blocking, (unsigned long long)seq);
    if (read_call(control, stream, seq, &call)) {
        peal_text_puts(out, ", ");
        add_call(control, &call, out);
    }
    (void)add_wait(control, ": ", out);
}

/* Looks for the end of a process in the launcher's file. */
static bool find_end(int fd, int32_t pid, int *status)
{
    uint64_t words[64];
    ssize_t got;
    for (off_t at = 0; (got = pread(fd, words, sizeof words, at)) > 0; at += got) {
        for (size_t i = 0; i < (size_t)got / sizeof *words; i++) {
            *status = (int)(words[i] & 0xffff);
            if (words[i] != 0 && words[i] >> 32 == (uint32_t)pid)
                return true;
        }
    }
    return false;
}

void peal_doctor_exit_text(int32_t pid, struct peal_text *out)
{
    const char *fd_text = getenv("PEAL_STATUS_FD");
    if (!fd_text)
        return;
    int status = 0, fd = atoi(fd_text);
    bool found = find_end(fd, pid, &status);
    for (int i = 0; i < 50; i++) { /* the launcher may be a moment behind */
        if (found)
            break;
        nanosleep(&(struct timespec){0, 2000000}, NULL);
        found = find_end(fd, pid, &status);
    }
    if (!found)
        return;
    if (WIFSIGNALED(status))
        peal_text_printf(out, ", killed by signal %d", WTERMSIG(status));
    else
        peal_text_printf(out, ", ended with exit code %d", WEXITSTATUS(status));
}

/* ---- the report ---- */

#define SILENT_S 0.1 /* a rank that is in a call answers questions sooner */

static void add_rank(struct peal_team *team, uint32_t rank, bool is_culprit, struct peal_text *out)
{
    const struct peal_control *control = team->controls[rank];
    bool far = peal_team_is_far(team, rank);
    peal_text_printf(out, "  rank %u (pid %d%s)%s ", rank, control->pid,
                     peal_text_if(far, " on another host"), peal_text_if(is_culprit, " <--"));
    double silent = far ? peal_span_silence(team->span, rank) : 0;
    bool dead = peal_team_is_dead(team, rank);
    /* Partner: peal_team_close. */
    bool left = atomic_load_explicit(&control->life, memory_order_acquire) == PEAL_LIFE_LEFT;
    if (dead && !left) {
        peal_text_puts(out, "is dead");
        if (!far) /* another host's launcher reports nothing here, and numbers processes differently */
            peal_doctor_exit_text(control->pid, out);
        peal_text_puts(out, ", last seen ");
    } else if (silent > SILENT_S) {
        peal_text_printf(
            out, "has not answered for %.1f s: it is stopped or not in a call; last seen ", silent);
    }
    peal_doctor_describe(control, out);
    if (dead && left)
        peal_text_puts(out, ", and has ended");
    peal_text_puts(out, "\n");
}

/* All ranks, or as many as a report has room for: the culprit and this one in any case. */
static void add_ranks(struct peal_team *team, uint32_t culprit, struct peal_text *out)
{
    enum { ROOM = PEAL_REPORT_WORDS * 8 - 1200 };
    uint32_t left_out = 0;
    for (uint32_t r = 0; r < team->size; r++) {
        if (out->len < ROOM || r == culprit || r == team->rank)
            add_rank(team, r, r == culprit, out);
        else
            left_out++;
    }
    if (left_out > 0)
        peal_text_printf(out, "  and %u more ranks\n", left_out);
}

static enum peal_status fail(struct peal_team *team, const struct peal_backoff *pause,
                             enum peal_status status, uint32_t culprit, const char *headline)
{
    struct peal_text report = {0};
    peal_doctor_publish(team, pause);
    if (team->span)
        peal_span_inquire(team->span);
    peal_text_printf(&report, "peal: rank %u: %s\n", team->rank, headline);
    add_ranks(team, culprit, &report);
    enum peal_status held = peal_team_fail(team, status, culprit, &report);
    peal_text_release(&report);
    return held;
}

static bool is_other(const struct peal_team *team, uint32_t rank, uint32_t stream, uint64_t seq,
                     struct call *own, struct call *other)
{
    return seq > 0 && read_call(peal_team_own(team), stream, seq, own) &&
           read_call(team->controls[rank], stream, seq, other) &&
           (other->code != own->code || other->count != own->count);
}

/* The first peer whose call of the same number is another one; size if there is none. */
static uint32_t find_other(const struct peal_team *team, const struct peal_backoff *pause,
                           struct call *own, struct call *other)
{
    for (uint32_t r = 0; r < team->size; r++) {
        if (r != team->rank && is_other(team, r, pause->stream, pause->seq, own, other))
            return r;
    }
    /* Or the last call that both have made, of either kind: a rank that did not have to wait in it
     * has gone on, and they now wait for each other at different places. */
    for (uint32_t i = 0; i < team->size * PEAL_STREAMS; i++) {
        uint32_t r = i / PEAL_STREAMS, stream = i % PEAL_STREAMS;
        /* Acquire: the record comes before. Partner: peal_team_record. */
        uint64_t mine =
            atomic_load_explicit(&peal_team_own(team)->calls[stream], memory_order_acquire);
        uint64_t its =
            atomic_load_explicit(&team->controls[r]->calls[stream], memory_order_acquire);
        if (r != team->rank && is_other(team, r, stream, mine < its ? mine : its, own, other))
            return r;
    }
    return team->size;
}

static enum peal_status report_other(struct peal_team *team, const struct peal_backoff *pause,
                                     uint32_t rank, const struct call *own,
                                     const struct call *other)
{
    struct peal_text text = {0}, ours = {0}, theirs = {0};
    add_call(peal_team_own(team), own, &ours);
    add_call(team->controls[rank], other, &theirs);
    uint64_t differs = own->code ^ other->code;
    if ((differs & PEAL_CALL_BY) != 0 && (differs & ~PEAL_CALL_BY) == 0) {
        peal_text_printf(&ours, " by '%s'", peal_collective_algo(own->code));
        peal_text_printf(&theirs, " by '%s'", peal_collective_algo(other->code));
    }
    peal_text_printf(&text, "mismatch in call %llu: rank %u calls %s, rank %u calls %s%s",
                     (unsigned long long)own->seq, team->rank, peal_text_get(&ours), rank,
                     peal_text_get(&theirs),
                     strcmp(peal_text_get(&ours), peal_text_get(&theirs)) == 0
                         ? " (the kernels' texts differ, or arguments that are not shown)"
                         : "");
    peal_text_release(&ours);
    peal_text_release(&theirs);
    enum peal_status status = fail(team, pause, PEAL_MISMATCH, rank, peal_text_get(&text));
    peal_text_release(&text);
    return status;
}

enum peal_status peal_doctor_mismatch(struct peal_team *team, const struct peal_backoff *pause)
{
    struct call own, other;
    if (team->span)
        peal_span_inquire(team->span);
    uint32_t rank = find_other(team, pause, &own, &other);
    if (rank < team->size)
        return report_other(team, pause, rank, &own, &other);
    return fail(
        team, pause, PEAL_MISMATCH, team->rank,
        "mismatch: a peer's part belongs to another call (the arguments differ, or the segments: "
        "do all ranks have the same table of 'peal tune'?)");
}

/* What a peer did before its process ended may have arrived after the last poll. So the wait fails
 * only at the second look. `bereaved`: set by the first look; NULL: no poll will follow. */
static enum peal_status check_peers(struct peal_team *team, const struct peal_backoff *pause,
                                    bool *bereaved)
{
    char line[160];
    for (uint32_t r = 0; r < team->size; r++) {
        /* A process that ended after closing is not missed: what it owed to calls up to its last
         * one is in shared memory. The end is looked for first, so that life is then final. */
        bool ended = peal_team_is_dead(team, r);
        /* Partner: peal_team_close. */
        bool left =
            atomic_load_explicit(&team->controls[r]->life, memory_order_acquire) == PEAL_LIFE_LEFT;
        if (ended && !left && bereaved && !*bereaved) {
            *bereaved = true;
            return PEAL_OK;
        }
        if (ended && !left) {
            struct peal_text reason = {0};
            if (peal_team_is_far(team, r)) {
                peal_text_puts(&reason, ": ");
                (void)peal_span_is_dead(team->span, r, &reason);
            } else {
                peal_doctor_exit_text(team->controls[r]->pid, &reason);
            }
            snprintf(line, sizeof line, "rank %u (pid %d) is dead%s", r, team->controls[r]->pid,
                     peal_text_get(&reason));
            peal_text_release(&reason);
            return fail(team, pause, PEAL_PEER_DEAD, r, line);
        }
        uint64_t seq =
            atomic_load_explicit(&team->controls[r]->calls[pause->stream], memory_order_acquire);
        /* Relaxed: life was acquired. Partner: peal_calls_release. */
        uint64_t dropped = atomic_load_explicit(&team->controls[r]->dropped, memory_order_relaxed);
        bool drops = pause->stream == 1 && dropped != 0 && dropped <= pause->seq;
        if (left && r != team->rank && (seq < pause->seq || drops)) {
            uint64_t call = drops ? dropped : pause->seq;
            snprintf(line, sizeof line, "rank %u has closed the communicator %s call %llu", r,
                     drops ? "and dropped" : "before", (unsigned long long)call);
            return fail(team, pause, PEAL_MISMATCH, r, line);
        }
    }
    return PEAL_OK;
}

/* A message that no rank can send or receive any more. It may have arrived after the last poll, if
 * it was sent before its sender closed. So the wait fails only at the second look. */
static enum peal_status check_letter(struct peal_team *team, struct peal_backoff *pause)
{
    bool deserted = true;
    for (uint32_t r = 0; r < team->size; r++) {
        if (pause->peer != UINT32_MAX ? r != pause->peer : r == team->rank)
            continue;
        /* Partner: peal_team_close. */
        deserted &=
            atomic_load_explicit(&team->controls[r]->life, memory_order_acquire) == PEAL_LIFE_LEFT;
    }
    if (!deserted || !pause->deserted) {
        pause->deserted = deserted && team->size > 1;
        return PEAL_OK;
    }
    char line[160];
    if (pause->peer == UINT32_MAX)
        snprintf(line, sizeof line, "all others have closed the communicator before a message");
    else
        snprintf(line, sizeof line, "rank %u has closed the communicator before a message",
                 pause->peer);
    return fail(team, pause, PEAL_MISMATCH, pause->peer == UINT32_MAX ? team->rank : pause->peer,
                line);
}

enum peal_status peal_doctor_unread(struct peal_team *team, const struct peal_backoff *pause,
                                    uint32_t rank, int error)
{
    /* The memory of a process disappears before the process is reported as ended. */
    for (int i = 0; i < 100; i++) {
        enum peal_status status = peal_team_failure(team);
        if (status == PEAL_OK)
            status = check_peers(team, pause, NULL);
        if (status != PEAL_OK)
            return status;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    char line[160];
    snprintf(line, sizeof line, "cannot reach the memory of rank %u (pid %d): %s", rank,
             team->controls[rank]->pid, strerror(error));
    return fail(team, pause, error == ESRCH ? PEAL_PEER_DEAD : PEAL_SYSTEM, rank, line);
}

uint32_t peal_doctor_suspect(struct peal_control *const *controls, uint32_t count, uint32_t self)
{
    uint32_t silent = self;
    for (uint32_t r = 0; r < count; r++) {
        char wait[PEAL_WAIT_WORDS * 8] = "";
        if (r == self || !controls[r])
            continue;
        read_wait(controls[r], wait);
        if (wait[0])
            continue;
        if (atomic_load_explicit(&controls[r]->life, memory_order_relaxed) == PEAL_LIFE_OUTSIDE)
            return r; /* relaxed: a guess for the report */
        silent = r;
    }
    return silent;
}

static uint32_t suspect(const struct peal_team *team)
{
    for (uint32_t r = 0; r < team->size; r++) {
        if (peal_team_is_far(team, r) && peal_span_silence(team->span, r) > SILENT_S)
            return r;
    }
    return peal_doctor_suspect(team->controls, team->size, team->rank);
}

/* Do some ranks wait in a blocking call, and others for a non-blocking one? */
static bool are_of_two_kinds(const struct peal_team *team)
{
    bool blocking = false, other = false;
    for (uint32_t r = 0; r < team->size; r++) {
        const struct peal_control *control = team->controls[r];
        /* Relaxed: for the report. */
        uint32_t life = atomic_load_explicit(&control->life, memory_order_relaxed);
        other |= atomic_load_explicit(&control->wait_is_request, memory_order_relaxed) != 0;
        blocking |= life == PEAL_LIFE_INSIDE &&
                    atomic_load_explicit(&control->stream, memory_order_relaxed) == 0;
    }
    return blocking && other;
}

/* Nothing has moved for long, and the time-out is longer: one rank prints a warning with the
 * report, and repeats it after the same time. */
static void warn(struct peal_team *team, const struct peal_backoff *pause, uint64_t waited_ns)
{
    uint64_t every = (uint64_t)team->warn_ms * 1000000, now = peal_now_ns();
    _Atomic uint64_t *warned = &team->controls[team->first]->warned_ns;
    if (team->quiet || every == 0 || waited_ns < every)
        return;
    /* Relaxed: one of the ranks that come to this at the same time wins, any will do. */
    uint64_t last = atomic_load_explicit(warned, memory_order_relaxed);
    if (now - last < every || !atomic_compare_exchange_strong_explicit(
                                  warned, &last, now, memory_order_relaxed, memory_order_relaxed))
        return;
    struct peal_text report = {0};
    peal_doctor_publish(team, pause);
    peal_text_printf(&report, "peal: rank %u: warning: no progress for %.1f s; still waiting\n",
                     team->rank, (double)waited_ns / 1e9);
    add_ranks(team, suspect(team), &report);
    peal_text_fold(&report, 0, 6, PEAL_TEXT_WIDTH);
    fprintf(stderr, "%s", peal_text_get(&report));
    peal_text_release(&report);
}

enum peal_status peal_doctor_check(struct peal_team *team, struct peal_backoff *pause,
                                   uint64_t waited_ns)
{
    enum peal_status status = check_peers(team, pause, &pause->bereaved);
    if (status == PEAL_OK && pause->is_message)
        status = check_letter(team, pause);
    if (status != PEAL_OK || pause->bereaved)
        return status;
    note_idle(team);
    if (team->span)
        peal_span_ask(team->span);
    struct call own, other;
    uint32_t rank = find_other(team, pause, &own, &other);
    if (rank < team->size)
        return report_other(team, pause, rank, &own, &other);
    uint64_t timeout_ms = peal_team_timeout(team);
    if (timeout_ms == 0 || waited_ns < timeout_ms * 1000000) {
        warn(team, pause, waited_ns);
        return PEAL_OK;
    }
    char line[160];
    peal_doctor_publish(team, pause);
    uint32_t culprit = suspect(team);
    const char *why = "";
    if (culprit != team->rank)
        why = "; the marked rank holds the others up";
    else if (are_of_two_kinds(team))
        why = "; a blocking call does not match a non-blocking one";
    snprintf(line, sizeof line, "no progress for %.1f s%s", (double)waited_ns / 1e9, why);
    return fail(team, pause, PEAL_TIMEOUT, culprit, line);
}
