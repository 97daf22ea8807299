/* SPDX-License-Identifier: Apache-2.0 */
/* See address.h. */
#include "run/net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- addresses ---- */

static bool from_socket(const struct sockaddr *address, struct peal_address *out)
{
    *out = (struct peal_address){0};
    if (address && address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        out->family = 4;
        out->port = ntohs(in->sin_port);
        memcpy(out->bytes, &in->sin_addr, 4);
        out->loopback = out->bytes[0] == 127;
        return true;
    }
    if (address && address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)address;
        out->family = 6;
        out->port = ntohs(in->sin6_port);
        memcpy(out->bytes, &in->sin6_addr, 16);
        out->loopback = IN6_IS_ADDR_LOOPBACK(&in->sin6_addr);
        /* Link-local ones mean something on one link only, whose name the peer does not know. */
        return !IN6_IS_ADDR_LINKLOCAL(&in->sin6_addr);
    }
    return false;
}

socklen_t peal_address_socket(const struct peal_address *address, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (address->family == 4) {
        struct sockaddr_in *in = (void *)out;
        in->sin_family = AF_INET;
        in->sin_port = htons(address->port);
        memcpy(&in->sin_addr, address->bytes, 4);
        return sizeof *in;
    }
    struct sockaddr_in6 *in = (void *)out;
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(address->port);
    memcpy(&in->sin6_addr, address->bytes, 16);
    return sizeof *in;
}

void peal_address_print(const struct sockaddr_storage *address, char out[static 64])
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
        snprintf(out, 64, "%s:%u", text, ntohs(in->sin_port));
        return;
    }
    const struct sockaddr_in6 *in = (const void *)address;
    inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text);
    snprintf(out, 64, "[%s]:%u", text, ntohs(in->sin6_port));
}

static bool shares_prefix(const struct peal_address *a, const struct peal_address *b, uint32_t bits)
{
    if (a->family != b->family || bits > (a->family == 4 ? 32u : 128u))
        return false;
    uint32_t whole = bits / 8, rest = bits % 8;
    if (memcmp(a->bytes, b->bytes, whole) != 0)
        return false;
    uint8_t mask = (uint8_t)(0xff00 >> rest);
    return rest == 0 || ((a->bytes[whole] ^ b->bytes[whole]) & mask) == 0;
}

/* ---- what PEAL_NET says ---- */

static bool parse_subnet(char *text, struct peal_address *address, uint32_t *prefix)
{
    char *slash = strchr(text, '/');
    if (slash)
        *slash = '\0';
    *address = (struct peal_address){0};
    if (inet_pton(AF_INET, text, address->bytes) == 1)
        address->family = 4;
    else if (inet_pton(AF_INET6, text, address->bytes) == 1)
        address->family = 6;
    uint32_t longest = address->family == 4 ? 32 : 128;
    char *end = NULL;
    *prefix = slash ? (uint32_t)strtoul(slash + 1, &end, 10) : longest;
    bool whole = !slash || (end != slash + 1 && *end == '\0');
    if (slash)
        *slash = '/';
    return address->family != 0 && whole && *prefix <= longest;
}

enum peal_status peal_address_parse(const char *text, struct peal_address_filter *out,
                                    struct peal_text *why)
{
    *out = (struct peal_address_filter){0};
    while (text && *text) {
        size_t len = strcspn(text, ",");
        if (out->count == PEAL_NET_FILTERS || len == 0 || len >= sizeof out->at[0].name) {
            peal_text_printf(why, "PEAL_NET: at most %d interfaces or subnets, separated by commas",
                             PEAL_NET_FILTERS);
            return PEAL_INVALID;
        }
        char *name = out->at[out->count].name;
        memcpy(name, text, len);
        name[len] = '\0';
        out->at[out->count].subnet =
            parse_subnet(name, &out->at[out->count].address, &out->at[out->count].prefix);
        if (!out->at[out->count].subnet && if_nametoindex(name) == 0) {
            peal_text_printf(
                why, "PEAL_NET: '%s' is neither an interface of this host nor a subnet", name);
            return PEAL_INVALID;
        }
        out->count++;
        text += len;
        text += *text == ',';
    }
    return PEAL_OK;
}

static bool is_wanted(const struct peal_address_filter *filter, const char *name,
                      const struct peal_address *address)
{
    for (uint32_t i = 0; i < filter->count; i++) {
        if (filter->at[i].subnet
                ? shares_prefix(address, &filter->at[i].address, filter->at[i].prefix)
                : strcmp(filter->at[i].name, name) == 0)
            return true;
    }
    return filter->count == 0;
}

/* ---- listening ---- */

