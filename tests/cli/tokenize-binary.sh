# tokenize-binary.sh: hidden files and files that are not text are skipped and counted, or read on
# request.

mkdir -p in/.git in/sub
echo 'some text' > in/a.txt
printf 'a \000 b \303\251\n' > in/nul.txt # U+0000 is valid UTF-8, so this is text
printf 'caf\351\n' > in/latin1.txt        # invalid UTF-8 alone does not make a file binary
echo x > in/.git/config
echo y > in/.env
printf '%%PDF-1.7\n' > in/p.pdf
printf '\177ELF\002\001' > in/prog
printf '\211PNG\r\n\032\n' > in/sub/i.png
printf '\377\330\377\340' > in/sub/j.JPG
printf 'PK\003\004' > in/sub/k.docx
printf 'PAR1' > in/sub/l.par
printf '\377\376h\000i\000' > in/sub/utf16le.txt
printf '\376\377\000h\000i' > in/sub/utf16be.txt
printf 'some \000 \377 bytes' > in/sub/z.dat

# In a folder, the first five files that are not text get a line each, and one more line counts the
# others (forms.sh has the message for each kind).
run 0 sgt-tokenize in out
cat > want << 'END'
sgt-tokenize: in/p.pdf: skipped: a PDF, not UTF-8 text (--filter 'pdf=pdftotext {} -' reads its text)
sgt-tokenize: in/prog: skipped: an ELF program, not UTF-8 text (--binary keep tokenizes its bytes)
sgt-tokenize: in/sub/i.png: skipped: a PNG picture, not UTF-8 text (--binary keep tokenizes its bytes)
sgt-tokenize: in/sub/j.JPG: skipped: a JPEG picture, not UTF-8 text (--binary keep tokenizes its bytes)
sgt-tokenize: in/sub/k.docx: skipped: a ZIP archive, not UTF-8 text (unpack it, or read it through a command with --filter)
sgt-tokenize: in/.env: skipped: a hidden file or folder (2 in all below in; --hidden reads them)
sgt-tokenize: 4 more files skipped: not plain text (--binary keep tokenizes their bytes)
END
same .stderr want
stdout_has 'out: 16 tokens, 3 documents, 1 shard' '9 files skipped: not plain text (see --binary)'
stdout_has '1 invalid UTF-8 sequence, kept byte for byte'
[ "$(paths_of out)" = '"a.txt" "latin1.txt" "nul.txt"' ] || fail "what was read: $(paths_of out)"
grep -qF '"binary": "skip"' out/manifest.json || fail 'the option is not in the manifest'
[ "$(field skipped out/manifest.json)" -eq 9 ] || fail 'the manifest does not count them'
run_silent sgt-tokenize --quiet --json in out
[ "$(field skipped .stdout)" -eq 9 ] || fail '--json does not count them'
stdout_has '"already_done": true'
run 0 sgt-inspect out
fact skipped 9
run 0 sgt-tokenize --dry-run --json in
[ "$(field skipped .stdout)" -eq 9 ] && [ "$(field documents .stdout)" -eq 3 ] || fail '--dry-run counts otherwise'
run_silent sgt-tokenize --dry-run --quiet in
run_prints '9 files skipped: not plain text (see --binary)' sgt-tokenize --dry-run in
run 0 sgt-tokenize --train-vocab 257 in vocab
fact skipped 9

# The result is the same for any number of ranks and threads.
for rank in 0 1; do run 0 sgt-tokenize --quiet --rank $rank --ranks 2 -t 3 in out3; done
same_folders out out3
run 0 sgt-tokenize --quiet --shuffle 1 in out4
[ "$(field skipped out4/manifest.json)" -eq 9 ] || fail 'parts count otherwise'

# --binary keep and --hidden read every file. A run cannot be continued with other values of these
# options.
run_silent sgt-tokenize --binary keep --hidden in out5
[ "$(paths_of out5)" = '".env" ".git/config" "a.txt" "latin1.txt" "nul.txt" "p.pdf" "prog" "sub/i.png" "sub/j.JPG" '\
'"sub/k.docx" "sub/l.par" "sub/utf16be.txt" "sub/utf16le.txt" "sub/z.dat"' ] || fail "keep: $(paths_of out5)"
! grep -q skipped out5/manifest.json || fail 'the manifest counts what was not skipped'
run_failure 'out5: made with --binary keep, now skip (--force replaces it)' sgt-tokenize --quiet in out5
run 0 sgt-tokenize --quiet --force in out5
same_folders out out5

# A file that is not text is an error if the command line names it. It is skipped if a list names
# it, or if it is found in a folder.
run 1 sgt-tokenize in/a.txt in/p.pdf out6
stderr_is "sgt-tokenize: in/p.pdf: a PDF, not UTF-8 text (--filter 'pdf=pdftotext {} -' reads its text)"
absent out6
run 0 sgt-tokenize --binary keep in/p.pdf out6
printf 'in/p.pdf\nin/a.txt\n' > list
run 0 sgt-tokenize @list out7
stderr_is "sgt-tokenize: in/p.pdf: skipped: a PDF, not UTF-8 text (--filter 'pdf=pdftotext {} -' reads its text)"
[ "$(paths_of out7)" = '"a.txt"' ] || fail "a list: $(paths_of out7)"
run_silent sgt-tokenize in/.env in/.git out8 # hidden files are read if they are named
[ "$(paths_of out8)" = '".env" "config"' ] || fail "hidden names: $(paths_of out8)"

