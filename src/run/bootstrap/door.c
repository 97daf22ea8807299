/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets in folders and by abstract name, messages with descriptors, and the proof of knowing the
 * job. See door.h. A folder is locked while sockets in it are examined, bound or removed: between
 * bind and listen a socket refuses connections like one whose owner was killed, and those are
 * removed. */
#include "run/bootstrap/door.h"

#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { FOLDERS = 3, NAME_DIGITS = 32, BACKLOG = 256 };

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- folders and names ---- */

/* The folder of that number, "" if there is none. */
static void name_folder(int number, char out[static 96])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int len = 0;
    out[0] = '\0';
    if (number == 0 && runtime && runtime[0] == '/')
        len = snprintf(out, 96, "%s/peal", runtime);
    else if (number == 1)
        len = snprintf(out, 96, "/run/user/%u/peal", (unsigned)getuid());
    else if (number == 2)
        len = snprintf(out, 96, "/tmp/peal-%u", (unsigned)getuid());
    if (len >= 96)
        out[0] = '\0';
}

/* Is this user the only one who can replace the folder or look into it? */
static bool is_private(int fd, const char *path)
{
    struct stat folder, above;
    char parent[96];
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = '\0';
    return fstat(fd, &folder) == 0 && folder.st_uid == getuid() && (folder.st_mode & 077) == 0 &&
           stat(parent, &above) == 0 && (above.st_uid == getuid() || above.st_uid == 0) &&
           ((above.st_mode & 022) == 0 || (above.st_mode & S_ISVTX) != 0);
}

