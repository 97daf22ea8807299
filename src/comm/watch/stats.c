/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of peal_comm_stats, and the table of PEAL_STATS. */
#include "comm/watch/watch.h"

#include "comm/core/growth.h"
#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(uint32_t collective)
{
    if (collective == PEAL_CALL_KERNEL)
        return "kernel";
    return peal_collective_name(collective);
}

/* The library's own calls are not the program's. */
static bool is_public(uint32_t collective)
{
    return collective != PEAL_CALL_NONE && collective <= PEAL_CALL_KERNEL;
}

static void add_tally(struct peal_stats *to, const struct peal_tally *tally)
{
    to->calls += tally->calls;
    to->failures += tally->failures;
    to->bytes += tally->bytes;
    to->direct += tally->direct;
    to->wait_ns += tally->wait_ns;
}

enum peal_status peal_comm_stats(const struct peal_comm *comm, const char *collective,
                                 struct peal_stats *out)
{
    struct peal_stats sum = {0};
    bool found = false;
    if (!comm || !out)
        return PEAL_INVALID;
    size_t given = peal_growth_size(out->struct_size, PEAL_STATS_FIRST_BYTES);
    if (given < PEAL_STATS_FIRST_BYTES)
        return PEAL_INVALID;
    /* all_to_all_v has two rows: a call that sends nothing ends in its first part. */
    for (uint32_t c = 0; c < PEAL_CALL_COUNT; c++) {
        if (!is_public(c) || (collective && strcmp(collective, name_of(c)) != 0))
            continue;
        add_tally(&sum, &comm->engine.tallies[c]);
        found = true;
    }
    if (!found)
        return PEAL_INVALID;
    if (!collective) {
        sum.sent = comm->sent.messages;
        sum.sent_bytes = comm->sent.bytes;
        sum.received = comm->received.messages;
        sum.received_bytes = comm->received.bytes;
    }
    sum.struct_size = out->struct_size;
    peal_growth_write(out, given, &sum, sizeof sum);
    return PEAL_OK;
}

/* ---- the table ---- */

static bool is_wanted(const struct peal_comm *comm)
{
    const char *wish = getenv("PEAL_STATS");
    if (!wish || !wish[0] || strcmp(wish, "0") == 0)
        return false;
    return comm->team->rank == 0 || strcmp(wish, "all") == 0;
}

static void print_row(const char *name, const struct peal_stats *row)
{
    fprintf(stderr, "  %-18s %10" PRIu64 " %6" PRIu64 " %10" PRIu64 " %16" PRIu64 " %12.3f\n", name,
            row->calls, row->failures, row->direct, row->bytes, (double)row->wait_ns / 1e6);
}

void peal_stats_print(const struct peal_comm *comm)
{
    struct peal_stats total = {0};
    if (!is_wanted(comm) || peal_comm_stats(comm, NULL, &total) != PEAL_OK)
        return;
    fprintf(stderr, "peal: '%s', rank %u of %u\n", comm->team->job, comm->team->rank,
            comm->team->size);
    fprintf(stderr, "  %-18s %10s %6s %10s %16s %12s\n", "collective", "calls", "failed", "direct",
            "bytes", "waited ms");
    for (uint32_t c = 0; c < PEAL_CALL_COUNT; c++) {
        struct peal_stats row = {0};
        /* The first part of an all_to_all_v has the same name. */
        if (!is_public(c) || c == PEAL_CALL_COUNTS)
            continue;
        if (peal_comm_stats(comm, name_of(c), &row) == PEAL_OK && row.calls + row.failures > 0)
            print_row(name_of(c), &row);
    }
    print_row("all", &total);
    if (total.sent + total.received > 0)
        fprintf(stderr,
                "  messages: %" PRIu64 " sent with %" PRIu64 " bytes, %" PRIu64
                " received with %" PRIu64 "\n",
                total.sent, total.sent_bytes, total.received, total.received_bytes);
}
