/* SPDX-License-Identifier: Apache-2.0 */
/* Opening under bad conditions: if one rank cannot finish, all ranks fail at once with its reason;
 * a rank that has ended is known from the launcher; other users of the host can only get in the
 * way; and ranks in different pid namespaces notice each other's end. */
#include "base/base.h"
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Nothing here is to end by the time-out, except where it is short. */
enum { RANKS = 3, LONG_MS = 3600000 };

struct result {
    int status;
    char why[300];
};
static struct result *results; /* shared with the ranks */

static void open_and_note(uint32_t rank, uint32_t size, const char *job, uint32_t timeout_ms)
{
    struct peal_open options = {
        .rank = rank, .size = size, .job = job, .quiet = 1, .timeout_ms = timeout_ms};
    struct peal_comm *comm = NULL;
    results[rank].status = (int)peal_comm_open(size ? &options : NULL, &comm);
    snprintf(results[rank].why, sizeof results[rank].why, "%.280s", peal_comm_error(NULL));
    peal_comm_close(comm);
}

static void limit(int resource, rlim_t value)
{
    struct rlimit limits = {value, value};
    setrlimit(resource, &limits);
}

static rlim_t lowest_free(void)
{
    int fd = dup(0);
    assert_true(fd >= 0);
    close(fd);
    return (rlim_t)fd;
}

/* Sanitizers take terabytes of address space. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TAKES_TERABYTES true
#else
#define TAKES_TERABYTES false
#endif

/* Bytes of address space of this process. */
static rlim_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return (rlim_t)pages * 4096;
}

/* All ranks open; rank 2 has too little of a resource. */
static void one_cannot_finish(int resource, rlim_t limited, const char *words)
{
    char job[48];
    pid_t pids[RANKS];
    snprintf(job, sizeof job, "opening-%d-%d", (int)getpid(), resource);
    memset(results, 0, RANKS * sizeof *results);
    for (uint32_t r = 0; r < RANKS; r++) {
        pids[r] = fork();
        assert_true(pids[r] >= 0);
        if (pids[r] != 0)
            continue;
        if (r == 2)
            limit(resource, limited);
        open_and_note(r, RANKS, job, LONG_MS);
        _exit(0);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        int status;
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        assert_int_equal(status, 0);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        if (results[r].status == PEAL_OK || results[r].status != results[0].status ||
            !strstr(results[r].why, words))
            fail_msg("rank %u: %s: '%s'", r, peal_status_text((enum peal_status)results[r].status),
                     results[r].why);
    }
}

/* Where sockets are forbidden, the leader and the others learn it at once, and not by the time-out. */
TEST(a_rank_without_sockets_says_so)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    for (uint32_t r = 0; r < 2; r++) {
        memset(results, 0, RANKS * sizeof *results);
        pid_t child = fork();
        if (child == 0) {
            if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
                _exit(77);
            open_and_note(r, 2, "no-sockets", LONG_MS);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            skip();
        assert_int_equal(status, 0);
        assert_int_equal(results[r].status, PEAL_SYSTEM);
        assert_non_null(strstr(results[r].why, "cannot make a socket to meet the other ranks"));
    }
}

TEST(a_rank_that_cannot_finish_says_why_to_all)
{
    /* From one free descriptor on, for the window or for a socket. */
    for (rlim_t descriptors = lowest_free() + 1; descriptors < lowest_free() + 4; descriptors++)
        one_cannot_finish(RLIMIT_NOFILE, descriptors, "descriptor");
    one_cannot_finish(RLIMIT_NOFILE, lowest_free() + 5, "rank");
    if (!TAKES_TERABYTES)
        one_cannot_finish(RLIMIT_AS, address_space() + (20 << 20), "rank 2");
}

/* ---- new communicators ---- */

/* Rank 1 has no address space for another communicator: no rank gets one, and the old one still
 * works. Descriptors are not needed. */
