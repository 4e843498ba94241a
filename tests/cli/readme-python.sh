# README's Python block, where there is a Python with numpy.
. "$ROOT/tests/cli/lib.sh"
python3 -c 'import numpy' 2> /dev/null || skip "no python3 with numpy"
mkdir corpus
printf 'one two three' > corpus/a.txt
printf 'four' > corpus/b.txt
run 0 sgt-tokenize --quiet corpus/ out/
awk '$0 == "```python" { on = 1; next } $0 == "```" { on = 0 } on' "$ROOT/README.md" > block.py
run 0 python3 block.py
stdout_is '6 tokens, of which 2 begin a document'
