/* SPDX-License-Identifier: Apache-2.0 */
/* The member for ranks that are threads of one process: load and store, and a queue for what the owner
 * itself has to do.
 *
 * Puts, gets and atomics take effect at once, in the caller's thread: they are checked against the
 * owner's segments under the owner's lock, which also keeps retract from passing them. Accumulates,
 * posts and control messages go into a ring of frames of the owner, which its progress empties. For the
 * order between the two, anything else waits for the ring as long as frames of this rank are in it.
 */
#include "run/net/inbound.h"
#include "run/net/members.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { RING = 512 << 10 };

/* Frames from one rank to another: written by the one, read by the other, under the owner's lock. */
struct lane {
    uint64_t bytes; /* in use */
    uint8_t *at;    /* RING bytes, made at the first use */
};

/* What others see of a rank; the last rank to close frees all boards. */
struct board {
    pthread_mutex_t lock;
    struct peal_net_segments segments;
    struct lane *lanes; /* from each rank */
    uint64_t *refused;  /* accesses of each rank */
    int event;          /* for arm */
    uint32_t state;     /* 0: open, 1: closed */
};

struct net_memory {
    struct peal_net net;
    struct board *own;
    struct board **boards;
    _Atomic uint32_t *users; /* of all boards; rank 0 makes it */
    bool *told;              /* which ranks' leaving was reported */
    struct peal_net_inbound
        in; /* of whole frames, and for accumulates: their effects are the same everywhere */
};

static struct net_memory *of(struct peal_net *net)
{
    return (struct net_memory *)(void *)net;
}

static void wake(struct board *board)
{
    uint64_t one = 1;
    (void)!write(board->event, &one, sizeof one);
}

/* ---- accesses ---- */

/* Locks the board of a rank; otherwise returns why not. */
static enum peal_status enter(struct net_memory *memory, uint32_t rank, struct board **out)
{
    if (rank >= memory->net.size || rank == memory->net.rank)
        return PEAL_INVALID;
    struct board *board = memory->boards[rank];
    pthread_mutex_lock(&board->lock);
    if (board->state != 0) {
        pthread_mutex_unlock(&board->lock);
        return PEAL_CLOSED;
    }
    *out = board;
    return PEAL_OK;
}

static bool is_behind(const struct net_memory *memory, const struct board *board)
{
    return board->lanes[memory->net.rank].bytes > 0;
}

/* Adds a frame; the board is locked. */
static enum peal_status add_frame(struct net_memory *memory, struct board *board,
                                  const struct peal_net_head *head,
                                  const struct peal_net_part *parts, uint32_t nparts)
{
    struct lane *lane = &board->lanes[memory->net.rank];
    if (!lane->at)
        lane->at = malloc(RING);
    if (!lane->at)
        return PEAL_NO_MEMORY;
    if (RING - lane->bytes < sizeof *head + head->bytes)
        return PEAL_PENDING;
    memcpy(lane->at + lane->bytes, head, sizeof *head);
    lane->bytes += sizeof *head;
    for (uint32_t i = 0; i < nparts; i++) {
        memcpy(lane->at + lane->bytes, parts[i].at, parts[i].bytes);
        lane->bytes += parts[i].bytes;
    }
    wake(board);
    return PEAL_OK;
}

static void set_word(uint8_t *at, const struct peal_net_signal *signal)
{
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)at;
    /* Release, after the data; partner: the acquire load of whoever waits for the word. */
    if (signal->change == PEAL_NET_SET)
        atomic_store_explicit(word, signal->value, memory_order_release);
    else
        atomic_fetch_add_explicit(word, signal->value, memory_order_seq_cst);
}

/* PEAL_OK, and where; PEAL_INVALID: refused, and counted. */
static enum peal_status find(struct net_memory *memory, struct board *board, uint32_t segment,
                             uint64_t offset, uint64_t bytes, uint8_t **out)
{
    enum peal_net_found found =
        peal_net_segments_find(&board->segments, segment, offset, bytes, out);
    if (found == PEAL_NET_FOUND)
        return PEAL_OK;
    board->refused[memory->net.rank]++;
    return PEAL_INVALID;
}

