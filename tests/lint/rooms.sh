#!/bin/sh
# rooms.sh: check that every file includes others by their path from the root, and only from its own
# room (top-level folder) or from rooms that it may depend on. The installed headers and the
# examples include each other as users see them. On the host, the CUDA headers may include the twins
# that imitate instructions. Tests in C create their temporary files in TMPDIR (tests/scratch.h).
set -u
cd "$(dirname "$0")/../.." || exit 1
find loader tokenize kernels train tools tests \( -name '*.[ch]' -o -name '*.cu*' -o -name '*.cpp' \) \
    ! -path '*/examples/*' ! -path loader/sgt_loader.h ! -path tokenize/sgt_tokenize.h \
    -exec awk '
    BEGIN {
        below["loader"] = "loader"
        below["kernels"] = "kernels loader"
        twins = "^kernels/cuda/.* tests/kernels/host/[a-z_]*twins.h$"
        below["tokenize"] = "tokenize loader"
        below["train"] = "train kernels loader"
        below["tools"] = "tools train kernels tokenize loader"
        below["tests"] = "tests " below["tools"]
    }
    /^[ \t]*#[ \t]*include[ \t]+"/ {
        split($0, quoted, "\"")
        split(quoted[2], part, "/")
        split(FILENAME, own, "/")
        if (!index(" " below[own[1]] " ", " " part[1] " ") && FILENAME " " quoted[2] !~ twins) {
            printf "%s:%d: \"%s\": not a path from the root into one of: %s\n", FILENAME, FNR,
                   quoted[2], below[own[1]]
            found = 1
        }
    }
    END { exit found }' {} + && ! grep -rn --include='*.[ch]' '"/tmp/[^"]*XXXXXX"' tests
