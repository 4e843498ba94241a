# sgt-bench loader: its table, its JSON, and the options it refuses. The test does not check speeds.
. "$ROOT/tests/cli/bench.inc"
. "$ROOT/tests/cli/shards.inc"

mkdir set
{ le32 20240520 && le32 1 && le32 20000 && head -c 41012 /dev/zero; } > set/train_000000.bin

run_silent sgt-bench loader set --seconds .05
stdout_matches '^set: 20,000 tokens \(39\.1 KiB\) in 1 shard$'
stdout_matches '^turns \(medians shown\): 5$'
stdout_has 'Shards in the page cache, 1 thread, sampling random, batches of 32 x 1024 tokens'
for reader in preload 'mmap \(mapped\)' 'mmap \(cached\)' uring; do
    for output in u16 i32; do stdout_matches "^[* ] $reader +$output +[0-9.]+ "; done
done
stdout_matches '^  plain loop +i32 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +1\.0 '
stdout_matches '^  memcpy +u16 .* 1\.0000 '
check 'a best one for each output' test "$(grep -cE '^\* [a-z]+( \(mapped\))? +[ui][0-9]' .stdout)" -eq 2
for output in u16 i32; do
    grep -E "^[* ] (preload|mmap \(mapped\)|uring) +$output" .stdout | sed 's/ (mapped)//' > rows
    check "the fastest $output has the star" \
        awk '{ if ($1 == "*") { star = $4 } else { rest[NR] = $3 } }
        END { for (i in rest) if (rest[i] < star) exit 1; exit !star }' rows
done
table 'of limit: relative to memcpy of the same windows.'

run_prints_like '^  preload +i64 ' sgt-bench loader set --seconds .05 --loader preload --outputs i64

run 0 sgt-bench loader set --json --seconds .05 --loader mmap,preload --outputs i32 --batch-size 2 --seq-len 16 \
    --threads 2 --sampling shuffle
stderr_is ''
sed -n '/"results"/,/"peers"/p' .stdout > results
for pass in mapped cached; do check "one $pass" test "$(grep -c "\"pass\": \"$pass\"" results)" -eq 1; done
check 'a cold one, or why not' test "$(sed -n '/"results"/,$p' .stdout | grep -cE '"pass": "cold"|cannot be dropped')" -eq 1
all=$(grep -c '"reader"' results)
check '3 results and the cold one' test "$all" -eq $((3 + $(grep -c '"pass": "cold"' results)))
check 'each has a share of preload' test "$(grep -c '"preload_fraction"' results)" -eq "$all"
check 'each has a speedup' test "$(grep -c '"loop_speedup"' results)" -eq "$all"
check 'no share is beyond reason' test "$(sed -n 's/.*"memcpy_fraction": \([0-9.e-]*\),.*/\1/p' .stdout |
    awk '$1 > 0 && $1 < 20' | wc -l)" -eq "$all"
check 'no peers' test "$(grep -c '"peers": \[\]' .stdout)" -eq 1
stdout_has '"turns": 5' '"threads": 2'
for name in memcpy_gb_per_s batch seq sampling output cold us_per_batch tokens_per_s gb_per_s memcpy_fraction; do
    stdout_has "\"$name\": "
done
check 'none is zero' test \
    "$(grep -cE '"(us_per_batch|tokens_per_s|gb_per_s|memcpy_fraction)": (0\.0+|0),?$' .stdout)" -eq 0
run_says '' sgt-bench loader set/train_000000.bin --quiet --seconds .01
stderr_is ''

run_prints_like '^turns \(medians shown\): 1$' sgt-bench loader set --turns 1 --seconds .01

# If rows would be longer than the shards, the default is shortened with a notice, and a length that
# the user gave is refused by name.
mkdir short
shard short/train_000000.bin 1 2 3 4 5 6 7 8 9
run 0 sgt-bench loader short --seconds .01 --json
stderr_is 'sgt-bench loader: using --seq-len 8: no shard has 1025 tokens, which a row of 1024 needs'
stdout_has '"seq": 8'
run_failure_about 'sgt-bench loader: ' sgt-bench loader short --seq-len 9
stderr_has 'short/train_000000.bin'
run_failure 'nowhere: No such file or directory (make a folder of shards with sgt-tokenize)' sgt-bench loader nowhere
mkdir words
shard words/train_000000.bin 50256 5 6 7 50256 8 9
run 0 sgt-bench loader words --sampling documents --seq-len 4 --batch-size 2 --seconds .01 --loader mmap
stdout_has ', sampling documents, batches of 2 x 4 tokens'
run 0 sgt-bench loader words --sampling packed --seq-len 4 --batch-size 2 --seconds .01 --loader mmap,preload
stdout_has ', sampling packed, batches of 2 x 4 tokens'

# For several sets, the tokens of all are counted.
mkdir more
shard more/train_000000.bin $(seq 100 150)
run_prints '"tokens": 20051' sgt-bench loader set:2,more:1 --seq-len 4 --batch-size 2 --seconds .01 --json
stdout_has '"reader": "preload"'

run_usage 'expected OUT/ | SHARD | A:0.7,B:0.3 (such as: sgt-bench loader out/)' sgt-bench loader
run_usage 'expected one set, not 2 (A,B mixes two)' sgt-bench loader set short
run_usage '--loader mmpa: unknown value (expected preload|mmap|uring); did you mean mmap?' sgt-bench loader set --loader uring,mmpa
run_usage '--outputs u16,,i32: unknown value (expected u16|i32|i64|i32-rows)' sgt-bench loader set --outputs u16,,i32
run_usage '--batch-size 8,16: not a whole number (such as 12, 512k, 1.5M)' sgt-bench loader set --batch-size 8,16
run_usage '--seq-len 0: must be from 1 to 1048576' sgt-bench loader set --seq-len 0
run_usage '--peer: needs --sampling random, because the peers support no other' sgt-bench loader set --sampling shuffle --peer python3
run_usage '--peer: cannot be combined with --cold, which compares only with fio' sgt-bench loader set --cold --peer python3
run_usage 'a batch of 1048576 x 1024 tokens is too large: at most 268,435,456 can be measured' sgt-bench loader set --batch-size 1048576
run_usage '--turns 0: must be from 1 to 100' sgt-bench loader set --turns 0
run 2 sgt-bench
stderr_has 'sgt-bench: expected a subcommand (loader, tokenize, kernels, step, ablation)'
run 2 sgt-bench matmul
stderr_has 'sgt-bench: matmul: no such subcommand (loader, tokenize, kernels, step, ablation)'
run 2 sgt-bench --json loader set
stderr_has 'sgt-bench: --json: no such option'
