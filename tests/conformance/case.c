/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a kernel's signature and comment, and makes up values for its parameters. */
#include "conformance/case.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* What the comment above a kernel promises. */
static enum contract_order order_of(const char *doc)
{
    if (strstr(doc, "rank order"))
        return ORDER_RANKS;
    return strstr(doc, "Same bits") ? ORDER_SAME_BITS : ORDER_ANY;
}

struct signature signature_of(const struct peal_kernel *kernel)
{
    struct signature signature = {.kernel = kernel, .order = order_of(kernel->doc)};
    int buffers = 0;
    for (int i = 0; i < kernel->nparams; i++) {
        const struct peal_symbol *param = kernel->params[i];
        buffers += param->kind == PEAL_SYMBOL_BUFFER;
        signature.has_op |= param->kind == PEAL_SYMBOL_REDUCE;
        signature.has_root |= strcmp(param->name, "root") == 0;
        signature.has_max_count |= strcmp(param->name, "most") == 0;
        signature.has_counts |= strcmp(param->name, "counts") == 0;
        signature.has_sends |= strcmp(param->name, "sends") == 0;
    }
    for (const struct peal_symbol *s = kernel->symbols; s; s = s->next)
        signature.has_rows |= s->kind == PEAL_SYMBOL_DIM && strcmp(s->name, "m") == 0;
    signature.in_place = buffers == 2 && kernel->implements && !signature.has_sends &&
                         !strstr(kernel->doc, "Not in place");
    return signature;
}

/* n elements in uneven parts, some of them empty. */
static void make_counts(const struct variant *v, struct made *out)
{
    uint64_t left = v->n;
    for (uint32_t r = 0; r < v->nranks; r++) {
        uint64_t random = peal_hash_u64(r, v->seed);
        uint64_t take = random % 3 == 0 ? 0 : random % (2 * v->n / v->nranks + 1);
        if (take > left || r + 1 == v->nranks)
            take = left;
        out->counts[r] = (int64_t)take;
        left -= take;
    }
}

static void make_sends(const struct variant *v, struct made *out)
{
    for (uint32_t i = 0; i < v->nranks * v->nranks; i++) {
        uint64_t random = peal_hash_u64(i, v->seed);
        out->sends[i] = (int64_t)(random % 4 == 0 ? 0 : (random >> 8) % (v->n / v->nranks + 1));
    }
}

static struct peal_bind bind_of(const struct variant *v)
{
    return (struct peal_bind){.nranks = v->nranks,
                              .rank = PEAL_NONE,
                              .dtype = v->dtype,
                              .reduce = v->reduce,
                              .root = v->root,
                              .in_place = v->in_place,
                              .symmetric = true,
                              .channel_depth = v->depth,
                              .slot_bytes = v->slot_bytes,
                              .no_fuse = v->no_fuse};
}

bool case_make(const struct signature *signature, const struct variant *v, struct made *out,
               struct peal_text *why)
{
    *out = (struct made){.sizes = {.n = v->n}};
    make_counts(v, out);
    make_sends(v, out);
    int64_t recvs[MAX_RANKS * MAX_RANKS];
    for (uint32_t i = 0; i < v->nranks * v->nranks; i++)
        recvs[i] = out->sends[i % v->nranks * v->nranks + i / v->nranks];
    int64_t n = (int64_t)v->n, max_count = (int64_t)v->max_count, m = 0;
    struct peal_bind_value values[5];
    size_t nvalues = 0;
    if (signature->has_counts) {
        out->sizes.counts = out->counts;
        values[nvalues++] = (struct peal_bind_value){"counts", out->counts, v->nranks, true};
    } else if (signature->has_sends) {
        out->sizes.sends = out->sends;
        values[nvalues++] = (struct peal_bind_value){"sends", out->sends, v->nranks, true};
        values[nvalues++] = (struct peal_bind_value){"recvs", recvs, v->nranks, true};
    } else if (signature->has_rows) {
        m = (n + v->nranks - 1) / v->nranks;
        out->sizes.n = (uint64_t)m * v->nranks;
        values[nvalues++] = (struct peal_bind_value){"m", &m, 1, true};
    } else if (signature->kernel->nparams) {
        values[nvalues++] = (struct peal_bind_value){"n", &n, 1, true};
    }
    if (signature->has_max_count && v->max_count)
        values[nvalues++] = (struct peal_bind_value){"most", &max_count, 1, true};
    struct peal_bind bind = bind_of(v);
    bind.values = values;
    bind.nvalues = nvalues;
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status = peal_instantiate(signature->kernel, &bind, &diags, &out->plan);
    if (status != PEAL_OK) {
        peal_diags_print(&diags, false, why);
        peal_text_printf(why, "instantiate: %s", peal_status_text(status));
    }
    peal_diags_release(&diags);
    return status == PEAL_OK;
}

void made_release(struct made *made)
{
    free(made->plan);
    made->plan = NULL;
}
