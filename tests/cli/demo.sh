# The script of `make demo` on the user's own text, and its message if there is no text.
# In make check-all only: it trains as long as make demo does.
mkdir corpus build
ln -s "$BIN" build/bin
i=0
while [ $i -lt 12 ]; do cat "$ROOT/README.md" "$ROOT"/tokenize/*/*.h > "corpus/$i.txt" && i=$((i + 1)); done
run_prints_like '^build/demo/out: [0-9,]+ tokens, 12 documents, 2 shards; ' "$ROOT/tools/demo.sh" build corpus
stdout_matches '^[* ] preload        i32 +[0-9.]+ +[1-9][0-9.]* ' # the fastest has a star
stdout_matches '^[* ] mmap \(mapped\)  i32 +[0-9.]+ +[1-9][0-9.]* '
stdout_matches '^loss: 10\.[0-9]+ → [1-7]\.[0-9]+ \(mean of the last 20 steps\), validation [1-7]\.[0-9]+ '
stdout_has 'sgt-train --data build/demo/out --run build/demo/run --resume --steps 400'
exists build/demo/run/latest

# Times and sizes have the same format in the terminal's output and in the page.
time=$(sed -n 's/^time: \(.*\) in steps, .* in all$/\1/p' .stdout)
memory=$(sed -n 's/^memory: \(.*\) in steps, .* in all, of .*/\1/p' .stdout)
for figure in "Training time</dt><dd>$time" "Peak memory</dt><dd>$memory"; do
    sed 's/\xc2\xa0/ /g' build/demo/report.html | grep -qF "<dt>$figure</dd>" || fail "the page lacks: $figure"
done
stdout_matches '^Hackers'
sed -n '/^Hackers/,/^5\. /p' .stdout | sed '1s/^Hackers//; /^5\. /d' > sample
[ "$(grep -oE '[A-Za-z]{3,}' sample | wc -l)" -ge 5 ] || fail "no words: $(cat sample)"
stdout_has 'Open build/demo/report.html in a browser.'
grep -q '<svg' build/demo/report.html || fail "the page has no picture"

run 1 "$ROOT/tools/demo.sh" build nowhere
stderr_is 'make demo: no text to tokenize: nowhere does not exist
  to use your own text: make demo CORPUS=DIR   (a folder of text files, 1 MB or more)'

# make builds each program that the demo runs or names. A folder's name may have a space.
names=$(grep -oE 'sgt-[a-z]+' "$ROOT/tools/demo.sh" | sort -u)
make -C "$ROOT" -n --no-print-directory B="$PWD/new" CORPUS='my texts' run-demo > made 2> .stderr
for name in $names; do grep -q " $PWD/new/bin/$name " made || fail "make demo does not build $name"; done
grep -qx "tools/demo.sh $PWD/new \"my texts\"" made || fail "the demo is begun as: $(grep demo.sh made)"

# The demo's message without apt-get, and with an apt-get that fails.
mkdir tools
for tool in sh cat tr sed awk id mkdir rm tail head gzip split grep; do ln -s "$(command -v $tool)" tools/$tool; done
rm -rf build/demo
run 1 env PATH="$PWD/tools" "$ROOT/tools/demo.sh" build
stderr_has 'make demo: no text to tokenize: apt-get, which downloads the package jargon-text, was not found'
for tool in apt-get dpkg-deb sudo; do
    printf '#!/bin/sh\necho "E: no network"\nexit 100\n' > tools/$tool
    chmod +x tools/$tool
done
run 1 env PATH="$PWD/tools" "$ROOT/tools/demo.sh" build
stderr_has 'make demo: no text to tokenize: the package jargon-text could not be downloaded (E: no network)'
