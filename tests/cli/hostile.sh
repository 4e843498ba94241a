# Malicious files: each command ends with one line that gives the reason. It prints no control
# character, uses no more memory than allowed, and touches no file outside its folder.
# In make check-all only: it tries some 140 files.
. "$ROOT/tests/cli/train.inc"

work_in_memory
sanitized=
is_sanitized && sanitized=1 # a sanitizer maps terabytes, so memory is not limited
cases=0

no_controls() {
    [ -z "$(cat .stdout .stderr | tr -d '\n\t\040-\176\200-\377')" ] || fail 'a control character went to the terminal'
}
# within KIB COMMAND...: run it with at most KIB of private memory, for at most 60 s; set $code
within() {
    kib=$1
    shift
    cases=$((cases + 1))
    echo "$*" > .ran
    code=0
    ([ -n "$sanitized" ] || ulimit -d "$kib" && exec timeout 60 "$@") > .stdout 2> .stderr < /dev/null || code=$?
    no_controls
}
# hostile MESSAGE COMMAND...: it must fail with one line that has MESSAGE, within $most KiB of
# memory
most=102400
hostile() {
    message=$1
    shift
    within $most "$@"
    [ $code -eq 1 ] || fail "exit code $code, not 1"
    stderr_lines 1
    stderr_has "$message"
}
# harmless KIB COMMAND...: it must succeed with at most KIB of private memory
harmless() {
    within "$@"
    [ $code -eq 0 ] || fail "exit code $code, not 0"
}
repeat() { yes "$1" | head -n "$2" | tr -d '\n'; } # TEXT TIMES
deep() { repeat '[' 10000 && repeat ']' 10000; }
many() { printf '[' && repeat '{},' 3000000 && printf '{}]'; }
deep > deep.json
many > many.json

# ---- manifests: a shard's name must be the name of a file in the folder ----
data d
vocabulary='{"name":"bytes","fingerprint":"0000000000000000","size":256,"eot":10}'
totals='"documents":1,"bytes":1,"files":1,"invalid_utf8":0'
manifest() { # FILE-AS-JSON
    printf '{"version":1,"options":{},"vocabulary":%s,"totals":{"tokens":153601,%s},"shards":[{"file":"%s",' \
        "$vocabulary" "$totals" "$1" > d/manifest.json
    printf '"split":"train","tokens":153601,"documents":1,"xxh3":"0000000000000000"}]}' >> d/manifest.json
}
manifest train_000000.bin
run 0 sgt-inspect d
cp d/train_000000.bin outside.bin
for name in ../outside.bin "$PWD/outside.bin" ../../../../../../etc/passwd d/../../outside.bin /dev/zero .. . \
    ./train_000000.bin; do
    manifest "$name"
    for program in 'sgt-inspect d' 'sgt-inspect d --batch 0' 'sgt-train --data d --run r --device cpu'; do
        # shellcheck disable=SC2086
        hostile 'lies outside the folder: refused' $program
    done
done
manifest '\u001b]0;owned\u0007\u009b31m.bin'
hostile 'd/\x1b]0;owned\x07\xc2\x9b31m.bin: missing, but d/manifest.json lists it' sgt-inspect d --batch 0
for file in deep many; do
    { printf '{"version":1,"options":' && cat $file.json && printf '}'; } > d/manifest.json
    [ $file = deep ] && message='maximum parsing depth reached' || message='JSON values, too many for a file of this kind'
    hostile "$message" sgt-inspect d
    hostile "$message" sgt-train --data d --run r --device cpu
done
absent r
rm d/manifest.json

# A shard may be a symbolic link to another disk. Its target is read but never written.
mkdir linked
ln -s ../outside.bin linked/train_000000.bin
run 0 sgt-inspect linked --batch 0 --seq-len 4
cp outside.bin as-it-was

