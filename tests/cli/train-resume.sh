# sgt-train is killed or interrupted, and resumed. The run ends with the log and the bits of an
# undisturbed run.
. "$ROOT/tests/cli/train.inc"
data d
validation d
options="--data d --init $curve --sampling shuffle --batch-size 2 --seq-len 32 --grad-accum 2 --steps 120 --lr 1e-3
    --device cpu --threads 1 --eval-every 10 --save-every 5 --keep 2"
run 0 sgt-train --quiet $options --run whole
same_run() { # RUN
    same_facts whole/log.jsonl $1/log.jsonl
    same_folders whole/step-00000120 $1/step-00000120
}

# The run is killed in its first steps, after its first checkpoint, and again near the next
# (train-torture.sh kills at random moments).
killed_at cut/log.jsonl sgt-train --quiet $options --run cut --resume-or-start
for step in 00000005 00000030; do killed_at cut/step-$step/state.json sgt-train --quiet $options --run cut --resume-or-start; done
absent cut/step-00000120 # or no kill hit the run
run_silent sgt-train --quiet $options --run cut --resume-or-start
same_run cut
same whole/latest cut/latest
[ "$(ls -A cut | tr '\n' ' ')" = "$(ls -A whole | tr '\n' ' ')" ] || fail "the run holds $(ls -A cut)"

# On Ctrl-C, SIGTERM, and SIGHUP from a closed terminal, sgt-train finishes the step, saves, and
# exits with 130. A shell starts background processes with SIGINT ignored; sgt-train handles it
# anyway. nohup ignores SIGHUP, and so does sgt-train then.
#
# A closing terminal may send SIGHUP twice. timeout(1) may send its signal to the process and to its
# process group.
stopped() { # RUN SIGNAL...: send these signals, once RUN has a log. Then RUN must end like an undisturbed run.
    run=$1 code=0 milliseconds=0 tries=0
    shift
    # Try again if a busy machine has let the run end before, or has delayed the second signal.
    while [ $code -ne 130 ] || [ $milliseconds -gt 400 ]; do
        [ $((tries += 1)) -le 9 ] || fail "$run: it was not interrupted: exit code $code"
        rm -rf $run
        begun $run/log.jsonl env --default-signal=HUP sgt-train --quiet $options --run $run || fail 'it ended too early'
        began=$(date +%s%N) code=0
        for signal; do kill -$signal $pid 2> .kill; sleep .01; done
        milliseconds=$((($(date +%s%N) - began) / 1000000))
        wait $pid || code=$?
        case $code in 0 | 130) ;; *) fail "$run: exit code $code" ;; esac
    done
    stderr_matches '^sgt-train: interrupted after step [0-9]+ of 120 \(--resume continues from there\)$'
    stderr_lines 1
    steps=$(wc -l < $run/log.jsonl)
    [ "$(cat $run/latest)" = "$(printf 'step-%08d' "$steps")" ] || fail "$steps lines of log, and $(cat $run/latest)"
    run 0 sgt-train --quiet $options --run $run --resume
    same_run $run
}
for signals in INT TERM HUP 'HUP HUP' 'TERM TERM'; do stopped "${signals% *}-${signals#* }" $signals; done

begun nohup/log.jsonl env --ignore-signal=HUP sgt-train --quiet $options --run nohup || fail 'it ended too early'
kill -HUP $pid
ended 0 $pid
same_run nohup

# Only one process at a time may train a run: before the first save, and while a process removes the
# checkpoint that a second process reads.
busy() { # RUN FILE: once FILE is there, the run must refuse other processes, and go on undisturbed
    sgt-train --quiet $options --steps 100000 --run $1 2> "$1.err" &
    pid=$!
    until [ -s $1/$2 ]; do sleep 0.02; done
    for resume in '' --resume --resume --resume; do
        run 1 sgt-train --quiet $options --run $1 $resume
        is "$(tail -n 1 .stderr)" "sgt-train: $1: another sgt-train is writing to this run (wait for it, or use another --run)"
        [ $2 = latest ] || break
    done
    kill -TERM $pid
    wait $pid || :
    grep -q '^sgt-train: interrupted after step' $1.err || fail 'the first one should go on undisturbed'
}
busy unsaved log.jsonl
busy shared latest
mkdir -p begun-set/.work
for set in d begun-set; do
    run_failure "$set: this folder holds the output of sgt-tokenize, not a run (use a different --run)" \
        sgt-train --quiet $options --run $set --force
done

