/* SPDX-License-Identifier: Apache-2.0 */
/* The meeting of ranks that peal exec --hosts has started: see hosts.h for the messages. */
#include "run/net/meet/services.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct hosts {
    struct peal_meet meet;
    int fd; /* belongs to the process: not closed here */
};

static bool wait_ready(int fd, short events, uint64_t deadline)
{
    uint64_t now = peal_now_ms();
    struct pollfd polled = {fd, events, 0};
    int left = now >= deadline ? 0 : (int)(deadline - now);
    int ready = poll(&polled, 1, left);
    return ready > 0 || (ready < 0 && errno == EINTR);
}

/* Sends all of it by the deadline, or returns false. */
static bool send_all(int fd, const void *bytes, size_t len, uint64_t deadline)
{
    const uint8_t *at = bytes;
    while (len > 0) {
        ssize_t sent = send(fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EAGAIN && wait_ready(fd, POLLOUT, deadline))
            continue;
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        len -= (size_t)sent;
    }
    return true;
}

static bool receive_all(int fd, void *bytes, size_t len, uint64_t deadline)
{
    uint8_t *at = bytes;
    while (len > 0) {
        ssize_t got = recv(fd, at, len, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN && wait_ready(fd, POLLIN, deadline))
            continue;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        len -= (size_t)got;
    }
    return true;
}

/* Reads one message of that kind and length; otherwise says why not. */
static enum peal_status receive_message(int fd, uint32_t kind, void *out, size_t bytes,
                                        uint64_t deadline, struct peal_text *why)
{
    struct peal_hosts_head head;
    char words[512] = "";
    if (!receive_all(fd, &head, sizeof head, deadline)) {
        bool late = peal_now_ms() >= deadline;
        peal_text_puts(why, late ? "not all ranks have come to the meeting"
                                 : "peal exec, which started this rank, has ended");
        return late ? PEAL_TIMEOUT : PEAL_SYSTEM;
    }
    if (head.kind == kind && head.bytes == bytes && receive_all(fd, out, bytes, deadline))
        return PEAL_OK;
    bool failed = head.kind == PEAL_HOSTS_FAILED && head.bytes < sizeof words;
    if (failed && receive_all(fd, words, head.bytes, deadline)) {
        peal_text_puts(why, words);
        return PEAL_PEER_DEAD;
    }
    peal_text_puts(why, "ranks exchange different things: they make different calls");
    return PEAL_MISMATCH;
}

static enum peal_status hosts_gather(struct peal_meet *meet, const void *own, size_t bytes,
                                     void *all, struct peal_text *why)
{
    int fd = ((struct hosts *)(void *)meet)->fd;
    uint64_t deadline = peal_now_ms() + meet->timeout_ms;
    struct peal_hosts_head head = {
        .kind = PEAL_HOSTS_GATHER, .rank = meet->rank, .bytes = (uint32_t)bytes};
    if (bytes > PEAL_HOSTS_ROW || bytes * meet->size > PEAL_HOSTS_MESSAGE)
        return PEAL_INVALID;
    if (!send_all(fd, &head, sizeof head, deadline) || !send_all(fd, own, bytes, deadline)) {
        peal_text_puts(why, "peal exec, which started this rank, has ended");
        return PEAL_SYSTEM;
    }
    return receive_message(fd, PEAL_HOSTS_GATHERED, all, bytes * meet->size, deadline, why);
}

static void hosts_close(struct peal_meet *meet)
{
    explicit_bzero(meet->secret, sizeof meet->secret);
    free(meet);
}

static const struct peal_meet_ops ops = {"peal exec", hosts_gather, hosts_close};

enum peal_status peal_meet_open_hosts(uint32_t timeout_ms, struct peal_text *why,
                                      struct peal_meet **out)
{
    const char *text = getenv("PEAL_MEET_FD");
    int fd = text ? atoi(text) : -1;
    if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        peal_text_puts(why,
                       "PEAL_MEET_FD names no descriptor: this process was not started by peal "
                       "exec --hosts itself");
        return PEAL_INVALID;
    }
    return peal_meet_join(fd, timeout_ms, why, out);
}

enum peal_status peal_meet_join(int fd, uint32_t timeout_ms, struct peal_text *why,
                                struct peal_meet **out)
{
    struct peal_hosts_head head = {.kind = PEAL_HOSTS_HELLO};
    struct peal_hosts_welcome welcome = {0};
    uint64_t deadline = peal_now_ms() + timeout_ms;
    struct hosts *hosts = calloc(1, sizeof *hosts);
    if (!hosts)
        return PEAL_NO_MEMORY;
    enum peal_status status = PEAL_SYSTEM;
    if (send_all(fd, &head, sizeof head, deadline))
        status = receive_message(fd, PEAL_HOSTS_WELCOME, &welcome, sizeof welcome, deadline, why);
    else
        peal_text_puts(why, "peal exec, which started this rank, has ended");
    if (status != PEAL_OK) {
        free(hosts);
        return status;
    }
    hosts->fd = fd;
    hosts->meet = (struct peal_meet){.ops = &ops,
                                     .rank = welcome.rank,
                                     .size = welcome.size,
                                     .timeout_ms = timeout_ms,
                                     .has_secret = true};
    memcpy(hosts->meet.job, welcome.job, sizeof welcome.job);
    hosts->meet.job[sizeof welcome.job - 1] = '\0';
    memcpy(hosts->meet.secret, welcome.secret, sizeof welcome.secret);
    explicit_bzero(&welcome, sizeof welcome);
    *out = &hosts->meet;
    return PEAL_OK;
}
