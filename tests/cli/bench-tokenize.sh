# sgt-bench tokenize: counts what it encodes, and refuses what it cannot read.
. "$ROOT/tests/cli/lib.sh"

mkdir in
printf 'Hello world!\n' > in/a.txt
printf 'Hello' > in/b.txt
: > in/empty.txt
run 0 sgt-bench tokenize in --json
stderr_is ''
stdout_has '"tokens": 5'
stdout_has '"bytes": 18'
stdout_has '"files": 3'
stdout_matches '"mb_per_s": [0-9.]*[1-9]'
stdout_matches '"seconds": [0-9.e-]*[1-9]'
run 0 sgt-bench tokenize --threads 3 --json in in/a.txt
stdout_has '"threads": 3'
stdout_has '"tokens": 9'
run 0 sgt-bench tokenize in
stdout_has '18 B in 3 files, in memory'
stdout_has 'MB/s'
check '100 columns' test "$(awk 'length > 100' .stdout | wc -l)" -eq 0
run 0 sgt-bench tokenize in --quiet
stdout_is ''
stderr_is ''
printf 'Hello world!\n' > text
run 0 sgt-bench tokenize - --json < text
stdout_has '"tokens": 4'

# the tokens of a long text do not depend on how it is cut for the threads: those that sgt-tokenize writes, and one a
# document
i=0
while [ $i -lt 200 ]; do cat "$ROOT/README.md" && i=$((i + 1)); done > long.txt
run 0 sgt-tokenize --quiet --json long.txt out
whole=$(field tokens .stdout)
for threads in 1 2 3; do
    run 0 sgt-bench tokenize --threads $threads --json long.txt
    check 'as many tokens' test "$(field tokens .stdout)" -eq $((whole - 1))
done

run 1 sgt-bench tokenize nowhere
stdout_is ''
stderr_is 'sgt-bench tokenize: nowhere: No such file or directory'
run 1 sgt-bench tokenize in/empty.txt
stderr_is 'sgt-bench tokenize: in/empty.txt: no text in it: nothing to measure'
mkdir none
run 1 sgt-bench tokenize none
stderr_is 'sgt-bench tokenize: none: no file in this folder'
run 2 sgt-bench tokenize
stderr_is "sgt-bench tokenize: which text is to be encoded?
try 'sgt-bench tokenize --help'"
run 2 sgt-bench tokenize in --peer
stderr_is "sgt-bench tokenize: --peer: no such option
try 'sgt-bench tokenize --help'"
run 2 sgt-bench tokenize - -
stderr_is "sgt-bench tokenize: standard input (-) can be read only once
try 'sgt-bench tokenize --help'"
run 0 sgt-bench tokenize --help
stdout_has 'usage: sgt-bench tokenize [OPTION]... INPUT...'
