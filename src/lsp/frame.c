/* SPDX-License-Identifier: Apache-2.0 */
/* See frame.h. After headers without a length nobody knows where the next message begins: the reader goes on at the
 * line after them, and so finds the next headers. */
#include "lsp/frame.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void peal_frames_release(struct peal_frames *frames)
{
    peal_text_release(&frames->bytes);
    *frames = (struct peal_frames){.used = 0};
}

/* Forgets what was given out, if it is worth the copy. */
static void compact(struct peal_frames *frames)
{
    struct peal_text *bytes = &frames->bytes;
    if (frames->used == bytes->len) {
        bytes->len = frames->used = 0;
    } else if (frames->used > bytes->len / 2) {
        memmove(bytes->at, bytes->at + frames->used, bytes->len - frames->used);
        bytes->len -= frames->used;
        frames->used = 0;
    }
}

void peal_frames_add(struct peal_frames *frames, const char *bytes, size_t len)
{
    size_t skipped = peal_size_min(frames->skip, len);
    frames->skip -= skipped;
    compact(frames);
    peal_text_add(&frames->bytes, bytes + skipped, len - skipped);
}

/* Past the empty line that ends the headers at `at`; NULL: it is not there yet. */
static const char *find_body(const char *at, const char *end)
{
    for (const char *line = at; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        if (!newline)
            return NULL;
        if (newline == line || (newline == line + 1 && *line == '\r'))
            return newline + 1;
        line = newline + 1;
    }
    return NULL;
}

/* SIZE_MAX: there is no length among the headers. */
static size_t find_length(const char *at, const char *end)
{
    static const char name[] = "Content-Length:";
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline)
            break;
        if ((size_t)(newline - at) >= sizeof name - 1 &&
            strncasecmp(at, name, sizeof name - 1) == 0) {
            size_t length = 0, digits = 0;
            for (at += sizeof name - 1; *at == ' ' || *at == '\t'; at++)
                continue;
            for (; *at >= '0' && *at <= '9' && digits < 15; at++, digits++)
                length = length * 10 + (size_t)(*at - '0');
            bool ends = *at == '\r' || *at == '\n' || *at == ' ';
            return digits && ends ? length : SIZE_MAX;
        }
        at = newline + 1;
    }
    return SIZE_MAX;
}

enum peal_frame_event peal_frames_next(struct peal_frames *frames)
{
    const char *start = frames->bytes.at + frames->used;
    const char *end = frames->bytes.at + frames->bytes.len;
    if (frames->used == frames->bytes.len)
        return PEAL_FRAME_NONE;
    const char *body = find_body(start, end);
    if (!body) {
        if (end - start <= PEAL_FRAME_MAX_HEADERS)
            return PEAL_FRAME_NONE;
        frames->used = frames->bytes.len;
        return PEAL_FRAME_BAD;
    }
    size_t length = find_length(start, body);
    if (length == SIZE_MAX) {
        frames->used = (size_t)(body - frames->bytes.at);
        return PEAL_FRAME_BAD;
    }
    size_t there = (size_t)(end - body);
    if (length > PEAL_FRAME_MAX_BODY) {
        size_t now = peal_size_min(there, length);
        frames->used = (size_t)(body - frames->bytes.at) + now;
        frames->skip = length - now;
        return PEAL_FRAME_TOO_LONG;
    }
    if (there < length)
        return PEAL_FRAME_NONE;
    frames->body = body;
    frames->len = length;
    frames->used = (size_t)(body - frames->bytes.at) + length;
    return PEAL_FRAME_MESSAGE;
}
