" SPDX-License-Identifier: Apache-2.0
if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1
setlocal commentstring=//\ %s comments=:// expandtab shiftwidth=4 softtabstop=4 cindent cinoptions=+4,(0
compiler peal
let b:undo_ftplugin = "setlocal commentstring< comments< expandtab< shiftwidth< softtabstop< cindent< cinoptions<"
