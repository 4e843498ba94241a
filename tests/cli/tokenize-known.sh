# tokenize-known.sh: cl100k, o200k, Llama 3, Llama 4, Tekken and Qwen, by their files alone, give tiktoken's ids at every
# CPU level (tests/tokenize/known.py). PyPI's packages that carry the files are kept in the build folder.
# In make check-all only: it fetches 60 MB once, and tiktoken encodes for a minute.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/python.inc"
. "$ROOT/tests/cli/wide.inc"

python_venv numpy tiktoken
known_vocabularies "$python" || skip 'pip cannot fetch the packages that carry vocabularies from PyPI'
levels=plain
for level in avx2 avx512; do
    ! sgt-tokenize --cpu $level --dry-run "$ROOT/README.md" > /dev/null 2>&1 || levels="$levels $level"
done
run 0 "$python" "$ROOT/tests/tokenize/known.py" "$kept" $levels
cat .stdout
check 'all of them' [ "$(grep -c ' 0 differ$' .stdout)" -eq $((6 * $(echo $levels | wc -w))) ]
