# Files follow the user's umask from the moment they are created. Nothing is written through a
# symbolic link.
texts text 60000
small='--device cpu --model 1x16x1 --seq-len 16 --batch-size 1'

modes() { # UMASK FORBIDDEN WANTED FOLDER_WANTED: check the modes of all files below this folder
    mkdir "$1" && cd "$1" || exit 1
    umask "$1"
    run 0 sgt-tokenize --quiet --split 20% ../text out
    run 0 sgt-inspect --quiet --export megatron out files
    # shellcheck disable=SC2086
    run 0 sgt-train --quiet --data out --run run $small --steps 2 --profile trace.json
    [ "$(find . -type f | wc -l)" -gt 20 ] || fail "so few files: $(find . -type f)"
    [ -z "$(find . -mindepth 1 ! -name '.[a-z]*' -perm "/$2")" ] ||
        fail "umask $1, yet: $(find . -perm "/$2" | head -3)"
    [ -z "$(find . -type f ! -name '.[a-z]*' ! -perm "$3")" ] ||
        fail "umask $1, yet not $3: $(find . -type f ! -perm "$3" | head -3)"
    [ -z "$(find out files run -type d ! -perm "$4")" ] ||
        fail "umask $1, yet not $4: $(find out files run -type d ! -perm "$4")"
    cd ..
}
modes 077 0077 0600 0700
modes 002 0002 0664 0775
umask 022

# If a log is a symbolic link to a missing file, that file is not created.
mkdir run
ln -s ../victim run/log.jsonl
# shellcheck disable=SC2086
run 1 sgt-train --quiet --data 002/out --run run $small --steps 1
stderr_is 'sgt-train: run/log.jsonl: is a symbolic link, which sgt does not write through (remove it)'
absent victim
