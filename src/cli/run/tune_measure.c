/* SPDX-License-Identifier: Apache-2.0 */
/* Which algorithms compete, at which sizes, and how long each takes. See tune_measure.h.
 *
 * A candidate is given to the communicator as its only rule, and measured if the communicator then
 * says that it uses it: if peers' memory cannot be accessed, some algorithms are not possible. What
 * calls would use without any rule is measured first, and stays unless another is clearly better.
 */
#include "cli/run/tune_measure.h"

#include "cli/run/collective_case.h"
#include "cli/run/ranks.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CALLS = 200, MIN_CALLS = 3, MAX_CANDIDATES = 64 };

/* An algorithm, and the segment size to try it with. */
struct candidate {
    const char *algo;
    uint64_t segment;
};

/* One size of one collective. */
struct tune_job {
    const struct peal_case *collective;
    uint32_t ranks;
    uint32_t hosts; /* number of hosts; 0: one */
    bool symmetric;
    uint64_t bytes; /* of a vector, or of a block */
};

static bool has_blocks(const struct peal_case *collective)
{
    return peal_case_sends_blocks(collective) || peal_case_receives_blocks(collective);
}

/* Does the collective have algorithms that need the memory of peers? */
static bool has_symmetric(const struct peal_case *collective)
{
    struct peal_algorithm algo = {.struct_size = sizeof algo};
    for (size_t i = 0; peal_algorithm_get(i, &algo) == PEAL_OK; i++) {
        if (algo.reaches && strcmp(algo.collective, peal_case_name(collective)) == 0)
            return true;
    }
    return false;
}

bool peal_tuning_has_choice(const char *collective)
{
    struct peal_algorithm algo = {.struct_size = sizeof algo};
    size_t found = 0;
    for (size_t i = 0; peal_algorithm_get(i, &algo) == PEAL_OK; i++)
        found += strcmp(algo.collective, collective) == 0;
    return found > 1 && peal_case_find(collective);
}

/* ---- candidates ---- */

/* With two levels: for ranks on several hosts. */
static bool needs_hosts(const char *algo)
{
    return strcmp(algo, "heads") == 0 || strcmp(algo, "nodes") == 0;
}

/* Every algorithm for one host, or for several, with each segment up to the first that holds the
 * whole call. */
static uint32_t list(const struct tune_job *job, struct candidate out[MAX_CANDIDATES])
{
    struct peal_algorithm algo = {.struct_size = sizeof algo};
    uint32_t n = 0;
    for (size_t i = 0; peal_algorithm_get(i, &algo) == PEAL_OK; i++) {
        if (strcmp(algo.collective, peal_case_name(job->collective)) != 0 ||
            needs_hosts(algo.name) != (job->hosts > 0))
            continue;
        for (const uint64_t *segment = algo.segments; *segment; segment++) {
            if (n < MAX_CANDIDATES)
                out[n++] = (struct candidate){algo.name, *segment};
            if (job->bytes <= *segment)
                break;
        }
    }
    return n;
}

/* Would the two do the same? */
static bool is_same(const struct tune_job *job, const struct candidate *a,
                    const struct candidate *b)
{
    if (strcmp(a->algo, b->algo) != 0)
        return false;
    return a->segment == b->segment || job->bytes <= a->segment;
}

/* ---- sizes ---- */

