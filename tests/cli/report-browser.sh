# Open pages of sgt-report in headless Chromium, light and dark: the console has no message, nothing
# is wider than the screen, and text is large enough and has enough contrast. Screenshots are kept
# in build/report/. README's picture, tools/report/demo.png, is the top of the page that `make demo`
# makes. It was taken with
# chromium --headless=new --hide-scrollbars --window-size=1180,1396 --screenshot=demo.png
# build/demo/report.html
# In make check-all only: it opens pages in a browser.
. "$ROOT/tests/cli/train.inc"
command -v chromium > /dev/null || skip 'chromium is not there (make deps gets it with tools/deps.sh all)'
pictures=$BIN/../report
mkdir -p "$pictures"

browse() { # OPTION... PAGE: open it; the output is in .stdout and .stderr
    HOME=$PWD run 0 timeout 60 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
        --hide-scrollbars --user-data-dir="$PWD/browser" --allow-file-access-from-files --enable-logging=stderr \
        --virtual-time-budget=2000 "$@"
}
# frame PAGE WIDTH: show a page in a frame of that width, because a window cannot be as narrow as a
# phone's screen. A script in the frame measures the page and prints what it finds.
frame() { # PAGE WIDTH
    cat > frame.html << END
<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,"><body style="margin:0;background:#888">
<iframe src="$1" width="$2" height="${HEIGHT:-6000}" style="border:0;display:block"></iframe>
<pre id="found"></pre><script>
onload = () => {
    const inner = document.querySelector('iframe').contentDocument, root = inner.documentElement, found = [];
    const say = (name, value) => found.push(name + '=' + value);
    const rgb = s => s.match(/[\d.]+/g).slice(0, 3).map(Number);
    const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b; };
    const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
        return (x + .05) / (y + .05); };
    const style = e => inner.defaultView.getComputedStyle(e);
    const card = rgb(style(inner.querySelector('figure')).backgroundColor);
    const shown = [...inner.querySelectorAll('svg.chart')].filter(s => s.getBoundingClientRect().width > 0);
    const least = list => list.length ? Math.min(...list).toFixed(2) : 'none';
    say('overflow', root.scrollWidth - root.clientWidth);
    say('hidden', [...inner.querySelectorAll('.scroll.card')].filter(e => e.scrollWidth > e.clientWidth).length);
    say('height', Math.ceil(root.getBoundingClientRect().height));
    say('pictures', shown.length);
    say('letters', least(shown.map(s => 12 * s.getBoundingClientRect().width / s.viewBox.baseVal.width)));
    const texts = shown.flatMap(s => [...s.querySelectorAll('text')]);
    say('words', least(texts.map(t => contrast(rgb(style(t).fill), card))));
    say('text', least([...inner.querySelectorAll('dt, dd, h3, figcaption, td, th')]
        .map(t => contrast(rgb(style(t).color), card))));
    say('lines', least(shown.flatMap(s => [...s.querySelectorAll('.line')])
        .map(t => contrast(rgb(style(t).stroke), card))));
    say('outside', shown.flatMap(s => [...s.querySelectorAll('text')]
        .map(t => [t.getBoundingClientRect(), s.parentNode.getBoundingClientRect()]))
        .filter(([t, f]) => t.left < f.left || t.right > f.right).length);
    const labels = shown.map(s => [...s.querySelectorAll('text')].map(t => [t.getBoundingClientRect(), t.textContent]));
    const hit = (a, b) => a.left < b.right + 3 && b.left < a.right + 3 && a.top + 3 < b.bottom && b.top + 3 < a.bottom;
    const hits = labels.flatMap(l => l.flatMap((a, i) => l.slice(i + 1).filter(b => hit(a[0], b[0]))
        .map(b => a[1] + '/' + b[1])));
    say('collisions', hits.length + ' ' + hits.join(', '));
    const rect = e => e.getBoundingClientRect();
    const ends = b => { const r = [...b.children].filter(e => e.tagName != 'H2').map(rect),
        bottom = Math.max(...r.map(e => e.bottom));
        return Math.max(...r.filter(e => e.bottom > bottom - 4).map(e => e.right)); };
    say('holes', [...inner.querySelectorAll('.figures, .cards, .strip')]
        .filter(b => Math.abs(ends(b) - rect(b).right) > 3).length);
    say('cut', [...inner.querySelectorAll('.strip dd:not(.more)')].filter(e => {
        const range = inner.createRange();
        range.selectNodeContents(e);
        return range.getBoundingClientRect().right > rect(e.parentNode).right - 10; }).length);
    say('background', light(rgb(style(inner.body).backgroundColor)) > .5 ? 'light' : 'dark');
    document.getElementById('found').textContent = '\n' + found.join('\n') + '\n';
    console.log('the frame has measured');
};
</script>
END
}
found() { sed -n "s/^$1=\\([a-z0-9.-]*\\).*/\\1/p" .stdout | head -1; }
at_least() { # WHAT LEAST
    found "$1" | awk -v n="$2" '{ exit !($1 >= n) }' || fail "$1 is $(found "$1"), not $2 at least"
}
messages() { grep 'CONSOLE' .stderr | grep -vc 'the frame has measured'; }

