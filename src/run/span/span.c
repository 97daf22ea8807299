/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints, their segments, and the teams attached to them. See span.h for the terms.
 *
 * Who owns what. An endpoint is freed by its last user: the communicator that opened it, or a team
 * attached to it. A team owns its span; the endpoint lists it only to route messages. All of an
 * endpoint is changed under its lock, which is never held while a thread sleeps.
 *
 * Who serves the net. Every thread that waits, in any team: an endpoint that no thread serves would
 * leave ranks of other hosts waiting, so all endpoints of the process are in one list. Locks are
 * only tried on this path, since a thread that holds one is serving already. After a fork the
 * child's copies of locks and connections are useless, and are dropped without being used. */
#include "run/span/endpoint.h"

#include "plan/plan.h"
#include "run/team/memory/window.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- endpoints ---- */

struct peal_endpoint *peal_endpoint_new(void)
{
    struct peal_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return NULL;
    endpoint->users = 1;
    endpoint->pid = (int32_t)getpid();
    endpoint->wake_fds[0] = endpoint->wake_fds[1] = -1;
    if (pthread_mutex_init(&endpoint->lock, NULL) == 0)
        return endpoint;
    free(endpoint);
    return NULL;
}

/* Combines what a far rank has sent with this rank's memory, as the sender's step says. */
static void accumulate(void *context, uint32_t rank, const struct peal_net_accumulate *request,
                       void *at, const void *from)
{
    const struct peal_compute *compute = peal_compute_best();
    (void)context;
    (void)rank;
    if (request->dtype >= PEAL_DTYPES || request->fn >= PEAL_FN_COUNT || request->element == 0)
        return;
    struct peal_operand dst = {.dtype = (enum peal_dtype)request->dtype, .at = at};
    struct peal_operand sources[2] = {{.dtype = dst.dtype, .at = (void *)(uintptr_t)from}};
    uint64_t count = request->bytes / request->element;
    if (!(request->flags & PEAL_SPAN_EXCLUSIVE)) {
        compute->accumulate((enum peal_fn)request->fn, &dst, sources, count);
        return;
    }
    sources[1] = sources[0];
    sources[0] = dst;
    compute->combine((enum peal_fn)request->fn, &dst, sources, 2, count, 0);
}

static void take_control(void *context, uint32_t rank, uint32_t kind, const void *bytes,
                         uint64_t len)
{
    peal_control_take(context, rank, kind, bytes, len);
}

struct peal_net_events peal_endpoint_events(struct peal_endpoint *endpoint)
{
    /* The last status of a rank comes as a post, behind its data. */
    return (struct peal_net_events){.context = endpoint,
                                    .accumulate = accumulate,
                                    .post = take_control,
                                    .control = take_control};
}

/* ---- the process's list of endpoints ---- */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct peal_endpoint *listed;
static _Atomic int32_t list_pid; /* the process that made the list; 0: none yet */
_Atomic uint32_t peal_endpoints;

/* In a forked child: the parent's endpoints are not its own, and the list's lock may never be
 * released. */