static void copy_parts(uint8_t *to, const struct peal_net_put *put)
{
    for (uint32_t i = 0; i < put->nparts; i++) {
        memcpy(to, put->parts[i].at, put->parts[i].bytes);
        to += put->parts[i].bytes;
    }
}

static enum peal_status memory_put(struct peal_net *net, const struct peal_net_put *put,
                                   struct peal_net_token *token)
{
    struct net_memory *memory = of(net);
    struct board *board;
    uint8_t *to = NULL, *word = NULL;
    uint64_t bytes = 0;
    enum peal_status status = enter(memory, put->rank, &board);
    if (status != PEAL_OK)
        return status;
    if (put->nparts <= PEAL_NET_PARTS)
        bytes = peal_net_parts_bytes(put->parts, put->nparts);
    bool bad = put->nparts > PEAL_NET_PARTS || (bytes > PEAL_NET_EAGER && !token) ||
               (put->signal.change != PEAL_NET_NO_SIGNAL && put->signal.offset % 8 != 0);
    if (bad)
        status = PEAL_INVALID;
    else if (is_behind(memory, board))
        status = PEAL_PENDING;
    if (status != PEAL_OK)
        goto leave;
    bool found =
        bytes == 0 || find(memory, board, put->segment, put->offset, bytes, &to) == PEAL_OK;
    if (found && put->signal.change != PEAL_NET_NO_SIGNAL)
        found = find(memory, board, put->signal.segment, put->signal.offset, 8, &word) == PEAL_OK;
    if (found && bytes > 0)
        copy_parts(to, put);
    if (found && word)
        set_word(word, &put->signal);
    if (found && word)
        wake(board);
leave:
    pthread_mutex_unlock(&board->lock);
    return status;
}

static enum peal_status memory_get(struct peal_net *net, const struct peal_net_get *get,
                                   struct peal_net_token *token)
{
    struct net_memory *memory = of(net);
    struct board *board;
    uint8_t *from = NULL;
    enum peal_status status = token ? enter(memory, get->rank, &board) : PEAL_INVALID;
    if (status != PEAL_OK)
        return status;
    if (is_behind(memory, board)) {
        status = PEAL_PENDING;
    } else {
        enum peal_status end = find(memory, board, get->segment, get->offset, get->bytes, &from);
        if (end == PEAL_OK)
            memcpy(get->to, from, get->bytes);
        peal_net_token_begin(token);
        peal_net_token_end(token, end);
    }
    pthread_mutex_unlock(&board->lock);
    return status;
}

static enum peal_status memory_atomic(struct peal_net *net, const struct peal_net_atomic *atomic,
                                      struct peal_net_token *token)
{
    struct net_memory *memory = of(net);
    struct board *board;
    uint8_t *at = NULL;
    if (!peal_net_atomic_is_valid(atomic, token))
        return PEAL_INVALID;
    enum peal_status status = enter(memory, atomic->rank, &board);
    if (status != PEAL_OK)
        return status;
    if (is_behind(memory, board)) {
        status = PEAL_PENDING;
    } else {
        enum peal_status end =
            find(memory, board, atomic->segment, atomic->offset, atomic->width, &at);
        if (end == PEAL_OK)
            *atomic->old = peal_net_word_change(at, atomic->width, atomic->kind, atomic->operand,
                                                atomic->compare);
        peal_net_token_begin(token);
        peal_net_token_end(token, end);
        wake(board);
    }
    pthread_mutex_unlock(&board->lock);
    return status;
}

/* ---- frames ---- */

static enum peal_status send(struct net_memory *memory, uint32_t rank, struct peal_net_head *head,
                             const struct peal_net_part *parts, uint32_t nparts)
{
    struct board *board;
    enum peal_status status = enter(memory, rank, &board);
    if (status != PEAL_OK)
        return status;
    status = add_frame(memory, board, head, parts, nparts);
    pthread_mutex_unlock(&board->lock);
    return status;
}

