# sgt-bench tokenize: counts the tokens that it encodes, and refuses inputs that it cannot read.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/bench.inc"

mkdir in
printf 'Hello world!\n' > in/a.txt
printf 'Hello' > in/b.txt
: > in/empty.txt
run_silent sgt-bench tokenize in --json
stdout_has '"tokens": 5'
stdout_has '"bytes": 18'
stdout_has '"files": 3'
stdout_matches '"mb_per_s": [0-9.]*[1-9]'
stdout_matches '"seconds": [0-9.e-]*[1-9]'
run 0 sgt-bench tokenize --threads 3 --json in in/a.txt
stdout_has '"threads": 3'
stdout_has '"tokens": 9'
run_prints '18 B in 3 files, in memory' sgt-bench tokenize in
table 'MB/s'
run 0 sgt-bench tokenize in --quiet
stdout_is ''
stderr_is ''
printf 'Hello world!\n' > text
run_prints '"tokens": 4' sgt-bench tokenize - --json < text

# The tokens of a long text do not depend on the cuts between threads. sgt-tokenize writes as many,
# plus an end-of-text id for each document.
repeated 200 "$ROOT/README.md" > long.txt
run 0 sgt-tokenize --quiet --json long.txt out
whole=$(field tokens .stdout)
for threads in 1 2 3; do
    run 0 sgt-bench tokenize --threads $threads --json long.txt
    check 'as many tokens' test "$(field tokens .stdout)" -eq $((whole - 1))
done

