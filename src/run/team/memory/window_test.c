/* SPDX-License-Identifier: Apache-2.0 */
/* Windows in large pages if the system has them, and in small ones otherwise. */
#include "base/tests/unit.h"
#include "run/team/memory/window.h"

#include "run/exec/family.h"
#include "run/bootstrap/open.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 8, WRONG = 1, SKIP = 77, COLLAPSE = 25 };

static uint64_t bytes_of(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 ? (uint64_t)info.st_blocks * 512 : UINT64_MAX;
}

TEST(mappings_lie_where_large_pages_fit)
{
    static const struct {
        int line;
        uint64_t offset, bytes;
    } rows[] = {
        {__LINE__, 0, 4096},
        {__LINE__, 0, PEAL_LARGE_PAGE},
        {__LINE__, 4096, PEAL_LARGE_PAGE},
        {__LINE__, PEAL_LARGE_PAGE - 4096, 3 * PEAL_LARGE_PAGE + 8192},
        {__LINE__, PEAL_LARGE_PAGE, 5 * PEAL_LARGE_PAGE - 100},
    };
    int fd;
    assert_int_equal(peal_window_open(64 << 20, &fd), PEAL_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *at = peal_window_map(fd, rows[i].offset, rows[i].bytes);
        if (!at || (rows[i].bytes >= PEAL_LARGE_PAGE &&
                    ((uintptr_t)at - rows[i].offset) % PEAL_LARGE_PAGE != 0))
            fail_msg("line %d: mapped at %p", rows[i].line, (void *)at);
        at[0] = at[rows[i].bytes - 1] = 1;
        peal_window_unmap(at, rows[i].bytes);
    }
    close(fd);
}

TEST(large_pages_hold_what_was_there)
{
    enum { BYTES = 2 * PEAL_LARGE_PAGE };
    int fd;
    assert_int_equal(peal_window_open(64 << 20, &fd), PEAL_OK);
    char *own = peal_window_map(fd, 0, 64 << 20);
    assert_non_null(own);
    own[PEAL_LARGE_PAGE + 7] = 3;
    bool large = peal_window_enlarge(fd, own + PEAL_LARGE_PAGE, PEAL_LARGE_PAGE, BYTES);
    assert_int_equal(peal_window_reserve(fd, PEAL_LARGE_PAGE, BYTES), PEAL_OK);
    char *peer = peal_window_map(fd, 0, 64 << 20);
    assert_non_null(peer);
    peal_window_populate(peer + PEAL_LARGE_PAGE, BYTES, false);
    assert_int_equal(bytes_of(fd), BYTES);
    for (uint64_t i = PEAL_LARGE_PAGE; i < PEAL_LARGE_PAGE + BYTES; i++)
        assert_int_equal(peer[i], i == PEAL_LARGE_PAGE + 7 ? 3 : 0);
    peer[2 * PEAL_LARGE_PAGE] = 5;
    assert_int_equal(own[2 * PEAL_LARGE_PAGE], 5);
    printf("large pages: %s\n", large ? "yes" : "not on this system");
    peal_window_unmap(own, 64 << 20);
    peal_window_unmap(peer, 64 << 20);
    close(fd);
}

/* ---- a system that makes no large pages ---- */

static bool refuse_large_pages(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, COLLAPSE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Windows begin with less memory, but regions lie at the same places, also beyond that memory. */
static int open_in_small_pages(void)
{
    struct peal_team *teams[RANKS];
    if (!refuse_large_pages())
        return SKIP;
    if (peal_team_open_threads(RANKS, 1000, NULL, teams) != PEAL_OK)
        return WRONG;
    const struct peal_team *team = teams[1];
    const struct peal_layout *layout = &team->layout;
    struct peal_regions regions;
    if (peal_regions_init(&regions, team, 0) != PEAL_OK)
        return WRONG;
    bool right = peal_team_own(team)->large == 0 && regions.ready < regions.pool &&
                 regions.ready == peal_layout_share(layout->unit, 0);
    uint64_t limit = layout->mail + layout->unit + 16 * 4096;
    right = right && bytes_of(team->fds[1]) <= limit;
    fprintf(stderr, "%llu KiB of at most %llu\n", (unsigned long long)bytes_of(team->fds[1]) >> 10,
            (unsigned long long)limit >> 10);
    peal_regions_release(&regions);
    for (uint32_t r = 0; r < RANKS; r++)
        peal_team_close(teams[r]);
    return right ? 0 : WRONG;
}

TEST(small_pages_do_where_there_are_no_large_ones)
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(open_in_small_pages());
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    return unit_run();
}
