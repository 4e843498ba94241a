# all.sh: sgt-bench all. Runs the other benchmarks one after the other, each within its share of the
# time, and writes a page of their tables and pictures. sgt-bench (all.c) carries this script and
# starts it with its options in the environment: $program $device $cuda $about_device $threads
# $model $data $text $size $ms $quick $page $shown $parts $json $quiet; and with facts about the
# machine: $cpu $cores $level $machine. An option that was not given is empty.
# shellcheck disable=SC2154
set -u
LC_ALL=C
export LC_ALL
names='tokenize loader limits gemm attention step sample ablation'

say() { [ -n "$quiet" ] || printf 'sgt-bench all: %s\n' "$*" >&2; }
die() { printf 'sgt-bench all: %s\n' "$*" >&2 && exit 1; }
usage() { printf "sgt-bench all: %s\ntry 'sgt-bench all --help'\n" "$*" >&2 && exit 2; }
now() { date +%s%3N; }
seconds() { awk "BEGIN { printf \"%.3f\", $1 / 1000 }"; }
clock() { awk "BEGIN { s = int($1 / 1000 + .5); h = int(s / 3600)
    if (h) printf \"%d:\", h
    printf \"%02d:%02d\", s / 60 % 60, s % 60 }"; }
size_of() { awk "BEGIN { n = $1; split(\"KiB MiB GiB TiB\", u)
    for (i = 1; (n /= 1024) >= 1024;) i++
    printf \"%.1f %s\", n, u[i] }"; }
html() { sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g'; }
string() { printf '%s' "$1" | tr '\000-\037' ' ' | sed 's/[\\"]/\\&/g; s/^/"/; s/$/"/'; } # print a JSON string
expected() { case ",${parts:-$1}," in *",$1,"*) ;; *) false ;; esac; }
# share PART: print the part's share of 285 seconds
share() { case $1 in
    tokenize) echo 25 ;; loader) echo 30 ;; limits) echo 65 ;; gemm) echo 35 ;;
    attention | sample) echo 20 ;; *) echo 45 ;; esac; }

began=$(now)

# ---- what was asked for ----

case ,$parts, in *,,?* | *?,,)
    usage "--parts $parts: expected one to 8 names with commas between them" ;;
esac
for name in $(echo "$parts" | tr ',' ' '); do
    case " $names " in *" $name "*) ;; *)
        usage "--parts $name: no such part ($(echo "$names" | sed 's/ /, /g'))" ;;
    esac
done
count=0 later=0
for name in $names; do
    expected "$name" && count=$((count + 1)) later=$((later + $(share "$name")))
done
case $page in */*) above=${page%/*}/ ;; *) above=. ;; esac
[ -d "$above" ] || die "$page: No such file or directory"
[ -w "$above" ] || die "$page: Permission denied"
page=$(cd "$above" && pwd)/${page##*/}

work=$(mktemp -d "${TMPDIR:-/tmp}/sgt-bench.XXXXXX" 2> /dev/null) ||
    die "${TMPDIR:-/tmp}: no folder can be made there (TMPDIR names another place)": \
        'No such file or directory'
child=
trap 'rm -rf "$work" "$page.tmp"' EXIT
trap '[ -z "$child" ] || { kill "$child" && wait "$child"; } 2> /dev/null
    printf "sgt-bench all: interrupted\n" >&2; exit 130' INT TERM

# ---- data ----

# from_there PATH: print the absolute path of a folder or file, to be used in $work; a name that
# does not exist is printed as it is
from_there() { realpath -e -- "$1" 2> /dev/null || printf '%s\n' "$1"; }
set_bytes=$size
[ -z "$quick" ] || set_bytes=$((size / 8))
# Use at most a quarter of the free space: a full disk would slow everything down.
room=$(($(df -Pk "$work" | awk 'END { print $4 }') * 256))
text_bytes=$((size / 8))
[ "$set_bytes" -le "$room" ] || set_bytes=$room text_bytes=$((room / 8))
[ "$set_bytes" -ge 1048576 ] || set_bytes=1048576
own_text=text own_set=set tokens=tokens
[ -z "$text" ] || own_text=$(from_there "$text")
[ -z "$data" ] || own_set=$(from_there "$data") tokens=$own_set
cd "$work" || exit 1

