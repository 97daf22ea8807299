/* SPDX-License-Identifier: Apache-2.0 */
/* The meeting through PMI-1, the line protocol that MPICH's Hydra speaks on descriptor PMI_FD.
 *
 * Each request is one line of cmd=NAME and key=value pairs, and is answered by one line. Values are short
 * text: rows are written as hexadecimal digits, in pieces. An MPI library in the same process may use the
 * descriptor too, at other times.
 */
#include "run/net/meet/services.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINE = 4096, PIECE = 400 /* bytes of a row in one value: 800 digits */ };

struct pmi {
    struct peal_meet meet;
    int fd;
    char space[256]; /* where names live: the launcher's word */
};

/* As in meet_pmix.c. */
static _Atomic uint64_t rounds;
/* One more than the descriptor on which this process has to finalize; 0: none. */
static _Atomic int finalized_fd;

/* Hydra ends all ranks if one exits without finalizing, and does not answer one that has finalized: so this is the
 * last thing that the process does. An MPI library does it itself. */
__attribute__((destructor)) static void finalize(void)
{
    static const char line[] = "cmd=finalize\n";
    char answer[64];
    /* Relaxed: no other thread is left that would change it. */
    int fd = atomic_load_explicit(&finalized_fd, memory_order_relaxed) - 1;
    struct pollfd polled = {fd, POLLIN, 0};
    if (fd < 0 || dlsym(RTLD_DEFAULT, "MPI_Init"))
        return;
    if (send(fd, line, sizeof line - 1, MSG_NOSIGNAL) > 0 && poll(&polled, 1, 1000) > 0)
        (void)!read(fd, answer, sizeof answer);
}

static bool read_line(int fd, char out[static LINE], uint64_t deadline)
{
    size_t len = 0;
    while (len + 1 < LINE) {
        uint64_t now = peal_now_ms();
        struct pollfd polled = {fd, POLLIN, 0};
        if (now >= deadline || poll(&polled, 1, (int)(deadline - now)) == 0)
            return false;
        ssize_t got = read(fd, out + len, 1); /* what follows may be another library's */
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        if (out[len] == '\n') {
            out[len] = '\0';
            return true;
        }
        len++;
    }
    return false;
}

/* The value of a key in a line, ended by a blank. */
static bool find_value(const char *line, const char *key, char *out, size_t cap)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, "%s=", key);
    const char *at = line;
    while ((at = strstr(at, wanted)) != NULL && at != line && at[-1] != ' ')
        at++;
    if (!at)
        return false;
    at += strlen(wanted);
    size_t len = strcspn(at, " \n");
    if (len >= cap)
        return false;
    memcpy(out, at, len);
    out[len] = '\0';
    return true;
}

/* Sends a line and reads the answer, which must be of that command. */
static enum peal_status ask(struct pmi *pmi, const char *request, const char *answer,
                            char line[static LINE], struct peal_text *why)
{
    char command[64] = "", code[16] = "0";
    uint64_t deadline = peal_now_ms() + pmi->meet.timeout_ms;
    size_t len = strlen(request);
    if (write(pmi->fd, request, len) != (ssize_t)len || !read_line(pmi->fd, line, deadline)) {
        peal_text_printf(why, "the launcher does not answer '%.*s' on PMI_FD",
                         (int)strcspn(request, " \n"), request);
        return peal_now_ms() >= deadline ? PEAL_TIMEOUT : PEAL_SYSTEM;
    }
    (void)find_value(line, "cmd", command, sizeof command);
    (void)find_value(line, "rc", code, sizeof code);
    if (strcmp(command, answer) == 0 && strcmp(code, "0") == 0)
        return PEAL_OK;
    peal_text_printf(why, "the launcher answers '%.*s' on PMI_FD by '%.80s'",
                     (int)strcspn(request, "\n"), request, line);
    return PEAL_SYSTEM;
}

static void write_hex(const uint8_t *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * len] = '\0';
}

static bool read_hex(const char *text, uint8_t *out, size_t len)
{
    if (strlen(text) != 2 * len)
        return false;
    for (size_t i = 0; i < len; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], '\0'}, *end;
        out[i] = (uint8_t)strtoul(pair, &end, 16);
        if (end != pair + 2)
            return false;
    }
    return true;
}

