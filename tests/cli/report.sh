# sgt-report: the page's curves equal the log's, even if the log is damaged. Names from a run cannot
# inject anything into the page.
. "$ROOT/tests/cli/train.inc"

# report RUN...: write report.html, and flat, which is the page on one line without invisible markup
report() {
    run 0 sgt-report -o report.html "$@"
    tr '\n' ' ' < report.html |
        sed 's/\xc2\xa0/ /g; s/<\/*span>//g; s/<code>\(--[a-z-]*\)<\/code> /\1 /g; s/<i [^>]*><\/i>//g' > flat
}
page_has() { for text; do grep -qF -e "$text" flat || fail "the page lacks: $text"; done; }
# figure ID: print this figure of the page
figure() { sed 's/<figure /\n&/g' flat | grep "^<figure id=\"$1\""; }
# log STEPS RUN: make a run whose loss falls linearly from 10 to 1, with a validation loss at every tenth step
log() {
    mkdir -p "$2"
    awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) {
        printf "{\"step\":%d,\"loss\":%.9g,%s\"lr\":%.9g,\"grad_norm\":%.9g,\"loss_scale\":1,\"skipped\":%d,",
            i, 10 - 9 * i / (n - 1), i % 10 == 9 ? sprintf("\"val_loss\":%.9g,", 10.5 - 9 * i / (n - 1)) : "",
            1e-3 * (n - i) / n, 2 + i % 2, (i > n / 2)
        printf "\"tokens\":%d,\"epoch\":%g,\"tokens_per_s\":6400,\"ms_per_step\":10,", (i + 1) * 64, i / n
        printf "\"data_wait_ms\":0.001,\"mfu\":0.4,\"peak_bytes\":%d}\n", 3e8
    } }' > "$2/log.jsonl"
}
# options RUN NAME VALUE...: write the run's options.json
options() {
    file=$1/options.json
    shift
    { printf '{"model": "2x32x2", "batch-size": 4, "seq-len": 16, "grad-accum": 1, "steps": 200'
        while [ $# -gt 1 ]; do printf ', "%s": %s' "$1" "$2" && shift 2; done && echo '}'; } > "$file"
}
# shape FIGURE CLASS ELEMENT: print the points of the figure's first element of this class, one per
# line
shape() {
    figure "$1" | sed 's/</\n</g' | grep "^<$3 class=\"$2\"" | head -1 | sed 's/.* \(d\|points\)="//; s/".*//' |
        tr 'ML' '  ' | tr -s ' ' '\n' | grep ,
}
# straight COUNT: standard input must be COUNT points at equal distances on a straight line
straight() {
    awk -F , -v want="$1" 'NR > 1 { dx = $1 - x; dy = $2 - y } { x = $1; y = $2 }
        NR == 2 { dx0 = dx; dy0 = dy }
        NR > 1 && (dx - dx0 > .21 || dx0 - dx > .21 || dy - dy0 > .21 || dy0 - dy > .21) { bad = NR }
        END { if (NR != want || bad || dx0 <= 0 || dy0 <= 0) { print NR " points, not straight at " bad; exit 1 } }'
}
says() {
    sed 's/<\/*code>//g; s/<li class="grave">/<li>/' report.html | grep -qF -e "<li>$1" ||
        fail "no such advice: $1 (but $(grep '^<li>' report.html))"
}
figure_count() { grep -c '<figure ' report.html; }

# ---- messages ----

run_usage 'expected RUN/... (such as: sgt-report run/)' sgt-report
# shellcheck disable=SC2046
run_usage 'a page can show at most 24 runs, not 25' sgt-report $(seq 25)
run_failure 'nowhere: No such file or directory' sgt-report nowhere
mkdir empty
run_failure 'empty: not a run of sgt-train: it has no log.jsonl (pass the folder given as --run)' sgt-report empty
mkdir odd
mkfifo odd/log.jsonl
run_failure 'odd/log.jsonl: is not a regular file' sgt-report odd
absent report.html

# sgt-report needs no other program.
log 100 plain
mkdir bin
ln -s "$(command -v sgt-report)" bin/
run_silent env PATH="$PWD/bin" sgt-report plain
[ "$(grep -c '<svg class' plain/report.html)" -eq 10 ] || fail "$(grep -c '<svg class' plain/report.html) pictures, one of them twice"
rm plain/report.html
log 60000 slow
# shellcheck disable=SC2046
run_interrupted sgt-report -o report.html $(yes slow | head -24)
absent report.html
rm -r slow

# The page of a run without a completed step has no charts.
mkdir young
options young
report young
grep -q 'No step has been logged yet' report.html || fail 'it is not said that nothing is logged'
! grep -q '<svg' report.html || fail 'a picture of nothing'
rm report.html

# ---- the path of the page ----

run_prints_like '^plain/report.html: 1 run, [0-9.]+ KiB$' sgt-report plain
absent report.html
run_prints_like '^plain/report.html: 1 run, [0-9.]+ KiB; replaced the earlier page$' sgt-report plain/
rm plain/report.html
run_prints '{"report": null, "replaced": false, "runs": [' sgt-report --json plain # no page is written
absent plain/report.html
log 100 second
run_prints_like '^report.html: 2 runs, [0-9.]+ KiB$' sgt-report plain second
absent second/report.html
for replaced in false true; do
    run_prints '{"report": "both.html", "replaced": '$replaced', "runs": [' sgt-report --json plain second -o both.html
done
mkdir second/report.html
run_failure_like '^sgt-report: second/report.html: .* \(-o FILE writes the page elsewhere\)$' sgt-report second
run_usage '--output: needs a value (FILE)' sgt-report -o '' plain
run_usage '--output -: the page must be a file (use ./- for a file named -)' sgt-report -o - plain
absent -
rm -r second report.html

# ---- one run ----

report plain
stdout_matches '^report.html: 1 run, [0-9.]+ KiB$'
stderr_is ''
[ "$(figure_count)" -eq 9 ] || fail "$(figure_count) pictures"
for figure in loss-steps loss-tokens loss-time; do
    shape $figure 'line s0' path | straight 100 || fail "$figure: training"
    shape $figure 'line s1' path | straight 10 || fail "$figure: validation"
done
shape lr 'line s0' path | straight 100 || fail 'learning rate'
# The curve of the gradient norm alternates between two values. Speed, MFU and peak memory are
# constant.
[ "$(shape grad-norm 'raw s0' path | wc -l)" -eq 100 ] || fail 'gradient norm: not every step'
[ "$(shape grad-norm 'raw s0' path | cut -d , -f 2 | sort -u | wc -l)" -eq 2 ] || fail 'gradient norm'
for figure in speed mfu wait peak; do
    [ "$(shape $figure 'line s0' path | wc -l)" -eq 100 ] || fail "$figure: not every step"
    [ "$(shape $figure 'line s0' path | cut -d , -f 2 | sort -u | wc -l)" -eq 1 ] || fail "$figure: not level"
done
[ "$(grep -o 'class="rug s0"' flat | wc -l)" -eq 1 ] || fail 'one update was left out'
page_has '1 update was skipped' \
    '<dt>Final loss</dt><dd>1.8636</dd><dd class="more">nats, mean of the last 20 steps; lower is better</dd>' \
    '<dt>Validation loss</dt><dd>1.5000</dd>' '<dt>Tokens</dt><dd>6.40 k</dd>' '<dt>Training time</dt><dd>1.0 s</dd>' \
    '<dt>Tokens/s</dt><dd>6.40 k</dd>' '<dt>MFU</dt><dd>40 %</dd>' \
    'No problem found: the loss does not diverge, oscillate, spike or stay flat, '
# The page loads nothing, has no script, and has no duplicate ids.
! grep -qiE '<script|https?://|<img|<iframe|<object|@import|url\(| on[a-z]+=' report.html ||
    fail 'the page asks for more'
[ "$(grep -oE ' id="[^"]*"' report.html | sort | uniq -d | wc -l)" -eq 0 ] || fail 'an id is there twice'
! grep -q 'rgb(' report.html || fail 'a colour that follows no theme'
! grep 'aria-label=' report.html | grep -q '&lt;' || fail 'a label with tags'
run 0 sgt-report --json plain -o again.html
stdout_lines 1
stdout_has '"report": "again.html"'
stdout_matches '"steps": 100, "loss": 1.8636363[67], "loss_noise": [0-9.]+e-[0-9]+, "loss_steps": 20, "val_loss": 1.5, '
stdout_has '"val_noise": null, "best_val_loss": 1.5, "val_bits_per_byte": null, "tokens": 6400.0, "seconds": 1.0'
stdout_has '"damaged_lines": 0, "advice": []'
# Bits per byte, if the logs have them.
cp -r plain bits
sed 's/"val_loss":[0-9.]*/&,"val_bits_per_byte":.5625/' plain/log.jsonl | sed 's/:\./:0./' > bits/log.jsonl
run 0 sgt-report --json bits plain -o two.html
stdout_has '"best_val_loss": 1.5, "val_bits_per_byte": 0.5625, "tokens": 6400.0'
check 'a column for the bits' grep -q '<th scope="col">Bits per byte</th>' two.html
check 'a value for one run, a dash for the other' grep -qE '<td title="Bits per byte">(<strong>)?0\.5625<' two.html
run 0 sgt-report --quiet plain -o again.html
! grep -q 'Bits per byte' again.html || fail 'bits per byte that no log has'
rm -r bits two.html
run_says '' sgt-report --quiet plain
stderr_is ''
run 1 sh -c 'sgt-report plain > /dev/full'
stderr_is 'sgt-report: standard output: No space left on device'
ln -s /proc/self/fd/1 out # like /dev/stdout: the page must not replace this link
for page in odd/log.jsonl out; do
    run_failure "$page: is not a regular file" sgt-report plain -o $page
    [ ! -f $page ] || [ -L $page ] || fail "$page was replaced"
done
run_failure 'nowhere/report.html: cannot create: No such file or directory' sgt-report plain -o nowhere/report.html

# ---- tooltips, and labels of the axes ----

# says_there FIGURE LINE...: check that a <title> of the figure has these lines
says_there() {
    figure=$1 && shift
    printf '%s\n' "$@" | tr '\n' '|' | sed 's/|$//' > expected
    tr '\n' '|' < report.html | sed 's/<figure /\n&/g; s/\xc2\xa0/ /g' | grep "^<figure id=\"$figure\"" |
        grep -qF -e "<title>$(cat expected)</title>" || fail "no title in $figure: $(cat expected)"
}
report plain
says_there loss-steps 'step 50' 'training 5.545 nats' 'smoothed 5.545 nats' 'validation 6.045 nats'
says_there loss-tokens 'after 2.50 k tokens' 'training 6.545 nats' 'smoothed 6.545 nats' 'validation 6.955 nats'
says_there lr 'step 6' 'value 0.00095'
says_there speed 'step 6' 'value 6.40 k tokens/s' 'smoothed 6.40 k tokens/s'
says_there peak 'step 6' 'value 286.1 MiB'
labels() { # FIGURE LABEL...: check the labels of its axes
    figure=$1 && shift
    figure "$figure" > .figure
    for label in "$@"; do grep -q "<text class=\"label\"[^>]*>$label</text>" .figure || fail "$figure lacks $label"; done
}
labels loss-steps steps 'nats per token'
labels loss-tokens tokens 'nats per token'
labels loss-time seconds 'nats per token'
labels lr steps '× 10⁻³'
labels grad-norm steps 'norm before clipping (log scale)'
labels speed steps 'tokens per second'
labels mfu steps '% share of the peak speed'
labels wait steps "% share of a step&#39;s time"
labels peak steps MiB
page_has 'in nats per token (1 nat is 1.44 bits)' 'Model FLOPs utilization: the share of'
[ "$(grep -c 'ower is better' report.html)" -eq 6 ] || fail "lower is better: $(grep -c 'ower is better' report.html)"

# ---- loss over compute, of several runs whose models are known ----

log 100 few && options few lr 0.001
log 100 many && options many lr 0.001
sed -i 's/2x32x2/2x64x2/' many/options.json
report plain many
! grep -q 'id="loss-compute"' report.html || fail 'loss over the compute of a model that is not known'
report few many
labels loss-compute '× 10⁻⁹ PF-days' 'nats per token'
for color in s0 s1; do shape loss-compute "line $color" path | straight 100 || fail "over compute: $color"; done
far() { shape loss-compute "line $1" path | awk -F , 'NR == 1 { first = $1 } END { print $1 - first }'; }
# The models have 1,666,464 and 3,382,080 parameters and saw the same number of tokens.
awk -v few="$(far s0)" -v many="$(far s1)" 'BEGIN { x = few / many; exit !(x > .49 && x < .496) }' ||
    fail "$(far s0) and $(far s1) over compute"
report few
! grep -q 'id="loss-compute"' report.html || fail 'one run needs no compute'
rm -r few many

# ---- noise: a smooth line over a faint one, and only as many digits as the noise allows ----

mkdir noisy
awk '{ sub(/"loss":[0-9.]*/, "\"loss\":" (NR % 2 ? 4.5 : 5.5)); print }' plain/log.jsonl > noisy/log.jsonl
report noisy
[ "$(shape loss-steps 'raw s0' path | wc -l)" -eq 100 ] || fail 'not every step is shown'
height() { # CLASS: print the height of a line after its first tenth
    shape loss-steps "$1" path | awk -F , 'NR == 11 { low = high = $2 } NR > 10 && $2 < low { low = $2 }
        NR > 10 && $2 > high { high = $2 } END { print high - low }'
}
awk -v raw="$(height 'raw s0')" -v smooth="$(height 'line s0')" 'BEGIN { exit !(raw > 80 && smooth < raw / 4) }' ||
    fail "a smooth line of $(height 'line s0') over $(height 'raw s0')"
page_has 'The strong line is smoothed, the faint line behind it is not' \
    '<dd>5.00</dd><dd class="more">± 0.1 nats, mean of the last 20 steps; lower is better</dd>'
head -1 noisy/log.jsonl > line && mv line noisy/log.jsonl
report noisy
page_has '<dd>4.5000</dd><dd class="more">nats, of 1 step; lower is better</dd>' '<dd class="more">1 step</dd>'

# ---- facts about the run ----

cat > noisy/starts.jsonl << 'END'
{"time":"2026-01-02T03:04:05Z","host":"<b>old","machine":"An & Co","version":"0.1.0","step":0,"command":"sgt-train --data d"}
not JSON
{"time":"2026-01-03T03:04:05Z","host":"<b>host","machine":"An & Co","version":"0.1.0","step":4,"command":"sgt-train --resume '<i>'"}
END
options noisy data '"texts"'
report noisy
page_has '<dt>Data</dt><dd>texts</dd>' '<dt>Host</dt><dd>&lt;b&gt;host, An &amp; Co</dd>' \
    '<dt>Started</dt><dd>2026-01-02 03:04 UTC</dd>' '<dt>Command</dt><dd><code>sgt-train --data d</code></dd>' \
    '<dt>Resumed</dt><dd>2026-01-03 03:04 UTC <small>after step 4</small> <code>sgt-train --resume &#39;&lt;i&gt;&#39;</code></dd>' \
    '<dt>Sample</dt><dd><span class="none">none: the run has no checkpoint yet</dd>'
for step in 5 6 7 8 9; do echo "{\"time\":\"later\",\"step\":$step,\"command\":\"sgt-train --run $step\"}"; done >> noisy/starts.jsonl
report noisy # the newest four resumes
page_has '<dt>Resumed</dt><dd><small>2 earlier times</small><br>later <small>after step 6'
rm -r noisy

# ---- a run in progress: its page reloads itself until the log has all
# steps or has stopped growing ----

cp -r plain grows
options grows lr 0.001 # 200 steps are planned, and 100 are logged
echo elsewhere > grows/owner # a process of another machine
touch grows/log.jsonl
report grows
grep -qx '<meta http-equiv="refresh" content="30">' report.html || fail 'the page does not reload itself'
grep -qE '<li>The run seems to be training: it has steps left, and its log grew [0-9]+ s ago.' report.html || fail 'it is not said that the run goes on'
report plain grows
grep -q '<meta http-equiv="refresh"' report.html || fail 'the page of two runs does not reload itself'
rests() { ! grep -q 'http-equiv="refresh"\|seems to be training' report.html || fail "$1: the page reloads itself"; }
touch -d 'now 100 seconds' grows/log.jsonl
report grows
grep -q '<meta http-equiv="refresh"' report.html || fail 'a clock that is two minutes ahead ends the run'
touch -d '1 hour ago' grows/log.jsonl
report grows
rests 'the log stopped growing an hour ago'
touch -d 'now 1 hour' grows/log.jsonl
report grows
rests 'a clock is wrong'
touch grows/log.jsonl
rm grows/owner
report grows
rests 'the run was ended'
echo elsewhere > grows/owner
sed -i 's/"steps": 200/"steps": 100/' grows/options.json
touch grows/log.jsonl
report grows
rests 'the log has all steps'
rm -r grows

# A run that was killed is not in progress.
data d
begun killed/log.jsonl sgt-train --quiet $small --steps 1000000 --run killed || fail 'it ended too early'
report killed
grep -q 'seems to be training' report.html || fail 'a run at work does not go on'
end_begun
exists killed/owner
report killed
rests 'it was killed a moment ago'
exists killed/owner # a report changes no run
rm -r killed

# ---- curves that coincide ----

cp -r plain twin
log 200 other
captions() { sed 's/<figcaption>/\n&/g' flat | sed -n 's/^<figcaption>\(.*\)<\/figcaption>.*/\1/p'; }
report other plain twin
[ "$(captions | grep -c 'twin coincides with plain\.$')" -eq 4 ] || fail "losses that coincide: $(captions)"
[ "$(captions | grep -c 'plain coincides with other\. twin coincides with other\.$')" -eq 5 ] ||
    fail "all three coincide: $(captions)"
report plain
! grep -q 'coincides' report.html || fail 'a single curve coincides'
rm -r twin other

# ---- the end of the smooth line ----

# The line does not bend towards the last losses: after 97 losses of 5 and three of 4, it ends
# nearer to 4.5 than to 4.
mkdir bent
awk '{ sub(/"loss":[0-9.]*/, "\"loss\":" (NR <= 97 ? 5 : 4)); print }' plain/log.jsonl > bent/log.jsonl
report bent
grep -A2 '<title>step 100$' report.html | sed -n 's/^smoothed \([0-9.]*\) nats.*/\1/p' | head -1 > end
awk '{ exit !($1 > 4.25 && $1 < 4.75) }' end || fail "the smooth line ends at $(cat end)"
rm -r bent

# ---- the beginning of the smooth line ----

# begins STEPS NOISE LOSS SHARE: LOSS is an expression for the loss of step i, to which noise is
# added that is largest at the first step. In the first tenth of the steps, the smooth line must be
# nearer than SHARE of the noise to LOSS.
begins() {
    mkdir -p begun exact
    for run in begun exact; do
        awk -v noise="$([ $run = exact ] || echo "$2")" -v steps="$1" "BEGIN { seed = 1 }
            NR <= steps { i = NR - 1; seed = seed * 16807 % 2147483647
            sub(/\"loss\":[0-9.]*/, \"\\\"loss\\\":\" ($3 + noise * (i ? seed / 1073741824 - 1 : 1))); print }" \
            plain/log.jsonl > $run/log.jsonl
    done
    report begun exact
    for line in 'raw s1' 'raw s0' 'line s0'; do shape loss-steps "$line" path | cut -d , -f 2 > "${line%0}"; done
    paste 'raw s1' 'raw s' 'line s' | awk -v share="$4" -v end=$(($1 / 10 + 1)) '
        function size(x) { return x < 0 ? -x : x }
        NR <= end { if (size($2 - $1) > noise) noise = size($2 - $1)
            if (size($3 - $1) > off) off = size($3 - $1) }
        END { print off, "of", noise; exit !(noise > 5 && off < share * noise) }' > off ||
        fail "$3: the smooth line is $(cat off) pixels of noise from it"
    rm -r begun exact
}
for steps in 24 60 100; do begins $steps .5 5 .4; done
begins 100 .3 '8 - i / 25' .2
# The line follows a steep beginning.
begins 100 .3 '3 + 7.8 * exp(-i / 4)' .9
begins 100 .5 '2 + 8 / sqrt(i + 1)' 1.2

# ---- a long run ----

log 20000 long
report long
[ "$(wc -c < report.html)" -lt 200000 ] || fail "$(wc -c < report.html) bytes of 20,000 steps"
grep -q 'Each point is the mean of 84 steps, and the shaded band shows' report.html || fail 'thinning is not said'
shape loss-steps 'line s0' path > points
head -238 points | straight 238 || fail 'means of 84 steps' # the last point averages fewer steps
shape loss-steps 'band s0' path > points
[ "$(wc -l < points)" -ge 478 ] || fail "$(wc -l < points) points of a band"
grep -q 'mean of the last 200 steps' report.html || fail 'the final loss is the mean of a hundredth'
[ "$(grep -c '<title>' report.html)" -le 650 ] || fail "$(grep -c '<title>' report.html) titles"
# The shaded range shows a spike of a single step.
sed -i '10000s/"loss":[0-9.]*/"loss":9.9/' long/log.jsonl
report long
top=$(shape loss-steps 'band s0' path | sort -t , -k 2n | awk -F , 'NR < 10 && $1 > 100')
[ -n "$top" ] || fail 'a spike of one step is lost'

# ---- peak memory of a resumed run ----

# The process that resumed at step 50 used less memory than the one before. The peak so far must not
# fall.
mkdir resumed
sed '51,$s/"peak_bytes":300000000/"peak_bytes":200000000/' plain/log.jsonl > resumed/log.jsonl
report resumed
[ "$(shape peak 'line s0' path | cut -d , -f 2 | sort -u | wc -l)" -eq 1 ] || fail 'the peak memory falls'
rm -r resumed

# ---- damaged logs ----

# A run in progress whose log ends in the middle of a line.
cp -r plain half
printf '{"step":100,"lo' >> half/log.jsonl
report half
shape loss-steps 'line s0' path | straight 100 || fail 'a log that is being written'
grep -q 'last line of the log is incomplete' report.html || fail 'half a line is not said'
# A resumed run whose log was not truncated: steps from 50 on occur twice, and the curve uses the
# later lines.
{ head -80 plain/log.jsonl && sed -n '51,$p' plain/log.jsonl; } > half/log.jsonl
report half
shape loss-steps 'line s0' path | straight 100 || fail 'steps that come again'
grep -q 'Lines of the log replaced by later lines for the same steps: 30' report.html || fail 'repeated steps are not said'
# Foreign lines, empty lines, lines without an end, strings instead of numbers.
{ head -50 plain/log.jsonl && printf 'not JSON\n[1]\n{"step":"x"}\n{"step":-1}\n{"step":1.5}\n{}\n\n\0\n' &&
    head -c 70000 /dev/zero | tr '\0' x && echo && sed -n '51,$p' plain/log.jsonl; } > half/log.jsonl
report half
stderr_is 'sgt-report: half/log.jsonl: skipped 9 damaged lines'
shape loss-steps 'line s0' path | straight 100 || fail 'a damaged log'
# A loss that is not a number: the curve has a gap, and the advice suggests a lower learning rate.
options half lr 0.001
sed '60,$s/"loss":[0-9.]*/"loss":null/' plain/log.jsonl > half/log.jsonl
report half
shape loss-steps 'line s0' path | straight 59 || fail 'a loss that is not a number'
grep -q '<dd>not a number</dd>' report.html || fail 'the last loss is not said to be no number'
says 'step 60: the loss is not a number: start again with an lr 10 times lower (--lr 0.0001)'
# Logs in which no loss is a number; a single step; extreme numbers; equal values.
sed 's/"loss":[0-9.]*/"loss":null/' plain/log.jsonl > half/log.jsonl
report half
head -1 plain/log.jsonl > half/log.jsonl
report half
figure loss-steps | grep -q '<circle class="dot s0"' || fail 'one step is not to be seen'
sed 's/"loss":[0-9.]*/"loss":1e308/; s/"grad_norm":[0-9]*/"grad_norm":-1e99/; s/"lr":[0-9.]*/"lr":1e99/
    s/"tokens":/"tokens":-9e15/; s/"ms_per_step":/"ms_per_step":-/; s/"mfu":0.4/"mfu":[]/' \
    plain/log.jsonl > half/log.jsonl
report half
sed 's/"loss":[0-9.]*/"loss":0/; s/"lr":[0-9.]*/"lr":0/; s/"grad_norm":[0-9]*/"grad_norm":0/; s/"mfu":0.4/"mfu":0/' \
    plain/log.jsonl > half/log.jsonl
report half
# A run without validation: the page says so and has no chart of it.
sed 's/"val_loss":[0-9.]*,//' plain/log.jsonl > half/log.jsonl
report half
grep -q 'There were no evaluations' report.html || fail 'that there were no evaluations is not said'
! grep -q 'Validation loss' report.html || fail 'a validation loss of nothing'
# If options.json and memory.jsonl are damaged, the curves are still drawn.
echo '[1]' > half/options.json
echo 'x' > half/memory.jsonl
report half
stderr_is 'sgt-report: the page lacks the options: half/options.json: line 1: expected a JSON object'
shape loss-steps 'line s0' path | straight 100 || fail 'damage elsewhere'

# ---- advice ----

options half lr 0.5
sed 's/"data_wait_ms":0.001/"data_wait_ms":40/; s/"ms_per_step":10/"ms_per_step":400/' plain/log.jsonl > half/log.jsonl
report half
says '10 % of the time was spent waiting for batches: use more --workers'
# A diverged run is reported in red (tests/train/test_advice.c says when).
grave() { sed 's/<\/*code>//g' report.html | grep -qF -e "<li class=\"grave\">$1" || fail "not in red: $1"; }
rise() { awk -v at="$1" '{ sub(/"loss":[0-9.]*/, "\"loss\":" (NR < at ? 10.8 : 5000)); print }' plain/log.jsonl; }
options half lr 20
rise 41 > half/log.jsonl
report half
grave 'step 90: diverged: the loss is above its initial value: 5000 over the last 20 steps, 10.8 over the first 20 '\
'(lower --lr, or let --lr auto choose it)'
! grep -q 'class="tick"[^>]*>-' report.html || fail 'the smooth line goes below all losses'
options half lr 0.001
sed '51,$s/"val_loss":[0-9.]*/"val_loss":7.5/' plain/log.jsonl > half/log.jsonl
rm half/options.json
report half
says 'the validation loss was lowest after step 50 (6.045) and has risen to 7.5 since: the model is overfitting'

options half lr 0.001
awk 'NR == 80 { sub(/"grad_norm":[0-9]*/, "\"grad_norm\":30") } 1' plain/log.jsonl > half/log.jsonl
report half
says 'step 80: the gradient norm spikes: 30 is 15 times the median of earlier steps (a low --grad-clip limits such '
# A validation loss above the training loss. The log states its noise; if not, the noise of one step
# is used.
level() { # NOISE
    awk -v noise="$1" '{ sub(/"loss":[0-9.]*/, "\"loss\":" (NR % 2 ? 2.05 : 1.95))
        sub(/"val_loss":[0-9.]*/, "\"val_loss\":2.4" noise); print }' plain/log.jsonl > half/log.jsonl
    report half
}
level ',"val_noise":0.0123'
says 'the validation loss, 2.4, exceeds the training loss, 2, by more than their noise (0.02): the model overfits, '
page_has '<dd>2.400</dd><dd class="more">± 0.01 nats; lower is better</dd>'
run_prints '"val_loss": 2.4, "val_noise": 0.0123, "best_val_loss": 2.4, ' sgt-report --json half
report half plain # several runs have it, too
page_has '<td title="Final loss">2.000 <small>± 0.01</small></td><td title="Validation loss">2.400 <small>± 0.01</small></td>'
level ''
says 'the validation loss, 2.4, exceeds the training loss, 2, by more than their noise (0.05): the model overfits, '

# ---- memory: by kind, from memory.jsonl, next to the estimate ----

run 0 sgt-train --quiet $small --steps 5 --run trained
run 0 sgt-train --estimate-memory $small --steps 5 --run trained
sed -nE 's/^  ([a-z0-9 -]+[a-z]) +([0-9.]+ [KMG]?i?B) .*/\1:\2/p' .stdout > kinds
[ "$(wc -l < kinds)" -ge 12 ] || fail "$(wc -l < kinds) kinds are estimated"
report trained
sed 's/<tr>/\n/g' flat | grep '^<th scope="row">' > rows
grep -vE '^(program|in all):' kinds | while IFS=: read -r kind size; do # the size of the program differs here
    grep -q "^<th scope=\"row\">$kind</th><td[^>]*>[^<]*</td><td>$size</td></tr>" rows ||
        fail "$kind is estimated as $size: $(grep "$kind" rows)"
done
# For each kind, the page shows the most that was in use in any part of a step.
for kind in weights activations attention; do
    used=$(sed -nE "s/.*\"used\":\{[^}]*\"$kind\":([0-9]+).*/\1/p" trained/memory.jsonl | sort -n | tail -1)
    grep -q "^<th scope=\"row\">$kind</th><td>$(awk -v n="$used" 'BEGIN { printf "%.1f KiB", n / 1024 }')</td>" rows ||
        fail "$kind: $used bytes at most"
done
page_has "<dt>Command</dt><dd><code>sgt-train --quiet $small --steps 5 --run trained</code>" \
    'none: trained/step-00000005: the model has 256 ids'
grep -q "<dt>Host</dt><dd>$(uname -n)[, ]" report.html || fail "another host: $(grep '<dt>Host' report.html)"
grep -qE "<dt>Started</dt><dd>[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} UTC</dd>" report.html || fail 'no date'
grep -qE '<dt>Data</dt><dd>d <small>· fingerprint [0-9a-f]{8}</small>' report.html || fail 'no data'
! grep -q -e '--vocab FILE' report.html || fail 'a hint that sgt-report has no option for'
run 0 sgt-report --no-sample trained -o report.html
! grep -q '<dt>Sample' report.html || fail '--no-sample'
# Data that sgt-report keeps from one run, such as a vocabulary, must not change the estimate for
# the next.
cp -r trained twin
mkdir gpt2
cp "$curve/tokens.bin" gpt2/train_000000.bin # headers without a vocabulary size mean GPT-2
run 0 sgt-train --quiet --data gpt2 --model 1x16x2 --seq-len 16 --batch-size 2 --device cpu --steps 1 --run texts
report trained texts twin
grep -o 'Peak of the run</th><td>[^<]*</td><td>[^<]*' flat | sed 's/.*>//' > peaks
[ "$(sed -n 1p peaks)" = "$(sed -n 3p peaks)" ] || fail "estimates of equal runs: $(xargs < peaks)"
mv d gone
report trained
stderr_is 'sgt-report: trained: could not estimate its memory: d: No such file or directory (make a folder of shards with sgt-tokenize)'
grep -q '<p class="none">No estimate: ' report.html || fail 'it is not said why there is no estimate'
rm -r trained twin texts gpt2

# ---- several runs ----

log 200 other
options other lr 0.001 optimizer '"sgd"'
options plain lr 0.002 optimizer '"adamw"'
report plain other/
stdout_matches '^report.html: 2 runs, '
shape loss-steps 'line s0' path | straight 100 || fail 'the first of two'
shape loss-steps 'line s1' path | straight 200 || fail 'the second of two'
sed -i 's/<summary>Options that are the same.*//' flat
page_has '<code>lr</code></th><td>0.002</td><td>0.001</td>' '<code>optimizer</code></th><td>adamw</td><td>sgd</td>'
! grep -qF '<code>batch-size</code>' flat || fail 'batch-size does not differ'

# The best values are bold, both of them if they are equal. If the runs have different data, no
# value is bold.
strong() { grep -c '<strong>' report.html; }
[ "$(strong)" -eq 2 ] && grep -q 'The best value of all runs is bold' report.html || fail "$(strong) lines with something bold"
options other data '"another"'
report plain other
[ "$(strong)" -eq 0 ] || fail 'a winner between runs of other data'
grep -q 'No value is bold, because the runs used different data' report.html || fail 'it is not said why'
page_has '<dd>another</dd>'

# ---- a sample of text, and the memory of two runs ----

texts corpus 60000
run 0 sgt-tokenize --quiet corpus text
for n in 1 2; do
    run 0 sgt-train --quiet --data text --model ${n}x16x2 --device cpu --threads 1 --seq-len 16 --batch-size 2 \
        --steps 3 --eval-every 0 --lr 1e-3 --run w$n
done
run 0 sgt-sample --quiet --tokens 40 w1
words() { tr -s '\000-\040\177' ' ' | sed 's/^ //; s/ $//'; }
words < .stdout > wrote
report w1
sed 's/.*<blockquote>//; s/<\/blockquote>.*//' flat |
    sed "s/&lt;/</g; s/&gt;/>/g; s/&quot;/\"/g; s/&#39;/'/g; s/&amp;/\&/g" | words > shown
sed 's/\xef\xbf\xbd//g' shown | LC_ALL=C tr -d '\200-\377' | words > shown.ascii
LC_ALL=C tr -d '\200-\377' < wrote | words > wrote.ascii
[ -s shown.ascii ] && same shown.ascii wrote.ascii
report w1 w2
[ "$(grep -c '<div class="card run">' report.html)" -eq 4 ] || fail 'not a card of memory and one of its origin for each'
[ "$(grep -c '<blockquote>' report.html)" -eq 2 ] || fail 'not a text of each'
rm -r w1 w2 text

# ---- names ----

for name in '<script>alert(1)<script>' "a'b\"c" '`touch pwned`' 'a@b' '$(touch pwned)' 'x;touch pwned' '&amp;' \
    "$(printf 'e\033[31m')" \
    "$(printf 'new\nline')" "$(printf 'bad\377byte')" '-o'; do
    cp -r plain "./$name"
    printf '{"lr": 0.1, "batch-size": 4, "%s": "<script>`touch pwned`</script>"}' '<b>' > "./$name/options.json"
    report "./$name" plain
    ! grep -q '<script\|<b><script\|<code><b>' report.html || fail "not escaped: $name"
    ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\377]')" report.html ||
        fail "control characters on the page: $name"
    shape loss-steps 'line s0' path | straight 100 || fail "$name"
    rm -r "./$name"
done
absent pwned
mkdir -p 'x y'
run 0 sgt-report plain -o 'x y/@`a`.html'
exists 'x y/@`a`.html'
