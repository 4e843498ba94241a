# The predicted time of a step on a GPU: the list of launches from the host build (launches.sh), the times computed
# from it (predict.py), and the table of machine code behind them (machine_code.py).
# In make check-all only: it needs CUDA's backend on the host.
. "$ROOT/tests/cli/lib.sh"
cuda_on_the_host
for tool in python3 nm c++filt; do command -v $tool > /dev/null || skip "no $tool"; done
kernels=$ROOT/tests/kernels
build=$BIN/..
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
predict() { python3 "$kernels/predict.py" "$1" "${2:-$kernels/machine-code.txt}" "${3:-$kernels/work.txt}"; }
# launches.sh finds its neighbours from the root of the sources
launches() { (cd "$ROOT" && tests/kernels/launches.sh "$build" "$@"); }

# ---- the whole step of GPT-2 124M is listed on any machine: each product with its size ----
run 0 launches "$PWD/gpt2" --model gpt2 --batch-size 64 --seq-len 1024 --precision bf16 --attention cudnn \
    --variant layernorm-rows
lines() { grep -cE "^$1" gpt2; }
check 'two products of a block with its 2,304 columns' test "$(lines 'product m=65536 n=2304 k=768 .*add=0')" -eq 12
check 'the logits' test "$(lines 'product m=65536 n=50304 k=768 ')" -eq 1
check 'gradients add up' test "$(lines 'product .* in=2 out=4 add=1 ')" -eq 49
check 'a forward and a backward pass of attention' test "$(lines 'attention products=[25] ')" -eq 24
check 'operations of attention' test "$(lines 'attention products=2 flops=206158430208$')" -eq 12
residual='kernel norm_rows_kernel<bf16,3,true> grid 528 1 1 block 128 smem 0 : p2 p2 p4 p4 p2 p2 p4 p4 65536 768 '
check 'residuals' test "$(lines "$residual")" -eq 24
check 'no residual before the first' test "$(lines 'kernel norm_rows_kernel<bf16,3,false> .* : p0 p2 p4 p4 p2 p0 ')" -eq 1
check 'one update of all' test "$(lines 'kernel update_kernel<bf16,Adamw> .* 124475904 124354560 ')" -eq 1
check 'every kernel has its name' test "$(lines 'kernel unknown')" -eq 0
check 'a step begins' grep -q '^kernel begin_micro_step_kernel ' gpt2
check 'a step ends' test "$(sed -n '$s/ grid.*//p' gpt2)" = 'kernel end_step_kernel'
check 'we clear dQ' test "$(lines 'fill 201326592$')" -eq 12
cudnn='--model gpt2 --batch-size 64 --seq-len 1024 --precision bf16 --attention cudnn --variant dq-uncleared'
run 0 launches "$PWD/uncleared" $cudnn
check 'with dq-uncleared, cuDNN clears dQ itself' test "$(grep -c '^fill' uncleared)" -eq 0
SGT_HOST_CUDNN=adds
export SGT_HOST_CUDNN
run 0 launches "$PWD/adds" $cudnn
unset SGT_HOST_CUDNN
check 'if cuDNN does not, we clear it' test "$(grep -c '^fill 201326592$' adds)" -eq 12
run 1 launches "$PWD/bad" --attention own --model 1x24x2
stderr_matches '^sgt-bench step: --attention own: heads of 12 numbers, it takes multiples of 8 to 128$'

# ---- a step can be set up from the smallest model and a single token to GPT-2 XL and rows of 8,192 tokens ----
run 0 launches "$PWD/xl" --model gpt2-xl --batch-size 1 --seq-len 8192 --precision bf16 --attention own --variant none
check 'attention of 48 layers' test "$(grep -cE '^kernel attention_kernel<bf16,64,false> grid 25 64 1 ' xl)" -eq 48
check 'the logits' test "$(grep -cE '^product m=8192 n=50304 k=1600 ' xl)" -eq 1
run 0 launches "$PWD/least" --model 1x8x1 --batch-size 1 --seq-len 1 --precision bf16 --attention own
check 'one layer' test "$(grep -cE '^kernel attention_kernel<bf16,[0-9]+,false> grid 1 1 1 ' least)" -eq 1

