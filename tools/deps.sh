#!/bin/sh
# deps.sh: lists and installs the packages that sgt needs and this system lacks.
#   deps.sh                    installs the missing packages with apt-get (with sudo, unless root)
#   deps.sh build              the same, without packages that only the tests need
#   deps.sh docs               the same as build, with packages for make docs
#   deps.sh all                also packages that only some tests use: other compilers, checkers, a browser
#   deps.sh [build] --missing  prints the missing packages in one line; exits with code 1 if there are any
# CUDA, cuDNN and NCCL are never installed; they are used if they are found.
set -u

for_tests=1 for_docs=0 for_all=0
case ${1:-} in
build) for_tests=0 && shift ;;
docs) for_tests=0 for_docs=1 && shift ;;
all) for_all=1 && shift ;;
esac

# Return whether the compiler finds the header: have_header HEADER [COMPILER]
have_header() { echo "#include <$1>" | ${2:-${CC:-cc}} -DPCRE2_CODE_UNIT_WIDTH=8 -E -x c - > /dev/null 2>&1; }

# Print the missing packages: each line checks for something, and prints the name of its package.
missing() {
    have cc || have gcc || have clang || echo build-essential
    need_headers utf8proc.h:libutf8proc-dev pcre2.h:libpcre2-dev liburing.h:liburing-dev xxhash.h:libxxhash-dev \
        zlib.h:zlib1g-dev zstd.h:libzstd-dev jansson.h:libjansson-dev
    [ $for_docs -eq 0 ] || need mandoc lowdown
    [ $for_tests -eq 1 ] || return
    need_headers snappy-c.h:libsnappy-dev lz4.h:liblz4-dev
    have c++ || have g++ || have clang++ || echo g++
    have_header criterion/criterion.h || echo libcriterion-dev
    have_numpy || echo python3-numpy
    need valgrind strace zstd pkg-config jq pgrep:procps
    have_venv || echo python3-venv
    have mpirun || echo openmpi-bin
    have_header mpi.h mpicc || echo libopenmpi-dev # openmpi-bin has mpicc without it
}
# Print the missing packages that only some tests need; without them, these tests report SKIP.
heavy() {
    need clang
    links clang -fsanitize=address || echo libclang-rt-dev
    links clang -fopenmp || echo libomp-dev
    need clang-tidy clang-format cppcheck shellcheck chromium mandoc lowdown zsh fish fio debootstrap \
        qemu-aarch64:qemu-user proot aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu
    links aarch64-linux-gnu-gcc || echo libc6-dev-arm64-cross
}
links() { have "$1" && echo 'int main(void) { return 0; }' | "$@" -x c -o /dev/null - > /dev/null 2>&1; }
have() { command -v "$1" > /dev/null 2>&1; }
# Print the packages of those programs or headers that are missing. A package without a name here has the program's.
need() { for each; do have "${each%:*}" || echo "${each#*:}"; done; } # PROGRAM[:PACKAGE]...
need_headers() { for each; do have_header "${each%:*}" || echo "${each#*:}"; done; } # HEADER:PACKAGE...
# README's Python example is tested with any Python that has numpy. The first python3 on PATH may not be Debian's.
have_numpy() { python3 -c 'import numpy' 2> /dev/null || /usr/bin/python3 -c 'import numpy' 2> /dev/null; }
have_venv() { python3 -c 'import ensurepip, venv' 2> /dev/null || /usr/bin/python3 -c 'import ensurepip, venv' 2> /dev/null; }

packages=$(missing | tr '\n' ' ' | sed 's/ $//')
if [ "${1:-}" = --missing ]; then
    [ -z "$packages" ] && exit 0
    echo "$packages"
    exit 1
fi
expected=
[ $for_all -eq 0 ] || expected=$(heavy | tr '\n' ' ' | sed 's/ $//')
[ -z "$packages$expected" ] && exit 0

if ! have apt-get; then
    [ -n "$packages" ] || exit 0
    echo "sgt needs these packages (Debian's names), but apt-get was not found to install them: $packages" >&2
    exit 1
fi
sudo=
if [ "$(id -u)" -ne 0 ]; then
    have sudo || [ -z "$packages" ] || {
        echo "sgt needs more packages (run as root: apt-get install $packages)" >&2
        exit 1
    }
    sudo=sudo
fi
log=$(mktemp "${TMPDIR:-/tmp}/sgt-deps.XXXXXX")
trap 'rm -f "$log"' EXIT
# Run apt-get, with its output in the log.
apt() {
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 \
        -o DPkg::Lock::Timeout=300 "$@" >> "$log" 2>&1
}

needed() {
    [ -n "$packages" ] || return 0
    echo "installing with apt-get, which may take minutes: $packages"
    # If the installation fails, update the package lists and try again: a fresh system has none, and outdated lists
    # name files that no longer exist.
    # shellcheck disable=SC2086
    if apt install $packages || { apt update && apt install $packages; }; then
        left=$(missing | tr '\n' ' ')
        [ -z "$left" ] && echo '  installed' && return 0
        echo "apt-get succeeded, but what these packages provide is still not found: $left" >&2
        exit 1
    fi
    tail -5 "$log" >&2
    echo "apt-get could not install: $packages" >&2
    exit 1
}

# Install optional packages, without asking for a password: if they are missing, make and the tests print what they
# leave out. Only `deps.sh all` gets here.
extra() {
    [ -n "$expected" ] || return 0
    [ -z "$sudo" ] || { have sudo && sudo='sudo -n'; } || return 0
    echo "installing optional packages with apt-get: $expected"
    apt update
    # shellcheck disable=SC2086
    apt install $expected && echo '  installed' && return
    left_out=
    for package in $expected; do
        apt install "$package" || left_out="$left_out $package"
    done
    echo "apt-get could not install these optional packages:$left_out"
}

needed
extra
