# make install and uninstall: everything where Unix looks for it, working from there, and gone again.
. "$ROOT/tests/cli/lib.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL
# What the running build holds is installed as it is: -o keeps make from building it anew with other flags. nvcc takes
# too long for this test, and MPI's library would be built anew: without both.
install_to() {
    run 0 make -C "$ROOT" --no-print-directory -o programs -o libs NVCC=none MPICC= "B=$(cd "$BIN/.." && pwd)" \
        "DESTDIR=$PWD/root" PREFIX=/opt/sgt "$@"
}

install_to install
for program in sgt-tokenize sgt-train sgt-inspect sgt-bench; do
    exists "root/opt/sgt/share/man/man1/$program.1"
    run 0 "root/opt/sgt/bin/$program" --version
    stdout_is "$program 0.1.0"
done
same "$BIN/sgt-train" root/opt/sgt/bin/sgt-train

# A program of one's own, from nothing but what was installed.
cat > own.c << 'END'
#include <sgt/sgt_loader.h>
#include <sgt/sgt_tokenize.h>
#include <stdio.h>
int main(void)
{
    sgt_error err;
    sgt_loader *l;
    sgt_vocab *v;
    if (sgt_vocab_gpt2(&v, &err) < 0) return 1;
    printf("%u\n", sgt_vocab_size(v));
    sgt_vocab_free(v);
    if (sgt_loader_open(&l, "nowhere", NULL, &err) == 0) return 1;
    puts(err.text);
    return 0;
}
END
flags=$(grep -o -e '-fsanitize=[a-z,]*' "$BIN/../flags" | head -1)
# shellcheck disable=SC2086
run 0 cc $flags -Iroot/opt/sgt/include -o own own.c -Lroot/opt/sgt/lib -lsgt-tokenize -lsgt-loader -lxxhash -luring \
    -ljansson -lpcre2-8 -lz -lzstd -lm -pthread
run 0 ./own
stdout_is '50257
nowhere: No such file or directory'

install_to uninstall
[ -z "$(find root -type f)" ] || fail "uninstall left $(find root -type f | head -3)"
