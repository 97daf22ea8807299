/* SPDX-License-Identifier: Apache-2.0 */
/* See rendezvous.h. The messages are fixed structs with one window attached to each:
 *
 *   member -> leader   hello + window
 *   leader -> member   welcome, then count x (peer + window)
 */
#include "run/team/rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define HELLO_MAGIC UINT32_C(0x70656c68)
#define VERSION UINT32_C(2)
enum { WHY = 240, SOON_MS = 2000, LINGER_MS = 500 };

struct hello {
    uint32_t magic, version;
    uint32_t rank, size;
    char host[64];
    char boot[40];
    uint32_t refusal; /* enum peal_status */
    char reason[WHY];
};

struct welcome {
    uint32_t magic;
    uint32_t status; /* enum peal_status */
    uint32_t count;
    uint32_t self;
    char why[WHY];
};

struct peer {
    uint32_t rank;
    int32_t pid;
};

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void identify(struct hello *out, const struct peal_rendezvous *how)
{
    *out = (struct hello){.magic = HELLO_MAGIC,
                          .version = VERSION,
                          .rank = how->rank,
                          .size = how->size,
                          .refusal = how->refusal};
    if (how->reason)
        snprintf(out->reason, sizeof out->reason, "%s", how->reason);
    (void)gethostname(out->host, sizeof out->host - 1);
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t got = read(fd, out->boot, sizeof out->boot - 1);
        (void)got;
        close(fd);
    }
}

void peal_host_identify(char out[static 112])
{
    struct hello self;
    identify(&self, &(struct peal_rendezvous){0});
    self.boot[strcspn(self.boot, "\n")] = '\0';
    snprintf(out, 112, "%s %s", self.host, self.boot);
}

static socklen_t name_socket(const char *job, uint32_t leader, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "peal-%u-%u-%s",
                       (unsigned)getuid(), leader, job);
    if (len > (int)sizeof out->sun_path - 2)
        len = (int)sizeof out->sun_path - 2;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static bool same_user(int fd, int32_t *pid)
{
    struct ucred cred;
    socklen_t len = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 || cred.uid != getuid())
        return false;
    *pid = cred.pid;
    return true;
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* One message with an optional descriptor; false on any failure or at the deadline. */
static bool send_message(int fd, const void *data, size_t len, int pass, uint64_t deadline)
{
    struct iovec iov = {(void *)(uintptr_t)data, len};
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.space = {0}};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (pass >= 0) {
        msg.msg_control = control.space;
        msg.msg_controllen = sizeof control.space;
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &pass, sizeof pass);
    }
    for (;;) {
        ssize_t sent = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0)
            return sent == (ssize_t)len;
        /* The peer has not read on; or as many descriptors of this user are under way as it may
         * have open (with 64 ranks or so), which the others' reading ends. */
        bool later = errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS;
        if (errno != EINTR && (!later || now_ms() >= deadline))
            return false;
        if (later)
            sleep_ms(1);
    }
}

/* The first descriptor of a message that was received, or -1; further ones are closed. The room for
 * one has, by its alignment, room for two. */
static int take_descriptor(struct msghdr *msg)
{
    const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
        return -1;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    int first = -1;
    for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        if (i == 0)
            first = fd;
        else
            close(fd);
    }
    return first;
}

/* The same the other way. *passed is -1 if no descriptor came, and on failure. */
static bool receive_message(int fd, void *data, size_t len, int *passed, uint64_t deadline)
{
    *passed = -1;
    struct iovec iov = {data, len};
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    for (;;) {
        struct msghdr msg = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
        uint64_t now = now_ms(), left = now >= deadline ? 0 : deadline - now;
        struct pollfd poll_fd = {fd, POLLIN, 0};
        int ready = poll(&poll_fd, 1, left < INT_MAX ? (int)left : INT_MAX);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t got = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR)
            continue;
        int window = got >= 0 ? take_descriptor(&msg) : -1;
        if (got == (ssize_t)len) {
            *passed = window;
            return true;
        }
        if (window >= 0)
            close(window);
        return false;
    }
}

/* ---- the leader ---- */

struct guest {
    int socket;
    int window;
    int32_t pid;
    bool here;
};

/* A message came without its window: the system had no place for it. */
static void say_descriptors(uint32_t rank, struct peal_text *out)
{
    peal_text_printf(
        out, "no file descriptor is left for the window of rank %u (allow more: ulimit -n)", rank);
}

static uint64_t soon(uint64_t deadline)
{
    uint64_t then = now_ms() + SOON_MS;
    return then < deadline ? then : deadline;
}

