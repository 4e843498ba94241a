# man3.awk: rewrite a section-3 manual page from the comments of its headers, as `make man` does:
#
#     awk -f tools/man3.awk loader/sgt_loader.3 loader/sgt_loader.h loader/base/error.h
#
# The page keeps its own title (.TH, NAME, LIBRARY) and its own last sections, from ABI on. The first
# header's first comment becomes DESCRIPTION; `/* ---- name ---- */` begins a subsection; prototypes,
# structs, enums and constants are listed with the comments that precede them or end their line.
# Prototypes and fields that follow one another without a comment of their own share the first one's.
# A comment before an empty line is a paragraph.
function escaped(s) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    return s
}
function out(s) { body = body s "\n" }
function code(s) { return ".B \"" escaped(s) "\"" }

# Write a comment's text: paragraphs, which begin with the macro `next_one`; code where lines are
# indented by four columns or more; words between backquotes in italics.
function put_text(text, next_one,    lines, n, i, is_code, in_code, empty) {
    n = split(text, lines, "\n")
    for (i = 1; i <= n; i++) {
        if (lines[i] == "") { empty = 1; continue }
        is_code = lines[i] ~ /^    /
        if (is_code != in_code) out(is_code ? ".PP\n.nf\n.RS" : ".RE\n.fi\n" next_one)
        else if (empty) out(is_code ? "" : next_one)
        in_code = is_code
        empty = 0
        sub(is_code ? "^    " : "^ +", "", lines[i])
        lines[i] = escaped(lines[i])
        while (!is_code && match(lines[i], /`[^`]+`/))
            lines[i] = substr(lines[i], 1, RSTART - 1) "\\fI" substr(lines[i], RSTART + 1, RLENGTH - 2) \
                "\\fR" substr(lines[i], RSTART + RLENGTH)
        if (lines[i] ~ /^[.']/) lines[i] = "\\&" lines[i]
        out(lines[i])
    }
    if (in_code) out(".RE\n.fi")
}

# Begin an item of a list, with its text; an item without one joins the items before it. Their text
# follows the last of them.
function tag(item, text) {
    if (text != "") end_tags()
    paragraph(waiting ? ".br" : ".PP")
    out(code(item))
    waiting = 1
    if (text != "") tag_text = text
}
function end_tags() {
    if (waiting && tag_text != "") {
        out(".RS")
        put_text(tag_text, ".PP")
        out(".RE")
    }
    waiting = 0
    tag_text = ""
}
function paragraph(macro) { if (body !~ /\.(RS|SS [^\n]*)\n$/) out(macro) }
function section(name) {
    end_tags()
    out(".SS " toupper(substr(name, 1, 1)) escaped(substr(name, 2)))
}

# Return the comment that begins at the current line, and read to its end.
function comment(    s, text, at) {
    s = $0
    sub(/^ *\/\* ?/, "", s)
    while (s !~ /\*\/ *$/) {
        text = text s "\n"
        if ((getline s) <= 0) break
        sub(/^ *\*? ?/, "", s)
        if (s == "*/") return text
    }
    sub(/ *\*\/ *$/, "", s)
    return text s
}
# Cut a comment off the end of the line and return it.
function trailing(    text) {
    if (!match($0, /\/\*.*\*\/ *$/)) return ""
    text = substr($0, RSTART + 2, RLENGTH - 2)
    $0 = substr($0, 1, RSTART - 1)
    sub(/ *\*\/ *$/, "", text)
    sub(/^ */, "", text)
    sub(/ *$/, "")
    return text
}
function trim(s) { gsub(/[ \t]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s); return s }

# Write a struct or an enum whose first line is the current one.
function block(text,    name, is_enum, before, item, own) {
    end_tags()
    is_enum = /enum/
    name = $0
    sub(/ *\{.*/, "", name)
    sub(/^typedef /, "", name)
    paragraph(".PP")
    out(code(name == "enum" ? "enum" : name))
    out(".RS")
    if (text != "") put_text(text, ".PP")
    item = before = ""
    while ((getline) > 0 && !/^\}/) {
        if (/^ *\/\*/) { before = comment(); continue }
        own = trailing()
        item = trim(item " " $0)
        if (item == "" || item !~ (is_enum ? "[,A-Z0-9]$" : ";$")) continue
        sub(/[,;]$/, "", item)
        tag(item, own != "" ? own : before)
        if (own != "") end_tags()
        item = before = ""
    }
    end_tags()
    out(".RE")
}

FNR == 1 { file++; intro = ""; pending = ""; header = FILENAME; sub(/.*\//, "", header) }
file == 1 {
    if (/^\.SH (SYNOPSIS|DESCRIPTION)/) part = 1
    else if (/^\.SH ABI/) part = 2
    if (part == 0) head = head $0 "\n"
    if (part == 2) tail = tail $0 "\n"
    next
}
/^\/\* ---- .* ---- \*\/$/ { sub(/^\/\* ---- /, ""); sub(/ ---- \*\/$/, ""); section($0); pending = ""; next }
/^\/\*/ {
    pending = comment()
    if (intro == "") {
        intro = pending
        sub(/^[a-z0-9_.]*: /, "", intro)
        intro = toupper(substr(intro, 1, 1)) substr(intro, 2)
        pending = ""
        if (file == 2) put_text(intro, ".PP")
        else { section("Failures, notices and stops"); put_text(intro, ".PP") }
    }
    next
}
/^#define SGT_[A-Z_]+ / && !/_H$/ {
    own = trailing()
    split($0, word, " ")
    if ($0 !~ /SGT_PRINTF/) { end_tags(); tag(word[2], own != "" ? own : pending); end_tags() }
    pending = ""
    next
}
/^$/ { end_tags(); if (pending != "") { paragraph(".PP"); put_text(pending, ".PP") } pending = ""; next }
/^(#|extern|\})/ { pending = ""; next }
/^typedef (struct|enum) [a-z_]+ [a-z_]+;$/ { next }
/^(typedef (struct|enum)|enum).*\{/ { block(pending); pending = ""; next }
{
    inline = sub(/^static inline /, "")
    own = trailing()
    first = $0
    proto = $0
    while (proto !~ /[;)]$/ || (!inline && proto !~ /;$/)) {
        if ((getline) <= 0) break
        if (own == "") own = trailing()
        first = first "\n" $0
        proto = proto " " trim($0)
    }
    sub(/ SGT_PRINTF\([^)]*\)/, "", first)
    sub(/ SGT_PRINTF\([^)]*\)/, "", proto)
    sub(/;?$/, ";", first)
    sub(/;$/, "", proto)
    if (inline) while ((getline) > 0 && !/^\}/) {}
    n = split(first, lines, "\n")
    for (i = 1; i <= n; i++) synopsis = synopsis code(lines[i]) "\n"
    tag(trim(proto), own != "" ? own : pending)
    if (own != "") end_tags()
    pending = ""
}
END {
    end_tags()
    printf "%s.SH SYNOPSIS\n.nf\n.B #include <%s>\n.PP\n%s.fi\n.SH DESCRIPTION\n%s%s", head, main_header(), \
        synopsis, body, tail
}
function main_header(    s) { s = ARGV[2]; sub(/.*\//, "", s); return s }
