/* SPDX-License-Identifier: Apache-2.0 */
/* How the leader and the other ranks talk. See rendezvous.h. The messages are fixed structs, some
 * with a window and a process descriptor attached:
 *
 *   member -> leader   challenge and answer (door.h), then hello + window + process
 *   leader -> member   welcome, then count x (rank + window + process)
 *   member -> leader   its own verdict
 *   leader -> member   the verdict of all
 *
 * Whatever fails, the leader sends its status and reason to every rank that has come or still comes
 * within LINGER_MS, so that all fail at once and with the same text instead of timing out.
 * Strangers who do not know the job are dropped without consequence. All descriptors that were
 * received are owned by the meeting, and are closed with it unless the caller takes them over.
 */
#include "run/bootstrap/rendezvous.h"

#include "run/bootstrap/door.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HELLO_MAGIC UINT32_C(0x70656c68)
#define VERSION UINT32_C(3)
enum { WHY_BYTES = 240, SOON_MS = 2000, LINGER_MS = 500 };

struct hello {
    uint32_t magic, version;
    uint32_t rank, size;
    uint32_t refusal; /* enum peal_status */
    char reason[WHY_BYTES];
};

struct welcome {
    uint32_t magic;
    uint32_t status; /* enum peal_status */
    uint32_t count;
    uint32_t self, leader;
    char why[WHY_BYTES];
};

