# sgt-bench tokenize: the number of tokens that it encodes, and the inputs that it cannot read.
. "$ROOT/tests/cli/bench.inc"

mkdir in
printf 'Hello world!\n' > in/a.txt
printf 'Hello' > in/b.txt
: > in/empty.txt
run_silent sgt-bench tokenize in --json
check figures holds '.tokens == 5 and .bytes == 18 and .files == 3 and .mb_per_s > 0 and .seconds > 0'
run 0 sgt-bench tokenize --threads 3 --json in in/a.txt
check 'a file twice' holds '.threads == 3 and .tokens == 9'
run_prints '18 B in 3 files, in memory' sgt-bench tokenize in
table 'MB/s'
run_silent sgt-bench tokenize in --quiet
stdout_is ''
printf 'Hello world!\n' > text
run_prints '"tokens": 4' sgt-bench tokenize - --json < text

# The number of tokens of a long text does not depend on where threads cut it. sgt-tokenize writes
# as many tokens, plus an end-of-text id per document.
repeated 200 "$ROOT/README.md" > long.txt
run 0 sgt-tokenize --quiet --json long.txt out
whole=$(field tokens .stdout)
for threads in 1 2 3; do
    run 0 sgt-bench tokenize --threads $threads --json long.txt
    check 'as many tokens' test "$(field tokens .stdout)" -eq $((whole - 1))
done

# Other vocabularies: if the pattern is a known one, PCRE2 is measured too and gives the same number
# of tokens.
V=$ROOT/tests/data/vocab
run 0 sgt-bench tokenize --turns 1 --vocab "$V/o200k" "$V/text.txt"
table 'same pattern, by PCRE2'
stdout_has "GPT-2's pattern"
stdout_has 'turns (medians shown): 1'
run 0 sgt-bench tokenize --turns 1 --pattern llama3 --json "$V/text.txt"
check 'as many tokens' holds '[.ways[].split] == ["same pattern, by PCRE2", "GPT-2\u0027s pattern"] and
    .ways[0].tokens == .tokens and .tokens > 0 and .ways[1].seconds > 0'
run 0 sgt-bench tokenize --pattern '\p{L}+|\P{L}' --json in
check 'PCRE2 alone' holds '.tokens == 6 and (.ways | not)'
for whole in '--peer python3' '--disk .'; do
    # shellcheck disable=SC2086
    run_usage "${whole% *}: cannot be combined with --pattern (it uses the vocabulary's own pattern)" \
        sgt-bench tokenize --pattern llama3 $whole in
done

run_failure 'nowhere: No such file or directory' sgt-bench tokenize nowhere
run_failure 'in/empty.txt: no text in it, so there is nothing to measure' sgt-bench tokenize in/empty.txt
mkdir none
run_failure 'none: this folder has no files (name a folder that has files, or name files)' sgt-bench tokenize none
run_usage "expected INPUT... (such as: sgt-bench tokenize corpus/)" sgt-bench tokenize
run_usage "standard input (-) can be read only once (name it once)" sgt-bench tokenize - -

# ---- the peers: a stand-in for the interpreter that stores its arguments ----
cat > python <<'END'
#!/bin/sh
cat "$1" > script
shift
echo "$*" >> asked
tr '\0' '\n' < "${3#@}" > files
n=$(wc -l < asked)
echo '{"peer": "'$1' 0.1", "where": "memory", "tokens": 7, "seconds": '$n'000.0, "warm_seconds": '$n'0.0}'
END
chmod +x python
P='gigatoken quicktok riptoken tiktoken ' D='gigatoken disk quicktok disk riptoken disk tiktoken disk '
run_silent sgt-bench tokenize in --threads 2 --peer ./python --turns 3 --json
same script "$ROOT/tests/peers/bpe.py"
check 'three turns of four' test "$(cut -d' ' -f1 asked | tr '\n' ' ')" = "$P$P$P"
check 'as many threads' test "$(grep -c -- '--vocab gpt2 --threads 2 --eot 50256 --name gpt2$' asked)" -eq 12
check 'the same files' test "$(tr '\n' ' ' < files)" = 'in/a.txt in/b.txt in/empty.txt '
check 'medians of the turns' holds '.tokens == 5 and .warm_seconds > 0 and .warm_mb_per_s > 0 and
    [.peers[].seconds] == [5000, 6000, 7000, 8000] and [.peers[].warm_seconds] == [50, 60, 70, 80] and
    [.peers[] | .warm_mb_per_s * .warm_seconds * 1e6 | round] == [18, 18, 18, 18]'
check 'its ratio' holds '(.peers[0].ratio * .seconds / 5000 - 1 | fabs) < 2e-5'
rm asked
run 0 sgt-bench tokenize in --peer ./python --turns 1
stdout_matches '^  gigatoken 0\.1 +7 +2\.571 +1000\.000 +0\.0 +0\.0 +0\.00 +[0-9]+\.[0-9]{2}$'
stdout_matches '^  tiktoken 0\.1 +7 +2\.571 +4000\.000 +0\.0 +0\.0 +0\.00 +[0-9]+\.[0-9]{2}$'
table 'sgt is x times'
stdout_has 'turns (medians shown): 1'

