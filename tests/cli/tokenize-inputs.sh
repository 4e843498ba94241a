# tokenize-inputs.sh: every kind of INPUT, good and bad.


# Files are ordered by the bytes of their whole paths. A folder is compared as its name with a slash
# after it.
mkdir -p in/a in/a.d
for f in in/a/z in/a-b in/a.txt in/a.d/x in/a0 in/B in/é; do echo x > $f; done
run 0 sgt-tokenize in out
[ "$(paths_of out)" = '"B" "a-b" "a.d/x" "a.txt" "a/z" "a0" "é"' ] || fail "order: $(paths_of out)"

# INPUTs are read in the order given. The path of a single file is its last component. A file that
# is given twice is read twice.
run 0 sgt-tokenize in/a0 in/a in/a0 in///// in/B out2
[ "$(paths_of out2)" = '"a0" "z" "a0" "B" "a-b" "a.d/x" "a.txt" "a/z" "a0" "é" "B"' ] || fail "order: $(paths_of out2)"

# Errors: a missing path, an empty folder, a path that is neither file nor folder.
run_failure 'nowhere: No such file or directory' sgt-tokenize in nowhere out3
absent out3
run_failure 'an INPUT with an empty name: No such file or directory' sgt-tokenize '' out3
mkdir -p empty/sub
run_failure 'empty: this folder has no files (name a folder that has files, or name files)' sgt-tokenize empty out3
run_failure 'empty: this folder has no files (name a folder that has files, or name files)' sgt-tokenize in/a.txt empty/ out3
absent out3
run_failure '/dev/null: neither a file nor a folder (to read a stream, redirect it to standard input and name -)' sgt-tokenize /dev/null out3
mkdir odd
mkfifo odd/pipe
echo x > odd/text
run_tells 'sgt-tokenize: odd/pipe: skipped: neither a file nor a folder (1 in all below odd)' sgt-tokenize odd out4
[ "$(paths_of out4)" = '"text"' ] || fail 'a folder with a pipe in it'
run_silent sgt-tokenize --quiet odd out4q

# Symbolic links to files and folders are followed; links to a parent folder, or to nothing, are errors.
mkdir -p links/real elsewhere
echo one > links/real/1
echo two > elsewhere/2
ln -s ../elsewhere links/folder
ln -s real/1 links/file
run 0 sgt-tokenize links out5
[ "$(paths_of out5)" = '"file" "folder/2" "real/1"' ] || fail "links: $(paths_of out5)"
ln -s .. links/real/up
run_failure 'links/real/up: this symbolic link leads back to links, in an endless loop (remove the link)' sgt-tokenize links out6
absent out6
rm links/real/up
ln -s self links/self
run_failure 'links/self: a broken symbolic link: Too many levels of symbolic links' sgt-tokenize links out6
rm links/self
ln -s gone links/dangling
run_failure 'links/dangling: a broken symbolic link: No such file or directory' sgt-tokenize links out6
absent out6

# Files whose names have a newline, quotes or bytes that are not UTF-8 are read like any other;
# messages and sources.jsonl escape these bytes.
mkdir names
printf 'x' > "names/$(printf 'a\nb"c\\d\001')"
printf 'y' > "names/$(printf 'c\351d')"
run_silent sgt-tokenize names out7
escaped='"a\nb\"c\\d\u0001" "c\\xe9d", "path_bytes": "63e964"'
is "$(paths_of out7)" "$escaped"
run 0 sgt-tokenize --quiet names out7
run 1 sgt-tokenize "names/no
such" out8
stderr_is 'sgt-tokenize: names/no\x0asuch: No such file or directory'
printf 'y\377' > "names/$(printf 'c\351d')"
run 1 sgt-tokenize --invalid-utf8 fail names out8
stderr_is 'sgt-tokenize: names/c\xe9d: offset 1: not UTF-8 (--invalid-utf8 keep or replace accepts it)'
absent out8

# OUT is never read: it is refused as an INPUT, and skipped if it lies below one.
mkdir -p nest/out self
echo x > nest/a
run 0 sgt-tokenize nest nest/out
run_prints 'already complete' sgt-tokenize nest nest/out
stderr_is 'sgt-tokenize: nest/out: skipped: it is OUT or inside OUT'
[ "$(paths_of nest/out)" = '"a"' ] || fail "OUT was read: $(paths_of nest/out)"
echo x > self/a
run_failure 'self: INPUT is OUT or inside OUT (name another OUT)' sgt-tokenize self ./self/
run_failure 'self/a: INPUT is OUT or inside OUT (name another OUT)' sgt-tokenize self/a self
ln -s self alias
run_failure 'alias: INPUT is OUT or inside OUT (name another OUT)' sgt-tokenize alias self
[ "$(ls -A self)" = a ] || fail "something was written beside self/a"
mkdir around
ln -s ../nest/out/sources.jsonl around/link
echo x > around/b
run 0 sgt-tokenize around nest/out2
[ "$(paths_of nest/out2)" = '"b" "link"' ] || fail 'a link to a file'
run 1 sgt-tokenize around nest/out
stderr_has 'around/link: skipped: it is OUT or inside OUT'