struct verdict {
    uint32_t magic;
    uint32_t status; /* enum peal_status */
    char why[WHY_BYTES];
};

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static enum peal_status status_of(uint32_t word)
{
    if (word >= PEAL_STATUSES)
        return PEAL_SYSTEM;
    return (enum peal_status)word;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* ---- the leader ---- */

#define LEADER UINT32_C(0) /* the rank that collects */

struct guest {
    int socket;
    int window, pidfd;
    bool here;
};

/* A message came without its window because no descriptor was left for it. */
static void say_descriptors(uint32_t rank, struct peal_text *out)
{
    peal_text_printf(
        out, "no file descriptor is left for the window of rank %u (allow more: ulimit -n)", rank);
}

static uint64_t soon(uint64_t deadline)
{
    uint64_t then = peal_now_ms() + SOON_MS;
    if (then < deadline)
        return then;
    return deadline;
}

/* Receives a newcomer's hello. False: it is not of this job; its socket is closed. */
static bool hear(int socket, const char *job, uint64_t until, struct hello *out, int passed[2])
{
    passed[0] = passed[1] = -1;
    if (peal_door_challenge(socket, job, until) &&
        peal_door_receive(socket, out, sizeof *out, passed, until) && out->magic == HELLO_MAGIC) {
        out->reason[sizeof out->reason - 1] = '\0';
        return true;
    }
    close_fd(passed[0]);
    close_fd(passed[1]);
    close(socket);
    return false;
}

static void send_away(int socket, enum peal_status status, const char *why, uint64_t until)
{
    struct welcome no = {.magic = HELLO_MAGIC, .status = (uint32_t)status};
    snprintf(no.why, sizeof no.why, "%s", why);
    (void)peal_door_send(socket, &no, sizeof no, NULL, until);
    close(socket);
}

/* PEAL_OK, or the status and reason for which this newcomer ends the meeting. */
static enum peal_status judge(const struct peal_rendezvous *meet, const struct hello *hello,
                              const struct guest *guests, struct peal_text *why)
{
    if (hello->version != VERSION)
        peal_text_printf(why, "rank %u is of another version of peal", hello->rank);
    else if (hello->size != meet->size)
        peal_text_printf(why, "rank %u expects %u ranks, rank %u expects %u", hello->rank,
                         hello->size, meet->rank, meet->size);
    else if (hello->rank >= meet->size || guests[hello->rank].here)
        peal_text_printf(why, "rank %u came twice or does not exist", hello->rank);
    if (why->len > 0)
        return PEAL_INVALID;
    if (hello->refusal != PEAL_OK) {
        peal_text_printf(why, "rank %u: %s", hello->rank, hello->reason);
        return status_of(hello->refusal);
    }
    return PEAL_OK;
}

/* Admits a newcomer. One that ends the meeting is sent the reason. */
static enum peal_status admit(const struct peal_rendezvous *meet, int socket, struct guest *guests,
                              uint64_t deadline, struct peal_text *why)
{
    struct hello hello;
    int passed[2];
    if (!hear(socket, meet->job, soon(deadline), &hello, passed))
        return PEAL_OK;
    enum peal_status status = judge(meet, &hello, guests, why);
    if (status == PEAL_OK && passed[0] < 0) {
        say_descriptors(hello.rank, why);
        status = PEAL_SYSTEM;
    }
    if (status == PEAL_OK) {
        guests[hello.rank] = (struct guest){socket, passed[0], passed[1], true};
        return PEAL_OK;
    }
    close_fd(passed[0]);
    close_fd(passed[1]);
    send_away(socket, status, peal_text_get(why), soon(deadline));
    if (hello.rank < meet->size && !guests[hello.rank].here) /* it knows: do not wait for it */
        guests[hello.rank] = (struct guest){-1, -1, -1, true};
    return status;
}

static bool is_gone(const struct peal_rendezvous *meet, uint32_t rank, struct peal_text *ended)
{
    return meet->gone && meet->gone(meet->context, rank, ended);
}

static bool all_here(const struct peal_rendezvous *meet, const struct guest *guests,
                     uint32_t *missing)
{
    for (uint32_t r = 0; r < meet->size; r++) {
        if (guests[r].here)
            continue;
        *missing = r;
        return false;
    }
    return true;
}

/* A missing rank that will never come; size: there is none. */
static uint32_t find_lost(const struct peal_rendezvous *meet, const struct guest *guests,
                          struct peal_text *ended)
{
    uint32_t r = 0;
    for (; r < meet->size && (guests[r].here || !is_gone(meet, r, ended)); r++) {
    }
    return r;
}

static enum peal_status say_lost(const struct peal_rendezvous *meet, uint32_t rank,
                                 struct peal_text *ended, struct peal_text *why)
{
    peal_text_printf(why, "rank %u of %u will not come to job '%s' any more%s", rank, meet->size,
                     meet->job, peal_text_get(ended));
    peal_text_release(ended);
    return PEAL_PEER_DEAD;
}

static enum peal_status collect(const struct peal_rendezvous *meet, const struct peal_door *door,
                                struct guest *guests, uint64_t deadline, struct peal_text *why)
{
    uint32_t missing = 0;
    if (meet->refusal != PEAL_OK) {
        peal_text_printf(why, "rank %u: %s", meet->rank, meet->reason);
        return meet->refusal;
    }
    while (!all_here(meet, guests, &missing)) {
        enum peal_status status = PEAL_OK;
        struct peal_text ended = {0};
        if (peal_now_ms() >= deadline) {
            peal_text_printf(why, "rank %u of %u did not come to job '%s' in time", missing,
                             meet->size, meet->job);
            return PEAL_TIMEOUT;
        }
        uint32_t lost = find_lost(meet, guests, &ended);
        int socket = peal_door_accept(door, lost < meet->size ? 0 : 20);
        if (socket >= 0)
            status = admit(meet, socket, guests, deadline, why);
        else if (errno == EMFILE || errno == ENFILE) {
            say_descriptors(missing, why);
            status = PEAL_SYSTEM;
        } else if (lost < meet->size) {
            return say_lost(meet, lost, &ended, why);
        }
        peal_text_release(&ended);
        if (status != PEAL_OK)
            return status;
    }
    return PEAL_OK;
}

/* The meeting has failed. Ranks that wait to be admitted are sent the reason, and so are those that
 * come within LINGER_MS: ranks that were started together may be a little late. */
static void turn_away(const struct peal_rendezvous *meet, const struct peal_door *door,
                      struct guest *guests, enum peal_status status, const char *why,
                      uint64_t deadline)
{
    uint64_t until = deadline;
    if (peal_now_ms() + LINGER_MS < deadline)
        until = peal_now_ms() + LINGER_MS;
    uint32_t missing;
    while (!all_here(meet, guests, &missing)) {
        uint64_t now = peal_now_ms();
        int socket = peal_door_accept(door, now < until ? (int)(until - now) : 0);
        struct hello hello;
        int passed[2];
        if (socket < 0 && (peal_now_ms() >= until || errno != 0))
            return;
        /* Even after the deadline: a rank in the queue has sent its hello already. */
        if (socket < 0 || !hear(socket, meet->job, peal_now_ms() + SOON_MS, &hello, passed))
            continue;
        close_fd(passed[0]);
        close_fd(passed[1]);
        send_away(socket, status, why, peal_now_ms() + SOON_MS);
        if (hello.rank < meet->size)
            guests[hello.rank].here = true;
    }
}

/* Answers all ranks that have come: with each other's windows and processes, or with the reason of
 * the failure. */
static void welcome_all(struct peal_meeting *meeting, enum peal_status status, const char *why)
{
    for (uint32_t m = 0; m < meeting->count; m++) {
        struct welcome welcome = {.magic = HELLO_MAGIC,
                                  .status = (uint32_t)status,
                                  .count = meeting->count,
                                  .self = m,
                                  .leader = meeting->self};
        snprintf(welcome.why, sizeof welcome.why, "%s", why);
        int socket = meeting->members[m].socket;
        if (socket < 0)
            continue;
        bool ok = peal_door_send(socket, &welcome, sizeof welcome, NULL, meeting->deadline);
        for (uint32_t i = 0; i < meeting->count && ok && status == PEAL_OK; i++) {
            const struct peal_member *member = &meeting->members[i];
            ok = peal_door_send(socket, &member->rank, sizeof member->rank,
                                (int[2]){member->fd, member->pidfd}, meeting->deadline);
        }
    }
}

static enum peal_status lead(const struct peal_rendezvous *meet, uint64_t deadline,
                             struct peal_text *why, struct peal_meeting *out)
{
    struct guest *guests = calloc(meet->size, sizeof *guests);
    struct peal_meeting meeting = {.members = calloc(meet->size, sizeof *meeting.members),
                                   .deadline = deadline};
    if (!guests || !meeting.members) {
        free(guests);
        free(meeting.members);
        return PEAL_NO_MEMORY;
    }
    int window = -1;
    if (meet->window >= 0)
        window = fcntl(meet->window, F_DUPFD_CLOEXEC, 0);
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    guests[meet->rank] = (struct guest){-1, window, self, true};
    struct peal_door door = {.count = 0};
    enum peal_status status = peal_door_open(meet->job, meet->rank, deadline, &door, why);
    if (status == PEAL_OK)
        status = collect(meet, &door, guests, deadline, why);
    if (status == PEAL_OK && window < 0) {
        say_descriptors(meet->rank, why); /* after all have come, so that all get the message */
        status = PEAL_SYSTEM;
    }
    for (uint32_t r = 0; r < meet->size; r++) {
        if (!guests[r].here)
            continue;
        if (r == meet->rank)
            meeting.self = meeting.leader = meeting.count;
        meeting.members[meeting.count++] =
            (struct peal_member){r, guests[r].window, guests[r].pidfd, guests[r].socket};
    }
    welcome_all(&meeting, status, peal_text_get(why));
    if (status == PEAL_OK) {
        *out = meeting;
    } else {
        peal_meeting_release(&meeting); /* first: turn_away may need the descriptors */
        if (door.count > 0)
            turn_away(meet, &door, guests, status, peal_text_get(why), deadline);
    }
    peal_door_close(&door);
    free(guests);
    return status;
}

/* ---- the other ranks ---- */

/* Receives the windows and processes of all, which follow a welcome. */
static enum peal_status take_members(int socket, const struct welcome *welcome, uint64_t deadline,
                                     struct peal_text *why, struct peal_meeting *out)
{
    struct peal_meeting meeting = {.self = welcome->self,
                                   .leader = welcome->leader,
                                   .deadline = deadline,
                                   .members = calloc(welcome->count, sizeof *meeting.members)};
    if (!meeting.members)
        return PEAL_NO_MEMORY;
    for (; meeting.count < welcome->count; meeting.count++) {
        uint32_t rank;
        int passed[2];
        bool came = peal_door_receive(socket, &rank, sizeof rank, passed, deadline);
        meeting.members[meeting.count] = (struct peal_member){rank, passed[0], passed[1], -1};
        if (came && passed[0] >= 0)
            continue;
        if (came)
            say_descriptors(rank, why);
        else
            peal_text_puts(why, "the leader went away during the meeting");
        close_fd(passed[1]);
        peal_meeting_release(&meeting);
        return came ? PEAL_SYSTEM : PEAL_PEER_DEAD;
    }
    *out = meeting;
    return PEAL_OK;
}

/* Sends a verdict. */
static void report_to(int socket, enum peal_status status, const char *reason)
{
    struct verdict own = {.magic = HELLO_MAGIC, .status = (uint32_t)status};
    snprintf(own.why, sizeof own.why, "%s", reason);
    (void)peal_door_send(socket, &own, sizeof own, NULL, peal_now_ms() + SOON_MS);
}

/* PEAL_PENDING: the leader closed the connection before it answered; try again. */
static enum peal_status follow_once(const struct peal_rendezvous *meet, int socket,
                                    uint64_t deadline, struct peal_text *why,
                                    struct peal_meeting *out)
{
    struct hello hello = {.magic = HELLO_MAGIC,
                          .version = VERSION,
                          .rank = meet->rank,
                          .size = meet->size,
                          .refusal = meet->refusal};
    struct welcome welcome;
    int surplus[2];
    if (meet->reason)
        snprintf(hello.reason, sizeof hello.reason, "%s", meet->reason);
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    bool sent =
        peal_door_answer(socket, meet->job, deadline) &&
        peal_door_send(socket, &hello, sizeof hello, (int[2]){meet->window, self}, deadline);
    close_fd(self);
    if (!sent || !peal_door_receive(socket, &welcome, sizeof welcome, surplus, deadline))
        return PEAL_PENDING;
    close_fd(surplus[0]);
    close_fd(surplus[1]);
    if (welcome.magic != HELLO_MAGIC)
        return PEAL_PENDING;
    welcome.why[sizeof welcome.why - 1] = '\0';
    if (welcome.status != PEAL_OK) {
        peal_text_puts(why, welcome.why);
        return status_of(welcome.status);
    }
    if (welcome.count == 0 || welcome.count > meet->size || welcome.self >= welcome.count ||
        welcome.leader >= welcome.count)
        return PEAL_SYSTEM;
    enum peal_status status = take_members(socket, &welcome, deadline, why, out);
    if (status == PEAL_OK) {
        out->members[out->leader].socket = socket;
        return PEAL_OK;
    }
    report_to(socket, status, why->len ? peal_text_get(why) : peal_status_text(status));
    return status;
}

static enum peal_status follow(const struct peal_rendezvous *meet, uint64_t deadline,
                               struct peal_text *why, struct peal_meeting *out)
{
    enum { QUICK_TRIES = 256, PATIENT_MS = 16 }; /* a leader started together comes soon */
    bool stranger = false;
    for (int tries = 0;; tries++) {
        struct peal_text ended = {0};
        int socket = peal_door_knock(meet->job, LEADER, &stranger);
        if (socket >= 0) {
            enum peal_status status = follow_once(meet, socket, deadline, why, out);
            if (status != PEAL_OK)
                close(socket);
            if (status != PEAL_PENDING)
                return status;
        }
        if (is_gone(meet, LEADER, &ended))
            return say_lost(meet, LEADER, &ended, why);
        if (peal_now_ms() >= deadline) {
            peal_text_printf(why, "rank %u of job '%s' was not there in time", LEADER, meet->job);
            if (stranger)
                peal_text_puts(why, "; a process of another user listens in its place (a private "
                                    "XDG_RUNTIME_DIR helps)");
            return PEAL_TIMEOUT;
        }
        sleep_ms(tries < QUICK_TRIES ? 1 : PATIENT_MS);
    }
}

enum peal_status peal_rendezvous_meet(const struct peal_rendezvous *meet, struct peal_text *why,
                                      struct peal_meeting *out)
{
    enum { REFUSAL_MS = 5000 }; /* limit for a rank that only reports that it cannot take part */
    uint64_t patience = meet->timeout_ms;
    int error = peal_door_error();
    out->starved = error == EMFILE || error == ENFILE;
    if (out->starved) {
        peal_text_puts(why,
                       "no file descriptor is left to meet the other ranks (allow more: ulimit "
                       "-n)");
        return PEAL_SYSTEM;
    }
    if (error != 0) {
        peal_text_printf(why, "rank %u cannot make a socket to meet the other ranks: %s",
                         meet->rank, strerror(error));
        return PEAL_SYSTEM;
    }
    if (meet->rank == LEADER)
        return lead(meet, peal_now_ms() + patience, why, out);
    if (meet->refusal != PEAL_OK)
        patience = peal_size_min(patience, REFUSAL_MS);
    return follow(meet, peal_now_ms() + patience, why, out);
}

/* ---- verdicts ---- */

/* A member's verdict about itself: PEAL_OK, or the status with which the meeting fails. */
static enum peal_status hear_verdict(const struct peal_member *member, struct peal_text *why)
{
    struct verdict its;
    int surplus[2];
    if (!peal_door_receive(member->socket, &its, sizeof its, surplus, peal_now_ms()) ||
        its.magic != HELLO_MAGIC) {
        peal_text_printf(why, "rank %u has ended while it opened", member->rank);
        return PEAL_PEER_DEAD;
    }
    close_fd(surplus[0]);
    close_fd(surplus[1]);
    its.why[sizeof its.why - 1] = '\0';
    if (its.status != PEAL_OK)
        peal_text_printf(why, "rank %u: %s", member->rank, its.why);
    return status_of(its.status);
}

/* Waits until all have sent their verdicts, or one that has failed. */
static enum peal_status collect_verdicts(const struct peal_meeting *meeting, struct peal_text *why)
{
    struct pollfd *polls = calloc(meeting->count, sizeof *polls);
    uint32_t left = 0;
    if (!polls)
        return PEAL_NO_MEMORY;
    for (uint32_t m = 0; m < meeting->count; m++) {
        polls[m] = (struct pollfd){meeting->members[m].socket, POLLIN, 0};
        left += polls[m].fd >= 0;
    }
    enum peal_status status = PEAL_OK;
    while (left > 0 && status == PEAL_OK) {
        uint64_t now = peal_now_ms();
        uint64_t wait = 0;
        if (now < meeting->deadline)
            wait = meeting->deadline - now;
        int ready = poll(polls, meeting->count, wait < INT_MAX ? (int)wait : INT_MAX);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0) {
            peal_text_puts(why, "not all ranks could finish opening in time");
            status = PEAL_TIMEOUT;
        }
        for (uint32_t m = 0; m < meeting->count && ready > 0 && status == PEAL_OK; m++) {
            if (polls[m].fd < 0 || polls[m].revents == 0)
                continue;
            status = hear_verdict(&meeting->members[m], why);
            polls[m].fd = -1;
            left--;
        }
    }
    free(polls);
    return status;
}

