# tokenize-kill-points.sh: killed at every call that makes something durable or visible, in turn: alone, shuffled and
# without duplicates, and as the rank that completes OUT. Needs strace, which kills by the count.
. "$ROOT/tests/cli/lib.sh"

need_strace
work_in_memory

mkdir corpus
for i in 1 3 5 6; do head -c 600 "$ROOT/tokenize/vocab/gpt2.bpe" | tail -c $((i * 90)) > corpus/$i; done
head -c 180 "$ROOT/tokenize/vocab/gpt2.bpe" | gzip > corpus/2.gz
tail -n 60 "$ROOT/tokenize/vocab/gpt2.bpe" | sed 's/["\\]//g; s/.*/{"text":"&"}/' > corpus/4.jsonl
gzip corpus/4.jsonl
# LEAST: $again is killed at each place in turn, at so many at least; `begun` is OUT as it was before
kill_everywhere() {
    run 0 $again
    mv out undisturbed
    cases=0
    for call in rename fsync unlinkat,unlink,rmdir mkdir write,pwrite64 ftruncate openat; do
        n=1
        while :; do
            rm -rf out
            [ ! -e begun ] || cp -rp begun out
            code=0
            strace -f -o trace -e trace="$call" -e inject="$call:signal=KILL:when=$n" $again > .stdout 2> .stderr ||
                code=$?
            [ $code -ne 0 ] || break # there are fewer than n
            [ $code -eq 137 ] || fail "exit $code, killed at $call number $n: $(cat .stderr)"
            run 0 $again
            same_folders out undisturbed
            n=$((n + 1))
            cases=$((cases + 1))
        done
    done
    [ $cases -gt "$1" ] || fail "only $cases places to be killed at"
    echo "$cases places: $again"
    rm -rf out undisturbed
}
again='sgt-tokenize --quiet --threads 1 --shard-tokens 400 --split 40% corpus out'
kill_everywhere 50
cp corpus/1 corpus/7
rm corpus/[3456]*
again='sgt-tokenize --quiet --threads 1 --shard-tokens 400 --split 40% --shuffle 3 --dedup corpus out'
kill_everywhere 100
again='sgt-tokenize --quiet --threads 1 --shard-tokens 400 --split 40% --rank 0 --ranks 2 corpus out'
run 0 sgt-tokenize --quiet --threads 1 --shard-tokens 400 --split 40% --rank 1 --ranks 2 corpus out
mv out begun
cp -rp begun out
kill_everywhere 100
