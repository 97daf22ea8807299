/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between peal exec --hosts, its agents and its ranks.
 *
 *   peal exec  ◀── standard input and output of ssh ──▶  agent  ◀── PEAL_MEET_FD, a socket ──▶  rank
 *
 * An agent runs on each host, starts its ranks and forwards their messages. All of them go through the process
 * that the user has started, over the connection that the user has chosen (ssh). The secret is in the first message
 * to an agent and in a rank's welcome: never on a command line, in an environment or in a file.
 *
 * A message is a head and `bytes` bytes; numbers are in the byte order of the hosts.
 */
#ifndef PEAL_RUN_HOSTS_H
#define PEAL_RUN_HOSTS_H

#include "run/net/net.h"

enum peal_hosts_kind {
    /* between rank and agent */
    PEAL_HOSTS_HELLO = 1, /* rank: who am I? */
    PEAL_HOSTS_WELCOME,   /* agent: a struct peal_hosts_welcome */
    /* all the way */
    PEAL_HOSTS_GATHER,   /* rank: its row */
    PEAL_HOSTS_GATHERED, /* to the ranks: the rows of all */
    PEAL_HOSTS_FAILED,   /* to the ranks: words */
    /* between agent and peal exec */
    PEAL_HOSTS_START,  /* to the agent: a struct peal_hosts_start and texts */
    PEAL_HOSTS_SIGNAL, /* to the agent: for all its ranks; `rank` is the number */
    PEAL_HOSTS_OUTPUT, /* what a rank has written to standard output ... */
    PEAL_HOSTS_ERROR,  /* ... and to standard error */
    PEAL_HOSTS_ENDED,  /* a rank has ended: an int32_t as of waitpid, then its process's number */
    PEAL_HOSTS_KINDS
};

enum { PEAL_HOSTS_ROW = 1 << 16, PEAL_HOSTS_MESSAGE = 1 << 27, PEAL_HOSTS_NAME = 128 };

struct peal_hosts_head {
    uint32_t kind, rank, bytes, zero;
};

struct peal_hosts_welcome {
    uint32_t rank, size;
    char job[64];
    uint8_t secret[PEAL_NET_SECRET];
};

/* Followed by texts, each with its NUL: the folder to work in, the program and its arguments, settings
 * for the environment. */
struct peal_hosts_start {
    uint32_t protocol, size, first, count;
    uint32_t bind; /* to cores */
    uint32_t nargs, nsettings, zero;
    char host[PEAL_HOSTS_NAME];
    char job[64];
    uint8_t secret[PEAL_NET_SECRET];
};

#endif