static enum peal_status memory_accumulate(struct peal_net *net,
                                          const struct peal_net_accumulate *accumulate,
                                          struct peal_net_token *token)
{
    struct peal_net_head whole = peal_net_head_accumulate(accumulate);
    bool keeps =
        accumulate->bytes > PEAL_NET_EAGER; /* the caller's memory, until the token says so */
    if (!peal_net_accumulate_is_valid(accumulate) || (keeps && !token))
        return PEAL_INVALID;
    /* All frames or none: a second try would repeat what was taken. */
    uint64_t longest = peal_net_delivery_max(accumulate->element);
    uint64_t frames = (accumulate->bytes + longest - 1) / longest;
    struct board *board;
    enum peal_status status = enter(of(net), accumulate->rank, &board);
    if (status != PEAL_OK)
        return status;
    uint64_t room = RING - board->lanes[net->rank].bytes;
    uint64_t need = accumulate->bytes + (frames + 1) * sizeof whole;
    if (need > RING)
        status = PEAL_UNSUPPORTED;
    else if (room < need)
        status = PEAL_PENDING;
    if (status != PEAL_OK)
        goto unlock;
    for (uint64_t done = 0; done <= accumulate->bytes;) {
        uint64_t part = peal_size_min(accumulate->bytes - done, longest);
        bool last = done + part == accumulate->bytes;
        struct peal_net_head head = whole;
        head.bytes = (uint32_t)part;
        head.offset = accumulate->offset + done;
        if (!last) /* the signal comes with the last frame */
            head.change = PEAL_NET_NO_SIGNAL;
        const struct peal_net_part piece = {(const uint8_t *)accumulate->from + done, part};
        status = add_frame(of(net), board, &head, &piece, 1);
        done += part;
        if (last || status != PEAL_OK)
            break;
    }
unlock:
    pthread_mutex_unlock(&board->lock);
    return status;
}

static enum peal_status memory_post(struct peal_net *net, uint32_t rank, uint32_t kind,
                                    const struct peal_net_part *parts, uint32_t nparts)
{
    struct peal_net_head head = {.kind = PEAL_NET_POST, .flags = kind};
    if (nparts > PEAL_NET_PARTS || peal_net_parts_bytes(parts, nparts) > PEAL_NET_POST_MAX)
        return PEAL_INVALID;
    head.bytes = (uint32_t)peal_net_parts_bytes(parts, nparts);
    return send(of(net), rank, &head, parts, nparts);
}

static enum peal_status memory_control(struct peal_net *net, uint32_t rank, uint32_t kind,
                                       const void *bytes, uint64_t len)
{
    struct peal_net_head head = {.kind = PEAL_NET_CONTROL, .flags = kind, .bytes = (uint32_t)len};
    const struct peal_net_part part = {bytes, len};
    if (len > PEAL_NET_CONTROL_MAX)
        return PEAL_INVALID;
    return send(of(net), rank, &head, &part, 1);
}

static enum peal_status memory_ticket(struct peal_net *net, uint32_t rank, uint64_t *out)
{
    struct board *board;
    enum peal_status status = enter(of(net), rank, &board);
    if (status != PEAL_OK)
        return status;
    pthread_mutex_unlock(&board->lock);
    *out = 0;
    return PEAL_OK;
}

/* Only frames take effect later, and the owner's progress takes all of them. */
static bool memory_flushed(struct peal_net *net, uint32_t rank, uint64_t ticket)
{
    struct board *board = of(net)->boards[rank];
    (void)ticket;
    pthread_mutex_lock(&board->lock);
    bool behind = is_behind(of(net), board);
    pthread_mutex_unlock(&board->lock);
    return !behind;
}

static uint64_t memory_refused(const struct peal_net *net, uint32_t rank)
{
    const struct net_memory *memory = (const struct net_memory *)(const void *)net;
    struct board *board = memory->boards[rank];
    pthread_mutex_lock(&board->lock);
    uint64_t refused = board->refused[net->rank];
    pthread_mutex_unlock(&board->lock);
    return refused;
}

/* ---- the owner's side ---- */

static enum peal_status memory_expose(struct peal_net *net, uint32_t segment, void *base,
                                      uint64_t bytes)
{
    struct board *own = of(net)->own;
    pthread_mutex_lock(&own->lock);
    enum peal_status status = peal_net_segments_set(&own->segments, segment, base, bytes);
    pthread_mutex_unlock(&own->lock);
    return status;
}

static void memory_retract(struct peal_net *net, uint32_t segment)
{
    struct board *own = of(net)->own;
    pthread_mutex_lock(&own->lock);
    (void)peal_net_segments_clear(&own->segments, segment);
    pthread_mutex_unlock(&own->lock);
}

