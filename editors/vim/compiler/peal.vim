" SPDX-License-Identifier: Apache-2.0
" :make runs `peal check` on the file, and its errors become the quickfix list.
let current_compiler = "peal"
CompilerSet makeprg=peal\ check\ --quiet\ %:S
CompilerSet errorformat=%E%f:%l:%c:\ error:\ %m,%I%f:%l:%c:\ note:\ %m,%-G%.%#
