/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target without libFuzzer: on every file of a corpus, then on mutations of them.
 *
 *   fuzz-NAME ROUNDS FOLDER...
 *
 * The seed is printed, and FUZZ_SEED sets it: a failure can be repeated with any compiler. With
 * clang, `make fuzz` builds the same targets with libFuzzer, which also grows the corpus.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_FILES = 1024, LARGEST = 1 << 16 };

struct input {
    uint8_t *bytes;
    size_t len;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t below(uint64_t *state, size_t limit)
{
    return limit ? (size_t)(next_random(state) % limit) : 0;
}

/* Adds the folder's files to `count` inputs; returns how many there are then. */
static int read_corpus(const char *folder, struct input *inputs, int count)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && count < MOST_FILES && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *file = fopen(path, "rb");
        if (!file)
            continue;
        struct input *input = &inputs[count++];
        input->bytes = malloc(LARGEST);
        input->len = input->bytes ? fread(input->bytes, 1, LARGEST, file) : 0;
        fclose(file);
    }
    if (dir)
        closedir(dir);
    return count;
}

/* One of: change a byte, drop a range, repeat a range, put in a piece of another input. */
static size_t mutate(uint8_t *bytes, size_t len, const struct input *other, uint64_t *state)
{
    size_t at = below(state, len + 1);
    size_t some = 1 + below(state, 16);
    switch (next_random(state) % 4) {
    case 0:
        if (at < len)
            bytes[at] = (uint8_t)next_random(state);
        return len;
    case 1:
        some = some < len - at ? some : len - at;
        memmove(bytes + at, bytes + at + some, len - at - some);
        return len - some;
    case 2:
        some = some < len - at ? some : len - at;
        if (len + some > LARGEST)
            return len;
        memmove(bytes + at + some, bytes + at, len - at);
        return len + some;
    default: {
        size_t from = below(state, other->len);
        some = some < other->len - from ? some : other->len - from;
        if (len + some > LARGEST)
            return len;
        memmove(bytes + at + some, bytes + at, len - at);
        memcpy(bytes + at, other->bytes + from, some);
        return len + some;
    }
    }
}

/* The target sees a block of exactly its size, so that the address sanitizer sees an overrun. */
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
    static struct input inputs[MOST_FILES];
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
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    uint8_t *work = malloc(LARGEST);
    for (long round = 0; work && round < rounds; round++) {
        const struct input *base = &inputs[below(&state, (size_t)count)];
        size_t len = base->len;
        memcpy(work, base->bytes, len);
        for (size_t n = 1 + below(&state, 8); n > 0; n--)
            len = mutate(work, len, &inputs[below(&state, (size_t)count)], &state);
        run_one(work, len);
    }
    free(work);
    for (int i = 0; i < count; i++)
        free(inputs[i].bytes);
    return 0;
}
