#!/bin/sh
# check-nvcc.sh BUILD: nvcc compiles every kernel for sm_80 and sm_90a, and the wrappers' tests: no warning, no register
# spilled, and the kernels listed in registers.txt within their number of registers; and what we declare of CUDA's
# libraries is what the toolkit's headers say. Where there is no nvcc it says so.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=$1
command -v nvcc > /dev/null 2>&1 || {
    echo "no nvcc: left out compiling the CUDA kernels for sm_80 and sm_90a"
    exit 0
}
mkdir -p "$B/nvcc"
flags="-std=c++17 -O3 -Iloader -Ikernels -Itests/kernels -I. -Werror all-warnings -Xptxas -v --resource-usage"
passed=0 failed=0

compile() { # FILE ARCH: its object, and beside it what ptxas reported, a kernel a line: NAME REGISTERS SPILLED-BYTES
    out=$B/nvcc/$(echo "$1" | tr / -).$2
    # shellcheck disable=SC2086
    if nvcc $flags -arch="$2" -c -o "$out.o" "$1" > "$out.log" 2>&1; then
        passed=$((passed + 1))
    else
        echo "FAIL $1 for $2:"
        grep -vE 'ptxas info|^ +[0-9]+ bytes stack' "$out.log" | tail -5
        failed=$((failed + 1))
    fi
    c++filt < "$out.log" | awk '
        /Compiling entry function/ {
            name = $0
            sub(/.*entry function .(void )?/, "", name)
            sub(/[<(].*/, "", name)
            sub(/.*::/, "", name)
        }
        /bytes spill stores/ { spilled = $5 + $9 }
        /Used [0-9]+ registers/ { for (i = 1; i < NF; i++) if ($i == "Used") print name, $(i + 1), spilled }
        ' > "$out.usage"
}

# tests/kernels/toolkit: files of assertions on the toolkit's headers, which nvcc knows the place of.
for file in tests/kernels/toolkit/*.c; do
    [ -f "$file" ] || continue
    if nvcc -c -o "$B/nvcc/toolkit.o" -Xcompiler -std=c11,-Wall,-Wextra,-Werror -Iloader -Ikernels -I. "$file" \
        > "$B/nvcc/toolkit.log" 2>&1; then
        passed=$((passed + 1))
    else
        echo "FAIL $file:" && head -5 "$B/nvcc/toolkit.log"
        failed=$((failed + 1))
    fi
done

for arch in sm_80 sm_90a; do
    for file in kernels/cuda/*.cu tests/kernels/*.cu; do
        [ ! -f "$file" ] || compile "$file" $arch
    done
    cat "$B"/nvcc/*.$arch.usage > "$B/nvcc/$arch.usage"
    awk -v arch=$arch '
        FNR == NR { if (!/^#/ && NF == 3) limit[$1] = arch == "sm_80" ? $2 : $3; next }
        { seen[$1] = 1; if ($3) { print "FAIL " $1 " for " arch ": " $3 " bytes spilled"; bad = 1 } }
        $1 in limit && $2 > limit[$1] {
            print "FAIL " $1 " for " arch ": " $2 " registers, at most " limit[$1]
            bad = 1
        }
        END {
            for (k in limit) if (!(k in seen)) { print "FAIL " k ": in registers.txt, in no kernel"; bad = 1 }
            exit bad
        }' tests/kernels/registers.txt "$B/nvcc/$arch.usage" && passed=$((passed + 1)) || failed=$((failed + 1))
done
echo "CUDA kernels by nvcc: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
