# tokenize-together.sh: connected ranks divide the second pass of --dedup and --shuffle. OUT has the
# same bytes as from one process, and each rank writes shards. Ranks are killed, or their calls fail,
# and they start again. (tokenize-torture.sh kills three connected ranks.)
# In make check-all only: dozens of runs of two ranks, which are killed and start again.
. "$ROOT/tests/cli/corpus.inc"
. "$ROOT/tests/cli/ranks.inc"
. "$ROOT/tests/cli/faults.inc"

work_in_memory
some_corpus corpus
some_corpus corpus/zz # the same files again, under other names
echo 'document that differs' > corpus/zz/m
head -c 3000 corpus/m > corpus/zz/part
touch -d @1700000000 corpus/* corpus/zz/*

# ---- the same bytes ----
# The mode `copied` has so many shards that ranks on one machine copy documents, as ranks on several
# machines do.
modes='dedup shuffle both copied'
also_dedup='--dedup' also_shuffle='--shuffle 7' also_both='--dedup --shuffle 7'
also_copied='--shuffle 7 --shard-tokens 100'
choose() { # MODE: set $make to the command
    eval "also=\$also_$1"
    make="sgt-tokenize --quiet --threads 1 --shard-tokens 1k --split 30% $also corpus"
}
for mode in $modes; do
    choose $mode
    run 0 $make one-$mode
    [ "$(ls one-$mode/*.bin | wc -l)" -gt 20 ] || fail 'too few shards'
done

# ---- each rank writes shards ----
need_strace
choose shuffle
traced="-e trace=rename $make out"
pair 0 "strace -f -o trace0 $traced" "strace -f -o trace1 $traced"
for r in 0 1; do
    [ "$(grep -c '"out/train_[0-9]*.bin") = 0' trace$r)" -gt 4 ] || fail "rank $r has made no shards"
done

# ---- ranks are killed, and calls fail, in the second pass ----
# disturbed RANK CALLS:WHAT:N: run $make on two ranks, and disturb call number N of rank RANK
disturbed() {
    hurt="$faults -o seen $2 $make out"
    if [ "$1" = 0 ]; then pair any "$hurt" "$make out"; else pair any "$make out" "$hurt"; fi
}
# .work may be left if the file system refused to remove it.
whole() { same_folders -x .work out one-$mode; }
need_faults
tries=0 ended=0
places_of_each=${TOGETHER_PLACES:-2} # tokenize-together-faults disturbs more
for mode in $modes; do
    choose $mode
    for victim in 0 1; do
        rm -rf out
        disturbed $victim $changes:count
        read -r places _ < seen
        same_folders out one-$mode
        n=$((places / 3 + victim + 1)) # earlier calls belong to the rank's own part
        while [ $n -le "$places" ]; do
            rm -rf out
            for what in kill EIO; do # EIO disturbs the run that continues after the kill
                disturbed $victim $changes:$what:$n
                tries=$((tries + 1))
                if [ "$codes" = ' 0 0' ]; then whole; else ended=$((ended + 1)); fi
            done
            two 0 $make out
            same_folders out one-$mode
            n=$((n + places / places_of_each))
        done
    done
done
echo "$tries runs were disturbed, $ended of them ended; the same command then made the same"
[ $((2 * ended)) -ge $tries ] || fail 'too few runs ended'