/* A descriptor of the folder, which is created if `make` says so; -1: it cannot be used. */
static int open_folder(int number, bool make, char path[static 96])
{
    name_folder(number, path);
    if (!path[0])
        return -1;
    if (make && mkdir(path, 0700) != 0 && errno != EEXIST)
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && !is_private(fd, path)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void name_job(const char *job, uint32_t leader, char out[static NAME_DIGITS + 1])
{
    struct peal_sha256 hash;
    char digits[PEAL_SHA256_HEX + 1];
    peal_sha256_begin(&hash);
    peal_sha256_add(&hash, "peal meeting", 12);
    peal_sha256_add_u64(&hash, getuid());
    peal_sha256_add_u64(&hash, leader);
    peal_sha256_add(&hash, job, strlen(job));
    peal_sha256_end(&hash, digits);
    snprintf(out, NAME_DIGITS + 1, "%.*s", NAME_DIGITS, digits);
}

static socklen_t address_of(const char *path, const char *name, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (path[0]) {
        snprintf(out->sun_path, sizeof out->sun_path, "%s", path);
        return sizeof *out;
    }
    int len = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "peal-%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int connect_to(const struct sockaddr_un *name, socklen_t len)
{
    int fd = new_socket();
    if (fd >= 0 && connect(fd, (const struct sockaddr *)name, len) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* ---- listening ---- */

static int listen_at(const struct sockaddr_un *name, socklen_t len)
{
    int fd = new_socket();
    if (fd < 0)
        return -1;
    if (bind(fd, (const struct sockaddr *)name, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Removes sockets whose owners were killed. */
static void sweep(int folder, const char *path)
{
    DIR *dir = fdopendir(fcntl(folder, F_DUPFD_CLOEXEC, 0));
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        struct sockaddr_un name;
        char full[108];
        if (strlen(entry->d_name) != NAME_DIGITS ||
            snprintf(full, sizeof full, "%s/%s", path, entry->d_name) >= (int)sizeof full)
            continue;
        socklen_t len = address_of(full, "", &name);
        int fd = connect_to(&name, len);
        if (fd >= 0)
            close(fd);
        else if (errno == ECONNREFUSED)
            unlinkat(folder, entry->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

/* A socket in a folder; -1: none, with EADDRINUSE if another process listens there. */
static int listen_in(int number, const char *name, char path[static 108])
{
    char folder[96];
    int dir = open_folder(number, true, folder), fd = -1;
    if (dir < 0)
        return -1;
    struct sockaddr_un address;
    if (flock(dir, LOCK_EX | LOCK_NB) != 0) {
        close(dir);
        errno = EADDRINUSE; /* for a moment */
        return -1;
    }
    snprintf(path, 108, "%.72s/%s", folder, name);
    sweep(dir, folder);
    socklen_t len = address_of(path, "", &address);
    fd = listen_at(&address, len);
    int error = errno;
    close(dir);
    errno = error;
    return fd;
}

static void add(struct peal_door *door, int fd, const char *path)
{
    door->fds[door->count] = fd;
    snprintf(door->paths[door->count++], sizeof door->paths[0], "%s", path);
}

enum peal_status peal_door_open(const char *job, uint32_t leader, uint64_t deadline,
                                struct peal_door *out, struct peal_text *why)
{
    char name[NAME_DIGITS + 1], path[108];
    struct sockaddr_un address;
    struct peal_door door = {.count = 0};
    bool done[FOLDERS + 1] = {false};
    name_job(job, leader, name);
    socklen_t len = address_of("", name, &address);
    for (;;) {
        bool taken = false; /* perhaps by an earlier meeting of the same job, which is ending */
        for (int i = 0; i < FOLDERS; i++) {
            int fd = -1;
            if (!done[i])
                fd = listen_in(i, name, path);
            if (fd >= 0)
                add(&door, fd, path);
            taken |= !done[i] && fd < 0 && errno == EADDRINUSE;
            done[i] |= fd >= 0 || errno != EADDRINUSE;
        }
        int fd = -1;
        if (!done[FOLDERS])
            fd = listen_at(&address, len);
        if (fd >= 0)
            add(&door, fd, "");
        done[FOLDERS] |= fd >= 0;
        if (door.count > 0 && !taken)
            break;
        if (peal_now_ms() >= deadline) {
            peal_text_printf(why, "cannot listen for job '%s': %s", job,
                             taken || errno == EADDRINUSE
                                 ? "another process has its meeting point (of another user? a "
                                   "private XDG_RUNTIME_DIR helps)"
                                 : strerror(errno));
            peal_door_close(&door);
            return PEAL_SYSTEM;
        }
        sleep_ms(2);
    }
    *out = door;
    return PEAL_OK;
}

void peal_door_close(struct peal_door *door)
{
    for (uint32_t i = 0; i < door->count; i++) {
        if (door->paths[i][0])
            unlink(door->paths[i]); /* before the socket is closed: then it is still this one */
        close(door->fds[i]);
    }
    door->count = 0;
}

int peal_door_accept(const struct peal_door *door, int patience_ms)
{
    struct pollfd polls[PEAL_DOORS];
    for (uint32_t i = 0; i < door->count; i++)
        polls[i] = (struct pollfd){door->fds[i], POLLIN, 0};
    errno = 0;
    if (poll(polls, door->count, patience_ms) <= 0) {
        if (errno == EINTR)
            errno = 0;
        return -1;
    }
    for (uint32_t i = 0; i < door->count; i++) {
        int fd = -1;
        if (polls[i].revents & POLLIN)
            fd = accept4(door->fds[i], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0 || errno == EMFILE || errno == ENFILE)
            return fd;
        errno = 0; /* the process has disconnected again */
    }
    return -1;
}

/* ---- connecting ---- */

static bool same_user(int fd)
{
    struct ucred cred;
    socklen_t len = sizeof cred;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.uid == getuid();
}

int peal_door_error(void)
{
    int spare = new_socket();
    if (spare < 0)
        return errno;
    close(spare);
    return 0;
}

int peal_door_knock(const char *job, uint32_t leader, bool *stranger)
{
    char name[NAME_DIGITS + 1], folder[96], path[108];
    name_job(job, leader, name);
    for (int i = 0; i <= FOLDERS; i++) {
        struct sockaddr_un address;
        path[0] = '\0';
        if (i < FOLDERS) {
            int dir = open_folder(i, false, folder);
            if (dir < 0)
                continue;
            close(dir);
            snprintf(path, sizeof path, "%.72s/%s", folder, name);
        }
        socklen_t len = address_of(path, name, &address);
        int fd = connect_to(&address, len);
        if (fd >= 0 && same_user(fd))
            return fd;
        if (fd >= 0)
            close(fd);
        *stranger |= fd >= 0 || (i == FOLDERS && errno == EAGAIN);
    }
    return -1;
}

/* ---- messages ---- */

bool peal_door_send(int fd, const void *data, size_t len, const int pass[2], uint64_t deadline)
{
    struct iovec iov = {(void *)(uintptr_t)data, len};
    union {
        char space[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control = {.space = {0}};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    size_t count = 0;
    if (pass && pass[0] >= 0)
        count = pass[1] < 0 ? 1 : 2;
    if (count > 0) {
        msg.msg_control = control.space;
        msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(c), pass, count * sizeof(int));
    }
    for (;;) {
        ssize_t sent = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0)
            return sent == (ssize_t)len;
        /* The peer is slow to read, or (with about 64 ranks) this user has as many descriptors in
         * messages as it may have open, until other ranks read some. */
        bool later = errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS;
        if (errno != EINTR && (!later || peal_now_ms() >= deadline))
            return false;
        if (later)
            sleep_ms(1);
    }
}

/* The first two descriptors of a message that was received; further ones are closed. */
static void take_descriptors(struct msghdr *msg, int out[2])
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (i < 2 && out[i] < 0)
                out[i] = fd;
            else
                close(fd);
        }
    }
}

static void close_both(int fds[2])
{
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

bool peal_door_receive(int fd, void *data, size_t len, int passed[2], uint64_t deadline)
{
    struct iovec iov = {data, len};
    union {
        char space[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    passed[0] = passed[1] = -1;
    for (;;) {
        struct msghdr msg = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
        uint64_t now = peal_now_ms(), left = now >= deadline ? 0 : deadline - now;
        struct pollfd poll_fd = {fd, POLLIN, 0};
        int ready = poll(&poll_fd, 1, left < INT_MAX ? (int)left : INT_MAX);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t got = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        /* ECONNRESET is reported once for a peer that closed without reading everything; what it
         * had sent can still be received. */
        if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == ECONNRESET))
            continue;
        if (got >= 0)
            take_descriptors(&msg, passed);
        if (got == (ssize_t)len)
            return true;
        close_both(passed);
        return false;
    }
}

/* ---- proof of knowing the job ---- */

struct nonce {
    unsigned char bytes[PEAL_NONCE];
};

struct door_answer {
    struct nonce nonce;
    char proof[PEAL_SHA256_HEX + 1];
};

static void prove(const char *job, const char *side, const struct nonce *asked,
                  const struct nonce *own, char out[static PEAL_SHA256_HEX + 1])
{
    struct peal_sha256 hash;
    peal_sha256_begin(&hash);
    peal_sha256_add(&hash, side, strlen(side));
    peal_sha256_add(&hash, asked, sizeof *asked);
    peal_sha256_add(&hash, own, sizeof *own);
    peal_sha256_add(&hash, job, strlen(job));
    peal_sha256_end(&hash, out);
}

static bool is_proof(const struct door_answer *answer, const char *job, const char *side,
                     const struct nonce *asked, const struct nonce *own)
{
    char wanted[PEAL_SHA256_HEX + 1];
    prove(job, side, asked, own, wanted);
    return memcmp(answer->proof, wanted, sizeof wanted) == 0;
}

static bool receive_plain(int fd, void *data, size_t len, uint64_t deadline)
{
    int passed[2];
    bool came = peal_door_receive(fd, data, len, passed, deadline);
    close_both(passed);
    return came;
}

bool peal_door_challenge(int fd, const char *job, uint64_t deadline)
{
    struct nonce asked;
    struct door_answer own, its;
    if (!same_user(fd) || !receive_plain(fd, &asked, sizeof asked, deadline) ||
        getrandom(&own.nonce, sizeof own.nonce, 0) != sizeof own.nonce)
        return false;
    prove(job, "leader", &asked, &own.nonce, own.proof);
    return peal_door_send(fd, &own, sizeof own, NULL, deadline) &&
           receive_plain(fd, &its, sizeof its, deadline) &&
           is_proof(&its, job, "member", &own.nonce, &asked);
}

bool peal_door_answer(int fd, const char *job, uint64_t deadline)
{
    struct nonce asks;
    struct door_answer own, its;
    if (getrandom(&asks, sizeof asks, 0) != sizeof asks ||
        !peal_door_send(fd, &asks, sizeof asks, NULL, deadline) ||
        !receive_plain(fd, &its, sizeof its, deadline) ||
        !is_proof(&its, job, "leader", &asks, &its.nonce))
        return false;
    own.nonce = asks;
    prove(job, "member", &its.nonce, &asks, own.proof);
    return peal_door_send(fd, &own, sizeof own, NULL, deadline);
}
