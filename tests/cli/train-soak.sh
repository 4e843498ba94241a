# sgt-train runs for SOAK_SECONDS (20; make torture: 3600). It saves every 10 s (every second in a
# run of 20 s), is killed (SIGKILL) at random moments, and is resumed. After two checkpoints, memory
# grows by at most 1 % within a life (from start to kill), and over all lives. The smallest number
# of open descriptors is constant. The log has every step once. SEED=N repeats the lives.
# In make check-all only: it trains for a while, with a kill now and then.
. "$ROOT/tests/cli/train.inc"
is_sanitized && skip 'a sanitizer keeps for a while what is freed'
work_in_memory
data d
validation d
seconds=${SOAK_SECONDS:-20} seed=${SEED:-$$}
echo "SEED=$seed SOAK_SECONDS=$seconds"
gap=$((seconds / 60)) # seconds between checkpoints
[ $gap -ge 1 ] || gap=1
[ $gap -le 10 ] || gap=10
options="--data d --model 2x256x4 --seq-len 32 --batch-size 4 --lr 1e-3 --device cpu --threads 1 --keep 2
    --eval-every 100"

run 0 sgt-train --quiet $options --run warm --steps 30 --save-every 0
every=$(sed 's/.*"ms_per_step":\([0-9.]*\).*/\1/' warm/log.jsonl | sort -n |
    awk -v gap=$gap '{ ms[NR] = $1 } END { n = gap * 1000 / ms[int(NR / 2)]; print n < 10 ? 10 : int(n) }')

# look PID: print what the process uses now, as KiB DESCRIPTORS CHECKPOINT
look() { # PID
    kib=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status" 2> /dev/null)
    fds=$(ls "/proc/$1/fd" 2> /dev/null | wc -l)
    [ -z "$kib" ] || echo "$kib $fds $(cat soak/latest 2> /dev/null | sed 's/step-0*//')"
}
begun=$(date +%s) lives=0
awk -v seed="$seed" 'BEGIN { srand(seed); while (1) print rand() }' | while read -r length; do
    left=$((begun + seconds - $(date +%s)))
    [ $left -gt 0 ] || break
    life=$(awk -v x="$length" -v gap=$gap 'BEGIN { print int(gap * (4 + 8 * x)) + 1 }')
    [ "$life" -le $left ] || life=$((left + 1))
    lives=$((lives + 1))
    sgt-train --quiet $options --run soak --resume-or-start --steps 50000000 --save-every "$every" > .stdout 2> .stderr &
    pid=$!
    dies=$(($(date +%s) + life))
    : > looks
    while [ "$(date +%s)" -lt $dies ] && kill -0 $pid 2> /dev/null; do
        look $pid >> looks
        sleep 0.5
    done
    kill -KILL $pid 2> /dev/null
    code=0
    wait $pid 2> /dev/null || code=$?
    [ $code -eq 137 ] || fail "life $lives: exit $code: $(cat .stderr)"
    [ ! -s .stderr ] || fail "life $lives said something: $(cat .stderr)"
    # After two checkpoints of this life, compare the smallest memory use in the first half of the
    # remaining time with that in the second half. The smallest, because a save needs more memory
    # for a moment.
    awk -v life=$lives '
        NR == 1 { named = $3 }
        $3 != named { named = $3; saved++ }
        saved >= 2 { n++; kib[n] = $1; fds[n] = $2 }
        END {
            half = int(n / 2)
            if (half < 2) exit
            for (i = 1; i <= half; i++) { if (!a || kib[i] < a) a = kib[i]; if (!f || fds[i] < f) f = fds[i] }
            for (i = half + 1; i <= n; i++) { if (!b || kib[i] < b) b = kib[i]; if (!g || fds[i] < g) g = fds[i] }
            print life, a, b, f, g
        }' looks >> halves
    echo $lives > lives
done
# Lives differ slightly in their huge pages, so compare the second half of all lives with the first
# half.
awk '
    $3 > 1.01 * $2 { printf "life %d: from %d to %d KiB\n", $1, $2, $3; bad = 1 }
    $5 > $4 { printf "life %d: from %d to %d descriptors\n", $1, $4, $5; bad = 1 }
    { kib[NR] = $3; fds[NR] = $4; grew = $3 / $2 > grew ? $3 / $2 : grew }
    END {
        if (!NR) { print "no life was long enough to be looked at"; exit 1 }
        half = int(NR / 2)
        for (i = 1; i <= half; i++) { a += kib[i] / half; b += kib[NR + 1 - i] / half }
        if (NR >= 6 && b > 1.01 * a) bad = 1
        for (i = 2; i <= NR; i++) if (fds[i] > fds[1]) bad = 1
        printf "%d lives measured: at most %+.2f %% within one", NR, 100 * (grew - 1)
        if (half) printf ", %+.2f %% from the first half of them to the second (%.1f MiB)", 100 * (b / a - 1), b / 1024
        printf "; %d descriptors, %d at the end\n", fds[1], fds[NR]
        exit bad
    }' halves || fail 'memory or descriptors are not flat'

run 0 sgt-train --quiet $options --run soak --resume --save-every "$every" \
    --steps "$(($(sed 's/step-0*//' soak/latest) + 10))"
stderr_is ''
sed 's/^{"step":\([0-9]*\).*/\1/' soak/log.jsonl | awk '$1 != NR - 1 { print "line " NR " is of step " $1; exit 1 }' ||
    fail 'the log does not have every step once'
[ "$(ls -A soak | grep -c step)" -eq 2 ] || fail "the run holds $(ls -A soak | xargs)"
echo "$(cat lives) lives, $(wc -l < soak/log.jsonl) steps, a checkpoint each $every"
