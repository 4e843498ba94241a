# sgt-train on a terminal: one line with progress bar, steps, loss, speed, learning rate, MFU and
# time left (tests/base/test_progress.c has narrower terminals, and files). Each evaluation has a
# line above it. With --json, standard output has only the document.
. "$ROOT/tests/cli/train.inc"
data d
validation d
# bars COLUMNS OPTION...: train on a terminal; ./bars gets each state of the bar
bars() {
    columns=$1
    shift
    rm -rf run
    terminal "$columns" "sgt-train $small --steps 60 --run run $* > .out"
    grep -E '^ *[0-9]+%' shown > bars || fail "no bar: $(cat shown)"
    [ "$(widest bars)" -lt "$columns" ] || fail "wider than $columns: $(cat bars)"
}
rate='[0-9.]+ [kM]?' # a rate and its unit

bars 200
head -1 bars | grep -qE '^ *[0-9]+%\|#* *\| [0-9]+/60 \[00:[0-9]+<[0-9:-]+, '"$rate"'step/s\] loss [0-9.]+, '\
"$rate"'tokens/s, lr [0-9.]+e-0[0-9]' ||
    fail "not a bar with all that there is: $(cat bars)"
tail -1 bars | grep -qE '^100%\|#{20}\| 60/60 \[00:[0-9]+<00:00, ' || fail "not full at the end: $(cat bars)"
loss=$(sed -n '$s/.*"loss":\([0-9.]*\).*/\1/p' run/log.jsonl | awk '{ printf "%.4f", $1 }')
tail -1 bars | grep -qF " loss $loss, " || fail "the last loss is $loss: $(cat bars)"
mfu=$(sed -n '$s/.*"mfu":\([0-9.e-]*\).*/\1/p' run/log.jsonl | awk '{ printf "%.0f", 100 * $1 }')
[ -n "$mfu" ] || fail "no mfu: $(tail -1 run/log.jsonl)"
tail -1 bars | grep -qE ", MFU $mfu %\$" || fail "MFU is $mfu %: $(cat bars)"
sed -n 's/.*"mfu":\([0-9.e-]*\).*/\1/p' run/log.jsonl | awk '!($1 > 0 && $1 <= 1) { exit 1 }' ||
    fail "an MFU above 100 %: $(cat run/log.jsonl)"
grep -q '^tokens seen: ' .out || fail "no summary: $(cat .out)"

# Each evaluation has a line of its own above the bar; with --json, standard output has only the
# document.
bars 120 --eval-every 20 --json
[ "$(grep -cE '^step (20|40|60): loss [0-9.]+, validation [0-9.]+, ' shown)" -eq 3 ] ||
    fail "not three evaluations: $(cat shown)"
! grep -vE '^ *[0-9]+%\||^step |^Epoch |^sgt-train: ' shown || fail 'that is more than a bar and lines'
[ "$(wc -l < .out)" -eq 1 ] && grep -q '^{"step": 59, "loss": ' .out || fail "not one document: $(cat .out)"
