# man.awk: print a manual page, and add the program's options at the end of its section OPTIONS:
#
#     sgt-x --completion table | awk -f tools/man.awk - tools/sgt-x.1
#
# The headings, names, values, texts and defaults of the options come from the program's table
# alone.
function escaped(s) { gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); return s }
function sentence(s) {
    if (s ~ /^[a-z]+([^a-z0-9:]|$)/) s = toupper(substr(s, 1, 1)) substr(s, 2)
    return escaped(s) "."
}
# words in capitals are placeholders, which are set in italics
function value(s,    out) {
    while (match(s, /(^|[^A-Za-z])[A-Z][A-Za-z0-9\/.]*/)) {
        if (substr(s, RSTART, 1) !~ /[A-Z]/) { RSTART++; RLENGTH-- }
        out = out escaped(substr(s, 1, RSTART - 1))
        out = out "\\fI" escaped(substr(s, RSTART, RLENGTH)) "\\fR"
        s = substr(s, RSTART + RLENGTH)
    }
    return out escaped(s)
}
function default_of(s) {
    if (sub(/: /, " (", s)) s = s ")"
    return s == "-" ? "" : "\nDefault: " escaped(s) "."
}
function tag(f,    letter) {
    letter = f[3] == "-" ? "" : "\\-" f[3] " \", \" "
    return (f[4] == "-" && !letter ? ".B " : ".BR " letter) escaped("--" f[2]) \
        (f[4] == "-" ? "" : " \" " value(f[4]) "\"")
}
# for a program with subcommands, print a heading for each subcommand, without the table's own
# headings
function print_options(    i, f, command) {
    command = "-"
    for (i = 1; i <= rows; i++) {
        split(row[i], f, "\t")
        if (f[1] != command) print ".SS " program " " (command = f[1])
        if (f[6] != "heading")
            print ".TP\n" tag(f) "\n" sentence(f[7]) default_of(f[5])
        else if (command == "-") print ".SS " escaped(f[2])
    }
    print (command == "-" ? ".SS Others" : ".SS All subcommands")
    print ".TP\n.BR \\-h \", \" \\-\\-help\nPrint a summary of the options."
    print ".TP\n.B \\-\\-version\nPrint the version."
}
BEGIN { FS = "\t" }
FNR == NR { row[++rows] = $0; next }
/^\.TH/ { program = tolower($1); sub(/^\.th /, "", program); sub(/ .*/, "", program) }
/^\.SH/ && options { print_options() }
/^\.SH/ { options = /^\.SH OPTIONS/ }
{ print }
