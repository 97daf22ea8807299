/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks of different hosts report to each other besides data. See span.h.
 *
 * Messages never wait for room in the network: they are marked as unsent, per rank, and progress
 * sends them when there is room. A word of the control block is read when it is sent, so that only
 * its latest value goes out. The marks are changed under the endpoint's lock. Two functions wait a
 * bounded time until marks are sent: announcing a failure, and leaving.
 */
#include "run/span/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Kinds of control messages; peal_gather_take handles those from GATHER on. */
enum { FAILED = 1, ASK, STATUS, GATHER };

enum unsent { UNSENT_STATUS = 1, UNSENT_QUESTION = 2, UNSENT_FAILURE = 4 };

/* The words that others wait for; their numbers are bits of span->dirty. */
enum { MADE_WORDS = 2 * PEAL_CONTEXTS, WORDS = MADE_WORDS + PEAL_CONTEXTS };

static _Atomic uint64_t *word_of(struct peal_control *control, uint32_t number)
{
    if (number < MADE_WORDS)
        return &control->made[number / 2][number % 2];
    return &control->gates[number - MADE_WORDS];
}

/* What a rank reports about itself: parts of its control block. */
struct status {
    uint64_t id;
    uint64_t waited_ns; /* a duration, as hosts' clocks differ; 0: it does not wait */
    uint64_t life, stream, calls[PEAL_STREAMS], letters, onesided, dropped, ended;
    uint64_t history[PEAL_STREAMS * PEAL_CALL_HISTORY][3];
    uint64_t labels[PEAL_LABELS][1 + PEAL_LABEL_WORDS];
    uint64_t wait[PEAL_WAIT_WORDS], wait_is_request;
    char host[PEAL_LINE];
};
static_assert(sizeof(struct status) <= PEAL_NET_CONTROL_MAX, "a rank's status is one message");

struct failure {
    uint64_t id, word;
    char report[PEAL_NET_CONTROL_MAX - 64];
};

/* ---- marking what is to be sent ---- */

static void send_unsent(struct peal_span *span, struct peal_net *net);

static void mark(struct peal_span *span, uint32_t rank, uint32_t words, uint8_t kind)
{
    if (!span->far[rank])
        return;
    span->unsent_ranks += span->dirty[rank] == 0 && span->unsent[rank] == 0;
    /* Relaxed: a hint; partner: has_unsent in span.c. */
    atomic_store_explicit(&span->endpoint->marked, true, memory_order_relaxed);
    span->dirty[rank] |= words;
    span->unsent[rank] |= kind;
}

static void mark_for_all(struct peal_span *span, uint32_t words, uint8_t kind)
{
    struct peal_net *net = peal_endpoint_lock(span->endpoint);
    for (uint32_t r = 0; r < span->team->size; r++)
        mark(span, r, words, kind);
    send_unsent(span, net);
    peal_endpoint_unlock(span->endpoint);
}

void peal_span_publish(struct peal_span *span, const _Atomic uint64_t *word)
{
    struct peal_control *own = peal_team_own(span->team);
    for (uint32_t i = 0; i < WORDS; i++) {
        if (word_of(own, i) == word)
            mark_for_all(span, UINT32_C(1) << i, 0);
    }
}

void peal_span_ask(struct peal_span *span)
{
    uint64_t now = peal_now_ns();
    for (uint32_t r = 0; r < span->team->size; r++) {
        /* Relaxed, as everywhere in this file: only used in reports and to limit waits. */
        uint64_t asked = atomic_load_explicit(&span->asked_ns[r], memory_order_relaxed);
        if (asked == 0)
            atomic_store_explicit(&span->asked_ns[r], now, memory_order_relaxed);
    }
    mark_for_all(span, 0, UNSENT_QUESTION);
}

void peal_span_send_status(struct peal_span *span)
{
    enum { EVERY_NS = 1000000000 };
    uint64_t now = peal_now_ns();
    if (now - span->sent_ns < EVERY_NS)
        return;
    span->sent_ns = now;
    for (uint32_t r = 0; r < span->team->size; r++) {
        uint32_t first = 0;
        while (span->places[first] != span->places[r])
            first++;
        if (first == r)
            mark(span, r, 0, UNSENT_STATUS);
    }
}

