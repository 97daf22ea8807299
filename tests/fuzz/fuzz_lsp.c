/* SPDX-License-Identifier: Apache-2.0 */
/* What an editor sends. The bytes give the same messages whether they come at once or one by one; a server that gets
 * them answers with JSON and nothing else. It lives as long as the process, because it reads the library when it starts. */
#include "lsp/frame.h"
#include "lsp/lsp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All events of what was added, and the bodies, as one hash. */
static uint64_t take_all(struct peal_frames *frames, uint64_t hash)
{
    enum peal_frame_event event;
    while ((event = peal_frames_next(frames)) != PEAL_FRAME_NONE) {
        hash = peal_hash_u64((uint64_t)event, hash);
        if (event == PEAL_FRAME_MESSAGE)
            hash = peal_hash_bytes(frames->body, frames->len, hash);
    }
    return hash;
}

/* Headers over the limit are cut where the bytes that came end, so only shorter inputs are compared. */
static void check_frames(const uint8_t *data, size_t size)
{
    struct peal_frames whole = {.used = 0}, pieces = {.used = 0};
    uint64_t at_once, bytewise = 0;
    peal_frames_add(&whole, (const char *)data, size);
    at_once = take_all(&whole, 0);
    for (size_t i = 0; i < size; i++) {
        peal_frames_add(&pieces, (const char *)data + i, 1);
        bytewise = take_all(&pieces, bytewise);
    }
    if (at_once != bytewise && size <= PEAL_FRAME_MAX_HEADERS)
        abort();
    peal_frames_release(&whole);
    peal_frames_release(&pieces);
}

/* Every second write is a body. */
static void check_answer(void *context, const char *bytes, size_t len)
{
    struct peal_arena arena;
    struct peal_source source = {"answer", bytes, len};
    struct peal_json_value *value = NULL;
    (void)context;
    if (strncmp(bytes, "Content-Length: ", 16) == 0)
        return;
    peal_arena_init(&arena, 0);
    if (peal_json_read(&source, &arena, NULL, &value) != PEAL_OK) {
        fprintf(stderr, "not JSON: %.*s\n", (int)len, bytes);
        abort();
    }
    peal_arena_release(&arena);
}

static struct peal_lsp *start(void)
{
    static const char hello[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}";
    struct peal_lsp_options options = {.write = check_answer};
    struct peal_lsp *server = peal_lsp_new(&options);
    char message[sizeof hello + 64];
    int len =
        snprintf(message, sizeof message, "Content-Length: %zu\r\n\r\n%s", sizeof hello - 1, hello);
    if (!server)
        abort();
    peal_lsp_feed(server, message, (size_t)len);
    return server;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct peal_lsp *server;
    char header[64];
    int code;
    if (!server)
        server = start();
    check_frames(data, size);
    /* As a body of the right length, because most mutations of the headers lead nowhere. */
    const char *body = memchr(data, '{', size);
    size_t skipped = body ? (size_t)(body - (const char *)data) : 0;
    int len = snprintf(header, sizeof header, "Content-Length: %zu\r\n\r\n", size - skipped);
    peal_lsp_feed(server, header, (size_t)len);
    peal_lsp_feed(server, (const char *)data + skipped, size - skipped);
    (void)peal_lsp_idle(server);
    if (peal_lsp_has_ended(server, &code)) {
        peal_lsp_free(server);
        server = NULL;
    }
    return 0;
}
