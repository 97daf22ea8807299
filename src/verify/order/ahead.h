/* SPDX-License-Identifier: Apache-2.0 */
/* How many launches a proof needs.
 *
 * A few launches stand for many if removing the first ones leaves a valid execution, and if later
 * ones change nothing for these. Two kinds of cells need a closer look.
 *
 * Several threads add to a cell: what a fast thread adds in a later launch may stand in for what a
 * slow one has not added yet. That changes nothing if no rank can leave the last launch before all
 * others have made their adds to the cells that it adds to: then every wait on them has been
 * satisfied already. Otherwise enough launches are examined that one thread's adds alone satisfy
 * every wait of the first ones.
 *
 * Raw cells keep their value. If a launch leaves a cell with another value than it found, later
 * launches start differently: until the value has grown past everything it is compared with, each
 * of them is new.
 *
 * Launches that a `when` on the launch's number makes unlike the later ones (peal_program_lead) are kept
 * in front of all others. They must end by themselves; then those that follow are an execution of
 * their own.
 */
#ifndef PEAL_VERIFY_AHEAD_H
#define PEAL_VERIFY_AHEAD_H

#include "verify/program/program.h"

/* The number of launches that shows all that more of them could show. At most the program's own
 * number: no more are needed. PEAL_NONE: no number is known to suffice, or out of memory. */
uint32_t peal_ahead_launches(const struct program *p, uint32_t workers);

/* in_order.c. Do all adds of a launch to a cell come before those of later launches? Also false if
 * that is not known: raw cells, and shared cells of programs that are not monotone. */
bool peal_ahead_in_order(const struct program *p, uint32_t workers);

#endif
