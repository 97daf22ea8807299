/* SPDX-License-Identifier: Apache-2.0 */
/* Which algorithms compete, at which sizes, and how long each takes. See tune_measure.h. */
#include "cli/run/tune_measure.h"

#include "comm/comm.h"
#include "cli/run/collective_case.h"
#include "base/base.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CALLS = 200, LEAST_CALLS = 3, MOST_CANDIDATES = 64 };

/* An algorithm with the segment to try it with. */
struct candidate {
    const struct peal_algo *algo;
    uint64_t segment;
};

/* One size of one collective. */
struct job {
    const struct peal_case *subject;
    uint32_t ranks;
    bool symmetric;
    uint64_t bytes; /* of a vector, or of a block */
};

static bool has_blocks(const struct peal_case *subject)
{
    return subject->send_blocks || subject->recv_blocks;
}

static bool has_symmetric(uint32_t collective)
{
    size_t count;
    const struct peal_algo *algos = peal_algos(&count);
    for (size_t i = 0; i < count; i++) {
        if (algos[i].collective == collective && algos[i].memory != PEAL_PEERS_STAGE)
            return true;
    }
    return false;
}

bool peal_tuning_has_choice(const char *collective)
{
    const struct peal_case *subject = peal_case_find(collective);
    size_t count, found = 0;
    const struct peal_algo *algos = peal_algos(&count);
    for (size_t i = 0; subject && i < count; i++)
        found += algos[i].collective == subject->collective;
    return found > 1;
}

/* ---- candidates ---- */

/* Segments that may make a difference; 0 ends them. */
static const uint64_t *segments_of(const struct peal_algo *algo)
{
    static const uint64_t none[] = {64 << 10, 0}, flat[] = {64 << 10, 256 << 10, 0},
                          rows[] = {256 << 10, 1 << 20, 0}, blocks[] = {64 << 10, 128 << 10, 0};
    switch ((enum peal_shape)algo->shape) {
    case PEAL_SHAPE_FLAT:
        return flat;
    case PEAL_SHAPE_ROWS:
        return rows;
    case PEAL_SHAPE_BLOCKS:
        return blocks;
    default:
        return none;
    }
}

/* The built-in choice first, then every algorithm; segments only where the size exceeds them. Some
 * may turn out not to be possible, where peers' memory cannot be read. */
static uint32_t list(const struct job *job, uint32_t cores, struct candidate out[MOST_CANDIDATES])
{
    size_t count;
    uint32_t n = 0;
    const struct peal_algo *algos = peal_algos(&count);
    struct peal_wish wish = {.collective = job->subject->collective,
                             .ranks = job->ranks,
                             .cores = cores,
                             .bytes = job->bytes,
                             .symmetric = job->symmetric,
                             .reads = true};
    struct peal_choice usual = peal_choose(NULL, NULL, &wish);
    /* A rule wants a segment; the barrier's has no meaning. */
    out[n++] = (struct candidate){usual.algo, usual.segment ? usual.segment : 64 << 10};
    for (size_t i = 0; i < count; i++) {
        if (algos[i].collective != job->subject->collective)
            continue;
        for (const uint64_t *segment = segments_of(&algos[i]); *segment; segment++) {
            bool last = segment[1] == 0 || job->bytes <= *segment;
            bool usual_one = algos[i].name == usual.algo->name &&
                             (*segment == out[0].segment || job->bytes <= *segment);
            if (!usual_one && n < MOST_CANDIDATES)
                out[n++] = (struct candidate){&algos[i], *segment};
            if (last)
                break;
        }
    }
    return n;
}

/* ---- sizes ---- */