# look PAGE WIDTH light|dark PICTURES: check a page at that width
look() {
    theme=$([ "$3" = dark ] && echo 0 || echo 1)
    frame "$1" "$2"
    browse --window-size=1440,900 --blink-settings=preferredColorScheme="$theme" --dump-dom "file://$PWD/frame.html"
    grep -q 'CONSOLE.*the frame has measured' .stderr || fail "nothing was measured: $(grep CONSOLE .stderr)"
    [ "$(messages)" -eq 0 ] || fail "the console says: $(grep CONSOLE .stderr)"
    [ "$(found overflow)" = 0 ] || fail "$1 at $2 px: $(found overflow) px too wide"
    [ "$(found hidden)" = 0 ] || fail "$1 at $2 px: columns of the runs' table lie beyond its edge"
    [ "$(found pictures)" = "$4" ] || fail "$(found pictures) pictures, not $4"
    [ "$(found background)" = "$3" ] || fail "the page is $(found background), not $3"
    [ "$(found outside)" = 0 ] || fail "$(found outside) words stand outside their card"
    [ "$(found collisions)" = 0 ] || fail "words of an axis lie on each other: $(grep ^collisions= .stdout)"
    [ "$(found holes)" = 0 ] || fail "$1 at $2 px: $(found holes) last rows end before the right edge"
    [ "$(found cut)" = 0 ] || fail "$1 at $2 px: $(found cut) headline numbers reach their tile's edge"
    at_least letters 10
    at_least words 4.5 # the contrast that WCAG AA requires for text, here for drawings too
    at_least text 4.5
    at_least lines 3
    HEIGHT=$(found height)
    [ "$HEIGHT" -gt 1000 ] || fail "a page of $HEIGHT px"
    frame "$1" "$2"
    browse --window-size="$2,$HEIGHT" --blink-settings=preferredColorScheme="$theme" \
        --screenshot="$pictures/${1%.html}-$2-$3.png" "file://$PWD/frame.html"
    [ -s "$pictures/${1%.html}-$2-$3.png" ] || fail 'no picture of the page'
    unset HEIGHT
}

data d
validation d
for run in one 'a run of a name that is long enough to be wider than a telephone, if it were not broken/two' three; do
    run 0 sgt-train --quiet $small --steps 60 --eval-every 10 --run "$run" --lr "1e-${#run}" --schedule linear
done 2> /dev/null
run 0 sgt-report one -o one.html
sed -i 's/<dt>Peak memory<\/dt><dd>[^<]*/<dt>Peak memory<\/dt><dd>1023.9 MiB/' one.html
run 0 sgt-report one a*/two three -o several.html
look one.html 360 light 9
look one.html 1440 dark 9
look several.html 360 dark 10
look several.html 1440 light 10
# A table of two runs with all columns fits a window of medium width and a phone's screen.
mkdir full
sed 's/"val_loss":[0-9.]*/&,"val_bits_per_byte":0.5625/; s/"mfu":[^,]*,//; s/"peak_bytes"/"mfu":0.4,&/' one/log.jsonl > full/log.jsonl
cp -r one second
run 0 sgt-report full second -o full.html
for width in 390 1100; do look full.html $width light 9; done

# The check finds an element that is too wide.
sed 's/<footer>/<div style="width:2000px">wide<\/div>&/' one.html > wide.html
frame wide.html 360
browse --dump-dom "file://$PWD/frame.html"
[ "$(found overflow)" -gt 1000 ] || fail 'the element that is too wide was not found'