# ---- the prediction: its rows add up to its sum, which its last line states ----
adds_up() { # LIST
    run 0 predict "$1"
    stderr_is ''
    cp .stdout shown
    awk -v launches="$(grep -vc '^copy' "$1")" '
        { n = NF }
        $n ~ /^[0-9.]+$/ && $1 ~ /^[0-9]+$/ && !/gaps/ { ms += $(n - 1); fast += $n; if (!/copy/) all += $1 }
        /gaps between/ { gaps = $1; ms += $(n - 1); fast += $n }
        $1 == "sum" { sum = $2; sum_fast = $3 }
        END {
            near = ms / sum; near_fast = fast / sum_fast
            if (all != launches || gaps != launches) { print all, gaps, "of", launches, "launches"; exit 1 }
            # each of about 45 rows is rounded to a microsecond
            if (ms - sum > .03 || sum - ms > .03 || fast - sum_fast > .03 || sum_fast - fast > .03 || fast > ms) {
                print "rows:", ms, fast, "sum:", sum, sum_fast; exit 1
            }
        }' shown || fail "the rows do not add up"
    last=$(tail -1 shown)
    echo "$last" | grep -qE '^predicted step: [0-9]+\.[0-9] ms, [0-9]+ tokens/s$' || fail "the last line: $last"
    awk '$1 == "sum" { sum = $2 } /^predicted/ { said = $3; rate = $5 }
         END { d = said - sum; exit !(d < .051 && d > -.051 && rate > 0) }' shown ||
        fail 'the sum is not what is predicted'
}
adds_up gpt2
check 'tokens a second' awk '$1 == "sum" { ms = $2 } /^predicted/ { x = $5 * ms / 65536e3 }
    END { exit !(x > .9999 && x < 1.0001) }' shown
# With every variant, the step must not become slower than this (tokens/s, a limit for each batch size).
at_least() { # BATCH LIMIT
    run 0 launches "$PWD/all" --model gpt2 --batch-size "$1" --seq-len 1024 --precision bf16 --attention cudnn \
        --variant all
    run 0 predict all
    awk -v limit="$2" '/^predicted/ { x = $5 } END { exit !(x >= limit) }' .stdout || fail "less than $2 tokens/s"
}
at_least 64 620000
at_least 12 530000
# The product has 2 x 65536 x 2304 x 768 operations, at 650 and 700 TFLOP/s; 12 of them take 12
# times as long.
run 0 predict gpt2
stdout_matches '^   12  product 65536 x 2304 x 768 +[0-9.]+ +231\.9  tensor +356\.8 +4\.282 +3\.976$'
run 0 launches "$PWD/small" --model 2x64x2 --batch-size 2 --seq-len 64 --precision bf16 --attention cudnn --variant none
adds_up small

# ---- an entry missing in a table is an error that names it ----
sed 's/^norm_rows_kernel /other_kernel /' "$kernels/work.txt" > less
run 1 predict gpt2 "$kernels/machine-code.txt" less
stderr_is 'predict: norm_rows_kernel<bf16,3,false> is launched, but has no line in work.txt'
grep -v '^norm_rows_kernel' "$kernels/machine-code.txt" > less
run 1 predict gpt2 less
stderr_is 'predict: norm_rows_kernel<bf16,3,false> with 128 threads is not in machine-code.txt (make machine-code)'
sed 's/^bias_kernel \*partial/bias_kernel *more *partial/' "$kernels/work.txt" > wrong
run 1 predict gpt2 "$kernels/machine-code.txt" wrong
stderr_is 'predict: bias_kernel<bf16,8> has 5 arguments, work.txt names 6'
sed 's/^bias_kernel \*partial/bias_kernel partial/' "$kernels/work.txt" > wrong
run 1 predict gpt2 "$kernels/machine-code.txt" wrong
stderr_is 'predict: bias_kernel<bf16,8>: partial is p4 in the list, another kind in work.txt'
sed 's/grid_y\*C\*partial/heaps*C*partial/' "$kernels/work.txt" > wrong
run 1 predict gpt2 "$kernels/machine-code.txt" wrong
stderr_matches "^predict: work.txt, bias_kernel.*: name 'heaps' is not defined"
printf '    | reads = 1\n' > wrong
run 1 predict gpt2 "$kernels/machine-code.txt" wrong
stderr_is 'predict: wrong: no kernel, or no " = ", in: | reads = 1'
: > empty
run 1 predict empty
stderr_is 'predict: empty lists nothing'