# Other vocabularies: if the pattern is a known one, PCRE2 is measured too, and gives as many
# tokens.
V=$ROOT/tests/data/vocab
run 0 sgt-bench tokenize --turns 1 --vocab "$V/o200k" "$V/text.txt"
table 'the same by PCRE2'
stdout_has "by GPT-2's pattern"
stdout_has 'turns: 1; medians'
run 0 sgt-bench tokenize --turns 1 --pattern llama3 --json "$V/text.txt"
check 'as many tokens' python3 -c "
import json, sys
d = json.load(open('.stdout'))
assert [w['split'] for w in d['ways']] == ['the same by PCRE2', \"by GPT-2's pattern\"], d
assert d['ways'][0]['tokens'] == d['tokens'] > 0 and d['ways'][1]['seconds'] > 0, d
"
run_prints '"tokens": 6' sgt-bench tokenize --pattern '\p{L}+|\P{L}' --json in
check 'PCRE2 alone' sh -c '! grep -q ways .stdout'
run_usage "--peer: measured with GPT-2's vocabulary (not with --pattern)" sgt-bench tokenize --pattern llama3 --peer python3 in
run_usage "--disk: measured with GPT-2's vocabulary (not with --vocab)" sgt-bench tokenize --vocab "$V/o200k" --disk . in
run 2 sgt-bench tokenize --pattern '(' in
stderr_has 'pattern: at byte 1: missing closing parenthesis'
run 1 sgt-bench tokenize --vocab nowhere in
stderr_is "sgt-bench tokenize: nowhere: No such file or directory (name gpt2, or a vocabulary's file or folder)"

run_failure 'nowhere: No such file or directory' sgt-bench tokenize nowhere
run_failure 'in/empty.txt: no text in it: nothing to measure' sgt-bench tokenize in/empty.txt
mkdir none
run_failure 'none: no file in this folder (name one that has files, or files)' sgt-bench tokenize none
run_usage "expected INPUT... (such as: sgt-bench tokenize corpus/)" sgt-bench tokenize
run_usage "--cold: no such option" sgt-bench tokenize in --cold
run_usage "standard input (-) can be read only once (name it once)" sgt-bench tokenize - -

# ---- the peers: a stand-in for the interpreter that stores its arguments ----
cat > python <<'END'
#!/bin/sh
cat "$1" > script
shift
echo "$*" >> asked
tr '\0' '\n' < "${3#@}" > files
n=$(wc -l < asked)
echo '{"peer": "'$1' 0.1", "where": "memory", "tokens": 7, "seconds": '$n'000.0}'
END
chmod +x python
run_silent sgt-bench tokenize in --threads 2 --peer ./python --turns 3 --json
same script "$ROOT/tests/peers/bpe.py"
check 'three turns of two' test "$(cut -d' ' -f1 asked | tr '\n' ' ')" = \
    'gigatoken tiktoken gigatoken tiktoken gigatoken tiktoken '
check 'as many threads' test "$(grep -c -- '--threads 2$' asked)" -eq 6
check 'the same files' test "$(tr '\n' ' ' < files)" = 'in/a.txt in/b.txt in/empty.txt '
stdout_has '"tokens": 5'
stdout_has '"seconds": 1000.0' # the best of gigatoken's 1000, 3000 and 5000
stdout_has '"seconds": 4000.0' # the median of tiktoken's 2000, 4000 and 6000
check 'its ratio' awk -v ours="$(field seconds .stdout | head -1)" -v ratio="$(field ratio .stdout | head -1)" \
    'BEGIN { x = ratio * ours / 1000; exit !(x > 1 - 2e-5 && x < 1 + 2e-5) }'
rm asked
run 0 sgt-bench tokenize in --peer ./python --turns 1
stdout_matches '^  gigatoken 0\.1 +7 +2\.571 +1000\.000 +0\.0 +0\.00 +[0-9]+\.[0-9]{2}$'
stdout_matches '^  tiktoken 0\.1 +7 +2\.571 +2000\.000 +0\.0 +0\.00 +[0-9]+\.[0-9]{2}$'
table 'sgt is x times as fast'
stdout_has "turns: 1; medians, and the best turn of gigatoken"

# A peer that the interpreter lacks is left out, and the others run.
cat > python <<'END'
#!/bin/sh
if [ "$2" = gigatoken ]; then
    echo "ModuleNotFoundError: No module named 'gigatoken'" >&2
    exit 1
fi
echo '{"peer": "tiktoken 0.1", "tokens": 7, "seconds": 2.5}'
END
run 0 sgt-bench tokenize in --peer ./python --json
stderr_is "sgt-bench tokenize: gigatoken is left out: --peer ./python: exit 1: ModuleNotFoundError: \
No module named 'gigatoken'"
stdout_has '"peer": "tiktoken 0.1"'
grep -q '"peer": "gigatoken' .stdout && fail 'gigatoken is there'
printf '#!/bin/sh\necho "{\\"tokens\\": 7, \\"seconds\\": 2}"\n' > python
run_prints '"peer": "tiktoken"' sgt-bench tokenize in --peer ./python --json
printf '#!/bin/sh\necho hello\n' > python
run 0 sgt-bench tokenize in --peer ./python --json
stdout_has '"peers": []'
stderr_has 'sgt-bench tokenize: tiktoken is left out: --peer ./python: no seconds in what it said: hello'
run 2 sgt-bench tokenize - --peer ./python < text
stderr_matches '^sgt-bench tokenize: --peer: standard input can be read once only \(name a file\)'
run_usage '--turns 0: must be from 1 to 100' sgt-bench tokenize --turns 0 in

# ---- the peers' own script, with stand-ins for the packages ----
# A peer that lacks a package, or whose process dies, ends and is left out.
if python=$(command -v "${PYTHON:-python3}"); then
    mkdir -p packages/gigatoken-0.1.dist-info packages/tiktoken-0.1.dist-info
    for peer in gigatoken tiktoken; do
        printf 'Metadata-Version: 2.1\nName: %s\nVersion: 0.1\n' $peer > packages/$peer-0.1.dist-info/METADATA
        echo 'import os; os.kill(os.getpid(), 9)' > packages/$peer.py
    done
    left_out() { # WHY OPTION...
        why=$1
        shift
        run 0 timeout -k 5 300 env PYTHONPATH=packages sgt-bench tokenize in --peer "$python" --threads 2 --turns 1 --json "$@"
        stdout_has '"peers": []'
        stderr_has "gigatoken is left out: --peer $python: exit 1: $why"
    }
    lacks="ModuleNotFoundError: No module named 'whisper' (pip install --no-deps openai-whisper)"
    if ! "$python" -c 'import whisper' 2> .says; then
        left_out "$lacks"
        left_out "$lacks" --disk .
        stderr_has "tiktoken is left out: --peer $python: exit 1: $lacks"
    fi
    mkdir -p packages/whisper/assets
    : > packages/whisper/__init__.py
    : > packages/whisper/assets/gpt2.tiktoken
    left_out 'concurrent.futures.process.BrokenProcessPool: '
fi

# ---- whole commands: sgt-tokenize, and the peers from files to a file ----
mkdir work
cat > python <<'END'
#!/bin/sh
shift
echo "$*" >> asked
[ "$2" = disk ] && printf 0123456789 > "$4" && ls "${4%/*}" > written
echo '{"peer": "'$1' 0.1", "where": "disk", "tokens": 5, "seconds": 1000.0}'
END
rm -f asked
run_silent sgt-bench tokenize in --threads 2 --disk work --peer ./python --turns 2 --json
stdout_has '"tokens": 8' # including an end-of-text id for each file
check 'what the process took, not what it says' awk -v s="$(field seconds .stdout | tail -1)" 'BEGIN { exit !(s < 60) }'
check 'two turns of two' test "$(cut -d' ' -f1,2 asked | tr '\n' ' ')" = \
    'gigatoken disk tiktoken disk gigatoken disk tiktoken disk '
check 'ours was removed before' test "$(cat written)" = ids
check 'nothing is left' test -z "$(ls work)"
run_prints '18 B in 3 files, from files to files' sgt-bench tokenize in --disk work --turns 1
table 'turns: 1; medians'
check 'nothing is left of that' test -z "$(ls work)"
run_failure '--disk nowhere: no folder can be made there: No such file or directory' sgt-bench tokenize in --disk nowhere
run_failure 'in/empty.txt: no text in it: nothing to measure' sgt-bench tokenize in/empty.txt --disk work
run_usage "--disk: standard input can be read once only (name a file)" sgt-bench tokenize - --disk work
# Parquet files have another peer, and are measured as whole commands only.
mkdir rows
cp "$ROOT/tests/data/parquet/fallback.parquet" rows/a.parquet
cp "$ROOT/tests/data/parquet/web.parquet" rows/b.parquet
rm asked
run_silent sgt-bench tokenize rows --threads 2 --disk work --peer ./python --turns 2 --json
check 'two turns of it' test "$(cut -d' ' -f1,2,5,6 asked | tr '\n' ' ')" = \
    'datasets disk --threads 2 datasets disk --threads 2 '
stdout_has '"peer": "datasets 0.1"'
check 'nothing is left' test -z "$(ls work)"
run_usage "Parquet files are measured as whole commands only (add --disk FOLDER)" sgt-bench tokenize rows
run_usage "--peer: no peer reads Parquet and other files (measure them apart)" sgt-bench tokenize rows in --disk work --peer ./python
printf 'bad \377' > bad.txt
