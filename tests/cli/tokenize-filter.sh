# tokenize-filter.sh: files that are read through a command, whose standard output is the text.

printed() { # print the bytes of the document that FILTER makes from one file
    rm -rf odd out-odd
    mkdir odd
    : > odd/x.odd
    run 0 sgt-tokenize --quiet --filter "odd=$1" odd out-odd
    sgt-inspect --decode 1:100000 out-odd > was-printed 2> .decoded
}

# The command's output is the document. The file's path replaces {}, or is appended as the last
# argument. Files that match no filter are read as usual.
mkdir in
printf '<p>Hello</p> world' > in/a.html
printf 'Hello world' > in/b.txt
printf 'olleH\n' > in/c.rev
run 0 sgt-tokenize --filter "html=sed -e 's/<[^>]*>//g'" --filter 'rev=rev "{}"' in out
is "$(ids_of out/train_000000.bin)" '50256 15496 995 50256 15496 995 50256 15496 198'
run_prints 'already complete' sgt-tokenize --filter "html=sed -e 's/<[^>]*>//g'" --filter 'rev=rev "{}"' in out
run 1 sgt-tokenize --filter "html=sed -e 's/<[^<>]*>//g'" --filter 'rev=rev "{}"' in out
stderr_has 'sgt-tokenize: out: made with --filter ["html=sed -e '
run_failure_about ', now not given (--force replaces it)' sgt-tokenize in out
long="html=env A=$(printf %0300d 0) cat"
run 0 sgt-tokenize --quiet --filter "$long" in/a.html out-long
run_unforced "out-long: made with --filter [\"$long\"], now [\"html=cat\"]" sgt-tokenize --filter html=cat in/a.html out-long

# The command is split into words, and quotes are removed, as in a shell; no other shell syntax
# applies. {} may be part of a word. Paths may contain any characters.
mkdir -p 'odd names'
printf x > 'odd names/-a b$(c).cmd'
cd 'odd names' || exit 1
run 0 sgt-tokenize --quiet --filter "cmd=printf %s|%s|%s|%s \$HOME 'a \"b' \"c'\\\"d\" \\ {}:" ./-a* ../out-a
run 0 sgt-tokenize --quiet --filter 'cmd=cat' -- '-a b$(c).cmd' ../out-b
cd ..
sgt-inspect --decode 1:1000 out-a > got 2> .decoded
printf '%s' "\$HOME|a \"b|c'\"d| ./-a b\$(c).cmd:" > want
[ "$(cat got)" = "$(cat want)" ] || fail "words: $(cat got)"

# The output is JSONL if the filter begins with jsonl: or if --format is jsonl. It is text if the
# filter begins with text:.
printf '1\n2\n' > in/d.num
run 0 sgt-tokenize --filter 'num=jsonl:sed -e "s/.*/{\"text\":\"n&\"}/"' in/d.num out-j
stdout_has 'out-j: 6 tokens, 2 documents'
printf 'x' > in/e.num
run 1 sgt-tokenize --filter 'num=cat' --format jsonl in/e.num out-k
stderr_is 'sgt-tokenize: in/e.num: line 1: byte 1: expected an object (--skip-bad skips such lines)'
run_prints 'out-k: 2 tokens, 1 document' sgt-tokenize --filter 'num=text:cat' --format jsonl in/e.num out-k

# The command starts with default signal actions, an empty standard input, and no other open file
# descriptor.
(
    trap '' PIPE HUP
    printed 'grep -E ^Sig(Blk|Ign): /proc/self/status' > ran.log
) || { cat ran.log && exit 1; }
# (glibc ignores two signals of its own, 32 and 33, in processes that posix_spawn starts.)
[ "$(grep -cE '	0000000(00|18)0000000$' was-printed)" -eq 2 ] || fail "signals: $(cat was-printed)"
exec 7< /dev/null
printed "sh -c 'ls /proc/\$\$/fd; cat' sh"
exec 7<&-
[ "$(xargs < was-printed)" = '0 1 2' ] || fail "descriptors: $(xargs < was-printed)"

# If the command fails, the message names the file and how the command ended. Its standard error is
# passed on, and no file of OUT is left.
mkdir bad
printf x > bad/a.bad
run 1 sgt-tokenize --filter "bad=sh -c 'echo half; echo oh >&2; exit 3'" bad out-bad
stderr_is 'oh
sgt-tokenize: bad/a.bad: its filter sh failed with exit code 3'
absent out-bad
run 1 sgt-tokenize --filter "bad=sh -c 'kill -9 \$\$'" bad out-bad
stderr_is 'sgt-tokenize: bad/a.bad: its filter sh was killed by signal 9 (Killed)'
run 1 sgt-tokenize --filter bad=no-such-command bad out-bad
stderr_is 'sgt-tokenize: bad/a.bad: cannot start its filter no-such-command: No such file or directory'
absent out-bad
for f in '' bad bad= '=cat' 'bad=  ' 'a/b=cat'; do
    run 2 sgt-tokenize --filter "$f" bad out-bad
    stderr_is "sgt-tokenize: filter: \"$f\": expected EXT=COMMAND, such as 'pdf=pdftotext {} -'"
