#!/bin/sh
# kernel-name.sh: of lines KEY SIGNATURE on stdin, where the signature is a C++ function's as nm -C and c++filt print
# it, KEY NAME: the function's name with its template arguments, the same whether the device's compiler or the host's
# made it. "1 void sgt::norm_kernel<__nv_bfloat16, (int)8>(...)" gives "1 norm_kernel<bf16,8>".
sed -E 's/\(anonymous namespace\):://g
        s/__nv_bfloat16/bf16/g
        s/__half/f16/g
        s/\((int|bool|unsigned int)\)//g
        s/([a-z_]+[a-z0-9_]*::)+//g
        s/^([^ ]+) (static )?(void )?/\1 /' |
    awk '{
        key = $1
        sub(/^[^ ]+ /, "")
        gsub(/ /, "")
        depth = 0
        for (i = 1; i <= length($0); i++) {
            c = substr($0, i, 1)
            if (c == "<") depth++
            if (c == ">") depth--
            if (c == "(" && !depth) break
        }
        print key, substr($0, 1, i - 1)
    }'
