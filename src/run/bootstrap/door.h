/* SPDX-License-Identifier: Apache-2.0 */
/* The door: where the ranks of a job find each other, and no other user of the host.
 *
 * The leader listens on a socket in a folder that only its user can enter ($XDG_RUNTIME_DIR/peal,
 * /run/user/UID/peal, /tmp/peal-UID), in each of these that exists or can be made, and by an
 * abstract name, for ranks that have no folder in common (containers that share a network). Names
 * are hashes, so that the table of sockets does not show the names of jobs. The other ranks try
 * them in that order.
 *
 * An abstract name can be taken by any user. So a process that answers must belong to the same
 * user, as the kernel reports, and prove that it knows the job. If there is no folder and the
 * abstract name is taken, opening fails with a message at the deadline. No call here blocks without
 * a limit: a full queue is tried again.
 */
#ifndef PEAL_RUN_DOOR_H
#define PEAL_RUN_DOOR_H

#include "base/base.h"

#include <peal/types.h>
#include <stdbool.h>
#include <stdint.h>

enum { PEAL_DOORS = 4, PEAL_NONCE = 16 };

struct peal_door {
    int fds[PEAL_DOORS];
    char paths[PEAL_DOORS][108]; /* "": an abstract name */
    uint32_t count;
};

/* Begins to listen, by the deadline (peal_now_ms). `why` gets a line on failure. */
enum peal_status peal_door_open(const char *job, uint32_t leader, uint64_t deadline,
                                struct peal_door *out, struct peal_text *why);
void peal_door_close(struct peal_door *door);
/* A socket to the next process that connects within this many milliseconds; -1 and errno (0: none
 * has). */
int peal_door_accept(const struct peal_door *door, int patience_ms);

/* Why this process cannot make a socket (errno), or 0. Without one, a leader that listens could not be told from none. */
int peal_door_error(void);
/* Connects to the leader if it listens; -1 otherwise. *stranger is set if another user does. */
int peal_door_knock(const char *job, uint32_t leader, bool *stranger);

/* One message with up to two descriptors (-1: none); false on any failure or at the deadline. */
bool peal_door_send(int fd, const void *data, size_t len, const int pass[2], uint64_t deadline);
/* Receives such a message. passed[i] is -1 if none came, and on failure. */
bool peal_door_receive(int fd, void *data, size_t len, int passed[2], uint64_t deadline);

/* Does the peer know the job? Each side sends a challenge and answers the other's. */
bool peal_door_challenge(int fd, const char *job, uint64_t deadline); /* the leader's side */
bool peal_door_answer(int fd, const char *job, uint64_t deadline);    /* the other's */

#endif
