/* SPDX-License-Identifier: Apache-2.0 */
/* exp, log, tanh, sigmoid in f64: plain arithmetic in a fixed order, no library calls.
 *
 * The C library's versions differ from release to release; these give the same bits wherever IEEE
 * arithmetic does. The error stays within 3 units in the last place of f64 (tested against the
 * library), so that results rounded to f32 are the nearest ones but for rare ties.
 */
#ifndef PEAL_COMPUTE_ELEMENTARY_H
#define PEAL_COMPUTE_ELEMENTARY_H

double peal_elementary_exp(double x);
double peal_elementary_log(double x);
double peal_elementary_tanh(double x);
double peal_elementary_sigmoid(double x);

#endif
