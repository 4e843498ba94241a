# sgt-inspect --merge killed at every call that makes something durable or visible, in turn, and each of them failing
# once: what has a name in OUT is whole, a set that was there is there until the new one has its names, and the same
# command again ends as an undisturbed one. Needs strace.
. "$ROOT/tests/cli/lib.sh"

need_strace
work_in_memory

mkdir corpus more
for i in 1 2 3 4 5 6; do head -c 600 "$ROOT/tokenize/vocab/gpt2.bpe" | tail -c $((i * 90)) > corpus/$i; done
head -c 900 "$ROOT/tokenize/vocab/gpt2.bpe" > more/text
run 0 sgt-tokenize --quiet --shard-tokens 900 --split 40% corpus a
run 0 sgt-tokenize --quiet --shard-tokens 900 --split 40% more b
run 0 sgt-tokenize --quiet --shard-tokens 500 --split 40% more old
run 0 sgt-inspect --merge --quiet a b undisturbed
run 0 sgt-tokenize --quiet --shard-tokens 900 --split 40% corpus more whole
same_folders undisturbed whole

whole_names() { # no name in out but those of whole files of the new set, or all of the old one
    for file in out/*; do
        [ -e "$file" ] || continue
        cmp -s "$file" "undisturbed/${file#out/}" || cmp -s "$file" "old/${file#out/}" || fail "$file is half done"
    done
}
# disturb OLD|none WHAT CALLS: at the first such call, at the second, ... until there are no more
disturb() {
    again="sgt-inspect --merge --quiet a b out"
    [ "$1" = none ] || again="$again --force"
    n=1
    while :; do
        rm -rf out
        [ "$1" = none ] || cp -r "$1" out
        code=0
        strace -f -o trace -e trace="$3" -e inject="$3:$2:when=$n" $again > .stdout 2> .stderr || code=$?
        grep -q INJECTED trace || grep -q 'killed by SIGKILL' trace || break
        whole_names
        if [ -e out/manifest.json ]; then # a whole set: the old one or the new one
            is=undisturbed
            ! cmp -s out/manifest.json old/manifest.json || is=old
            for file in $is/*; do same "$file" "out/${file#*/}"; done
        elif [ $code -eq 0 ]; then
            fail "$3 $n: done, and no manifest"
        fi
        case $2 in error=*) # a failure takes back what it made
            # one line, unless it was that line that could not be written
            [ $code -le 1 ] && [ "$(wc -l < .stderr)" -le $code ] || fail "$3 $n: exit $code"
            [ $code -eq 0 ] || [ "$1" = old ] || absent out ;;
        esac
        if [ "$1" = old ] || [ ! -e out/manifest.json ]; then
            run 0 $again
            same_folders out undisturbed
        fi
        n=$((n + 1))
        cases=$((cases + 1))
    done
}
cases=0
for call in rename fsync unlinkat,unlink,rmdir mkdir write ftruncate copy_file_range openat; do
    disturb none signal=KILL $call
done
for call in rename unlinkat,unlink,rmdir fsync; do disturb old signal=KILL $call; done
for call in rename fsync mkdir write,copy_file_range; do disturb none error=EIO $call; done
disturb old error=ENOSPC write,copy_file_range,rename
[ $cases -gt 100 ] || fail "only $cases places"
echo "$cases places"