# An index of 16 GiB is not read into memory. (tests/loader has shards and indexes with false numbers,
# of sgt and of Megatron-LM.)
truncate -s 16G d/train_000000.idx 2> .truncate || skip "no file of 16 GiB here: $(cat .truncate)"
hostile 'd/train_000000.idx: too large: a file of this kind may have at most 1228808 bytes' \
    sgt-inspect d --batch 0 --sampling documents --seq-len 4
hostile 'd/train_000000.idx' sgt-inspect d --verify
rm d/train_000000.idx

# ---- checkpoints ----
run 0 sgt-train $small --quiet --keep 1 --run run --steps 2
checkpoint=run/step-00000002
cp -r $checkpoint whole
again() { rm -rf hurt && cp -r whole hurt; }
tensors() { # JSON: make it the header of hurt/model.safetensors
    again
    { le64 ${#1} && printf '%s' "$1"; } > hurt/model.safetensors
}
damaged() { # MESSAGE
    hostile "$1" sgt-inspect hurt
    hostile "$1" sgt-train $small --run r --init hurt --steps 1
    absent r
}
small="--data d --seq-len 16 --batch-size 2 --device cpu --threads 1 --quiet"
tensors '{"\u001b[2J\u0007":{"dtype":"X","shape":[],"data_offsets":[0,0]}}'
damaged 'tensor \x1b[2J\x07: unknown type'
tensors "{\"a\":$(deep)}"
damaged 'maximum parsing depth reached'
again
{ le64 $(wc -c < many.json) && cat many.json; } > hurt/model.safetensors
damaged 'more than 262144 JSON values'
rm hurt/model.safetensors
mkfifo hurt/model.safetensors
damaged 'hurt/model.safetensors: not a regular file'
rm hurt/model.safetensors
for file in /etc/passwd ../outside.bin .. ''; do
    printf '{"weight_map":{"wte.weight":"%s"}}' "$file" > hurt/model.safetensors.index.json
    [ "$file" = .. ] && message='hurt/..: not a regular file' || message='wte.weight: its value is not the name of a file in this folder'
    hostile "$message" sgt-train $small --run r --init hurt --steps 1
done
{ printf '{"weight_map":' && cat many.json && printf '}'; } > hurt/model.safetensors.index.json
hostile 'JSON values' sgt-train $small --run r --init hurt --steps 1
absent r
for file in config state; do
    again
    cp deep.json hurt/$file.json
    hostile 'maximum parsing depth reached' sgt-inspect hurt
    again
    cp many.json hurt/$file.json
    hostile "hurt/$file.json: " sgt-inspect hurt
done

# ---- runs: paths that lead out of a run are not followed ----
small="$small --model 1x16x2 --lr 1e-3 --eval-every 0 --keep 1"
resume="sgt-train $small --run run --resume --steps 3"
for latest in ../../etc /etc ../whole "$(printf 'step-\033[2J')"; do
    printf '%s\n' "$latest" > run/latest
    within 2000000 sgt-inspect run
    harmless 2000000 sgt-inspect run --json
    rm -rf gone-on && cp -r run gone-on
    harmless 4000000 sgt-train $small --run gone-on --resume --steps 3
    exists gone-on/step-00000003
done
fresh() { rm -rf run && cp -r kept run; }
echo step-00000002 > run/latest
cp -r run kept
cp run/log.jsonl log
echo mine > precious
ln -sf ../precious run/log.jsonl # the target is not the run's log, so a new log replaces the link
within 4000000 $resume
[ $code -eq 0 ] && [ ! -L run/log.jsonl ] || fail 'a log that is a link'
echo mine | cmp -s precious - || fail 'a file outside the run was written to'
for to in ../log ../nothing-yet; do # the target is empty or missing
    fresh
    ln -sf $to run/log.jsonl
    within 4000000 $resume
    [ $code -eq 1 ] || fail "exit code $code, not 1"
    stderr_has "sgt-train: run/log.jsonl: is a symbolic link, which sgt does not write through (remove it)"
done
same log kept/log.jsonl
absent nothing-yet
fresh
rm run/log.jsonl
mkfifo run/log.jsonl
hostile 'run/log.jsonl: is not a regular file' sgt-inspect run
within 4000000 $resume
[ $code -eq 1 ] || fail "exit code $code, not 1"
stderr_is 'sgt-train: run/log.jsonl: is not a regular file'
fresh
{ cat log && repeat '{"step":1}' 20000000; } > run/log.jsonl
hostile 'run/log.jsonl: line 3: expected a JSON object' sgt-inspect run
harmless 4000000 $resume
facts log > .facts1 && facts run/log.jsonl | head -2 > .facts2 && same .facts1 .facts2
[ "$(wc -l < run/log.jsonl)" -eq 3 ] || fail 'the line that no run writes was kept'
mkdir elsewhere
echo mine > elsewhere/model.safetensors
ln -s ../elsewhere run/step-00000001
harmless 4000000 sgt-train $small --run run --resume --steps 5
absent run/step-00000001
exists elsewhere/model.safetensors

# ---- vocabularies ----
echo hello > text
vocabulary() { hostile "$1" sgt-tokenize --vocab v text out && absent out; }
mkdir v
{ printf '{"model":{"vocab":{},"merges":' && cat deep.json && printf '}}'; } > v/tokenizer.json
vocabulary 'maximum parsing depth reached'
{ printf '{"model":{"vocab":{},"merges":' && cat many.json && printf '}}'; } > v/tokenizer.json
vocabulary 'more than 5242880 JSON values'
rm v/tokenizer.json
{ echo '#version: 0.2' && yes 'a b' | head -n 4000000; } > v/merges.txt
vocabulary 'v: tokens 256 and 257 are the same: ab'
echo '{"a":0,"b":1,"ab":2}' > v/vocab.json
most=204800 # KiB: enough for 2,097,152 merges, which a vocabulary of 1,048,576 ids may have
vocabulary 'v: has more than 2097152 merges'
most=102400
rm v/vocab.json
truncate -s 129M v/merges.txt
vocabulary 'v/merges.txt: too large: a file of this kind may have at most 134217728 bytes'
# Ranks in an order that no training gives: 200,000 long tokens come before all others. Their halves
# are never tokens, or are all completed by the last token.
for way in never last; do
    awk -v way=$way 'BEGIN {
        split("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", digit, "")
        for (i = 0; i < 256; i++) print digit[int(i / 4) + 1] digit[i % 4 * 16 + 1] "==", id++
        for (n = 0; n < 200000; n++) {
            three[n] = digit[int(n / 262144) + 1] digit[int(n / 4096) % 64 + 1] digit[int(n / 64) % 64 + 1] digit[n % 64 + 1]
            print (way == "never" ? "z" substr(three[n], 2) : "////" three[n]), id++
        }
        for (i = 0; i < 12500; i++)
            print digit[int(i / 1024) + 1] digit[int(i / 16) % 64 + 1] digit[i % 16 * 4 + 1] "=", id++
        for (n = 0; n < 200000; n++) print three[n], id++
        print "//8=", id++
        print "////", id++
    }' > v/late.tiktoken
    harmless 409600 sgt-tokenize --quiet --force --vocab v/late.tiktoken text out
    rm -r out
done

# ---- inputs of sgt-tokenize ----
echo @list > list
hostile '@list: No such file or directory' sgt-tokenize @list out
repeat 0123456789 3000000 > list
hostile 'list: line 1: a path is longer than 4096 bytes' sgt-tokenize @list out
printf '\033[31m\n' > list
hostile 'list: line 1: \x1b[31m: No such file or directory' sgt-tokenize @list out
name=$(printf 'a\033]0;owned\007\302\233m\r.gz')
cp text "$name"
hostile 'a\x1b]0;owned\x07\xc2\x9bm\x0d.gz: offset 2: not gzip' sgt-tokenize "$name" out
absent out
mv "$name" "${name%.gz}"
harmless 1000000 sgt-tokenize "${name%.gz}" "$name"
within 1000000 sgt-inspect "$name"
within 1000000 sgt-inspect "$name" --verify
harmless 1000000 sgt-inspect "$name" --json

# Decoded text does not control the terminal. Characters that are cut into several tokens are
# printed whole.
if command -v script > /dev/null; then
    shows() { # FILE: print what --decode shows of its tokens
        rm -rf out-shown
        run 0 sgt-tokenize --quiet "$1" out-shown
        script -qec 'sgt-inspect out-shown --decode 1:1000000 2> /dev/null' /dev/null < /dev/null > .shown 2> .stderr ||
            fail "$1: exit $?"
        tr -d '\r' < .shown > shown
        cases=$((cases + 1))
    }
    printf 'x\033[31mred\007\177\377 \303( \302\205.\015\344\270' > wild
    shows wild
    printf 'x\\x1b[31mred\\x07\\x7f\\xff \\xc3( \\xc2\\x85.\\x0d\\xe4\\xb8\n' > want
    same want shown
    yes "$(printf '\344\270\226\347\225\214 \360\220\215\210')" | head -n 15000 > many
    shows many
    same many shown
fi

# Deeply nested JSON is skipped in other fields, and refused as the value of the text field.
{ printf '{"a":' && deep && printf ',"text":"x"}\n'; } > deep.jsonl
harmless 500000 sgt-tokenize deep.jsonl out
{ printf '{"text":' && repeat '[' 1000000 && printf '\n'; } > deep.jsonl
hostile 'deep.jsonl: line 1:' sgt-tokenize deep.jsonl out-deep

# Small files that decompress to large ones are read in parts, so memory use stays low.
much=180000000 # more bytes than the memory that is allowed
head -c $much /dev/zero | tr '\0' 'y' | gzip -1 > bomb.gz
head -c $much /dev/zero | zstd -q > bomb.zst 2> /dev/null || rm bomb.zst
printf '#!/bin/sh\nyes flood | head -c %s\n' $much > flood
chmod +x flood
cp text bomb.x
for file in bomb.gz bomb.zst bomb.x; do
    [ -e $file ] || continue
    harmless 163840 sgt-tokenize --threads 2 --filter ".x=$PWD/flood" $file out-bomb
    rm -rf out-bomb
done
same outside.bin as-it-was

# touched COMMAND...: run it. Each path that it opens, creates, renames or removes must lie below
# this folder, in the system's folders, or in the user's cache folder. The files outside.bin and
# precious must not be touched.
touched() { # COMMAND...
    strace -f -o trace -e trace=%file "$@" > .stdout 2> .stderr < /dev/null
    calls='openat|open|creat|unlink|unlinkat|rename|renameat2?|mkdir|mkdirat|truncate|link|linkat|symlink'
    sed -nE "s/^[0-9]+ +($calls)\(//p" trace |
        grep -oE '"([^"\\]|\\.)*"' | tr -d '"' | grep -E '^/|(^|/)\.\.(/|$)|outside|precious' |
        grep -vE '^/(lib|usr|proc|sys|etc/ld|etc/localtime$)|^/dev/(null|urandom|shm)' |
        grep -vE "^$XDG_CACHE_HOME(/sgt(/|$)|$)" > outside
    cases=$((cases + 1))
    [ ! -s outside ] || fail "$* touched $(head -1 outside)"
}
if strace -o .traced true 2> /dev/null && [ -z "$sanitized" ]; then
    rm -rf r out
    for name in ../outside.bin /etc/passwd ../../outside.bin; do
        manifest "$name"
        touched sgt-inspect d --verify
        touched sgt-train $small --run r
    done
    rm d/manifest.json
    fresh
    echo ../../etc > run/latest
    ln -sf ../precious run/log.jsonl
    touched sgt-train $small --run run --resume --steps 3
    again
    rm hurt/model.safetensors
    printf '{"weight_map":{"wte.weight":"/etc/passwd"}}' > hurt/model.safetensors.index.json
    touched sgt-train $small --run r --init hurt --steps 1
    touched sgt-tokenize --vocab v text out
fi
echo "$cases hostile files"