static int dup_without_space(struct peal_comm *comm, const void *context)
{
    (void)context;
    struct peal_comm *first = NULL, *second = NULL;
    struct rlimit before;
    bool limited = peal_comm_rank(comm) == 1;
    EXPECT(getrlimit(RLIMIT_AS, &before) == 0);
    EXPECT(!limited || setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3}) == 0);
    EXPECT(!limited || setrlimit(RLIMIT_AS, &(struct rlimit){1 << 20, before.rlim_max}) == 0);
    enum peal_status status = peal_comm_dup(comm, &first);
    EXPECT(status == PEAL_NO_MEMORY && !first);
    EXPECT(strstr(peal_comm_error(comm), "split: rank 1: no room for a window"));
    EXPECT(peal_barrier(comm) == PEAL_OK);
    EXPECT(setrlimit(RLIMIT_AS, &before) == 0);
    EXPECT(peal_comm_dup(comm, &second) == PEAL_OK);
    EXPECT(peal_barrier(second) == PEAL_OK);
    peal_comm_close(second);
    return 0;
}

TEST(a_failed_dup_leaves_the_old_one)
{
    assert_true(children_run(3, dup_without_space, NULL));
}

TEST(a_rank_that_has_ended_is_not_waited_for)
{
    uint64_t words[2] = {0, UINT64_C(4711) << 32 | SIGKILL};
    int fd = memfd_create("status", 0);
    char number[16];
    assert_true(fd >= 0 && write(fd, words, sizeof words) == sizeof words);
    snprintf(number, sizeof number, "%d", fd);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("PEAL_STATUS_FD", number, 1);
        setenv("PEAL_TIMEOUT_MS", "3600000", 1);
        setenv("PEAL_RANK", "0", 1);
        setenv("PEAL_SIZE", "2", 1);
        snprintf(number, sizeof number, "ended-%d", (int)getpid());
        setenv("PEAL_JOB", number, 1);
        open_and_note(0, 0, NULL, 0);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(fd);
    assert_int_equal(status, 0);
    assert_int_equal(results[0].status, PEAL_PEER_DEAD);
    assert_non_null(strstr(results[0].why, "rank 1"));
    assert_non_null(strstr(results[0].why, "killed by signal 9"));
}

/* ---- other users ---- */

/* The abstract name of a meeting, as door.c makes it. */
static socklen_t name_meeting(const char *job, struct sockaddr_un *out)
{
    struct peal_sha256 hash;
    char digits[PEAL_SHA256_HEX + 1];
    peal_sha256_begin(&hash);
    peal_sha256_add(&hash, "peal meeting", 12);
    peal_sha256_add_u64(&hash, getuid());
    peal_sha256_add_u64(&hash, 0);
    peal_sha256_add(&hash, job, strlen(job));
    peal_sha256_end(&hash, digits);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "peal-%.32s", digits);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/* Another user takes the name, with a full queue if `full`, until it is killed. */
static pid_t squat(const char *job, bool full)
{
    int ready[2];
    struct sockaddr_un name;
    socklen_t len = name_meeting(job, &name);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        if (setuid(65534) != 0 || bind(fd, (struct sockaddr *)&name, len) != 0 ||
            listen(fd, full ? 0 : 5) != 0)
            _exit(1);
        int others = full ? 4 : 0;
        for (int i = 0; i < others; i++) {
            int other = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
            (void)connect(other, (struct sockaddr *)&name, len);
        }
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char byte;
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        fail_msg("the name could not be taken");
    close(ready[0]);
    return pid;
}

/* There is no folder that this user can write to. */
static bool hide_folders(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", "/tmp", "tmpfs", MS_RDONLY, NULL) == 0 &&
           mount("tmpfs", "/run", "tmpfs", MS_RDONLY, NULL) == 0 &&
           unsetenv("XDG_RUNTIME_DIR") == 0;
}

