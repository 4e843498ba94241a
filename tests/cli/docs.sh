# The site that `make docs` writes has a page for each manual and each Markdown file. None of its
# links is dead: the file exists, and so does the anchor in it.
for program in mandoc lowdown; do
    command -v $program > /dev/null || skip "$program is not there (make docs installs it)"
done

# Print the dead links of the site in the folder DIR.
dead_links() { # DIR
    python3 - "$1" << 'END'
import html.parser, os, sys, urllib.parse

class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(open(path, encoding="utf8").read())
    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.add(values.get("id"))
        self.links += [values[k] for k in ("href", "src") if k in values]

pages = {os.path.join(d, f): Page(os.path.join(d, f)) for d, _, files in os.walk(sys.argv[1]) for f in files
         if f.endswith(".html")}
for path, page in pages.items():
    for link in page.links:
        url = urllib.parse.urlsplit(link)
        if not url.scheme:
            to = os.path.normpath(os.path.join(os.path.dirname(path), url.path)) if url.path else path
            if not os.path.isfile(to) or url.fragment and url.fragment not in pages[to].ids:
                print(path, "has the dead link", link)
END
}

for page in "$ROOT"/tools/sgt-*.1; do
    "$(basename "$page" .1)" --completion table | awk -f "$ROOT/tools/man.awk" - "$page" > "$(basename "$page")"
done
cp "$ROOT"/tools/sgt.7 "$ROOT"/*/sgt_*.3 .
run_says '' "$ROOT/tools/docs.sh" "$PWD/site" "$PWD"/*.[137]
run_says '' dead_links site
for page in *.[137]; do
    grep -q "<a href=\"man/$page.html\">" site/index.html || fail "the index lacks $page"
done
for link in index.html:README.html README.html:tools/bench/README.html README.html:man/sgt-train.1.html \
    man/sgt-train.1.html:sgt-tokenize.1.html tools/bench/README.html:../../man/sgt-bench.1.html; do
    grep -q "<a href=\"${link#*:}\">" "site/${link%%:*}" || fail "${link%%:*} has no link to ${link#*:}"
done

# The check finds a page, a picture and an anchor that are not there.
rm site/tokenize/parquet.html site/tests/peers/curve.svg
sed -i 's/id="NAME"/id="NAMES"/' site/man/sgt.7.html
run 0 dead_links site
for link in tokenize/parquet.html curve.svg '#NAME'; do stdout_has "has the dead link $link"; done
