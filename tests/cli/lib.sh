# lib.sh: functions for the tests of the programs. A test is a script tests/cli/NAME.sh. run.sh runs
# it after this file, in an empty folder of its own, with the built programs on PATH and the path of
# the source tree in $ROOT:
#     printf 'hello\n' > in.txt
#     run 0 sgt-tokenize in.txt out          # run it; the exit code must be 0
#     stdout_is '2 tokens'                   # compare all of stdout, without a final newline
#     stderr_is ''
#     run_failure 'nowhere: No such file or directory' sgt-tokenize nowhere out
#
# The first failed assertion ends the test and prints the command and its output, even if the
# assertion is in a subshell, such as the end of a pipeline. `skip WHY` ends the test as SKIP.

set -u
LC_ALL=C
TERM=xterm # for tests that use a terminal
export LC_ALL TERM
trap 'exit 1' TERM

fail() {
    echo "FAIL: $*"
    if [ -f .ran ]; then
        echo "  command: $(cat .ran)"
        sed 's/^/  stdout: /' .stdout | head -20
        sed 's/^/  stderr: /' .stderr | head -20
    fi
    kill $$
    exit 1
}

skip() {
    echo "SKIP: $*"
    exit 77
}

# run EXIT COMMAND...: run COMMAND with the caller's stdin; fail unless its exit code is EXIT
run() {
    want=$1
    shift
    echo "$*" > .ran
    code=0
    "$@" > .stdout 2> .stderr || code=$?
    [ "$code" -eq "$want" ] || fail "exit code $code, not $want"
}

