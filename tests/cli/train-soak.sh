# sgt-train runs for SOAK_SECONDS (20; make torture: 3600) and saves every second (10 s in an hour).
# After two checkpoints, its memory grows by at most 1 %, and the smallest number of open
# descriptors is constant. train-torture.sh tests kills and resumes.
# In make check-all only: it trains for a while.
. "$ROOT/tests/cli/train.inc"
is_sanitized && skip 'a sanitizer keeps for a while what is freed'
work_in_memory
data d
validation d
seconds=${SOAK_SECONDS:-20}
gap=$((seconds < 600 ? 1 : 10)) # seconds between checkpoints
options="--data d --model 2x256x4 --seq-len 32 --batch-size 4 --lr 1e-3 --device cpu --threads 1 --keep 2
    --eval-every 100"

run 0 sgt-train --quiet $options --run warm --steps 30 --save-every 0
every=$(sed 's/.*"ms_per_step":\([0-9.]*\).*/\1/' warm/log.jsonl | sort -n |
    awk -v gap=$gap '{ ms[NR] = $1 } END { n = gap * 1000 / ms[int(NR / 2)]; print n < 10 ? 10 : int(n) }')

sgt-train --quiet $options --run soak --steps 50000000 --save-every "$every" > .stdout 2> .stderr &
pid=$!
ends=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt $ends ] && kill -0 $pid 2> .kill; do
    # what the process uses now, as KiB DESCRIPTORS CHECKPOINT
    echo "$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' /proc/$pid/status) $(ls /proc/$pid/fd | wc -l) $(cat soak/latest)"
    sleep 0.5
done > looks 2> .looks
kill -TERM $pid
ended 130 $pid
stderr_lines 1 # that it was interrupted
# Compare the smallest use in the first half of the time with that in the second half. The smallest,
# because a save needs more memory for a moment.
awk '$3 != named { named = $3; saved++ }
    saved > 2 { n++; kib[n] = $1; fds[n] = $2 }
    END {
        half = int(n / 2)
        if (half < 4) { print "it did not save often enough"; exit 1 }
        a = b = kib[n]; f = g = fds[n]
        for (i = 1; i <= half; i++) { if (kib[i] < a) a = kib[i]; if (fds[i] < f) f = fds[i] }
        for (i = half + 1; i <= n; i++) { if (kib[i] < b) b = kib[i]; if (fds[i] < g) g = fds[i] }
        printf "%d checkpoints; from %d to %d KiB, from %d to %d descriptors\n", saved, a, b, f, g
        exit b > 1.01 * a || g > f
    }' looks || fail 'memory or descriptors are not flat'
[ "$(wc -l < soak/log.jsonl)" -eq "$(sed 's/step-0*//' soak/latest)" ] || fail 'the log does not have every step once'
[ "$(ls -A soak | grep -c step)" -eq 2 ] || fail "the run holds $(ls -A soak | xargs)"