static uint32_t memory_key(struct peal_net *net, uint32_t segment, uint8_t out[static PEAL_NET_KEY])
{
    (void)net, (void)segment, (void)out;
    return 0;
}

static enum peal_status memory_attach(struct peal_net *net, uint32_t rank, uint32_t segment,
                                      const uint8_t *key, uint32_t len)
{
    (void)net, (void)rank, (void)segment, (void)key, (void)len;
    return PEAL_OK;
}

/* No function uses the caller's memory after it has returned. */
static void memory_release(struct peal_net *net, struct peal_net_token *token)
{
    (void)net, (void)token;
}

/* The first frame of a lane, taken out of it; false: there is none. */
static bool take_frame(struct net_memory *memory, uint32_t rank, struct peal_net_head *head)
{
    struct lane *lane = &memory->own->lanes[rank];
    pthread_mutex_lock(&memory->own->lock);
    bool any = lane->bytes > 0;
    if (any) {
        memcpy(head, lane->at, sizeof *head);
        memcpy(memory->in.stage, lane->at + sizeof *head, head->bytes);
    }
    pthread_mutex_unlock(&memory->own->lock);
    return any;
}

/* It has taken effect: what follows it may do so. */
static void drop_frame(struct net_memory *memory, uint32_t rank, const struct peal_net_head *head)
{
    struct lane *lane = &memory->own->lanes[rank];
    uint64_t len = sizeof *head + head->bytes;
    pthread_mutex_lock(&memory->own->lock);
    memmove(lane->at, lane->at + len, lane->bytes - len);
    lane->bytes -= len;
    memory->own->refused[rank] += memory->in.refused;
    memory->in.refused = 0;
    pthread_mutex_unlock(&memory->own->lock);
}

static bool report_left(struct net_memory *memory)
{
    bool moved = false;
    for (uint32_t r = 0; r < memory->net.size; r++) {
        if (r == memory->net.rank || memory->told[r])
            continue;
        pthread_mutex_lock(&memory->boards[r]->lock);
        bool left = memory->boards[r]->state != 0;
        pthread_mutex_unlock(&memory->boards[r]->lock);
        if (!left)
            continue;
        memory->told[r] = true;
        moved = true;
        if (memory->net.events.lost)
            memory->net.events.lost(memory->net.events.context, r, PEAL_CLOSED,
                                    "it has closed its communicator");
    }
    return moved;
}

static bool memory_progress(struct peal_net *net)
{
    struct net_memory *memory = of(net);
    bool moved = false;
    for (uint32_t rank = 0; rank < net->size; rank++) {
        struct peal_net_head head;
        uint8_t *to;
        if (!take_frame(memory, rank, &head))
            continue;
        memory->in.rank = rank;
        if (!peal_net_inbound_begin(&memory->in, &head, &to))
            (void)peal_net_inbound_end(&memory->in, &head);
        drop_frame(memory, rank, &head);
        moved = true;
    }
    return report_left(memory) || moved;
}

static int memory_arm(struct peal_net *net)
{
    struct net_memory *memory = of(net);
    uint64_t count;
    (void)!read(memory->own->event, &count, sizeof count);
    bool behind = false;
    pthread_mutex_lock(&memory->own->lock);
    for (uint32_t r = 0; r < net->size; r++)
        behind = behind || memory->own->lanes[r].bytes > 0;
    pthread_mutex_unlock(&memory->own->lock);
    return behind ? -1 : memory->own->event;
}

static enum peal_status memory_health(struct peal_net *net, uint32_t rank, const char **why)
{
    struct board *board;
    enum peal_status status = enter(of(net), rank, &board);
    if (status == PEAL_OK)
        pthread_mutex_unlock(&board->lock);
    if (why)
        *why = status == PEAL_CLOSED ? "it has closed its communicator" : "";
    return status;
}

static void free_board(struct board *board, uint32_t size)
{
    for (uint32_t r = 0; r < size; r++)
        free(board->lanes[r].at);
    free(board->lanes);
    free(board->refused);
    close(board->event);
    pthread_mutex_destroy(&board->lock);
    free(board);
}

