/* SPDX-License-Identifier: Apache-2.0 */
/* For tests with cmocka: a kernel of the library or from a text, and a plan of it. */
#ifndef PEAL_PLAN_MADE_H
#define PEAL_PLAN_MADE_H

#include "lang/lang.h"
#include "plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct made {
    struct peal_program *program;
    const struct peal_kernel *kernel;
    struct peal_diags diags;
    struct peal_arena arena; /* what `bind` points to */
    struct peal_bind bind;   /* of the last plan */
    struct peal_plan *plan;
};

/* `kernel` is a name in the library, or a text. */
static inline void made_begin(struct made *m, const char *kernel)
{
    *m = (struct made){0};
    peal_diags_init(&m->diags);
    peal_arena_init(&m->arena, 0);
    enum peal_status status =
        strchr(kernel, '{')
            ? peal_program_text("k.peal", kernel, strlen(kernel), &m->diags, &m->program)
            : peal_program_open(kernel, &m->diags, &m->program);
    if (status == PEAL_OK)
        m->kernel = peal_program_kernel(m->program, NULL, &m->diags);
    if (!m->kernel)
        fail_msg("%s", m->diags.list.len ? m->diags.list.at[0].message : "no message");
}

/* Every dimension is `count`; the caller frees the plan. */
static inline struct peal_plan *made_plan(struct made *m, struct peal_bind bind, int64_t count)
{
    struct peal_plan_request request = {.kernel = m->kernel, .bind = bind, .count = count};
    struct peal_plan *plan = NULL;
    assert_int_equal(peal_request_bind(&request, &m->arena, &m->diags, &m->bind), PEAL_OK);
    assert_int_equal(peal_instantiate(m->kernel, &m->bind, &m->diags, &plan), PEAL_OK);
    return plan;
}

static inline void made_end(struct made *m)
{
    free(m->plan);
    peal_program_close(m->program);
    peal_arena_release(&m->arena);
    peal_diags_release(&m->diags);
}

#endif
