/* SPDX-License-Identifier: Apache-2.0 */
/* All built-in kernels exist, are right, and print to a text that reads back the same. */
#include "lang/deduce/deduce.h"
#include "lang/library.h"
#include "lang/syntax/parse.h"
#include "lang/syntax/print.h"
#include "base/tests/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int open_library(void **state)
{
    struct peal_diags diags;
    struct peal_library *library = NULL;
    struct peal_text text = {0};
    peal_diags_init(&diags);
    enum peal_status status = peal_library_open(&diags, &library);
    peal_diags_print(&diags, false, &text);
    if (status != PEAL_OK)
        print_error("%s", peal_text_get(&text));
    peal_text_release(&text);
    peal_diags_release(&diags);
    *state = library;
    return status == PEAL_OK ? 0 : -1;
}

static int close_library(void **state)
{
    peal_library_close(*state);
    return 0;
}

TEST(every_text_of_the_folder_is_listed)
{
    DIR *folder = opendir(SOURCE_ROOT "/kernels");
    assert_non_null(folder);
    size_t found = 0;
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        char name[300];
        if (!strstr(entry->d_name, ".peal"))
            continue;
        snprintf(name, sizeof name, "kernels/%s", entry->d_name);
        size_t i = 0;
        while (i < peal_library_text_count && strcmp(peal_library_texts[i].name, name) != 0)
            i++;
        if (i == peal_library_text_count)
            fail_msg("%s is not listed in kernels/meson.build", name);
        found++;
    }
    closedir(folder);
    assert_int_equal(found, peal_library_text_count);
}

TEST(every_kernel_is_deduced_and_has_a_comment)
{
    const struct peal_module *module = peal_library_module(*state);
    assert_non_null(module->kernels);
    for (const struct peal_kernel *k = module->kernels; k; k = k->next) {
        if (!k->deduced || k->period < 1 || !*k->doc)
            fail_msg("kernel '%s'", k->name);
    }
}

TEST(the_library_reads_back_as_it_prints)
{
    struct peal_text once = {0};
    struct peal_text twice = {0};
    struct peal_module *module = NULL;
    peal_print_module(peal_library_module(*state), &once);
    struct peal_source source = {"printed", peal_text_get(&once), once.len};
    assert_int_equal(peal_parse(&source, NULL, &module), PEAL_OK);
    peal_print_module(module, &twice);
    assert_string_equal(peal_text_get(&once), peal_text_get(&twice));
    assert_int_equal(peal_deduce(module, NULL, NULL), PEAL_OK);
    peal_text_release(&twice);
    peal_print_module(module, &twice);
    assert_string_equal(peal_text_get(&once), peal_text_get(&twice));
    peal_text_release(&once);
    peal_text_release(&twice);
    peal_module_free(module);
}

int main(void)
{
    return unit_run_with(open_library, close_library);
}
