/* SPDX-License-Identifier: Apache-2.0 */
/* What a build without processes and threads (WebAssembly) has in place of the files that need them:
 * each says that it cannot. */
#include "cli/import/python.h"
#include "cli/record/record.h"
#include "cli/run/ranks.h"
#include "cli/verify/verify_recorded.h"
#include "comm/comm.h"

#include <errno.h>
#include <spawn.h>

/* The C library declares it, and does not have it. */
int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                 const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *restrict attributes, char *const *restrict argv,
                 char *const *restrict environment)
{
    (void)pid, (void)file, (void)actions, (void)attributes, (void)argv, (void)environment;
    return ENOSYS;
}

/* Variables of the environment are settings of ranks. */
enum peal_status peal_env_check(struct peal_text *why)
{
    (void)why;
    return PEAL_OK;
}

const char *peal_ranks_machine(void)
{
    return NULL;
}

bool peal_python_record(const struct peal_cli *cli, const char *path,
                        const struct peal_kernel_options *options, const char *fallback,
                        struct peal_python_recordings *out)
{
    (void)options, (void)fallback, (void)out;
    peal_cli_fail(cli, "'%s' has to be run, and there is no Python here", path);
    return false;
}

void peal_python_release(struct peal_python_recordings *recordings)
{
    (void)recordings;
}

static int refuse(const struct peal_cli *cli, const char *path)
{
    return peal_cli_fail(cli, "'%s' has to be compiled, and there is no compiler here", path);
}

bool peal_recorded_open(const struct peal_cli *cli, const char *path,
                        const struct peal_kernel_options *options, struct peal_plan **out,
                        int *code)
{
    (void)options, (void)out;
    *code = refuse(cli, path);
    return false;
}

int peal_verify_recorded(struct peal_cli *cli, const struct peal_verify_settings *o,
                         const char *path)
{
    (void)o;
    return refuse(cli, path);
}
