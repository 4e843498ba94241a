# tokenize-permissions.sh: missing permissions are found before anything is written.

# root may read everything, so run as nobody. Paths are relative because nobody may not enter the
# parent folders.
try=
if [ "$(id -u)" -eq 0 ]; then
    try='setpriv --reuid=65534 --regid=65534 --clear-groups'
    $try true 2> /dev/null || skip 'root without setpriv'
fi
chmod 755 .
cp "$(command -v sgt-tokenize)" program
chmod 755 program
$try ./program --version > /dev/null 2>&1 || skip 'the program cannot be run as nobody here'

echo x > fine
echo x > secret
gzip -c fine > secret.gz
chmod 0 secret secret.gz
mkdir locked
echo x > locked/a
chmod 0 locked
mkdir -m 777 open
run 1 $try ./program fine secret open/out
stderr_is 'sgt-tokenize: secret: Permission denied'
run 1 $try ./program fine secret.gz open/out
stderr_is 'sgt-tokenize: secret.gz: Permission denied'
run 1 $try ./program locked open/out
stderr_is 'sgt-tokenize: locked: Permission denied'
absent open/out

mkdir -m 555 closed
run 1 $try ./program fine closed/out
stderr_is 'sgt-tokenize: closed/out: cannot create this folder: Permission denied'
run 1 $try ./program fine closed
stderr_is 'sgt-tokenize: closed: cannot write to OUT: Permission denied'
[ -z "$(ls -A closed)" ] || fail 'something was written into a folder that may not be written to'

run 0 $try ./program fine open/out
# A finished set need not be writable.
chmod 555 open/out
run_prints 'already complete' $try ./program fine open/out
run 1 $try ./program --split 0.01% fine open/out
stderr_is 'sgt-tokenize: open/out: made with --split none, now 0.01% (--force replaces it)'
run 1 $try ./program --split 0.01% --force fine open/out
stderr_is 'sgt-tokenize: open/out: cannot write to OUT: Permission denied'
chmod 755 open/out
