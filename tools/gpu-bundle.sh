#!/bin/sh
# gpu-bundle.sh BUILD: collects in BUILD/gpu-bundle everything that tools/gpu-check.sh needs on another machine. That
# machine must have a driver, and cuBLAS and cuDNN from a CUDA toolkit or from PyTorch's wheels. `make gpu-bundle`
# builds the programs first.
#
# Inside a copy of the repository, the bundle reads the tests' data from there. ALONE=1 adds this data, for a bundle
# that is copied elsewhere without the repository. A bundle of more than LIMIT MiB (30) is an error, because a card is
# lent for minutes and the bundle is copied to it first.
set -eu
cd "$(dirname "$0")/.."
B=$1
out=$B/gpu-bundle
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib" "$out/tools" "$out/data"
for f in bin/sgt-train bin/sgt-bench tests/check-cuda-device; do strip -o "$out/bin/$(basename $f)" "$B/$f"; done
strip -o "$out/lib/libsgt-cuda.so" "$B/lib/libsgt-cuda.so"

# Copy the libraries that the programs load, except those that every Linux with a compiler has.
ldd "$out"/bin/* "$out/lib/libsgt-cuda.so" | awk '
    $2 == "=>" && $3 == "not" { print $1 " was not found" > "/dev/stderr"; missing = 1 }
    $3 ~ /^\// && $1 !~ /^(libc|libm|libpthread|libdl|librt|libstdc\+\+|libgcc_s)\.so/ && !seen[$3]++ { print $3 }
    END { exit missing }' > "$out/libraries"
xargs -r cp -L -t "$out/lib" < "$out/libraries"
rm "$out/libraries"

cp -r tools/gpu-check.sh tools/gpu "$out/tools"
if [ -n "${ALONE:-}" ]; then
    mkdir -p "$out/tests/data/fixtures"
    cp -r tests/peers tests/gpu-results "$out/tests"
    cp -r tests/data/fixtures/curve "$out/tests/data/fixtures"
fi
"$B/bin/sgt-tokenize" --quiet --split 5% README.md loader kernels train tools "$out/data/shards"
{ git describe --always --dirty --abbrev=12 2> /dev/null || echo unknown; } > "$out/commit"
cat > "$out/README" << 'END'
tools/gpu-check.sh --budget 560 runs all checks on this machine's GPU; --help lists its parts. Programs by hand:
    LD_LIBRARY_PATH=lib bin/sgt-train --device cuda --data data/shards --run run
If the system does not find cuBLAS or cuDNN, add their folders to LD_LIBRARY_PATH.
END

size=$(find "$out" -type f -printf '%s\n' | awk '{ s += $1 } END { printf "%.1f", s / 2^20 }')
if awk "BEGIN { exit !($size > ${LIMIT:-30}) }"; then
    echo "gpu-bundle.sh: $out: $size MiB, more than ${LIMIT:-30} MiB" >&2
    exit 1
fi
echo "$out: $size MiB; run tools/gpu-check.sh in it"
