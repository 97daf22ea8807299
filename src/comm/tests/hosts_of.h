/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: child processes of one machine as ranks of several hosts.
 *
 * With TEST_HOSTS=2 ranks are told that they are on two hosts (PEAL_HOST), and meet through a store
 * in memory that they share. They then reach each other by TCP on the loopback interface.
 *
 * TEST_HOSTS_SPACES="PID,PID" names a process per host whose network namespace the host's ranks enter:
 * then nothing but that network joins them. PEAL_NET says which one it is.
 *
 * TEST_NETWORK=bad makes the network bad (comm/tests/bad_network.h). */
#ifndef PEAL_COMM_TESTS_HOSTS_OF_H
#define PEAL_COMM_TESTS_HOSTS_OF_H

#include <peal/peal.h>

/* Called before ranks are forked: a store for them, or NULL if they are to be on one host. */
struct peal_store *hosts_store_new(void);
void hosts_store_free(struct peal_store *store);
/* Called in a rank before it opens: puts it on a host. Neighbours share a host; with TEST_HOSTS="2
 * mixed" they alternate. */
void hosts_place(uint32_t rank, uint32_t size);

#endif