void peal_span_inquire(struct peal_span *span)
{
    enum { LIMIT_MS = 120 }; /* longer than the silence that a report mentions */
    peal_span_ask(span);
    for (uint32_t r = 0; r < span->team->size;) {
        double silent = peal_span_silence(span, r);
        /* A rank that has not answered for longer is not waited for: if the link is cut, that is
         * every rank behind it. */
        bool waits = span->far[r] && silent > 0 && silent * 1000 < LIMIT_MS &&
                     !peal_span_is_dead(span, r, NULL);
        if (!waits) {
            r++;
            continue;
        }
        peal_span_progress(span);
        peal_span_sleep(span, 1000000);
    }
}

double peal_span_silence(const struct peal_span *span, uint32_t rank)
{
    uint64_t asked = atomic_load_explicit(&span->asked_ns[rank], memory_order_relaxed);
    return asked == 0 ? 0 : (double)(peal_now_ns() - asked) / 1e9;
}

/* ---- sending ---- */

static uint64_t read_word(const _Atomic uint64_t *word)
{
    /* Acquire: words that are read later are at least as new. */
    return atomic_load_explicit(word, memory_order_acquire);
}

static void name_host(char out[static PEAL_LINE])
{
    const char *given = getenv("PEAL_HOST");
    if (given && *given)
        snprintf(out, PEAL_LINE, "%s", given);
    else
        (void)gethostname(out, PEAL_LINE - 1);
}

/* Where the rank waits: a seqlock, see shared.h. A text that is being written is read again, and left out if that does not
 * help. */
static void describe_wait(const struct peal_control *own, struct status *out)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        /* Acquire, both; partner: put_wait in doctor.c. */
        uint32_t before = atomic_load_explicit(&own->wait_version, memory_order_acquire);
        uint64_t since = read_word(&own->wait_since);
        out->wait_is_request = atomic_load_explicit(&own->wait_is_request, memory_order_acquire);
        out->waited_ns = since ? peal_now_ns() - since : 0;
        for (int w = 0; w < PEAL_WAIT_WORDS; w++)
            out->wait[w] = read_word(&own->wait_text[w]);
        if (before % 2 == 0 &&
            before == atomic_load_explicit(&own->wait_version, memory_order_acquire))
            return;
    }
    memset(out->wait, 0, sizeof out->wait);
    out->wait_is_request = out->waited_ns = 0;
}

/* Beside the thread of PEAL_PROGRESS=thread, which calls this, the rank itself may be writing all of it: what changes meanwhile
 * is left out, as in doctor.c. */
static void describe_own(const struct peal_span *span, struct status *out)
{
    const struct peal_control *own = peal_team_own(span->team);
    *out = (struct status){
        .id = span->id,
        .life = atomic_load_explicit(&own->life, memory_order_acquire),
        .stream = atomic_load_explicit(&own->stream, memory_order_relaxed),
        .letters = read_word(&own->letters),
        .onesided = read_word(&own->onesided),
        .dropped = read_word(&own->dropped),
        .ended = read_word(&own->finished),
    };
    name_host(out->host);
    for (int s = 0; s < PEAL_STREAMS; s++) {
        out->calls[s] = read_word(&own->calls[s]);
        for (int i = 0; i < PEAL_CALL_HISTORY; i++) {
            uint64_t *row = out->history[s * PEAL_CALL_HISTORY + i];
            row[0] = read_word(&own->history[s][i].seq);
            row[1] = read_word(&own->history[s][i].code);
            row[2] = read_word(&own->history[s][i].count);
            if (read_word(&own->history[s][i].seq) != row[0])
                row[0] = 0; /* written meanwhile: left out */
        }
    }
    for (int i = 0; i < PEAL_LABELS; i++) {
        out->labels[i][0] = read_word(&own->labels[i].key);
        for (int w = 0; w < PEAL_LABEL_WORDS; w++)
            out->labels[i][1 + w] = read_word(&own->labels[i].text[w]);
        if (read_word(&own->labels[i].key) != out->labels[i][0])
            out->labels[i][0] = 0; /* written meanwhile */
    }
    describe_wait(own, out);
}

/* Control messages pass data that is queued. A peer that reads that this rank has left must have all that it sent before,
 * and must read it before the connection is closed: so it is sent behind the data. */
static enum peal_status send_last(struct peal_net *net, uint32_t at, const struct status *status)
{
    const struct peal_net_part part = {status, sizeof *status};
    return peal_net_post(net, at, STATUS, &part, 1);
}

static enum peal_status send_status(struct peal_span *span, struct peal_net *net, uint32_t rank)
{
    struct status status;
    describe_own(span, &status);
    if (status.life == PEAL_LIFE_LEFT)
        return send_last(net, span->peers[rank].at, &status);
    return peal_net_control(net, span->peers[rank].at, STATUS, &status, sizeof status);
}

