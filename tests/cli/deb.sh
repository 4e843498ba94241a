# make deb: lintian accepts the packages; unpacked, they work without a compiler.
# In make check-all only: it builds packages and checks them with lintian.
. "$ROOT/tests/cli/lib.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL
for tool in dpkg-deb dpkg-shlibdeps dpkg-gencontrol lintian; do
    command -v $tool > /dev/null || skip "no $tool (tools/deps.sh all)"
done
! grep -q fsanitize "$BIN/../flags" || skip 'built with a sanitizer, which is not to be packaged'

# Package the running build, as tests/cli/install.sh does; with MPI only if it is built.
mpi='MPICC='
[ ! -e "$BIN/../lib/libsgt-mpi.so" ] || mpi='-o mpi'
# shellcheck disable=SC2086
run 0 make -C "$ROOT" --no-print-directory -o programs -o libs $mpi NVCC=none "CC=$(sed 's/ .*//' "$BIN/../flags")" \
    "B=$(cd "$BIN/.." && pwd)" "DEB=$PWD/deb" deb
stderr_is ''
cd deb || exit 1
[ "$(ls -- *.deb | sed 's/_.*//' | tr '\n' ' ')" = 'libsgt-dev libsgt-loader0 libsgt-tokenize0 sgt ' ] ||
    fail "other packages: $(ls -- *.deb)"
run 0 lintian --allow-root --fail-on error,warning -- *.deb
stdout_is ''
for deb in *.deb; do dpkg-deb -x "$deb" ../root; done
run 0 dpkg-deb -f sgt_*.deb Depends
stdout_has 'libpcre2'
! grep -qE -- '-dev|gcc|make|python|cuda|mpi' .stdout || fail "sgt depends on $(cat .stdout)"
cd ..
case $mpi in -o*)
    exists root/usr/lib/sgt/libsgt-mpi.so
    run 0 dpkg-deb -f deb/sgt_*.deb Suggests
    stdout_has libopenmpi ;;
esac

# Run the package's programs, with no other sgt program in PATH.
export LD_LIBRARY_PATH
LD_LIBRARY_PATH=$(echo root/usr/lib/*-linux-gnu*)
PATH=$PWD/root/usr/bin:/usr/bin:/bin
for program in "$ROOT"/tools/sgt-*.c; do
    name=$(basename "$program" .c)
    run 0 "root/usr/bin/$name" --version
    stdout_is "$name 0.1.0"
    exists "root/usr/share/man/man1/$name.1.gz"
done
mkdir text
texts text 100000
run 0 sgt-tokenize --quiet --split 10% text out
run 0 sgt-inspect --verify out
run 0 sgt-train --quiet --data out --run run --device cpu --model 2x32x2 --seq-len 32 --batch-size 2 --steps 2
exists run/step-00000002/model.safetensors

# libsgt-dev: compile and link a program.
cat > own.c << 'END'
#include <sgt_loader.h>
#include <sgt_tokenize.h>
#include <stdio.h>
int main(void)
{
    sgt_error err;
    sgt_loader *l;
    sgt_vocab *v;
    if (sgt_vocab_gpt2(&v, &err) < 0 || sgt_loader_open(&l, "out", NULL, &err) < 0) return 1;
    printf("%u\n", sgt_vocab_size(v));
    sgt_loader_close(l);
    sgt_vocab_free(v);
    return 0;
}
END
PKG_CONFIG_PATH=$PWD/$LD_LIBRARY_PATH/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
run 0 cc -o own own.c $(pkg-config --cflags --libs sgt-tokenize sgt-loader)
run 0 ./own
stdout_is 50257
