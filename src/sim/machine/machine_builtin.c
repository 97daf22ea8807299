/* SPDX-License-Identifier: Apache-2.0 */
/* The machines of machines/, which the build puts into the binary, found by name. */
#include "base/base.h"
#include "sim/machine/machine.h"

#include <stdio.h>
#include <string.h>

/* "mesh4x4" of "machines/mesh4x4.yaml". */
static bool is_named(const struct peal_source *source, const char *name, size_t len)
{
    const char *base = strrchr(source->name, '/') + 1;
    return strncmp(base, name, len) == 0 && base[len] == '.';
}

static void suggest_names(const char *name, struct peal_diags *diags)
{
    enum { MAX_BUILTINS = 32 };
    char names[MAX_BUILTINS][64];
    const char *list[MAX_BUILTINS + 1] = {NULL};
    struct peal_text all = {0};
    for (size_t i = 0; i < peal_machine_text_count && i < MAX_BUILTINS; i++) {
        const char *base = strrchr(peal_machine_texts[i].name, '/') + 1;
        snprintf(names[i], sizeof names[i], "%.*s", (int)strcspn(base, "."), base);
        list[i] = names[i];
        peal_text_printf(&all, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = peal_nearest(name, list);
    peal_diag_error(diags, (struct peal_pos){0}, "there is no built-in machine '%s'", name);
    if (near)
        peal_diag_note(diags, (struct peal_pos){0}, "did you mean '%s'?", near);
    else
        peal_diag_note(diags, (struct peal_pos){0}, "there are: %s; a file has a '/' or a '.'",
                       peal_text_get(&all));
    peal_text_release(&all);
}

const struct peal_source *peal_machine_builtin(const char *name, struct peal_diags *diags)
{
    for (size_t i = 0; i < peal_machine_text_count; i++) {
        if (is_named(&peal_machine_texts[i], name, strlen(name)))
            return &peal_machine_texts[i];
    }
    suggest_names(name, diags);
    return NULL;
}
