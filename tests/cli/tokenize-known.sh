# tokenize-known.sh: cl100k, o200k, Llama 3, Llama 4, Tekken, Qwen, DeepSeek and Claude 2. Their
# vocabulary files, without further options, give the ids of tiktoken and tokenizers at every CPU
# level (tests/tokenize/known.py). The PyPI packages that contain the files are kept in the build
# folder.
# In make check-all only: it fetches 60 MB once, and the other programs encode for minutes.
. "$ROOT/tests/cli/python.inc"
. "$ROOT/tests/cli/wide.inc"

python_venv numpy tiktoken tokenizers
known_vocabularies "$python" || skip 'pip cannot fetch the packages that carry vocabularies from PyPI'
levels=$(cpu_levels)
run 0 "$python" "$ROOT/tests/tokenize/known.py" "$kept" $levels
cat .stdout
check 'all of them' [ "$(grep -c ' 0 differ$' .stdout)" -eq $((12 * $(echo $levels | wc -w) + 3 * 3 + 2)) ]
for lines in -7 400; do
    while read -r file name; do
        head -n $lines "$file" > cut.tiktoken
        case $file,$lines in llama3,400 | qwen,400) name='cl100k, Llama 3 or Qwen' ;; esac
        run_failure_about "begins like the ranks of $name, but ends after $(grep -c . cut.tiktoken) of them: is it "\
"truncated?" \
            sgt-tokenize --vocab cut.tiktoken "$ROOT/README.md" cut
    done << 'END'
cl100k cl100k, Llama 3 or Qwen
o200k o200k
llama3 Llama 3 or Qwen
llama4 Llama 4
qwen Qwen
END
done
for name in cl100k o200k llama3 llama4 tekken qwen; do # recognized pattern: no notice that one is assumed
    run_silent sgt-tokenize --force --vocab $name "$ROOT/README.md" named
done
