/* SPDX-License-Identifier: Apache-2.0 */
/* peal.yaml: any bytes give settings or a diagnostic, and patterns that end. */
#include "cli/ci/ci.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct options {
    struct peal_ints ranks, count;
    struct peal_pairs set;
    const char *require;
    bool quick;
};

static const struct peal_option table[] = {
    {"ranks", 'n', PEAL_OPTION_LIST, offsetof(struct options, ranks), PEAL_OPTION_OR_ALL, "", 1,
     65536},
    {"count", 'c', PEAL_OPTION_LIST, offsetof(struct options, count), "N", "", 0, 0},
    {"set", 0, PEAL_OPTION_PAIRS, offsetof(struct options, set), "NAME=VALUE", "", 0, 0},
    {"require", 0, PEAL_OPTION_STRING, offsetof(struct options, require), "LIST", "", 0, 0},
    {"quick", 0, PEAL_OPTION_FLAG, offsetof(struct options, quick), NULL, "", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};
static const struct options defaults;
static const struct peal_command command = {
    .name = "verify", .options = table, .defaults = &defaults, .size = sizeof defaults};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peal_source source = {.name = "fuzz", .text = (const char *)data, .len = size};
    struct peal_diags diags;
    struct peal_arena arena;
    struct peal_ci_settings settings;
    peal_diags_init(&diags);
    peal_arena_init(&arena, 64 << 20);
    enum peal_status status = peal_ci_settings_read(&source, &command, &arena, &diags, &settings);
    if ((status == PEAL_OK) != (diags.errors == 0) && status != PEAL_NO_MEMORY)
        abort(); /* refused without a reason */
    for (size_t i = 0; status == PEAL_OK && i < settings.entries.len; i++) {
        const struct peal_ci_entry *entry = &settings.entries.at[i];
        struct options options = defaults;
        struct peal_args args;
        struct peal_text error = {0};
        (void)peal_ci_patterns_name(&entry->files, "a/bb/ccc/aaaaaaaaaaaaaaaaaaaaaaab.peal");
        if (!peal_options_parse(table, false, entry->noptions, entry->options, &options, &arena,
                                &args, &error))
            abort(); /* what was accepted is an option */
        peal_text_release(&error);
    }
    char *pattern = strndup((const char *)data, size);
    if (pattern && strlen(pattern) < 200)
        (void)peal_ci_pattern_names(pattern, "a/b/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/ab.peal");
    free(pattern);
    peal_ci_settings_release(&settings);
    peal_arena_release(&arena);
    peal_diags_release(&diags);
    return 0;
}
