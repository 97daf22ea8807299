/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: a collective as a sequence of launches of one image, blocking or not.
 *
 * A large call is cut into segments; each is one launch. Blocking calls use context 0, non-blocking
 * ones contexts 1, 2, ... in turn: call i begins when the one before it in its context has ended
 * here, and is queued until then. A thread that waits moves everything that is under way, in the
 * order of issue, on all its communicators (under_way.h).
 *
 * Who owns what. struct peal_calls is part of a communicator and owns one frame per context and the
 * mail. A struct peal_call belongs to the caller, and so does the memory that it binds. The engine
 * links started calls through `next` and lets go of a call in end_call only, which sets its status:
 * after that the caller may free it, unless it is marked `repeats`. An engine is used by one thread
 * at a time and has no lock.
 *
 * Invariants:
 *   - A context runs one call at a time. Which context a non-blocking call gets follows from its
 *     number alone, so that all ranks take regions of a context in the same order (family.h).
 *   - Calls are numbered per stream (blocking, non-blocking), and all ranks number them alike. What
 *     a rank has come to is recorded before it first waits, so that a peer that waits can compare.
 *   - Launches move only between peal_team_enter and peal_team_leave, or peal_team_move_begin and
 *     peal_team_move_end. That lets a rank that fails wait until its peers no longer use its
 *     memory.
 *   - A call whose plan may reach into peers' memory ends well only if peal_team_confirm says that
 *     no rank had given up by then.
 *   - After a failure nothing moves: everything under way ends with the same status (fail_all).
 *
 * Why there is no thread for progress: a rank has one core at best, and such a thread would compete
 * for it with the rank itself. So a non-blocking call moves only while its thread is in Peal. Why a
 * blocking call is not a started call with a wait: that would put a list, a queue and a clock into
 * the path of a small repeated call, which is begin_launch and one pass of the executor. How long a
 * wait polls is learnt here, per engine (`spins`) and per image (`patience`, `trust`), because only
 * this file knows whether the polling has ended the wait; docs/decisions/0034-how-a-call-waits.md
 * has the reasons.
 */
#ifndef PEAL_RUN_CALL_H
#define PEAL_RUN_CALL_H

#include "run/algorithms/collective.h"
#include "run/call/mail.h"
#include "run/call/rma.h"
#include "run/call/watch.h"
#include "run/exec/exec.h"
#include "run/wait/backoff.h"

#include <pthread.h>

/* Memory bound to one base, or split among several, for a whole call. Each launch takes the next
 * `segment` bytes of it. */
struct peal_bound {
    uint32_t base;
    uint32_t rows; /* 0: one base. Otherwise the segment is cut into that many bases */
    char *at;
    uint64_t bytes;
    uint64_t stride; /* of 2-D parameters bound as a whole: bytes per row */
    /* Memory of a rank on another host: `from` bytes into this segment of it, and `at` is NULL. */
    uint32_t segment;
    uint64_t from;
};

struct peal_call {
    struct peal_image *image;
    struct peal_bound *bounds;
    uint32_t nbounds;
    uint64_t segment; /* bytes */
    uint64_t launches;
    uint32_t element; /* bytes of an element: cuts fall between elements */
    uint64_t bytes;   /* of the program's data, on its larger side: for statistics */
    bool stream;      /* large: write results with stores that bypass the caches */
    bool reach;       /* peers' window parameters are bound too: peal_frame_reach */
    char *const *mapped[PEAL_WINDOW_PARAMS];
    const uint32_t *segments[PEAL_WINDOW_PARAMS];
    uint64_t code, count; /* as peers compare the call: struct peal_call_record */
    uint32_t signature;
    bool repeats; /* stays where it is and is run again as it is: see peal_call_bind_memory */

    /* Called when all launches have ended; may set up the next part of the call, which then goes
     * on in the same context: image, bounds, launches, signature. NULL: there is none. */
    enum peal_status (*then)(struct peal_call *call);
    void *then_context;

    uint64_t done; /* launches */
    bool loaded; /* the image is in the frame; until then, its memory is being freed or agreed on */
    bool reached;       /* some part may have used peers' memory: see peal_team_confirm */
    uint32_t recycling; /* how far regions have been given back: peal_regions_recycle */
    uint64_t seq;
    struct peal_call *next; /* of the active non-blocking ones, oldest first */
    uint32_t context;
    bool begun;        /* it runs in its context */
    bool blocks;       /* a blocking call */
    uint64_t began_ns; /* for a watch */
    bool active;
    enum peal_status status; /* PEAL_PENDING until it has ended */
};

struct peal_calls {
    struct peal_team *team;
    struct peal_frame frames[PEAL_CONTEXTS];
    uint64_t seqs[PEAL_STREAMS];
    struct peal_call *active, *last;          /* started and not ended, oldest first */
    struct peal_call *running[PEAL_CONTEXTS]; /* that have begun */
    struct peal_mail mail;
    struct peal_rmas rmas;
    struct peal_tally tallies[PEAL_CALL_COUNT];
    const struct peal_watch *watch; /* NULL: nothing is reported */
    /* See under_way.h. */
    struct peal_calls *next_listed;
    _Atomic bool listed;
    pthread_t owner;
    bool others;     /* at the last look, this thread had requests on other communicators */
    uint32_t spins;  /* polls before a yield: fewer when they do not help, then more again */
    uint32_t nested; /* progress must not call itself */
};

enum peal_status peal_calls_init(struct peal_calls *engine, struct peal_team *team);
void peal_calls_release(struct peal_calls *engine);

/* The collective of a call: an index into `tallies`. */
static inline uint32_t peal_call_collective(const struct peal_call *call)
{
    return (uint32_t)((call->code & ~PEAL_CALL_IN_PLACE) >> 48);
}

/* An image is about to be freed (NULL: all of them) that no call uses any more. */
void peal_calls_forget(struct peal_calls *engine, const struct peal_image *image);

/* Binds the memory of a call's next launch. A call that `repeats` need not do that again while the
 * image is bound to it. */
void peal_call_bind_memory(struct peal_frame *frame, const struct peal_call *call);

/* Runs a call to its end. */
enum peal_status peal_call_run(struct peal_calls *engine, struct peal_call *call);
/* Starts a call, or puts it into the queue: it must stay where it is until it has ended. */
void peal_call_start(struct peal_calls *engine, struct peal_call *call);
/* Moves everything of this engine that can move. True if anything moved. */
bool peal_calls_move(struct peal_calls *engine);
/* The same, and also moves the thread's requests on other communicators, which do not count. */
bool peal_calls_progress(struct peal_calls *engine);
/* Waits until *wanted is no longer PEAL_PENDING, moving everything meanwhile. */
enum peal_status peal_calls_wait(struct peal_calls *engine, const enum peal_status *wanted);
/* The same, but at most until a time (0: does not wait, and has no time-out); then returns
 * PEAL_PENDING. `pause` belongs to the caller, is zeroed at first, and is the same for all calls
 * that wait for one thing: time-outs count over all of them. */
enum peal_status peal_calls_wait_until(struct peal_calls *engine, const enum peal_status *wanted,
                                       struct peal_backoff *pause, uint64_t until_ns);

#endif
