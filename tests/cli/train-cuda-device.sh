# sgt-train: the device that a run uses, and the line that says why it is not CUDA.
# In make check-all only: it needs CUDA's backend on the host.
. "$ROOT/tests/cli/train.inc"
data d

cc=$(command -v cc || command -v gcc || command -v clang || :)
[ -n "$cc" ] || skip 'no C compiler'

cuda() { # MESSAGE [NAME=VALUE]...: sgt-train of $programs must refuse --device cuda; --device auto gives the reason
    message=$1
    shift
    run 1 env "$@" "$programs/sgt-train" --device cuda --data d
    stdout_is ''
    stderr_is "sgt-train: --device cuda: $message (--device cpu works)"
    run 0 env "$@" "$programs/sgt-train" --run auto --force $small --device auto --steps 1 --verbose
    stderr_has "device: the CPU ($message)"
}

# ---- the program without the CUDA library ----
mkdir -p alone/bin alone/lib lib
cp "$BIN/sgt-train" alone/bin
programs=$PWD/alone/bin
driver() { # C...: a libcuda.so.1
    echo "$*" | $cc -shared -fPIC -x c - -o lib/libcuda.so.1
}
on_driver() { cuda "$1" LD_LIBRARY_PATH="$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; }

[ -e /dev/nvidia0 ] || cuda 'no CUDA driver: libcuda.so.1 was not found'
driver 'int cuInit(unsigned f) { return (int)f; }'
on_driver 'no CUDA driver: libcuda.so.1 lacks cuDeviceGetCount'
driver 'int cuInit(unsigned f) { return f ? 1 : 100; } int cuDeviceGetCount(int *n) { return *n; }'
on_driver 'no CUDA device'
driver 'int cuInit(unsigned f) { return (int)f; } int cuDeviceGetCount(int *n) { return *n = 0; }'
on_driver 'no CUDA device'
driver 'int cuInit(unsigned f) { return f ? 1 : 803; } int cuDeviceGetCount(int *n) { return *n; }'
on_driver 'the CUDA driver does not work: error 803, unknown error'
driver 'int cuInit(unsigned f) { return f ? 1 : 802; } int cuDeviceGetCount(int *n) { return *n; }
    int cuGetErrorString(int e, const char **s) { *s = "system not yet initialized"; return e != 802; }'
on_driver 'the CUDA driver does not work: error 802, system not yet initialized'
working='int cuInit(unsigned f) { return (int)f; } int cuDeviceGetCount(int *n) { *n = 1; return 0; }'
driver "$working"
on_driver 'this build has no CUDA backend (make builds it where nvcc is)'

# ---- a library of another version ----
beside=$(realpath alone)/lib/libsgt-cuda.so
: > "$beside"
cuda "$beside: file too short"
echo 'int nothing_of_use;' | $cc -shared -fPIC -x c - -o "$beside"
cuda "$beside: the symbol sgt_cuda is missing"
echo 'const struct { unsigned n[3]; char v[16]; } sgt_cuda = {{99, 1, 1}, "9.9.9"};' |
    $cc -shared -fPIC -x c - -o "$beside"
version=$("$BIN/sgt-train" --version | sed 's/.* //')
ours=$(sed -n 's/^#define SGT_CUDA_INTERFACE \([0-9]*\).*/\1/p' "$ROOT/train/cuda/cuda_library.h")
cuda "$beside is from a different build: it is sgt 9.9.9, interface 99, but this is sgt $version, interface $ours (build both with one make)"
mkdir alone/lib/sgt # the folder that make install uses
mv "$beside" alone/lib/sgt
cuda "$(realpath alone)/lib/sgt/libsgt-cuda.so is from a different build: it is sgt 9.9.9, interface 99, but this is sgt $version, \
interface $ours (build both with one make)"
rm -r alone/lib/sgt

# ---- the library that nvcc builds, with unusable drivers ----
if [ -e "$BIN/../lib/libsgt-cuda.so" ]; then
    programs=$BIN
    driver 'int cuInit(unsigned f) { return f ? 1 : 100; } int cuDeviceGetCount(int *n) { return *n; }'
    on_driver 'no CUDA device'
    driver "$working int cuDriverGetVersion(int *n) { *n = 11080; return 0; }"
    run 1 env LD_LIBRARY_PATH="$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" sgt-train --device cuda --data d
    stderr_matches '^sgt-train: --device cuda: the CUDA driver supports CUDA 11\.8, but this build needs 1[2-9]\.0 \(install a newer driver\) \(--device cpu works\)$'
fi

# ---- the library for the host, in place of a GPU ----
programs=$BIN/../host/bin
if [ -x "$programs/sgt-train" ]; then
    cuda 'no CUDA driver: libcuda.so.1 was not found' SGT_HOST_DEVICE=nodriver
    cuda 'no CUDA device' SGT_HOST_DEVICE=none
    cuda 'the CUDA driver supports CUDA 12.4, but this build needs 13.0 (install a newer driver)' SGT_HOST_DEVICE=driver=12040
    cuda 'the host is sm_61: this build needs sm_80 or newer' SGT_HOST_DEVICE='arch=61 memory=64M'
fi
