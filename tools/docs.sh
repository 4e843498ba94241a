#!/bin/sh
# docs.sh OUT MANUAL...: write the manuals, the project's Markdown files and an index as a static
# site into the folder OUT. References such as sgt-train(1) in manuals, names of programs in
# Markdown, and links between Markdown files become links between the pages.
set -eu
cd "$(dirname "$0")/.."
out=$1
shift
programs=$(cd tools && echo sgt-*.1 | sed 's/\.1//g; s/ /|/g')
rm -rf "$out"
mkdir -p "$out"

# Complete the HTML on standard input, and write it to PAGE, a path below OUT.
page() { # PAGE
    up=$(echo "$1" | sed 's|[^/]*$||; s|[^/]*/|../|g')
    mkdir -p "$(dirname "$out/$1")"
    sed -E "s|(<link [^>]*)style\.css|\1${up}style.css|; s|^<body>|&<nav><a href=\"${up}index.html\">All pages</a></nav>|
        s|<b>(sgt[-_a-z]*)</b>\(([137])\)|<a href=\"\1.\2.html\">&</a>|g
        s!<code>($programs)</code>!<a href=\"${up}man/\1.1.html\">&</a>!g
        s|(<a href=\"[^:\"]*)\.md([\"#])|\1.html\2|g" > "$out/$1"
}
markdown() { lowdown -s -thtml --html-no-owasp --out-no-smarty --parse-no-metadata -M css=style.css -M title="$1"; }

{
    printf '# sgt\n\n## Manuals\n\n'
    for manual in "$@"; do
        name=${manual##*/}
        mandoc -Thtml -O style=style.css "$manual" | page "man/$name.html"
        sed -n "/^\.SH NAME/{n;s|.*\\\\- |- [${name%.*}(${name##*.})](man/$name.html): |p;}" "$manual"
    done
    printf '\n## Pages about the sources\n\n'
    find ./* -path ./build -prune -o -path "./${out%%/*}" -prune -o -name '*.md' -print | sed 's|^\./||' | LC_ALL=C sort | while read -r file; do
        title=$(sed 's/^# //;q' "$file")
        markdown "$title" < "$file" | page "${file%.md}.html"
        echo "- [$file]($file): $title"
    done
} | markdown sgt | page index.html
cp --parents tools/report/demo.png tests/peers/curve.svg "$out"
cp tools/docs.css "$out/style.css"
