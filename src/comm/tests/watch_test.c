/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics, observers and traces report what the program did. */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1000, CALLS = 20 };

static void run(uint32_t ranks, children_body *body, const void *context)
{
    assert_true(children_run(ranks, body, context));
}

static int counts(struct peal_comm *comm, const void *context)
{
    static float x[4 * COUNT], y[4 * COUNT];
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    struct peal_stats stats = {.struct_size = sizeof stats}, none = {.struct_size = sizeof none};
    struct peal_request *request;
    (void)context;
    for (int i = 0; i < CALLS; i++)
        EXPECT(peal_allreduce(comm, x, y, COUNT, PEAL_F32, PEAL_SUM) == PEAL_OK);
    EXPECT(peal_iallreduce(comm, x, y, COUNT, PEAL_F64, PEAL_SUM, &request) == PEAL_OK);
    EXPECT(peal_request_wait(request) == PEAL_OK);
    EXPECT(peal_comm_stats(comm, "allreduce", &stats) == PEAL_OK);
    EXPECT(stats.calls == CALLS + 1 && stats.failures == 0);
    EXPECT(stats.bytes == CALLS * COUNT * 4 + COUNT * 8);
    EXPECT(stats.sent == 0);
    EXPECT(peal_allgather(comm, x, y, COUNT, PEAL_F32) == PEAL_OK);
    EXPECT(peal_comm_stats(comm, "allgather", &stats) == PEAL_OK);
    EXPECT(stats.calls == 1 && stats.bytes == (uint64_t)size * COUNT * 4);
    EXPECT(peal_comm_stats(comm, "scan", &none) == PEAL_OK && none.calls == 0);
    EXPECT(peal_comm_stats(comm, "nonsense", &none) == PEAL_INVALID);
    EXPECT(peal_comm_stats(NULL, NULL, &none) == PEAL_INVALID);
    struct peal_message out = {.data = x, .bytes = 24, .rank = (rank + 1) % size, .tag = 1};
    struct peal_message in = {.data = y, .bytes = 100, .rank = (rank + size - 1) % size, .tag = 1};
    EXPECT(peal_sendrecv(comm, &out, &in) == PEAL_OK);
    EXPECT(peal_comm_stats(comm, NULL, &stats) == PEAL_OK);
    EXPECT(stats.calls == CALLS + 2);
    EXPECT(stats.sent == 1 && stats.sent_bytes == 24);
    EXPECT(stats.received == 1 && stats.received_bytes == 24);
    return 0;
}

static int direct(struct peal_comm *comm, const void *context)
{
    struct peal_stats stats = {0};
    void *memory;
    (void)context;
    EXPECT(peal_symmetric_alloc(comm, 1 << 20, &memory) == PEAL_OK);
    EXPECT(peal_allreduce(comm, memory, memory, 1 << 18, PEAL_F32, PEAL_SUM) == PEAL_OK);
    EXPECT(peal_comm_stats(comm, "allreduce", &stats) == PEAL_OK);
    EXPECT(stats.calls == 1 && stats.direct == 1);
    return 0;
}

TEST(statistics_count_calls_bytes_and_messages)
{
    run(2, counts, NULL);
    run(3, counts, NULL);
    run(2, direct, NULL);
}

struct seen {
    int begins, ends, blocking;
    bool is_odd;
    uint64_t bytes;
};

static void on_begin(void *context, const struct peal_call_event *event)
{
    struct seen *seen = context;
    seen->begins++;
    seen->blocking += event->blocking;
    seen->is_odd |= event->status != PEAL_PENDING || !event->algo[0];
}

static void on_end(void *context, const struct peal_call_event *event)
{
    struct seen *seen = context;
    seen->ends++;
    seen->bytes += event->bytes;
    seen->is_odd |= event->status != PEAL_OK || strcmp(event->name, "allreduce") != 0;
}