stdout_is() { [ "$(cat .stdout)" = "$1" ] || fail "stdout is not: $1"; }
stderr_is() { [ "$(cat .stderr)" = "$1" ] || fail "stderr is not: $1"; }
stdout_has() { for needle; do grep -qF -e "$needle" .stdout || fail "stdout lacks: $needle"; done; }
stderr_has() { for needle; do grep -qF -e "$needle" .stderr || fail "stderr lacks: $needle"; done; }
# fact [NAME PATTERN]...: check the values that sgt_print_facts has printed for each name
fact() {
    while [ $# -gt 0 ]; do
        grep -qE "^  $1 {3,}$2\$" .stdout || fail "not a fact: $1 $2: $(cat .stdout)"
        shift 2
    done
}
stdout_matches() { grep -qE -e "$1" .stdout || fail "no line of stdout matches: $1"; }
stderr_matches() { grep -qE -e "$1" .stderr || fail "no line of stderr matches: $1"; }
stdout_lines() { [ "$(wc -l < .stdout)" -eq "$1" ] || fail "stdout has $(wc -l < .stdout) lines, not $1"; }
stderr_lines() { [ "$(wc -l < .stderr)" -eq "$1" ] || fail "stderr has $(wc -l < .stderr) lines, not $1"; }

# run_silent COMMAND...: it must succeed, with nothing on stderr
run_silent() {
    run 0 "$@"
    stderr_is ''
}
# These run COMMAND, which must succeed, and check its output. run_says TEXT COMMAND...: stdout is
# TEXT. run_prints: stdout contains TEXT. run_notes: stderr contains TEXT. run_tells: stderr is
# TEXT. run_prints_like REGEX COMMAND..., run_notes_like: a line of stdout, or of stderr, matches.
# run_same FILE COMMAND...: stdout equals FILE.
run_says() { run_and_find stdout_is "$@"; }
run_prints_like() { run_and_find stdout_matches "$@"; }
run_same() { run_and_find 'same .stdout' "$@"; }
run_prints() { run_and_find stdout_has "$@"; }
run_notes() { run_and_find stderr_has "$@"; }
run_notes_like() { run_and_find stderr_matches "$@"; }
run_tells() { run_and_find stderr_is "$@"; }
run_and_find() {
    assert=$1 found=$2
    shift 2
    run 0 "$@"
    $assert "$found"
}

# speaker PROGRAM [ARGUMENT]...: print how its messages begin: with its name, for sgt-bench with its
# part, such as `loader`
speaker() { if [ "$1" = sgt-bench ]; then echo "$1 $2"; else echo "$1"; fi; }

# run_failure MESSAGE PROGRAM [ARGUMENT]...: the program must fail as all programs do: exit code 1,
# an empty stdout, and only MESSAGE on stderr. run_misuse: the same for wrong usage, with exit code
# 2. run_usage: like run_misuse, with a hint after MESSAGE
run_failure() { run_fails 1 "$@"; }
run_misuse() { run_fails 2 "$@"; }
run_usage() {
    hinted="$1
try '$(shift && speaker "$@") --help'"
    shift
    run_fails 2 "$hinted" "$@"
}
# run_unforced TEXT PROGRAM...: like run_failure, if the message is TEXT and a hint at --force
run_unforced() {
    unforced="$1 (--force replaces it)"
    shift
    run_failure "$unforced" "$@"
}
run_fails() {
    ends=$1 failure=$2
    shift 2
    run "$ends" "$@"
    stdout_is ''
    stderr_is "$(speaker "$@"): $failure"
}

# run_failure_about TEXT PROGRAM [ARGUMENT]..., run_failure_like REGEX PROGRAM...: like run_failure,
# if the message contains TEXT, or matches REGEX
run_failure_about() { run_one_line stderr_has "$@"; }
run_failure_like() { run_one_line stderr_matches "$@"; }
run_one_line() {
    assert=$1 failure=$2
    shift 2
    run 1 "$@"
    stdout_is ''
    stderr_lines 1
    $assert "$failure"
}

# wait_for_handler PID: wait until the process has a handler for SIGTERM
wait_for_handler() {
    tries=0
    until mask=$(sed -n 's/^SigCgt:[^0-9a-f]*//p' "/proc/$1/status" 2> /dev/null) &&
        [ $((0x${mask:-0} >> 14 & 1)) -eq 1 ]; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail 'no handler for SIGTERM after 30 s'
        sleep .05
    done
}

# ended EXIT PID: wait for a background process; fail unless its exit code is EXIT
ended() {
    code=0
    wait "$2" || code=$?
    [ "$code" -eq "$1" ] || fail "exit code $code, not $1: $(cat .stderr 2> /dev/null)"
}

# run_terminated COMMAND...: start COMMAND, and send SIGTERM once it has a signal handler; it must
# exit with 130
run_terminated() {
    echo "$*" > .ran
    "$@" > .stdout 2> .stderr &
    pid=$!
    wait_for_handler $pid
    sleep .5
    kill -TERM $pid
    ended 130 $pid
}
# run_interrupted COMMAND...: like run_terminated; the only line of output must say that it was
# interrupted
run_interrupted() {
    run_terminated "$@"
    stdout_is ''
    stderr_matches ': interrupted$'
    stderr_lines 1
}

# begun FILE COMMAND...: start COMMAND, set $pid, and wait until FILE is not empty; return 1 if
# COMMAND ends before
begun() {
    once=$1
    shift
    echo "$*" > .ran
    "$@" < "${held:-/dev/null}" > .stdout 2> .stderr &
    pid=$!
    until [ -s "$once" ]; do kill -0 $pid 2> .kill || return 1 && sleep 0.005; done
}
# begun_on_a_pipe FILE COMMAND...: like begun, with a standard input that has no data and does not
# end
begun_on_a_pipe() {
    rm -f .pipe && mkfifo .pipe && exec 3<> .pipe
    held=.pipe
    begun "$@" || fail 'it ended too early'
    held=
}
# run_stopped SIGNAL FILE COMMAND...: start COMMAND, and send SIGNAL once FILE is not empty; it must
# exit with 130
run_stopped() {
    with=$1
    shift
    begun "$@" || fail 'it ended too early'
    kill -"$with" $pid
    ended 130 $pid
}
# killed_at FILE COMMAND...: start COMMAND, and kill it once FILE is not empty, unless it ends
# before
killed_at() {
    begun "$@" || :
    end_begun
}
end_begun() {
    kill -KILL $pid 2> .kill || :
    wait $pid 2> .wait || :
}

# check WHAT COMMAND...: fail, and print WHAT, unless COMMAND succeeds
check() {
    what=$1
    shift
    "$@" || fail "$what"
}
# is THIS THAT: fail, and print both, unless they are equal
is() { [ "$1" = "$2" ] || fail "$1 is not $2"; }
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }
# same_folders [-x NAME] A B: fail unless both folders have the same files, except those called NAME
same_folders() { diff -r "$@" > .diff 2>&1 || { head -5 .diff; fail "folders differ: $*"; }; }
exists() { [ -e "$1" ] || fail "$1 is not there"; }
absent() { [ ! -e "$1" ] || fail "$1 should not be there"; }
# texts DIR BYTES: write the first BYTES of a fixed text to DIR, which may exist, in files of 5,000
# bytes (part-00, ...)
texts() { mkdir -p "$1" && head -c "$2" "$ROOT/tokenize/vocab/gpt2.bpe" | split -d -b 5000 - "$1/part-"; }
# field NAME FILE: print the value of a number or string field of one-line JSON
field() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2" | head -1; }

# find_python MODULES: set $python to $PYTHON or the machine's first Python that imports MODULES, or
# to nothing
find_python() {
    for python in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3; do "$python" -c "import $1" 2> /dev/null && return; done
    python=
}

