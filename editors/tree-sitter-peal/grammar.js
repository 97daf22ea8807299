// SPDX-License-Identifier: Apache-2.0
// The grammar of docs/language.md for tree-sitter. Words that may also be names (free, take, step, ...) are words only where
// the grammar has them, as in the language: tree-sitter's lexer asks which tokens are possible, and `word` does the rest.
const words = require("./words.js");

const LEVEL = { or: 1, and: 2, not: 3, compare: 4, bit_or: 5, bit_xor: 6, bit_and: 7, shift: 8, add: 9, multiply: 10, unary: 11, postfix: 12 };
const OPERATORS = [
    [LEVEL.or, ["or"]], [LEVEL.and, ["and"]], [LEVEL.compare, ["==", "!=", "<", "<=", ">", ">="]], [LEVEL.bit_or, ["|"]], [LEVEL.bit_xor, ["^"]],
    [LEVEL.bit_and, ["&"]], [LEVEL.shift, ["<<", ">>"]], [LEVEL.add, ["+", "-"]], [LEVEL.multiply, ["*", "/", "%"]],
];

const list = rule => seq(rule, repeat(seq(",", rule)));

module.exports = grammar({
    name: "peal",
    word: $ => $.name,
    extras: $ => [/\s/, $.comment],
    conflicts: $ => [[$._place, $._primary], [$.call, $._place], [$.ordering, $._place], [$._place, $.port], [$._statement, $._place],
                     [$.ordering, $.name], [$._slice, $._expression]],

    rules: {
        module: $ => repeat(choice($.kernel, $.reduction)),
        comment: $ => token(seq("//", /[^\n]*/)),
        name: $ => /[A-Za-z_][A-Za-z0-9_]*/,
        number: $ => /\d+(\.\d+)?([eE][+-]?\d+)?/,
        string: $ => /"(\\.|[^"\\\n])*"/,

        reduction: $ => seq(alias("reduce", $.keyword), field("name", $.name), "(", $.name, ",", $.name, ")", optional("commutative"),
                            optional("associative"), "=", $._expression),
        kernel: $ => seq(alias("kernel", $.keyword), field("name", $.name), "(", optional(list($.parameter)), ")",
                         optional(seq(alias("implements", $.keyword), alias($.name, $.contract))), $.block),
        parameter: $ => seq(optional(alias(choice("in", "out", "inout", "local", "capacity"), $.keyword)), field("name", $.name), ":",
                            choice($.memory, seq(alias("int", $.type), optional(choice(seq("[", $._expression, "]"), seq("=", $._expression)))),
                                   alias("reduce", $.type))),
        memory: $ => seq(optional(alias(choice("window", "wide"), $.keyword)), alias(choice(...words.type.filter(t => t !== "int")), $.type), "[",
                         $._expression, optional(seq(",", $._expression)), "]"),
        block: $ => seq("{", repeat($._statement), "}"),

        _statement: $ => choice(
            $.declaration, $.let, $.assignment, $.notify, $.wait, $.send, $.flush, $.take, $.fence, $.free, $.for, $.if, $.when, $.assert, $.requires,
            $.ensures, $.lane, $.scope, $.grid, $.tree, $.call),
        declaration: $ => choice(
            seq(alias(choice("window", "private"), $.keyword), optional(alias("wide", $.keyword)), field("name", $.name), ":", $.memory),
            seq(alias("signal", $.keyword), optional(alias(choice("shared", seq("raw", optional("uninitialised"))), $.keyword)), list($.cells)),
            seq(alias("channel", $.keyword), list($.name))),
        cells: $ => seq($.name, optional(seq("[", $._expression, "]"))),
        grid: $ => seq(alias("grid", $.keyword), $._expression, ",", $._expression, optional("torus")),
        tree: $ => prec.right(seq(alias("tree", $.keyword), $._expression, optional(seq("from", $._expression)))),
        let: $ => choice(
            seq(alias("let", $.keyword), field("name", $.name), optional(seq(":", $.memory)), "=", choice($._expression, $.post)),
            seq(alias("var", $.keyword), field("name", $.name), "=", $._expression)),
        assignment: $ => seq(optional(alias("exclusive", $.keyword)), $._place, choice("=", "+=", seq($._reduce_name, "=")), choice($._expression, $.post)),
        _reduce_name: $ => choice($.name, "and", "or"),
        ordering: $ => repeat1(alias(choice("relaxed", "acquire", "release", "acq_rel", "full", "block", "device", "system"), $.keyword)),
        notify: $ => seq(alias("notify", $.keyword), optional($.ordering), $._place, choice("+=", "="), $._expression),
        wait: $ => prec.right(seq(alias("wait", $.keyword), choice(
            seq(optional($.ordering), $._place, choice(">=", "=="), $._expression, optional(seq("at", "launch", "-", $.number))),
            seq($.name, optional(seq("into", $._place)))))),
        send: $ => prec.right(seq(alias("send", $.keyword), $._expression, "to", $._peer, optional(seq("on", $.name)))),
        flush: $ => seq(alias("flush", $.keyword), "to", $._expression),
        take: $ => seq(alias("take", $.keyword), optional($.ordering), $._place, "from", $._expression, "to", $._expression),
        fence: $ => prec.right(seq(alias("fence", $.keyword), optional($.ordering))),
        free: $ => seq(alias("free", $.keyword), $.name),
        for: $ => seq(alias("for", $.keyword), field("name", $.name), "in",
                      choice("peers", seq($._expression, "..", $._expression, optional(seq("step", $._expression)))), $.block),
        if: $ => seq(alias("if", $.keyword), $._expression, $.block, optional(seq(alias("else", $.keyword), choice($.block, $.if)))),
        when: $ => seq(alias("when", $.keyword), $._expression, $.block),
        assert: $ => seq(alias("assert", $.keyword), $._expression, ",", $.string),
        requires: $ => seq(alias("requires", $.keyword), $._expression),
        ensures: $ => prec.right(seq(alias("ensures", $.keyword), $._expression, optional(seq("where", $._expression)))),
        lane: $ => seq(alias("lane", $.keyword), optional(seq(field("name", $.name), "in", $._expression, "..", $._expression)),
                       optional(seq("block", $._expression)), $.block),
        scope: $ => seq(alias("scope", $.keyword), $.name, $.block),
        post: $ => seq(alias("recv_async", $.keyword), "from", $._peer, optional(seq("on", $.name))),

        _place: $ => choice($.name, alias($._place_at, $.at), alias($._place_part, $.part)),
        _place_at: $ => prec.left(LEVEL.postfix, seq($._place, "@", $._primary)),
        _place_part: $ => prec.left(LEVEL.postfix, seq($._place, "[", list($._slice), "]")),
        _slice: $ => choice(":", $._expression, seq($._expression, choice("+:", "of"), $._expression)),
        _peer: $ => choice($.port, $._expression),
        port: $ => prec.dynamic(1, choice("N", "S", "E", "W", "parent", seq("child", $._primary))),

        _expression: $ => choice($.unary, $.binary, $.at, $.part, $._primary),
        unary: $ => choice(prec(LEVEL.unary, seq(alias("-", $.operator), $._expression)), prec(LEVEL.not, seq(alias("not", $.operator), $._expression))),
        binary: $ => choice(...OPERATORS.map(([level, marks]) =>
            prec.left(level, seq($._expression, alias(choice(...marks), $.operator), $._expression)))),
        at: $ => prec.left(LEVEL.postfix, seq($._expression, "@", $._primary)),
        part: $ => prec.left(LEVEL.postfix, seq($._expression, "[", list($._slice), "]")),
        _primary: $ => choice($.number, $.name, "and", "or", $.call, seq("(", $._expression, ")"), $.launch, $.recv, $.peek),
        call: $ => prec(LEVEL.postfix, seq(field("function", $.name), "(", optional($.ordering),
            optional(choice(list(choice($.port, $._expression)), $.over)), ")")),
        over: $ => seq($.name, "in", $._expression, "..", $._expression, optional(seq("where", $._expression)), ":", $._expression),
        launch: $ => prec.right(seq(alias("launch", $.keyword), optional(seq("mod", $.number)))),
        recv: $ => prec.right(seq(alias(choice("recv", "recv_slot"), $.keyword), "from", $._peer, optional(seq("on", $.name)))),
        peek: $ => seq(alias("peek", $.keyword), $._place),
    },
});