static void forget_parent(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    /* Relaxed: a new child has one thread. */
    int32_t pid = (int32_t)getpid(), was = atomic_load_explicit(&list_pid, memory_order_relaxed);
    if (was != pid && was != 0) {
        list_lock = fresh;
        listed = NULL;
        atomic_store_explicit(&peal_endpoints, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&list_pid, pid, memory_order_relaxed);
}

static void list(struct peal_endpoint *endpoint)
{
    forget_parent();
    pthread_mutex_lock(&list_lock);
    endpoint->next = listed;
    listed = endpoint;
    atomic_fetch_add_explicit(&peal_endpoints, 1, memory_order_relaxed);
    pthread_mutex_unlock(&list_lock);
}

static void unlist(const struct peal_endpoint *endpoint)
{
    pthread_mutex_lock(&list_lock);
    struct peal_endpoint **link = &listed;
    while (*link && *link != endpoint)
        link = &(*link)->next;
    if (*link) {
        *link = endpoint->next;
        atomic_fetch_sub_explicit(&peal_endpoints, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&list_lock);
}

enum peal_status peal_endpoint_use(struct peal_endpoint *endpoint, struct peal_net *net,
                                   const uint32_t *nodes)
{
    endpoint->net = net;
    endpoint->nodes = malloc(net->size * sizeof *nodes);
    if (!endpoint->nodes)
        return PEAL_NO_MEMORY;
    memcpy(endpoint->nodes, nodes, net->size * sizeof *nodes);
    list(endpoint);
    return PEAL_OK;
}

uint32_t peal_endpoint_node(const struct peal_endpoint *endpoint, uint32_t at)
{
    return endpoint->nodes[at];
}

struct peal_net *peal_endpoint_lock(struct peal_endpoint *endpoint)
{
    pthread_mutex_lock(&endpoint->lock);
    return endpoint->net;
}

void peal_endpoint_unlock(struct peal_endpoint *endpoint)
{
    pthread_mutex_unlock(&endpoint->lock);
}

static void hold(struct peal_endpoint *endpoint)
{
    (void)peal_endpoint_lock(endpoint);
    endpoint->users++;
    peal_endpoint_unlock(endpoint);
}

static void free_endpoint(struct peal_endpoint *endpoint)
{
    for (struct peal_gather_note *note = endpoint->notes, *next; note; note = next) {
        next = note->next;
        free(note);
    }
    for (int i = 0; i < 2; i++) {
        if (endpoint->wake_fds[i] >= 0)
            close(endpoint->wake_fds[i]);
    }
    free(endpoint->nodes);
    free(endpoint);
}

void peal_endpoint_drop(struct peal_endpoint *endpoint)
{
    enum { LINGER_MS = 2000 };
    if (!endpoint)
        return;
    if (endpoint->pid != (int32_t)getpid()) { /* a forked child: the lock may never be released */
        if (--endpoint->users == 0) {
            peal_net_abandon(endpoint->net);
            free_endpoint(endpoint);
        }
        return;
    }
    (void)peal_endpoint_lock(endpoint);
    bool last = --endpoint->users == 0;
    peal_endpoint_unlock(endpoint);
    if (!last)
        return;
    unlist(endpoint);
    if (endpoint->serves) {
        /* Relaxed: the byte in the pipe orders it. Partner: serve. */
        atomic_store_explicit(&endpoint->stops, true, memory_order_relaxed);
        while (write(endpoint->wake_fds[1], "", 1) < 0 && errno == EINTR)
            continue;
        pthread_join(endpoint->thread, NULL);
    }
    peal_net_close(endpoint->net, LINGER_MS);
    pthread_mutex_destroy(&endpoint->lock);
    free_endpoint(endpoint);
}

/* ---- progress, and a thread for it ---- */

static void progress_locked(struct peal_endpoint *endpoint)
{
    enum { TURNS = 1024 }; /* between two readings of the clock */
    bool sends = ++endpoint->turns % TURNS == 0;
    (void)peal_net_progress(endpoint->net);
    for (struct peal_span *span = endpoint->spans; span; span = span->next) {
        if (sends && span->mirrors_fd >= 0)
            peal_span_send_status(span);
    }
    peal_endpoint_send_unsent(endpoint);
}

/* Is there anything that further progress has to send? Under the lock. */
static bool has_unsent(struct peal_endpoint *endpoint)
{
    bool unsent = peal_net_is_stuck(endpoint->net);
    /* Relaxed, both: a hint; partner: mark in control.c, under the same lock. */
    if (!atomic_load_explicit(&endpoint->marked, memory_order_relaxed))
        return unsent;
    bool marked = false;
    for (const struct peal_span *span = endpoint->spans; span; span = span->next)
        marked |= span->unsent_ranks > 0;
    atomic_store_explicit(&endpoint->marked, marked, memory_order_relaxed);
    return unsent || marked;
}

/* The descriptor is armed under the lock and polled without it. If another thread takes what
 * arrived in between, the poll may sleep although more has come: the limit bounds that. */
static void *serve(void *context)
{
    enum { LIMIT_MS = 20 };
    struct peal_endpoint *endpoint = context;
    char bytes[64];
    /* Relaxed: see peal_endpoint_drop. */
    while (!atomic_load_explicit(&endpoint->stops, memory_order_relaxed)) {
        struct peal_net *net = peal_endpoint_lock(endpoint);
        if (endpoint->always || endpoint->busy)
            progress_locked(endpoint);
        endpoint->busy = endpoint->busy && has_unsent(endpoint);
        bool serving = endpoint->always || endpoint->busy;
        struct pollfd fds[2] = {{serving ? peal_net_arm(net) : -1, POLLIN, 0},
                                {endpoint->wake_fds[0], POLLIN, 0}};
        peal_endpoint_unlock(endpoint);
        if (serving && fds[0].fd < 0)
            continue; /* there is work */
        int ready = poll(fds, 2, serving ? LIMIT_MS : -1);
        if (ready > 0 && fds[1].revents != 0)
            (void)!read(endpoint->wake_fds[0], bytes, sizeof bytes);
    }
    return NULL;
}

/* Signals are for the program's own threads. */
static enum peal_status start_thread(struct peal_endpoint *endpoint)
{
    sigset_t all, before;
    if (pipe2(endpoint->wake_fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return PEAL_SYSTEM;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    endpoint->serves = pthread_create(&endpoint->thread, NULL, serve, endpoint) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return endpoint->serves ? PEAL_OK : PEAL_SYSTEM;
}

enum peal_status peal_endpoint_serve(struct peal_endpoint *endpoint)
{
    endpoint->always = true;
    return start_thread(endpoint);
}

void peal_span_depart(struct peal_span *span)
{
    struct peal_endpoint *endpoint = span->endpoint;
    /* Relaxed, both: hints that this thread has set, or finds set in its next call. */
    if (!atomic_load_explicit(&endpoint->net->stuck, memory_order_relaxed) &&
        !atomic_load_explicit(&endpoint->marked, memory_order_relaxed))
        return;
    (void)peal_endpoint_lock(endpoint);
    if (!endpoint->always && !endpoint->busy && has_unsent(endpoint)) {
        /* Without a thread it is sent in the next call. */
        if (endpoint->serves || (endpoint->wake_fds[0] < 0 && start_thread(endpoint) == PEAL_OK)) {
            endpoint->busy = true;
            (void)!write(endpoint->wake_fds[1], "",
                         1); /* if the pipe is full, the thread is awake */
        }
    }
    peal_endpoint_unlock(endpoint);
}

/* ---- segments ---- */

uint32_t peal_endpoint_expose(struct peal_endpoint *endpoint, void *base, uint64_t bytes)
{
    for (uint32_t i = 0; i < PEAL_NET_SEGMENTS; i++) {
        if (endpoint->used[i])
            continue;
        uint32_t segment = peal_net_segment(i, ++endpoint->generations[i]);
        if (peal_net_expose(endpoint->net, segment, base, bytes) != PEAL_OK)
            return PEAL_NONE;
        endpoint->used[i] = true;
        return segment;
    }
    return PEAL_NONE;
}

void peal_endpoint_retract(struct peal_endpoint *endpoint, uint32_t segment)
{
    if (segment == PEAL_NONE)
        return;
    peal_net_retract(endpoint->net, segment);
    endpoint->used[segment % PEAL_NET_SEGMENTS] = false;
}

/* ---- teams ---- */

uint32_t peal_span_near(const struct peal_span_options *options, uint32_t size, uint32_t rank,
                        uint32_t *near)
{
    const uint32_t *nodes = options->endpoint->nodes;
    uint32_t count = 0;
    for (uint32_t r = 0; r < size; r++) {
        if (nodes[options->members[r]] == nodes[options->members[rank]])
            near[count++] = r;
    }
    return count;
}

static uint32_t hash_layout(const struct peal_layout *layout)
{
    uint64_t hash = peal_hash_u64(layout->bytes, layout->pools);
    hash = peal_hash_u64(layout->pool_bytes, peal_hash_u64(layout->unit, hash));
    return (uint32_t)(hash ^ hash >> 32);
}

/* In a file that 'peal ps' finds by its name; in private memory if no descriptor is left, or for a
 * team that was made from another. */
static char *map_mirrors(const struct peal_team *team, int *fd)
{
    size_t bytes = (size_t)team->size * PEAL_CONTROL_BYTES;
    bool opened = team->layout.mail != 0;
    char *at = MAP_FAILED;
    *fd = opened ? memfd_create("peal mirrors", MFD_CLOEXEC) : -1;
    if (*fd >= 0 && ftruncate(*fd, (off_t)bytes) == 0)
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (at == MAP_FAILED)
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void free_span(struct peal_span *span, uint32_t size)
{
    if (span->whole)
        peal_window_unmap(span->whole, span->team->layout.bytes);
    if (span->mirrors)
        munmap(span->mirrors, (size_t)size * PEAL_CONTROL_BYTES);
    if (span->mirrors_fd >= 0)
        close(span->mirrors_fd);
    free(span->peers);
    free(span->places);
    free(span->far);
    free(span->dirty);
    free(span->unsent);
    free(span->asked_ns);
    free(span);
}

static struct peal_span *new_span(struct peal_team *team, const struct peal_span_options *options)
{
    uint32_t size = team->size;
    struct peal_span *span = calloc(1, sizeof *span);
    if (!span)
        return NULL;
    *span = (struct peal_span){.endpoint = options->endpoint,
                               .team = team,
                               .window = PEAL_NONE,
                               .mirror = PEAL_NONE,
                               .id = peal_hash_bytes(team->job, strlen(team->job), 1),
                               .peers = calloc(size, sizeof *span->peers),
                               .places = calloc(size, sizeof *span->places),
                               .far = calloc(size, sizeof *span->far),
                               .dirty = calloc(size, sizeof *span->dirty),
                               .unsent = calloc(size, sizeof *span->unsent),
                               .asked_ns = calloc(size, sizeof *span->asked_ns)};
    span->mirrors = map_mirrors(team, &span->mirrors_fd);
    span->whole =
        peal_window_map(team->fds[team->rank], team->starts[team->rank], team->layout.bytes);
    if (span->peers && span->places && span->far && span->dirty && span->unsent && span->asked_ns &&
        span->mirrors && span->whole)
        return span;
    free_span(span, size);
    return NULL;
}

/* Fills in the hosts of the team's ranks, and the mirrors of the far ones. */
static void place_peers(struct peal_span *span, const struct peal_span_options *options)
{
    struct peal_team *team = span->team;
    span->node = peal_endpoint_node(options->endpoint, options->members[team->rank]);
    for (uint32_t r = 0; r < team->size; r++) {
        struct peal_peer *peer = &span->peers[r];
        peer->at = options->members[r];
        peer->node = peal_endpoint_node(options->endpoint, peer->at);
        span->far[r] = peer->node != span->node;
        uint32_t before = 0;
        while (span->peers[before].node != peer->node)
            before++;
        span->places[r] = before < r ? span->places[before] : span->nodes++;
        if (span->far[r])
            team->controls[r] = (struct peal_control *)(span->mirrors + r * PEAL_CONTROL_BYTES);
    }
}

enum peal_status peal_span_attach(struct peal_team *team, const struct peal_span_options *options,
                                  struct peal_span_hello *hello)
{
    struct peal_endpoint *endpoint = options->endpoint;
    struct peal_span *span = new_span(team, options);
    if (!span)
        return PEAL_NO_MEMORY;
    place_peers(span, options);
    hold(endpoint);
    team->span = span;
    (void)peal_endpoint_lock(endpoint);
    span->window = peal_endpoint_expose(endpoint, span->whole, team->layout.bytes);
    span->mirror =
        peal_endpoint_expose(endpoint, span->mirrors, (uint64_t)team->size * PEAL_CONTROL_BYTES);
    span->next = endpoint->spans;
    endpoint->spans = span;
    peal_endpoint_unlock(endpoint);
    *hello = (struct peal_span_hello){.window = span->window,
                                      .mirror = span->mirror,
                                      .pid = (int32_t)getpid(),
                                      .cores = peal_team_own(team)->cores,
                                      .layout = hash_layout(&team->layout)};
    bool exposed = span->window != PEAL_NONE && span->mirror != PEAL_NONE;
    return exposed ? PEAL_OK : PEAL_NO_MEMORY;
}

enum peal_status peal_span_meet(struct peal_team *team, const struct peal_span_hello *all,
                                struct peal_text *why)
{
    struct peal_span *span = team->span;
    uint32_t own = hash_layout(&team->layout);
    for (uint32_t r = 0; r < team->size; r++) {
        if (all[r].layout != own) {
            peal_text_printf(why, "rank %u has a window of another layout (PEAL_WINDOW_POOL?)", r);
            return PEAL_MISMATCH;
        }
        span->peers[r].window = all[r].window;
        span->peers[r].mirror = all[r].mirror;
        if (!span->far[r])
            continue;
        struct peal_control *mirror = team->controls[r];
        mirror->magic = PEAL_CONTROL_MAGIC;
        mirror->version = PEAL_CONTROL_VERSION;
        mirror->rank = r;
        mirror->size = team->size;
        mirror->pid = all[r].pid;
        mirror->cores = all[r].cores;
        memcpy(mirror->job, peal_team_own(team)->job, sizeof mirror->job);
        /* Relaxed: for reports. */
        atomic_store_explicit(&mirror->heard_ns, peal_now_ns(), memory_order_relaxed);
        /* Relaxed: no other rank reads a mirror, and calls begin later. */
        atomic_store_explicit(&mirror->life, PEAL_LIFE_OUTSIDE, memory_order_relaxed);
    }
    return PEAL_OK;
}

void peal_span_retract(struct peal_span *span)
{
    struct peal_endpoint *endpoint = span->endpoint;
    (void)peal_endpoint_lock(endpoint);
    if (!span->retracted) {
        peal_endpoint_retract(endpoint, span->window);
        peal_endpoint_retract(endpoint, span->mirror);
    }
    span->retracted = true;
    peal_endpoint_unlock(endpoint);
}

void peal_span_detach(struct peal_team *team, bool forked)
{
    struct peal_span *span = team->span;
    if (!span)
        return;
    if (!forked) {
        peal_control_leave(span);
        peal_span_retract(span);
        (void)peal_endpoint_lock(span->endpoint);
        peal_control_keep(span);
        struct peal_span **link = &span->endpoint->spans;
        while (*link != span)
            link = &(*link)->next;
        *link = span->next;
        peal_endpoint_unlock(span->endpoint);
    }
    for (uint32_t r = 0; r < team->size; r++) {
        if (span->far[r])
            team->controls[r] = NULL;
    }
    team->span = NULL;
    peal_endpoint_drop(span->endpoint);
    free_span(span, team->size);
}

/* ---- progress ---- */

static void progress(struct peal_endpoint *endpoint)
{
    if (pthread_mutex_trylock(&endpoint->lock) != 0)
        return;
    progress_locked(endpoint);
    peal_endpoint_unlock(endpoint);
}

void peal_endpoints_progress(const struct peal_endpoint *except)
{
    if (pthread_mutex_trylock(&list_lock) != 0)
        return;
    for (struct peal_endpoint *endpoint = listed; endpoint; endpoint = endpoint->next) {
        if (endpoint != except && endpoint->pid == (int32_t)getpid())
            progress(endpoint);
    }
    pthread_mutex_unlock(&list_lock);
}

void peal_endpoints_assist(const struct peal_team *team)
{
    enum { REST = 4 };              /* times as long as the work */
    static _Atomic uint64_t due_ns; /* relaxed: threads that take each other's turn do no harm */
    uint64_t begin = peal_now_ns();
    if (begin < atomic_load_explicit(&due_ns, memory_order_relaxed))
        return;
    peal_team_progress(team);
    uint64_t end = peal_now_ns();
    atomic_store_explicit(&due_ns, end + REST * (end - begin), memory_order_relaxed);
}

void peal_span_progress(struct peal_span *span)
{
    progress(span->endpoint);
}

void peal_span_sleep(struct peal_span *span, uint64_t max_ns)
{
    enum { LIMIT_NS = 1000000 };
    struct peal_net *net = peal_endpoint_lock(span->endpoint);
    struct pollfd fd = {peal_net_arm(net), POLLIN, 0};
    peal_endpoint_unlock(span->endpoint);
    if (fd.fd < 0)
        return;
    struct timespec limit = {0, max_ns < LIMIT_NS ? (long)max_ns : LIMIT_NS};
    (void)ppoll(&fd, 1, &limit, NULL);
}

bool peal_span_is_dead(struct peal_span *span, uint32_t rank, struct peal_text *why)
{
    const char *reason = NULL;
    struct peal_net *net = peal_endpoint_lock(span->endpoint);
    enum peal_status status = peal_net_health(net, span->peers[rank].at, &reason);
    peal_endpoint_unlock(span->endpoint);
    bool alive = status == PEAL_OK || status == PEAL_PENDING;
    if (!alive && why && reason)
        peal_text_puts(why, reason);
    return !alive;
}
