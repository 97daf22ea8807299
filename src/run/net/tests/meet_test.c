/* SPDX-License-Identifier: Apache-2.0 */
/* Meetings: every rank gets the rows of all ranks, hosts are numbered, and secrets are found or
 * refused. */
#include "run/net/meet.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 4, NAMES = 256 };

/* A store as a program would have it: names and values under one lock. */
struct map {
    pthread_mutex_t lock;
    struct {
        char name[192];
        uint8_t bytes[512];
        size_t len;
    } entries[NAMES];
    uint32_t count;
};

static bool map_set(void *context, const char *name, const void *bytes, size_t len)
{
    struct map *map = context;
    pthread_mutex_lock(&map->lock);
    bool fits = map->count < NAMES && len <= sizeof map->entries[0].bytes;
    if (fits) {
        snprintf(map->entries[map->count].name, sizeof map->entries[0].name, "%s", name);
        memcpy(map->entries[map->count].bytes, bytes, len);
        map->entries[map->count++].len = len;
    }
    pthread_mutex_unlock(&map->lock);
    return fits;
}

static int64_t map_get(void *context, const char *name, void *out, size_t cap, uint32_t timeout_ms)
{
    struct map *map = context;
    for (uint64_t end = peal_now_ms() + timeout_ms; peal_now_ms() < end;) {
        int64_t found = -1;
        pthread_mutex_lock(&map->lock);
        for (uint32_t i = 0; i < map->count; i++) {
            if (strcmp(map->entries[i].name, name) != 0)
                continue;
            found = (int64_t)map->entries[i].len;
            memcpy(out, map->entries[i].bytes,
                   map->entries[i].len < cap ? map->entries[i].len : cap);
        }
        pthread_mutex_unlock(&map->lock);
        if (found >= 0)
            return found;
        sched_yield();
    }
    return -1;
}

struct member {
    struct peal_meet *meet;
    bool ok;
    enum peal_status status;
    uint8_t secret[PEAL_NET_SECRET];
    uint32_t nodes[RANKS];
    struct peal_text why;
};

static void *exchange(void *argument)
{
    struct member *member = argument;
    member->ok = true;
    for (uint32_t round = 1; round <= 20; round++) {
        uint32_t own[2] = {member->meet->rank, round}, all[RANKS][2] = {0};
        member->ok &= peal_meet_gather(member->meet, own, sizeof own, all, &member->why) == PEAL_OK;
        for (uint32_t r = 0; r < RANKS; r++)
            member->ok &= all[r][0] == r && all[r][1] == round;
    }
    member->ok &= peal_meet_nodes(member->meet, member->nodes, &member->why) == PEAL_OK;
    return NULL;
}

static void *find_secret(void *argument)
{
    struct member *member = argument;
    member->status = peal_meet_secret(member->meet, true, member->secret, &member->why);
    return NULL;
}

static void run(struct member members[static RANKS], void *(*body)(void *))
{
    pthread_t threads[RANKS];
    for (uint32_t r = 0; r < RANKS; r++)
        pthread_create(&threads[r], NULL, body, &members[r]);
    for (uint32_t r = 0; r < RANKS; r++)
        pthread_join(threads[r], NULL);
}

static void open_local(struct member members[static RANKS])
{
    struct peal_meet *meets[RANKS];
    assert_int_equal(peal_meet_open_local(RANKS, 600000, meets), PEAL_OK);
    for (uint32_t r = 0; r < RANKS; r++)
        members[r] = (struct member){.meet = meets[r]};
}

static void close_all(struct member members[static RANKS])
{
    for (uint32_t r = 0; r < RANKS; r++) {
        peal_meet_close(members[r].meet);
        peal_text_release(&members[r].why);
    }
}

static void rows_of_all_come_to_all(void **state)
{
    (void)state;
    struct member members[RANKS];
    open_local(members);
    run(members, exchange);
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_true(members[r].ok);
        for (uint32_t other = 0; other < RANKS; other++)
            assert_int_equal(members[r].nodes[other], 0);
    }
    close_all(members);
}

