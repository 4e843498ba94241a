# run.sh: functions with which gpu-check.sh examines the machine, runs programs (each with a time limit, a log and a
# verdict), and stores results, one line of JSON each, in FILE.
# shellcheck shell=sh disable=SC2154

cuda=${CUDA_HOME:-/usr/local/cuda}
PATH=$PATH:$cuda/bin:/usr/local/nvidia/bin # compute-sanitizer; nvidia-smi where a container mounts the driver
export PATH

quick() { timeout -k 1 5 "$@" 2> /dev/null < /dev/null; } # COMMAND...: anything on a new machine may hang

# Print the folders that may contain cuBLASLt, cuDNN and NCCL, from a CUDA toolkit or from PyTorch's wheels.
library_folders() {
    for d in "$cuda/lib64" "$cuda/extras/CUPTI/lib64" /usr/local/nvidia/lib64; do [ ! -d "$d" ] || echo "$d"; done
    quick "$PYTHON" -c 'import glob, importlib.util, os
spec = importlib.util.find_spec("nvidia")
for base in spec.submodule_search_locations or [] if spec else []:
    print("\n".join(sorted(glob.glob(os.path.join(base, "*", "lib")))))'
}
system_path=${LD_LIBRARY_PATH:-}
our_path="$root/lib${system_path:+:$system_path}$(library_folders | sed 's/^/:/' | tr -d '\n')"

card=$(quick nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -1)
memory=${card##*, } card=${card%, *}
driver=${card##*, } card=${card%, *}
date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
have_gpu() { [ -n "$card" ] || [ -e /dev/nvidia0 ]; }

# ---- shapes: for a full GPU, or for a rehearsal ----

data=$root/data/shards
if [ -z "${GPU_CHECK_SMALL:-}" ]; then
    model=gpt2 torch_shape=12x768x12 large=64 small=12 seq=1024 chunks='128 256 384' bench='' curve_steps=200
    chain=text,overlap,tf32,bf16,fused,graphs,flash,padded,tied chain_rows=
else # the shards are not in GPT-2's vocabulary
    model=1x16x2 torch_shape=1x16x2 large=2 small=1 seq=16 chunks=8 curve_steps=1
    chain=mmap,overlap,tf32,bf16,fused,graphs,flash,padded,tied chain_rows='--batch-size 2'
    bench="--data $data --steps 1 --warmup 1"
fi

# ---- running things ----

left() { echo $((ends - $(date +%s))); }

# Append the last command and its whole output to FILE.log.
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

# Run a command for at most SECONDS (0: until the part's time is over), and keep its stdout and stderr in files. Return
# 0 if it succeeded. Return 1 if the check NAME need not run, or if the command is missing, failed or was cut; then that
# has been reported.
attempt() { # NAME SECONDS COMMAND...
    name=$1 most=$2
    shift 2
    todo "$name" || return 1
    command -v "$1" > /dev/null || { result skip "$name" "$1 was not found" && return 1; }
    seconds=$(left)
    [ "$seconds" -gt 5 ] || { result cut "$name" "no time was left in this part" && return 1; }
    if [ "$most" -gt 0 ] && [ "$most" -lt "$seconds" ]; then seconds=$most; else most=0; fi
    libraries=$our_path
    [ "$1" != "$PYTHON" ] || libraries=$system_path # Python keeps its own libraries
    LD_LIBRARY_PATH=$libraries timeout -k 5 "$seconds" "$@" > "$work/out" 2> "$work/err" < /dev/null
    code=$?
    keep_log "$name" "$code" "$@"
    tell_end
}

# Messages of programs on a machine that lacks something they need; such checks are skipped.
lacks='No module named|libcudnn.so.9 was not found|Device not supported'

# Print the output of a failed command, without lines about passed and skipped cases.
show_block() { cat "$work/out" "$work/err" | grep -vE '^(ok|SKIP) ' | tail -25 | sed 's/^/    | /'; }

tell_end() {
    both=$(cat "$work/out" "$work/err")
    case $code in
    0) return 0 ;;
    77) result skip "$name" "$(echo "$both" | sed -n 's/^SKIP[^:]*: //p' | head -1)" && return 1 ;;
    124 | 137)
        if [ "$most" -gt 0 ]; then result fail "$name" "did not end within $most s"
        else result cut "$name" "stopped after $seconds s, because the part's time was over" "$(document)"; fi
        ;;
    *)
        if why=$(echo "$both" | grep -E "$lacks"); then result skip "$name" "$(echo "$why" | tail -1)" && return 1; fi
        result fail "$name" "exit $code: $(echo "$both" | grep -vE '^(ok|SKIP)|^{' | tail -1)" "$(document)"
        ;;
    esac
    show_block
    return 1
}

