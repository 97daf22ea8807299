/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts: does the signature fit the contract that the kernel implements? */
#include "base/base.h"
#include "lang/deduce/deducer.h"

#include <string.h>

static void wants(struct peal_deducer *d, const char *missing)
{
    peal_deducer_error(d, d->kernel->implements_pos, "a kernel that implements '%s' needs %s",
                       d->kernel->implements, missing);
}

static const struct peal_symbol *find_param(const struct peal_kernel *kernel, const char *name)
{
    for (int i = 0; i < kernel->nparams; i++) {
        if (strcmp(kernel->params[i]->name, name) == 0)
            return kernel->params[i];
    }
    return NULL;
}

static bool is_counts(const struct peal_kernel *kernel, const char *name)
{
    const struct peal_symbol *param = find_param(kernel, name);
    return param && param->kind == PEAL_SYMBOL_INTS && param->is_local;
}

static void check_data(struct peal_deducer *d)
{
    bool reads = false;
    bool writes = false;
    for (int i = 0; i < d->kernel->nparams; i++) {
        const struct peal_symbol *param = d->kernel->params[i];
        if (param->kind != PEAL_SYMBOL_BUFFER)
            continue;
        reads |= param->dir & 1;
        writes |= (param->dir & 2) != 0;
    }
    if (!reads)
        wants(d, "a buffer that it reads, x");
    if (!writes)
        wants(d, "a buffer that it writes, y");
}

static void check_reduce(struct peal_deducer *d, bool wanted)
{
    int count = 0;
    for (int i = 0; i < d->kernel->nparams; i++)
        count += d->kernel->params[i]->kind == PEAL_SYMBOL_REDUCE;
    if (wanted && count != 1)
        wants(d, "one reduce parameter, as in 'op: reduce'");
    if (!wanted && count)
        wants(d, "no reduce parameter");
}

void peal_deduce_contract(struct peal_deducer *d)
{
    const struct peal_kernel *kernel = d->kernel;
    enum peal_contract contract;
    if (!kernel->implements)
        return;
    if (!peal_contract_find(kernel->implements, strlen(kernel->implements), &contract)) {
        const char *best = NULL;
        peal_deducer_error(d, kernel->implements_pos, "unknown contract '%s'", kernel->implements);
        for (int i = 1; i < PEAL_CONTRACT_COUNT; i++)
            best = peal_nearer(kernel->implements, best,
                               peal_contract_info((enum peal_contract)i)->name);
        if (best)
            peal_deducer_note(d, (struct peal_pos){0}, "did you mean '%s'?", best);
        return;
    }
    const struct peal_contract_info *info = peal_contract_info(contract);
    if (info->in != PEAL_SIDE_NONE)
        check_data(d);
    check_reduce(d, info->has_reduce);
    const struct peal_symbol *root = find_param(kernel, "root");
    if (info->has_root && (!root || root->kind != PEAL_SYMBOL_INT))
        wants(d, "a parameter 'root: int'");
    if (info->has_matrix && !(is_counts(kernel, "sends") && is_counts(kernel, "recvs")))
        wants(d, "parameters 'local sends: int[nranks]' and 'local recvs: int[nranks]'");
}