# With --quiet, only problems are reported: a skipped checkpoint, a damaged log.
cp -r cut hurt
truncate -s 100000 hurt/step-00000120/optimizer.safetensors
sed -i '7s/.*/{"step":6,"lo/' hurt/log.jsonl
run 0 sgt-train --quiet $options --run hurt --resume
stderr_lines 2
stderr_matches '^sgt-train: skipped an incomplete checkpoint: hurt/step-00000120/optimizer.safetensors: tensor '\
'.*\(was it cut short\?\)$'
stderr_has 'sgt-train: hurt/log.jsonl: the lines of 1 of the 115 steps before the checkpoint are missing or damaged; the others are kept'
sed 7d cut/log.jsonl > kept.jsonl
same_facts kept.jsonl hurt/log.jsonl
same_folders whole/step-00000120 hurt/step-00000120
rm hurt/log.jsonl
run 0 sgt-train --quiet --run hurt --resume --steps 121
stderr_has 'sgt-train: hurt/log.jsonl: the lines of 120 of the 120 steps before the checkpoint are missing or damaged; the '
printf '{"step":120}' > hurt/log.jsonl # without an end of line
run 0 sgt-train --quiet --run hurt --resume --steps 122
stderr_has 'sgt-train: hurt/log.jsonl: the lines of 121 of the 121 steps before the checkpoint are missing or damaged; the '

# Other options are refused by name. A run that has a checkpoint is not overwritten.
run 1 sgt-train --quiet $options --run cut
stderr_is 'sgt-train: cut: this run already has step-00000120 (--resume continues from it, --force starts over)'
run 1 sgt-train --quiet $options --run cut --resume --warmup 7
stderr_is 'sgt-train: --warmup: 7 here, but it was 6 in the run to resume (leave it out, or start a new --run)'

# A completed run stays completed. More --steps and another reader continue it with the stored
# options.
run 0 sgt-train --quiet --run cut --resume
same_facts whole/log.jsonl cut/log.jsonl
run 0 sgt-train --quiet --run cut --resume --steps 122 --loader mmap
[ "$(wc -l < cut/log.jsonl)" -eq 122 ] || fail 'two more steps'
grep -q '"steps": 122' cut/options.json && grep -q '"loader": "mmap"' cut/options.json || fail "$(cat cut/options.json)"

# --force starts over.
run 0 sgt-train --quiet $small --run cut --force --steps 2
is "$(wc -l < cut/starts.jsonl)" 1
is "$(ls cut | grep -v '^tb$' | xargs)" 'latest log.jsonl memory.jsonl options.json starts.jsonl step-00000002'

# A run without a complete checkpoint is started over by the same command.
mkdir -p begun/step-00000009
echo step-00000009 > begun/latest
echo '{"step":0,"loss":9}' > begun/log.jsonl
run 0 sgt-train --quiet $small --run begun --steps 2
stderr_matches '^sgt-train: skipped an incomplete checkpoint: begun/step-00000009' # it is named before it is removed
absent begun/step-00000009
same_facts cut/log.jsonl begun/log.jsonl
run 0 sgt-train $small --run young --steps 2

# More steps stretch the schedule. If the learning rate rises again, a notice says so.
run 0 sgt-train $small --run young --resume --steps 40
stderr_matches '^sgt-train: learning rate: it rises from [0-9.e-]+ to [0-9.e-]+ here, because its schedule ended at step 2 and now ends at step 40$'
run 0 sgt-train $small --run flat --schedule constant --steps 2

# A resume uses the --threads of the last start, if the machine has as many cores.
more=$(($(env -u OMP_NUM_THREADS nproc) + 1))
run 0 sgt-train --run flat --resume --steps 5
grep -q '"threads": 1,' flat/options.json || fail "not one thread: $(cat flat/options.json)"
run 0 sgt-train --run flat --resume --steps 6 --threads $more
grep -q "\"threads\": $more," flat/options.json || fail "not $more threads: $(cat flat/options.json)"
run 0 sgt-train --run flat --resume --steps 7
! grep -q threads flat/options.json || fail "not all cores: $(cat flat/options.json)"
run 0 sgt-train --run flat --resume --steps 8 --threads 2
run 0 env OMP_NUM_THREADS=1 sgt-train --run flat --resume --steps 9
! grep -q threads flat/options.json || fail "two threads where one is allowed: $(cat flat/options.json)"

