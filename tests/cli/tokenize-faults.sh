# tokenize-faults.sh: a file system that fails once, at every call in turn: either the set is whole all the same, or one
# line says what failed, and the same command then makes it whole; shuffled and without duplicates likewise.
# Needs strace, which makes calls fail by the count.
. "$ROOT/tests/cli/lib.sh"

need_strace
work_in_memory

mkdir corpus
for i in 1 2 3; do head -c 600 "$ROOT/tokenize/vocab/gpt2.bpe" | tail -c $((i * 150)) > corpus/$i; done
cp corpus/1 corpus/4
made_whole() { # but for .work, which a file system may refuse to remove
    diff -r -x .work undisturbed out > .diff 2>&1 ||
        { head -5 .diff; fail "$call failed at number $((n - 1)): not the set of an undisturbed run"; }
}
fail_everywhere() { # LEAST: $again meets a failing call at each place in turn, at so many at least
    rm -rf out undisturbed
    run 0 $again
    mv out undisturbed
    cases=0
    for call in rename fsync write ftruncate mkdir openat '?newfstatat,?lstat,?stat,?statx'; do
        n=1
        while :; do
            rm -rf out
            code=0
            strace -f -o trace -e trace="$call" -e inject="$call:error=EIO:when=$n" $again > .stdout 2> .stderr ||
                code=$?
            grep -q INJECTED trace || break # there are fewer than n
            n=$((n + 1))
            [ $code -ne 127 ] || continue # the program could not even be started
            cases=$((cases + 1))
            if [ $code -ne 0 ]; then
                [ $code -eq 1 ] || fail "exit $code, $call failed at number $((n - 1)): $(cat .stderr)"
                stderr_lines 1
                run 0 $again
            fi
            made_whole
        done
    done
    [ $cases -gt "$1" ] || fail "only $cases calls to fail at"
    echo "$cases places: $again"
}
again='sgt-tokenize --quiet --threads 1 --shard-tokens 300 --split 40% corpus out'
fail_everywhere 60
rm corpus/3
again='sgt-tokenize --quiet --threads 1 --shard-tokens 300 --split 40% --shuffle 1 --dedup corpus out'
fail_everywhere 120
