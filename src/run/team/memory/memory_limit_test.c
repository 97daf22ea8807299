/* SPDX-License-Identifier: Apache-2.0 */
/* Available memory is the smallest of what the machine and every control group leave, here read
 * from folders with the files of other machines. */
#include "base/tests/unit.h"
#include "run/team/memory/memory_limit.h"

#include <ftw.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILES = 12 };
#define MEMORY(kib)                                                                                \
    {                                                                                              \
        "proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable:   " #kib " kB\n"                     \
    }
#define SECOND_MOUNT                                                                               \
    {                                                                                              \
        "proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"                             \
                               "31 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup "  \
                               "rw,nsdelegate\n"                                                   \
    }
#define FIRST_MOUNT(top)                                                                           \
    {                                                                                              \
        "proc/self/mountinfo",                                                                     \
            "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"                          \
            "35 31 0:32 " top " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"              \
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"                        \
    }
#define STAT(inactive, active)                                                                     \
    "anon 4096\nfile 999\ninactive_file " #inactive "\nactive_file " #active "\nslab 3\n"

static const struct {
    int line;
    uint64_t bytes; /* before a sixteenth is left for other programs; 0: not known */
    bool of_group;
    struct {
        const char *path, *text;
    } files[MAX_FILES];
} rows[] = {
    {__LINE__, 1600 << 10, false, {MEMORY(1600)}},
    {__LINE__, 0, false, {{"proc/meminfo", "MemTotal: 5 kB\n"}}},
    {__LINE__, 0, false, {{"proc/version", "none of the files\n"}}},
    /* no limit */
    {__LINE__,
     1600 << 10,
     false,
     {MEMORY(1600),
      SECOND_MOUNT,
      {"proc/self/cgroup", "0::/a\n"},
      {"sys/fs/cgroup/a/memory.max", "max\n"},
      {"sys/fs/cgroup/a/memory.high", "max\n"},
      {"sys/fs/cgroup/a/memory.current", "123\n"}}},
    /* the group's limit, less what is used */
    {__LINE__,
     1000000,
     true,
     {MEMORY(1600),
      SECOND_MOUNT,
      {"proc/self/cgroup", "0::/a\n"},
      {"sys/fs/cgroup/a/memory.max", "1200000\n"},
      {"sys/fs/cgroup/a/memory.high", "max\n"},
      {"sys/fs/cgroup/a/memory.current", "200000\n"},
      {"sys/fs/cgroup/a/memory.stat", STAT(0, 0)}}},
    /* memory.high is reached first; pages of files can be reclaimed */
    {__LINE__,
     850000,
     true,
     {MEMORY(1600),
      SECOND_MOUNT,
      {"proc/self/cgroup", "0::/a\n"},
      {"sys/fs/cgroup/a/memory.max", "1200000\n"},
      {"sys/fs/cgroup/a/memory.high", "900000\n"},
      {"sys/fs/cgroup/a/memory.current", "200000\n"},
      {"sys/fs/cgroup/a/memory.stat", STAT(100000, 50000)}}},
    /* the limit of a group further up */
    {__LINE__,
     300000,
     true,
     {MEMORY(1600),
      SECOND_MOUNT,
      {"proc/self/cgroup", "0::/a/b/c\n"},
      {"sys/fs/cgroup/a/memory.max", "500000\n"},
      {"sys/fs/cgroup/a/memory.current", "200000\n"},
      {"sys/fs/cgroup/a/b/memory.max", "max\n"},
      {"sys/fs/cgroup/a/b/c/memory.max", "900000\n"},
      {"sys/fs/cgroup/a/b/c/memory.current", "200000\n"}}},
    /* more is used than is allowed */
    {__LINE__,
     0,
     true,
     {MEMORY(1600),
      SECOND_MOUNT,
      {"proc/self/cgroup", "0::/a\n"},
      {"sys/fs/cgroup/a/memory.max", "500000\n"},
      {"sys/fs/cgroup/a/memory.current", "600000\n"}}},
    /* a container that sees only its own group: the limit is at the mount point */
    {__LINE__,
     400000,
     true,
     {MEMORY(1600),
      SECOND_MOUNT,
      {"proc/self/cgroup", "0::/\n"},
      {"sys/fs/cgroup/memory.max", "500000\n"},
      {"sys/fs/cgroup/memory.current", "100000\n"}}},
    {__LINE__,
     400000,
     true,
     {MEMORY(1600),
      SECOND_MOUNT,
      {"proc/self/cgroup", "0::/../other\n"},
      {"sys/fs/cgroup/memory.max", "500000\n"},
      {"sys/fs/cgroup/memory.current", "100000\n"}}},
    /* the machine has less available than the group */
    {__LINE__,
     100 << 10,
     false,
     {MEMORY(100),
      SECOND_MOUNT,
      {"proc/self/cgroup", "0::/a\n"},
      {"sys/fs/cgroup/a/memory.max", "900000\n"},
      {"sys/fs/cgroup/a/memory.current", "100000\n"}}},
    /* the first version, beside a second one without memory */
    {__LINE__,
     700000,
     true,
     {MEMORY(1600),
      FIRST_MOUNT("/"),
      {"proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/a/b\n0::/\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "900000\n"},
      {"sys/fs/cgroup/memory/a/memory.usage_in_bytes", "300000\n"},
      {"sys/fs/cgroup/memory/a/memory.stat",
       "inactive_file 7\ntotal_inactive_file 60000\ntotal_active_file 40000\n"},
      {"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"}}},
    /* the same in a container: the mount begins at its group */
    {__LINE__,
     700000,
     true,
     {MEMORY(1600),
      FIRST_MOUNT("/docker/1f"),
      {"proc/self/cgroup", "4:memory:/docker/1f\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "900000\n"},
      {"sys/fs/cgroup/memory/memory.usage_in_bytes", "200000\n"}}},
    /* files that are not understood limit nothing */
    {__LINE__,
     1600 << 10,
     false,
     {MEMORY(1600),
      {"proc/self/mountinfo", "\n - cgroup\n1 2 3 - cgroup2\n" /* cut short */},
      {"proc/self/cgroup", "nonsense\n0:\n"}}},
};

static void write_file(const char *root, const char *path, const char *text)
{
    char at[512];
    snprintf(at, sizeof at, "%s/%s", root, path);
    for (char *slash = strchr(at + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(at, 0700);
        *slash = '/';
    }
    FILE *file = fopen(at, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

TEST(the_smallest_limit_counts)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char root[] = "/tmp/peal-memory-XXXXXX";
        assert_non_null(mkdtemp(root));
        for (int f = 0; f < MAX_FILES && rows[i].files[f].path; f++)
            write_file(root, rows[i].files[f].path, rows[i].files[f].text);
        struct peal_memory_limit available;
        peal_memory_limit_find(root, &available);
        uint64_t bytes = rows[i].bytes - rows[i].bytes / 16;
        if (bytes == 0 && !rows[i].of_group)
            bytes = UINT64_MAX;
        if (available.bytes != bytes || available.of_group != rows[i].of_group)
            fail_msg("row of line %d: %llu bytes%s", rows[i].line,
                     (unsigned long long)available.bytes, available.of_group ? " of a group" : "");
        (void)nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
}

TEST(the_words_name_both_numbers)
{
    static const uint64_t mib = 1 << 20;
    struct peal_memory_limit machine = {.bytes = 10 * mib},
                             group = {.bytes = 10 * mib, .of_group = true};
    struct peal_memory_limit unknown = {.bytes = UINT64_MAX};
    static const char *const words[] = {
        "4 ranks need 11534336 bytes, 10485760 are available on this machine",
        "11534336 bytes are needed, 10485760 are available within the limit of the control group"};
    struct peal_text why = {0};
    assert_true(peal_memory_limit_fits(&machine, 10 * mib, 4, &why));
    assert_int_equal(why.len, 0);
    assert_false(peal_memory_limit_fits(&machine, 11 * mib, 4, &why));
    assert_string_equal(peal_text_get(&why), words[0]);
    why.len = 0;
    assert_false(peal_memory_limit_fits(&group, 11 * mib, 1, &why));
    assert_string_equal(peal_text_get(&why), words[1]);
    struct peal_memory_limit none = {.bytes = 0};
    assert_true(peal_memory_limit_fits(&none, mib - 1, 256, NULL)); /* too little to matter */
    assert_true(peal_memory_limit_fits(&unknown, UINT64_MAX, 2, NULL));
    peal_text_release(&why);
}

TEST(this_machine_has_room_for_little_and_none_for_an_address_space)
{
    struct peal_text why = {0};
    struct peal_memory_limit available;
    assert_true(peal_memory_limit_has(1, 256, &why));
    peal_memory_limit_find("", &available);
    if (available.bytes == UINT64_MAX)
        skip();
    assert_false(peal_memory_limit_has(UINT64_C(1) << 60, 2, &why));
    assert_non_null(strstr(peal_text_get(&why), "2 ranks need 1152921504606846976 bytes, "));
    peal_text_release(&why);
}

int main(void)
{
    return unit_run();
}