/* Calls `each` for every size of every collective that is wanted. */
static enum peal_status
walk(const struct peal_tuning *tuning, uint32_t ranks,
     enum peal_status (*each)(void *context, const struct job *job, uint64_t up_to), void *context)
{
    size_t count;
    const struct peal_case *subjects = peal_cases(&count);
    enum peal_status status = PEAL_OK;
    uint64_t middle = 1; /* A rule holds up to the middle between two sizes, as factors go, and past
                          * the largest size the built-in table does. */
    while ((middle + 1) * (middle + 1) <= tuning->factor)
        middle++;
    for (size_t i = 0; i < count; i++) {
        const struct peal_case *s = &subjects[i];
        if (!peal_tuning_has_choice(s->name) ||
            (tuning->collective && strcmp(tuning->collective, s->name) != 0))
            continue;
        uint64_t parts = has_blocks(s) ? ranks : 1;
        bool barrier = s->collective == PEAL_CALL_BARRIER;
        for (int symmetric = 0; symmetric <= has_symmetric(s->collective); symmetric++) {
            uint64_t before = UINT64_MAX; /* a block has an element at least: sizes may repeat */
            for (uint64_t size = tuning->begin; size <= tuning->end; size *= tuning->factor) {
                bool last = barrier || size > tuning->end / tuning->factor;
                uint64_t bytes = (size / parts + 3) / 4 * 4;
                struct job job = {s, ranks, symmetric != 0, bytes};
                if (bytes != before)
                    status = each(context, &job, barrier ? UINT64_MAX : bytes * middle);
                before = bytes;
                if (status != PEAL_OK || last)
                    break;
            }
            if (status != PEAL_OK)
                return status;
        }
    }
    return status;
}

/* Roughly how long a size takes against others. */
static uint64_t weigh(const struct peal_tuning *tuning, const struct job *job)
{
    uint64_t bytes = job->bytes * (has_blocks(job->subject) ? job->ranks : 1);
    return tuning->budget_ns + LEAST_CALLS * bytes * job->ranks;
}

struct counting {
    const struct peal_tuning *tuning;
    struct peal_progress *progress;
};

static enum peal_status count_one(void *context, const struct job *job, uint64_t up_to)
{
    struct counting *counting = context;
    struct candidate candidates[MOST_CANDIDATES];
    struct peal_policy policy;
    (void)up_to;
    peal_policy_choose(job->ranks, peal_cores(), &policy);
    uint32_t n = list(job, policy.cores, candidates);
    counting->progress->total += n;
    counting->progress->weight += n * weigh(counting->tuning, job);
    return PEAL_OK;
}

void peal_tuning_count(const struct peal_tuning *tuning, uint32_t ranks,
                       struct peal_progress *progress)
{
    struct counting counting = {tuning, progress};
    (void)walk(tuning, ranks, count_one, &counting);
}

/* ---- measuring ---- */

