#!/bin/sh
# demo.sh BUILD [CORPUS]: shows the main job, from text to a falling loss, on a CPU. `make demo` runs this script. The
# text is the Jargon File (public domain), from the Debian package jargon-text, which is unpacked under BUILD/demo and
# is not installed.
set -eu
B=$1
CORPUS=${2:-}
PATH=$(cd "$B/bin" && pwd):$PATH
DEMO=$B/demo
STEPS=100
mkdir -p "$DEMO"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }
# Print a command and run it.
show() { printf '$ %s\n' "$*" && "$@"; }

no_text() {
    echo "make demo: no text to tokenize: $1" >&2
    echo "  to use your own text: make demo CORPUS=DIR   (a folder of text files, 1 MB or more)" >&2
    exit 1
}

# Download the text and split its one file of 1.7 MB into many files, so that there are documents to set aside for
# validation. Frames drawn with characters and indents are removed, and each paragraph becomes one line. Otherwise, in
# so few steps, the model would learn little more than blanks and parts of characters.
get_jargon_file() {
    [ -e "$DEMO/corpus/done" ] && return
    command -v apt-get > /dev/null && command -v dpkg-deb > /dev/null ||
        no_text "apt-get, which downloads the package jargon-text, was not found"
    rm -rf "$DEMO/package" "$DEMO/corpus"
    mkdir -p "$DEMO/package/text" "$DEMO/corpus/text"
    root=
    [ "$(id -u)" -eq 0 ] || root=sudo
    (cd "$DEMO/package" && {
        apt-get download -qq jargon-text || { $root apt-get update -qq && apt-get download -qq jargon-text; }
    }) > "$DEMO/package/log" 2>&1 ||
        no_text "the package jargon-text could not be downloaded ($(tail -1 "$DEMO/package/log"))"
    dpkg-deb -x "$DEMO"/package/jargon-text_*.deb "$DEMO/package"
    gzip -dc "$DEMO/package/usr/share/doc/jargon-text/jargon.txt.gz" |
        LC_ALL=C tr -cd '\n -~' | sed 's/^ *//' | fmt -w 2400 |
        split -C 16k -a 3 --additional-suffix=.txt - "$DEMO/corpus/text/jargon-"
    rm -rf "$DEMO/package"
    : > "$DEMO/corpus/done"
}

if [ -z "$CORPUS" ]; then
    say "Getting a text: the Jargon File 4.4.7"
    get_jargon_file
    CORPUS=$DEMO/corpus/text
elif [ ! -e "$CORPUS" ]; then
    no_text "$CORPUS does not exist"
fi

say "1. Text to tokens on disk"
# Remove the output of an earlier demo.
[ ! -e "$DEMO/run/latest" ] || echo "(this replaces the set and the run of an earlier demo, $DEMO/out and $DEMO/run)"
rm -rf "$DEMO/out" "$DEMO/run"
show sgt-tokenize --split 5% "$CORPUS" "$DEMO/out"

say "2. Tokens to batches: mmap compared with preload"
show sgt-bench loader --loader mmap,preload --outputs i32 --batch-size 32 --seq-len 512 --seconds 2 "$DEMO/out"

say "3. Batches to a falling loss: a small GPT-2, from scratch, on this CPU"
show sgt-train --data "$DEMO/out" --run "$DEMO/run" --model 4x128x4 --loader preload --device cpu --batch-size 10 \
    --seq-len 64 --steps "$STEPS" --lr 3e-3 --warmup 20 --eval-every 20 --save-every 0

say "4. Text from the model: after only $STEPS steps, it is nonsense"
show sgt-sample --quiet --prompt Hackers --tokens 40 --temperature 1 --top-k 1000 "$DEMO/run" && echo

say "5. The run on one page"
report=$DEMO/report.html
show sgt-report --quiet -o "$report" "$DEMO/run"

echo "Open $report in a browser."
cat << END

Try next, with $B/bin on your PATH:
  sgt-inspect $DEMO/out --decode 0:80            the text of the first 80 tokens
  sgt-inspect $DEMO/run                          losses, checkpoints and options of the run
  sgt-train --data $DEMO/out --run $DEMO/run --resume --steps 400   continue up to step 400
  sgt-sample $DEMO/run --prompt Hackers          text from the model, better after more steps
  sgt-tokenize your-text/ out/ && sgt-train --loader preload --model 6x384x6
END
