/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a network that is as bad as TCP allows.
 *
 * A program that is linked with bad_network.c calls it in place of the C library's functions on sockets. With TEST_NETWORK
 * set, what passes is neither changed nor lost nor reordered, but everything else that the system may do happens often:
 * sends and receives that take a part of the bytes, a single byte at a time; pauses between any two bytes; storms of
 * EAGAIN and EINTR; readiness that epoll reports late and in another order.
 *
 *   TEST_NETWORK=bad      all of it in turn, per connection and direction
 *   TEST_NETWORK=bytes    one byte at a time, always
 *   TEST_NETWORK=bad:7    the same with another seed
 *
 * Loopback and virtual links deliver whole frames; real networks do not. */
#ifndef PEAL_COMM_TESTS_BAD_NETWORK_H
#define PEAL_COMM_TESTS_BAD_NETWORK_H

/* Reads TEST_NETWORK. Called in a rank before it opens anything; without it, the network stays as it is. */
void bad_network_begin(unsigned rank);

#endif
