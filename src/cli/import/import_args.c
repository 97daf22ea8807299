/* SPDX-License-Identifier: Apache-2.0 */
/* See import_args.h. */
#include "cli/import/import_args.h"

#include "cli/import/python.h"
#include "cli/record/record.h"

#include <stdio.h>
#include <string.h>

bool peal_import_names_file(const char *argument)
{
    char head[512];
    size_t len = strlen(argument);
    if ((len > 5 && strcmp(argument + len - 5, ".peal") == 0) || !strpbrk(argument, "./"))
        return false;
    if ((len > 4 && strcmp(argument + len - 4, ".xml") == 0) ||
        (len > 5 && strcmp(argument + len - 5, ".json") == 0) || peal_python_names_file(argument) ||
        peal_recorded_names_file(argument))
        return true;
    FILE *file = fopen(argument, "rb");
    if (!file)
        return false;
    size_t got = fread(head, 1, sizeof head, file);
    fclose(file);
    return peal_import_format(head, got) != PEAL_FORMAT_NONE;
}

bool peal_import_options_fit(const struct peal_cli *cli, const struct peal_kernel_options *options,
                             const char *argument)
{
    const struct peal_recorded_options *o = &options->recorded;
    enum { CPP = 1, PYTHON = 2 };
    static const char *const whose[] = {[CPP] = "kernels in C++",
                                        [PYTHON] = "programs in Python",
                                        [CPP | PYTHON] = "kernels in C++ and programs in Python"};
    const struct {
        const char *name;
        bool is_given;
        int of;
    } all[] = {{"entry", o->entry != NULL, CPP},
               {"args", o->args != NULL, CPP | PYTHON},
               {"implements", o->implements != NULL, CPP | PYTHON},
               {"level", o->level != PEAL_LEVEL_BOTH, CPP},
               {"pipes", o->pipes != NULL, CPP},
               {"blocks", o->blocks != 0, CPP},
               {"input", o->inputs.len != 0, CPP | PYTHON},
               {"then", o->then != NULL, CPP},
               {"calls", o->calls != 0, PYTHON},
               {"between", o->between != 0, PYTHON},
               {"model", o->model != 0, PYTHON},
               {"in-order-copies", o->in_order_copies, PYTHON}};
    int kind = 0;
    if (peal_recorded_names_file(argument))
        kind = CPP;
    else if (peal_python_names_file(argument))
        kind = PYTHON;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].is_given && !(all[i].of & kind)) {
            peal_cli_usage(cli, "--%s is for %s, and '%s' is none", all[i].name, whose[all[i].of],
                           argument);
            return false;
        }
    }
    return true;
}

/* The kernel options, as far as an import uses them. Reports usage errors (several depths, a number
 * of ranks that is not the file's) and returns false. facts may be NULL. */
static bool bind_options(const struct peal_cli *cli, const struct peal_kernel_options *options,
                         const struct peal_import_facts *facts, struct peal_import_options *out)
{
    if (facts && options->ranks.len &&
        (options->ranks.len > 1 || options->ranks.at[0] != facts->nranks)) {
        peal_cli_usage(cli, "'%s' is for %u ranks; --ranks cannot change that", facts->name,
                       facts->nranks);
        return false;
    }
    if (!peal_operation_is_known(cli, &options->op))
        return false;
    if (options->set.len) {
        peal_cli_usage(cli, "--set: a plan of another format has no parameters");
        return false;
    }
    *out = (struct peal_import_options){
        .depth = (uint32_t)options->depth,
        .slot_bytes = options->slot_bytes,
        .dtype = options->dtype,
        .reduce = options->op.reduce,
        .place = options->in_place ? PEAL_PLACE_IN : PEAL_PLACE_FILE,
        .has_root = peal_kernel_root(options) > 0,
        .root = (uint32_t)peal_kernel_root(options),
    };
    if (options->counts.len)
        out->count = (uint64_t)options->counts.at[0];
    return true;
}

/* A kernel in Python: one recording is opened, for one number of ranks and one count. */
static bool open_python(const struct peal_cli *cli, const char *path,
                        const struct peal_kernel_options *options, struct peal_import_file *out,
                        int *code)
{
    struct peal_python_recordings recordings;
    struct peal_kernel_options recorded = *options;
    char fallback[16];
    bool ok = false;
    snprintf(fallback, sizeof fallback, "%u", options->fallback ? options->fallback : 4);
    *out = (struct peal_import_file){0};
    peal_diags_init(&out->diags);
    *code = PEAL_EXIT_OTHER;
    if (options->ranks.len > 1 || options->counts.len > 1)
        *code = peal_cli_usage(cli, "--ranks and --count take one value here");
    else if (peal_python_record(cli, path, options, fallback, &recordings)) {
        recorded.ranks.len = recorded.counts.len = 0;
        recorded.nodes = recorded.machine = NULL;
        ok = peal_import_file_open(cli, recordings.paths[0], &recorded, out, code);
        peal_python_release(&recordings);
    } else {
        peal_python_release(&recordings);
    }
    return ok;
}

bool peal_import_file_open(const struct peal_cli *cli, const char *path,
                           const struct peal_kernel_options *options, struct peal_import_file *out,
                           int *code)
{
    if (peal_python_names_file(path))
        return open_python(cli, path, options, out, code);
    struct peal_import_options import_options;
    *out = (struct peal_import_file){0};
    peal_diags_init(&out->diags);
    *code = PEAL_EXIT_OTHER;
    if (peal_recorded_names_file(path))
        return peal_recorded_open(cli, path, options, &out->plan, code);
    if (!peal_cli_read(cli, path, &out->source))
        return false;
    if (options->counts.len > 1) {
        *code = peal_cli_usage(cli, "--count takes one value here");
        return false;
    }
    enum peal_status status = peal_import_open(&out->source, &out->diags, &out->import);
    if (status == PEAL_OK &&
        !bind_options(cli, options, peal_import_facts(out->import), &import_options)) {
        *code = PEAL_EXIT_USAGE;
        return false;
    }
    if (status == PEAL_OK)
        status = peal_import_plan(out->import, &import_options, &out->diags, &out->plan);
    if (status != PEAL_OK)
        *code = peal_cli_diags(cli, status, &out->diags);
    return status == PEAL_OK;
}

void peal_import_file_release(struct peal_import_file *file)
{
    free(file->plan);
    peal_import_close(file->import);
    peal_diags_release(&file->diags);
    *file = (struct peal_import_file){0};
}
