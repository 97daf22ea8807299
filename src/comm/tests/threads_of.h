/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: ranks as threads of one process, which exits at the first failed check. */
#ifndef PEAL_COMM_THREADS_OF_H
#define PEAL_COMM_THREADS_OF_H

#include <peal/peal.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 8 };

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Runs `body` with a communicator on every rank, and closes them. */
static inline void threads_run(uint32_t ranks, void *(*body)(void *comm))
{
    struct peal_comm *comms[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    EXPECT(ranks <= THREADS_MAX);
    enum peal_status status = peal_comm_open_threads(ranks, comms);
    if (status != PEAL_OK)
        fprintf(stderr, "%s\n", peal_comm_error(NULL));
    EXPECT(status == PEAL_OK);
    for (uint32_t r = 0; r < ranks; r++)
        EXPECT(pthread_create(&threads[r], NULL, body, comms[r]) == 0);
    for (uint32_t r = 0; r < ranks; r++)
        EXPECT(pthread_join(threads[r], NULL) == 0);
    for (uint32_t r = 0; r < ranks; r++)
        peal_comm_close(comms[r]);
}

#endif