# make_text: make files of 1 MiB with sentences of words from GPT-2's vocabulary, drawn by Zipf's
# law
make_text() {
    mkdir text && echo . > one && sgt-tokenize --quiet one words || exit 1
    grep -o '"Ġ[a-z]*":' words/tokenizer.json | sed 's/"Ġ//; s/":.*//' |
        awk -v bytes="$text_bytes" '{ word[NR] = $0 } END {
            srand(1)
            for (left = bytes; left > 0; left -= room) {
                file = sprintf("text/%06d.txt", n++)
                room = left < 1048576 ? left : 1048576
                for (at = 0; at < room; at += length(s) + 1) {
                    s = word[int(2.7 * exp(rand() * log((NR + 2.7) / 2.7)) - 1.7)]
                    if (begins) s = toupper(substr(s, 1, 1)) substr(s, 2)
                    r = rand()
                    s = s ((begins = r < .08) ? r < .008 ? ".\n" : "." : r < .17 ? "," : "")
                    printf "%s ", s > file
                }
                close(file)
            }
        }'
}
# make_set: make two shards that repeat the text's tokens, with llm.c's header
make_set() {
    mkdir set && n=$((set_bytes / 4)) && tail -c +1025 tokens/train_000000.bin > body
    for shard in set/train_000000.bin set/train_000001.bin; do
        {
            for word in 20240520 1 $n; do
                # shellcheck disable=SC2059
                for shift in 0 8 16 24; do printf "\\$(printf %o $((word >> shift & 255)))"; done
            done
            head -c 1012 /dev/zero
            while cat body; do :; done 2> /dev/null | head -c $((2 * n))
        } > "$shard"
    done
}
sets=
[ -n "$data" ] || ! { expected loader || expected limits || expected ablation; } || sets=1
if [ -z "$text" ] && { expected tokenize || [ -n "$sets" ]; }; then make_text; fi
if [ -n "$sets" ]; then
    sgt-tokenize --quiet "$own_text" tokens || exit 1
    if expected loader || expected limits; then make_set; fi
fi

# ---- the parts ----

# run SECONDS COMMAND...: write the command's output to `said` and its picture to picture.svg; on
# failure, set $why
run() {
    limit=$1
    shift
    [ "$limit" -gt 0 ] || { why='the parts before it took all the time there is' && return 1; }
    begun=$(now)
    timeout -k 5 "$((limit / 1000)).$(printf %03d $((limit % 1000)))" "$@" \
        > said 2> errors < /dev/null &
    child=$!
    code=0
    wait "$child" || code=$?
    child=
    why="$program: exit $code: $(tail -n 1 errors)"
    # Exit code 137 means killed: because the command did not end within 5 s of being asked to, or
    # earlier, by the system.
    [ $code -ne 137 ] || [ $(($(now) - begun)) -lt "$limit" ] || code=124
    [ $code -ne 124 ] || why="it did not end within $(((limit + 500) / 1000)) s"
    [ $code -eq 0 ]
}

part() { # NAME TITLE ARGUMENT...
    name=$1 title=$2
    shift 2
    expected "$name" || return 0
    later=$((later - $(share "$name")))
    from=$(now) command="sgt-bench $*"
    printf '<section id="%s">\n<h2>%s</h2>\n<p class="command">$ %s</p>\n' "$name" "$title" \
        "$(printf '%s' "$command" | html)" >> body.html
    [ -z "$threads" ] || [ "$1" = loader ] || set -- "$@" --threads "$threads"
    rm -f picture.svg
    left=$((ms - (from - began) - later * ms / 285))
    if run $left "$program" "$@" --plot picture.svg ${json:+--json}; then
        measured=1
        took=$(($(now) - from))
        say "$name took $(seconds "$took") s"
        [ -n "$json$quiet" ] || { printf '$ %s\n' "$command" && cat said && echo; }
        {
            printf '<figure class="bench" tabindex="0">\n'
            cat picture.svg && printf '</figure>\n'
            printf '<pre class="card" tabindex="0">' && html < said && printf '</pre>\n</section>\n'
        } >> body.html
        result="\"result\": $(cat said)"
    else
        took=$(($(now) - from))
        say "$name is left out: $why"
        printf '<p class="none">Left out: %s</p>\n</section>\n' \
            "$(printf '%s' "$why" | html)" >> body.html
        result="\"left_out\": $(string "$why")"
    fi
    printf '%s{"part": "%s", "command": %s, "seconds": %s, %s}' "$comma" "$name" \
        "$(string "$command")" "$(seconds "$took")" "$result" >> parts.json
    comma=', '
}

