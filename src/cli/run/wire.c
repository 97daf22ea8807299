/* SPDX-License-Identifier: Apache-2.0 */
/* See wire.h. */
#include "cli/run/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void peal_wire_init(struct peal_wire *wire, int in, int out)
{
    *wire = (struct peal_wire){.in = in, .out = out};
    fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
}

void peal_wire_release(struct peal_wire *wire)
{
    if (wire->in >= 0)
        close(wire->in);
    if (wire->out >= 0 && wire->out != wire->in)
        close(wire->out);
    /* A secret may have passed through here. */
    if (wire->received.at)
        explicit_bzero(wire->received.at, wire->received.cap);
    if (wire->unsent.at)
        explicit_bzero(wire->unsent.at, wire->unsent.cap);
    peal_text_release(&wire->received);
    peal_text_release(&wire->unsent);
    wire->in = wire->out = -1;
}

void peal_wire_put(struct peal_wire *wire, uint32_t kind, uint32_t rank, const void *bytes,
                   size_t len)
{
    const struct peal_hosts_head head = {.kind = kind, .rank = rank, .bytes = (uint32_t)len};
    if (wire->broken)
        return;
    peal_text_add(&wire->unsent, (const char *)&head, sizeof head);
    if (len > 0)
        peal_text_add(&wire->unsent, bytes, len);
    wire->broken = wire->unsent.failed;
    peal_wire_flush(wire);
}

void peal_wire_flush(struct peal_wire *wire)
{
    size_t done = 0;
    while (!wire->broken && done < wire->unsent.len) {
        ssize_t sent = write(wire->out, wire->unsent.at + done, wire->unsent.len - done);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            break;
        if (sent <= 0)
            wire->broken = true;
        else
            done += (size_t)sent;
    }
    if (done == 0)
        return;
    memmove(wire->unsent.at, wire->unsent.at + done, wire->unsent.len - done);
    wire->unsent.len -= done;
}

void peal_wire_fill(struct peal_wire *wire)
{
    char bytes[65536];
    if (wire->taken > 0) {
        memmove(wire->received.at, wire->received.at + wire->taken,
                wire->received.len - wire->taken);
        wire->received.len -= wire->taken;
        wire->taken = 0;
    }
    while (!wire->broken) {
        ssize_t got = read(wire->in, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            break;
        if (got <= 0)
            wire->broken = true;
        else
            peal_text_add(&wire->received, bytes, (size_t)got);
        if (wire->received.failed)
            wire->broken = true;
        if (got < (ssize_t)sizeof bytes)
            break;
    }
    explicit_bzero(bytes, sizeof bytes);
}

bool peal_wire_skip(struct peal_wire *wire, const char *line)
{
    size_t len = strlen(line), have = wire->received.len - wire->taken;
    const char *start = "";
    if (wire->received.at)
        start = wire->received.at + wire->taken;
    const char *at = memmem(start, have, line, len);
    if (!at)
        return false;
    wire->taken += (size_t)(at - start) + len;
    return true;
}

bool peal_wire_next(struct peal_wire *wire, struct peal_hosts_head *head, const uint8_t **bytes)
{
    size_t left = wire->received.len - wire->taken;
    if (left < sizeof *head)
        return false;
    memcpy(head, wire->received.at + wire->taken, sizeof *head);
    if (head->kind == 0 || head->kind >= PEAL_HOSTS_KINDS || head->bytes > PEAL_HOSTS_MESSAGE) {
        wire->broken = true;
        wire->taken = wire->received.len;
        return false;
    }
    if (left - sizeof *head < head->bytes)
        return false;
    *bytes = (const uint8_t *)wire->received.at + wire->taken + sizeof *head;
    wire->taken += sizeof *head + head->bytes;
    return true;
}
