/* SPDX-License-Identifier: Apache-2.0 */
/* See bad_network.h. Each connection has a mood per direction, which lasts for some calls:
 *
 *   whole    as many bytes as the call asks for, or most of them
 *   short    a few bytes
 *   single   one byte
 *   again    EAGAIN
 *   intr     EINTR
 *   pause    EAGAIN until a moment that is some microseconds away
 *
 * Nothing sleeps here: a caller that waits for a descriptor finds it ready, tries, and is told to try again, as if the
 * bytes had come later. */
#include "comm/tests/bad_network.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

enum { FDS = 4096, PIECES = 16, FEW = 100, PAUSE_NS = 100000 };
enum mood { WHOLE, SHORT, SINGLE, AGAIN, INTR, PAUSE };
enum way { OUT, IN, WAYS };

/* Atomic, and relaxed, because a descriptor may pass from one thread to another; it has one user at a time. */
struct weather {
    _Atomic uint32_t mood, calls;
    _Atomic uint64_t until_ns;
};

static struct weather weathers[WAYS][FDS];
static _Atomic uint64_t seed;
static bool bad, bytes;

void bad_network_begin(unsigned rank)
{
    const char *text = getenv("TEST_NETWORK");
    if (!text)
        return;
    bytes = strncmp(text, "bytes", 5) == 0;
    bad = bytes || strncmp(text, "bad", 3) == 0;
    if (!bad) {
        fprintf(stderr, "TEST_NETWORK: '%s' is neither 'bad' nor 'bytes'\n", text);
        abort();
    }
    const char *number = strchr(text, ':');
    atomic_store_explicit(&seed, (number ? strtoull(number + 1, NULL, 10) : 1) * 1000003 + rank,
                          memory_order_relaxed);
}