static enum peal_status send_failure(struct peal_span *span, struct peal_net *net, uint32_t rank)
{
    const struct peal_team *team = span->team;
    const struct peal_control *first = team->controls[team->first];
    struct failure failure = {.id = span->id, .word = read_word(&peal_team_own(team)->failure)};
    for (size_t i = 0; i < sizeof failure.report / 8; i++) {
        uint64_t word = i < PEAL_REPORT_WORDS ? read_word(&first->report_text[i]) : 0;
        memcpy(failure.report + i * 8, &word, 8);
    }
    failure.report[sizeof failure.report - 1] = '\0';
    uint64_t len = offsetof(struct failure, report) + strlen(failure.report) + 1;
    return peal_net_control(net, span->peers[rank].at, FAILED, &failure, len);
}

static enum peal_status send_words(struct peal_span *span, struct peal_net *net, uint32_t rank)
{
    struct peal_control *own = peal_team_own(span->team);
    enum peal_status status = PEAL_OK;
    for (uint32_t i = 0; i < WORDS && status == PEAL_OK; i++) {
        _Atomic uint64_t *word = word_of(own, i);
        if (!(span->dirty[rank] & UINT32_C(1) << i))
            continue;
        uint64_t offset = (uint64_t)span->team->rank * PEAL_CONTROL_BYTES +
                          (uint64_t)((char *)word - (char *)own);
        struct peal_net_signal signal = {.segment = span->peers[rank].mirror,
                                         .change = PEAL_NET_SET,
                                         .offset = offset,
                                         .value = read_word(word)};
        status = peal_net_signal(net, span->peers[rank].at, &signal);
        if (status == PEAL_OK)
            span->dirty[rank] &= ~(UINT32_C(1) << i);
    }
    return status;
}

/* PEAL_PENDING: the net has no room; other errors mean that the rank is gone. */
static enum peal_status send_unsent_to(struct peal_span *span, struct peal_net *net, uint32_t rank)
{
    uint64_t id = span->id;
    uint8_t *unsent = &span->unsent[rank];
    enum peal_status status = send_words(span, net, rank);
    if (status == PEAL_OK && (*unsent & UNSENT_FAILURE))
        status = send_failure(span, net, rank);
    if (status == PEAL_OK)
        *unsent &= (uint8_t)~UNSENT_FAILURE;
    if (status == PEAL_OK && (*unsent & UNSENT_STATUS))
        status = send_status(span, net, rank);
    if (status == PEAL_OK)
        *unsent &= (uint8_t)~UNSENT_STATUS;
    if (status == PEAL_OK && (*unsent & UNSENT_QUESTION))
        status = peal_net_control(net, span->peers[rank].at, ASK, &id, sizeof id);
    return status;
}

/* Sends what is unsent, as far as the net has room. */
static void send_unsent(struct peal_span *span, struct peal_net *net)
{
    for (uint32_t r = 0; r < span->team->size; r++) {
        if (span->dirty[r] == 0 && span->unsent[r] == 0)
            continue;
        if (send_unsent_to(span, net, r) == PEAL_PENDING)
            continue;
        span->dirty[r] = span->unsent[r] = 0;
        span->unsent_ranks--;
    }
}

void peal_endpoint_send_unsent(struct peal_endpoint *endpoint)
{
    for (struct peal_span *span = endpoint->spans; span; span = span->next) {
        if (span->unsent_ranks > 0)
            send_unsent(span, endpoint->net);
    }
}

/* Is something unsent to a rank that has answered within the limit? Silent ranks are not waited
 * for, because the caller is waiting too. */
static bool has_unsent(struct peal_span *span, uint32_t limit_ms)
{
    bool found = false;
    (void)peal_endpoint_lock(span->endpoint);
    for (uint32_t r = 0; r < span->team->size; r++)
        found |= (span->dirty[r] != 0 || span->unsent[r] != 0) &&
                 peal_span_silence(span, r) * 1000 < limit_ms;
    peal_endpoint_unlock(span->endpoint);
    return found;
}

/* Returns when all is sent, or after limit_ms: what is unsent then is for ranks that do not
 * read. */
static void wait_until_sent(struct peal_span *span, uint32_t limit_ms)
{
    uint64_t end = peal_now_ms() + limit_ms;
    while (has_unsent(span, limit_ms) && peal_now_ms() < end) {
        peal_span_progress(span);
        nanosleep(&(struct timespec){0, 50000}, NULL);
    }
}

