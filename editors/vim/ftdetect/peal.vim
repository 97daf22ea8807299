autocmd BufRead,BufNewFile *.peal setfiletype peal