static int observe(struct peal_comm *comm, const void *context)
{
    static float x[COUNT], y[COUNT];
    struct seen seen = {0};
    struct peal_observer observer = {
        .struct_size = sizeof observer, .context = &seen, .begin = on_begin, .end = on_end};
    struct peal_request *requests[6]; /* more than are under way at a time */
    (void)context;
    EXPECT(peal_comm_set_observer(comm, &observer) == PEAL_OK);
    for (int i = 0; i < CALLS; i++)
        EXPECT(peal_allreduce(comm, x, y, COUNT, PEAL_F32, PEAL_SUM) == PEAL_OK);
    for (int i = 0; i < 6; i++)
        EXPECT(peal_iallreduce(comm, x + i, y + i, 1, PEAL_F32, PEAL_SUM, &requests[i]) == PEAL_OK);
    EXPECT(peal_request_wait_all(requests, 6, NULL) == PEAL_OK);
    EXPECT(seen.begins == CALLS + 6 && seen.ends == CALLS + 6 && seen.blocking == CALLS);
    EXPECT(seen.bytes == CALLS * COUNT * 4 + 6 * 4 && !seen.is_odd);
    EXPECT(peal_comm_set_observer(comm, NULL) == PEAL_OK);
    EXPECT(peal_barrier(comm) == PEAL_OK && seen.begins == CALLS + 6);
    observer.struct_size = sizeof observer + 8;
    char newer[sizeof observer + 8];
    memset(newer, 1, sizeof newer);
    memcpy(newer, &observer, sizeof observer);
    EXPECT(peal_comm_set_observer(comm, (const void *)newer) == PEAL_UNSUPPORTED);
    return 0;
}

TEST(observers_see_every_call_begin_and_end)
{
    run(3, observe, NULL);
}

static int trace(struct peal_comm *comm, const void *context)
{
    static float x[COUNT], y[COUNT];
    struct peal_comm *other;
    struct peal_request *requests[6];
    (void)context;
    EXPECT(peal_comm_dup(comm, &other) == PEAL_OK);
    for (int i = 0; i < CALLS; i++)
        EXPECT(peal_allreduce(comm, x, y, COUNT, PEAL_F32, PEAL_SUM) == PEAL_OK);
    for (int i = 0; i < 6; i++)
        EXPECT(peal_iallreduce(other, x + i, y + i, 1, PEAL_F32, PEAL_SUM, &requests[i]) ==
               PEAL_OK);
    EXPECT(peal_request_wait_all(requests, 6, NULL) == PEAL_OK);
    peal_comm_close(other);
    return 0;
}

static size_t count_texts(const char *in, const char *text)
{
    size_t found = 0;
    for (const char *at = in; (at = strstr(at, text)) != NULL; at += strlen(text))
        found++;
    return found;
}

/* The contents of the only file in the folder. */
static char *read_only_file(const char *folder)
{
    char path[1024] = "", *text = calloc(1, 1 << 22);
    DIR *dir = opendir(folder);
    int files = 0;
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        files++;
    }
    closedir(dir);
    FILE *file = fopen(path, "r");
    assert_int_equal(files, 1);
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 22) - 1, file) > 0);
    fclose(file);
    unlink(path);
    return text;
}

TEST(traces_of_all_ranks_are_one_file)
{
    char folder[] = "/tmp/peal-watch-XXXXXX";
    assert_non_null(mkdtemp(folder));
    setenv("PEAL_TRACE", folder, 1);
    run(3, trace, NULL);
    unsetenv("PEAL_TRACE");
    char *text = read_only_file(folder);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(count_texts(text, "\"name\":\"allreduce\""), 3 * (CALLS + 6));
    assert_true(count_texts(text, "\"name\":\"wait\"") > 0);
    assert_true(count_texts(text, "\"cat\":\"request\"") == 3 * 6);
    /* One document: as many opening as closing brackets, and one of each kind at its ends. */
    assert_int_equal(count_texts(text, "{"), count_texts(text, "}"));
    assert_int_equal(count_texts(text, "traceEvents"), 1);
    assert_int_equal(count_texts(text, "]"), 1);
    assert_int_equal(count_texts(text, "}{"), 0);
    free(text);
}

int main(void)
{
    return unit_run();
}
