#!/bin/bash
# bare.sh ROOT: run README's two commands on a system where nothing is installed. ROOT becomes a
# minimal Debian with git, make, sudo and certificates. An ordinary user clones HEAD there and calls
# bare.sh --inside, which runs make demo (a build without any optional package), make check, and
# make with one optional package missing. ROOT.passed gets the names of what passed (tests/run.sh).
# ROOT is removed in any case. Only root can run this. /proc, /sys and /dev of the machine are
# mounted in ROOT in a private mount namespace.
set -eu
cd "$(dirname "$0")/.."

if [ "$1" = --inside ]; then
    step() { echo && echo "== $1 ($SECONDS s)"; }
    step 'make demo'
    make demo
    [ -s build/demo/report.html ]
    step 'make check'
    make check
    for codec in snappy lz4; do
        step "make without $codec"
        ldd build/bin/sgt-tokenize | grep "lib$codec"
        sudo dpkg --force-depends --remove "lib$codec-dev"
        make | grep 'Parquet without'
        ! ldd build/bin/sgt-tokenize | grep "lib$codec" || exit 1
    done
    step 'make without MPI'
    sudo dpkg --force-depends --remove libopenmpi-dev
    make | grep 'built without MPI'
    step end
    exit
fi

root=$1
failed() { echo "make check-bare: $1" >&2 && exit 1; }
[ "$(id -u)" -eq 0 ] || failed 'only root can make a root of Debian'
command -v debootstrap > /dev/null || failed 'there is no debootstrap (tools/deps.sh all)'
trap 'rm -rf --one-file-system "$root" "$root.log"' EXIT
trap 'exit 130' INT TERM
rm -rf --one-file-system "$root"
mkdir -p "$root"

# The machine's first Debian mirror, its certificates, host names and proxy settings.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 'Origin: Debian' | head -1)
read -r address suite <<< "$mirror"
# If apt has no package lists, debootstrap chooses the mirror.
[ -n "$suite" ] || suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
echo "== a minimal root: $suite"
debootstrap --variant=minbase --include=git,make,ca-certificates,sudo "$suite" "$root" ${address:+"$address"} \
    > "$root.log" 2>&1 ||
    failed "debootstrap cannot make a root of $suite: $(tail -1 "$root.log")"
certificates=/etc/ssl/certs/ca-certificates.crt
for file in /etc/resolv.conf /etc/hosts $certificates; do
    [ ! -e "$file" ] || cp -L "$file" "$root$file"
done
set -- SSL_CERT_FILE=$certificates PIP_CERT=$certificates
for name in http_proxy https_proxy no_proxy; do
    [ -z "${!name:-}" ] || set -- "$@" "$name=${!name}"
done

chroot "$root" useradd --create-home --shell /bin/bash newcomer
printf '%s\n' 'newcomer ALL=(ALL) NOPASSWD: ALL' 'Defaults env_keep += "http_proxy https_proxy no_proxy"' \
    > "$root/etc/sudoers.d/newcomer"
git() { command git -c safe.directory='*' "$@"; }
cp -R "$(git rev-parse --git-common-dir)" "$root/home/newcomer/sgt.git"
chroot "$root" chown -R newcomer: /home/newcomer
set -- env -i HOME=/home/newcomer USER=newcomer LANG=C.UTF-8 PATH="/usr/local/bin:/usr/bin:/bin:/usr/sbin" "$@" bash -c "
    cd && git clone --quiet sgt.git sgt && cd sgt && git checkout --quiet $(git rev-parse HEAD) &&
    exec tests/bare.sh --inside"
unshare --mount --propagation private bash -c '
    for each in proc sys dev; do mount --rbind /$each "$0/$each" || exit; done
    exec chroot --userspec newcomer: "$0" "$@"' "$root" "$@" < /dev/null ||
    failed 'the lines above say what failed in the root'
cp "$root/home/newcomer/sgt/build/passed" "$root.passed"
