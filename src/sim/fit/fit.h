/* SPDX-License-Identifier: Apache-2.0 */
/* Fits a machine to measured times: a few of its keys, found on one half of the sizes, tried on the
 * other.
 *
 *   points: plan and measured time, every second one to be fitted --> keys of the machine --> errors
 *
 * The error of some points is exp(mean |ln(simulated / measured)|) - 1, and that is what is made small.
 *
 * What can be fitted, at most as many keys as the caller allows:
 *
 *   protocol.simple.lat_ns, dma.bw_GBps               always: the straight line
 *   protocol.simple.ramp_ns, .ramp_bytes              messages reach their full speed slowly
 *   protocol.ll.lat_ns, .to_bytes                     small messages are sent in another way
 *   ccl.launch_ns                                     if calls differ in how many messages follow each other
 *
 * Which of the last three are used is decided by Akaike's criterion on the fitted points alone: a group of
 * keys has to make the error so much smaller that it is not by chance. Points that are checked have no
 * part in it. All keys below `protocol` are replaced; what else a call costs is the machine's as it is.
 *
 * Search: a call's time is taken to be time(engine) + launch + messages in a row x cost(message), each
 * known from a few simulations; the result is then checked, and improved, by simulation alone.
 */
#ifndef PEAL_SIM_FIT_FIT_H
#define PEAL_SIM_FIT_FIT_H

#include "plan/plan.h"
#include "sim/machine/machine.h"

enum { PEAL_FIT_MAX_KEYS = 6 };

struct peal_fit_point {
    const struct peal_plan *plan;
    double us;    /* measured */
    bool checked; /* not used to fit */
    double simulated_us;
};

struct peal_fit_value {
    enum peal_machine_key key;
    char before[32], after[32];
};

struct peal_fit {
    struct peal_fit_value values[PEAL_FIT_MAX_KEYS];
    uint32_t nvalues;
    double left_out; /* error of fitted points when each is left out */
    /* The longest fitted call on this machine if neither protocols nor engines cost anything, and as
     * measured: if that is less, no fit can reach it. */
    double links_us, links_measured_us;
    uint64_t simulations; /* number of runs */
};

/* Sets the keys of the machine, and every point's simulated time. At most `max_keys` keys, at least 2.
 * PEAL_INVALID with a diagnostic: too few points, or a plan that deadlocks on this machine. */
enum peal_status peal_fit_run(struct peal_machine *machine, struct peal_fit_point *points,
                              size_t count, uint32_t max_keys, struct peal_diags *diags,
                              struct peal_fit *out);

/* The error of the points for which `checked` is as asked; < 0: there are none. */
double peal_fit_error(const struct peal_fit_point *points, size_t count, bool checked);

/* The best line a + b x through (x, us), by the same measure: a in us, b in us per unit of x. */
void peal_fit_line(const double *x, const double *us, size_t count, double *a, double *b);

#endif
