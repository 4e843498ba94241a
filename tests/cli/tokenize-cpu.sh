# tokenize-cpu.sh: --cpu gives the same bytes at each level that this machine has. Unknown levels
# are refused.

# Prose, code, many scripts and broken UTF-8, repeated.
mkdir in
cat "$ROOT/README.md" "$ROOT/tokenize/text/split.c" "$ROOT/tokenize/vocab/gpt2.bpe" > in/text
for i in 1 2 3 4 5 6 7 8 9; do
    printf "Ich weiß's nicht, 我也不知道。 Не знаю, كلمة ٣٤، ไม่รู้ ひらがな　カタカナ 한국어 🙂🙂 n°%d \302\240 it'll we've\r\n" $i
    printf 'broken \360\237\230 \300\200 \355\240\200 end\342\200\203 \303'
done > in/scripts

# A build for an older CPU (make CPU=avx2) has only the levels up to that CPU, on any machine.
most=$(sed -n 's/.*-DSGT_CPU_MOST=[^a-z]*\([a-z0-9]*\).*/\1/p' "$BIN/../flags")
run 0 sgt-tokenize --quiet in auto
for level in plain avx2 avx512 amx auto; do
    case $level in
    avx2) flag=avx2 ;;
    avx512) flag=avx512vl ;;
    amx) flag=amx_bf16 ;;
    *) flag='' ;;
    esac
    case $most-$level in plain-a[vm]* | avx2-avx512 | avx2-amx | avx512-amx) flag=none ;; esac
    if [ -z "$flag" ] || grep -qw "$flag" /proc/cpuinfo; then
        run 0 sgt-tokenize --quiet --cpu $level in $level.out
        same_folders auto $level.out
        run 0 sgt-bench tokenize --json --cpu $level in
        [ $level = auto ] || stdout_has "\"level\": \"$level\""
    else
        for program in 'sgt-tokenize' 'sgt-bench tokenize'; do
            run 2 $program --cpu $level in out
            stderr_matches "^$program: --cpu $level: this CPU's highest level is [a-z0-9]+ \(use that or a lower level, or auto\)$"
        done
        absent out
    fi
done

unknown='--cpu sse9: must be one of auto, plain, avx2, avx512, amx'
run_usage "$unknown" sgt-tokenize --cpu sse9 in out
absent out
run_usage "$unknown" sgt-bench tokenize --cpu sse9 in
