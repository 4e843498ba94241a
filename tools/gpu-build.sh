#!/bin/sh
# gpu-build.sh [BUNDLE]: compiles the CUDA backend and check-cuda-device anew on a machine with a card, in a copy of the
# repository, for a source that was changed there: by nvcc for sm_90a alone (ARCH: another), on all cores. What needs
# no CUDA is linked as it is from BUNDLE/link, which `make gpu-bundle` made (BUNDLE: build/gpu-bundle), and what comes
# of it replaces BUNDLE's library and program. It needs nvcc and a C compiler, and neither make nor our packages.
# Objects are kept in BUNDLE/obj: a second call compiles what is newer than its object, or all when a header is.
# NVCC (nvcc) and CC (cc) are the compilers; JOBS is how many run at once (all cores).
set -u
cd "$(dirname "$0")/.." || exit 1
case ${1:-} in
--help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" && exit 0 ;;
-*) echo "gpu-build.sh: $1: no such option (gpu-build.sh [BUNDLE])" >&2 && exit 2 ;;
esac
bundle=${1:-build/gpu-bundle}
export PATH="$PATH:/usr/local/cuda/bin"
nvcc=${NVCC:-nvcc} cc=${CC:-cc} arch=${ARCH:-90a}

fail() {
    echo "gpu-build.sh: $1" >&2
    exit 1
}
[ -f "$bundle/link/libsgt-train.a" ] || fail "$bundle/link/libsgt-train.a is not there: make gpu-bundle makes it"
[ -f kernels/cuda/device.cuh ] || fail "kernels/cuda is not there: this runs in a copy of the repository"
command -v "$nvcc" > /dev/null || fail "$nvcc is not there"
command -v "$cc" > /dev/null || fail "$cc is not there"
began=$(date +%s)

# ---- compile: one line SOURCE OBJECT each, those that take longest first ----

cuda_include=$(dirname "$(dirname "$(command -v "$nvcc")")")/include
device="$nvcc -std=c++17 -O3 -lineinfo -I. -Iloader -Werror all-warnings
    -Xcompiler -fPIC,-pthread -gencode arch=compute_$arch,code=sm_$arch -x cu -c"
host="$cc -std=c11 -D_GNU_SOURCE -I. -Iloader -isystem $cuda_include -Wall -O2
    -ffp-contract=off -fPIC -pthread -fopenmp -c"
export device host

library=$(ls -S kernels/cuda/*.cu)" "$(ls kernels/cuda/*.c train/cuda/*.c)
checks=$(ls -S tests/kernels/*.cu tests/kernels/*.cpp)" "$(ls tests/kernels/device/*.cpp tests/kernels/device/*.cu)
checks=$(echo "$checks" | grep -v pretend.cpp)
# If a header has changed since the objects were built, compile all of them again.
headers() { find kernels loader train tests/kernels \( -name '*.h' -o -name '*.cuh' \) -newer "$bundle/obj/began"; }
if [ ! -e "$bundle/obj/began" ] || [ -n "$(headers | head -1)" ]; then rm -rf "$bundle/obj"; fi
mkdir -p "$bundle/obj"
touch "$bundle/obj/began"
# Compile to a temporary name, so that an object is complete or absent. On failure, keep the messages beside it.
cat > "$bundle/obj/compile" << 'END'
case $1 in *.c) compiler=$host ;; *) compiler=$device ;; esac
# shellcheck disable=SC2086
$compiler -o "$2.part" "$1" > "$2.log" 2>&1 && mv "$2.part" "$2"
END

object() { echo "$bundle/obj/$(echo "$1" | tr / .).o"; } # SOURCE
for source in $library $checks; do
    o=$(object "$source")
    if [ -f "$o" ] && [ -z "$(find "$source" -newer "$o")" ]; then continue; fi
    rm -f "$o"
    echo "$source $o"
done > "$bundle/obj/list"
xargs -r -P "${JOBS:-$(nproc)}" -L 1 sh "$bundle/obj/compile" < "$bundle/obj/list"
bad=$(while read -r source o; do [ -f "$o" ] || echo "$source"; done < "$bundle/obj/list")
for source in $bad; do cat "$(object "$source").log"; done >&2
[ -z "$bad" ] || fail "not compiled: $(echo "$bad" | tr '\n' ' ')"

# ---- link ----

link() { # OUT ARGUMENT...
    out=$1
    shift
    "$nvcc" -cudart static -o "$out.part" "$@" -ldl -lm > "$bundle/obj/link.log" 2>&1 || {
        cat "$bundle/obj/link.log" >&2
        fail "not linked: $out"
    }
    mv "$out.part" "$out"
}
objects() { for source in "$@"; do object "$source"; done; }
archives="$bundle/link/libsgt-train.a $bundle/link/libsgt-kernels.a $bundle/link/libsgt-loader.a"
# shellcheck disable=SC2046,SC2086
link "$bundle/lib/libsgt-cuda.so" -shared $(objects $library) $archives \
    -Xlinker --version-script=train/cuda/cuda_library.map -Xlinker -z,defs \
    -Xcompiler -static-libstdc++,-static-libgcc,-fopenmp
plain=$(ls kernels/cuda/gemm*.c kernels/cuda/cublaslt.c kernels/cuda/nccl.c kernels/cuda/failure.c 2> /dev/null)
# shellcheck disable=SC2046,SC2086
link "$bundle/bin/check-cuda-device" -Xlinker --wrap=__cudaLaunchKernel -Xcompiler -fopenmp \
    $(objects $(ls kernels/cuda/*.cu) $checks $plain) "$bundle/link/harness.o" $archives
commit=$(git describe --always --dirty --abbrev=12 2> /dev/null || echo "$(sed 's/+.*//' "$bundle/commit")+changed")
echo "$commit" > "$bundle/commit"
echo "$bundle: $(grep -c . "$bundle/obj/list") files compiled for sm_$arch, linked; $(($(date +%s) - began)) s"