# Another vocabulary: peers get its file, its pattern, and the pattern's name; PCRE2 is not measured.
printf '%s\n' 'import base64' 'for i in range(256):' \
    '    print(base64.b64encode(bytes([i])).decode(), i)' | "${PYTHON:-python3}" - > bytes.tiktoken
run 0 sgt-bench tokenize in --threads 1 --turns 1 --vocab bytes.tiktoken --peer ./python --json
check 'bytes' holds '.tokens == 18 and (.ways | not) and (.peers | length) == 4'
check 'its file and pattern' grep -q -- "/dev/null --pattern '(?:.* --vocab bytes.tiktoken --threads 1 --eot 256 --name gpt2\$" asked

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
stderr_is "sgt-bench tokenize: skipping gigatoken: --peer ./python: exited with code 1: ModuleNotFoundError: \
No module named 'gigatoken'"
check 'the others' holds '[.peers[].peer] == ["tiktoken 0.1", "tiktoken 0.1", "tiktoken 0.1"]'
printf '#!/bin/sh\necho "{\\"tokens\\": 7, \\"seconds\\": 2}"\n' > python
run_prints '"peer": "tiktoken"' sgt-bench tokenize in --peer ./python --json
printf '#!/bin/sh\necho hello\n' > python
run_prints '"peers": []' sgt-bench tokenize in --peer ./python --json
stderr_has 'sgt-bench tokenize: skipping tiktoken: --peer ./python: no seconds in its output: hello'
run 2 sgt-bench tokenize - --peer ./python < text
stderr_matches '^sgt-bench tokenize: --peer: standard input can be read only once \(name a file instead\)'

# ---- the peers' own script, with stand-ins for the packages ----
if python=$(command -v "${PYTHON:-python3}"); then
    for peer in gigatoken quicktok_v1; do
        mkdir -p packages/$peer-0.1.dist-info
        printf 'Metadata-Version: 2.1\nName: %s\nVersion: 0.1\n' $peer > packages/$peer-0.1.dist-info/METADATA
    done
    # It gets the file of ranks and the name of the pattern, and encodes the text twice.
    cat > packages/gigatoken.py <<'END'
class Tokenizer:
    backend = property(lambda self: self)

    @classmethod
    def from_tiktoken(cls, ranks, name):
        assert len(open(ranks).readlines()) == 256 and name == "gpt2"
        return cls()

    def encode_batch(self, texts, parallel):
        return [list(t.encode()) for t in texts]
END
    : > packages/quicktok.py
    run 0 env PYTHONPATH=packages sgt-bench tokenize in --peer "$python" --turns 1 --vocab bytes.tiktoken --json
    check 'gigatoken' holds '.peers[0].tokens == 18 and .peers[0].warm_seconds > 0'
    stderr_has "skipping quicktok: --peer $python: exited with code 1: quicktok has no vocabulary for the pattern gpt2"
fi

# ---- `disk`: sgt-tokenize and the peers as whole programs, from files to a file ----
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
stdout_has '"tokens": 8' # includes an end-of-text id per file
check 'what the process took, not what it says' holds '.peers[0].seconds < 60'
check 'two turns of four' test "$(cut -d' ' -f1,2 asked | tr '\n' ' ')" = "$D$D"
check 'ours was removed before' test "$(cat written)" = ids
check 'nothing is left' test -z "$(ls work)"
run_prints '18 B in 3 files, from text files to shards' sgt-bench tokenize in --disk work --turns 1
check 'the vocabulary' test "$(sgt-bench tokenize in --disk work --turns 1 --vocab bytes.tiktoken --json | jq .tokens)" = 21
table 'turns (medians shown): 1'
run_failure '--disk nowhere: cannot create a folder there: No such file or directory' sgt-bench tokenize in --disk nowhere
run_usage "--disk: standard input can be read only once (name a file instead)" sgt-bench tokenize - --disk work
# Parquet files are compared with another peer, and only as whole programs.
mkdir rows
cp "$ROOT/tests/data/parquet/fallback.parquet" rows/a.parquet
cp "$ROOT/tests/data/parquet/web.parquet" rows/b.parquet
rm asked
run_silent sgt-bench tokenize rows --threads 2 --disk work --peer ./python --turns 2 --json
check 'two turns of it' test "$(cut -d' ' -f1,2 asked | tr '\n' ' ')" = 'datasets disk datasets disk '
stdout_has '"peer": "datasets 0.1"'
check 'nothing is left' test -z "$(ls work)"
run_usage "Parquet files need --disk FOLDER, which measures complete commands" sgt-bench tokenize rows
run_usage "--peer: no peer reads both Parquet and other files (measure them apart)" sgt-bench tokenize rows in --disk work --peer ./python
