# sgt-bench loader --peer: the requests that Python gets in each turn, and what sgt-bench does with
# its answers or without any.
. "$ROOT/tests/cli/bench.inc"
. "$ROOT/tests/cli/shards.inc"

mkdir set
{ le32 20240520 && le32 1 && le32 20000 && head -c 41012 /dev/zero; } > set/train_000000.bin
shard set/train_000001.bin 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18

# ---- a stand-in for the interpreter that stores its requests ----
cat > python <<'END2'
#!/bin/sh
cat "$1" > script
tr '\0' '\n' < "${2#@}" > files
echo "$3" > width
echo $$ > id
echo '{"peer": "numpy 0.1"}'
while read -r peer output batch seq seconds; do
    echo "$peer $output $batch $seq" >> asked
    case $peer in
    torch*) echo '{"peer": "torch 0.2", "batches": 1, "seconds": 0.5}' ;;
    window) echo '{"peer": "numpy 0.1", "batches": 4, "seconds": 0.001}' ;;
    *) echo '{"peer": "numpy 0.1", "batches": 250, "seconds": '$(grep -c "$peer" asked)'}' ;;
    esac
done
echo ended > last
END2
chmod +x python
small='--seconds .02 --turns 3 --batch-size 4 --seq-len 16'
run_silent sgt-bench loader set $small --outputs i32 --peer ./python --json
same script "$ROOT/tests/peers/loaders.py"
check 'both shards, their first token, and how many' test "$(tr '\n' ' ' < files)" = \
    'set/train_000000.bin 1024 20000 set/train_000001.bin 1024 18 '
check 'one process' test "$(wc -l < id)" -eq 1
check 'it was let go' test "$(cat last)" = ended
check 'a turn to warm up and three that count, of each' test "$(sort asked | uniq -c | tr -s ' ' | tr '\n' ';')" = \
    ' 4 gather i64 4 16; 4 loop i64 4 16; 4 torch0 i64 4 16; 4 torch2 i64 4 16; 4 window i32 4 16; 4 window u16 4 16;'
check 'in turns' test "$(cut -d' ' -f1,2 asked | sed -n 7,12p)" = "$(cut -d' ' -f1,2 asked | sed -n 1,6p)"
stdout_has '"numpy": "numpy 0.1"' '"torch": "torch 0.2"'
# The stand-in reports that turn k of `gather` and `loop` took k seconds for 250 batches. The first
# turn is a warm-up; the median of the other three counts.
peers() { sed -n '/"peers"/,/"left_out"/p' .stdout; }
check 'the median turn' test "$(peers | grep -c '"us_per_batch": 12000.0')" -eq 2
check 'the windows' test "$(peers | grep -c '"us_per_batch": 250.0')" -eq 2
check 'their speed' test "$(peers | grep -c '"tokens_per_s": 256000.0')" -eq 2
check 'and bytes' test "$(peers | grep -c '"gb_per_s": 0.000544')" -eq 2
check 'six of them' test "$(peers | grep -c '"reader"')" -eq 6
# A file system in memory has no cold passes, so they are left out, and --cold fails.
left_out() { sed -n '/"left_out"/,$p' .stdout | grep '"why"' | grep -v 'cannot be dropped'; }
check 'nothing is left out' test "$(left_out | wc -l)" -eq 0

run_prints_like '^turns \(medians shown\): 3; compared with numpy 0\.1, torch 0\.2$' sgt-bench loader set $small --peer ./python
stdout_matches '^[* ] numpy window +i32 +250\.00 +0\.3 '
stdout_matches '^[* ] torch 2 workers +i64 +500000\.00 +0\.0 '
table 'of limit: relative to memcpy of the same windows'
check 'ids of 2 bytes' test "$(cat width)" -eq 2
mkdir wide # ids of 4 bytes
{ le32 20240801 && le32 7 && le32 20000 && head -c 81012 /dev/zero; } > wide/train_000000.bin
rm asked
run 0 sgt-bench loader wide $small --peer ./python --json
check 'ids of 4 bytes' test "$(cat width)" -eq 4
check 'rows as they are stored' grep -qx 'window i32-rows 4 16' asked
# ---- a peer that the interpreter lacks is left out with a notice ----
cat > python <<'END2'
#!/bin/sh
echo '{"peer": "numpy 0.1"}'
while read -r peer rest; do
    case $peer in
    torch*) echo '{"error": "ModuleNotFoundError: No module named '"'torch'"'"}' ;;
    loop) echo '["what?"]' ;;
    *) echo '{"peer": "numpy 0.1", "batches": 4, "seconds": 0.001}' ;;
    esac