static uint32_t draw(uint32_t below)
{
    uint64_t x =
        atomic_fetch_add_explicit(&seed, UINT64_C(0x9e3779b97f4a7c15), memory_order_relaxed);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((x ^ x >> 31) >> 16) % below;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool is_tcp(int fd)
{
    int protocol = 0;
    socklen_t len = sizeof protocol;
    return bad && fd >= 0 && fd < FDS &&
           getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 && protocol == IPPROTO_TCP;
}

static enum mood change(struct weather *weather)
{
    static const struct {
        enum mood mood;
        uint32_t calls;
    } moods[] = {{WHOLE, 6},    {WHOLE, 6},  {WHOLE, 12}, {SHORT, 6}, {SHORT, 40}, {SINGLE, 4},
                 {SINGLE, 60}, {AGAIN, 20}, {INTR, 6},  {PAUSE, 1}, {PAUSE, 1}};
    uint32_t next = draw(sizeof moods / sizeof *moods);
    atomic_store_explicit(&weather->mood, moods[next].mood, memory_order_relaxed);
    atomic_store_explicit(&weather->calls, 1 + draw(moods[next].calls), memory_order_relaxed);
    atomic_store_explicit(&weather->until_ns, now_ns() + draw(PAUSE_NS), memory_order_relaxed);
    return moods[next].mood;
}

/* How many of `len` bytes may pass; 0: none, and errno says why. */
static size_t allow(int fd, enum way way, size_t len)
{
    struct weather *weather = &weathers[way][fd];
    uint32_t calls = atomic_load_explicit(&weather->calls, memory_order_relaxed);
    enum mood mood = (enum mood)atomic_load_explicit(&weather->mood, memory_order_relaxed);
    if (len == 0)
        return 0;
    if (calls == 0)
        mood = change(weather);
    else if (mood != PAUSE)
        atomic_store_explicit(&weather->calls, calls - 1, memory_order_relaxed);
    if (bytes && mood <= SINGLE)
        mood = SINGLE;
    switch (mood) {
    case WHOLE:
        return len > 1 && draw(4) == 0 ? len - draw((uint32_t)(len < 1000 ? len : 1000)) : len;
    case SHORT:
        return 1 + draw(len < FEW ? (uint32_t)len : FEW);
    case SINGLE:
        return 1;
    case INTR:
        errno = EINTR;
        return 0;
    case PAUSE:
        if (now_ns() >= atomic_load_explicit(&weather->until_ns, memory_order_relaxed))
            atomic_store_explicit(&weather->calls, 0, memory_order_relaxed);
        break;
    case AGAIN:
        break;
    }
    errno = EAGAIN;
    return 0;
}

/* The first `allowed` bytes of what a message names. */
static struct msghdr cut(const struct msghdr *message, size_t allowed, struct iovec *pieces)
{
    struct msghdr out = *message;
    size_t count = 0;
    while (count < message->msg_iovlen && count < PIECES && allowed > 0) {
        pieces[count] = message->msg_iov[count];
        if (pieces[count].iov_len > allowed)
            pieces[count].iov_len = allowed;
        allowed -= pieces[count++].iov_len;
    }
    out.msg_iov = pieces;
    out.msg_iovlen = count;
    return out;
}

static size_t total(const struct msghdr *message)
{
    size_t len = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        len += message->msg_iov[i].iov_len;
    return len;
}

/* ---- in place of the C library's ---- */

/* A shared library that the program uses calls these, too. */
#pragma GCC visibility push(default)

#define REAL(type, name, ...)                                                                      \
    static _Atomic uintptr_t found;                                                                \
    if (!found)                                                                                    \
        found = (uintptr_t)dlsym(RTLD_NEXT, name);                                                 \
    type (*real)(__VA_ARGS__) = (type(*)(__VA_ARGS__))found

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): its names are reserved. */
ssize_t send(int fd, const void *at, size_t len, int flags)
{
    REAL(ssize_t, "send", int, const void *, size_t, int);
    if (is_tcp(fd) && len > 0 && (len = allow(fd, OUT, len)) == 0)
        return -1;
    return real(fd, at, len, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    REAL(ssize_t, "sendmsg", int, const struct msghdr *, int);
    struct iovec pieces[PIECES];
    if (!is_tcp(fd) || total(message) == 0)
        return real(fd, message, flags);
    size_t allowed = allow(fd, OUT, total(message));
    if (allowed == 0)
        return -1;
    struct msghdr some = cut(message, allowed, pieces);
    return real(fd, &some, flags);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): its names are reserved. */
ssize_t recv(int fd, void *at, size_t len, int flags)
{
    REAL(ssize_t, "recv", int, void *, size_t, int);
    if (is_tcp(fd) && len > 0 && (len = allow(fd, IN, len)) == 0)
        return -1;
    return real(fd, at, len, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    REAL(ssize_t, "recvmsg", int, struct msghdr *, int);
    struct iovec pieces[PIECES];
    if (!is_tcp(fd) || total(message) == 0)
        return real(fd, message, flags);
    size_t allowed = allow(fd, IN, total(message));
    if (allowed == 0)
        return -1;
    struct msghdr some = cut(message, allowed, pieces);
    return real(fd, &some, flags);
}

/* What the headers make of recv where the size of the buffer is known. */
ssize_t __recv_chk(int fd, void *at, size_t len, size_t cap, int flags);
ssize_t __recv_chk(int fd, void *at, size_t len, size_t cap, int flags)
{
    if (len > cap)
        abort();
    return recv(fd, at, len, flags);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): its names are reserved. */
int accept4(int fd, __SOCKADDR_ARG from, socklen_t *restrict len, int flags)
{
    REAL(int, "accept4", int, __SOCKADDR_ARG, socklen_t *, int);
    if (is_tcp(fd) && draw(4) == 0) {
        errno = draw(2) ? EAGAIN : EINTR;
        return -1;
    }
    return real(fd, from, len, flags);
}

/* Some of what is ready, in any order. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): its names are reserved. */
int epoll_wait(int epoll, struct epoll_event *events, int cap, int timeout_ms)
{
    REAL(int, "epoll_wait", int, struct epoll_event *, int, int);
    int count = real(epoll, events, cap, timeout_ms);
    if (!bad || count <= 0)
        return count;
    for (int i = count - 1; i > 0; i--) {
        int other = (int)draw((uint32_t)i + 1);
        struct epoll_event event = events[i];
        events[i] = events[other];
        events[other] = event;
    }
    return draw(4) == 0 ? (int)draw((uint32_t)count + 1) : count;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): its names are reserved. */
int poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    REAL(int, "poll", struct pollfd *, nfds_t, int);
    if (bad && draw(16) == 0) {
        errno = EINTR;
        return -1;
    }
    return real(polled, count, timeout_ms);
}

#pragma GCC visibility pop
