/* SPDX-License-Identifier: Apache-2.0 */
/* Polynomials are kept as sorted lists of terms without zeros. */
#include "lang/tree/poly.h"

#include <inttypes.h>
#include <string.h>

struct peal_poly peal_poly_int(int64_t value)
{
    struct peal_poly poly = {.known = true};
    if (value)
        poly.terms[poly.nterms++].factor = value;
    return poly;
}

struct peal_poly peal_poly_unknown(void)
{
    return (struct peal_poly){.known = false};
}

struct peal_poly peal_poly_atom(const char *atom)
{
    struct peal_poly poly = {.known = atom != NULL};
    if (atom) {
        poly.nterms = 1;
        poly.terms[0] = (struct peal_term){1, {atom}};
    }
    return poly;
}

static int compare_atoms(const struct peal_term *a, const struct peal_term *b)
{
    for (int i = 0; i < PEAL_POLY_ATOMS; i++) {
        uintptr_t left = (uintptr_t)a->atoms[i];
        uintptr_t right = (uintptr_t)b->atoms[i];
        if (left != right)
            return left < right ? -1 : 1;
    }
    return 0;
}

/* Adds a term. The polynomial becomes unknown if it does not fit. */
static void add_term(struct peal_poly *poly, const struct peal_term *term)
{
    int at = 0;
    while (at < poly->nterms && compare_atoms(&poly->terms[at], term) < 0)
        at++;
    if (at < poly->nterms && compare_atoms(&poly->terms[at], term) == 0) {
        struct peal_term *same = &poly->terms[at];
        if (__builtin_add_overflow(same->factor, term->factor, &same->factor)) {
            poly->known = false;
        } else if (same->factor == 0) {
            poly->nterms--;
            memmove(same, same + 1, (size_t)(poly->nterms - at) * sizeof *same);
        }
        return;
    }
    if (term->factor == 0)
        return;
    if (poly->nterms == PEAL_POLY_TERMS) {
        poly->known = false;
        return;
    }
    memmove(&poly->terms[at + 1], &poly->terms[at],
            (size_t)(poly->nterms - at) * sizeof *poly->terms);
    poly->terms[at] = *term;
    poly->nterms++;
}

struct peal_poly peal_poly_add(const struct peal_poly *a, const struct peal_poly *b, int64_t factor)
{
    if (!a->known || !b->known)
        return peal_poly_unknown();
    struct peal_poly sum = *a;
    for (int i = 0; i < b->nterms && sum.known; i++) {
        struct peal_term term = b->terms[i];
        if (__builtin_mul_overflow(term.factor, factor, &term.factor))
            return peal_poly_unknown();
        add_term(&sum, &term);
    }
    return sum.known ? sum : peal_poly_unknown();
}

/* The product of two terms; false when it has too many atoms or overflows. */
static bool multiply(const struct peal_term *a, const struct peal_term *b, struct peal_term *out)
{
    *out = *a;
    if (__builtin_mul_overflow(a->factor, b->factor, &out->factor))
        return false;
    for (int i = 0; i < PEAL_POLY_ATOMS && b->atoms[i]; i++) {
        int at = 0;
        if (out->atoms[PEAL_POLY_ATOMS - 1])
            return false;
        while (out->atoms[at] && (uintptr_t)out->atoms[at] <= (uintptr_t)b->atoms[i])
            at++;
        memmove(&out->atoms[at + 1], &out->atoms[at],
                (size_t)(PEAL_POLY_ATOMS - 1 - at) * sizeof *out->atoms);
        out->atoms[at] = b->atoms[i];
    }
    return true;
}

struct peal_poly peal_poly_mul(const struct peal_poly *a, const struct peal_poly *b)
{
    struct peal_poly product = peal_poly_int(0);
    if (!a->known || !b->known)
        return peal_poly_unknown();
    for (int i = 0; i < a->nterms; i++) {
        for (int j = 0; j < b->nterms; j++) {
            struct peal_term term;
            if (!multiply(&a->terms[i], &b->terms[j], &term))
                return peal_poly_unknown();
            add_term(&product, &term);
            if (!product.known)
                return peal_poly_unknown();
        }
    }
    return product;
}

bool peal_poly_is_int(const struct peal_poly *poly, int64_t *out)
{
    if (!poly->known || poly->nterms > 1 || (poly->nterms == 1 && poly->terms[0].atoms[0]))
        return false;
    if (poly->nterms)
        *out = poly->terms[0].factor;
    else
        *out = 0;
    return true;
}

void peal_poly_key(const struct peal_poly *poly, struct peal_text *out)
{
    for (int i = 0; i < poly->nterms; i++) {
        peal_text_printf(out, "+%" PRId64, poly->terms[i].factor);
        for (int j = 0; j < PEAL_POLY_ATOMS && poly->terms[i].atoms[j]; j++)
            peal_text_printf(out, "*%p", (const void *)poly->terms[i].atoms[j]);
    }
}
