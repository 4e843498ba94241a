# make install and uninstall: files go to the usual folders of Unix, work from there, and are
# removed again.
unset MAKEFLAGS MFLAGS MAKELEVEL
# install_to OPTION... TARGET: install the running build. -o keeps make from rebuilding it with
# other flags. The CUDA library is left out because nvcc takes long to build it, and the MPI library
# because it would be rebuilt.
install_to() {
    run 0 make -C "$ROOT" --no-print-directory -o programs -o libs NVCC=none MPICC= "B=$(cd "$BIN/.." && pwd)" \
        "DESTDIR=$PWD/root" PREFIX=/opt/sgt "$@"
}

version=$(sed -n 's/.*SGT_VERSION "\(.*\)"/\1/p' "$ROOT/loader/base/version.h")
check 'the wheel has another version' grep -qxF "__version__ = \"$version\"" "$ROOT/tools/python/sgtokens/__init__.py"
install_to install
for program in sgt-tokenize sgt-train sgt-inspect sgt-bench sgt-eval sgt-report sgt-sample; do
    exists "root/opt/sgt/share/man/man1/$program.1"
    run_says "$program $version" "root/opt/sgt/bin/$program" --version
    for completion in "bash bash-completion/completions/$program" "zsh zsh/site-functions/_$program" \
        "fish fish/vendor_completions.d/$program.fish"; do
        run 0 "$program" --completion "${completion%% *}"
        same .stdout "root/opt/sgt/share/${completion#* }"
    done
done
install_to install
[ "$(tail -1 .stdout | cut -d' ' -f1-4)" = 'installed sgt-bench sgt-eval sgt-inspect' ] || fail 'not said what was installed'
exists root/opt/sgt/share/man/man3/sgt_loader.3
exists root/opt/sgt/share/man/man3/sgt_tokenize.3
exists root/opt/sgt/share/man/man7/sgt.7
same "$BIN/sgt-train" root/opt/sgt/bin/sgt-train

# A user's program, built only from installed files.
own_program sgt/
compiler
# shellcheck disable=SC2086
run 0 "$CC" $san -Iroot/opt/sgt/include -o own own.c root/opt/sgt/lib/libsgt-tokenize.a \
    root/opt/sgt/lib/libsgt-loader.a -lutf8proc -lpcre2-8 -lxxhash -luring -ljansson -lz -lzstd $(codecs_of "$CC") -lm -pthread
run_says "$own" ./own

# Use README's command for systems without pkgconf.
printf '#include <sgt_loader.h>\nint main(void) { sgt_loader_close(0); return 0; }\n' > plain.c
# shellcheck disable=SC2086
run 0 "$CC" $san -Iroot/opt/sgt/include/sgt -Lroot/opt/sgt/lib -o plain plain.c -lsgt-loader

# Use pkg-config, which finds the libraries relative to its own file: first the shared libraries,
# then the static ones after the folder was moved.
own_program
PKG_CONFIG_PATH=$PWD/root/opt/sgt/lib/pkgconfig
export PKG_CONFIG_PATH
run 0 pkg-config --modversion sgt-loader sgt-tokenize
stdout_is "$version
$version"
# shellcheck disable=SC2086,SC2046
run 0 "$CC" $san -o own own.c $(pkg-config --cflags --libs sgt-tokenize sgt-loader)
rm -f own.needs
readelf -d own > own.needs
check 'own does not load libsgt-loader.so.1' grep -qF '[libsgt-loader.so.1]' own.needs
run_says "$own" env LD_LIBRARY_PATH="$PWD/root/opt/sgt/lib" ./own
mv root/opt/sgt root/moved
PKG_CONFIG_PATH=$PWD/root/moved/lib/pkgconfig
# shellcheck disable=SC2086,SC2046
[ -n "$san" ] || {
    run 0 "$CC" -static -o own own.c $(pkg-config --static --cflags --libs sgt-tokenize sgt-loader)
    run_says "$own" ./own
}
mv root/moved root/opt/sgt

install_to uninstall
[ -z "$(find root ! -type d)" ] || fail "uninstall left $(find root ! -type d | head -3)"

# Install libraries elsewhere below the prefix, as Debian does. All users can read the files,
# whatever the umask.
(umask 077 && install_to LIBDIR=lib/of/this-machine install)
[ -z "$(find root/opt/sgt ! -type l ! -perm -444)" ] ||
    fail "not for all to read: $(find root/opt/sgt ! -type l ! -perm -444)"
PKG_CONFIG_PATH=$PWD/root/opt/sgt/lib/of/this-machine/pkgconfig
# shellcheck disable=SC2086,SC2046
run 0 "$CC" $san -o own own.c $(pkg-config --cflags --libs sgt-tokenize sgt-loader)
run_says "$own" env LD_LIBRARY_PATH="$PWD/root/opt/sgt/lib/of/this-machine" ./own
install_to LIBDIR=lib/of/this-machine uninstall
[ -z "$(find root ! -type d)" ] || fail "uninstall left $(find root ! -type d | head -3)"
