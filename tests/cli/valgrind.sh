# No program leaks memory or reads uninitialized memory, and neither do the fuzz properties on their
# seeds, at the CPU levels that valgrind supports. The uring reader is left out because valgrind
# does not see what the kernel writes through a ring.
# In make check-all only: valgrind slows every program down.
command -v valgrind > /dev/null || skip "no valgrind"
grep -q fsanitize "$BIN/../flags" && skip "built with sanitizers, which valgrind cannot run"

# valgrind schedules threads fairly here. Otherwise, a thread that busy-waits for another could keep
# it from running.
clean() { # EXIT COMMAND...
    want=$1 && shift
    run "$want" valgrind --quiet --fair-sched=try --leak-check=full --show-leak-kinds=definite,indirect \
        --errors-for-leak-kinds=definite,indirect --error-exitcode=99 "$@"
}
mkdir corpus
printf 'It isn'\''t so, said 12 people: d\303\251j\303\240 vu \377\n\n' > corpus/a.txt
repeated 6 "$ROOT/README.md" > corpus/b.txt
clean 0 sgt-tokenize --quiet --split 50% --shard-tokens 2k --threads 2 corpus out
stderr_is ''
clean 1 sgt-tokenize --quiet nowhere out2
clean 2 sgt-tokenize --threads many corpus out
rm -rf out && sgt-tokenize --quiet corpus out
clean 0 sgt-inspect out --verify --decode 0:20
clean 0 sgt-inspect out --batch 3 --seq-len 16 --batch-size 4
clean 0 sgt-bench loader out --loader mmap,preload --seq-len 16 --batch-size 4 --seconds 0.2 --quiet
clean 0 sgt-bench tokenize --quiet --threads 2 corpus
set -- --data out --run run --model 1x16x2 --seq-len 8 --batch-size 2 --save-every 1 --eval-every 0 --device cpu --quiet
clean 0 sgt-train "$@" --steps 2
clean 0 sgt-train "$@" --steps 3 --resume
clean 1 sgt-train "$@" --steps 3
clean 0 sgt-inspect run

[ -x "$BIN/../tests/replay" ] || skip 'no tests/replay (make check-all builds it); all else passed'
export FUZZ_TARGET FUZZ_CPU
for FUZZ_TARGET in $(sed -n 's/^    {"\([a-z]*\)", fuzz_.*/\1/p' "$ROOT/tests/fuzz/fuzz.c"); do
    for FUZZ_CPU in avx2 plain; do # they may leak when a property ends its process
        run 0 valgrind --quiet --fair-sched=try --error-exitcode=99 "$BIN/../tests/replay" "$ROOT"/tests/fuzz/seeds/*
    done
done
