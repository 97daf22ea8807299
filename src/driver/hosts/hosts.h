/* SPDX-License-Identifier: Apache-2.0 */
/* Workers on other hosts: PEAL_PLATFORM=hosts:a:2,b:2.
 *
 * The driver, the program that the user has started, runs `peal exec --hosts a:2,b:2 --join FD`
 * with its own command line, and takes part in that job as the last rank. The other ranks run the
 * same program up to its peal_host_open, which does not return there: they become workers 0, 1, ...
 * So functions are found by name, and only what this folder maps has to be at the same address on
 * all.
 *
 * What is the same. A worker maps `struct peal_host_shared` and its own area of tensors at the
 * driver's addresses (a part of the address space that is free on all of them, found by trying).
 * Blocks, texts and tables are copied there byte by byte, and a pointer into them means the same
 * everywhere. A worker's two threads, its queues and its launcher are those of a worker on one
 * machine.
 *
 * What differs. No memory is shared, so what a worker and the driver write for each other goes
 * through a net of this job. It is encrypted (run/net/net.h), since it also carries the secrets of
 * domains.
 *
 *   driver to worker   tables, a task's block, the number of tasks in a queue, that all members of
 *                      a task have arrived at it, memory to zero, taints to clear; tensors are put
 *                      and got
 *   worker to driver   that it has arrived at a task; that its part has ended, with times and error
 *   worker to worker   what members of a domain exchange to open their communicator: a store
 *                      (store.c)
 *
 * The driver keeps the block of every task, applies workers' reports to it, and decides when all
 * members have arrived. A worker that is lost is treated like one whose process has died
 * (native.c). Members of a domain communicate through communicators of their own, which span hosts
 * like any other.
 *
 * Threads. One lock per net. The driver's serving thread receives and applies; the caller's thread
 * sends. While it waits for space it also receives, but leaves the messages to the serving thread.
 * Workers apply messages at once, under the lock: that is short, and sends nothing.
 */
#ifndef PEAL_DRIVER_HOSTS_H
#define PEAL_DRIVER_HOSTS_H

#include "driver/state/state.h"

#include "run/run.h"

enum peal_away_kind {
    PEAL_AWAY_TABLE = 1, /* bytes of the shared structure, at `at` */
    PEAL_AWAY_FUNCTION,  /* work `count` is the function of that name */
    PEAL_AWAY_TASK,      /* a block, for position `count` of `queue`, whose ring entry is `at`; a
                            large block has no bytes here, but is sent before as tables */
    PEAL_AWAY_PUSH,      /* `count` tasks are in `queue` */
    PEAL_AWAY_MET,       /* all members have arrived at a task; status: why none may run it */
    PEAL_AWAY_ZERO,      /* `bytes` from `at` on are freed: to be zeroed */
    PEAL_AWAY_CLEAN,     /* `bytes` from `at` on are written anew: no longer tainted */
    PEAL_AWAY_ARRIVED,   /* a member has arrived at a task */
    PEAL_AWAY_ENDED,     /* a member has ended a task: times, error text */
    PEAL_AWAY_SET,       /* a store's entry: key, NUL, value; `at`: the domain */
    PEAL_AWAY_LOST       /* to workers: worker `member` is lost. In the driver's inbox: the sender
                            is */
};

/* The beginning of every message. */
struct peal_away_head {
    uint64_t id, block; /* of a task: its id, and the offset of its block in `blocks` */
    uint64_t at, bytes; /* at, of a task that has ended: its cause */
    uint64_t start, end;
    uint32_t member, queue, count, status;
};

enum { PEAL_AWAY_AREA = 1, PEAL_AWAY_PIECE = 60000 };

struct peal_away_letter {
    uint32_t rank, kind;
    struct peal_away_head head;
    char *bytes;
    size_t len;
};

struct peal_away_entry {
    uint64_t domain;
    char *key;
    void *value;
    size_t len;
};

