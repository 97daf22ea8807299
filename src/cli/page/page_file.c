/* SPDX-License-Identifier: Apache-2.0 */
/* Pages to files; see page_file.h. */
#include "cli/page/page_file.h"

#include "report/report.h"

#include <string.h>

static bool ends_in(const char *text, const char *end)
{
    size_t len = strlen(text), tail = strlen(end);
    return len >= tail && strcmp(text + len - tail, end) == 0;
}

bool peal_page_is_picture(const char *path)
{
    return ends_in(path, ".svg");
}

void peal_page_begin(const struct peal_cli *cli, struct peal_page *page, enum peal_page_kind kind,
                     const char *title, const char *argument)
{
    struct peal_source source;
    peal_page_init(page, kind, title);
    if (argument && strpbrk(argument, "/.") && peal_cli_read(cli, argument, &source))
        peal_page_source(page, argument, source.text, source.len);
}

bool peal_page_save(const struct peal_cli *cli, struct peal_page *page, const char *path)
{
    struct peal_text text = {0};
    enum peal_status status =
        peal_page_is_picture(path) ? peal_page_svg(page, NULL, &text) : peal_page_html(page, &text);
    bool good = status == PEAL_OK;
    if (!good)
        peal_cli_fail(cli, "out of memory for the page");
    else
        good = peal_cli_write(cli, path, &text);
    peal_text_release(&text);
    peal_page_release(page);
    return good;
}
