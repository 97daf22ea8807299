/* SPDX-License-Identifier: Apache-2.0 */
/* Which meeting a process has, which ranks share a host, and the job's secret. */
#include "run/net/meet.h"

#include "run/net/address.h"
#include "run/net/crypto.h"
#include "run/net/meet/services.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum peal_status peal_meet_open(uint32_t timeout_ms, struct peal_text *why, struct peal_meet **out)
{
    if (getenv("PEAL_MEET_FD"))
        return peal_meet_open_hosts(timeout_ms, why, out);
    if (getenv("PMIX_NAMESPACE"))
        return peal_meet_open_pmix(timeout_ms, why, out);
    if (getenv("PMI_FD"))
        return peal_meet_open_pmi(timeout_ms, why, out);
    peal_text_puts(why,
                   "there is no service through which ranks on several hosts could meet: none of "
                   "PEAL_MEET_FD (peal exec --hosts), PMIX_NAMESPACE (mpirun, prterun, srun) and "
                   "PMI_FD (MPICH) is set");
    return PEAL_UNSUPPORTED;
}

/* ---- hosts ---- */

void peal_meet_host(char out[static 160])
{
    const char *given = getenv("PEAL_HOST");
    char name[64] = "", boot[64];
    struct stat stack = {0};
    if (given && *given) {
        snprintf(out, 160, "PEAL_HOST %s", given);
        return;
    }
    (void)gethostname(name, sizeof name - 1);
    peal_address_boot(boot);
    /* Processes with different network stacks may not find each other otherwise. */
    (void)stat("/proc/self/ns/net", &stack);
    snprintf(out, 160, "%s %s %llu", name, boot, (unsigned long long)stack.st_ino);
}

enum peal_status peal_meet_nodes(struct peal_meet *meet, uint32_t *nodes, struct peal_text *why)
{
    enum { HOST = 160 };
    char own[HOST] = "", (*all)[HOST] = calloc(meet->size, HOST);
    if (!all)
        return PEAL_NO_MEMORY;
    peal_meet_host(own);
    enum peal_status status = peal_meet_gather(meet, own, HOST, all, why);
    uint32_t count = 0, rows = status == PEAL_OK ? meet->size : 0;
    for (uint32_t r = 0; r < rows; r++) {
        nodes[r] = count;
        for (uint32_t before = 0; before < r; before++) {
            if (memcmp(all[before], all[r], HOST) != 0)
                continue;
            nodes[r] = nodes[before];
            break;
        }
        if (nodes[r] == count)
            count++;
    }
    free(all);
    return status;
}

/* ---- the secret ---- */

static int digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c | 0x20) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* 64 digits, and then nothing but line ends. */
static bool is_hex(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (i < 64 ? digit(bytes[i]) < 0 : bytes[i] != '\n')
            return false;
    }
    return len >= 64;
}

/* 64 hexadecimal digits are the secret itself; anything else of 32 bytes or more is hashed. */
static void make_secret(const char *bytes, size_t len, uint8_t out[static PEAL_NET_SECRET])
{
    char hex[PEAL_SHA256_HEX + 1];
    struct peal_sha256 hash;
    if (is_hex(bytes, len)) {
        memcpy(hex, bytes, 64);
    } else {
        peal_sha256_begin(&hash);
        peal_sha256_add(&hash, bytes, len);
        peal_sha256_end(&hash, hex);
    }
    for (size_t i = 0; i < PEAL_NET_SECRET; i++)
        out[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
}

static enum peal_status read_secret(const char *path, uint8_t out[static PEAL_NET_SECRET],
                                    struct peal_text *why)
{
    char bytes[4096];
    struct stat info;
    enum peal_status status = PEAL_INVALID;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &info) != 0) {
        peal_text_printf(why, "PEAL_SECRET_FILE: cannot read '%s': %s", path, strerror(errno));
        goto release;
    }
    if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
        peal_text_printf(why,
                         "PEAL_SECRET_FILE: '%s' must be a file of this user that no other user "
                         "may read (chmod 600)",
                         path);
        goto release;
    }
    ssize_t got = read(fd, bytes, sizeof bytes);
    if (got < PEAL_NET_SECRET) {
        peal_text_printf(why, "PEAL_SECRET_FILE: '%s' must have at least %d bytes", path,
                         PEAL_NET_SECRET);
        goto release;
    }
    make_secret(bytes, (size_t)got, out);
    explicit_bzero(bytes, sizeof bytes);
    status = PEAL_OK;
release:
    if (fd >= 0)
        close(fd);
    return status;
}

/* What ranks exchange about their secrets. */
struct offer {
    uint32_t status; /* of reading the file */
    uint32_t has_file;
    uint8_t secret[PEAL_NET_SECRET]; /* rank 0's, if the service has to carry it */
    char why[216];
};

static enum peal_status compare_offers(const struct offer *offers, uint32_t size,
                                       struct peal_text *why)
{
    for (uint32_t r = 0; r < size; r++) {
        if (offers[r].status != PEAL_OK) {
            peal_text_printf(why, "rank %u: %.*s", r, (int)sizeof offers[r].why, offers[r].why);
            return (enum peal_status)offers[r].status;
        }
        if (offers[r].has_file != offers[0].has_file) {
            uint32_t with = offers[0].has_file ? 0 : r;
            peal_text_printf(why, "PEAL_SECRET_FILE is set on rank %u and not on rank %u", with,
                             r - with);
            return PEAL_INVALID;
        }
    }
    return PEAL_OK;
}

/* Rank 0's share of an exchange in which the service carries the secret. */
static void offer_new(const struct peal_meet *meet, bool quiet, struct offer *own)
{
    if (meet->rank != 0)
        return;
    if (!peal_random_bytes(own->secret, sizeof own->secret)) {
        own->status = PEAL_SYSTEM;
        snprintf(own->why, sizeof own->why, "the system has no random bytes for a secret");
    }
    static _Atomic bool said;
    if (!quiet && !atomic_exchange(&said, true))
        fprintf(stderr,
                "peal: the job's secret goes through %s and is as safe as that; PEAL_SECRET_FILE "
                "gives ranks one of your own\n",
                meet->ops->name);
}

enum peal_status peal_meet_secret(struct peal_meet *meet, bool quiet,
                                  uint8_t out[static PEAL_NET_SECRET], struct peal_text *why)
{
    const char *path = getenv("PEAL_SECRET_FILE");
    struct offer own = {.has_file = path && *path}, *all = calloc(meet->size, sizeof *all);
    struct peal_text reason = {0};
    uint8_t secret[PEAL_NET_SECRET] = {0};
    if (!all)
        return PEAL_NO_MEMORY;
    if (own.has_file) {
        own.status = read_secret(path, secret, &reason);
        snprintf(own.why, sizeof own.why, "%s", peal_text_get(&reason));
    } else if (meet->has_secret) {
        memcpy(secret, meet->secret, sizeof secret);
    } else {
        offer_new(meet, quiet, &own);
    }
    enum peal_status status = peal_meet_gather(meet, &own, sizeof own, all, why);
    if (status == PEAL_OK)
        status = compare_offers(all, meet->size, why);
    if (status == PEAL_OK && !own.has_file && !meet->has_secret)
        memcpy(secret, all[0].secret, sizeof secret);
    if (status == PEAL_OK)
        memcpy(out, secret, sizeof secret);
    explicit_bzero(secret, sizeof secret);
    explicit_bzero(&own, sizeof own);
    explicit_bzero(all, meet->size * sizeof *all);
    free(all);
    peal_text_release(&reason);
    return status;
}
