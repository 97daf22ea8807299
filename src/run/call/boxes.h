/* SPDX-License-Identifier: Apache-2.0 */
/* Where mailboxes are mapped. Those of a communicator that was opened are part of the windows;
 * those of one that was made from another are mapped when the first message needs them. */
#ifndef PEAL_RUN_BOXES_H
#define PEAL_RUN_BOXES_H

#include "run/call/mail.h"

/* At the beginning: those that are mapped already. */
void peal_boxes_find(struct peal_mail *mail);
/* Makes sure that this rank's boxes are mapped, and the box at `peer` for messages from this rank.
 * False: the mapping was refused, and the team has failed. */
bool peal_boxes_map(struct peal_mail *mail, uint32_t peer);
void peal_boxes_unmap(struct peal_mail *mail);

#endif
