# attempt.sh: how gpu-check.sh looks at the machine and runs a program: with a time limit, a log and a verdict.
# shellcheck shell=sh disable=SC2154

cuda=${CUDA_HOME:-/usr/local/cuda}
PATH=$PATH:$cuda/bin:/usr/local/nvidia/bin # compute-sanitizer; nvidia-smi where a container mounts the driver
export PATH

# Find folders with cuBLASLt, cuDNN and NCCL, from a toolkit or PyTorch's wheels. Python keeps its own libraries.
library_folders() {
    for d in "$cuda/lib64" "$cuda/extras/CUPTI/lib64" /usr/local/nvidia/lib64; do [ ! -d "$d" ] || echo "$d"; done
    "$PYTHON" -c 'import glob, importlib.util, os
spec = importlib.util.find_spec("nvidia")
for base in spec.submodule_search_locations or [] if spec else []:
    print("\n".join(sorted(glob.glob(os.path.join(base, "*", "lib")))))' 2> /dev/null
}
system_path=${LD_LIBRARY_PATH:-}
our_path="$root/lib${system_path:+:$system_path}$(library_folders | sed 's/^/:/' | tr -d '\n')"

# Print the path of the library that our programs would load, or nothing if there is none.
library() { # NAME
    for d in $(echo "$our_path" | tr ':' ' '); do [ ! -e "$d/$1" ] || { echo "$d/$1" && return; }; done
    ldconfig -p 2> /dev/null | sed -n "s/^[[:space:]]*$1 .*=> //p" | head -1
}

smi() { nvidia-smi --query-gpu="$1" --format=csv,noheader 2> /dev/null | head -1; }
card=$(smi name)
driver=$(smi driver_version)
memory=$(smi memory.total)
date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
have_gpu() { [ -n "$card" ] || [ -e /dev/nvidia0 ]; }

# ---- shapes: for a full GPU, or for a rehearsal ----

if [ -z "${GPU_CHECK_SMALL:-}" ]; then
    model=gpt2 torch_shape=12x768x12 large=64 small=12 naive=8 seq=1024 short=512
    data=$root/data/shards bench='' curve_steps=200 step_cases='' smoke_steps='--steps 12 --warmup 3' patience=1
else
    model=2x64x2 torch_shape=2x64x2 large=2 small=1 naive=2 seq=64 short=32
    data=$GPU_CHECK_SMALL bench="--data $data --steps 2 --warmup 1" smoke_steps='' curve_steps=1
    step_cases='--steps 2 --case curve_odd' patience=${GPU_CHECK_PATIENCE:-1}
fi

# ---- running things ----

left() { echo $((part_start + part_seconds - $(date +%s))); }

# Append the last command and its whole output to the log beside FILE.
keep_log() { # NAME EXIT COMMAND...
    {
        printf -- '---- %s: %s: exit %s\n$' "$part" "$1" "$2"
        shift 2
        printf ' %s' "$@"
        echo
        cat "$work/out"
        [ ! -s "$work/err" ] || { echo '(standard error)' && cat "$work/err"; }
    } >> "$json.log"
}

# Print the output of a failed command, without its lines about successes.
show_block() { cat "$work/out" "$work/err" | grep -vE '^(ok|SKIP) ' | tail -25 | sed 's/^/    | /'; }

# Run a command for at most SECONDS (0: only the part's limit), with stdout and stderr in files. Return 0, or 1 if it is
# missing, failed or was cut; that is reported already.
attempt() { # NAME SECONDS COMMAND...
    name=$1 most=$(($2 * patience))
    shift 2
    if [ -n "$dry" ]; then
        echo "  $*"
        return 1
    fi
    command -v "$1" > /dev/null || { result skip "$name" "$1 is not there" && return 1; }
    seconds=$(left)
    [ "$seconds" -gt 5 ] || { result cut "$name" "the part's $part_seconds s are over" && return 1; }
    if [ "$most" -gt 0 ] && [ "$most" -lt "$seconds" ]; then seconds=$most; else most=0; fi
    code=0
    LD_LIBRARY_PATH=${libraries-$our_path} timeout -k 5 "$seconds" "$@" \
        > "$work/out" 2> "$work/err" < /dev/null || code=$?
    keep_log "$name" $code "$@"
    tell_end
}

tell_end() {
    case $code in
    0) return 0 ;;
    77) result skip "$name" "$(cat "$work/out" "$work/err" | sed -n 's/^SKIP[^:]*: //p' | head -1)" && return 1 ;;
    124 | 137)
        if [ "$most" -gt 0 ]; then result fail "$name" "no end after $most s"
        else result cut "$name" "the part's $part_seconds s were over after $seconds s of it"; fi
        ;;
    *) result fail "$name" "exit $code: $(cat "$work/out" "$work/err" | grep -vE '^(ok|SKIP)' | tail -1)" ;;
    esac
    show_block
    return 1
}

# Do the same with Python's own libraries. Without PyTorch, the check is skipped.
attempt_peer() { # NAME SECONDS SCRIPT ARGUMENT...
    if [ -z "$dry" ] && ! have_torch; then
        result skip "$1" "no PyTorch in $PYTHON"
        return 1
    fi
    name=$1 most=$2
    shift 2
    libraries=$system_path
    attempt "$name" "$most" "$PYTHON" "$@"
    code=$?
    unset libraries
    return $code
}

have_torch() {
    [ -n "${torch-}" ] ||
        torch=$("$PYTHON" -c 'import torch; print(torch.cuda.is_available())' 2> /dev/null || echo no)
    [ "$torch" = True ]
}

# Print the first number, or text, of that name in the JSON output; or the whole document on one line.
number() { # NAME
    tr '{},[]' '\n' < "$work/out" | sed -n "s/^ *\"$1\": *\(-\{0,1\}[0-9][0-9.eE+-]*\) *$/\1/p" | head -1
}
text() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$work/out" | head -1; } # NAME
document() { tr '\n' ' ' < "$work/out" | sed -n 's/^ *\({.*}\) *$/"document": \1/p'; }

# Return whether a program has $option.
has_option() { LD_LIBRARY_PATH=$our_path "$@" --help 2> /dev/null | grep -qE -- "^ +(-., )?$option( |\$)"; }