# A filter gets all files with its ending. Compressed files are checked after decompression. In
# JSONL, only a magic number marks a file as binary.
run 0 sgt-tokenize --quiet --filter pdf=cat in/p.pdf out9
gzip -k in/p.pdf
run_failure_about 'in/p.pdf.gz: a PDF, not UTF-8 text' sgt-tokenize in/p.pdf.gz out10
run_failure_about 'in/p.pdf: a PDF, not UTF-8 text' sgt-tokenize --format jsonl in/p.pdf out10
run_failure_about 'in/sub/z.dat: line 1: byte 8: not UTF-8' sgt-tokenize --format jsonl in/sub/z.dat out10
rm in/p.pdf.gz

# Only the first 64 KiB are checked. A character that this limit cuts is no error.
{ head -c 65535 /dev/zero && printf '\303\251'; } > cut.txt
run 0 sgt-tokenize --quiet cut.txt out11
{ head -c 65535 /dev/zero && printf '\377'; } > last.dat
run_failure 'last.dat: binary data, not UTF-8 text (--binary keep tokenizes its bytes)' sgt-tokenize --quiet last.dat out12
{ head -c 65536 /dev/zero && printf '\377'; } > beyond.txt
run 0 sgt-tokenize --quiet beyond.txt out12

# Standard input is checked as it is read, whatever the size of each read.
{ printf '%%P' && sleep .2 && printf 'DF-1.4'; } | run 1 sgt-tokenize - out13
stderr_is 'sgt-tokenize: standard input: a PDF, not UTF-8 text (pass it as a file, or --binary keep tokenizes its bytes)'
absent out13
run 1 sgt-tokenize in/a.txt - out13 < last.dat
stderr_is 'sgt-tokenize: standard input: binary data, not UTF-8 text (pass it as a file, or --binary keep tokenizes '\
'its bytes)'
run 0 sgt-tokenize --quiet - out13 < cut.txt
run 0 sgt-tokenize --quiet --binary keep - out14 < last.dat

# It is an error if no file is left.
mkdir only dots && cp in/p.pdf in/prog only && : > dots/.x
run_failure 'only: nothing to tokenize: no file is plain text (2 skipped; --filter converts files to text with '\
'a command)' sgt-tokenize --quiet only out15
run_failure 'dots: this folder has no files except hidden ones (--hidden reads them)' sgt-tokenize --quiet dots out15
absent out15
run 0 sgt-tokenize --quiet only in out15
rm -r out15
ln -s gone dots/.dangling # a hidden link is not read, so its target may be missing
echo x > dots/a
run 0 sgt-tokenize dots out15
stderr_is 'sgt-tokenize: dots/.dangling: skipped: a hidden file or folder (2 in all below dots; --hidden reads them)'

run_usage '--binary maybe: must be one of skip|keep' sgt-tokenize --binary maybe in out16

# Archives of text files are not text: their headers and padding would become tokens.
mkdir -p packed/sub
echo 'some text' > packed/sub/a.txt
echo 'more text' > packed/sub/b.txt
mkdir archives
for format in v7 ustar gnu pax; do tar -C packed --format $format -cf archives/$format.tar sub; done
gzip -c archives/pax.tar > archives/x.tar.gz
printf '!<arch>\na.txt/          0           0     0     644     5         `\ntext\n' > archives/z.a
for f in archives/*; do
    run 1 sgt-tokenize "$f" out16
    case $f in
    *.a) what='an ar archive, not UTF-8 text (unpack it, or read it through a command with --filter)' ;;
    *) what="a tar archive, not UTF-8 text (unpack it, or --filter 'EXT=tar -xOf {}' reads its files as one document)" ;;
    esac
    stderr_is "sgt-tokenize: $f: $what"
    absent out16
done
printf 'WARC/1.0\r\n\r\ntext\r\n\r\n' > y.warc
run_failure_about "(read it through a command that prints its text, with --filter 'EXT=COMMAND')" sgt-tokenize y.warc out16
echo text > archives/text
run_prints ': 3 tokens, 1 document,' sgt-tokenize archives out16
stdout_has '6 files skipped'
run_failure_about 'standard input: a tar archive, not UTF-8 text' sgt-tokenize - out17 < archives/gnu.tar
run_failure_about 'archives/gnu.tar: a tar archive, not UTF-8 text' sgt-tokenize --format jsonl archives/gnu.tar out17
run 0 sgt-tokenize --quiet --filter 'tar.gz=tar -xOf {}' archives/x.tar.gz out17
sgt-inspect --decode 1:100 out17 > decoded 2> .decoded
cat packed/sub/*.txt > want
sort decoded > sorted
sort want | cmp -s - sorted || fail 'what the hint of a tar archive reads'

# Text that contains NUL bytes is text. (forms.sh has UTF-16, UTF-32 and binary numbers.)
for i in 1 2 3 4 5 6 7 8 9; do printf 'file %d\000another name\000' $i; done > names
head -c 100 /dev/zero > zeros
printf 'a\000b' > three
run_silent sgt-tokenize names zeros three out19
