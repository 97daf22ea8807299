/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a net: which member, and the exchange of addresses. */
#include "run/net/net.h"

#include "run/net/meet.h"
#include "run/net/crypto.h"
#include "run/net/members.h"

#include <stdlib.h>
#include <string.h>

static const struct peal_net_member members[] = {
    {"tcp", peal_net_open_tcp, peal_net_meet_tcp},
    {"ucx", peal_net_open_ucx, peal_net_meet_ucx},
};

/* "tcp:eth0": the member, and in *where what follows its name. */
static const struct peal_net_member *find_member(const char *text, const char **where)
{
    size_t len = strcspn(text, ":");
    *where = text[len] == ':' ? text + len + 1 : "";
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (strlen(members[i].name) == len && strncmp(members[i].name, text, len) == 0)
            return &members[i];
    }
    return NULL;
}

/* What each rank says when it has opened its side. */
struct card {
    uint32_t status;
    uint32_t crypt;
    char member[8];
    char why[208];
    uint8_t secret[PEAL_MAC]; /* equal for equal secrets; tells nothing else about them */
    uint8_t address[PEAL_NET_ADDRESS];
};

/* What would otherwise be refused in the first connection, when the reason reaches one rank only. */
static enum peal_status compare_settings(const struct card *cards, uint32_t size,
                                         struct peal_text *why)
{
    for (uint32_t r = 1; r < size; r++) {
        if (cards[r].crypt != cards[0].crypt) {
            peal_text_printf(why,
                             "PEAL_NET_CRYPT is %u on rank %u and %u on rank 0: it must be the "
                             "same everywhere",
                             cards[r].crypt, r, cards[0].crypt);
            return PEAL_MISMATCH;
        }
        if (!peal_mac_is_equal(cards[r].secret, cards[0].secret)) {
            peal_text_printf(why,
                             "rank %u has another secret than rank 0: PEAL_SECRET_FILE must "
                             "hold the same bytes everywhere",
                             r);
            return PEAL_MISMATCH;
        }
    }
    return PEAL_OK;
}

/* PEAL_OK if every rank could, and by the same member; otherwise why the first could not. */
static enum peal_status compare_cards(const struct card *cards, uint32_t size, const char *name,
                                      struct peal_text *why)
{
    for (uint32_t r = 0; r < size; r++) {
        if (cards[r].status != PEAL_OK) {
            peal_text_printf(why, "rank %u: %.*s", r, (int)sizeof cards[r].why, cards[r].why);
            return (enum peal_status)cards[r].status;
        }
        if (strncmp(cards[r].member, name, sizeof cards[r].member) != 0) {
            peal_text_printf(why,
                             "rank %u uses transport '%.8s' and this rank '%s': PEAL_NET must be "
                             "the same everywhere",
                             r, cards[r].member, name);
            return PEAL_MISMATCH;
        }
    }
    return compare_settings(cards, size, why);
}

/* The caller's word, or that of PEAL_NET_CRYPT. */
static bool wants_crypt(const struct peal_net_config *config)
{
    const char *text = getenv("PEAL_NET_CRYPT");
    return config->crypt || (text && strcmp(text, "1") == 0);
}

static uint32_t choose_silence(const struct peal_net_config *config)
{
    const char *text = getenv("PEAL_NET_SILENCE");
    unsigned long seconds = config->silence_s;
    if (seconds == 0 && text)
        seconds = strtoul(text, NULL, 10);
    if (seconds < PEAL_NET_MIN_SILENCE || seconds > PEAL_NET_MAX_SILENCE)
        return PEAL_NET_SILENCE;
    return (uint32_t)seconds;
}

enum peal_status peal_net_open(const struct peal_net_config *config, struct peal_meet *meet,
                               struct peal_text *why, struct peal_net **out)
{
    struct peal_net_config settings = *config;
    const char *where = "", *text = config->transport ? config->transport : getenv("PEAL_NET");
    const struct peal_net_member *member = find_member(text && *text ? text : "tcp", &where);
    struct card own = {0}, *cards = calloc(config->size, sizeof *cards);
    struct peal_net *net = NULL;
    uint8_t *addresses = calloc(config->size, PEAL_NET_ADDRESS);
    struct peal_text reason = {0};
    enum peal_status status = PEAL_NO_MEMORY;
    if (!cards || !addresses)
        goto release;
    if (member) {
        settings.crypt = wants_crypt(config);
        settings.silence_s = choose_silence(config);
        own.status = member->open(&settings, where, &reason, &net, own.address);
    } else {
        own.status = PEAL_INVALID;
        peal_text_printf(&reason, "PEAL_NET: there is no transport '%s'", text);
    }
    if (own.status != PEAL_OK && reason.len == 0)
        peal_text_puts(&reason, peal_status_text((enum peal_status)own.status));
    static const char label[] = "peal secret";
    own.crypt = settings.crypt;
    /* A member that needs no cryptography may not have loaded it. */
    struct peal_text missing = {0};
    if (own.status == PEAL_OK && config->secret && peal_crypto_load(&missing) == PEAL_OK)
        (void)peal_mac(config->secret, label, sizeof label, NULL, 0, own.secret);
    peal_text_release(&missing);
    strncpy(own.member, member ? member->name : "?", sizeof own.member);
    strncpy(own.why, peal_text_get(&reason), sizeof own.why - 1);
    status = peal_meet_gather(meet, &own, sizeof own, cards, why);
    if (status == PEAL_OK)
        status = compare_cards(cards, config->size, own.member, why);
    if (status == PEAL_OK) {
        for (uint32_t r = 0; r < config->size; r++)
            memcpy(addresses + (size_t)r * PEAL_NET_ADDRESS, cards[r].address, PEAL_NET_ADDRESS);
        status = member->meet(net, addresses);
    }
    if (status == PEAL_OK)
        *out = net;
    else if (net)
        peal_net_abandon(net);
release:
    peal_text_release(&reason);
    free(addresses);
    free(cards);
    return status;
}
