# man.awk: rewrite the OPTIONS of a manual page from the program's own table, as `make man` does:
#
#     sgt-x --completion table | awk -f tools/man.awk - tools/sgt-x.1
#
# An option's name, letter, value and default come from the table. So does its text if its entry
# begins with `.TP \" generated`; otherwise the text is the page's own. Headings, and entries of
# several options (.TQ), stay as they are. An option that the page lacks is an error: add
# `.TP \" generated` and its name where it belongs.
function escaped(s) { gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); return s }
function sentence(s) {
    if (s ~ /^[a-z]+([^a-z0-9,]|$)/) s = toupper(substr(s, 1, 1)) substr(s, 2)
    return escaped(s) "."
}
# words in capitals stand for something else, and are in italics
function value(s,    out) {
    while (match(s, /(^|[^A-Za-z])[A-Z][A-Za-z0-9\/.]*/)) {
        if (substr(s, RSTART, 1) !~ /[A-Z]/) { RSTART++; RLENGTH-- }
        out = out escaped(substr(s, 1, RSTART - 1))
        out = out "\\fI" escaped(substr(s, RSTART, RLENGTH)) "\\fR"
        s = substr(s, RSTART + RLENGTH)
    }
    return out escaped(s)
}
function tag(f,    name) {
    name = escaped("--" f[2])
    if (f[4] == "-") return f[3] == "-" ? ".B " name : ".BR \\-" f[3] " \", \" " name
    return ".BR " (f[3] == "-" ? "" : "\\-" f[3] " \", \" ") name " \" " value(f[4]) "\""
}
# the text between the tag and the default, which ends it
function print_text(f,    i, last) {
    last = f[5] == "-" ? "" : "Default: " escaped(f[5]) "."
    if (line[1] ~ /generated/) { print sentence(f[7]) (last ? " " last : ""); return }
    if (line[lines] ~ /^Default: /) lines--
    else sub(/ Default: .*/, "", line[lines])
    for (i = 3; i < lines; i++) print line[i]
    if (line[lines] ~ /^\./) { print line[lines]; if (last) print last }
    else print line[lines] (last ? " " last : "")
}
function flush(    i, f) {
    if (tags == 1 && names[1] in row) {
        split(row[names[1]], f, "\t")
        print line[1] "\n" tag(f)
        print_text(f)
    } else {
        for (i = 1; i <= lines; i++) print line[i]
    }
    for (i = 1; i <= tags; i++) delete missing[names[i]]
    tags = lines = 0
}
function fail(what) { print FILENAME ": " what > "/dev/stderr"; bad = 1 }
BEGIN { FS = "\t" }
FNR == 1 { file++ }
file == 1 { row[$1 " " $2] = $0; missing[$1 " " $2] = 1; next }
/^\.S[HS]/ { flush(); options = /^\.SH OPTIONS/ || (options && /^\.SS/); command = "-" }
options && /^\.SS sgt-bench / { command = $0; sub(/.* /, "", command) }
options && /^\.SS All/ { command = "" }
!options { print; next }
/^\.TP/ { flush(); line[lines = 1] = $0; wanted = 1; next }
!lines { print; next }
{ line[++lines] = $0 }
/^\.TQ/ { wanted = 1; next }
wanted {
    wanted = 0
    if (!match($0, /\\-\\-[a-z0-9\\-]+/)) { fail("no option in " $0); next }
    name = substr($0, RSTART + 4, RLENGTH - 4)
    gsub(/\\/, "", name)
    names[++tags] = command " " name
    known = name ~ /^(help|version)$/ || names[tags] in row
    if (command == "")
        for (key in row) if (key ~ " " name "$") { known = 1; delete missing[key] }
    if (!known) fail("--" name " is not in the table")
}
END {
    flush()
    for (key in missing) fail(key " is not in the page")
    exit bad
}
