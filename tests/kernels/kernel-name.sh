#!/bin/sh
# kernel-name.sh: read lines KEY SIGNATURE, where the signature is a C++ function's as nm -C and
# c++filt print it, and write lines KEY NAME. The name is the function's with its template
# arguments. It is the same for the device's and the host's compiler.
# "1 void sgt::norm_kernel<__nv_bfloat16, (int)8>(...)" gives "1 norm_kernel<bf16,8>".
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