# Standard input is one document, by itself or among other inputs. It cannot be compared with the
# inputs of a finished set, so a finished OUT is not overwritten.
printf 'from a pipe' | run 0 sgt-tokenize - out11
stdout_matches '^out11: 4 tokens, 1 document'
cat > want << 'END'
{"path": "-", "size": 11, "mtime": 0, "stat": "HASH", "documents": 1, "bytes": 11, "tokens": 4, "xxh3": "HASH"}
END
sed 's/"[0-9a-f]\{16\}"/"HASH"/g' out11/sources.jsonl > got
same got want
printf 'from a pipe' | run 1 sgt-tokenize - out11
stderr_is 'sgt-tokenize: out11: already complete, and its input cannot be compared with standard input (--force replaces it)'
printf 'from another' | run 0 sgt-tokenize --force - out11
stdout_has 'out11: 3 tokens'
printf 'two' | run 0 sgt-tokenize in/a0 - in/B out12
[ "$(paths_of out12)" = '"a0" "-" "B"' ] || fail "stdin among files: $(paths_of out12)"
run_prints 'out13: 1 token, 1 document, 1 shard' sgt-tokenize - out13 # standard input of this test is empty
run_failure 'out13: made from different inputs: input 1 was -, now in/a0 (--force replaces it)' sgt-tokenize in/a0 out13

# @LIST: each line is a path, which is treated like an INPUT. A folder stands for all files below
# it. Errors name the list and the line.
printf 'in/a0\n\nin/a\nin/a-b' > list
run 0 sgt-tokenize @list in/B out20
[ "$(paths_of out20)" = '"a0" "z" "a-b" "B"' ] || fail "list: $(paths_of out20)"
run 0 sgt-tokenize @- in/B out21 < list
same_folders out20 out21
printf 'in/a0\n\nnowhere\n' > list
run_failure 'list: line 3: nowhere: No such file or directory' sgt-tokenize in/B @list out22
run_failure '@-: line 3: nowhere: No such file or directory' sgt-tokenize @- out22 < list
{ yes in/a0 | head -n 1000 && printf 'in/\000a\n'; } > list
run_failure 'list: line 1001: the path contains a NUL byte' sgt-tokenize @list out22
# Lines may end in CR LF, and the first may begin with a byte order mark. Paths may also end in NUL,
# as find -print0 and git ls-files -z print them, and may then contain newlines.
printf '\357\273\277in/a0\r\n\r\nin/a\r\nin/a-b' > list
run 0 sgt-tokenize @list in/B out24
same_folders out20 out24
printf 'in/a0\000in/a\000in/a-b\000' > list
run 0 sgt-tokenize @list in/B out25
same_folders out20 out25
find names -type f -print0 | sort -z | run 0 sgt-tokenize --invalid-utf8 keep @- out26
is "$(paths_of out26)" "$escaped"
printf 'in/a0\000\000nowhere' > list
run_failure 'list: path 3: nowhere: No such file or directory' sgt-tokenize @list out22
# A list in UTF-16 is reported as such, with or without a byte order mark.
printf 'in/a0\nin/B\n' > narrow
for from in UTF-16 UTF-16LE UTF-16BE; do
    iconv -f UTF-8 -t $from narrow > list
    run_failure "list: $from, not UTF-8 text (iconv -f $from -t UTF-8 converts it)" sgt-tokenize @list out22
    run_failure "@-: $from, not UTF-8 text (iconv -f $from -t UTF-8 converts it)" sgt-tokenize @- out22 < list
done
printf '1\0002\0003\0004\0' > list # these bytes could be UTF-16, but files of these names exist
for i in 1 2 3 4; do echo $i > $i; done
run 0 sgt-tokenize --quiet @list out27
[ "$(paths_of out27)" = '"1" "2" "3" "4"' ] || fail "short names: $(paths_of out27)"
echo > list
run_failure 'list: this list contains no paths' sgt-tokenize @list out22
run_failure 'nowhere: No such file or directory' sgt-tokenize @nowhere out22
run_failure 'a list without a name: No such file or directory' sgt-tokenize @ out22
run_failure 'in: Is a directory' sgt-tokenize @in out22
run_misuse 'standard input (-) can be read only once (name it once)' sgt-tokenize - @- out22
absent out22
echo x > @odd
run 0 sgt-tokenize ./@odd out23
[ "$(paths_of out23)" = '"@odd"' ] || fail 'a file whose name begins with @'

# A read error in the middle of a file gives a message with the file and the offset.
if [ -r /proc/self/mem ]; then
    ln -s /proc/self/mem mem
    run_failure 'mem: offset 0: Input/output error' sgt-tokenize in/a0 mem out14
    absent out14
fi
# A file that has more or less data than its stated size.
if [ -r /proc/version ]; then
    run_failure '/proc/version: its stated size is wrong: the system reports 0 bytes, but it has more (common in '\
'/proc and /sys: copy it with cat, and name the copy)' sgt-tokenize /proc/version out15
    absent out15
fi
some=/sys/kernel/mm/transparent_hugepage/enabled
if [ -r $some ] && [ "$(stat -c %s $some)" -gt "$(cat $some | wc -c)" ]; then
    run_failure "$some: its stated size is wrong: the system reports $(stat -c %s $some) bytes, but it "\
'has fewer (common in /proc and /sys: copy it with cat, and name the copy)' sgt-tokenize $some out15
    absent out15
fi
