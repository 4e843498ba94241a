# Every code block of README.md, as written: sh blocks run in a folder that has corpus/, the C block
# is compiled, and make's blocks are planned with make -n, because running them would run this test.
# READMEs of folders have no such blocks, except tools/python's, a page for users that tests/python
# runs. tokenize-walk.sh runs the blocks of the walk-through.

# block LANGUAGE N: print the N-th code block of that language
block() {
    awk -v lang="$1" -v want="$2" '
        $0 == "```" lang { n++; on = 1; next }
        $0 == "```" { on = 0 }
        on && n == want' "$ROOT/README.md"
}

mkdir corpus
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    cat "$ROOT/README.md" > "corpus/$i.txt"
done

[ "$(grep -cE '^```(sh|c|python)$' "$ROOT/README.md")" -eq 6 ] ||
    fail "README has another number of code blocks than this test runs"
[ "$(wc -c < "$ROOT/README.md")" -le 9216 ] || fail "README is longer than 9 KiB"
! LC_ALL=C.UTF-8 grep -nE '^.{101}' "$ROOT/README.md" || fail "README has lines of more than 100 columns"
for folder in tokenize loader train kernels tools tests tools/bench; do
    ! grep -E '^```(sh|c|python)$' "$ROOT/$folder/README.md" || fail "$folder/README.md has code that no test runs"
done
for folder in tokenize loader train kernels tools tests tests/gpu-results tests/peers; do
    [ "$(wc -l < "$ROOT/$folder/README.md")" -le 80 ] || fail "$folder/README.md is longer than 80 lines"
done
# Names in backquotes that look like paths are files in the README's own folder or in the project's
# root.
for folder in . tokenize loader train kernels tools tests tools/bench tools/python tests/peers; do
    grep -oE '`[a-z_/-]+(/|\.(c|h|cu|cuh|sh|txt|py|inc|mk))`' "$ROOT/$folder/README.md" | tr -d '`' | sort -u |
        grep -vE 'relu2|pread' | while read -r name; do # example names of kernels and calls to add
        [ -e "$ROOT/$name" ] || find "$ROOT/$folder" -path "*/${name%/}" | grep -q . ||
            echo "$folder/README.md names $name, which is not there"
    done
done > missing
[ ! -s missing ] || fail "$(cat missing)"

block sh 1 > make.sh
for target in $(sed -n 's/^make //p' make.sh); do
    run 0 make -n -C "$ROOT" "$target"
done
[ "$(cat make.sh)" = 'sudo apt-get install git make
make demo
make check' ] || fail "README's first block is: $(cat make.sh)"

# Run the block as written, plus a limit of steps, because GPT-2 124M is slow on a CPU. The limit
# must be the only addition.
block sh 3 > main.sh
grep -qx 'sgt-tokenize corpus/ out/' main.sh || fail "README's main command has changed"
run 0 sgt-tokenize corpus/ out/
exists out/train_000000.bin
sed -n 's/^sgt-train/& --steps 1 --batch-size 1 --seq-len 32 --save-every 0/p' main.sh > limited.sh
run 0 sh -eu limited.sh
exists run/latest

block sh 2 > all.sh
grep -q '^sgt-report ' all.sh || fail "README's small model has no page"
sed 's/--steps 100/--steps 20/' all.sh > small.sh # runs after the block above, as in the README
run_prints 'Once upon a time' sh -eu small.sh
[ "$(wc -l < toy-run/log.jsonl)" -eq 20 ] || fail "20 steps should give 20 lines of log"

# The block for a GPU runs as far as the CUDA backend for the host allows, if that is built (make
# check-all).
block sh 4 > gpu.sh
sed -n 's/^sgt-train/& --estimate-memory/p' gpu.sh > estimate.sh
if [ -e "$BIN/../host/bin/sgt-train" ]; then
    run_prints_like 'activations' env PATH="$BIN/../host/bin:$PATH" sh -eu estimate.sh
fi
[ "$(grep -c '^sgt-train' gpu.sh) $(wc -l < gpu.sh)" = '1 1' ] || fail "README's GPU block is not what this test runs"
if ! [ -e /dev/nvidia0 ]; then
    run 1 sh -eu gpu.sh
    stderr_matches 'no CUDA (driver|device)'
fi

block c 1 > example.c
run 0 sh -c "$(sed 's/-MMD -MP//' "$BIN/../flags") -I$ROOT/loader -o example example.c $BIN/../lib/libsgt-loader.a \
    -lxxhash -luring -ljansson -pthread"
run 0 ./example
stdout_lines 3
stdout_matches '^batch 2 begins [0-9]+ [0-9]+ [0-9]+$'
