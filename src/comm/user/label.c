/* SPDX-License-Identifier: Apache-2.0 */
/* kernel 'NAME' of TYPE, n = 4096, root = 1, op = sum. See label.h. */
#include "comm/user/label.h"

#include "base/base.h"
#include "run/run.h"

#include <string.h>

static const struct peal_bind_value *find_value(const struct peal_bind *bind, const char *name)
{
    for (size_t i = 0; i < bind->nvalues; i++) {
        if (strcmp(bind->values[i].name, name) == 0)
            return &bind->values[i];
    }
    return NULL;
}

static bool is_local(const struct peal_kernel *kernel, const char *name)
{
    for (int i = 0; i < kernel->nparams; i++) {
        if (kernel->params[i]->is_local && strcmp(kernel->params[i]->name, name) == 0)
            return true;
    }
    return false;
}

static void add_value(const char *name, const int64_t *values, size_t count, struct peal_text *out)
{
    enum { SHOWN = 8 };
    const char *before = "";
    size_t shown = peal_size_min(count, SHOWN);
    peal_text_printf(out, ", %s = ", name);
    for (size_t i = 0; i < shown; i++) {
        peal_text_printf(out, "%s%lld", before, (long long)values[i]);
        before = " ";
    }
    if (count > SHOWN)
        peal_text_printf(out, " ... (%zu values)", count);
}

/* Parameters that were given by themselves, not by name. */
static void add_param(const struct peal_symbol *param, const struct peal_bind *bind,
                      struct peal_text *out)
{
    if (param->kind == PEAL_SYMBOL_REDUCE)
        peal_text_printf(out, ", %s = %s", param->name, peal_bind_reduce_name(bind));
    else if (param->kind == PEAL_SYMBOL_INT && strcmp(param->name, "root") == 0 &&
             !find_value(bind, "root"))
        peal_text_printf(out, ", root = %lld", (long long)bind->root);
}

void peal_label_launch(struct peal_team *team, uint64_t count, const struct peal_kernel *kernel,
                       const struct peal_bind *bind)
{
    if (peal_doctor_has_label(team, count))
        return;
    struct peal_text text = {0};
    peal_text_printf(&text, "kernel '%s' of %s", kernel->name, peal_dtype_name(bind->dtype));
    for (size_t i = 0; i < bind->nvalues; i++) {
        const struct peal_bind_value *value = &bind->values[i];
        if (!is_local(kernel, value->name))
            add_value(value->name, value->values, value->count, &text);
    }
    for (int i = 0; i < kernel->nparams; i++)
        add_param(kernel->params[i], bind, &text);
    if (bind->in_place)
        peal_text_puts(&text, ", in place");
    peal_doctor_label(team, count, peal_text_get(&text));
    peal_text_release(&text);
}

void peal_label_plan(struct peal_team *team, uint64_t count, const struct peal_plan *plan)
{
    if (peal_doctor_has_label(team, count))
        return;
    struct peal_text text = {0};
    peal_text_printf(&text, "kernel '%s' of %s", peal_plan_string(plan, plan->kernel),
                     peal_dtype_name((enum peal_dtype)plan->dtype));
    for (uint64_t i = 0; i < plan->params.count; i++) {
        const struct peal_param *param = &peal_plan_params(plan)[i];
        const char *name = peal_plan_string(plan, param->name);
        if (!param->is_local && strcmp(name, PEAL_PLAN_PLACEMENT) != 0)
            add_value(name, peal_plan_values(plan) + param->first, param->count, &text);
    }
    if (plan->reduce != PEAL_NONE)
        peal_text_printf(&text, ", op = %s", peal_reduce_name((enum peal_reduction)plan->reduce));
    peal_doctor_label(team, count, peal_text_get(&text));
    peal_text_release(&text);
}