/* Calls `each` for every size of every collective that is wanted. */
static enum peal_status walk(const struct peal_tuning *tuning, uint32_t ranks,
                             enum peal_status (*each)(void *context, const struct tune_job *job,
                                                      uint64_t up_to),
                             void *context)
{
    size_t count;
    const struct peal_case *subjects = peal_cases(&count);
    enum peal_status status = PEAL_OK;
    /* A rule holds up to the geometric mean of two sizes; past the largest size the built-in table
     * holds. */
    uint64_t middle = 1;
    while ((middle + 1) * (middle + 1) <= tuning->factor)
        middle++;
    for (size_t i = 0; i < count; i++) {
        const struct peal_case *s = &subjects[i];
        bool wanted = !tuning->collective || strcmp(tuning->collective, peal_case_name(s)) == 0;
        if (!wanted || !peal_tuning_has_choice(peal_case_name(s)))
            continue;
        uint64_t parts = 1;
        if (has_blocks(s))
            parts = ranks;
        bool barrier = s->contract == PEAL_CONTRACT_BARRIER;
        bool both = has_symmetric(s) && tuning->hosts == 0;
        for (int symmetric = 0; symmetric <= both; symmetric++) {
            uint64_t before = UINT64_MAX; /* a block has at least one element: sizes may repeat */
            for (uint64_t size = tuning->begin; size <= tuning->end; size *= tuning->factor) {
                bool last = barrier || size > tuning->end / tuning->factor;
                uint64_t bytes = (size / parts + 3) / 4 * 4;
                struct tune_job job = {s, ranks, tuning->hosts, symmetric != 0, bytes};
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

/* Roughly how long a size takes compared with others. */
static uint64_t weigh(const struct peal_tuning *tuning, const struct tune_job *job)
{
    uint64_t bytes = job->bytes * (has_blocks(job->collective) ? job->ranks : 1);
    return tuning->budget_ns + MIN_CALLS * bytes * job->ranks;
}

struct counting {
    const struct peal_tuning *tuning;
    struct peal_progress *progress;
};

static enum peal_status count_one(void *context, const struct tune_job *job, uint64_t up_to)
{
    struct counting *counting = context;
    struct candidate candidates[MAX_CANDIDATES];
    (void)up_to;
    uint32_t n = list(job, candidates);
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

static enum peal_status time_once(const struct measuring *m, const struct tune_job *job,
                                  double *out)
{
    char *send = job->symmetric ? m->sym_send : m->send;
    char *recv = job->symmetric ? m->sym_recv : m->recv;
    enum peal_status status = peal_barrier(m->comm);
    uint64_t start = peal_now_ns();
    if (status == PEAL_OK)
        status = job->collective->call(m->comm, send, recv, job->bytes / 4, PEAL_F32, PEAL_SUM, 0);
    *out = (double)(peal_now_ns() - start);
    return status;
}

/* Median time of a call of the slowest rank, the same on all ranks. */
static enum peal_status measure(const struct measuring *m, const struct tune_job *job, double *out)
{
    double times[MAX_CALLS], first = 0, slowest = 0;
    enum peal_status status = time_once(m, job, &first); /* makes plans */
    if (status == PEAL_OK)
        status = time_once(m, job, &first);
    if (status == PEAL_OK)
        status = peal_allreduce(m->comm, &first, &slowest, 1, PEAL_F64, PEAL_MAX);
    double fits = (double)m->tuning->budget_ns / (slowest + 1);
    int n = MAX_CALLS;
    if (fits < MAX_CALLS)
        n = (int)fits;
    if (n < MIN_CALLS)
        n = MIN_CALLS;
    for (int i = 0; i < n && status == PEAL_OK; i++)
        status = time_once(m, job, &times[i]);
    if (status == PEAL_OK)
        status = peal_ranks_median(m->comm, times, (uint64_t)n, out);
    return status;
}

static const char *memory_of(const struct tune_job *job)
{
    if (job->hosts > 0)
        return "hosts";
    return job->symmetric ? "symmetric" : "private";
}

static void report(const struct measuring *m, const struct tune_job *job,
                   const struct peal_tuned *best, double time_ns)
{
    struct peal_text line = {0};
    char size[24], segment[24];
    peal_text_printf(&line, "%-14s %-9s %3u ranks %6s: %-13s in %5s %10.2f us\n", best->collective,
                     memory_of(job), job->ranks, peal_size_format(job->bytes, size), best->algo,
                     peal_size_format(best->segment, segment), time_ns / 1e3);
    peal_progress_print(m->tuning->progress, &line);
    peal_text_release(&line);
}

/* The best so far of a job. */
struct contest {
    struct peal_tuned best;
    bool best_is_usual;
    double time;
};

/* Measures one, if the memory allows it, and keeps it if it is the best. */
static enum peal_status try(const struct measuring *m, const struct tune_job *job,
                            const struct candidate *candidate, bool is_usual, struct contest *c)
{
    struct peal_tuned rule = {.struct_size = sizeof rule,
                              .ranks = job->ranks,
                              .symmetric = job->symmetric,
                              .hosts = job->hosts,
                              .collective = peal_case_name(job->collective),
                              .algo = candidate->algo,
                              .bytes = UINT64_MAX,
                              .segment = candidate->segment};
    struct peal_chosen chosen = {.struct_size = sizeof chosen};
    double time;
    enum peal_status status = peal_comm_set_tuning(m->comm, &rule, 1);
    if (status == PEAL_OK)
        status = peal_comm_chosen(m->comm, rule.collective, job->bytes,
                                  job->symmetric ? PEAL_CHOOSE_SYMMETRIC : 0, &chosen);
    if (status != PEAL_OK || !chosen.measured)
        return status;
    status = measure(m, job, &time);
    if (status != PEAL_OK)
        return status;
    double limit = c->best_is_usual ? 0.97 * c->time : c->time;
    if (!c->best.algo || time < limit)
        *c = (struct contest){rule, is_usual, time};
    return PEAL_OK;
}

/* What a call uses without any rule. */
static enum peal_status find_usual(const struct measuring *m, const struct tune_job *job,
                                   struct candidate *out)
{
    struct peal_chosen chosen = {.struct_size = sizeof chosen};
    enum peal_status status = peal_comm_set_tuning(m->comm, NULL, 0);
    if (status == PEAL_OK)
        status = peal_comm_chosen(m->comm, peal_case_name(job->collective), job->bytes,
                                  job->symmetric ? PEAL_CHOOSE_SYMMETRIC : 0, &chosen);
    /* A rule needs a segment; that of the barrier has no meaning. */
    *out = (struct candidate){chosen.algo, chosen.segment ? chosen.segment : 64 << 10};
    return status;
}

static enum peal_status tune_one(void *context, const struct tune_job *job, uint64_t up_to)
{
    const struct measuring *m = context;
    struct candidate usual, candidates[MAX_CANDIDATES];
    struct contest contest = {0};
    bool first = peal_comm_rank(m->comm) == 0;
    uint32_t n = list(job, candidates);
    enum peal_status status = find_usual(m, job, &usual);
    if (status == PEAL_OK)
        status = try(m, job, &usual, true, &contest);
    for (uint32_t i = 0; i < n; i++) {
        if (status != PEAL_OK)
            return status;
        if (!is_same(job, &candidates[i], &usual))
            status = try(m, job, &candidates[i], false, &contest);
        if (first)
            peal_progress_step(m->tuning->progress, weigh(m->tuning, job));
    }
    if (status == PEAL_OK)
        status = peal_comm_set_tuning(m->comm, NULL, 0);
    /* All ranks find the same; those of other hosts do not share this memory. */
    if (status != PEAL_OK || (!first && job->hosts == 0))
        return status;
    contest.best.bytes = up_to;
    if (m->tuning->count < PEAL_TUNING_RULES)
        m->tuning->rules[m->tuning->count++] = contest.best;
    if (first)
        report(m, job, &contest.best, contest.time);
    return PEAL_OK;
}

/* For each buffer. */
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
    uint64_t bytes = buffer_bytes(m.tuning, peal_comm_size(comm));
    m.send = calloc(1, bytes);
    m.recv = calloc(1, bytes);
    enum peal_status status = PEAL_NO_MEMORY;
    if (m.send && m.recv)
        status = PEAL_OK;
    if (status == PEAL_OK)
        status = peal_symmetric_alloc(comm, bytes, (void **)&m.sym_send);
    if (status == PEAL_OK)
        status = peal_symmetric_alloc(comm, bytes, (void **)&m.sym_recv);
    if (status == PEAL_OK)
        status = walk(m.tuning, peal_comm_size(comm), tune_one, &m);
    if (status != PEAL_OK)
        peal_ranks_fail("tune", comm, status);
    free(m.send);
    free(m.recv);
    if (status == PEAL_OK)
        return PEAL_EXIT_OK;
    return PEAL_EXIT_OTHER;
}
