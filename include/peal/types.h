/* SPDX-License-Identifier: Apache-2.0 */
/* The few types that every part of Peal shares: status codes, data types, reduce operations. */
#ifndef PEAL_TYPES_H
#define PEAL_TYPES_H

/* Marks what libpeal.so exports. */
#define PEAL_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers. Releases of one MAJOR (while that is 0: of one MINOR) keep the binary
 * interface; see docs/stability.md. */
#define PEAL_VERSION_MAJOR 0
#define PEAL_VERSION_MINOR 2
#define PEAL_VERSION_PATCH 0
/* One number that grows with the version: 0.2.0 is 200, 1.4.12 is 10412. */
#define PEAL_VERSION_NUMBER                                                                        \
    (PEAL_VERSION_MAJOR * 10000 + PEAL_VERSION_MINOR * 100 + PEAL_VERSION_PATCH)

/* The PEAL_VERSION_NUMBER of the library that is running, which may be newer than the headers. */
PEAL_API unsigned peal_version(void);
/* The same as text: "0.2.0". */
PEAL_API const char *peal_version_text(void);

/* Enumerations below may get new members in any release, always at the end: a switch over them has
 * a default. */

/* How a call ended. PEAL_OK is zero; everything else names one kind of failure. */
enum peal_status {
    PEAL_OK = 0,
    PEAL_INVALID,     /* bad input: text, file, argument; diagnostics say where */
    PEAL_NO_MEMORY,   /* an allocation failed or a stated limit would be passed */
    PEAL_SYSTEM,      /* the operating system refused; errno was logged */
    PEAL_TIMEOUT,     /* no progress within the time-out */
    PEAL_PEER_DEAD,   /* a rank of this communicator has died */
    PEAL_MISMATCH,    /* ranks made different calls at the same position */
    PEAL_UNSUPPORTED, /* a valid request that this build or machine cannot serve */
    PEAL_CLOSED,      /* the communicator was closed or has failed earlier */
    PEAL_PENDING      /* a non-blocking operation has not completed yet */
};

/* A short lower-case description; never NULL. */
PEAL_API const char *peal_status_text(enum peal_status status);

enum peal_dtype { PEAL_F16, PEAL_BF16, PEAL_F32, PEAL_F64, PEAL_I8, PEAL_U8, PEAL_I32, PEAL_I64 };

enum peal_reduction {
    PEAL_SUM,
    PEAL_PROD,
    PEAL_MAX,
    PEAL_MIN,
    PEAL_AVG, /* sum divided by the number of ranks; floating point only */
    PEAL_AND, /* and, or, xor: bitwise; integers only */
    PEAL_OR,
    PEAL_XOR
};

#ifdef __cplusplus
}
#endif
#endif
