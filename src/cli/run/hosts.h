/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of peal exec --hosts: the process that the user started, and the agent on each
 * host. Their messages are in run/net (hosts.h there). */
#ifndef PEAL_CLI_HOSTS_H
#define PEAL_CLI_HOSTS_H

#include "cli/cli.h"

struct peal_hosts_options {
    const char *hosts; /* "a:2,b:2" */
    const char *via;   /* how to run a command on {host}; NULL: ssh */
    int64_t kill_after;
    int64_t join; /* a socket of the process that is the last rank; -1: none */
    bool prefix;
    bool bind;
};

/* Runs the program on all of them; returns the exit code of peal exec. */
int peal_hosts_run(struct peal_cli *cli, const struct peal_hosts_options *options, char **args);
/* A descriptor from which SIGCHLD and the signals that are passed on to ranks are read instead of
 * caught; -1 on failure. */
int peal_exec_signals(void);
/* peal exec --agent: communicates through standard input and output. */
int peal_hosts_agent(void);

/* "a:2,b:2": how many ranks on which host, in order. */
struct peal_hosts_entry {
    char name[128];
    uint32_t first, count;
};
struct peal_hosts_list {
    struct peal_hosts_entry *at;
    uint32_t count, ranks;
};
/* Lives in the arena. False: `error` has a message. */
bool peal_hosts_parse(const char *text, struct peal_arena *arena, struct peal_hosts_list *out,
                      struct peal_text *error);
/* The command that starts an agent on that host, in the arena, with NULL at its end; `self`: the
 * path of peal. */
char **peal_hosts_command(const char *via, const char *host, const char *self,
                          struct peal_arena *arena);

/* Reports ranks that ended with a non-zero exit code, those with the same code in one line. Ranks
 * that were killed have been reported. */
void peal_hosts_report_codes(const int *codes, uint32_t count);

#endif
