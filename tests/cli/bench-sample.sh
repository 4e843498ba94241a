# sgt-bench sample: its table, its JSON, its picture, the requests to peers, and the options it refuses. The test does
# not check speeds.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/bench.inc"
small='--model 2x32x2 --prompt-tokens 5 --tokens 8'

run 0 sgt-bench sample $small --threads 2 --turns 1 --plot s.svg
stderr_is ''
stdout_has '2x32x2, 1 prompt of 5 tokens, 8 more tokens each, 2 threads'
for precision in fp32 bf16; do stdout_matches "^[* ] sgt +$precision +[0-9.]+ +[0-9.]+ +[0-9.]+ %$"; done
table 'Limit, reading every weight once a token: '
picture s.svg 2 2 0
run 0 sgt-bench sample $small --batch-size 3 --turns 1 --threads 1 --json
stdout_has '"batch": 3'
check 'two results' test "$(grep -c '"tokens_per_s"' .stdout)" -eq 2
# The limits show that fp32 reads twice the bytes of bf16, except for biases and LayerNorms.
check 'limits' awk -F '[:,]' '/"limit"/ { l[++n] = $2 }
    END { exit !(n == 2 && l[2] / l[1] > 1.9 && l[2] / l[1] < 2) }' .stdout
run 0 sgt-bench sample $small --turns 1 --quiet
stdout_is ''

run_usage '--tokens 1020: behind 5 that is over the model'"'"'s 1024 positions' sgt-bench sample --prompt-tokens 5 \
    --tokens 1020
run_usage 'set: no operands here, only options' sgt-bench sample set
run 1 sgt-bench sample $small --peer ./nowhere
stderr_has './nowhere'

# A stand-in for the interpreter stores its requests and lacks one peer.
cat > peer << 'END'
#!/bin/sh
shift
echo "$*" > args
while read -r line; do
    echo "$line" >> asked
    case $line in
    ready) echo '{"peer": "torch 0.1"}' ;;
    nanogpt*) echo '{"peer": "nanoGPT, torch 0.1", "seconds": 4}' ;;
    *bf16*) echo '{"error": "no such numbers"}' ;;
    *) echo '{"peer": "transformers 0.2", "seconds": '"$(grep -c '^trans.*fp32' asked)"'}' ;;
    esac
done
END
chmod +x peer
run 0 sgt-bench sample $small --batch-size 2 --threads 1 --peer ./peer --plot p.svg
stderr_is ''
check "the peer's arguments" [ "$(cat args)" = '2x32x2 1024 50257' ]
{ echo ready; for turn in 1 2 3; do echo 'nanogpt fp32 5 8 2' && echo 'transformers fp32 5 8 2'
    [ $turn -gt 1 ] || echo 'transformers bf16 5 8 2'; done; } > want
same asked want
stdout_matches '^  nanoGPT, torch 0.1 +fp32 +4\.0 +250\.00 +- +1\.00$'
stdout_matches '^  transformers 0.2 +fp32 +8\.0 +125\.00 +- +2\.00$' # the median of 1, 2 and 3 seconds
stdout_matches '^  transformers +bf16 +no such numbers$'
table 'Limit, reading every weight once a token: '
picture p.svg 2 2 2
run 0 sgt-bench sample $small --turns 1 --peer ./peer --json
stdout_has '"why_not": "no such numbers"'
printf '#!/bin/sh\nwhile read -r line; do echo "{}"; done\n' > peer
run 1 sgt-bench sample $small --peer ./peer
stderr_is 'sgt-bench sample: --peer ./peer: no seconds in what it said: {}'
