/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes -> messages: headers up to an empty line, one of them `Content-Length: N`, then N bytes. */
#ifndef PEAL_LSP_FRAME_H
#define PEAL_LSP_FRAME_H

#include "base/base.h"

enum { PEAL_FRAME_MAX_HEADERS = 8192, PEAL_FRAME_MAX_BODY = 64 << 20 };

enum peal_frame_event {
    PEAL_FRAME_NONE,    /* more bytes are needed */
    PEAL_FRAME_MESSAGE, /* body and len are set until the next call */
    PEAL_FRAME_BAD,     /* headers that say no length: they are skipped */
    PEAL_FRAME_TOO_LONG /* a body over the limit: it is skipped */
};

/* A zeroed struct is empty. */
struct peal_frames {
    struct peal_text bytes;
    size_t used; /* bytes of messages that were given out */
    size_t skip; /* bytes of a body that is not wanted, still to come */
    const char *body;
    size_t len;
};

void peal_frames_release(struct peal_frames *frames);
void peal_frames_add(struct peal_frames *frames, const char *bytes, size_t len);
enum peal_frame_event peal_frames_next(struct peal_frames *frames);

#endif
