# tokenize-together.sh: connected ranks divide the second pass of --dedup and --shuffle. OUT has the
# same bytes as from one process, for 1 to 4 ranks, and each rank writes shards. Ranks are killed,
# or their calls fail, and they start again.
# In make check-all only: dozens of runs, with up to four ranks, which are killed and start again.
. "$ROOT/tests/cli/corpus.inc"
. "$ROOT/tests/cli/ranks.inc"
. "$ROOT/tests/cli/faults.inc"

work_in_memory
some_corpus corpus
some_corpus corpus/zz # the same files again, under other names
echo 'document that differs' > corpus/zz/m
head -c 3000 corpus/m > corpus/zz/part
touch -d @1700000000 corpus/* corpus/zz/*
options='--quiet --threads 1 --shard-tokens 1k --split 30%'

begin_all() { # COMMAND...: start it on $world ranks; set $pids
    echo "$world ranks: $*" > .ran
    next_port
    rm -f .stdout[0-9] .stderr[0-9]
    pids=
    r=0
    while [ $r -lt $world ]; do
        start $r "$@"
        pids="$pids $pid"
        r=$((r + 1))
    done
}
end_all() { # wait for all ranks; set $codes
    codes=
    for pid in $pids; do
        code=0
        wait $pid 2> /dev/null || code=$?
        codes="$codes $code"
    done
    cat .stdout[0-9] > .stdout
    cat .stderr[0-9] > .stderr
}
together() { # COMMAND...: run it on $world ranks; all must exit with 0
    begin_all "$@"
    end_all
    [ -z "$(echo "$codes" | tr -d ' 0')" ] || fail "exit codes$codes"
}

# ---- the same bytes ----
# The mode `copied` has so many shards that ranks on one machine copy documents, as ranks on several
# machines do.
modes='dedup shuffle both copied'
also_dedup='--dedup' also_shuffle='--shuffle 7' also_both='--dedup --shuffle 7'
also_copied='--shuffle 7 --shard-tokens 100'
for mode in $modes; do
    eval "also=\$also_$mode"
    run 0 sgt-tokenize $options $also corpus one-$mode
    [ "$(ls one-$mode/*.bin | wc -l)" -gt 20 ] || fail 'too few shards'
    for world in 1 2 3 4; do
        rm -rf out
        together sgt-tokenize $options $also corpus out
        same_folders out one-$mode
    done
done

# ---- each rank writes shards ----
need_strace
world=2
rm -rf out
together sh -c 'exec strace -f -o trace$RANK -e trace=rename "$@"' sh sgt-tokenize $options --shuffle 7 corpus out
for r in 0 1; do
    [ "$(grep -c '"out/train_[0-9]*.bin") = 0' trace$r)" -gt 4 ] || fail "rank $r has made no shards"
done

# ---- ranks are killed, and calls fail, in the second pass ----
# disturbed MODE RANK CALLS:WHAT:N: run on $world ranks, and disturb call number N of rank RANK
disturbed() {
    eval "also=\$also_$1"
    begin_all sh -c '[ $RANK = '"$2"' ] || exec "$@"; exec '"'$faults' -o seen '$3'"' "$@"' sh \
        sgt-tokenize $options $also corpus out
    end_all
}
# .work may be left if the file system refused to remove it.
whole() { same_folders -x .work out one-$mode; }
need_faults
tries=0 ended=0
places_of_each=${TOGETHER_PLACES:-2} worlds=2 # tokenize-together-faults disturbs more
[ "$places_of_each" -lt 3 ] || worlds='2 4'
for mode in $modes; do
    for world in $worlds; do
        for victim in 0 $((world - 1)); do
            rm -rf out
            disturbed $mode $victim $changes:count
            read -r places _ < seen
            same_folders out one-$mode
            n=$((places / 3 + victim + 1)) # earlier calls belong to the rank's own part
            while [ $n -le "$places" ]; do
                rm -rf out
                for what in kill EIO; do # EIO disturbs the run that continues after the kill
                    disturbed $mode $victim $changes:$what:$n
                    tries=$((tries + 1))
                    case $codes in *[!\ 0]*) ended=$((ended + 1)) ;; *) whole ;; esac
                done
                together sgt-tokenize $options $also corpus out
                same_folders out one-$mode
                n=$((n + places / places_of_each))
            done
        done
    done
done
echo "$tries runs were disturbed, $ended of them ended; the same command then made the same"
[ $((2 * ended)) -ge $tries ] || fail 'too few runs ended'