# ---- the table of machine code, for a kernel written here ----
# A loop loads 16 bytes twice and 4 bytes once before it uses the first. Lane l stores 16 bytes at 32 l, where lanes
# 0 and 4 share a bank, and 4 bytes at 4 l, where none do. Spilled registers, HMMA and a bulk copy.
cat > code.sass << 'END_OF_CODE'
	.section	.text._Z8a_kernelI13__nv_bfloat16Li8EEvPT_,"ax",@progbits
_Z8a_kernelI13__nv_bfloat16Li8EEvPT_:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   SHF.L.U32 R1, R0, 0x5, RZ ;
        /*0020*/                   LEA R2, R0, UR4, 0x2 ;
.L_x_1:
        /*0030*/                   LDG.E.128 R4, desc[UR6][R20.64] ;
        /*0040*/                   LDG.E.128 R8, desc[UR6][R20.64+0x10] ;
        /*0050*/                   LDG.E R12, desc[UR6][R22.64] ;
        /*0060*/                   FADD R13, R11, R13 ;
        /*0070*/                   LDG.E R14, desc[UR6][R22.64] ;
        /*0080*/                   STS.128 [R1], R4 ;
        /*0090*/                   STS [R2+0x80], R14 ;
        /*00a0*/                   HMMA.16816.F32.BF16 R24, R4, R8, R24 ;
        /*00b0*/               @P0 BRA `(.L_x_1) ;
        /*00c0*/                   UBLKCP.S.G [UR4], [UR6], UR8 ;
        /*00d0*/                   STL [R1], R2 ;
        /*00e0*/                   EXIT ;
END_OF_CODE
printf ' Function _Z8a_kernelI13__nv_bfloat16Li8EEvPT_:\n  REG:66 STACK:0 SHARED:1024 LOCAL:0\n' > code.sass.res
echo 'kernel a_kernel<bf16,8> grid 4 1 1 block 128 smem 2048 : p2' > list
code() { python3 "$kernels/machine_code.py" "$@"; }
run 0 code code.sass -- list
grep -v '^#' .stdout | tr -s ' ' > row
# 66 registers per thread are allocated as 72, which leaves 28 warps. The loop's 9 instructions move
# 40 bytes.
check "a row: $(cat row)" test "$(cat row)" = 'a_kernel<bf16,8> 128 66 1024 2048 28 3 36 36 16 3.6 4 1 1 0 1 9.0 1/2'
cp .stdout kept
run 0 code --compare kept kept
stdout_is ''
# EXPECTED LINE for SED: the message after SED has changed the table
told() {
    sed "$2" kept > new
    run 1 code --compare kept new
    stdout_is "FAIL a_kernel<bf16,8>, 128 threads, 2048 bytes: $1
if that is meant: make machine-code, and commit tests/kernels/machine-code.txt"
}
told '24 resident warps, were 28' '/^a_/s/ 28 / 24 /'
told '2 loads in flight, were 3' '/^a_/s/ 3   36 / 2   36 /'
told '2 accesses to local memory, were 1' '/^a_/s/ 1    1     0    1 / 2    1     0    1 /'
told '0 HMMA, were 1' '/^a_/s/ 1     0    1 / 0     0    1 /'
told '0 bulk copies, were 1' '/^a_/s/ 0    1   9/ 0    0   9/'
told '2/2 bank conflicts, were 1/2' '/^a_/s/1.2$/2\/2/'
told 'in machine-code.txt, but launched no more' '/^a_/d'
grep '^#' kept > new
run 1 code --compare new kept
stdout_has 'FAIL a_kernel<bf16,8>, 128 threads, 2048 bytes: launched, but not in machine-code.txt'
sed '/^a_/s/ 28 / 32 /' kept > new
run 0 code --compare kept new
stdout_is 'note a_kernel<bf16,8>, 128 threads, 2048 bytes: warps 32, was 28'
echo 'kernel b_kernel grid 4 1 1 block 128 smem 0 :' > list
run 1 code code.sass -- list
stderr_is 'machine-code: launched, but not in the sm_90a code: b_kernel'
