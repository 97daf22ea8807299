/* SPDX-License-Identifier: Apache-2.0 */
/* viewer/ as one text in three pieces, made by viewer/pack.py: up to the title, from there to the
 * data, and the rest. */
#ifndef PEAL_REPORT_PAGE_TEMPLATE_H
#define PEAL_REPORT_PAGE_TEMPLATE_H

#include <stddef.h>

extern const char peal_page_template_head[];
extern const size_t peal_page_template_head_len;
extern const char peal_page_template_middle[];
extern const size_t peal_page_template_middle_len;
extern const char peal_page_template_tail[];
extern const size_t peal_page_template_tail_len;

#endif
