; SPDX-License-Identifier: Apache-2.0
; Written by scripts/grammars: the words come from `peal ops --json`.
(comment) @comment
(string) @string
(number) @number
(type) @type
(contract) @type.builtin
(kernel name: (name) @function)
(reduction name: (name) @function)
(call function: (name) @function.call)
((call function: (name) @function.builtin) (#any-of? @function.builtin "abs" "add" "at" "cdiv" "clamp" "compare_swap" "div" "exp" "fetch_add" "fill" "final" "fma" "has" "id" "len" "log" "log2" "matmul" "max" "maximum" "maxloc" "min" "minimum" "minloc" "mul" "neg" "node_of" "num_programs" "old" "part" "peer" "program_id" "recip" "seat_of" "seats_of" "select" "sigmoid" "softmax" "sqrt" "sub" "sum" "tanh" "xor" "sum" "prod" "max" "min" "avg" "xor" "minloc" "maxloc"))
(parameter name: (name) @variable.parameter)
((name) @variable.builtin (#any-of? @variable.builtin "col" "cols" "max_seats" "nchildren" "node" "nodes" "nranks" "rank" "row" "rows" "seat" "seats"))
(port) @constant.builtin
(keyword) @keyword
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ":"] @punctuation.delimiter
(operator) @operator
