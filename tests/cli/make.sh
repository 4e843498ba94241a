# make prints a line for each step while it builds, and with V=1 the commands.
unset MAKEFLAGS MFLAGS MAKELEVEL
build() { make -C "$ROOT" --no-print-directory "B=$PWD/b" "$@" "$PWD/b/tests/faults" "$PWD/b/tests/faults.so"; }

run 0 build
stdout_is '  CC tests/faults/faults.c
  CC tests/faults/shim.c'
stderr_is ''
run_prints_like 'is up to date' build
rm -rf b
run 0 build V=1
[ "$(grep -cE '^mkdir .* -o .*/b/tests/faults' .stdout)" -eq 2 ] || fail 'not the two commands'

# build/bin holds only what users run, so that it can be on PATH. The tests' programs are elsewhere.
make -C "$ROOT" --no-print-directory -pn NVCC=none B=b clean > rules
sed -n 's|^b/bin/\([^:%]*\):.*|\1|p' rules > bin
grep -q '^sgt-train$' bin || fail 'make does not know sgt-train'
! grep -v '^sgt-' bin || fail 'a program of the tests among the programs'

# A codec of Parquet is linked only if the compiler finds its header.
make -C "$ROOT" --no-print-directory -pn NVCC=none CC='cc -nostdinc' clean > database
grep '^LD_codecs := ' database > codecs || fail 'no list of codecs'
! grep -e -l codecs || fail 'without headers, there are codecs'