/* Hears who has come; false, and the socket is closed: none of us. */
static bool hear(int socket, uint64_t until, struct hello *out, int *window, int32_t *pid)
{
    *window = -1;
    if (same_user(socket, pid) && receive_message(socket, out, sizeof *out, window, until) &&
        out->magic == HELLO_MAGIC) {
        out->host[sizeof out->host - 1] = out->boot[sizeof out->boot - 1] = '\0';
        out->reason[sizeof out->reason - 1] = '\0';
        return true;
    }
    if (*window >= 0)
        close(*window);
    close(socket);
    return false;
}

static void send_away(int socket, enum peal_status status, const char *why, uint64_t until)
{
    struct welcome no = {.magic = HELLO_MAGIC, .status = (uint32_t)status};
    snprintf(no.why, sizeof no.why, "%s", why);
    (void)send_message(socket, &no, sizeof no, -1, until);
    close(socket);
}

/* PEAL_OK, or `why` this newcomer means that the meeting has failed. */
static enum peal_status judge(const struct peal_rendezvous *how, const struct hello *own,
                              const struct hello *hello, const struct guest *guests,
                              struct peal_text *why)
{
    if (hello->version != VERSION)
        peal_text_printf(why, "rank %u is of another version of peal", hello->rank);
    else if (strcmp(hello->boot, own->boot) != 0 || strcmp(hello->host, own->host) != 0)
        peal_text_printf(why, "rank %u is on another host ('%s', not '%s')", hello->rank,
                         hello->host, own->host);
    else if (hello->size != how->size)
        peal_text_printf(why, "rank %u was told of %u ranks, rank %u of %u", hello->rank,
                         hello->size, how->rank, how->size);
    else if (hello->rank >= how->size || guests[hello->rank].here)
        peal_text_printf(why, "rank %u came twice or does not exist", hello->rank);
    if (why->len > 0)
        return PEAL_INVALID;
    if (hello->refusal != PEAL_OK) {
        peal_text_printf(why, "rank %u: %s", hello->rank, hello->reason);
        return hello->refusal < PEAL_STATUSES ? (enum peal_status)hello->refusal : PEAL_SYSTEM;
    }
    return PEAL_OK;
}

/* Takes a newcomer in. One that means the end is told so; strangers are nobody's matter. */
static enum peal_status admit(const struct peal_rendezvous *how, const struct hello *own,
                              int socket, struct guest *guests, uint64_t deadline,
                              struct peal_text *why)
{
    struct hello hello;
    int window;
    int32_t pid = 0;
    if (!hear(socket, soon(deadline), &hello, &window, &pid))
        return PEAL_OK;
    enum peal_status status = judge(how, own, &hello, guests, why);
    if (status == PEAL_OK && window < 0) {
        say_descriptors(hello.rank, why);
        status = PEAL_SYSTEM;
    }
    if (status == PEAL_OK) {
        guests[hello.rank] = (struct guest){socket, window, pid, true};
        return PEAL_OK;
    }
    if (window >= 0)
        close(window);
    send_away(socket, status, peal_text_get(why), soon(deadline));
    if (hello.rank < how->size && !guests[hello.rank].here) /* it has been told */
        guests[hello.rank] = (struct guest){-1, -1, pid, true};
    return status;
}

static bool is_gone(const struct peal_rendezvous *how, uint32_t rank)
{
    return how->gone && how->gone(how->context, rank);
}

static bool all_here(const struct peal_rendezvous *how, const struct guest *guests,
                     uint32_t *missing)
{
    for (uint32_t r = 0; r < how->size; r++) {
        if (guests[r].here || (how->optional && how->optional[r] && is_gone(how, r)))
            continue;
        *missing = r;
        return false;
    }
    return true;
}

