/* SPDX-License-Identifier: Apache-2.0 */
/* See crypto.h. */
#include "run/net/crypto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

bool peal_random_bytes(void *out, size_t len)
{
    uint8_t *at = out;
    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        len -= (size_t)got;
    }
    return true;
}

bool peal_mac_is_equal(const uint8_t *a, const uint8_t *b)
{
    volatile uint8_t difference = 0;
    for (size_t i = 0; i < PEAL_MAC; i++)
        difference = (uint8_t)(difference | (a[i] ^ b[i]));
    return difference == 0;
}

#ifdef PEAL_HAVE_CRYPTO

#include <dlfcn.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>

#define LIBRARY "libcrypto.so.3"

/* What is used of the library, with the types of its own headers. */
#define FUNCTIONS(X)                                                                               \
    X(HMAC)                                                                                        \
    X(EVP_sha256)                                                                                  \
    X(EVP_aes_256_gcm)                                                                             \
    X(EVP_CIPHER_CTX_new)                                                                          \
    X(EVP_CIPHER_CTX_free)                                                                         \
    X(EVP_CIPHER_CTX_ctrl)                                                                         \
    X(EVP_CipherInit_ex)                                                                           \
    X(EVP_CipherUpdate)                                                                            \
    X(EVP_CipherFinal_ex)

static struct {
    pthread_once_t once;
    bool loaded;
    char error[160];
#define X(name) __typeof__(&name) name;
    FUNCTIONS(X)
#undef X
} library = {.once = PTHREAD_ONCE_INIT};

static void load(void)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(library.error, sizeof library.error, "%s", dlerror());
        return;
    }
#define X(name)                                                                                    \
    *(void **)&library.name = dlsym(handle, #name);                                                \
    if (!library.name) {                                                                           \
        snprintf(library.error, sizeof library.error, "%s has no %s", LIBRARY, #name);             \
        return;                                                                                    \
    }
    FUNCTIONS(X)
#undef X
    library.loaded = true;
}

enum peal_status peal_crypto_load(struct peal_text *why)
{
    pthread_once(&library.once, load);
    if (library.loaded)
        return PEAL_OK;
    peal_text_printf(why, "ranks on several hosts need OpenSSL's libcrypto: %s", library.error);
    return PEAL_UNSUPPORTED;
}

bool peal_mac(const uint8_t key[static 32], const void *a, size_t a_len, const void *b,
              size_t b_len, uint8_t out[static PEAL_MAC])
{
    uint8_t both[1536];
    unsigned int len = 0;
    if (a_len + b_len > sizeof both)
        return false;
    memcpy(both, a, a_len);
    if (b)
        memcpy(both + a_len, b, b_len);
    return library.HMAC(library.EVP_sha256(), key, 32, both, a_len + b_len, out, &len) &&
           len == PEAL_MAC;
}

struct peal_cipher {
    EVP_CIPHER_CTX *context;
    bool seals;
    uint64_t record; /* its number is its nonce: a key is used for one direction only */
};

struct peal_cipher *peal_cipher_new(const uint8_t key[static PEAL_CIPHER_KEY], bool seals)
{
    struct peal_cipher *cipher = calloc(1, sizeof *cipher);
    if (!cipher)
        return NULL;
    cipher->seals = seals;
    cipher->context = library.EVP_CIPHER_CTX_new();
    if (cipher->context && library.EVP_CipherInit_ex(cipher->context, library.EVP_aes_256_gcm(),
                                                     NULL, key, NULL, seals))
        return cipher;
    peal_cipher_free(cipher);
    return NULL;
}

void peal_cipher_free(struct peal_cipher *cipher)
{
    if (cipher && cipher->context)
        library.EVP_CIPHER_CTX_free(cipher->context);
    free(cipher);
}

static bool begin(struct peal_cipher *cipher, const uint8_t *head)
{
    uint8_t nonce[12] = {0};
    int len = 0;
    memcpy(nonce, &cipher->record, sizeof cipher->record);
    cipher->record++;
    return library.EVP_CipherInit_ex(cipher->context, NULL, NULL, NULL, nonce, cipher->seals) &&
           library.EVP_CipherUpdate(cipher->context, NULL, &len, head, 4);
}

bool peal_cipher_seal(struct peal_cipher *cipher, const uint8_t head[static 4], uint8_t *bytes,
                      size_t len, uint8_t tag[static PEAL_CIPHER_TAG])
{
    int done = 0;
    return begin(cipher, head) &&
           library.EVP_CipherUpdate(cipher->context, bytes, &done, bytes, (int)len) &&
           library.EVP_CipherFinal_ex(cipher->context, bytes + done, &done) &&
           library.EVP_CIPHER_CTX_ctrl(cipher->context, EVP_CTRL_GCM_GET_TAG, PEAL_CIPHER_TAG, tag);
}

bool peal_cipher_open(struct peal_cipher *cipher, const uint8_t head[static 4], uint8_t *bytes,
                      size_t len, const uint8_t tag[static PEAL_CIPHER_TAG])
{
    int done = 0;
    uint8_t copy[PEAL_CIPHER_TAG];
    memcpy(copy, tag, sizeof copy);
    return begin(cipher, head) &&
           library.EVP_CipherUpdate(cipher->context, bytes, &done, bytes, (int)len) &&
           library.EVP_CIPHER_CTX_ctrl(cipher->context, EVP_CTRL_GCM_SET_TAG, PEAL_CIPHER_TAG,
                                       copy) &&
           library.EVP_CipherFinal_ex(cipher->context, bytes + done, &done);
}

#else

enum peal_status peal_crypto_load(struct peal_text *why)
{
    peal_text_puts(why, "ranks on several hosts need OpenSSL's libcrypto, which this library was "
                        "built without");
    return PEAL_UNSUPPORTED;
}
bool peal_mac(const uint8_t key[static 32], const void *a, size_t a_len, const void *b,
              size_t b_len, uint8_t out[static PEAL_MAC])
{
    (void)key, (void)a, (void)a_len, (void)b, (void)b_len, (void)out;
    return false;
}
struct peal_cipher *peal_cipher_new(const uint8_t key[static PEAL_CIPHER_KEY], bool seals)
{
    (void)key, (void)seals;
    return NULL;
}
void peal_cipher_free(struct peal_cipher *cipher)
{
    (void)cipher;
}
bool peal_cipher_seal(struct peal_cipher *cipher, const uint8_t head[static 4], uint8_t *bytes,
                      size_t len, uint8_t tag[static PEAL_CIPHER_TAG])
{
    (void)cipher, (void)head, (void)bytes, (void)len, (void)tag;
    return false;
}
bool peal_cipher_open(struct peal_cipher *cipher, const uint8_t head[static 4], uint8_t *bytes,
                      size_t len, const uint8_t tag[static PEAL_CIPHER_TAG])
{
    (void)cipher, (void)head, (void)bytes, (void)len, (void)tag;
    return false;
}

#endif
