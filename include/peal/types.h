/* SPDX-License-Identifier: Apache-2.0 */
/* The types that all parts of Peal share: status codes, data types, reduction operations. */
#ifndef PEAL_TYPES_H
#define PEAL_TYPES_H

/* Marks what libpeal.so exports. */
#define PEAL_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers. Releases of one MAJOR (while that is 0: of one MINOR) keep the
 * binary interface; see docs/stability.md. */
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

/* The enumerations below may get new members in any release, always at the end: give every switch
 * over them a default. */

/* How a call ended. PEAL_OK is zero; everything else names one kind of failure. */
enum peal_status {
    PEAL_OK = 0,
    PEAL_INVALID,     /* bad input: text, file, argument; the error text says where */
    PEAL_NO_MEMORY,   /* an allocation failed, or a documented limit would be exceeded */
    PEAL_SYSTEM,      /* the operating system refused; errno was logged */
    PEAL_TIMEOUT,     /* no progress within the time-out */
    PEAL_PEER_DEAD,   /* a rank of this communicator has died */
    PEAL_MISMATCH,    /* ranks made different calls at the same position */
    PEAL_UNSUPPORTED, /* a valid request that this build or machine cannot serve */
    PEAL_CLOSED,      /* the communicator was closed or has failed earlier */
    PEAL_PENDING,     /* a non-blocking operation has not completed yet */
    PEAL_REVOKED      /* peal_comm_revoke has ended the communicator */
};

/* A short lower-case description; never NULL. */
PEAL_API const char *peal_status_text(enum peal_status status);

/* Types of elements. Complex numbers, and pairs of a value and an index, are stored as a struct of
 * the two parts without padding; the index of a pair is an integer of the value's size. */
enum peal_dtype {
    PEAL_F16,
    PEAL_BF16,
    PEAL_F32,
    PEAL_F64,
    PEAL_I8,
    PEAL_U8,
    PEAL_I32,
    PEAL_I64,
    PEAL_I16,
    PEAL_U16,
    PEAL_U32,
    PEAL_U64,
    PEAL_BOOL,   /* a byte: 0 is false, anything else true; results are 0 or 1 */
    PEAL_F8E4M3, /* at most 448, no infinity; both 8-bit types are combined in f32 */
    PEAL_F8E5M2,
    PEAL_CF32,    /* complex: two f32 */
    PEAL_CF64,    /* complex: two f64 */
    PEAL_F32_I32, /* value and index */
    PEAL_F64_I64,
    PEAL_I32_I32,
    PEAL_I64_I64
};

enum peal_reduction {
    PEAL_SUM,
    PEAL_PROD,
    PEAL_MAX,
    PEAL_MIN,
    PEAL_AVG, /* sum divided by the number of ranks; floating point and complex only */
    PEAL_AND, /* and, or, xor: bitwise; integers and bool only */
    PEAL_OR,
    PEAL_XOR,
    PEAL_MINLOC, /* the smallest value and its index; of equal values, the lowest index; pairs only */
    PEAL_MAXLOC,
    PEAL_USER_REDUCTION = 128 /* the first user-defined one: see peal_reduction_declare() */
};

#ifdef __cplusplus
}
#endif
#endif
