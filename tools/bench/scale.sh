#!/bin/sh
# scale.sh BIN ONE TWO [ROUNDS [MODE...]]: weak scaling of tokenizing ranks, one thread and one core each. BIN: the
# folder of the programs; ONE: text for one rank; TWO: twice as much, for two; MODE: options, such as "--dedup", or
# plain. All are run in turns, ROUNDS times (5). Print a line for each: the medians of its seconds and of the CPU
# seconds of its busiest rank, and both divided by those of plain tokenizing, with as many ranks and with one.
# CPU seconds also mean something while other programs use the cores: a rank that waits for another sleeps.
set -eu
bin=$1 one=$2 two=$3 rounds=${4:-5}
[ $# -lt 4 ] || shift
shift 3
[ $# -gt 0 ] || set -- plain --dedup '--shuffle 1' '--dedup --shuffle 1'
work=$(mktemp -d "${TMPDIR:-/dev/shm}/sgt-scale.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
port=$((20000 + $$ % 10000))

seconds() { awk '{ print $1 + $2, $3 }' "$1"; }
measure() { # MODE RANKS TEXT: append "MODE|RANKS SECONDS CPU" to the results
    options=$1
    [ "$1" != plain ] || options=
    rm -rf "$work/out"
    port=$((port + 1))
    rank=0 pids=
    while [ $rank -lt "$2" ]; do
        link=
        [ "$2" -eq 1 ] || link="RANK=$rank WORLD_SIZE=$2 LOCAL_RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port"
        env $link taskset -c $rank /usr/bin/time -o "$work/time$rank" -f '%U %S %e' \
            "$bin/sgt-tokenize" --quiet --threads 1 $options "$3" "$work/out" &
        pids="$pids $!"
        rank=$((rank + 1))
    done
    for pid in $pids; do wait "$pid"; done
    while [ $rank -gt 0 ]; do
        rank=$((rank - 1))
        seconds "$work/time$rank"
    done | awk -v what="$1|$2" '{ if ($1 > cpu) cpu = $1; if ($2 > all) all = $2 } END { print what "|" all "|" cpu }' \
        >> "$work/results"
}
round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    for mode; do
        measure "$mode" 1 "$one"
        measure "$mode" 2 "$two"
    done
done

median() { # FIELD MODE RANKS
    awk -F '|' -v f="$1" -v m="$2" -v n="$3" '$1 == m && $2 == n { print $f }' "$work/results" | sort -n |
        awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int((NR + 2) / 2)]) / 2 }'
}
echo 'options | ranks | seconds | to plain | to plain, 1 rank | CPU seconds | to plain | to plain, 1 rank'
for mode; do
    for n in 1 2; do
        echo "$mode|$n|$(median 3 "$mode" $n)|$(median 3 plain $n)|$(median 3 plain 1)|$(median 4 "$mode" $n)|$(
            median 4 plain $n)|$(median 4 plain 1)"
    done
done | awk -F '|' '{ printf "%s | %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f\n",
    $1, $2, $3, $3 / $4, $3 / $5, $6, $6 / $7, $6 / $8 }'
