/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator: what a peal_comm is made of, and what the files of comm share. */
#ifndef PEAL_COMM_COMMUNICATOR_H
#define PEAL_COMM_COMMUNICATOR_H

#include "run/run.h"

#include <peal/peal.h>

/* Symmetric memory: one allocation, as mapped here from every rank. */
struct peal_symmetric {
    struct peal_symmetric *next;
    uint64_t offset; /* in the windows */
    uint64_t bytes;
    char **at; /* by rank; NULL: it is on another host, and has it as this segment: */
    uint32_t *segments;
    bool isolated; /* this rank's part is a copy that no peer can reach */
};

/* What the last call of a collective resolved to, for calls that repeat: its plan where type, count
 * and the like are the same, the whole call where the buffers are too. */
struct peal_memo {
    /* The last blocking call, ready to be run again, and the arguments that it was made for. */
    struct peal_call call;
    const void *send;
    void *recv;
    uint64_t asked;            /* its peal_call_code; call.code also says whether it was in place */
    bool repeats;              /* the call may be run again for these arguments */
    struct peal_bound *bounds; /* of the call; a part of the communicator's `bounds` */

    uint64_t code, count; /* count: of uneven blocks a hash, for peers */
    uint64_t largest;     /* elements of the largest block: what the plan was made for */
    bool in_place, symmetric;
    uint64_t offsets;
    struct peal_image *image;
    const struct peal_algo *algo;
    uint64_t segment; /* bytes */
    uint64_t launches;
    uint32_t signature;
    bool stream;
    bool remote; /* peers read private memory */
};

/* An all_to_all_v under way: see exchange.c. */
struct peal_exchange {
    struct peal_comm *comm;
    const void *send;
    void *recv;
    struct peal_blocks out, in;
    enum peal_dtype dtype;
    uint64_t *words; /* 4 * size */
    struct peal_bound *bounds;
    const struct peal_algo *forced; /* when it began: the second part may come later */
};

struct peal_comm {
    struct peal_team *team;
    struct peal_calls engine;
    struct peal_plans plans;
    struct peal_table_of_rules rules;
    const struct peal_algo *forced[PEAL_CALL_COUNT];
    struct peal_user_kernel *from_file[PEAL_CALL_COUNT]; /* forced, too: see choice/from_file.h */
    struct {
        char *at; /* symmetric memory for their window parameters */
        uint64_t bytes;
    } file_windows;
    struct peal_memo memos[PEAL_CALL_COUNT];
    struct peal_bound *bounds; /* of peal_comm_exchange and blocking all_to_all_v; then memos' */
    uint64_t *words;           /* of the latter: 4 * size */
    const struct peal_backend *backend;
    struct peal_platform *platform; /* of the simulated machine; NULL: this host */
    struct peal_symmetric *symmetric;
    struct peal_formula *formulas; /* user-defined reductions, NULL before the first */
    uint32_t nformulas;
    struct peal_user_kernel *kernels; /* loaded, and not freed yet */
    uint64_t kernels_loaded;          /* so far */
    uint64_t generation;              /* splits so far, */
    uint32_t shrinks;                 /* and meetings of shrinks, for names */
    uint32_t *twin_places;  /* of all ranks, where its twin is to be; NULL: none, or made */
    struct peal_comm *twin; /* made with it, and not taken yet */
    uint64_t core_cache;    /* bytes of a core's cache; 0: not asked yet */
    struct peal_text error;
    struct peal_text explained;
    struct peal_watching *watching; /* observer and trace; NULL: neither (watch/watch.h) */
    struct {
        uint64_t messages, bytes;
    } sent, received;

    uint32_t requests;      /* that have not been freed */
    _Atomic uint32_t users; /* once closed: those requests, and the list of closed ones */
};

