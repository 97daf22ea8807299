/* SPDX-License-Identifier: Apache-2.0 */
/* What is read from hwloc, on synthetic machines. */
#include "base/tests/unit.h"
#include "run/team/topo.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(test_the_cache_is_the_machines)
{
    static const struct {
        int line;
        const char *machine;
        uint64_t bytes;
    } rows[] = {
        {__LINE__, "pack:1 l2:4(size=524288) core:1 pu:1", 524288},
        {__LINE__, "pack:1 l3:1(size=33554432) l2:2(size=1310720) core:2 pu:2", 1310720},
        {__LINE__, "pack:2 l2:1(size=2097152) l1:2(size=32768) core:1 pu:1", 2097152},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("HWLOC_SYNTHETIC", rows[i].machine, 1);
        if (peal_topo_core_cache() != rows[i].bytes)
            fail_msg("line %d: %llu bytes", rows[i].line,
                     (unsigned long long)peal_topo_core_cache());
    }
    unsetenv("HWLOC_SYNTHETIC");
}

/* A machine without caches, as some virtual ones: what the C library says, or the constant. */
TEST(test_without_a_cache_there_is_a_fall_back)
{
    long said = sysconf(_SC_LEVEL2_CACHE_SIZE);
    setenv("HWLOC_SYNTHETIC", "pack:1 core:2 pu:1", 1);
    assert_int_equal(peal_topo_core_cache(), said > 0 ? (uint64_t)said : PEAL_TOPO_CORE_CACHE);
    unsetenv("HWLOC_SYNTHETIC");
}

/* In a child, as a filter stays: the number of cores is known by other means, and nothing hangs. */
TEST(test_cores_are_counted_where_asking_is_forbidden)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_sched_getaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            _exit(77);
        _exit(peal_topo_cores() > 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    return unit_run();
}
