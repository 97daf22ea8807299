/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target without libFuzzer: on every file of a corpus, then on mutations of them.
 *
 *   fuzz-NAME ROUNDS FOLDER...
 *
 * The seed is printed, and FUZZ_SEED sets it: a failure can be repeated with any compiler. With
 * clang, `make fuzz` builds the same targets with libFuzzer, which also grows the corpus.
 */
#include "lib/random.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_FILES = 1024, MAX_BYTES = 1 << 16 };

struct input {
    uint8_t *bytes;
    size_t len;
};

static size_t position(uint64_t *state, size_t len)
{
    return len ? below(state, (uint32_t)len) : 0;
}

/* Adds the folder's files to `count` inputs; returns how many there are then. */
static int read_corpus(const char *folder, struct input *inputs, int count)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return count;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (count == MAX_FILES)
            break;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *file = entry->d_name[0] != '.' ? fopen(path, "rb") : NULL;
        if (!file)
            continue;
        struct input *input = &inputs[count++];
        input->bytes = malloc(MAX_BYTES);
        input->len = input->bytes ? fread(input->bytes, 1, MAX_BYTES, file) : 0;
        fclose(file);
    }
    closedir(dir);
    return count;
}

/* Changes a byte, drops a range, repeats a range, or inserts a range of another input. */
static size_t mutate(uint8_t *bytes, size_t len, const struct input *other, uint64_t *state)
{
    size_t at = position(state, len + 1);
    size_t range = 1 + below(state, 16), from = 0;
    uint32_t kind = below(state, 4);
    if (kind == 0) {
        if (at < len)
            bytes[at] = (uint8_t)draw(state);
        return len;
    }
    size_t available = len - at;
    if (kind == 3) {
        from = position(state, other->len);
        available = other->len - from;
    }
    range = range < available ? range : available;
    if (kind == 1) {
        memmove(bytes + at, bytes + at + range, len - at - range);
        return len - range;
    }
    if (len + range > MAX_BYTES)
        return len;
    memmove(bytes + at + range, bytes + at, len - at);
    if (kind == 3)
        memcpy(bytes + at, other->bytes + from, range);
    return len + range;
}

/* The target gets a block of exactly its size, so that the address sanitizer finds an overrun. */
static void run_one(const uint8_t *bytes, size_t len)
{
    uint8_t *exact = malloc(len ? len : 1);
    if (!exact)
        abort();
    memcpy(exact, bytes, len);
    LLVMFuzzerTestOneInput(exact, len);
    free(exact);
}

int main(int argc, char **argv)
{
    static struct input inputs[MAX_FILES];
    int count = 0;
    for (int i = 2; i < argc; i++)
        count = read_corpus(argv[i], inputs, count);
    if (count == 0) {
        fprintf(stderr, "usage: %s ROUNDS FOLDER-WITH-FILES...\n", argv[0]);
        return 2;
    }
    long rounds = atol(argv[1]);
    const char *given = getenv("FUZZ_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("%d files, %ld rounds, seed %" PRIu64 "\n", count, rounds, seed);
    fflush(stdout);
    for (int i = 0; i < count; i++)
        run_one(inputs[i].bytes, inputs[i].len);
    uint64_t state = seed;
    uint8_t *work = malloc(MAX_BYTES);
    if (!work)
        return 2;
    for (long round = 0; round < rounds; round++) {
        const struct input *base = &inputs[below(&state, (uint32_t)count)];
        size_t len = base->len;
        memcpy(work, base->bytes, len);
        for (size_t n = 1 + below(&state, 8); n > 0; n--)
            len = mutate(work, len, &inputs[below(&state, (uint32_t)count)], &state);
        run_one(work, len);
    }
    free(work);
    for (int i = 0; i < count; i++)
        free(inputs[i].bytes);
    return 0;
}
