/* SPDX-License-Identifier: Apache-2.0 */
/* The HTML file: the template that the build made from viewer/, divided where the data goes.
 *
 *   head ... <title> TITLE </title> ... <script type="application/json"> DATA </script> ... script
 *
 * Kernel names, source texts and file names are untrusted. They reach the file only through
 * peal_json_* (which escapes whatever could end a script element) and add_html; the page's script
 * sets text only. The template's content security policy names the hash of its one script, so that
 * no other text could run as a script.
 */
#include "report/escape.h"
#include "report/page.h"

#include "report/page_template.h"

static void add_html(struct peal_text *out, const char *text)
{
    for (; *text; text++) {
        const char *escape = peal_markup_escape(*text);
        if (escape)
            peal_text_puts(out, escape);
        else
            peal_text_add(out, text, 1);
    }
}

enum peal_status peal_page_html(struct peal_page *page, struct peal_text *out)
{
    struct peal_json json;
    peal_text_add(out, peal_page_template_head, peal_page_template_head_len);
    add_html(out, peal_page_get(page, page->title));
    peal_text_add(out, peal_page_template_middle, peal_page_template_middle_len);
    peal_json_init(&json, out, 0);
    json.in_script = true;
    peal_page_json(page, &json);
    peal_text_add(out, peal_page_template_tail, peal_page_template_tail_len);
    if (page->failed || out->failed)
        return PEAL_NO_MEMORY;
    return PEAL_OK;
}