done
END2
run 0 sgt-bench loader set $small --peer ./python --json
stderr_is "sgt-bench loader: skipping numpy loop: --peer ./python: no seconds in its output: \
[\"what?\"]
sgt-bench loader: skipping torch 0 workers: --peer ./python: ModuleNotFoundError: No module named 'torch'
sgt-bench loader: skipping torch 2 workers: --peer ./python: ModuleNotFoundError: No module named 'torch'"
check 'three are there' test "$(peers | grep -c '"us_per_batch"')" -eq 3
check 'three are not' test "$(left_out | wc -l)" -eq 3

# ---- an interpreter that ends at once, or in the middle ----
printf '#!/bin/sh\necho "ModuleNotFoundError: No module named numpy" >&2\nexit 1\n' > python
run_failure '--peer ./python: exited with code 1: ModuleNotFoundError: No module named numpy (pass a Python that has numpy)' \
    sgt-bench loader set $small --peer ./python
printf '#!/bin/sh\n' > python
run_failure '--peer ./python: exited without an answer' sgt-bench loader set $small --peer ./python
run_failure '--peer ./nowhere: No such file or directory' sgt-bench loader set $small --peer ./nowhere
run_failure_like '^sgt-bench loader: --peer echo: no JSON object in its output: /' \
    sgt-bench loader set $small --peer echo
printf '#!/bin/sh\necho "{}"\nread -r x\necho "{\\"peer\\": \\"numpy 1\\", \\"batches\\": 4, \\"seconds\\": 1}"\n'\
'read -r x\necho "Killed by nobody" >&2\nkill -9 $$\n' > python
run 0 sgt-bench loader set $small --peer ./python --json
stderr_has 'sgt-bench loader: skipping numpy window: --peer ./python: killed by signal 9: Killed by nobody'
stderr_has 'sgt-bench loader: skipping numpy gather: --peer ./python: has already exited'

# ---- an interrupt while the interpreter is running ----
printf '#!/bin/sh\necho $$ > id\nexec sleep 100\n' > python
rm id
run_stopped INT id sgt-bench loader set $small --peer ./python
stderr_is 'sgt-bench loader: interrupted'
kill -0 "$(cat id)" 2> /dev/null && fail 'the peer was left behind'

# ---- shards without a header: Python gets their format as arguments ----
cat > python <<'END2'
#!/bin/sh
tr '\0' '\n' < "${2#@}" > files
END2
mkdir raw
ids 1 2 3 4 5 6 7 8 9 > raw/train_000000.bin
run 1 sgt-bench loader raw --raw 16 $small --seq-len 4 --peer ./python
check 'no header' test "$(tr '\n' ' ' < files)" = 'raw/train_000000.bin 0 9 '

# ---- the real script, if there is a Python with numpy ----
find_python numpy
[ -z "$python" ] || {
    printf '%s\n' 'window i32 4 16 .001' 'window u16 2 8 .001' 'gather i64 4 16 .001' 'loop i64 4 16 .001' \
        'sky u16 1 1 1' > asks
    "$python" "$ROOT/tests/peers/loaders.py" set < asks > answers || fail 'loaders.py failed'
    check 'it says what it is' test "$(head -1 answers | grep -c '^{"peer": "numpy [0-9.]*"}$')" -eq 1
    check 'four answers' \
        test "$(grep -cE '^\{"peer": "numpy [0-9.]+", "batches": [0-9]+, "seconds": [0-9.]+\}$' answers)" -eq 4
    echo 'window i32-rows 4 16 .001' >> asks
    "$python" "$ROOT/tests/peers/loaders.py" wide 4 < asks | sed '1d; 3d; 6d' > wide-answers
    check 'four answers of 4-byte ids' test "$(grep -c '"batches": ' wide-answers)" -eq 4
    check 'and an error' test "$(tail -1 answers)" = '{"error": "KeyError: '"'sky'"'"}'
}
:
