# make dist: the archive has every file that git tracks, and the same bytes each time, from a clone and from an
# unpacked archive; the unpacked files can be built.
# In make check-all only: it builds what it unpacks.
. "$ROOT/tests/cli/lib.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL
dist() { # TREE OUT
    run 0 make -C "$1" --no-print-directory dist "DIST=$PWD/$2"
    stdout_is "$PWD/$2"
}
dist "$ROOT" one.tar.gz
tar -xzf one.tar.gz
[ "$(ls)" = 'one.tar.gz
sgt-0.1.0' ] || fail "not one folder sgt-0.1.0: $(ls)"
[ -x sgt-0.1.0/.ci/run ] && [ -x sgt-0.1.0/tools/deps.sh ] || fail 'what is to be run may not be'
if [ -e "$ROOT/.git" ]; then
    git -C "$ROOT" -c core.quotepath=off ls-files | sort > tracked
    (cd sgt-0.1.0 && find . -type f | sed 's|^\./||' | sort) > unpacked
    check "other files than git's: $(diff tracked unpacked | head -5)" cmp -s tracked unpacked
fi

# Make it again without git, in a folder with build products, under another umask.
mkdir -p sgt-0.1.0/out sgt-0.1.0/build/obj
touch sgt-0.1.0/out/train_000000.bin sgt-0.1.0/build/obj/x sgt-0.1.0/loader/x.o
umask 077
dist sgt-0.1.0 two.tar.gz
same one.tar.gz two.tar.gz
umask 022
rm sgt-0.1.0/loader/x.o

# The archive has every source that a target of the whole build needs; to show it, one library is built.
run 0 make -C sgt-0.1.0 -n NVCC=none all
san=$(grep -q fsanitize "$BIN/../flags" && echo yes)
[ -n "$san" ] || {
    run 0 make -C sgt-0.1.0 -j2 "CC=$(sed 's/ .*//' "$BIN/../flags")" B=b CFLAGS=-O0 b/lib/libsgt-loader.so
    exists sgt-0.1.0/b/lib/libsgt-loader.so.0
}
