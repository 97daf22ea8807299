/* SPDX-License-Identifier: Apache-2.0 */
/* The four files, and the way back; see pto.h. */
#include "export/pto/pto.h"

enum { HEADER, KERNEL, ORCHESTRATION, DRIVER };

bool peal_pto_write(const struct peal_plan *plan, const char *name, bool closed,
                    struct peal_diags *diags, struct peal_exported *out)
{
    static const char *const endings[] = {".hpp", "_kernel.cpp", "_orchestration.cpp",
                                          "_driver.cpp"};
    struct pto_window window;
    bool good = peal_pto_window_init(plan, diags, &window) &&
                peal_pto_kernel(&window, name, diags, &out->files[KERNEL].text);
    if (good) {
        peal_pto_header(&window, name, closed, &out->files[HEADER].text);
        peal_pto_text("orchestration", name, &out->files[ORCHESTRATION].text);
        peal_pto_text("driver", name, &out->files[DRIVER].text);
    }
    peal_pto_window_release(&window);
    out->nfiles = PEAL_EXPORTED_FILES;
    for (uint32_t i = 0; i < out->nfiles; i++) {
        out->files[i].ending = endings[i];
        good = good && !out->files[i].text.failed;
    }
    return good;
}

enum peal_status peal_pto_read_back(const struct peal_exported *written,
                                    const struct peal_plan *like, struct peal_diags *diags,
                                    struct peal_plan **out)
{
    return peal_pto_read(peal_text_get(&written->files[HEADER].text),
                         peal_text_get(&written->files[KERNEL].text), peal_text_get(&written->name),
                         like, diags, out);
}
