/* SPDX-License-Identifier: Apache-2.0 */
/* The plain loop against sums written out, and the CBLAS, where there is one, against the plain loop:
 * small whole numbers, whose sums are exact in any order, so that results are equal to the bit. */
#include "compute/compute.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ELEMENTS = 64 * 64, LONGEST = 44 };

static uint64_t random_state = 20261117;

static uint64_t next(uint64_t below)
{
    random_state = peal_hash_u64(random_state, 1);
    return random_state % below;
}

struct matrices {
    uint64_t rows, inner, columns, a_stride, b_stride, c_stride;
    double a[MAX_ELEMENTS], b[MAX_ELEMENTS], c[MAX_ELEMENTS], want[MAX_ELEMENTS];
    float a32[MAX_ELEMENTS], b32[MAX_ELEMENTS], c32[MAX_ELEMENTS];
};

static void fill(struct matrices *m, bool adds)
{
    m->rows = next(LONGEST);
    m->inner = next(LONGEST);
    m->columns = next(LONGEST);
    m->a_stride = m->inner + next(10) + !m->inner;
    m->b_stride = m->columns + next(10) + !m->columns;
    m->c_stride = m->columns + next(10) + !m->columns;
    for (int i = 0; i < MAX_ELEMENTS; i++) {
        m->a[i] = m->a32[i] = (float)next(9) - 4;
        m->b[i] = m->b32[i] = (float)next(9) - 4;
        m->c[i] = m->want[i] = m->c32[i] = (float)next(9) - 4;
    }
    for (uint64_t i = 0; i < m->rows; i++) {
        for (uint64_t j = 0; j < m->columns; j++) {
            double *to = &m->want[i * m->c_stride + j];
            *to = adds ? *to : 0;
            for (uint64_t k = 0; k < m->inner; k++)
                *to += m->a[i * m->a_stride + k] * m->b[k * m->b_stride + j];
        }
    }
}

static void check(void (*run)(const struct peal_product *))
{
    static struct matrices m;
    for (int turn = 0; turn < 300; turn++) {
        bool adds = next(2);
        fill(&m, adds);
        struct peal_product p = {PEAL_F64, adds, m.rows,     m.inner,    m.columns, m.a,
                                 m.b,      m.c,  m.a_stride, m.b_stride, m.c_stride};
        run(&p);
        p.dtype = PEAL_F32;
        p.a = m.a32;
        p.b = m.b32;
        p.c = m.c32;
        run(&p);
        for (int i = 0; i < MAX_ELEMENTS; i++) { /* what is between and after the rows, too */
            assert_true(m.c[i] == m.want[i]);
            assert_true(m.c32[i] == m.want[i]);
        }
    }
}

TEST(plain_loops_add_up_products)
{
    check(peal_product_run_plain);
}

TEST(a_library_gives_the_same)
{
    printf("CBLAS: %s\n", peal_product_library() ? peal_product_library() : "none");
    check(peal_product_run);
}

int main(void)
{
    return unit_run();
}
