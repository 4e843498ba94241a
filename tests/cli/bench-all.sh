# sgt-bench all: its page and the content, what is left out and why, and that no temporary file stays. The test does
# not check speeds.
# In make check-all only: it runs a benchmark of everything.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/bench.inc"
XDG_CACHE_HOME=$PWD/cache TMPDIR=$PWD/tmp
export XDG_CACHE_HOME TMPDIR
mkdir tmp
nothing_is_left() { check 'nothing is left behind' test -z "$(ls -A tmp)"; }
all="sgt-bench all --quick --size 1MiB --device cpu --model 1x16x2"

run 0 $all --parts step,tokenize,loader,sample,gemm,attention -o page.html
stderr_has 'sgt-bench all: 6 parts, in 04:45 at most'
stderr_matches '^sgt-bench all: loader took [0-9.]+ s$'
stderr_matches '^sgt-bench all: page\.html is written, after [0-9:]+$'
nothing_is_left
check 'in their own order' test "$(grep -o '^\$ sgt-bench [a-z]*' .stdout | cut -d' ' -f3 | tr '\n' ' ')" = \
    'tokenize loader gemm attention step sample '
table 'Limit: memcpy of the same windows, from memory.'
stdout_has '$ sgt-bench step --parts --model 1x16x2 --device cpu --steps 3 --warmup 1'

# The page is one file that loads nothing else, and has every table and every picture.
grep '^[^$]' .stdout > tables
sed "s/&amp;/\&/g; s/&lt;/</g; s/&gt;/>/g; s/&quot;/\"/g; s/&#39;/'/g" page.html > plain
while read -r line; do
    case $line in '') ;; *) grep -qF -e "$line" plain || fail "the page lacks: $line" ;; esac
done < tables
check 'six pictures' test "$(grep -c '<svg class="bars"' page.html)" -eq 6
check 'six tables' test "$(grep -c '<pre ' page.html)" -eq 6
check 'the text is said' grep -qF '128.0 KiB of words drawn as often as words are' page.html
check 'our folder is not shown' test "$(grep -c "$PWD" page.html)" -eq 0
python3 - page.html <<'END' || fail 'the page is not what HTML ought to be'
import html.parser, sys
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids = [], set()
    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            assert name not in ('src', 'onload') and (name != 'href' or value == 'data:,'), (tag, name, value)
            if name == 'id':
                assert value not in self.ids, value
                self.ids.add(value)
        if tag not in ('meta', 'link', 'rect', 'line'): self.open.append(tag)
    def handle_endtag(self, tag):
        if tag in ('rect', 'line'): return
        assert self.open.pop() == tag, tag
page = Page()
page.feed(open(sys.argv[1]).read())
assert not page.open and page.ids == {'tokenize', 'loader', 'gemm', 'attention', 'step', 'sample'}, \
    (page.open, page.ids)
END

# --json prints the documents of all parts.
run 0 $all --parts tokenize,step --json -o page.html
nothing_is_left
python3 - .stdout <<'END' || fail 'the document is not whole'
import json, sys
d = json.load(open(sys.argv[1]))
assert d['page'] == 'page.html' and d['cores'] > 0 and d['seconds'] > 0
assert [p['part'] for p in d['parts']] == ['tokenize', 'step'] and all(p['seconds'] > 0 for p in d['parts'])
assert d['parts'][0]['result']['tokens'] > 1000 and d['parts'][1]['result']['ms_per_step'] > 0
assert d['parts'][1]['command'].startswith('sgt-bench step --parts')
END

# The user's own data is read from any folder. A part that fails is left out, and the others run.
mkdir texts
texts texts 20000
run 0 sgt-tokenize --quiet texts out
run 0 $all --parts tokenize,loader,ablation --data out --text texts -o page.html
nothing_is_left
stdout_matches '^text +left out|^. text +samples encoded'
stdout_has "$ sgt-bench tokenize $PWD/texts"
check 'no data was made' test "$(grep -c 'made for this page' page.html)" -eq 0
run 0 $all --parts tokenize,loader --data nowhere --text texts -o page.html
stderr_matches '^sgt-bench all: loader is left out: .*sgt-bench: exit 1: sgt-bench loader: nowhere: No such file or '\
'directory \(sgt-tokenize makes a folder of shards\)$'
check 'the page says so' grep -q 'Left out: .*nowhere: No such file or directory' page.html
check 'one picture' test "$(grep -c '<svg' page.html)" -eq 1
rm page.html
run 1 $all --parts loader --data nowhere -o page.html
stderr_has 'sgt-bench all: nothing could be measured'
absent page.html
nothing_is_left

# A part that exceeds its time is ended: no CPU here makes twelve steps of GPT-2 124M in a second.
run 1 sgt-bench all --seconds 1 --parts step --model gpt2 -o page.html --device cpu
stderr_matches '^sgt-bench all: step is left out: it did not end within 1 s$'
nothing_is_left
run_usage '--seconds 0: must be from 1 to 86400' sgt-bench all --seconds 0

run 0 $all --parts attention --quiet
stdout_is ''
stderr_is ''
exists bench.html

# after an interrupt, the running part ends too, and its files are removed
rm bench.html
run_all_interrupted() {
    "$@" > .stdout 2> .stderr &
    pid=$!
    echo "$*" > .ran
    tries=0
    until ls tmp/*/set/train_000001.bin > .ls 2>&1; do
        sleep .05
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail 'no data after 30 s'
    done
    kill -INT $pid
    code=0
    wait $pid || code=$?
    [ $code -eq 130 ] || fail "exit code $code after SIGINT, not 130"
    stderr_has 'sgt-bench all: interrupted'
}
run_all_interrupted sgt-bench all --size 64MiB --parts loader --device cpu
nothing_is_left
absent bench.html
check 'no half page' test -z "$(find . -name '*.tmp')"
check 'no process works there' \
    test -z "$(for p in /proc/[0-9]*; do readlink "$p/cwd"; done 2> /dev/null | grep -F "$PWD/tmp")"

# wrong usage
run 1 $all -o nowhere/page.html
stdout_is ''
stderr_matches '^sgt-bench all: nowhere/page\.html.*: No such file or directory$'
nothing_is_left
run 1 env TMPDIR=/nowhere $all -o page.html
stderr_is 'sgt-bench all: /nowhere: no folder can be made there (TMPDIR names another place): No such file or directory'
run_usage '--parts sky: no such part (tokenize, loader, limits, gemm, attention, step, sample, ablation)' \
    sgt-bench all --parts gemm,sky
run_usage '--parts ,: expected one to 8 names with commas between them' sgt-bench all --parts ,
run_usage 'out: expected options alone (--data OUT/ and --text INPUT name data)' sgt-bench all out
