" SPDX-License-Identifier: Apache-2.0
" Written by scripts/grammars: the words come from `peal ops --json`.
if exists("b:current_syntax")
  finish
endif
syntax keyword pealStructure channel grid kernel let private reduce signal tree var window
highlight default link pealStructure Structure
syntax keyword pealStatement assert else ensures exclusive fence flush for free if lane launch notify peek recv recv_async recv_slot requires scope send take wait when
highlight default link pealStatement Statement
syntax keyword pealOperator and not or
highlight default link pealOperator Operator
syntax keyword pealType T bf16 bool cf32 cf64 f16 f32 f32_i32 f64 f64_i64 f8e4m3 f8e5m2 i16 i32 i32_i32 i64 i64_i64 i8 int u16 u32 u64 u8
highlight default link pealType Type
syntax keyword pealConstant col cols max_seats nchildren node nodes nranks rank row rows seat seats
highlight default link pealConstant Constant
syntax keyword pealFunction abs add at avg cdiv clamp compare_swap div exp fetch_add fill final fma has id len log log2 matmul max maximum maxloc min minimum minloc mul neg node_of num_programs old part peer prod program_id recip seat_of seats_of select sigmoid softmax sqrt sub sum tanh xor
highlight default link pealFunction Function
syntax keyword pealSpecial all_to_all all_to_all_v allgather allreduce barrier broadcast exscan gather reduce_scatter scan scatter
highlight default link pealSpecial Special
syntax keyword pealStorageClass acq_rel acquire associative block capacity commutative device from full implements in inout into local mod of on out peers raw relaxed release shared step system to torus uninitialised where wide
highlight default link pealStorageClass StorageClass
syntax match pealNumber /\<\d\+\(\.\d\+\)\?\([eE][+-]\?\d\+\)\?\>/
syntax region pealString start=/"/ skip=/\\./ end=/"/ oneline
syntax match pealComment "//.*$" contains=@Spell
highlight default link pealNumber Number
highlight default link pealString String
highlight default link pealComment Comment
let b:current_syntax = "peal"