static int listen_as(const char *job, uint32_t leader, uint64_t deadline)
{
    struct sockaddr_un name;
    socklen_t len = name_socket(job, leader, &name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    while (bind(fd, (struct sockaddr *)&name, len) != 0) {
        if (errno != EADDRINUSE || now_ms() >= deadline) {
            close(fd);
            return -1;
        }
        sleep_ms(2); /* an earlier meeting of the same job is just ending */
    }
    if (listen(fd, 256) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static enum peal_status collect(const struct peal_rendezvous *how, int fd, struct guest *guests,
                                uint64_t deadline, struct peal_text *why)
{
    struct hello own;
    identify(&own, how);
    enum peal_status status = how->refusal;
    uint32_t missing = 0;
    if (status != PEAL_OK)
        peal_text_printf(why, "rank %u: %s", how->rank, how->reason);
    while (status == PEAL_OK && !all_here(how, guests, &missing)) {
        if (now_ms() >= deadline) {
            peal_text_printf(why, "rank %u of %u did not come to job '%s' in time", missing,
                             how->size, how->job);
            return PEAL_TIMEOUT;
        }
        bool without = !(how->optional && how->optional[missing]) && is_gone(how, missing);
        struct pollfd poll_fd = {fd, POLLIN, 0};
        if (poll(&poll_fd, 1, without ? 0 : 20) <= 0) {
            if (!without)
                continue;
            peal_text_printf(why, "rank %u of %u will not come to job '%s' any more", missing,
                             how->size, how->job);
            status = PEAL_PEER_DEAD;
            break;
        }
        int socket = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (socket >= 0) {
            status = admit(how, &own, socket, guests, deadline, why);
        } else if (errno == EMFILE || errno == ENFILE) {
            say_descriptors(missing, why);
            status = PEAL_SYSTEM;
        }
    }
    return status;
}

/* The meeting has failed. Who has come, and waits to be let in, is told why; and who comes in the
 * next moment: ranks that were started together may be a little behind. */
static void turn_away(const struct peal_rendezvous *how, int fd, struct guest *guests,
                      enum peal_status status, const char *why, uint64_t deadline)
{
    uint64_t until = now_ms() + LINGER_MS < deadline ? now_ms() + LINGER_MS : deadline;
    uint32_t missing;
    while (!all_here(how, guests, &missing)) {
        struct pollfd poll_fd = {fd, POLLIN, 0};
        uint64_t now = now_ms();
        int ready = poll(&poll_fd, 1, now < until ? (int)(until - now) : 0);
        if (ready < 0 && errno == EINTR)
            continue;
        int socket = ready > 0 ? accept4(fd, NULL, NULL, SOCK_CLOEXEC) : -1;
        struct hello hello;
        int window;
        int32_t pid;
        if (socket < 0)
            return;
        /* Past the deadline too: whoever is in the queue has said who it is. */
        if (!hear(socket, now_ms() + SOON_MS, &hello, &window, &pid))
            continue;
        if (window >= 0)
            close(window);
        send_away(socket, status, why, now_ms() + SOON_MS);
        if (hello.rank < how->size)
            guests[hello.rank].here = true;
    }
}

static void dismiss(const struct peal_rendezvous *how, const struct guest *guests,
                    enum peal_status status, const struct peal_meeting *meeting, const char *why,
                    uint64_t deadline)
{
    uint32_t self = 0;
    for (uint32_t r = 0; r < how->size; r++) {
        if (!guests[r].here)
            continue;
        struct welcome welcome = {.magic = HELLO_MAGIC,
                                  .status = (uint32_t)status,
                                  .count = meeting->count,
                                  .self = self++};
        snprintf(welcome.why, sizeof welcome.why, "%s", why);
        if (guests[r].socket < 0)
            continue;
        bool ok = send_message(guests[r].socket, &welcome, sizeof welcome, -1, deadline);
        for (uint32_t i = 0; ok && status == PEAL_OK && i < meeting->count; i++) {
            struct peer peer = {meeting->members[i].rank, meeting->members[i].pid};
            ok = send_message(guests[r].socket, &peer, sizeof peer, meeting->members[i].fd,
                              deadline);
        }
        close(guests[r].socket);
    }
}

static enum peal_status lead(const struct peal_rendezvous *how, uint64_t deadline,
                             struct peal_text *why, struct peal_meeting *out)
{
    struct guest *guests = calloc(how->size, sizeof *guests);
    struct peal_meeting meeting = {.members = calloc(how->size, sizeof *meeting.members)};
    if (!guests || !meeting.members) {
        free(guests);
        free(meeting.members);
        return PEAL_NO_MEMORY;
    }
    int window = how->window >= 0 ? fcntl(how->window, F_DUPFD_CLOEXEC, 0) : -1;
    guests[how->rank] = (struct guest){-1, window, (int32_t)getpid(), true};
    int fd = listen_as(how->job, how->rank, deadline);
    enum peal_status status = PEAL_SYSTEM;
    if (fd >= 0)
        status = collect(how, fd, guests, deadline, why);
    else
        peal_text_printf(why, "cannot listen for job '%s': %s", how->job, strerror(errno));
    if (status == PEAL_OK && window < 0) {
        say_descriptors(how->rank, why); /* after all have come, so that all are told */
        status = PEAL_SYSTEM;
    }
    for (uint32_t r = 0; r < how->size; r++) {
        if (!guests[r].here)
            continue;
        if (r == how->rank)
            meeting.self = meeting.count;
        meeting.members[meeting.count++] = (struct peal_member){r, guests[r].pid, guests[r].window};
    }
    dismiss(how, guests, status, &meeting, peal_text_get(why), deadline);
    if (status == PEAL_OK) {
        *out = meeting;
    } else {
        peal_meeting_release(&meeting); /* descriptors may be what is missing */
        if (fd >= 0)
            turn_away(how, fd, guests, status, peal_text_get(why), deadline);
    }
    if (fd >= 0)
        close(fd);
    free(guests);
    return status;
}

/* ---- everyone else ---- */

static int connect_to(const char *job, uint32_t leader)
{
    struct sockaddr_un name;
    socklen_t len = name_socket(job, leader, &name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&name, len) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* PEAL_PENDING: the leader went away before it answered; try again. */
static enum peal_status follow_once(const struct peal_rendezvous *how, int socket,
                                    uint64_t deadline, struct peal_text *why,
                                    struct peal_meeting *out)
{
    struct hello hello;
    struct welcome welcome;
    int surplus;
    int32_t pid;
    identify(&hello, how);
    if (!same_user(socket, &pid)) {
        peal_text_printf(why, "job '%s' is led by another user", how->job);
        return PEAL_INVALID;
    }
    if (!send_message(socket, &hello, sizeof hello, how->window, deadline) ||
        !receive_message(socket, &welcome, sizeof welcome, &surplus, deadline))
        return PEAL_PENDING;
    if (surplus >= 0)
        close(surplus);
    if (welcome.magic != HELLO_MAGIC)
        return PEAL_PENDING;
    welcome.why[sizeof welcome.why - 1] = '\0';
    if (welcome.status != PEAL_OK) {
        peal_text_puts(why, welcome.why);
        return welcome.status < PEAL_STATUSES ? (enum peal_status)welcome.status : PEAL_INVALID;
    }
    if (welcome.count == 0 || welcome.count > how->size || welcome.self >= welcome.count)
        return PEAL_SYSTEM;
    struct peal_meeting meeting = {.self = welcome.self,
                                   .members = calloc(welcome.count, sizeof *meeting.members)};
    if (!meeting.members)
        return PEAL_NO_MEMORY;
    for (; meeting.count < welcome.count; meeting.count++) {
        struct peer peer;
        int fd;
        bool came = receive_message(socket, &peer, sizeof peer, &fd, deadline);
        if (!came || fd < 0) {
            if (came)
                say_descriptors(peer.rank, why);
            else
                peal_text_puts(why, "the leader went away during the meeting");
            peal_meeting_release(&meeting);
            return came ? PEAL_SYSTEM : PEAL_PEER_DEAD;
        }
        meeting.members[meeting.count] = (struct peal_member){peer.rank, peer.pid, fd};
    }
    *out = meeting;
    return PEAL_OK;
}

static enum peal_status follow(const struct peal_rendezvous *how, uint32_t leader,
                               uint64_t deadline, struct peal_text *why, struct peal_meeting *out)
{
    enum { SOON = 256, PATIENT_MS = 16 }; /* a leader that was started together comes in a moment */
    for (int tries = 0;; tries++) {
        int socket = connect_to(how->job, leader);
        if (socket >= 0) {
            enum peal_status status = follow_once(how, socket, deadline, why, out);
            close(socket);
            if (status != PEAL_PENDING)
                return status;
        }
        if (is_gone(how, leader)) {
            peal_text_printf(why, "rank %u will not come to job '%s' any more", leader, how->job);
            return PEAL_PEER_DEAD; /* where it is optional, the caller turns to the next leader */
        }
        if (now_ms() >= deadline) {
            peal_text_printf(why, "rank %u of job '%s' was not there in time", leader, how->job);
            return PEAL_TIMEOUT;
        }
        sleep_ms(tries < SOON ? 1 : PATIENT_MS);
    }
}

enum peal_status peal_rendezvous_meet(const struct peal_rendezvous *how, uint32_t leader,
                                      struct peal_text *why, struct peal_meeting *out)
{
    enum { REFUSAL_MS = 5000 }; /* who cannot take part does not wait for long to say so */
    bool hurries = how->refusal != PEAL_OK && how->rank != leader && how->timeout_ms > REFUSAL_MS;
    uint64_t deadline = now_ms() + (hurries ? (uint64_t)REFUSAL_MS : how->timeout_ms);
    return how->rank == leader ? lead(how, deadline, why, out)
                               : follow(how, leader, deadline, why, out);
}

void peal_meeting_release(struct peal_meeting *meeting)
{
    for (uint32_t i = 0; i < meeting->count; i++) {
        if (meeting->members[i].fd >= 0)
            close(meeting->members[i].fd);
    }
    free(meeting->members);
    *meeting = (struct peal_meeting){0};
}

void peal_job_make(char out[static 40])
{
    uint64_t bits[2] = {0};
    if (getrandom(bits, sizeof bits, 0) != sizeof bits) {
        bits[0] = now_ms();
        bits[1] = (uint64_t)getpid();
    }
    snprintf(out, 40, "%016llx%016llx", (unsigned long long)bits[0], (unsigned long long)bits[1]);
}