static enum peal_status put_piece(struct pmi *pmi, const char *key, const uint8_t *bytes,
                                  size_t len, struct peal_text *why)
{
    char hex[2 * PIECE + 1], request[LINE], line[LINE];
    write_hex(bytes, len, hex);
    snprintf(request, sizeof request, "cmd=put kvsname=%s key=%s value=%s\n", pmi->space, key, hex);
    return ask(pmi, request, "put_result", line, why);
}

static enum peal_status get_piece(struct pmi *pmi, const char *key, uint8_t *out, size_t len,
                                  struct peal_text *why)
{
    char hex[2 * PIECE + 1], request[LINE], line[LINE];
    snprintf(request, sizeof request, "cmd=get kvsname=%s key=%s\n", pmi->space, key);
    enum peal_status status = ask(pmi, request, "get_result", line, why);
    if (status != PEAL_OK)
        return status;
    if (find_value(line, "value", hex, sizeof hex) && read_hex(hex, out, len))
        return PEAL_OK;
    peal_text_puts(why, "ranks exchange different things: they make different calls");
    return PEAL_MISMATCH;
}

static enum peal_status pmi_gather(struct peal_meet *meet, const void *own, size_t bytes, void *all,
                                   struct peal_text *why)
{
    struct pmi *pmi = (struct pmi *)(void *)meet;
    char key[64], line[LINE];
    /* Relaxed: only a number that is used once is needed. */
    unsigned long long round = atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed);
    for (size_t at = 0; at < bytes; at += PIECE) {
        size_t len = peal_size_min(bytes - at, PIECE);
        snprintf(key, sizeof key, "peal.%llu.%u.%zu", round, meet->rank, at / PIECE);
        enum peal_status status = put_piece(pmi, key, (const uint8_t *)own + at, len, why);
        if (status != PEAL_OK)
            return status;
    }
    enum peal_status met = ask(pmi, "cmd=barrier_in\n", "barrier_out", line, why);
    if (met != PEAL_OK)
        return met;
    for (uint32_t r = 0; r < meet->size; r++) {
        for (size_t at = 0; at < bytes; at += PIECE) {
            size_t len = peal_size_min(bytes - at, PIECE);
            snprintf(key, sizeof key, "peal.%llu.%u.%zu", round, r, at / PIECE);
            enum peal_status status =
                get_piece(pmi, key, (uint8_t *)all + r * bytes + at, len, why);
            if (status != PEAL_OK)
                return status;
        }
    }
    return PEAL_OK;
}

static void pmi_close(struct peal_meet *meet)
{
    free(meet);
}

static const struct peal_meet_ops ops = {"PMI", pmi_gather, pmi_close};

enum peal_status peal_meet_open_pmi(uint32_t timeout_ms, struct peal_text *why,
                                    struct peal_meet **out)
{
    const char *fd = getenv("PMI_FD"), *rank = getenv("PMI_RANK"), *size = getenv("PMI_SIZE");
    char line[LINE];
    if (!fd || !rank || !size) {
        peal_text_puts(why, "PMI_FD is set without PMI_RANK and PMI_SIZE");
        return PEAL_INVALID;
    }
    struct pmi *pmi = calloc(1, sizeof *pmi);
    if (!pmi)
        return PEAL_NO_MEMORY;
    pmi->fd = atoi(fd);
    pmi->meet = (struct peal_meet){.ops = &ops,
                                   .rank = (uint32_t)atoi(rank),
                                   .size = (uint32_t)atoi(size),
                                   .timeout_ms = timeout_ms};
    enum peal_status status =
        ask(pmi, "cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", line, why);
    if (status == PEAL_OK)
        status = ask(pmi, "cmd=get_my_kvsname\n", "my_kvsname", line, why);
    if (status == PEAL_OK && !find_value(line, "kvsname", pmi->space, sizeof pmi->space)) {
        peal_text_puts(why, "the launcher gives no name on PMI_FD for what ranks exchange");
        status = PEAL_SYSTEM;
    }
    if (status != PEAL_OK) {
        free(pmi);
        return status;
    }
    snprintf(pmi->meet.job, sizeof pmi->meet.job, "%.63s", pmi->space);
    atomic_store_explicit(&finalized_fd, pmi->fd + 1, memory_order_relaxed); /* partner: finalize */
    *out = &pmi->meet;
    return PEAL_OK;
}
