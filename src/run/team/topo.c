/* SPDX-License-Identifier: Apache-2.0 */
/* Identities of hosts and machines. */
#include "run/team/topo.h"

#include "base/base.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The kernel's name of this boot of the machine; "": not known. */
static void read_boot(char out[static 40])
{
    memset(out, 0, 40);
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!read(fd, out, 39);
        close(fd);
    }
    out[strcspn(out, "\n")] = '\0';
}

uint64_t peal_topo_machine(void)
{
    char boot[40];
    cpu_set_t set;
    CPU_ZERO(&set);
    read_boot(boot);
    (void)sched_getaffinity(0, sizeof set, &set);
    return peal_hash_bytes(boot, sizeof boot, peal_hash_bytes(&set, sizeof set, 1));
}

void peal_host_identify(char out[static 112])
{
    char name[64] = "", boot[40];
    (void)gethostname(name, sizeof name - 1);
    read_boot(boot);
    snprintf(out, 112, "%s %s", name, boot[0] ? boot : "-");
}

bool peal_host_may_be(const char *a, const char *b)
{
    const char *x = strrchr(a, ' '), *y = strrchr(b, ' ');
    if (!x || !y)
        return strcmp(a, b) == 0;
    bool known = strcmp(x, " -") != 0 && strcmp(y, " -") != 0;
    return !known || strcmp(x, y) == 0; /* names may differ: containers have their own */
}
