#!/bin/sh
# demo.sh BUILD [CORPUS]: the main job from text to a falling loss, on a CPU. `make demo` runs it.
# The text is the Jargon File (public domain), from the Debian package jargon-text, unpacked under BUILD/demo and not
# installed.
set -eu
B=$1
CORPUS=${2:-}
PATH=$(cd "$B/bin" && pwd):$PATH
DEMO=$B/demo
STEPS=100
mkdir -p "$DEMO"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }
# Print the command, run it, and write its output to FILE.
show() { printf '$ %s\n' "$*" && "$@"; }
show_into() { file=$1 && shift && printf '$ %s\n' "$*" && "$@" > "$file"; }

no_text() {
    echo "make demo: no text to work on: $1" >&2
    echo "  give it some of yours: make demo CORPUS=DIR   (a folder of text files, 1 MB or more)" >&2
    exit 1
}

# One file of 1.7 MB becomes a folder of many, as a corpus is, so that there are documents to set aside for validation.
get_jargon_file() {
    [ -e "$DEMO/corpus/done" ] && return
    command -v apt-get > /dev/null && command -v dpkg-deb > /dev/null ||
        no_text "the package jargon-text comes with apt-get, which is not here"
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
        split -C 16k -a 3 --additional-suffix=.txt - "$DEMO/corpus/text/jargon-"
    rm -rf "$DEMO/package"
    : > "$DEMO/corpus/done"
}

if [ -z "$CORPUS" ]; then
    say "Getting a text: the Jargon File 4.4.7"
    get_jargon_file
    CORPUS=$DEMO/corpus/text
elif [ ! -e "$CORPUS" ]; then
    no_text "$CORPUS is not there"
fi

say "1. Text to tokens on disk"
# Remove the output of an earlier demo.
[ ! -e "$DEMO/run/latest" ] || echo "(this replaces the set and the run of an earlier demo, $DEMO/out and $DEMO/run)"
rm -rf "$DEMO/out" "$DEMO/run"
show_into "$DEMO/tokenize.json" sgt-tokenize --json --split 5% "$CORPUS" "$DEMO/out"

say "2. Tokens to batches: mmap against preload"
show_into "$DEMO/bench.json" sgt-bench loader --json --loader mmap,preload --outputs i32 --batch-size 32 --seq-len 512 \
    --seconds 2 "$DEMO/out"

say "3. Batches to a falling loss: a small GPT-2, from scratch, on this CPU"
show sgt-train --data "$DEMO/out" --run "$DEMO/run" --model 4x128x4 --loader preload --device cpu --batch-size 10 \
    --seq-len 64 --steps "$STEPS" --lr 3e-3 --warmup 10 --eval-every 20 --save-every 0

say "4. A few words from it: after $STEPS steps it has read little, and writes nonsense"
show sgt-sample --quiet --prompt Hackers --tokens 40 "$DEMO/run" && echo

say "5. The run on one page"
report=$DEMO/report.html
show sgt-report --quiet -o "$report" "$DEMO/run"

# the number NAME of the first object in FILE that has the pattern
figure() { # FILE NAME [PATTERN]
    tr -d '\n' < "$1" | tr '{' '\n' | grep -e "${3:-}" | sed -n "s/.*\"$2\": *\([0-9.e+-]*\).*/\1/p" | head -1
}
# the figure of a reader; of mmap, also the name of a pass
reader() { figure "$DEMO/bench.json" "$2" "\"reader\": *\"$1\".*${3:+\"pass\": *\"$3\"}"; } # READER FIGURE [PASS]

say "What happened"
sed -n 's/.*"loss": *\([0-9.]*\).*/\1/p' "$DEMO/run/log.jsonl" |
    awk -v tokens="$(figure "$DEMO/tokenize.json" tokens)" -v mb="$(figure "$DEMO/tokenize.json" mb_per_s)" \
        -v ram="$(reader preload tokens_per_s)" -v loop="$(reader preload loop_speedup)" \
        -v mapped="$(reader mmap preload_fraction mapped)" -v cold="$(reader mmap preload_fraction cold)" \
        -v steps="$STEPS" '
{ loss[NR] = $1 }
END {
    for (i = NR - 19; i <= NR; i++) last += loss[i] / 20
    printf "  tokenized      %d tokens at %.1f MB/s\n", tokens, mb
    printf "  batches        preload %.0f million tokens/s, %.1f times a plain loop in C\n", ram / 1e6, loop
    same = mapped > .85 && mapped < 1.15
    printf "                 mmap is %s once mapped", same ? "about as fast" : sprintf("%.2f times as fast", mapped)
    if (cold != "") printf ", but %.0f times slower while it reads the disk", 1 / cold
    printf "\n"
    printf "  loss           fell from %.2f at the first step to %.2f over the last 20 of %d\n", loss[1], last, steps
}'
echo "  the page       $report: open it in a browser"
cat << END

Try next, with $B/bin on your PATH:
  sgt-inspect $DEMO/out --decode 0:80            what is in the shards
  sgt-inspect $DEMO/run                          what is in the run
  sgt-train --data $DEMO/out --run $DEMO/run --resume --steps 400   go on where it stopped
  sgt-sample $DEMO/run --prompt Hackers          what it has learnt; more after more steps
  sgt-tokenize your-text/ out/ && sgt-train --loader preload --model 6x384x6
END
