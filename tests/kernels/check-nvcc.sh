#!/bin/sh
# check-nvcc.sh BUILD: what nvcc made of the kernels and of their tests, once make has compiled them without a warning
# for sm_80 and sm_90a: registers and spills, by registers.sh; the code of the step's kernels, by machine-code.sh; and
# what we declare of CUDA's libraries is what the toolkit's headers say.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=$1
mkdir -p "$B/nvcc"
passed=0 failed=0 skipped=0

# tests/kernels/toolkit: files of assertions on the toolkit's headers, which nvcc knows the place of.
for file in tests/kernels/toolkit/*.c; do
    [ -f "$file" ] || continue
    if nvcc -c -o "$B/nvcc/toolkit.o" -Xcompiler -std=c11,-Wall,-Wextra,-Werror -I. -Iloader "$file" \
        > "$B/nvcc/toolkit.log" 2>&1; then
        passed=$((passed + 1))
    else
        echo "FAIL $file:" && head -5 "$B/nvcc/toolkit.log"
        failed=$((failed + 1))
    fi
done

set --
for file in kernels/cuda/*.cu tests/kernels/*.cu; do
    [ ! -f "$file" ] || set -- "$@" "$B/obj/device/$file.log"
done
if tests/kernels/registers.sh "$@"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
fi
code=0
tests/kernels/machine-code.sh "$B" || code=$?
case $code in
0) passed=$((passed + 1)) ;;
77) skipped=$((skipped + 1)) ;;
*) failed=$((failed + 1)) ;;
esac
echo "CUDA kernels by nvcc: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