struct peal_away {
    struct peal_net *net;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* worker: the store or `lost` has changed */
    int wake_fd;            /* wakes the serving thread */
    uint32_t rank, size;
    struct peal_host *host; /* in a worker it has only functions */
    /* driver */
    PEAL_VEC(struct peal_away_letter) inbox;
    pthread_t thread;
    bool serving;
    _Atomic bool stop;
    pid_t exec_pid;
    int meet_fd;
    int64_t *clocks; /* by worker: ns to add to its times */
    /* worker */
    struct peal_host_shared *shared;
    char *area;
    uint64_t area_bytes;
    PEAL_VEC(struct peal_away_entry) store;
    bool lost[PEAL_HOST_MAX_WORKERS + 1];
    _Atomic uint32_t running; /* threads of queues that have not ended */
};

/* What ranks send each other first. */
struct peal_away_hello {
    uint64_t shared_at, shared_bytes, area_at, area_bytes; /* the driver's */
    uint64_t now_ns;
    int64_t pid;
    uint32_t workers, timeout_ms;
    char job[64];
};
/* Whether a rank could begin. */
struct peal_away_account {
    uint32_t status;
    char why[252];
};

/* link.c: both sides. */
struct peal_away *peal_away_new(struct peal_host *host);
void peal_away_free(struct peal_away *away);
enum peal_status peal_away_open(struct peal_away *away, struct peal_meet *meet,
                                struct peal_text *why);
/* Waits until the net has space for the message. */
enum peal_status peal_away_send(struct peal_away *away, uint32_t rank, enum peal_away_kind kind,
                                const struct peal_away_head *head, const void *bytes, size_t len);
/* Sends and receives what it can without waiting. If that was nothing, sleeps until something
 * arrives, peal_away_wake is called or 20 ms have passed. */
void peal_away_serve_once(struct peal_away *away);
void peal_away_wake(struct peal_away *away);
/* Called by all ranks of the job: PEAL_OK if all have it; otherwise the status and reason of the
 * first that has not. */
enum peal_status peal_away_agree(struct peal_meet *meet, enum peal_status status,
                                 struct peal_text *why);
/* For what arrives; keep: driver.c, the others: worker.c. Under the lock. */
void peal_away_keep(struct peal_away *away, uint32_t rank, uint32_t kind, const void *bytes,
                    uint64_t len);
void peal_away_apply(struct peal_away *away, uint32_t rank, uint32_t kind, const void *bytes,
                     uint64_t len);
void peal_away_note_lost(struct peal_away *away, uint32_t rank, const char *why);

/* start.c: the driver begins and ends the job. */
enum peal_status peal_away_start(struct peal_host *host, const char *list);
void peal_away_stop(struct peal_host *host);

/* driver.c */
void *peal_away_serve(void *context);
void peal_away_table(struct peal_host *host, const void *at, size_t bytes);
void peal_away_function(struct peal_host *host, uint32_t work, const char *name);
void peal_away_task(struct peal_host *host, const struct peal_host_block *block, uint32_t member,
                    uint64_t entry);
void peal_away_push(struct peal_host *host, uint32_t index, uint32_t pushed);
/* Lets the members of a task go on if all have arrived at it or are dead. */
void peal_away_meet(struct peal_host *host, struct peal_host_block *block);
void peal_away_zero(struct peal_away *away, uint32_t worker, uint64_t at, uint64_t bytes);
void peal_away_clean(struct peal_host *host, uint32_t worker, uint64_t begin, uint64_t end);
enum peal_status peal_away_copy(struct peal_host *host, uint32_t worker, uint64_t at, void *data,
                                uint64_t bytes, bool writes);

/* worker.c: has a driver started this process? Then it calls peal_away_work, which returns only on
 * failure, with a text in the host's error. */
bool peal_away_is_worker(void);
enum peal_status peal_away_work(struct peal_host *host);
void peal_away_arrived(struct peal_away *away, const struct peal_host_block *block, uint32_t member,
                       enum peal_status bad);
void peal_away_ended(struct peal_away *away, const struct peal_away_head *head, const char *text);

/* store.c: the members of a task exchange what they need to open their communicator. */
struct peal_away_meeting {
    struct peal_away *away;
    const struct peal_host_block *block;
    uint64_t domain;
};
struct peal_store peal_away_store(struct peal_away_meeting *meeting);
/* Under the lock. */
void peal_away_store_put(struct peal_away *away, uint64_t domain, const char *bytes, size_t len);

#endif