struct peal_request {
    struct peal_comm *comm;
    struct peal_call call;
    bool is_message;
    struct peal_letter letter; /* of a message */
    bool is_rma;
    struct peal_rma rma; /* of a one-sided call to another host */
    /* A message on a simulated machine: its arrival and its bytes travel as one. */
    struct peal_envelope *envelope;
    void *room;    /* where the bytes go that are received */
    uint64_t sent; /* when the sender is done */
    /* A collective on a simulated machine: until all ranks have started it. NULL afterwards. */
    struct peal_arrival *arrival;
    struct peal_exchange exchange;
    struct peal_backoff pause;  /* of peal_request_wait_for, kept between its calls */
    struct peal_bound bounds[]; /* of a collective: 2 * size + 2; then an exchange's words */
};

/* A request with room for a collective's bounds, and `words` after them; NULL, and the status is
 * set, if there is no memory or no place for it. */
struct peal_request *peal_request_new(struct peal_comm *comm, struct peal_request **out,
                                      size_t words, enum peal_status *status);
static inline uint64_t *peal_request_words(struct peal_request *request)
{
    return (uint64_t *)(request->bounds + 2 * request->comm->team->size + 2);
}
/* PEAL_PENDING, or how it ended: it is still there. Moves nothing. */
enum peal_status peal_request_look(struct peal_request *request);
/* What is PEAL_PENDING while the request is under way. */
const enum peal_status *peal_request_status(const struct peal_request *request);
/* Starts its call if `status`, of what was to be done before, is PEAL_OK; frees it otherwise. */
enum peal_status peal_request_start(struct peal_request *request, enum peal_status status,
                                    struct peal_request **out);

/* PEAL_INVALID for ranks and tags that no message has. */
enum peal_status peal_letter_check(struct peal_comm *comm, const struct peal_letter *letter);
/* Bytes that travel with every message beside its own. */
uint64_t peal_letter_overhead(const struct peal_comm *comm);

/* How a one-sided call to another host ended. */
enum peal_status peal_rma_end(struct peal_comm *comm, const struct peal_rma *rma);

/* Remembers a message for peal_comm_error and returns the status. */
enum peal_status peal_comm_fail(struct peal_comm *comm, enum peal_status status, const char *format,
                                ...) __attribute__((format(printf, 3, 4)));
/* PEAL_OK while the communicator can be used. */
enum peal_status peal_comm_check(struct peal_comm *comm);
/* Gives up one use of a closed communicator. */
void peal_comm_drop(struct peal_comm *comm);
/* Leaves the twin that was reserved and never made. */
void peal_comm_drop_twin(struct peal_comm *comm);
/* Takes over a team, made from that of `parent` unless it is NULL. Closes it on failure. */
enum peal_status peal_comm_new(struct peal_team *team, const struct peal_comm *parent,
                               struct peal_comm **out);
/* The status of a finished call, with the team's report as error text where it has failed. */
enum peal_status peal_comm_end(struct peal_comm *comm, enum peal_status status);

/* The allocation that holds [at, at + bytes) of this rank, or NULL. */
const struct peal_symmetric *peal_symmetric_find(const struct peal_comm *comm, const void *at,
                                                 uint64_t bytes);
void peal_symmetric_release(struct peal_comm *comm);
/* After a failure: replaces this rank's symmetric memory by a private copy at the same addresses,
 * which a peer that was stopped in the failed call cannot write to. Not needed between threads. */
void peal_symmetric_isolate(struct peal_comm *comm);
/* The communicator goes, its loaded kernels stay and can only be freed. */
void peal_user_kernels_detach(struct peal_comm *comm);
const struct peal_kernel *peal_user_kernel_lowered(const struct peal_user_kernel *kernel);
/* Among all that the communicator ever loaded: no two have the same. */
uint64_t peal_user_kernel_serial(const struct peal_user_kernel *kernel);

/* What calls resolved to no longer holds: memory or algorithms have changed. */
void peal_comm_forget(struct peal_comm *comm);

/* PEAL_CALL_NONE: there is none of this name. */
uint32_t peal_collective_named(const char *name);

/* A small allgather for the library's own use, within a call that has checked the communicator:
 * `bytes` from each rank. Once the communicator has failed, returns the status that it failed
 * with. */
enum peal_status peal_comm_exchange(struct peal_comm *comm, enum peal_collective collective,
                                    const void *own, void *all, uint64_t bytes);

#endif