static enum peal_status settle_all(struct peal_meeting *meeting, enum peal_status status,
                                   const char *reason, struct peal_text *why)
{
    if (status != PEAL_OK)
        peal_text_printf(why, "rank %u: %s", meeting->members[meeting->self].rank, reason);
    else
        status = collect_verdicts(meeting, why);
    for (uint32_t m = 0; m < meeting->count; m++) {
        if (meeting->members[m].socket >= 0)
            report_to(meeting->members[m].socket, status, peal_text_get(why));
    }
    return status;
}

enum peal_status peal_rendezvous_settle(struct peal_meeting *meeting, enum peal_status status,
                                        const char *reason, struct peal_text *why)
{
    struct verdict all;
    int surplus[2], socket = meeting->members[meeting->leader].socket;
    struct peal_text found = {0};
    enum peal_status held = PEAL_PEER_DEAD;
    if (meeting->self == meeting->leader) {
        held = settle_all(meeting, status, reason, &found);
    } else {
        report_to(socket, status, reason ? reason : "");
        if (peal_door_receive(socket, &all, sizeof all, surplus, meeting->deadline) &&
            all.magic == HELLO_MAGIC) {
            all.why[sizeof all.why - 1] = '\0';
            held = status_of(all.status);
            peal_text_puts(&found, all.why);
        } else {
            bool late = peal_now_ms() >= meeting->deadline;
            held = late ? PEAL_TIMEOUT : PEAL_PEER_DEAD;
            peal_text_printf(&found, "rank %u %s", meeting->members[meeting->leader].rank,
                             late ? "did not open in time" : "has ended while it opened");
        }
    }
    if (held != PEAL_OK) {
        why->len = 0;
        peal_text_puts(why, peal_text_get(&found));
    }
    peal_text_release(&found);
    return held;
}

void peal_meeting_release(struct peal_meeting *meeting)
{
    for (uint32_t i = 0; i < meeting->count; i++) {
        close_fd(meeting->members[i].fd);
        close_fd(meeting->members[i].pidfd);
        close_fd(meeting->members[i].socket);
    }
    free(meeting->members);
    *meeting = (struct peal_meeting){0};
}

void peal_job_make(char out[static 40])
{
    uint64_t bits[2] = {0};
    if (getrandom(bits, sizeof bits, 0) != sizeof bits) {
        bits[0] = peal_now_ms();
        bits[1] = (uint64_t)getpid();
    }
    snprintf(out, 40, "%016llx%016llx", (unsigned long long)bits[0], (unsigned long long)bits[1]);
}