static void open_beside_a_squatter(bool folders, bool full)
{
    char job[48];
    snprintf(job, sizeof job, "squatted-%d-%d-%d", (int)getpid(), folders, full);
    memset(results, 0, RANKS * sizeof *results);
    pid_t other = squat(job, full), pids[2];
    for (uint32_t r = 0; r < 2; r++) {
        pids[r] = fork();
        if (pids[r] != 0)
            continue;
        if (!folders && !hide_folders())
            _exit(2);
        open_and_note(r, 2, job, folders ? LONG_MS : 1500);
        _exit(0);
    }
    int status[2];
    for (uint32_t r = 0; r < 2; r++)
        assert_int_equal(waitpid(pids[r], &status[r], 0), pids[r]);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    for (uint32_t r = 0; r < 2; r++) {
        bool fails = !folders &&
                     status[r] == 0; /* the system does not let a process hide folders: skipped */
        bool right =
            !fails ? status[r] != 0 || results[r].status == PEAL_OK
                   : results[r].status != PEAL_OK && strstr(results[r].why, "of another user");
        if (!right)
            fail_msg("rank %u, folders %d, full %d: %s: '%s'", r, folders, full,
                     peal_status_text((enum peal_status)results[r].status), results[r].why);
    }
}

TEST(another_user_cannot_keep_ranks_from_meeting)
{
    if (getuid() != 0) {
        print_message("only the superuser can play another user\n");
        skip();
    }
    for (int full = 0; full < 2; full++) {
        open_beside_a_squatter(true, full);
        open_beside_a_squatter(false, full);
    }
}

/* ---- pid namespaces ---- */

static int work_apart(uint32_t rank, const char *job, _Atomic int *go)
{
    enum { COUNT = 1 << 18 };
    static float x[COUNT], y[COUNT];
    struct peal_open options = {
        .rank = rank, .size = 2, .job = job, .quiet = 1, .timeout_ms = LONG_MS};
    struct peal_comm *comm;
    if (peal_comm_open(&options, &comm) != PEAL_OK)
        return 1;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(rank + 1);
    for (int k = 0; k < 3; k++) {
        if (peal_allreduce(comm, x, y, COUNT, PEAL_F32, PEAL_SUM) != PEAL_OK || y[COUNT - 1] != 3)
            return 2;
        if (peal_allgather(comm, x, y, COUNT / 2, PEAL_F32) != PEAL_OK || y[COUNT - 1] != 2)
            return 3;
    }
    atomic_fetch_add(go, 1);
    if (rank == 1) {
        for (;;)
            pause(); /* until it is killed */
    }
    return peal_barrier(comm) == PEAL_PEER_DEAD ? 0 : 4;
}

TEST(ranks_in_other_pid_namespaces_are_ranks)
{
    char job[48];
    snprintf(job, sizeof job, "namespaces-%d", (int)getpid());
    _Atomic int *go = (_Atomic int *)results;
    memset(results, 0, RANKS * sizeof *results);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t apart = fork(); /* its children are in a namespace of their own */
    if (apart == 0) {
        if (unshare(CLONE_NEWPID) != 0)
            _exit(77);
        close(ends[0]);
        if (write(ends[1], "", 1) != 1)
            _exit(4);
        close(ends[1]);
        pid_t inner = fork();
        if (inner == 0)
            _exit(work_apart(1, job, go));
        while (atomic_load(go) < 2) {
            int status;
            if (waitpid(inner, &status, WNOHANG) == inner)
                _exit(3);
            children_pause_us(1000);
        }
        kill(inner, SIGKILL);
        waitpid(inner, NULL, 0);
        _exit(0);
    }
    char byte;
    int status;
    close(ends[1]);
    bool is_apart = read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    if (!is_apart) {
        waitpid(apart, &status, 0);
        print_message("no pid namespaces for this user\n");
        skip();
    }
    pid_t here = fork();
    if (here == 0)
        _exit(work_apart(0, job, go));
    assert_int_equal(waitpid(here, &status, 0), here);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(apart, &status, 0), apart);
    assert_int_equal(status, 0);
}

int main(void)
{
    results = mmap(NULL, RANKS * sizeof *results, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (results == MAP_FAILED)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_cannot_finish_says_why_to_all),
        cmocka_unit_test(a_failed_dup_leaves_the_old_one),
        cmocka_unit_test(a_rank_that_has_ended_is_not_waited_for),
        cmocka_unit_test(another_user_cannot_keep_ranks_from_meeting),
        cmocka_unit_test(ranks_in_other_pid_namespaces_are_ranks)};
    return cmocka_run_group_tests_name("opening", tests, NULL, NULL);
}