[ -z "$about_device" ] || say "$about_device"
say "$count part$([ "$count" -eq 1 ] || echo s), in $(clock "$ms") at most"
: > body.html
: > parts.json
measured='' comma=''
a_model="${model:+--model $model}" device="--device $device"
rounds=3 small='--model 4x256x4 --seq-len 128'
[ -z "$cuda" ] || rounds=1 small='--model gpt2'
[ -z "$model" ] || small=$a_model
if [ -n "$quick" ]; then
    loader='--seconds .5 --turns 3' gemm='--seconds .02'
    step='--steps 3 --warmup 1' sample='--tokens 16 --turns 1'
    ablation='--steps 2 --warmup 1 --rounds 1'
else
    loader='' gemm='' step='--steps 10 --warmup 2' sample=''
    ablation="--steps 5 --warmup 1 --rounds $rounds"
fi
# shellcheck disable=SC2086 # lists of words
{
    part tokenize 'Text to tokens' tokenize "$own_text"
    part loader 'Batches' loader "$own_set" $loader
    part limits 'Batches beside their limits' loader "$own_set" --limits all $loader
    part gemm 'Matrix products' gemm $a_model $device $gemm
    part attention 'Attention' attention $device
    part step 'A training step' step --parts $a_model $device $step
    part sample 'Sampling' sample $a_model $sample
    part ablation 'What each technique brings' ablation --data "$tokens" $small $device $ablation
}
[ -n "$measured" ] || die 'nothing could be measured'

# ---- the page ----

name=$(printf '%s' "$cpu" | html)
{
    cat << 'END'
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<style>
body { margin: 0 auto; max-width: 64rem; padding: 1rem; font: 15px/1.5 system-ui, sans-serif;
  background: Canvas; color: CanvasText }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.2rem; margin: 2rem 0 0 }
svg { max-width: 100%; height: auto } pre, .command { font: 13px/1.45 ui-monospace, monospace }
pre, figure { overflow-x: auto; margin: .5rem 0 }
pre { border: 1px solid #8886; border-radius: 6px; padding: .75rem }
.about, .none, footer, li { opacity: .75 }
</style>
END
    printf '<title>%s · sgt-bench</title>\n</head>\n<body>\n<main>\n' "$name"
    printf '<header>\n<h1>%s</h1>\n<p class="about">%s · measured in %s</p>\n</header>\n' "$name" \
        "$(printf '%s' "$machine" | html)" "$(clock $(($(now) - began)))"
    own='made for this page</li>'
    printf '<ul class="notes">\n'
    [ -n "$text" ] ||
        printf "<li>text: %s of words drawn as often as words are (Zipf's law), %s\n" \
            "$(size_of "$text_bytes")" "$own"
    [ -n "$data" ] || printf '<li>set: %s of its tokens, over and over, in two shards, %s\n' \
        "$(size_of "$set_bytes")" "$own"
    printf '<li>A star marks the best of a table; a dashed line is the limit.</li>\n</ul>\n'
    cat body.html
    printf '<footer>Made by %s, %s.</footer>\n</main>\n</body>\n</html>\n' \
        "$("$program" --version)" "$(date -u '+%Y-%m-%d %H:%M UTC')"
} > page.html
{ cp page.html "$page.tmp" && mv -f "$page.tmp" "$page"; } || die "$page: it could not be written"
took=$(($(now) - began))
say "$shown is written, after $(clock "$took")"
[ -z "$json" ] ||
    printf '{"cpu": %s, "cores": %s, "level": "%s", "page": %s, "seconds": %s, "parts": [%s]}\n' \
        "$(string "$cpu")" "$cores" "$level" "$(string "$shown")" "$(seconds "$took")" \
        "$(cat parts.json)"
