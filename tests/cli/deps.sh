# make deps prints nothing if nothing is missing, names the packages that it installs, and fails
# with one line if it cannot.
deps=$ROOT/tools/deps.sh
"$deps" build --missing > /dev/null || skip "packages are missing here, so that their absence cannot be staged"

run_says '' "$deps" build
stderr_is ''

# A system with the usual commands, no apt-get, and a compiler that finds only jansson's header.
mkdir bin
for tool in sh cat tr sed id mktemp env rm tail grep touch make; do ln -s "$(command -v $tool)" bin/$tool; done
cat > bin/cc << 'END'
#!/bin/sh
! grep -qvE '#include <jansson.h>'
END
chmod +x bin/cc
all='libutf8proc-dev libpcre2-dev liburing-dev libxxhash-dev zlib1g-dev libzstd-dev'
run 1 env PATH="$PWD/bin" CC=cc "$deps" build --missing
stdout_is "$all"
run 1 env PATH="$PWD/bin" CC=cc "$deps" build
stdout_is ''
stderr_is "sgt needs these packages (Debian's names), but apt-get was not found to install them: $all"
run 2 env PATH="$PWD/bin" make -C "$ROOT" --no-print-directory CC=cc B="$PWD/build" need-packages
stderr_has "sgt needs these packages: $all (make deps installs them)"

# An apt-get that fails before the package lists are fetched, and then installs the headers.
cat > bin/apt-get << 'END'
#!/bin/sh
echo "$*" >> apt.log
case "$*" in
*update) touch lists ;;
*) [ -e lists ] && echo '#!/bin/sh' > bin/cc ;;
esac
END
printf '#!/bin/sh\n[ "$1" != -n ] || shift\nexec "$@"\n' > bin/sudo
chmod +x bin/apt-get bin/sudo
run 0 env PATH="$PWD/bin" CC=cc "$deps" build
stdout_is "installing with apt-get, which may take minutes: $all
  installed"
[ "$(grep -c ' install ' apt.log)" -eq 2 ] && [ "$(grep -c ' update$' apt.log)" -eq 1 ] ||
    fail "apt-get was called otherwise: $(cat apt.log)"
run_says '' env PATH="$PWD/bin" CC=cc "$deps" build

# An apt-get that always fails.
printf '#!/bin/sh\ngrep -q no-such-header\n' > bin/cc
printf '#!/bin/sh\necho "E: no network" >&2\nexit 100\n' > bin/apt-get
run 1 env PATH="$PWD/bin" CC=cc "$deps" build
stderr_is "E: no network
E: no network
apt-get could not install: libutf8proc-dev libpcre2-dev liburing-dev libxxhash-dev zlib1g-dev libzstd-dev \
libjansson-dev"

# Nothing is missing, for the tests either.
printf '#!/bin/sh\n' > bin/cc
for tool in c++ valgrind strace zstd pkg-config jq pgrep python3 mpirun mpicc; do
    printf '#!/bin/sh\n' > bin/$tool && chmod +x bin/$tool
done
run_says '' env PATH="$PWD/bin" CC=cc "$deps"

# The packages of single tests, one of which does not exist: the package lists are fetched, and the
# others are installed.
cat > bin/apt-get << 'END'
#!/bin/sh
echo "${*##* -o DPkg::Lock::Timeout=300 }" >> all.log
case "$*" in *cppcheck*) exit 100 ;; esac
END
chmod +x bin/apt-get
for tool in clang clang-tidy clang-format shellcheck chromium zsh fish mpirun mpicc debootstrap qemu-aarch64 \
        proot aarch64-linux-gnu-gcc; do
    printf '#!/bin/sh\n' > bin/$tool && chmod +x bin/$tool
done
run 0 env PATH="$PWD/bin" CC=cc "$deps" all
stdout_is 'installing optional packages with apt-get: cppcheck mandoc lowdown fio
apt-get could not install these optional packages: cppcheck'
[ "$(cat all.log)" = 'update
install cppcheck mandoc lowdown fio
install cppcheck
install mandoc
install lowdown
install fio' ] || fail "apt-get was called otherwise: $(cat all.log)"