void peal_span_announce(struct peal_span *span)
{
    enum { LIMIT_MS = 200 };
    mark_for_all(span, 0, UNSENT_FAILURE);
    wait_until_sent(span, LIMIT_MS);
}

/* Number of this rank's non-blocking calls that others can complete: those before the first one
 * that it dropped. In that one they wait for this rank until they learn that it has left. */
static uint64_t count_kept(const struct peal_control *own)
{
    uint64_t dropped = read_word(&own->dropped);
    return dropped != 0 ? dropped - 1 : read_word(&own->finished);
}

/* Has that rank left all calls that this one has made, or is it not to be waited for? */
static bool is_through(struct peal_span *span, uint32_t rank)
{
    const struct peal_control *own = peal_team_own(span->team);
    const struct peal_control *its = span->team->controls[rank];
    uint32_t life = atomic_load_explicit(&its->life, memory_order_acquire);
    if (!span->far[rank] || life == PEAL_LIFE_LEFT || peal_span_is_dead(span, rank, NULL))
        return true;
    uint64_t calls = read_word(&its->calls[0]), mine = read_word(&own->calls[0]);
    bool blocking = calls > mine || (calls == mine && life != PEAL_LIFE_INSIDE);
    return blocking && read_word(&its->finished) >= count_kept(own);
}

void peal_span_linger(struct peal_span *span, uint32_t limit_ms)
{
    enum { ASK_MS = 2 };
    uint64_t end = peal_now_ms() + limit_ms, next = 0;
    for (uint32_t r = 0; r < span->team->size;) {
        uint64_t now = peal_now_ms();
        if (is_through(span, r)) {
            r++;
            continue;
        }
        if (now >= end || !peal_team_is_well(span->team))
            return;
        if (now >= next) {
            peal_span_ask(span);
            next = now + ASK_MS;
        }
        peal_span_progress(span);
        peal_span_sleep(span, ASK_MS * UINT64_C(1000000));
    }
}

/* The caller may end its process next: what is queued would be lost with it. Returns when the connections have taken all, or
 * after limit_ms. */
static void wait_until_taken(struct peal_span *span, uint32_t limit_ms)
{
    uint64_t end = peal_now_ms() + limit_ms;
    bool stuck = true;
    while (stuck && peal_now_ms() < end) {
        struct peal_net *net = peal_endpoint_lock(span->endpoint);
        (void)peal_net_progress(net);
        stuck = peal_net_is_stuck(net);
        peal_endpoint_unlock(span->endpoint);
        if (stuck)
            nanosleep(&(struct timespec){0, 50000}, NULL);
    }
}

void peal_control_leave(struct peal_span *span)
{
    enum { LIMIT_MS = 1000 }; /* behind a slow connection, data goes first */
    struct peal_net *net = peal_endpoint_lock(span->endpoint);
    for (uint32_t r = 0; r < span->team->size; r++) {
        if (span->far[r] && peal_net_health(net, span->peers[r].at, NULL) == PEAL_OK)
            mark(span, r, 0, UNSENT_STATUS);
    }
    send_unsent(span, net);
    peal_endpoint_unlock(span->endpoint);
    wait_until_sent(span, LIMIT_MS);
    if (peal_team_is_well(span->team))
        wait_until_taken(span, LIMIT_MS);
}

void peal_control_keep(const struct peal_span *span)
{
    struct peal_endpoint *endpoint = span->endpoint;
    struct status status;
    describe_own(span, &status);
    struct peal_left *left = &endpoint->left[endpoint->nleft++ % PEAL_TEAMS_KEPT];
    *left = (struct peal_left){.id = span->id,
                               .letters = status.letters,
                               .onesided = status.onesided,
                               .dropped = status.dropped,
                               .ended = status.ended};
    memcpy(left->calls, status.calls, sizeof left->calls);
}

/* A rank of the net asks about a team that this one has left, or has yet to make. If there is no room, it gets no
 * answer, and asks again. */
static void answer_for_left(struct peal_endpoint *endpoint, uint32_t at, uint64_t id)
{
    uint64_t first = endpoint->nleft > PEAL_TEAMS_KEPT ? endpoint->nleft - PEAL_TEAMS_KEPT : 0;
    for (uint64_t i = endpoint->nleft; i-- > first;) {
        const struct peal_left *left = &endpoint->left[i % PEAL_TEAMS_KEPT];
        if (left->id != id)
            continue;
        struct status status = {.id = id,
                                .life = PEAL_LIFE_LEFT,
                                .letters = left->letters,
                                .onesided = left->onesided,
                                .dropped = left->dropped,
                                .ended = left->ended};
        memcpy(status.calls, left->calls, sizeof status.calls);
        name_host(status.host);
        (void)send_last(endpoint->net, at, &status);
        return;
    }
}

