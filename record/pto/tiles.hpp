// SPDX-License-Identifier: Apache-2.0
// Intrinsics on tiles, made of the rows of tiles.def.
#pragma once

#include "pto/memory.hpp"

namespace pto {

// An operand of an intrinsic, of whatever type, and where the intrinsic is called.
struct rec_operand {
    enum { NOTHING, TILE, NUMBER, OTHER } kind = NOTHING;
    rec_span span = {};
    bool assigned = true;
    int order = 0; // of its elements: two tiles whose orders differ are not copied element by element
    int line = 0;
    const char *file = nullptr;

    rec_operand() = default;
    rec_operand(const RecordEvent &) {}
    template <typename T>
    rec_operand(T &&what, REC_AT) : line(rec_line), file(rec_file) { take(what); }

private:
    template <typename T, typename = typename T::rec_waits>
    void take_event(const T &event, int) { const_cast<T &>(event).Wait(line, file); } // it waits, and is no operand
    template <typename T>
    void take_event(const T &what, long) { take_tile(what, 0); }
    template <typename T, typename = typename T::rec_tile>
    void take_tile(const T &tile, int) {
        kind = TILE;
        span = tile.used();
        assigned = tile.assigned;
        bool flat = T::SFractal == SLayout::NoneBox && (tile.rows == 1 || tile.cols == 1);
        order = flat ? 0 : 1 + static_cast<int>(T::BFractal) + 2 * static_cast<int>(T::SFractal);
    }
    template <typename T>
    void take_tile(const T &, long) { kind = OTHER; }
    template <typename T>
    void take(const T &what) {
        using U = std::decay_t<T>;
        if constexpr (std::is_arithmetic_v<U> || std::is_same_v<U, half> || std::is_same_v<U, bfloat16_t>) {
            kind = NUMBER;
            if constexpr (std::is_arithmetic_v<U>) span = rec_number(static_cast<double>(what), REC_F32);
            else span = rec_number(static_cast<float>(what), REC_F32);
        } else if constexpr (std::is_pointer_v<U> && std::is_class_v<std::remove_pointer_t<U>>) {
            if (what) take_tile(*what, 0);
            else kind = OTHER;
        } else if constexpr (std::is_class_v<U>) {
            take_event(what, 0);
        } else {
            kind = OTHER;
        }
    }
};

// Do the operands have these roles? Up to '|', see tiles.def.
inline bool rec_fits(const char *roles, const rec_operand *const *given, int n) {
    for (int i = 0; i < n; i++, roles++) {
        if (!*roles || *roles == '|') return false;
        auto wanted = *roles == 'n' ? rec_operand::NUMBER : *roles == '-' ? rec_operand::OTHER : rec_operand::TILE;
        if (given[i]->kind != wanted && !(*roles == '-' && given[i]->kind == rec_operand::NUMBER)) return false;
    }
    return !*roles || *roles == '|';
}

// "add b c; maximum a 0": functions of Peal's table, one after the other, each of operands by their letters and of numbers.
// Each gives the first operand, a.
inline void rec_steps(const char *op, const char *steps, const rec_operand *const *given, int line, const char *file) {
    static const char *const functions[] = {"add", "sub", "maximum", "fma", "sqrt", "recip", "xor"}; // strings are told apart by address
    while (*steps) {
        rec_span spans[10] = {given[0]->span};
        const char *function = nullptr;
        int n = 1;
        size_t len = std::strcspn(steps, " ");
        for (const char *one : functions) {
            if (std::strlen(one) == len && std::strncmp(one, steps, len) == 0) function = one;
        }
        if (!function) rec_refuse(op, "its row in tiles.def has a function that is not in rec_steps", file, line);
        steps += len;
        for (; *steps == ' '; steps += 2) {
            bool is_number = steps[1] >= '0' && steps[1] <= '9';
            rec_span &s = spans[n++];
            s = is_number ? rec_number(steps[1] - '0', spans[0].dtype) : given[steps[1] - 'a']->span;
            s.dtype = spans[0].dtype;
        }
        rec_op(REC_COMPUTE, op, function, spans, 1, n - 1, line, file);
        while (*steps == ';' || *steps == ' ') steps++;
    }
}

// One intrinsic: `rows` are the roles of its operands in each of its forms.
inline RecordEvent rec_row(const char *op, const char *rows, const char *function, const rec_operand *const *given, int n) {
    rec_span spans[16];
    int ndst = 0, nsrc = 0, line = given[0]->line;
    const char *file = given[0]->file;
    while (n > 0 && given[n - 1]->kind == rec_operand::NOTHING) n--;
    while (!rec_fits(rows, given, n)) {
        while (*rows && *rows != '|') rows++;
        if (!*rows) rec_refuse(op, "this form of it is not recorded: its operands are not those of its row", file, line);
        rows++;
    }
    bool copies = std::strcmp(function, "=") == 0, steps = std::strchr(function, ' ') != nullptr;
    bool known = true; // of one type and size, as Peal's functions are
    int order = given[0]->order;
    for (int pass = 0; pass < 2; pass++) {
        const char *wanted = pass == 0 ? "wta" : "ran";
        for (int i = 0; i < n; i++) {
            if (!rows[i] || !std::strchr(wanted, rows[i])) continue;
            if (!given[i]->assigned) rec_refuse(op, "a tile is used before TASSIGN gave it an address", file, line);
            rec_span &s = spans[ndst + nsrc];
            s = given[i]->span;
            if (s.constant) s.dtype = spans[0].dtype;
            else if (steps && rows[i] == 't') rec_op(REC_COMPUTE, op, op, &s, 1, 0, line, file); // scratch: whatever is left in it
            else if (given[i]->order != order || s.count * s.rows != spans[0].count * spans[0].rows ||
                     (s.dtype != spans[0].dtype && !copies)) known = false;
            ++(pass == 0 ? ndst : nsrc);
        }
    }
    if (known && steps) rec_steps(op, function, given, line, file);
    else if (ndst == 1 && known && copies && nsrc == 1) rec_op(REC_COPY, op, nullptr, spans, 1, 1, line, file);
    else rec_op(REC_COMPUTE, op, ndst == 1 && known && !copies && !steps ? function : op, spans, ndst, nsrc, line, file);
    return {};
}
#define REC_OPERANDS                                                                                                     \
    rec_operand a, rec_operand b = {}, rec_operand c = {}, rec_operand d = {}, rec_operand e = {}, rec_operand f = {},   \
        rec_operand g = {}, rec_operand h = {}
#define REC_FORM(name, rows, function)                                          \
    inline RecordEvent name(REC_OPERANDS) {                                     \
        const rec_operand *given[] = {&a, &b, &c, &d, &e, &f, &g, &h};          \
        return rec_row(#name, rows, function, given, 8);                        \
    }
// Template arguments that kernels give say types, which the operands have, and modes, which change no access.
#define REC_TILE_OP(name, rows, function)                                                                        \
    template <auto... M> REC_FORM(name, rows, function)                                                          \
    template <typename T, auto... M> REC_FORM(name, rows, function)                                              \
    template <typename T, typename U, auto... M> REC_FORM(name, rows, function)                                  \
    template <typename T, typename U, typename V, auto... M> REC_FORM(name, rows, function)                      \
    template <typename T, typename U, typename V, typename W, auto... M> REC_FORM(name, rows, function)          \
    template <typename T, typename U, typename V, typename W, typename X, auto... M> REC_FORM(name, rows, function) \
    template <typename T, typename U, typename V, typename W, typename X, typename Y, auto... M>                 \
    REC_FORM(name, rows, function)
#include "pto/tiles.def"
#include "pto/extra.def"
#undef REC_TILE_OP

// Another name of the same memory: nothing is moved.
template <typename D, typename S>
inline RecordEvent TRESHAPE(D &dst, S &src) {
    dst.address = src.address;
    dst.assigned = src.assigned;
    return {};
}
template <typename D, typename S>
inline RecordEvent TSUBVIEW(D &dst, S &src, int row, int col) {
    dst.address = src.address + (row * S::RowStride + col * S::ColStride) * sizeof(typename S::DType);
    dst.assigned = src.assigned;
    return {};
}

} // namespace pto
