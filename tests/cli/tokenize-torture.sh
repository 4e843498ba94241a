# sgt-tokenize is killed (SIGKILL) at TORTURE_KILLS random moments (12; make torture: 500) and
# restarted each time with another number of threads. OUT ends up with the bytes of an undisturbed
# run. Complete shards are never written again, and files with their final names are complete at any
# moment. Several kinds of run take turns; some shuffle and deduplicate, and two use three ranks at
# the same time, which are connected in the last kind. SEED=N repeats the moments as far as the
# machine's timing allows.
# In make check-all only: it kills and resumes over and over.
. "$ROOT/tests/cli/ranks.inc"
work_in_memory
expected=${TORTURE_KILLS:-12} seed=${SEED:-$$}
echo "SEED=$seed TORTURE_KILLS=$expected"

mkdir text mixed
repeated 4 "$ROOT"/*/*.c "$ROOT"/*/*/*.c |
    awk '{ print (NR % 151 ? "" : "<|endoftext|>") $0 }' > text/large.txt
here=$PWD
(cd "$ROOT" && cp -r --parents tokenize/*/*.[ch] loader/base tokenize/vocab/gpt2.bpe tests/data/vocab/text.txt "$here/text")
printf 'not UTF-8: \377\376' > text/zzz
lines() { # print lines of JSONL, some of them bad
    tr -d '\\"\000-\011\013-\037\200-\377' |
        awk '{ if (NR % 211 == 5) print "{\"no\": 1}"; printf "{\"page\": {\"text\": \"%s \\ud800\\n\"}}\n", $0 }'
}
lines < text/large.txt > lines.jsonl
head -n 20000 lines.jsonl | gzip > mixed/a.jsonl.gz
cp text/large.txt text/zzz mixed
! command -v zstd > /dev/null || zstd -q text/large.txt -o mixed/b.zst
head -n 9000 lines.jsonl > mixed/c.jsonl

kinds=6
inputs1="--shard-tokens 20k --split 20% text"
inputs2="--shard-tokens 30k --split 20% --special eot --invalid-utf8 replace --field page.text --skip-bad mixed text/large.txt"
inputs3="--shard-tokens 70k --field page.text --skip-bad --vocab $ROOT/tests/data/vocab/trained lines.jsonl"
inputs4="$inputs1 --special eot --shuffle 3 --dedup"
inputs5=$inputs4 # made by three ranks
inputs6=$inputs4 # made by three connected ranks
for kind in $(seq $kinds); do
    eval "inputs=\$inputs$kind"
    began=$(date +%s%N)
    run 0 sgt-tokenize --quiet --threads 1 $inputs whole$kind
    eval "longest$kind=$((($(date +%s%N) - began) / 1000000 + 5))"
    n=$(ls whole$kind/*.bin | wc -l)
    [ "$n" -gt 20 ] || fail "kind $kind: only $n shards to be killed between"
done

# Print lines of three numbers below 1, which choose how long a run lives, its number of threads,
# and which ranks are killed.
numbers() { awk -v seed="$seed" 'BEGIN { srand(seed); while (1) print rand(), rand(), rand() }'; }
below() { awk -v x="$1" -v n="$2" 'BEGIN { print int(x * n) }'; }

has_ranks() { [ "$1" -ge 5 ]; }
connected() { [ "$1" -eq 6 ]; }
begin() { # KIND THREADS [SECONDS BITS]: start a run; set $pids; kill the processes whose bits are set after SECONDS
    eval "inputs=\$inputs$1"
    pids= ranks=0
    ! has_ranks "$1" || ranks='0 1 2'
    ! connected "$1" || next_port
    rm -f .stderr?
    for rank in $ranks; do
        as=
        ! has_ranks "$1" || as="--rank $rank --ranks 3"
        ! connected "$1" || as=
        dies=
        [ $((${4:-0} >> rank & 1)) -eq 0 ] || dies="timeout --foreground --preserve-status -s KILL $3"
        link=
        ! connected "$1" || link="RANK=$rank WORLD_SIZE=3 LOCAL_RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port"
        env $link $dies sgt-tokenize --quiet --threads "$2" $as $inputs cut$1 > .stdout$rank 2> .stderr$rank &
        pids="$pids $!"
    done
}
shards_of() { inodes "$1" | grep 'bin$' | sort; }
check_names() { # KIND: every file with its final name must be complete
    for name in cut$1/*; do
        [ ! -e "$name" ] || same "$name" "whole$1/${name#cut$1/}"
    done
}
finish() { # KIND: complete the run undisturbed, and compare it
    begin "$1" 1
    for pid in $pids; do ended 0 $pid; done
    same_folders cut$1 whole$1
}

kills=0 further=0 runs=0 kind=0
numbers | while read -r length threads which; do
    kind=$((kind % kinds + 1))
    eval "longest=\$longest$kind"
    shards_of cut$kind > had
    doomed=1 # BITS: a single process is always killed; of several ranks, only some are
    ! has_ranks $kind || doomed=$(($(below "$which" 7) + 1))
    begin $kind "$(($(below "$threads" 3) + 1))" \
        "$(awk -v x="$length" -v ms="$longest" 'BEGIN { printf "%.4f", x * ms / 1000 + .0001 }')" $doomed
    died=0 gave_up=0
    for pid in $pids; do
        code=0
        wait $pid 2> /dev/null || code=$?
        case $code:$kind in
        0:*) ;;
        1:6) gave_up=1 ;; # because another rank was killed
        137:*) died=$((died + 1)) ;;
        *) fail "kind $kind: exit $code: $(cat .stderr?)" ;;
        esac
    done
    [ $died -ge $gave_up ] || fail "kind $kind: a rank failed: $(cat .stderr?)"
    # A connected rank may itself be killed after it has reported that another rank died.
    [ -z "$(cat .stderr?)" ] || [ $gave_up -eq 1 ] || { connected $kind && [ $died -gt 1 ]; } ||
        fail "kind $kind said something: $(cat .stderr?)"
    kills=$((kills + died))
    # The machine's load varies, and less of a run remains each time. The aim is to kill two of
    # three runs.
    if [ $died -gt 0 ]; then longest=$((longest * 17 / 16 + 1)); else longest=$((longest * 7 / 8 + 2)); fi
    eval "longest$kind=$longest"
    shards_of cut$kind > has
    [ -z "$(comm -23 had has)" ] || fail "kind $kind: whole shards were made again"
    [ ! -s had ] || [ $died -eq 0 ] || [ "$(wc -l < has)" -eq "$(wc -l < had)" ] || further=$((further + 1))
    check_names $kind
    if [ -e cut$kind/manifest.json ]; then
        [ $died -gt 0 ] || same_folders cut$kind whole$kind
        [ $died -eq 0 ] || finish $kind # a process was killed after the last rename
        rm -rf cut$kind
        runs=$((runs + 1))
    fi
    [ "$kills" -ge "$expected" ] || continue
    for kind in $(seq $kinds); do finish $kind; done
    echo "$kills kills, $further in the middle of a run that went on with an earlier one; $((runs + kinds)) runs, all" \
        "as undisturbed ones"
    [ $further -ge $((expected / 20)) ] || fail 'resumed runs were hardly disturbed'
    break
done