done
for f in "bad=cat 'x" 'bad=cat "x' 'bad=cat \'; do
    run_misuse "filter: \"$f\": an unfinished quote or backslash" sgt-tokenize --filter "$f" bad out-bad
done

# shellcheck disable=SC2046
run_usage '--filter: given more than 64 times, which is the maximum' sgt-tokenize $(i=0; while [ $i -lt 65 ]; do
    echo "--filter e$i=cat" && i=$((i + 1))
done) bad out-bad
run_usage '--filter: needs a value (EXT=COMMAND)' sgt-tokenize bad out-bad --filter
printf '\377' > bytes
run_misuse 'filter: "bad=cat \xff": is not UTF-8' sgt-tokenize --filter "bad=cat $(cat bytes)" bad out-bad

# Work done before a failure is kept, and the next run continues it.
mkdir later
head -c 20000 "$ROOT/tokenize/vocab/gpt2.bpe" > later/a.txt
printf 'end' > later/b.cat
cat > once << 'END'
#!/bin/sh
[ -e "$0.fixed" ] || exit 4
cat "$1"
END
chmod +x once
run 1 sgt-tokenize --shard-tokens 1k --filter cat=./once later out-later
stderr_is 'sgt-tokenize: later/b.cat: its filter ./once failed with exit code 4'
exists out-later/train_000003.bin
touch once.fixed
run 0 sgt-tokenize --shard-tokens 1k --filter cat=./once later out-later
run 0 sgt-tokenize --shard-tokens 1k --filter cat=./once later whole-later
same_folders out-later whole-later

# A run that resumes in the middle of a filter's output needs the same output again.
mkdir long
cp "$ROOT/tokenize/vocab/gpt2.bpe" long/a.fil
cat > slow << 'END'
#!/bin/sh
cat "$1" "$1"
[ ! -e wait ] || sleep 100
cat "$0.more" "$1"
END
chmod +x slow
: > slow.more
run 0 sgt-tokenize --quiet --shard-tokens 20k --filter fil=./slow long whole-long
interrupt() {
    rm -rf out-long
    touch wait
    run_stopped TERM out-long/train_000015.bin sgt-tokenize --quiet --shard-tokens 20k --filter fil=./slow long out-long
    rm wait
}
interrupt
run 0 sgt-tokenize --quiet --shard-tokens 20k --filter fil=./slow long out-long
same_folders out-long whole-long
interrupt
sed -i 's/^cat "$1" "$1"/rev "$1"; cat "$1"/' slow
run 1 sgt-tokenize --quiet --shard-tokens 20k --filter fil=./slow long out-long
stderr_matches '^sgt-tokenize: long/a.fil: changed since the run was interrupted, within '\
'the first [0-9]+ bytes of its filter.s output \(--force starts over\)$'

# A filter takes the place of the built-in reader.
echo '{"text":"Hello world"}' > rows.parquet
run 0 sgt-tokenize --quiet --filter 'parquet=jsonl:cat' rows.parquet out-parquet
[ "$(ids_of out-parquet/train_000000.bin)" = '50256 15496 995' ] || fail 'the built-in reader was taken'

# Several commands run at once: the second begins before the first ends. An interrupted run leaves
# none of them running.
mkdir many
for i in 1 2 3 4; do printf $i > many/$i.par; done
cat > together << 'END'
echo begin >> log
tries=0
until [ "$(grep -c begin log)" -ge 2 ] || [ $tries -ge 500 ]; do sleep .02 && tries=$((tries + 1)); done
echo end >> log
cat "$1"
END
run 0 sgt-tokenize --quiet --threads 4 --filter 'par=sh ./together {}' many out-many
[ "$(head -2 log | xargs)" = 'begin begin' ] || fail "one after the other: $(xargs < log)"
[ "$(ids_of out-many/train_000000.bin)" = '50256 16 50256 17 50256 18 50256 19' ] || fail 'many: order'
run_stopped TERM pids sgt-tokenize --quiet --filter "par=sh -c 'echo \$\$ >> pids; exec sleep 100' sh" many out-stop
stderr_is 'sgt-tokenize: stopped (run the same command to continue)'
for pid in $(cat pids); do ! kill -0 "$pid" 2> /dev/null || fail "filter $pid is still there"; done
