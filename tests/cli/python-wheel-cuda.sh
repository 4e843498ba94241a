# The form of the wheel sgtokens-cuda (tools/python/cuda). Instead of nvcc's libsgt-cuda.so it holds
# the library for the host, so no GPU is needed. Programs in a new venv find the library. If nvcc is
# installed, its library can be loaded and fits the tag manylinux_2_28.
# In make check-all only: it needs CUDA's backend on the host.
. "$ROOT/tests/cli/python.inc"
python_venv numpy hatchling
unset PYTHONPATH VIRTUAL_ENV CONDA_PREFIX
[ -e "$BIN/../host/lib/libsgt-cuda.so" ] || skip 'the CUDA backend for the host is not built'
nvccs=$BIN/../wheel-files/cuda/libsgt-cuda.so
if [ -e "$nvccs" ]; then
    fits_tag "$nvccs"
    run 0 "$python" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1]).sgt_cuda' "$nvccs"
fi
mkdir files
cp "$BIN/../host/lib/libsgt-cuda.so" files
cp -R "$ROOT/tools/python" source
make_wheel() { # FILES
    (cd source/cuda && SGT_CUDA_FILES=$1 "$python" -m hatchling build --target wheel --directory "$OLDPWD/wheel")
}
run 1 make_wheel "$PWD/source"
stderr_has 'has no libsgt-cuda.so (with nvcc, make wheel builds it)'
run 0 make_wheel "$PWD/files"
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' source/sgtokens/__init__.py)
wheel=$(echo wheel/sgtokens_cuda-"$version"-py3-none-manylinux_2_*_x86_64.whl)
exists "$wheel"
run 0 "$python" -m zipfile -e "$wheel" unpacked
cat unpacked/*.dist-info/METADATA > .stdout
stdout_has "Requires-Dist: sgtokens==$version"
stdout_has 'No licence has been chosen yet'
stdout_has "Requires-Dist: nvidia-cublas; extra == 'libraries'"

run 0 "$python" -m venv --without-pip v
run 0 "$python" -m pip --python v/bin/python install --quiet --no-deps --no-index "$wheel"
exists v/lib/sgt/libsgt-cuda.so
run 1 env PATH=/usr/bin:/bin v/bin/python -m sgtokens_cuda
stderr_is 'sgtokens-cuda: no sgt-train (pip install the wheel sgtokens)'
cp "$BIN/../host/bin/sgt-train" v/bin
v/bin/python -m sgtokens_cuda > .stdout 2> .stderr || true # some paths need NVIDIA's libraries
stdout_matches 'attention own +ok'

# If the library or a GPU is missing, one line says so.
rm v/lib/sgt/libsgt-cuda.so
cp "$BIN/sgt-train" v/bin
code=0
v/bin/python -m sgtokens_cuda > .stdout 2> .stderr || code=$?
[ $code -ne 0 ] || fail 'there is no libsgt-cuda.so, and the self-check passed'
[ "$(wc -l < .stderr)" -eq 1 ] || fail "more than a line: $(cat .stderr)"