# terminal COLUMNS COMMAND: run COMMAND on a terminal of that width. ./shown gets the output, with a
# new line for each return of the cursor. Skip the test if there is no terminal.
terminal() {
    command -v script > /dev/null || skip 'script is not there: nothing was shown on a terminal'
    script -qec "stty cols $1; $2" /dev/null < /dev/null > .shown 2> .stderr || fail "exit $?: $(cat .stderr .shown)"
    tr '\r' '\n' < .shown | sed 's/\x1b\[K//g' | grep -v '^$' > shown
}
widest() { awk '{ if (length > n) n = length } END { print n }' "$1"; } # FILE: print the length of its longest line

# repeated TIMES FILE...: print the files that many times
repeated() {
    times=$1
    shift
    while [ "$times" -gt 0 ] && cat "$@"; do times=$((times - 1)); done
}

# For sets of shards: ids_of SHARD and starts_of SHARD.idx print numbers on one line; paths_of SET
# prints the paths of its inputs on one line.
ids_of() { tail -c +1025 "$1" | od -An -v -tu2 | xargs; }
starts_of() { od -An -v -tu8 -w8 "$1" | xargs; }
paths_of() { sed 's/^{"path": \(".*"\), "size".*/\1/' "$1/sources.jsonl" | paste -sd' '; }

# From here on, use the programs whose CUDA backend runs in emulation on the CPU.
cuda_on_the_host() {
    programs=$BIN/../host/bin
    [ -e "$programs/../lib/libsgt-cuda.so" ] || skip 'the CUDA backend for the host is not built'
    PATH=$programs:$PATH
}

# Succeed if the programs are built with a sanitizer, whose shadow memory takes terabytes and is
# freed slowly.
is_sanitized() { nm "$BIN/sgt-inspect" 2> /dev/null | grep -qE '__(a|t|m)san_init'; }

# Skip the test unless strace works. Call it in tests that trace system calls, make the n-th call
# fail, or kill the process at that call.
need_strace() {
    ASAN_OPTIONS=detect_leaks=0 # a sanitizer's leak checker cannot work in a traced process
    export ASAN_OPTIONS
    command -v strace > /dev/null || skip 'strace is not there'
    strace -o .traced true 2> /dev/null || skip 'strace may not trace here'
}

# inodes PATH...: print inode and name, one line per file. (ls aligns the inodes, so remove the
# blanks.)
inodes() { ls -i "$@" 2> /dev/null | sed 's/^ *//'; }

# From here on, work in a folder in memory, if possible. On a disk, hundreds of runs would wait for
# the flush of every shard.
work_in_memory() {
    scratch=$(mktemp -d /dev/shm/sgt-cli.XXXXXX 2> /dev/null) || return 0
    trap 'cd / && rm -rf "$scratch"' EXIT
    trap 'exit 1' INT TERM
    cd "$scratch" || exit 1
}

# compiler: set $CC and $CXX to this build's compilers of C and C++, and $san to its sanitizer
# option
compiler() {
    CC=$(sed 's/ .*//' "$BIN/../flags") CXX=$(sed 's/ .*//' "$BIN/../flags-cxx" 2> /dev/null || echo c++)
    san=$(grep -o -e '-fsanitize=[a-z,]*' "$BIN/../flags" | head -1)
}

# own_program [PREFIX]: write own.c, a user's program of both libraries, which includes
# <PREFIXsgt_loader.h>. Set $own to what it prints.
own_program() {
    sed "s|<sgt_|<${1:-}sgt_|" > own.c << 'END'
#include <sgt_loader.h>
#include <sgt_tokenize.h>
#include <stdio.h>
int main(void)
{
    sgt_error err;
    sgt_loader *l;
    sgt_loader_options o = {.size = sizeof o, .data = "nowhere"};
    sgt_vocab *v;
    if (sgt_vocab_load(&v, "gpt2", NULL, &err) < 0 || sgt_loader_open(&l, &o, &err) == 0) return 1;
    printf("%u %s\n", sgt_vocab_size(v), err.text);
    sgt_vocab_free(v);
    sgt_fail(&err, SGT_EUSAGE, "%s", "a\nb");
    puts(err.text);
    return 0;
}
END
    own='50257 nowhere: No such file or directory (make a folder of shards with sgt-tokenize)
a\x0ab'
}

# codecs_of CC: print the linker options of the Parquet codecs that a build with this compiler uses
codecs_of() {
    for codec in snappy-c.h:-lsnappy lz4.h:-llz4; do
        echo "#include <${codec%:*}>" | "$1" -E -x c - > .has 2>&1 && echo "${codec#*:}"
    done | paste -sd' '
}
