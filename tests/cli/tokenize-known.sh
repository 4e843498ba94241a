# tokenize-known.sh: cl100k, o200k, Llama 3, Llama 4, Tekken, Qwen, DeepSeek and Claude 2, by their files alone, give the ids
# of tiktoken and tokenizers at every CPU level (tests/tokenize/known.py). PyPI's packages that carry the files are kept in the build folder.
# In make check-all only: it fetches 60 MB once, and the other programs encode for minutes.
. "$ROOT/tests/cli/python.inc"
. "$ROOT/tests/cli/wide.inc"

python_venv numpy tiktoken tokenizers
known_vocabularies "$python" || skip 'pip cannot fetch the packages that carry vocabularies from PyPI'
levels=$(cpu_levels)
run 0 "$python" "$ROOT/tests/tokenize/known.py" "$kept" $levels
cat .stdout
check 'all of them' [ "$(grep -c ' 0 differ$' .stdout)" -eq $((12 * $(echo $levels | wc -w) + 3 * 4 + 2)) ]
for name in cl100k o200k llama3 llama4 qwen; do
    head -n -7 $name > cut.tiktoken
    run_failure_about 'of them: was it cut off? (--pattern takes it as a vocabulary of its own)' \
        sgt-tokenize --vocab cut.tiktoken "$ROOT/README.md" cut
done
for name in cl100k o200k llama3 llama4 tekken qwen; do # the pattern is known, so no line says which one is assumed
    run_silent sgt-tokenize --force --vocab $name "$ROOT/README.md" named
done