# number and text print the first number or string called NAME in the JSON output; document prints the whole output on
# one line.
number() { # NAME
    tr '{},[]' '\n' < "$work/out" | sed -n "s/^ *\"$1\": *\(-\{0,1\}[0-9][0-9.eE+-]*\) *$/\1/p" | head -1
}
text() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$work/out" | head -1; } # NAME
document() { tr '\n' ' ' < "$work/out" | sed -n 's/^ *\({.*}\) *$/"document": \1/p'; }

# ---- results ----

quote() { printf '"%s"' "$(printf '%s' "$1" | tr '\001-\037' ' ' | sed 's/[\\"]/\\&/g')"; }

count() { cat "$json" 2> /dev/null | grep -c "^{\"result\": \"$1\""; } # pass|fail|skip|cut|info

# Print the versions of the libraries that the self-check in FILE found.
versions() { sed -n 's/.*"libraries": {\([^}]*\)}.*/\1/p' "$1"; } # FILE

# Begin FILE with a line about the machine. If FILE has results of an earlier call, keep them, except those that were
# cut or skipped and, with --again, those that failed. Drop an incomplete last line.
open_results() {
    head="{\"card\": $(quote "$card"), \"commit\": $(quote "$commit")"
    if [ -s "$json" ]; then
        head -1 "$json" | grep -qF "$head," || {
            echo "gpu-check.sh: $json is from another GPU or commit (move it away, or name another file with -o)" >&2
            exit 2
        }
        grep '}$' "$json" | grep -vE "^\{\"(complete\"|result\": \"(cut|skip${again:+|fail})\")" > "$json.part"
        mv "$json.part" "$json"
    else
        echo "$head, \"driver\": $(quote "$driver"), \"memory\": $(quote "$memory"), \"date\": \"$date\"}" > "$json"
    fi
}

# Record a result: print a line for the user, and append a line of JSON to FILE. "at" is the number of seconds since
# gpu-check.sh started.
result() { # pass|fail|skip|cut|info NAME TEXT [MORE-JSON]
    printf '%-4s %s: %s\n' "$1" "$2" "$3"
    printf '{"result": "%s", "name": %s, "text": %s, "part": "%s", "at": %d%s}\n' "$1" "$(quote "$2")" \
        "$(quote "$3")" "$part" $(($(date +%s) - began)) "${4:+, $4}" >> "$json"
}

# Record a figure. It passes if it is at least (SENSE ">=") or at most ("<=") FLOOR; in a rehearsal, it is not judged.
figure() { # NAME VALUE UNIT [SENSE FLOOR GOAL]
    todo "$1" || return 0
    [ -n "$2" ] || { result fail "$1" "no figure was printed" && return; }
    if [ $# -eq 3 ] || [ -n "${GPU_CHECK_SMALL:-}" ]; then
        result info "$1" "$2 $3" "\"value\": $2"
        return
    fi
    verdict=$(awk -v x="$2" -v sense="$4" -v floor="$5" -v goal="$6" 'BEGIN {
        better = sense == ">=" ? 1 : -1
        print (better * (x - floor) >= 0 ? "pass" : "fail"), (better * (x - goal) >= 0 ? "goal met" : "goal not met")
    }')
    result "${verdict%% *}" "$1" "$2 $3 (floor $4 $5, goal $4 $6: ${verdict#* })" \
        "\"value\": $2, \"floor\": $5, \"goal\": $6"
}

# ---- which checks run ----

is_left_out() { # NAME: by --skip
    skip=$(echo "$1" | grep -oFf "$work/skips" | head -1)
    [ -n "$skip" ] && echo "skipped $1: --skip $skip"
}

kept() { grep -sF "\"name\": $(quote "$1"), \"text\"" "$json" | tail -1; }     # NAME
value_of() { kept "$1" | sed -n 's/.*, "value": \([0-9.eE+-]*\)[,}].*/\1/p'; } # NAME

# Return whether a check must still run: --skip does not leave it out, and FILE has no result of it.
todo() { # NAME
    ! grep -qsF "\"name\": $(quote "$1"), \"text\"" "$json" || {
        echo "kept $1: $(kept "$1" | sed 's/.*"text": "\(.*\)", "part".*/\1/')"
        return 1
    }
    ! is_left_out "$1"
}
