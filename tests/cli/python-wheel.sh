# The wheels: each is tagged manylinux_2_28 for its processor and needs no newer glibc or libstdc++
# than that tag allows. README's line installs the wheel for x86-64 in a new venv. It also works with
# uvx, and in minimal roots of Debian 12 and 11 without a compiler and without sgt's packages:
# README's Python lines, and three steps of training. pip installs the sdist, which calls make.
# In make check-wheel only: it needs PyPI, links every program again and installs roots of Debian.
. "$ROOT/tests/cli/python.inc"
unset MAKEFLAGS MFLAGS MAKELEVEL
python_venv numpy
unset LD_LIBRARY_PATH PYTHONPATH
build=$(cd "$BIN/.." && pwd)
for wheel in "$build"/wheel/sgtokens-*.whl; do
    machine=${wheel#*manylinux_2_28_} machine=${machine%.whl}
    run 0 "$python" -m zipfile -e "$wheel" "$machine"
    for file in "$machine"/sgtokens/lib/* "$machine"/*.data/scripts/*; do
        readelf -hW "$file" > .stdout || fail "$file is no program"
        stdout_matches "Machine: .*$(echo "$machine" | sed 's/_/./; s/aarch/AArch/; s/x86/X86/')"
        fits_tag "$file"
    done
    [ "$(stat -c %s "$wheel")" -lt 10000000 ] || fail "$wheel has more than 10 MB"
done
wheel=$(echo "$build"/wheel/sgtokens-*-py3-none-manylinux_2_28_x86_64.whl)
exists "$wheel"
cat x86_64/sgtokens-*.dist-info/METADATA > .stdout
stdout_has 'No licence has been chosen yet'
stdout_has 'Requires-Dist: numpy'

run 0 "$python" -m venv v
line=$(sed -n 's/.*`pip install \(build[^`]*\)`.*/\1/p' "$ROOT/README.md")
run 0 sh -c "cd '$build/..' && '$PWD/v/bin/pip' install --quiet $line"
write_try
run_prints '(4, 16) ok' sh try.sh "$PWD/v"

# Snappy, which the program and the library contain.
for codec in none $(codecs_of cc | sed -n 's/.*snappy.*/snappy/p'); do
    set -- --field plain_none --skip-bad "$ROOT/tests/data/parquet/$codec-v2.parquet"
    run 0 v/bin/sgt-tokenize --quiet "$@" "$codec-1"
    run 0 v/bin/python -c 'import sgtokens, sys
sgtokens.tokenize(sys.argv[1], sys.argv[2], field="plain_none", skip_bad=True)' "$4" "$codec-2"
    for n in 1 2; do same none-1/train_000000.bin "$codec-$n/train_000000.bin"; done
done

run 0 v/bin/pip install --quiet uv
run 0 v/bin/uvx --python v/bin/python --from "$wheel" sgt-tokenize --version
stdout_is "sgt-tokenize $(v/bin/python -c 'import sgtokens; print(sgtokens.__version__)')"

# The files of the sdist have an old date, so make uses the objects of this build unless a source is
# missing.
tar -xzf "$build"/wheel/sgtokens-*.tar.gz
source=$(echo sgtokens-*/source)
mkdir "$source/build"
cp -Rp "$build/obj" "$build"/flags* "$source/build"
run 0 "$python" -m venv s
run 0 s/bin/pip install --quiet ./sgtokens-*/
mkdir from-source
cd from-source || exit 1
run_prints '(4, 16) ok' sh ../try.sh "$OLDPWD/s"
cd ..

# The roots hold Python, what it needs to install a wheel, and nothing else.
command -v debootstrap > /dev/null || skip 'no debootstrap: no empty root was tried'
[ "$(id -u)" -eq 0 ] || skip 'only root may make an empty root'
for root in bookworm bullseye; do
    debootstrap --variant=minbase --include=python3,python3-venv $root $root > .stdout 2>&1 ||
        skip "debootstrap cannot make a root of $root"
    mkdir -p $root/wheels $root/try
    run 0 v/bin/pip download --quiet --dest $root/wheels \
        --python-version "$(chroot $root python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')" \
        --only-binary :all: numpy
    cp "$wheel" $root/wheels && cp try.sh $root/try
    run 0 chroot $root sh -c 'python3 -m venv /v && /v/bin/pip install --quiet --no-index --find-links /wheels sgtokens'
    run_prints '(4, 16) ok' chroot $root sh -c '! command -v cc && cd /try && sh try.sh /v'
done
