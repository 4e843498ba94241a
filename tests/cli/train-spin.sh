# sgt-train and sgt-bench: OpenMP's threads poll 1000 times before they sleep, unless the user has
# set another number. Child processes get the user's environment unchanged.
. "$ROOT/tests/cli/train.inc"
data d
ldd "$(command -v sgt-train)" | grep -q libgomp || skip 'not libgomp, which alone has such a number'
unset GOMP_SPINCOUNT OMP_WAIT_POLICY
last_spins() { sed -n "s/.*GOMP_SPINCOUNT = '\(.*\)'/\1/p" .stderr | tail -1; }
spins() { # NUMBER [ENVIRONMENT]...
    looks=$1
    shift
    rm -rf r
    run 0 env OMP_DISPLAY_ENV=verbose "$@" sgt-train --quiet $small --steps 1 --run r
    [ "$(last_spins)" = "$looks" ] || fail "looks $(last_spins) times, not $looks"
}
spins 1000
spins 77 GOMP_SPINCOUNT=77
spins 0 OMP_WAIT_POLICY=passive

printf '#!/bin/sh\nenv > "%s/peer"\ncat /proc/$PPID/comm > "%s/parent"\nexit 1\n' "$PWD" "$PWD" > python
chmod +x python
"$BIN/sgt-bench" step --model 1x16x2 --seq-len 16 --batch-size 2 --peer ./python > .said 2>&1
[ -e peer ] || fail "the peer was not started: $(cat .said)"
[ "$(cat parent)" = sgt-bench ] || fail "ps calls it $(cat parent)"
grep GOMP peer && fail 'what sgt-bench starts is told how long to look for work'
exit 0
