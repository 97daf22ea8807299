/* SPDX-License-Identifier: Apache-2.0 */
/* How teams open and close: files that are not windows, strangers that connect, forked children,
 * and how processes ended. */
#include "base/tests/unit.h"
#include "run/bootstrap/door.h"
#include "run/bootstrap/rendezvous.h"
#include "run/team/team.h"
#include "run/wait/doctor.h"
#include "run/bootstrap/open.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static uint32_t count_descriptors(void)
{
    uint32_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* ---- rank 0 in a thread of its own ---- */

struct opener {
    pthread_t thread;
    char job[40];
    struct peal_team *team;
    struct peal_text why;
    enum peal_status status;
};

static void *open_team(void *argument)
{
    struct opener *opener = argument;
    struct peal_team_options options = {
        .rank = 0, .size = 2, .job = opener->job, .meet_ms = 600000, .quiet = true};
    opener->status = peal_team_open(&options, &opener->why, &opener->team);
    return NULL;
}

static void begin(struct opener *opener)
{
    *opener = (struct opener){0};
    peal_job_make(opener->job);
    assert_int_equal(pthread_create(&opener->thread, NULL, open_team, opener), 0);
}

static void end(struct opener *opener)
{
    pthread_join(opener->thread, NULL);
    if (opener->status == PEAL_OK)
        peal_team_close(opener->team);
    peal_text_release(&opener->why);
}

/* Rank 1, with any file as its window. */
static void join_with(const struct opener *opener, int window)
{
    struct peal_rendezvous meet = {
        .job = opener->job, .rank = 1, .size = 2, .timeout_ms = 600000, .window = window};
    struct peal_text why = {0};
    struct peal_meeting meeting;
    assert_int_equal(peal_rendezvous_meet(&meet, &why, &meeting), PEAL_OK);
    peal_meeting_release(&meeting);
}

static int make_file(uint64_t bytes, bool sealed)
{
    int fd = memfd_create("window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    if (sealed)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    return fd;
}

TEST(what_is_no_window_is_refused_before_it_is_touched)
{
    static const struct {
        int line;
        uint64_t bytes;
        bool sealed, device;
    } rows[] = {
        {__LINE__, 0, true, false},
        {__LINE__, 4096, true, false},
        {__LINE__, UINT64_C(1) << 34, false, false},
        {__LINE__, UINT64_C(1) << 34, true, false}, /* of zeros */
        {__LINE__, 0, false, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct opener opener;
        uint32_t before = count_descriptors();
        int fd = rows[i].device ? open("/dev/null", O_RDWR | O_CLOEXEC)
                                : make_file(rows[i].bytes, rows[i].sealed);
        begin(&opener);
        join_with(&opener, fd);
        close(fd);
        pthread_join(opener.thread, NULL);
        if (opener.status != PEAL_INVALID || !strstr(peal_text_get(&opener.why), "rank 1 has"))
            fail_msg("row at line %d: %s, '%s'", rows[i].line, peal_status_text(opener.status),
                     peal_text_get(&opener.why));
        peal_text_release(&opener.why);
        assert_int_equal(count_descriptors(), before);
    }
}

/* Connects as a rank would, sends nonsense, and passes more descriptors than it should. */
static void knock(const struct opener *opener, int gift)
{
    bool stranger = false;
    int fd;
    while ((fd = peal_door_knock(opener->job, 0, &stranger)) < 0)
        usleep(1000); /* until rank 0 listens */
    union {
        char space[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control = {.space = {0}};
    char word[] = "hello";
    struct iovec iov = {word, sizeof word};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.space,
                         .msg_controllen = sizeof control.space};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(c), (int[2]){gift, gift}, 2 * sizeof(int));
    assert_true(sendmsg(fd, &msg, MSG_NOSIGNAL) == sizeof word);
    close(fd);
}

TEST(strangers_leave_nothing_behind)
{
    struct opener opener;
    uint32_t before = count_descriptors();
    int gift = make_file(4096, true);
    begin(&opener);
    for (int i = 0; i < 3; i++)
        knock(&opener, gift);
    join_with(&opener, gift);
    close(gift);
    end(&opener);
    assert_int_equal(opener.status, PEAL_INVALID); /* because the gift is not a window */
    assert_int_equal(count_descriptors(), before);
}

/* ---- forks ---- */

TEST(a_forked_child_that_closes_leaves_the_team_alone)
{
    struct peal_team *teams[2];
    assert_int_equal(peal_team_open_threads(2, 1000, NULL, teams), PEAL_OK);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        peal_team_close(teams[0]);
        peal_team_close(teams[1]);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    for (int r = 0; r < 2; r++) {
        /* Acquire; partner: peal_team_close, which must not publish it in the child. */
        assert_int_equal(atomic_load_explicit(&peal_team_own(teams[r])->life, memory_order_acquire),
                         PEAL_LIFE_OUTSIDE);
        peal_team_close(teams[r]);
    }
}

/* ---- sessions ---- */

static bool has_autogroups(void)
{
    char answer = '0';
    FILE *file = fopen("/proc/sys/kernel/sched_autogroup_enabled", "re");
    if (!file)
        return false;
    assert_int_equal(fread(&answer, 1, 1, file), 1);
    fclose(file);
    return answer == '1';
}

/* How long rank 0 of two processes on one core yields before it sleeps. */
static uint64_t measure_patience(bool own_sessions)
{
    struct peal_team_options options = {.size = 2, .meet_ms = 600000, .quiet = true};
    struct peal_team *team;
    struct peal_text why = {0};
    char job[40];
    peal_job_make(job);
    options.job = job;
    fflush(stdout);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        options.rank = 1;
        if (own_sessions)
            setsid();
        if (peal_team_open(&options, &why, &team) != PEAL_OK)
            _exit(1);
        peal_team_close(team);
        _exit(0);
    }
    assert_int_equal(peal_team_open(&options, &why, &team), PEAL_OK);
    uint64_t patience = team->policy.yield_ns;
    peal_team_close(team);
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return patience;
}

TEST(ranks_of_other_sessions_are_not_waited_for_by_yields)
{
    setenv("PEAL_CORES", "1", 1);
    assert_true(measure_patience(false) > 0);
    if (has_autogroups())
        assert_int_equal(measure_patience(true), 0);
    else
        assert_true(measure_patience(true) > 0);
    unsetenv("PEAL_CORES");
}

/* ---- how processes ended ---- */

TEST(the_end_of_a_process_is_found_by_its_number)
{
    static const struct {
        int line;
        int32_t pid;
        const char *text;
    } rows[] = {
        {__LINE__, 4711, ", killed by signal 9"},
        {__LINE__, 4712, ", ended with exit code 3"},
        {__LINE__, 4713, ", ended with exit code 0"},
        {__LINE__, 4714, ""},
    };
    enum { RANKS = 100 };
    uint64_t words[RANKS] = {[3] = UINT64_C(4711) << 32 | SIGKILL,
                             [70] = UINT64_C(4712) << 32 | 3 << 8,
                             [99] = UINT64_C(4713) << 32};
    int fd = make_file(0, false);
    char number[16];
    assert_int_equal(write(fd, words, sizeof words), sizeof words);
    snprintf(number, sizeof number, "%d", fd);
    setenv("PEAL_STATUS_FD", number, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_text text = {0};
        peal_doctor_exit_text(rows[i].pid, &text);
        if (strcmp(peal_text_get(&text), rows[i].text) != 0)
            fail_msg("row at line %d: '%s'", rows[i].line, peal_text_get(&text));
        peal_text_release(&text);
    }
    unsetenv("PEAL_STATUS_FD");
    close(fd);
}

int main(void)
{
    return unit_run();
}