void peal_address_boot(char out[static 64])
{
    ssize_t got = 0;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        got = read(fd, out, 63);
        close(fd);
    }
    out[got > 0 ? got : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

/* Processes with the same number reach each other's loopback. */
static uint64_t stack_number(void)
{
    char boot[64];
    struct stat info = {0};
    peal_address_boot(boot);
    if (boot[0] == '\0' || stat("/proc/self/ns/net", &info) != 0)
        return 0; /* not known: loopback is not tried */
    return peal_hash_bytes(boot, strlen(boot), (uint64_t)info.st_ino) | 1;
}

static int listen_at(struct peal_address *address, bool any)
{
    struct sockaddr_storage at;
    struct peal_address to = *address;
    int one = 1;
    if (any)
        memset(to.bytes, 0, sizeof to.bytes);
    socklen_t len = peal_address_socket(&to, &at);
    int fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (at.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&at, len) != 0 || listen(fd, 128) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0) {
        close(fd);
        return -1;
    }
    struct peal_address bound;
    (void)from_socket((struct sockaddr *)&at, &bound);
    address->port = bound.port;
    return fd;
}

/* With a filter, one socket per address; without, one per family for all addresses. */
static bool add_address(const struct peal_address_filter *filter, struct peal_address *address,
                        struct peal_address_block *block, int *fds, uint32_t *count)
{
    bool any = filter->count == 0;
    if (block->count == PEAL_ADDRESSES || *count == PEAL_LISTENERS)
        return false;
    if (any) {
        for (uint32_t i = 0; i < block->count; i++) {
            if (block->at[i].family == address->family)
                address->port = block->at[i].port;
        }
    }
    if (address->port == 0) {
        int fd = listen_at(address, any);
        if (fd < 0)
            return false;
        fds[(*count)++] = fd;
    }
    block->at[block->count++] = *address;
    return true;
}

enum peal_status peal_address_listen(const struct peal_address_filter *filter,
                                     struct peal_address_block *block,
                                     int fds[static PEAL_LISTENERS], uint32_t *count,
                                     struct peal_text *why)
{
    struct ifaddrs *all = NULL;
    memset(block, 0, sizeof *block);
    block->stack = stack_number();
    *count = 0;
    if (getifaddrs(&all) != 0) {
        peal_text_printf(why, "cannot list network interfaces: %s", strerror(errno));
        return PEAL_SYSTEM;
    }
    for (struct ifaddrs *at = all; at; at = at->ifa_next) {
        struct peal_address address;
        if (!(at->ifa_flags & IFF_UP) || !from_socket(at->ifa_addr, &address))
            continue;
        address.port = 0;
        if (is_wanted(filter, at->ifa_name, &address))
            (void)add_address(filter, &address, block, fds, count);
    }
    freeifaddrs(all);
    if (block->count > 0)
        return PEAL_OK;
    peal_text_puts(why, filter->count ? "PEAL_NET: no address of this host is among those named"
                                      : "this host has no network address to listen on");
    return PEAL_UNSUPPORTED;
}

/* ---- which address of a peer ---- */

/* Would the system know a way there? Sends nothing. */
static bool is_routed(const struct peal_address *address)
{
    struct sockaddr_storage at;
    socklen_t len = peal_address_socket(address, &at);
    int fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool routed = connect(fd, (struct sockaddr *)&at, len) == 0;
    close(fd);
    return routed;
}

/* 0: no way there; otherwise the more the better. */
static uint32_t judge(const struct peal_address_block *own, const struct peal_address *theirs,
                      bool same_stack)
{
    if (theirs->port == 0 || (theirs->family != 4 && theirs->family != 6))
        return 0;
    if (same_stack)
        return 1 + 4 * theirs->loopback + (theirs->family == 4);
    if (theirs->loopback)
        return 0;
    uint32_t near = 0;
    for (uint32_t i = 0; i < own->count; i++) {
        if (shares_prefix(&own->at[i], theirs, theirs->family == 4 ? 32 : 128))
            return 0; /* also this host's: a bridge that all hosts number alike */
        if (shares_prefix(&own->at[i], theirs, theirs->family == 4 ? 24 : 64))
            near = 4;
    }
    if (!is_routed(theirs))
        return 0;
    return 1 + near + (theirs->family == 4);
}

uint32_t peal_address_order(const struct peal_address_block *own,
                            const struct peal_address_block *theirs,
                            struct peal_address out[static PEAL_ADDRESSES])
{
    uint32_t ranks[PEAL_ADDRESSES], count = 0;
    bool same_stack = own->stack != 0 && own->stack == theirs->stack;
    uint32_t given = theirs->count < PEAL_ADDRESSES ? theirs->count : PEAL_ADDRESSES;
    for (uint32_t i = 0; i < given; i++) {
        uint32_t rank = judge(own, &theirs->at[i], same_stack);
        if (rank == 0)
            continue;
        uint32_t place = count++;
        while (place > 0 && ranks[place - 1] < rank) {
            ranks[place] = ranks[place - 1];
            out[place] = out[place - 1];
            place--;
        }
        ranks[place] = rank;
        out[place] = theirs->at[i];
    }
    return count;
}
