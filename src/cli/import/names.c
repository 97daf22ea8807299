/* SPDX-License-Identifier: Apache-2.0 */
/* Which arguments are programs that have to be run before there is a plan: by their names. */
#include "cli/import/python.h"
#include "cli/record/record.h"

#include <stdio.h>
#include <string.h>

static bool ends_in(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);
    return len > n && strcmp(text + len - n, end) == 0;
}

bool peal_recorded_names_file(const char *argument)
{
    static const char *const ends[] = {".cpp", ".cc", ".cxx", ".cce"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (ends_in(argument, ends[i]))
            return true;
    }
    return false;
}

bool peal_python_names_file(const char *argument)
{
    if (ends_in(argument, ".py"))
        return true;
    if (!ends_in(argument, ".yaml") && !ends_in(argument, ".yml"))
        return false;
    FILE *file = fopen(argument, "r");
    char line[256];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file))
        found = strncmp(line, "algorithms:", 11) == 0 || strncmp(line, "module:", 7) == 0;
    if (file)
        fclose(file);
    return found;
}
