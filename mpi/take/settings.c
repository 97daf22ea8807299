/* SPDX-License-Identifier: Apache-2.0 */
/* See settings.h. */
#include "settings.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[PEAL_MPI_COLLECTIVES] = {
    "barrier",
    "bcast",
    "allreduce",
    "reduce",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "gather",
    "scatter",
    "reduce_scatter_block",
    "reduce_scatter",
    "scan",
    "exscan",
    "gatherv",
    "scatterv",
    "alltoallw",
};

const struct peal_mpi_settings *_Atomic peal_mpi_settings_read;
static struct peal_mpi_settings settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Calls before a communicator is opened; see peal_mpi_score. */
enum { DEFAULT_ATTACH = 16 };

const char *peal_mpi_collective_name(enum peal_mpi_collective collective)
{
    return names[collective];
}

uint64_t peal_mpi_hash(uint64_t hash, const void *data, uint64_t len)
{
    const unsigned char *bytes = data;
    for (uint64_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void refuse(const char *variable, const char *text, const char *wanted)
{
    fprintf(stderr, "libpeal_mpi: %s: '%.80s' is not %s; Peal is off\n", variable, text, wanted);
    settings.off = true;
}

/* A number as in 64K, 2M or 100; false if it is none. */
static bool read_size(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || text[0] == '-')
        return false;
    unsigned shift = 0;
    if (*end == 'K' || *end == 'k')
        shift = 10;
    else if (*end == 'M' || *end == 'm')
        shift = 20;
    else if (*end == 'G' || *end == 'g')
        shift = 30;
    if (shift)
        end++;
    if (*end || value > UINT64_MAX >> shift)
        return false;
    *out = (uint64_t)value << shift;
    return true;
}

/* on, off, or LEAST-MOST, either of which may be missing. */
static bool read_limits(char *text, struct peal_mpi_rule *rule)
{
    rule->min_bytes = 0;
    rule->max_bytes = UINT64_MAX;
    if (strcmp(text, "on") == 0)
        return true;
    if (strcmp(text, "off") == 0) {
        rule->min_bytes = 1;
        rule->max_bytes = 0;
        return true;
    }
    char *dash = strchr(text, '-');
    if (!dash)
        return false;
    *dash++ = '\0';
    rule->is_sized = true;
    return (!text[0] || read_size(text, &rule->min_bytes)) &&
           (!dash[0] || read_size(dash, &rule->max_bytes));
}

static bool read_communicator(const char *text, struct peal_mpi_rule *rule)
{
    uint64_t ranks;
    if (strcmp(text, "hosts") == 0) {
        rule->spans = true;
        return true;
    }
    if (read_size(text, &ranks) && ranks <= UINT32_MAX) {
        rule->has_ranks = true;
        rule->ranks = (uint32_t)ranks;
        return true;
    }
    rule->has_name = true;
    snprintf(rule->name, sizeof rule->name, "%s",
             strcmp(text, "world") == 0 ? "MPI_COMM_WORLD" : text);
    return text[0] != '\0' && strlen(text) < sizeof rule->name;
}

static bool read_rule(char *text, struct peal_mpi_rule *rule)
{
    char *value = strchr(text, '=');
    if (!value)
        return false;
    *value++ = '\0';
    char *communicator = strchr(text, '@');
    if (communicator)
        *communicator++ = '\0';
    rule->collective = strcmp(text, "*") == 0 ? -1 : PEAL_MPI_COLLECTIVES;
    for (int i = 0; i < PEAL_MPI_COLLECTIVES; i++) {
        if (strcmp(text, names[i]) == 0)
            rule->collective = i;
    }
    if (rule->collective == PEAL_MPI_COLLECTIVES)
        return false;
    if (communicator && !read_communicator(communicator, rule))
        return false;
    return read_limits(value, rule);
}

static void read_rules(const char *text)
{
    char *copy = strdup(text), *rest = copy;
    for (char *item = strsep(&rest, ","); item; item = strsep(&rest, ",")) {
        struct peal_mpi_rule rule = {0};
        char shown[80];
        snprintf(shown, sizeof shown, "%s", item);
        if (!item[0])
            continue;
        if (settings.nrules == PEAL_MPI_MAX_RULES || !read_rule(item, &rule)) {
            refuse("PEAL_MPI_RULES", shown,
                   "COLLECTIVE[@COMMUNICATOR]=on, =off or =LEAST-MOST (at most 32 of them)");
            break;
        }
        settings.rules[settings.nrules++] = rule;
    }
    free(copy);
}

/* The index of the variable's value among `words`; 0 if it is not set, -1 after reporting another
 * value. */
static int read_choice(const char *variable, const char *const *words, const char *wanted)
{
    const char *text = getenv(variable);
    if (!text || !text[0])
        return 0;
    for (int i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0)
            return i;
    }
    refuse(variable, text, wanted);
    return -1;
}

static void read_settings(void)
{
    static const char *const on_off[] = {"on", "off", NULL};
    static const char *const flag[] = {"0", "1", NULL};
    static const char *const stats[] = {"0", "1", "all", NULL};
    const char *attach = getenv("PEAL_MPI_ATTACH"), *rules = getenv("PEAL_MPI_RULES");
    settings.attach = DEFAULT_ATTACH;
    settings.stats = read_choice("PEAL_MPI_STATS", stats, "0, 1 or all");
    settings.check = read_choice("PEAL_MPI_CHECK", flag, "0 or 1") == 1;
    settings.tabled = read_choice("PEAL_MPI_TABLE", on_off, "on or off") == 0;
    if (attach && !read_size(attach, &settings.attach))
        refuse("PEAL_MPI_ATTACH", attach, "a number of calls");
    if (rules)
        read_rules(rules);
    if (read_choice("PEAL_MPI", on_off, "on or off") != 0)
        settings.off = true;
    uint64_t hash = PEAL_MPI_HASH_START;
    hash = peal_mpi_hash(hash, &settings.off, sizeof settings.off);
    hash = peal_mpi_hash(hash, &settings.check, sizeof settings.check);
    hash = peal_mpi_hash(hash, &settings.tabled, sizeof settings.tabled);
    hash = peal_mpi_hash(hash, &settings.attach, sizeof settings.attach);
    if (rules)
        hash = peal_mpi_hash(hash, rules, strlen(rules));
    settings.hash = hash;
}

const struct peal_mpi_settings *peal_mpi_settings_read_own(void)
{
    pthread_once(&once, read_settings);
    /* Release: all of it is written; partner: peal_mpi_settings. */
    atomic_store_explicit(&peal_mpi_settings_read, &settings, memory_order_release);
    return &settings;
}
