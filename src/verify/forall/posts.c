/* SPDX-License-Identifier: Apache-2.0 */
/* Posted receives of a block, as the recvs that plans have: at their waits.
 *
 *   let f: T[n] = recv_async from left       send x to right
 *   send x to right                          let f: T[n] = recv from left
 *   wait f
 *
 * A channel is first in, first out, whichever receive is waited for first. So this is done only if
 * the block waits in the order in which it posts, and receives nothing else in between.
 */
#include "verify/forall/normal.h"

enum { MAX_POSTS = 16 };

struct posts {
    struct peal_stmt *post[MAX_POSTS], *await[MAX_POSTS];
    uint32_t posted, awaited;
};

static void find_recv(struct peal_expr *e, void *found)
{
    if (e->kind == PEAL_EXPR_RECV)
        *(bool *)found = true;
}

/* Does the statement, or one in it, receive anything? */
static bool receives(const struct peal_stmt *s)
{
    bool found = s->kind == PEAL_STMT_POST || s->kind == PEAL_STMT_AWAIT;
    peal_expr_walk(s->a, find_recv, &found);
    peal_expr_walk(s->b, find_recv, &found);
    for (const struct peal_stmt *in = s->body; in && !found; in = in->next)
        found = receives(in);
    for (const struct peal_stmt *in = s->other; in && !found; in = in->next)
        found = receives(in);
    return found;
}

static void find_variable(struct peal_expr *e, void *found)
{
    if (e->kind == PEAL_EXPR_NAME && e->symbol && e->symbol->kind == PEAL_SYMBOL_VAR)
        *(bool *)found = true;
}

/* Is it what the block may have while receives are posted? */
static bool follow(struct posts *p, struct peal_stmt *s)
{
    bool changes = false;
    if (s->kind == PEAL_STMT_POST) {
        peal_expr_walk(s->a, find_variable, &changes); /* the peer is the one at the post */
        if (!s->symbol || changes || p->posted == MAX_POSTS)
            return false;
        p->post[p->posted++] = s;
        return true;
    }
    if (s->kind == PEAL_STMT_AWAIT) {
        bool next = p->awaited < p->posted && !s->b && s->a->kind == PEAL_EXPR_NAME &&
                    s->a->symbol == p->post[p->awaited]->symbol;
        if (next)
            p->await[p->awaited++] = s;
        return next;
    }
    return p->awaited == p->posted || !receives(s);
}

void peal_normal_place_recvs(struct peal_stmt **first)
{
    struct posts p = {0};
    for (struct peal_stmt *s = *first; s; s = s->next) {
        if (!follow(&p, s))
            return;
    }
    if (p.awaited != p.posted)
        return;
    for (uint32_t i = 0; i < p.posted; i++) {
        struct peal_stmt *await = p.await[i];
        await->kind = PEAL_STMT_LET;
        await->symbol = p.post[i]->symbol;
        await->a = p.post[i]->a;
        await->a->is_async = false;
        await->typed = true;
        while (*first != p.post[i])
            first = &(*first)->next;
        *first = p.post[i]->next;
    }
}
