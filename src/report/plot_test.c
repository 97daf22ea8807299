/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of a plot's axes. */
#include "report/plot.h"
#include "base/tests/unit.h"

#include <string.h>

TEST(ticks_are_short_numbers)
{
    static const struct {
        int line;
        double from, to;
        const char *ticks[3];
    } rows[] = {
        {__LINE__, 1e3, 1e9, {">1000<", ">1M<", ">100M<"}},
        {__LINE__, 10, 1e6, {">10<", ">10K<", ">1M<"}},
        {__LINE__, 1e9, 1e14, {">1G<", ">1T<", ">100T<"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_plot plot = {
            .title = "t", .x_label = "x", .y_label = "y", .x_log = true, .y_log = true};
        struct peal_text svg = {0};
        peal_plot_curve(&plot, "a");
        peal_plot_add(&plot, rows[i].from, 1);
        peal_plot_add(&plot, rows[i].to, 10);
        peal_plot_svg(&plot, &svg);
        for (int t = 0; t < 3; t++) {
            if (!strstr(peal_text_get(&svg), rows[i].ticks[t]))
                fail_msg("%s:%d: no tick %s in\n%s", __FILE__, rows[i].line, rows[i].ticks[t],
                         peal_text_get(&svg));
        }
        assert_null(strstr(peal_text_get(&svg), "e+"));
        peal_text_release(&svg);
        peal_plot_release(&plot);
    }
}

int main(void)
{
    return unit_run();
}
