# The wheel where nvcc is, which needs no GPU: it is built with the library that stands in for libsgt-cuda.so. In a new
# venv, programs find the library.
# In make check-all only: it needs CUDA's backend on the host.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/python.inc"
python_venv numpy hatchling
unset PYTHONPATH VIRTUAL_ENV CONDA_PREFIX
[ -e "$BIN/../host/lib/libsgt-cuda.so" ] || skip 'the CUDA backend for the host is not built'
mkdir -p files/bin files/lib files/cuda
cp "$BIN/../host/bin/sgt-train" files/bin
cp "$BIN"/../lib/libsgt-*.so.0 files/lib && cp files/lib/libsgt-loader.so.0 files/lib/libthird.so.0
cp "$BIN/../host/lib/libsgt-cuda.so" files/cuda
cp -R "$ROOT/tools/python" source
(cd source && SGT_WHEEL_FILES=$OLDPWD/files "$python" -m hatchling build --target wheel --directory "$OLDPWD/wheel") \
    > .stdout 2>&1 || fail "hatchling: $(cat .stdout)"
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' source/sgt/__init__.py)
wheel=$(echo wheel/sgt-"$version"-py3-none-manylinux_2_*_x86_64.whl)
exists "$wheel"
run 0 "$python" -m zipfile -e "$wheel" unpacked
cat unpacked/*.dist-info/METADATA > .stdout
stdout_has "Requires-Dist: nvidia-cublas; extra == 'cuda'"

run 0 "$python" -m venv --without-pip v
run 0 "$python" -m pip --python v/bin/python install --quiet --no-deps --no-index "$wheel"
exists v/lib/sgt/libsgt-cuda.so
v/bin/sgt-train --self-check > .stdout 2> .stderr || true # some paths need libraries of NVIDIA
stdout_matches 'attention own +ok'

# Without the library, one line says what is missing.
rm v/lib/sgt/libsgt-cuda.so
run 1 v/bin/sgt-train --self-check
stderr_lines 1