struct measuring {
    struct peal_tuning *tuning;
    struct peal_comm *comm;
    char *send, *recv;         /* private */
    char *sym_send, *sym_recv; /* symmetric */
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static enum peal_status time_once(const struct measuring *m, const struct job *job, double *out)
{
    char *send = job->symmetric ? m->sym_send : m->send;
    char *recv = job->symmetric ? m->sym_recv : m->recv;
    enum peal_status status = peal_barrier(m->comm);
    uint64_t start = peal_now_ns();
    if (status == PEAL_OK)
        status = job->subject->call(m->comm, send, recv, job->bytes / 4, PEAL_F32, PEAL_SUM, 0);
    *out = (double)(peal_now_ns() - start);
    return status;
}

/* Median time of a call of the slowest rank, the same on all ranks. */
static enum peal_status measure(const struct measuring *m, const struct job *job, double *out)
{
    double times[MOST_CALLS], slowest[MOST_CALLS], first = 0, most = 0;
    enum peal_status status = time_once(m, job, &first); /* makes plans */
    if (status == PEAL_OK)
        status = time_once(m, job, &first);
    if (status == PEAL_OK)
        status = peal_allreduce(m->comm, &first, &most, 1, PEAL_F64, PEAL_MAX);
    double fits = (double)m->tuning->budget_ns / (most + 1);
    int n = fits < LEAST_CALLS ? LEAST_CALLS : fits > MOST_CALLS ? MOST_CALLS : (int)fits;
    for (int i = 0; i < n && status == PEAL_OK; i++)
        status = time_once(m, job, &times[i]);
    if (status == PEAL_OK)
        status = peal_allreduce(m->comm, times, slowest, (uint64_t)n, PEAL_F64, PEAL_MAX);
    if (status != PEAL_OK)
        return status;
    qsort(slowest, (size_t)n, sizeof *slowest, compare_doubles);
    *out = slowest[n / 2];
    return PEAL_OK;
}

/* As if the table had this one rule. */
static enum peal_status take(struct peal_comm *comm, const struct job *job,
                             const struct candidate *candidate, struct peal_rule *rule)
{
    *rule = (struct peal_rule){.collective = (uint8_t)job->subject->collective,
                               .symmetric = job->symmetric,
                               .least_ranks = (uint16_t)job->ranks,
                               .most_ranks = (uint16_t)job->ranks,
                               .bytes = UINT64_MAX,
                               .algo = candidate->algo,
                               .segment = candidate->segment};
    return peal_comm_use_rule(comm, rule);
}

static void report(const struct measuring *m, const struct job *job, const struct peal_rule *best,
                   double time_ns)
{
    struct peal_text line = {0};
    char size[24], segment[24];
    peal_text_printf(&line, "%-14s %-9s %3u ranks %6s: %-13s in %5s %10.2f us\n",
                     job->subject->name, job->symmetric ? "symmetric" : "private", job->ranks,
                     peal_size_format(job->bytes, size), best->algo->name,
                     peal_size_format(best->segment, segment), time_ns / 1e3);
    peal_progress_print(m->tuning->progress, &line);
    peal_text_release(&line);
}

static enum peal_status tune_one(void *context, const struct job *job, uint64_t up_to)
{
    const struct measuring *m = context;
    struct candidate candidates[MOST_CANDIDATES];
    struct peal_rule rule, best = {0};
    bool first = peal_comm_rank(m->comm) == 0;
    double time = 0, best_time = 0;
    struct peal_wish wish;
    peal_comm_wish(m->comm, &wish);
    wish.symmetric = job->symmetric;
    uint32_t n = list(job, wish.cores, candidates);
    const struct peal_algo *usual = candidates[0].algo;
    enum peal_status status = PEAL_OK;
    for (uint32_t i = 0; i < n && status == PEAL_OK; i++) {
        const struct peal_algo *algo = candidates[i].algo;
        bool possible = peal_algo_is_allowed(algo, &wish);
        if (possible)
            status = take(m->comm, job, &candidates[i], &rule);
        if (possible && status == PEAL_OK)
            status = measure(m, job, &time);
        /* The usual one is the first, and stays unless another is clearly better. */
        if (possible && (!best.algo || time < (best.algo == usual ? 0.97 : 1) * best_time)) {
            best = rule;
            best_time = time;
        }
        if (first)
            peal_progress_step(m->tuning->progress, weigh(m->tuning, job));
    }
    if (status == PEAL_OK)
        status = peal_comm_use_rule(m->comm, NULL);
    if (status != PEAL_OK || !first)
        return status;
    best.bytes = up_to;
    if (m->tuning->count < PEAL_TUNING_RULES)
        m->tuning->rules[m->tuning->count++] = best;
    report(m, job, &best, best_time);
    return PEAL_OK;
}

/* Of each buffer. */
static uint64_t buffer_bytes(const struct peal_tuning *tuning, uint32_t ranks)
{
    return tuning->end + 64 * (uint64_t)ranks;
}

uint64_t peal_tuning_need(const struct peal_tuning *tuning, uint32_t ranks)
{
    return 4 * ranks * buffer_bytes(tuning, ranks);
}

int peal_tuning_measure(struct peal_comm *comm, void *context)
{
    struct measuring m = {.tuning = context, .comm = comm};
    uint64_t room = buffer_bytes(m.tuning, peal_comm_size(comm));
    m.send = calloc(1, room);
    m.recv = calloc(1, room);
    enum peal_status status = m.send && m.recv ? PEAL_OK : PEAL_NO_MEMORY;
    if (status == PEAL_OK)
        status = peal_symmetric_alloc(comm, room, (void **)&m.sym_send);
    if (status == PEAL_OK)
        status = peal_symmetric_alloc(comm, room, (void **)&m.sym_recv);
    if (status == PEAL_OK)
        status = walk(m.tuning, peal_comm_size(comm), tune_one, &m);
    if (status != PEAL_OK)
        peal_ranks_fail("tune", comm, status);
    free(m.send);
    free(m.recv);
    return status == PEAL_OK ? PEAL_EXIT_OK : PEAL_EXIT_OTHER;
}
