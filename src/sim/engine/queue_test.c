/* SPDX-License-Identifier: Apache-2.0 */
/* The queue against a plain sorted list, with few distinct times and components, so that ties are
 * frequent. */
#include "sim/engine/queue.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>

struct model {
    struct peal_event event;
    uint64_t order;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int compare(const void *a, const void *b)
{
    const struct model *x = a, *y = b;
    if (x->event.time != y->event.time)
        return x->event.time < y->event.time ? -1 : 1;
    if (x->event.who != y->event.who)
        return x->event.who < y->event.who ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

TEST(pops_in_the_stated_order)
{
    uint64_t seed = 88172645463325252u;
    printf("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 60; round++) {
        struct peal_queue queue = {0};
        struct model list[3000];
        size_t len = 0, pushed = 0;
        uint64_t now = 0, order = 0, spread = 1 + next_random(&seed) % (round % 3 ? 6 : 100000);
        while (pushed < 2500 || len) {
            struct peal_event event;
            if (pushed < 2500 && (len == 0 || next_random(&seed) % 100 < 52)) {
                struct model m = {{now + next_random(&seed) % spread,
                                   (uint32_t)(next_random(&seed) % 3) << PEAL_EVENT_CLASS_SHIFT |
                                       (uint32_t)(next_random(&seed) % 300),
                                   (uint32_t)order},
                                  order};
                order++;
                pushed++;
                list[len++] = m;
                peal_queue_push(&queue, m.event.time, m.event.who, m.event.payload);
                continue;
            }
            size_t first = 0;
            for (size_t i = 1; i < len; i++)
                first = compare(&list[i], &list[first]) < 0 ? i : first;
            assert_true(peal_queue_pop(&queue, &event));
            assert_int_equal(event.payload, list[first].event.payload);
            assert_int_equal(event.time, list[first].event.time);
            assert_int_equal(event.who, list[first].event.who);
            now = event.time;
            list[first] = list[--len];
        }
        struct peal_event none;
        assert_false(peal_queue_pop(&queue, &none));
        assert_int_equal(queue.pushed, queue.popped);
        peal_queue_release(&queue);
    }
}

int main(void)
{
    return unit_run();
}