/* ---- receiving ---- */

static void write_word(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release); /* as in the block itself */
}

/* A far rank's status goes to its mirror. */
static void mirror_status(struct peal_span *span, uint32_t rank, const struct status *from)
{
    struct peal_control *mirror = span->team->controls[rank];
    for (int s = 0; s < PEAL_STREAMS; s++) {
        for (int i = 0; i < PEAL_CALL_HISTORY; i++) {
            const uint64_t *row = from->history[s * PEAL_CALL_HISTORY + i];
            struct peal_call_record *record = &mirror->history[s][i];
            write_word(&record->seq, 0);
            write_word(&record->code, row[1]);
            write_word(&record->count, row[2]);
            write_word(&record->seq, row[0]);
        }
        write_word(&mirror->calls[s], from->calls[s]);
    }
    for (int i = 0; i < PEAL_LABELS; i++) {
        write_word(&mirror->labels[i].key, 0);
        for (int w = 0; w < PEAL_LABEL_WORDS; w++)
            write_word(&mirror->labels[i].text[w], from->labels[i][1 + w]);
        write_word(&mirror->labels[i].key, from->labels[i][0]);
    }
    uint32_t version = atomic_load_explicit(&mirror->wait_version, memory_order_relaxed);
    atomic_store_explicit(&mirror->wait_version, version + 1, memory_order_release);
    for (int w = 0; w < PEAL_WAIT_WORDS; w++)
        write_word(&mirror->wait_text[w], from->wait[w]);
    atomic_store_explicit(&mirror->wait_is_request, (uint32_t)from->wait_is_request,
                          memory_order_release);
    write_word(&mirror->wait_since, from->waited_ns ? peal_now_ns() - from->waited_ns : 0);
    atomic_store_explicit(&mirror->wait_version, version + 2, memory_order_release);
    memcpy(mirror->host, from->host, sizeof mirror->host);
    mirror->host[sizeof mirror->host - 1] = '\0';
    write_word(&mirror->heard_ns, peal_now_ns());
    write_word(&mirror->letters, from->letters);
    write_word(&mirror->onesided, from->onesided);
    write_word(&mirror->dropped, from->dropped);
    write_word(&mirror->finished, from->ended);
    atomic_store_explicit(&mirror->stream, (uint32_t)from->stream, memory_order_relaxed);
    atomic_store_explicit(&mirror->life, (uint32_t)from->life, memory_order_release);
}

static struct peal_span *find_span(struct peal_endpoint *endpoint, uint64_t id, uint32_t at,
                                   uint32_t *rank)
{
    struct peal_span *span = endpoint->spans;
    while (span && span->id != id)
        span = span->next;
    if (!span)
        return NULL;
    for (uint32_t r = 0; r < span->team->size; r++) {
        if (span->peers[r].at != at)
            continue;
        *rank = r;
        return span;
    }
    return NULL;
}

void peal_control_take(struct peal_endpoint *endpoint, uint32_t at, uint32_t kind,
                       const void *bytes, uint64_t len)
{
    uint64_t id;
    uint32_t rank = 0;
    if (kind >= GATHER) {
        peal_gather_take(endpoint, at, kind, bytes, len);
        return;
    }
    if (len < sizeof id)
        return;
    memcpy(&id, bytes, sizeof id);
    struct peal_span *span = find_span(endpoint, id, at, &rank);
    if (!span && kind == ASK)
        answer_for_left(endpoint, at, id);
    if (!span || !span->far[rank])
        return; /* the team is closed */
    if (kind == ASK) {
        mark(span, rank, 0, UNSENT_STATUS);
    } else if (kind == STATUS && len == sizeof(struct status)) {
        struct status status;
        memcpy(&status, bytes, sizeof status);
        mirror_status(span, rank, &status);
        atomic_store_explicit(&span->asked_ns[rank], 0, memory_order_relaxed);
    } else if (kind == FAILED && len > offsetof(struct failure, report)) {
        struct failure failure = {0};
        memcpy(&failure, bytes, len < sizeof failure ? len : sizeof failure);
        failure.report[sizeof failure.report - 1] = '\0';
        peal_team_take_failure(span->team, failure.word, failure.report);
    }
}
