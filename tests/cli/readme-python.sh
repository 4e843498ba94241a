# README's Python block, run by the first Python that has numpy.
. "$ROOT/tests/cli/lib.sh"
for python in python3 /usr/bin/python3; do
    $python -c 'import numpy' 2> /dev/null && break
    python=
done
[ -n "$python" ] || skip "no python3 with numpy"
mkdir corpus
printf 'one two three' > corpus/a.txt
printf 'four' > corpus/b.txt
run 0 sgt-tokenize --quiet corpus/ out/
awk '$0 == "```python" { on = 1; next } $0 == "```" { on = 0 } on' "$ROOT/README.md" > block.py
run 0 $python block.py
stdout_is '6 tokens, of which 2 begin a document'
