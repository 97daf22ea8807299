/* SPDX-License-Identifier: Apache-2.0 */
/* report: results as files and text for people and programs. It knows plans, but neither verifier,
 * simulator nor runtime.
 *
 *   table.h  columns of text                 plot.h   curves, svg.h: as a picture
 *   trace.h  Chrome's trace format
 *   page.h   the page behind --html: a neutral description; its writer is in page_html.c, page_json.c
 */
#ifndef PEAL_REPORT_REPORT_H
#define PEAL_REPORT_REPORT_H

#include "report/page.h"
#include "report/plot.h"
#include "report/svg.h"
#include "report/table.h"
#include "report/trace.h"

#endif
