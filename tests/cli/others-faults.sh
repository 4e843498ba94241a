# sgt-tokenize --train-vocab, sgt-sample, sgt-report and sgt-bench with each system call and
# allocation disturbed in turn (faults.inc). They print the usual output, except for the
# measurements of sgt-bench, or they name the fault and leave no incomplete file.
# In make check-all only: it disturbs hundreds of calls.
. "$ROOT/tests/cli/faults.inc"
. "$ROOT/tests/cli/train.inc"

need_faults
work_in_memory
run 0 sgt-tokenize --quiet --train-vocab 300 "$ROOT/tests/data/vocab/text.txt" v
run 0 sgt-tokenize --quiet --vocab v --split 20% --threads 1 --shard-tokens 2000 "$ROOT/tests/data/vocab/text.txt" d
run 0 sgt-train --quiet $small --steps 20 --save-every 10 --eval-every 5 --run done
texts . 300

# A vocabulary from JSON lines: each allocation is tried, because each has its own message.
tail -n 60 "$ROOT/tokenize/vocab/gpt2.bpe" | sed 's/["\\]//g; s/.*/{"text":"& &"}/' > lines.jsonl
again='sgt-tokenize --quiet --threads 1 --force --train-vocab 300 lines.jsonl out'
if sees_memory; then
    run 0 $again
    mv out undisturbed
    "$faults" -o .seen memory:count $again || fail 'undisturbed, but counted'
    read -r places _ < .seen
    for n in $(seq "$places"); do disturb_at memory:fail "$n"; done
fi

begin() { # COMMAND...
    again=$*
    prepare
    run 0 $again
    figures < .stdout > undisturbed.txt
    [ ! -e made ] || mv made undisturbed.made
}
everything() { # [RARER]
    disturb $reads:EIO "$@"
    disturb $writes:EIO "$@"
    disturb $writes:ENOSPC "$@"
    disturb $transfers:short "$@"
    disturb $transfers,openat:EINTR "$@"
    disturb clone,clone3,vfork:EAGAIN "$@"
    disturb memory:fail "${1:-3}"
}
figures() { cat; }
prepare() { rm -f made; }
whole() { figures < .stdout > got.txt && same got.txt undisturbed.txt; }
kept() { absent made; }

begin sgt-sample --quiet --tokens 12 --prompt-file part-00 --temperature 0 --threads 1 done
everything
for jump in back forward wild; do disturb clock:$jump; done

# A page may lack parts that could not be computed (the memory estimate, a sample), but is never
# half written. The next call replaces the page, even if the message about it failed.
figures() { sed 's/"replaced": true/"replaced": false/'; }
whole() {
    figures < .stdout > got.txt && same got.txt undisturbed.txt
    [ "$(tail -n 1 made)" = '</html>' ] || fail 'half a page'
}
begin sgt-report --quiet --json done -o made
# A page that exists is complete, even if printing the message about it failed.
kept() { [ ! -e made ] || [ "$(tail -n 1 made)" = '</html>' ] || fail 'half a page'; }
everything 10
disturb $changes:kill 2
kept() { absent made; }

# Measurements are replaced by letters before comparing. If the CPU's name cannot be read, it is
# given as unknown.
figures() { sed -E 's/[0-9][0-9.e+-]*/N/g; s/"best": [a-z]*/"best": N/; s/"cpu": "[^"]*"/"cpu": N/'; }
whole() { figures < .stdout > got.txt && same got.txt undisturbed.txt; }
begin sgt-bench tokenize part-00 --json --threads 1
everything
disturb clock:forward
faults_sum 300
