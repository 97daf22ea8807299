/* SPDX-License-Identifier: Apache-2.0 */
/* Files and built-ins to lowered kernels. */
#include "lang/load.h"

#include "base/base.h"
#include "lang/deduce/deduce.h"
#include "lang/library.h"
#include "lang/syntax/parse.h"
#include "lang/lower/lower.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 64 << 20 };

struct peal_program {
    struct peal_library *library;
    struct peal_source source; /* of a file; owns name and text */
    char *name, *text;
    struct peal_module *module;  /* of a file; NULL for a built-in */
    struct peal_module *lowered; /* copies, made on demand */
    char *builtin;               /* the requested built-in, or NULL */
};

static char *copy_text(const char *text, size_t len)
{
    char *copy = malloc(len + 1);
    if (copy) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

void peal_program_close(struct peal_program *program)
{
    if (!program)
        return;
    peal_module_free(program->lowered);
    peal_module_free(program->module);
    peal_library_close(program->library);
    free(program->builtin);
    free(program->name);
    free(program->text);
    free(program);
}

static enum peal_status make(struct peal_diags *diags, struct peal_program **out)
{
    struct peal_program *program = calloc(1, sizeof *program);
    if (!program)
        return PEAL_NO_MEMORY;
    enum peal_status status = peal_library_open(diags, &program->library);
    if (status == PEAL_OK) {
        program->lowered = peal_module_new();
        status = program->lowered ? PEAL_OK : PEAL_NO_MEMORY;
    }
    if (status != PEAL_OK) {
        peal_program_close(program);
        return status;
    }
    *out = program;
    return PEAL_OK;
}

enum peal_status peal_program_text(const char *name, const char *text, size_t len,
                                   struct peal_diags *diags, struct peal_program **out)
{
    struct peal_program *program;
    enum peal_status status = make(diags, &program);
    if (status != PEAL_OK)
        return status;
    program->name = copy_text(name, strlen(name));
    program->text = copy_text(text, len);
    if (!program->name || !program->text) {
        status = PEAL_NO_MEMORY;
    } else {
        program->source = (struct peal_source){program->name, program->text, len};
        status = peal_parse(&program->source, diags, &program->module);
    }
    if (status == PEAL_OK)
        status = peal_deduce(program->module, peal_library_module(program->library), diags);
    *out = program; /* also on failure: diagnostics point into its text */
    return status;
}

/* The kernel of that name, or the text's last. */
static const struct peal_reduce_decl *find_reduction(const struct peal_module *module,
                                                     const char *name)
{
    if (name)
        return peal_module_find_reduction(module, name);
    const struct peal_reduce_decl *last = module->reductions;
    while (last && last->next)
        last = last->next;
    return last;
}

enum peal_status peal_formula_read(const char *text, const char *name, struct peal_formula *out,
                                   struct peal_text *why)
{
    struct peal_program *program = NULL;
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status = peal_program_text("text", text, strlen(text), &diags, &program);
    if (status != PEAL_OK) {
        peal_diags_print(&diags, false, why);
    } else {
        const struct peal_reduce_decl *decl = find_reduction(program->module, name);
        if (decl) {
            *out = decl->formula;
        } else {
            status = PEAL_INVALID;
            peal_text_puts(why, "there is no reduction ");
            if (name)
                peal_text_printf(why, "'%s'", name);
            else
                peal_text_puts(why, "in the text");
        }
    }
    peal_program_close(program);
    peal_diags_release(&diags);
    return status;
}

enum peal_status peal_formula_given(const struct peal_kernel *kernel, const char *given,
                                    struct peal_formula *out, struct peal_text *why)
{
    if (strchr(given, '('))
        return peal_formula_read(given, NULL, out, why);
    for (uint32_t i = 0; i < kernel->nformulas; i++) {
        if (strcmp(kernel->formulas[i].name, given) == 0) {
            *out = kernel->formulas[i];
            return PEAL_OK;
        }
    }
    peal_text_printf(why, "there is no reduction '%s'", given);
    return PEAL_INVALID;
}

static bool is_stdin(const char *path)
{
    return strcmp(path, "-") == 0;
}

static enum peal_status read_file(const char *path, struct peal_diags *diags, char **text,
                                  size_t *len)
{
    struct peal_pos nowhere = {0};
    FILE *file = is_stdin(path) ? stdin : fopen(path, "rb");
    if (!file) {
        peal_diag_error(diags, nowhere, "cannot read '%s': %s", path, strerror(errno));
        return PEAL_INVALID;
    }
    char *all = NULL;
    size_t used = 0, cap = 0, got = 0;
    enum peal_status status = PEAL_OK;
    do {
        if (cap - used < 65536 && !peal_vec_grow((void **)&all, &cap, used, 65536, 1)) {
            status = PEAL_NO_MEMORY;
            break;
        }
        got = fread(all + used, 1, cap - used, file);
        used += got;
        if (used > LARGEST_FILE) {
            peal_diag_error(diags, nowhere, "'%s' is larger than %d bytes", path, LARGEST_FILE);
            status = PEAL_INVALID;
        }
    } while (got > 0 && status == PEAL_OK);
    if (status == PEAL_OK && ferror(file)) {
        peal_diag_error(diags, nowhere, "cannot read '%s': %s", path, strerror(errno));
        status = PEAL_INVALID;
    }
    if (!is_stdin(path))
        fclose(file);
    if (status != PEAL_OK) {
        free(all);
        return status;
    }
    *text = all;
    *len = used;
    return PEAL_OK;
}

bool peal_program_is_path(const char *path_or_name)
{
    size_t len = strlen(path_or_name);
    return strchr(path_or_name, '/') || is_stdin(path_or_name) || (len > 5 && strcmp(path_or_name + len - 5, ".peal") == 0);
}

/* Adds a note with the kernel that a misspelt name probably meant. False: there is none. */
static bool note_nearest(const struct peal_module *module, const char *name,
                         struct peal_diags *diags)
{
    const char *meant = NULL;
    for (const struct peal_kernel *k = module->kernels; k; k = k->next)
        meant = peal_nearer(name, meant, k->name);
    if (meant)
        peal_diag_note(diags, (struct peal_pos){0}, "did you mean '%s'?", meant);
    return meant != NULL;
}

static void note_where(const char *name, struct peal_diags *diags)
{
    const struct peal_pos nowhere = {0};
    for (int i = PEAL_CONTRACT_NONE + 1; i < PEAL_CONTRACT_COUNT; i++) {
        if (strcmp(name, peal_contract_info((enum peal_contract)i)->name) == 0) {
            peal_diag_note(diags, nowhere, "'peal list %s' shows the kernels that implement it",
                           name);
            return;
        }
    }
    peal_diag_note(diags, nowhere, "'peal list' shows them; a file has a '/' or ends in .peal");
}

enum peal_status peal_program_builtin(const char *name, struct peal_diags *diags,
                                      struct peal_program **out)
{
    struct peal_program *program;
    enum peal_status status = make(diags, &program);
    if (status != PEAL_OK)
        return status;
    program->builtin = copy_text(name, strlen(name));
    if (!program->builtin) {
        status = PEAL_NO_MEMORY;
    } else if (!peal_module_find(peal_library_module(program->library), name)) {
        const struct peal_pos nowhere = {0};
        peal_diag_error(diags, nowhere, "there is no built-in kernel '%s'", name);
        if (!note_nearest(peal_library_module(program->library), name, diags))
            note_where(name, diags);
        status = PEAL_INVALID;
    }
    if (status != PEAL_OK) {
        peal_program_close(program);
        return status;
    }
    *out = program;
    return PEAL_OK;
}

enum peal_status peal_program_file(const char *path, struct peal_diags *diags,
                                   struct peal_program **out)
{
    char *text;
    size_t len;
    enum peal_status status = read_file(path, diags, &text, &len);
    if (status != PEAL_OK)
        return status;
    status = peal_program_text(is_stdin(path) ? "<stdin>" : path, text, len, diags, out);
    free(text);
    return status;
}

enum peal_status peal_program_open(const char *path_or_name, struct peal_diags *diags,
                                   struct peal_program **out)
{
    if (peal_program_is_path(path_or_name))
        return peal_program_file(path_or_name, diags, out);
    return peal_program_builtin(path_or_name, diags, out);
}

static const struct peal_kernel *last_kernel(const struct peal_module *module)
{
    const struct peal_kernel *last = NULL;
    for (const struct peal_kernel *k = module->kernels; k; k = k->next)
        last = k;
    return last;
}

const struct peal_kernel *peal_program_kernel(struct peal_program *program, const char *name,
                                              struct peal_diags *diags)
{
    const struct peal_module *from = program->module;
    if (!from)
        from = peal_library_module(program->library);
    const struct peal_kernel *kernel = NULL;
    if (!name)
        name = program->builtin;
    if (name)
        kernel = peal_module_find(from, name);
    else
        kernel = last_kernel(from);
    if (!kernel) {
        struct peal_pos pos = {.source = program->module ? &program->source : NULL};
        if (name)
            peal_diag_error(diags, pos, "there is no kernel '%s'", name);
        else
            peal_diag_error(diags, pos, "there is no kernel in this file");
        if (name)
            note_nearest(from, name, diags);
        return NULL;
    }
    struct peal_kernel *lowered = peal_module_find(program->lowered, kernel->name);
    if (!lowered && peal_lower(kernel, program->lowered, NULL, diags, &lowered) != PEAL_OK)
        return NULL;
    return lowered;
}

const struct peal_module *peal_program_module(const struct peal_program *program)
{
    if (!program->module)
        return peal_library_module(program->library);
    return program->module;
}

bool peal_program_orders_pairs(const struct peal_program *program, const char *kernel)
{
    return peal_library_orders_pairs(program->library, kernel);
}