# Another learning rate, minimum rate or schedule begins a new schedule, and one line says so. The
# new values are stored: more steps, or a resume without these options, continue the new schedule.
# The run can be inspected and reported.
new='learning rate: a new schedule begins after step'
run 0 sgt-train $small --run young --resume --steps 60 --lr 5e-4 --schedule linear
stderr_has "sgt-train: $new 40: from 0.000101 to 0.0005 in 0 steps, then linear to step 60"
stderr_has 'learning rate 0.0005, linear to 5e-05'
run 0 sgt-train --run young --resume --steps 62
! grep -q "$new" .stderr || fail 'the schedule was new before'
run 0 sgt-train --run young --resume --steps 64 --min-lr 0
stderr_has "sgt-train: $new 62: from 7.05e-05 to 0.0005 in 0 steps, then linear to step 64"
run 0 sgt-train $small --lr 5e-4 --schedule linear --min-lr 0 --run young --resume --steps 66
! grep -q "$new" .stderr || fail 'the schedule is the same'
rates=$(sed -n 's/.*"lr":\([^,]*\).*/\1/p' young/log.jsonl | sed -n '41p;63p;64p' | xargs)
[ "$rates" = '0.0005 0.0005 0.00025' ] || fail "the rates of steps 40, 62 and 63 are $rates"
# The new values are stored at the start, so they are kept if that resume is killed before it saves.
run 0 sgt-train $small --run early --steps 20 --save-every 0
rm early/options.json
for options in '--steps 100000 --lr 4e-4 --min-lr 1e-5 --schedule constant' ''; do
    rm early/memory.jsonl
    killed_at early/memory.jsonl sgt-train --run early --resume $options
    stderr_has "sgt-train: $new 20: from 0.0001" 'to 0.0004 in 1 step, then constant to step 100000'
done
run 0 sgt-train --run early --resume --steps 24
is "$(sed -n 's/.*"lr":\([^,]*\).*/\1/p' early/log.jsonl | tail -n +21 | xargs)" '0.0004 0.0004 0.0004 0.0004'
grep -q '"min-lr": 1e-05' early/options.json || fail "$(cat early/options.json)"
# A second new schedule then follows the schedule of the killed start, where that differs from the
# checkpoint's.
run 0 sgt-train $small --run second --steps 20 --save-every 0
rm second/memory.jsonl
killed_at second/memory.jsonl sgt-train --run second --resume --steps 100000 --lr 4e-4 --min-lr 1e-5
run 0 sgt-train --run second --resume --steps 24 --lr 2e-4
stderr_has "sgt-train: $new 20: from 0.000106 to 0.0002 in 1 step" 'warm-up, cosine to 1e-05'
run_notes 'warm-up, cosine to 1e-05' sgt-train --run second --resume --steps 28 --lr 1e-4
run_notes 'warm-up, cosine to 3e-05' sgt-train --run second --resume --steps 32 --lr 3e-4

# A run was moved to another kind of device and killed before it saved. Resumed there, it has the
# options of that start, and a line says that results will differ. Resumed on the first device, it
# has its original options.
run 0 sgt-train $small --run moved --steps 2 --save-every 0 --precision fp32
# Make it look as if it had begun on CUDA. Without a checksum, state.json is not checked.
sed -i 's/"device": "cpu"/"device": "cuda"/; s/^  "xxh3".*/  "none": 0/' moved/step-00000002/state.json
rm moved/memory.jsonl
killed_at moved/memory.jsonl sgt-train --run moved --resume --steps 100000 --device cpu --precision bf16
cp -r moved back
sed -i 's/"device": "cuda"/"device": "cpu"/' back/step-00000002/state.json
for run in 'moved bf16' 'back fp32'; do
    run 0 sgt-train --quiet --run ${run% *} --resume --steps 3
    [ "$run" = 'back fp32' ] || stderr_has ': results will differ in the last bits from those of an uninterrupted run'
    grep -q "\"precision\": \"${run#* }\"" ${run% *}/options.json || fail "$run: $(cat ${run% *}/options.json)"
done
for run in '--run early --resume' "$small --run other"; do
    run_misuse '--min-lr 1: above the learning rate, 0.0004, which falls to it (use a lower --min-lr or a higher --lr)
'"try 'sgt-train --help'" sgt-train --quiet $run --lr 4e-4 --min-lr 1
done

# --keep may change: the next save removes surplus checkpoints.
run 0 sgt-train --run early --resume --steps 25 --keep 1
is "$(echo early/step-*)" early/step-00000025
run 0 sgt-inspect young
run 0 sgt-report young
