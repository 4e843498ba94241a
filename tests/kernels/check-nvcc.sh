#!/bin/sh
# check-nvcc.sh BUILD: check nvcc's output for the kernels and their tests, after make has compiled
# them without a warning for sm_80 and sm_90a. registers.sh checks registers and spills.
# Also check that sgt's declarations of CUDA's libraries agree with the toolkit's headers.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=$1
mkdir -p "$B/nvcc"
passed=0 failed=0

# tests/kernels/toolkit: assertions on the toolkit's headers, whose place nvcc knows.
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
cat > "$B/nvcc/sample.log" << 'END' # registers.sh must report each of these warnings
ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to a call
END
if [ "$(tests/kernels/registers.sh "$B/nvcc/sample.log" | grep -c 'FAIL ptxas')" -eq 2 ]; then
    passed=$((passed + 1))
else
    echo "FAIL registers.sh: did not report both warnings of the sample"
    failed=$((failed + 1))
fi
# nvcc knows where it places a kernel's shared memory, and must not take the check of it away.
if nvcc -gencode=arch=compute_90a,code=compute_90a -std=c++17 -I. -Iloader -ptx -o "$B/nvcc/hopper.ptx" kernels/cuda/attention_hopper.cu &&
    grep -q 'trap;' "$B/nvcc/hopper.ptx"; then
    passed=$((passed + 1))
else
    echo "FAIL attention_hopper.cu: no trap for tiles that are not aligned"
    failed=$((failed + 1))
fi
echo "CUDA kernels by nvcc: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