static void a_store_will_do(void **state)
{
    (void)state;
    struct member members[RANKS] = {0};
    struct map *map = calloc(1, sizeof *map);
    const struct peal_meet_store store = {map, map_set, map_get};
    pthread_mutex_init(&map->lock, NULL);
    for (uint32_t r = 0; r < RANKS; r++)
        assert_int_equal(peal_meet_open_store(&store, "job", r, RANKS, 600000, &members[r].meet),
                         PEAL_OK);
    run(members, exchange);
    for (uint32_t r = 0; r < RANKS; r++)
        assert_true(members[r].ok);
    close_all(members);
    free(map);
}

static void a_missing_rank_is_named(void **state)
{
    (void)state;
    struct map *map = calloc(1, sizeof *map);
    const struct peal_meet_store store = {map, map_set, map_get};
    struct peal_meet *meet;
    struct peal_text why = {0};
    uint32_t row = 1, all[2];
    pthread_mutex_init(&map->lock, NULL);
    assert_int_equal(peal_meet_open_store(&store, "job", 0, 2, 20, &meet), PEAL_OK);
    assert_int_equal(peal_meet_gather(meet, &row, sizeof row, all, &why), PEAL_TIMEOUT);
    assert_string_equal(peal_text_get(&why), "rank 1 has not come to the meeting");
    peal_meet_close(meet);
    peal_text_release(&why);
    free(map);
}

static void the_service_carries_a_secret(void **state)
{
    (void)state;
    struct member members[RANKS];
    static const uint8_t zeros[PEAL_NET_SECRET];
    unsetenv("PEAL_SECRET_FILE");
    open_local(members);
    run(members, find_secret);
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(members[r].status, PEAL_OK);
        assert_memory_equal(members[r].secret, members[0].secret, PEAL_NET_SECRET);
    }
    assert_memory_not_equal(members[0].secret, zeros, PEAL_NET_SECRET);
    close_all(members);
}

static void a_file_gives_a_secret_if_only_its_owner_reads_it(void **state)
{
    (void)state;
    static const struct {
        int line;
        mode_t mode;
        const char *text;
        enum peal_status status;
        int first; /* byte of the secret */
    } rows[] = {
        {__LINE__, 0600, "0a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728290000\n",
         PEAL_OK, -1},
        {__LINE__, 0600, "0A0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223242526272829\n",
         PEAL_OK, 10},
        {__LINE__, 0640, "0a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223242526272829\n",
         PEAL_INVALID, -1},
        {__LINE__, 0604, "0a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223242526272829\n",
         PEAL_INVALID, -1},
        {__LINE__, 0600, "too short", PEAL_INVALID, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[] = "/tmp/peal-secret-XXXXXX";
        struct member members[RANKS];
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, rows[i].text, strlen(rows[i].text)), strlen(rows[i].text));
        fchmod(fd, rows[i].mode);
        close(fd);
        setenv("PEAL_SECRET_FILE", path, 1);
        open_local(members);
        run(members, find_secret);
        for (uint32_t r = 0; r < RANKS; r++) {
            if (members[r].status != rows[i].status)
                fail_msg("row of line %d: status %d", rows[i].line, members[r].status);
            if (rows[i].first >= 0)
                assert_int_equal(members[r].secret[0], rows[i].first);
            assert_memory_equal(members[r].secret, members[0].secret, PEAL_NET_SECRET);
        }
        close_all(members);
        unlink(path);
    }
    unsetenv("PEAL_SECRET_FILE");
}

static void a_host_has_the_name_it_is_given(void **state)
{
    (void)state;
    char host[160], again[160];
    setenv("PEAL_HOST", "left", 1);
    peal_meet_host(host);
    assert_string_equal(host, "PEAL_HOST left");
    unsetenv("PEAL_HOST");
    peal_meet_host(host);
    peal_meet_host(again);
    assert_string_equal(host, again);
    assert_non_null(strchr(host, ' '));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_all_come_to_all),
        cmocka_unit_test(a_store_will_do),
        cmocka_unit_test(a_missing_rank_is_named),
        cmocka_unit_test(the_service_carries_a_secret),
        cmocka_unit_test(a_file_gives_a_secret_if_only_its_owner_reads_it),
        cmocka_unit_test(a_host_has_the_name_it_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
