/* SPDX-License-Identifier: Apache-2.0 */
/* Is the text that of a barrier in rounds of doubling distance? See docs/verifier-all-ranks.md,
 * "Rounds".
 *
 *     signal here[steps]
 *     for k in 0 .. steps { notify here[k]@((rank + (1 << k)) % nranks) += a; wait here[k] >= b }
 *
 * with 1 <= b <= a, and steps either log2(2 * nranks - 1) or log2(nranks) + 1. The text has nothing
 * else.
 */
#include "verify/forall/rounds.h"

#include "verify/forall/words.h"

/* At least the number of doublings that it takes to reach all ranks. */
static bool is_enough(const struct peal_expr *e)
{
    if (peal_word_is_height(e))
        return true;
    const struct peal_expr *odd = peal_word_is_log2(e) ? e->a : NULL;
    return peal_word_is_binary(odd, PEAL_INT_SUB) && peal_word_is_int(odd->b, 1) &&
           peal_word_is_binary(odd->a, PEAL_INT_MUL) && peal_word_is_int(odd->a->a, 2) &&
           peal_word_is_builtin(odd->a->b, PEAL_NRANKS);
}

static bool is_cell(const struct peal_expr *e, const struct peal_symbol *signal,
                    const struct peal_symbol *k)
{
    return peal_word_is_name(peal_word_index(e), k) && e->a->symbol == signal;
}

static bool is_round(const struct peal_stmt *loop, const struct peal_symbol *signal)
{
    const struct peal_stmt *notify = loop->body, *wait = notify ? notify->next : NULL;
    if (!wait || wait->next || notify->kind != PEAL_STMT_NOTIFY || wait->kind != PEAL_STMT_WAIT ||
        !peal_word_is_plain_notify(notify) || !peal_word_is_plain_wait(wait))
        return false;
    bool far =
        notify->a->kind == PEAL_EXPR_AT &&
        peal_word_is_shifted(peal_word_distance(notify->a->b, PEAL_INT_ADD), 1, loop->symbol) &&
        is_cell(notify->a->a, signal, loop->symbol);
    return far && is_cell(wait->a, signal, loop->symbol) && wait->b->value >= 1 &&
           wait->b->value <= notify->b->value;
}

bool peal_rounds_classify(const struct peal_kernel *kernel, struct peal_forall *out)
{
    const struct peal_stmt *s = kernel->body;
    const struct peal_symbol *steps = NULL, *signal = NULL;
    out->why[0] = '\0';
    if (!kernel->implements || strcmp(kernel->implements, "barrier") != 0 || kernel->nparams)
        return peal_word_refuse(out, kernel->pos, "rounds are followed for barriers only");
    if (s && s->kind == PEAL_STMT_LET && s->symbol->kind == PEAL_SYMBOL_LET && is_enough(s->a)) {
        steps = s->symbol;
        s = s->next;
    }
    if (s && s->kind == PEAL_STMT_DECL && s->symbol->kind == PEAL_SYMBOL_SIGNAL &&
        s->symbol->mode == PEAL_MODE_ONE_WRITER && s->symbol->shape[0] &&
        (peal_word_is_name(s->symbol->shape[0], steps) || is_enough(s->symbol->shape[0]))) {
        signal = s->symbol;
        s = s->next;
    }
    bool loop =
        signal && s && s->kind == PEAL_STMT_FOR && !s->next && !s->c && peal_word_is_int(s->a, 0) &&
        (steps ? peal_word_is_name(s->b, steps) && peal_word_is_name(signal->shape[0], steps)
               : is_enough(s->b));
    if (!loop || !is_round(s, signal))
        return peal_word_refuse(out, s ? s->pos : kernel->pos,
                                "a statement that is not a round of doubling distance");
    return true;
}