static void memory_close(struct peal_net *net, uint32_t linger_ms)
{
    struct net_memory *memory = of(net);
    (void)linger_ms;
    pthread_mutex_lock(&memory->own->lock);
    memory->own->state = 1;
    pthread_mutex_unlock(&memory->own->lock);
    if (memory->boards) {
        for (uint32_t r = 0; r < net->size; r++)
            wake(memory->boards[r]);
    }
    /* The last one frees what all share; acq_rel: after all of their uses. */
    if (!memory->users) {
        free_board(memory->own, net->size);
    } else if (atomic_fetch_sub_explicit(memory->users, 1, memory_order_acq_rel) == 1) {
        for (uint32_t r = 0; r < net->size; r++)
            free_board(memory->boards[r], net->size);
        free(memory->users);
    }
    free(memory->boards);
    free(memory->told);
    free(memory);
}

static void memory_abandon(struct peal_net *net)
{
    memory_close(net, 0);
}

static bool memory_unsent(const struct peal_net *net)
{
    (void)net;
    return false; /* what is accepted has arrived */
}

static const struct peal_net_ops ops = {
    .name = "memory",
    .expose = memory_expose,
    .retract = memory_retract,
    .key = memory_key,
    .attach = memory_attach,
    .put = memory_put,
    .get = memory_get,
    .accumulate = memory_accumulate,
    .atomic = memory_atomic,
    .post = memory_post,
    .control = memory_control,
    .ticket = memory_ticket,
    .flushed = memory_flushed,
    .refused = memory_refused,
    .progress = memory_progress,
    .unsent = memory_unsent,
    .arm = memory_arm,
    .health = memory_health,
    .release = memory_release,
    .close = memory_close,
    .abandon = memory_abandon,
};

/* The address: a pointer, valid in this process only. */
struct address {
    int64_t pid;
    struct board *board;
    _Atomic uint32_t *users;
};

enum peal_status peal_net_open_memory(const struct peal_net_config *config, const char *where,
                                      struct peal_text *why, struct peal_net **out,
                                      uint8_t address[static PEAL_NET_ADDRESS])
{
    struct net_memory *memory = calloc(1, sizeof *memory);
    struct board *own = calloc(1, sizeof *own);
    _Atomic uint32_t *users = config->rank == 0 ? calloc(1, sizeof *users) : NULL;
    (void)where, (void)why;
    if (!memory || !own)
        goto release;
    own->lanes = calloc(config->size, sizeof *own->lanes);
    own->refused = calloc(config->size, sizeof *own->refused);
    own->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    memory->boards = calloc(config->size, sizeof *memory->boards);
    memory->told = calloc(config->size, sizeof *memory->told);
    bool all = own->event >= 0 && own->lanes && own->refused && memory->boards && memory->told &&
               (users || config->rank != 0);
    if (!all)
        goto release;
    pthread_mutex_init(&own->lock, NULL);
    memory->net = (struct peal_net){
        .ops = &ops, .rank = config->rank, .size = config->size, .events = config->events};
    memory->own = own;
    memory->in.net = &memory->net;
    memory->in.segments = &own->segments;
    if (users)
        atomic_init(users, config->size);
    const struct address mine = {getpid(), own, users};
    memcpy(address, &mine, sizeof mine);
    *out = &memory->net;
    return PEAL_OK;
release:
    if (own) {
        free(own->lanes);
        free(own->refused);
        if (own->event > 0)
            close(own->event);
    }
    free(users);
    if (memory) {
        free(memory->boards);
        free(memory->told);
    }
    free(own);
    free(memory);
    return PEAL_NO_MEMORY;
}

enum peal_status peal_net_meet_memory(struct peal_net *net, const uint8_t *addresses)
{
    struct net_memory *memory = of(net);
    struct address first;
    memcpy(&first, addresses, sizeof first);
    for (uint32_t r = 0; r < net->size; r++) {
        struct address theirs;
        memcpy(&theirs, addresses + (size_t)r * PEAL_NET_ADDRESS, sizeof theirs);
        if (theirs.pid != getpid())
            return PEAL_UNSUPPORTED;
        memory->boards[r] = theirs.board;
    }
    memory->users = first.users;
    return PEAL_OK;
}
