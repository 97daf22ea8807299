/* SPDX-License-Identifier: Apache-2.0 */
/* libpeal_shmem.so: OpenSHMEM on Peal's public interface.
 *
 *   job.c          begin and end, failures, what a PE can reach
 *   memory.c       symmetric memory: the program's own data, and the heap
 *   team.c         teams, contexts, and active sets as teams
 *   move.c         puts and gets; signals
 *   atomic.c       atomic operations and locks
 *   wait.c         waits and tests
 *   collective.c   collectives of teams; those of active sets
 *   thread.c       calls of several threads
 *   log.c          what the program does, for peal record
 *   script.c       what peal record tells a later run to do
 *   onesided.c     calls of <peal/onesided.h> that the program makes, for peal record
 *   plain.c        its loads and stores, if it was compiled by peal cc
 *
 * The exported functions are generated from the tables of shmem.h. Each of them passes what it is to
 * one of the few functions below, which do the work. Errors have no status in OpenSHMEM: they are
 * printed with the function's name, and end the job. */
#ifndef PEAL_SHMEM_JOB_H
#define PEAL_SHMEM_JOB_H

#include <peal/onesided.h>
#include <shmem.h>
#include <stdbool.h>

/* Which function the program called, and from where. */
struct peal_shmem_call {
    const char *name;
    const void *from;
};
#define HERE (&(const struct peal_shmem_call){__func__, __builtin_return_address(0)})

struct peal_shmem_team {
    struct peal_comm *comm;
    int size, rank;
    int *pes; /* of each member, its number in the world */
    int contexts;
    long first, log_stride;       /* of an active set */
    struct peal_shmem_team *next; /* the next active set */
};

/* A communicator of all PEs; fails before shmem_init and after shmem_finalize. */
struct peal_comm *peal_shmem_world(const struct peal_shmem_call *call);
/* Does nothing if the status is PEAL_OK; otherwise prints why, and ends the job. */
void peal_shmem_check(const struct peal_shmem_call *call, struct peal_comm *comm,
                      enum peal_status status);
__attribute__((noreturn, format(printf, 2, 3))) void
peal_shmem_fail(const struct peal_shmem_call *call, const char *format, ...);

/* Calls of several threads, see thread.c: in a block that begins with LOCKED, only this thread uses the
 * world's communicator. Such a block has no other within it, and waits for no other thread. */
void peal_shmem_threads_begin(bool multiple);
bool peal_shmem_is_multiple(void);
int peal_shmem_enter(void);
void peal_shmem_leave(const int *entered);
#define LOCKED                                                                                     \
    __attribute__((cleanup(peal_shmem_leave), unused)) const int locked = peal_shmem_enter()
/* Until it is met; outside of such a block. */
void peal_shmem_wait(const struct peal_shmem_call *call, int (*is_met)(void *context),
                     void *context);

/* The address in Peal's symmetric memory that stands for an address of the program; NULL: it is not
 * symmetric. */
void *peal_shmem_find(const void *address);
/* The same; fails if it is not. */
void *peal_shmem_symmetric(const struct peal_shmem_call *call, const void *address);
void peal_shmem_memory_begin(const struct peal_shmem_call *call, struct peal_comm *world);
void peal_shmem_memory_end(void);

void peal_shmem_teams_begin(const struct peal_shmem_call *call, struct peal_comm *world);
void peal_shmem_teams_end(void);
struct peal_shmem_team *peal_shmem_team(const struct peal_shmem_call *call, shmem_team_t team);
/* The team of the PEs start, start + 2^log_stride, ... Its members make it at their first call. */
struct peal_shmem_team *peal_shmem_active_set(const struct peal_shmem_call *call, int start,
                                              int log_stride, int size);
/* The number in the world of a PE of the context's team. */
uint32_t peal_shmem_target(const struct peal_shmem_call *call, shmem_ctx_t ctx, int pe);

/* Completes what was put; of a context in recordings, of all otherwise. */
void peal_shmem_quiet(const struct peal_shmem_call *call, shmem_ctx_t ctx);

/* The team of a context, by name: which atomic operations are atomic with each other. */
const char *peal_shmem_domain(shmem_ctx_t ctx);

/* Recording: see log.c. Without PEAL_RECORD they do nothing. */
void peal_shmem_log_begin(const struct peal_shmem_call *call, int rank);
void peal_shmem_log_end(const struct peal_shmem_call *call);
/* Is this an address of the program itself, not of a library? */
bool peal_shmem_log_is_program(const void *from);
/* This PE ends the job. */
void peal_shmem_log_failed(const struct peal_shmem_call *call, const char *why);
bool peal_shmem_is_logged(void);
/* The program's loads and stores are reported: peal cc has compiled it. */
void peal_shmem_log_sees_plain(void);
/* Not the thread whose calls are logged? What others do is refused. */
bool peal_shmem_is_second_thread(void);
/* A test, or a look at a signal, that will log `lines` lines. While recording, the first one finds the
 * word as it was, whatever is there now, so that a loop is always seen as a loop; the next one, with
 * nothing in between, waits. `value`: what was returned last. */
enum peal_shmem_look { PEAL_LOOK_FREE, PEAL_LOOK_EARLY, PEAL_LOOK_AGAIN };
enum peal_shmem_look peal_shmem_log_look(const struct peal_shmem_call *call, const void *word,
                                         uint64_t lines, uint64_t **value);
void peal_shmem_log_memory(const struct peal_shmem_call *call, void *at, size_t bytes,
                           const char *kind);
__attribute__((format(printf, 2, 3))) void peal_shmem_log(const struct peal_shmem_call *call,
                                                          const char *format, ...);
void peal_shmem_log_sync(const struct peal_shmem_call *call, const struct peal_shmem_team *team);
/* After the synchronisation that was logged last; its communicator. */
void peal_shmem_log_synced(const struct peal_shmem_call *call, struct peal_comm *comm);
/* A load or a store. */
void peal_shmem_log_access(const void *from, const void *at, size_t bytes, bool writes);
/* Local memory that an operation under way uses: plain accesses to it are logged too. */
void peal_shmem_log_local(const void *at, size_t bytes);
bool peal_shmem_is_local(const void *at, size_t bytes);
/* Symmetric memory of a program of <peal/onesided.h>. */
bool peal_shmem_is_direct(const void *address);
/* All members have arrived. */
void peal_shmem_sync(const struct peal_shmem_call *call, struct peal_shmem_team *team);

/* See script.c. Without PEAL_RECORD_SCRIPT they change nothing. */
void peal_shmem_script_begin(const struct peal_shmem_call *call, int rank);
void peal_shmem_script_segment(void *at);
uint64_t peal_shmem_script_value(uint64_t old); /* of the next operation with a result */
void peal_shmem_script_sync(const struct peal_shmem_call *call, struct peal_comm *comm,
                            uint64_t number);
void peal_shmem_script_lock(const struct peal_shmem_call *call);
void peal_shmem_script_locked(void);

#endif
