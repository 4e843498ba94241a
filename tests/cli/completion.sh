# --completion: the scripts for bash, zsh and fish complete options and values from the option tables.
# The programs choose the words, which the lines for bash check; the shells only show them.
programs='sgt-tokenize sgt-train sgt-inspect sgt-bench sgt-eval sgt-report sgt-sample'
mkdir corpus runs && : > corpus/a.txt && : > 'with a space' && : > weights.bin

for shell in bash zsh fish; do
    for program in $programs; do
        run_silent "$program" --completion $shell
        cp .stdout "$program.$shell"
    done
done
run_usage '--completion: expected bash, zsh or fish' sgt-train --completion
run_usage '--completion: expected bash, zsh or fish' sgt-train --completion tcsh

# offered OFFERED COMMAND...: check the words that are offered for the last word of COMMAND, sorted
offered() { # OFFERED COMMAND...
    expected=$1
    shift
    run_silent "$@"
    [ "$(cut -f 1 .stdout | sort | tr '\n' ' ')" = "$expected" ] || fail "not what was to be offered: $expected"
}

if command -v bash > /dev/null; then
    cat > offers.bash << 'END'
source "$1.bash" || exit 1
COMP_WORDS=("${typed-$1}" "${@:2}") COMP_CWORD=$(($# - 1))
function=$(complete -p "$1") function=${function#complete -F }
"${function% "$1"}"
[ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\n' "${COMPREPLY[@]}"
END
    offers() {
        expected=$1
        shift
        offered "$expected" bash offers.bash "$@"
    }
    offers '--loader --loss-scale ' sgt-train --lo
    export typed=nowhere/sgt-train
    offers '--loader --loss-scale ' sgt-train --lo
    unset typed
    offers 'mmap preload uring ' sgt-train --loader ''
    offers 'uring ' sgt-train --loader = u
    offers '' sgt-train --steps ''
    offers 'corpus runs ' sgt-train --run ''
    offers '' sgt-train ''
    offers 'gpt2 gpt2-large gpt2-medium gpt2-xl ' sgt-train -m gpt
    offers 'weights.bin with a space ' sgt-tokenize w
    offers 'gpt2 ' sgt-tokenize --vocab g
    offers '--quiet ' sgt-tokenize corpus --q
    offers 'ablation kernels loader step tokenize ' sgt-bench ''
    offers '--help ' sgt-bench --h
    offers '--data --deterministic --device --dropout ' sgt-bench step --d
    offers 'preload,mmap ' sgt-bench loader --loader preload,m
    offers '' sgt-bench kernels w
fi

if command -v zsh > /dev/null; then
    mkdir .functions
    for program in $programs; do cp "$program.zsh" ".functions/_$program"; done
    # Start a zsh, type a line and a tab into it, and wait until the output matches the pattern.
    cat > offers.zsh << 'END'
zmodload zsh/zpty || exit 77
zpty -b z zsh -f -i
zpty -w z "PS1=; fpath=($PWD/.functions \$fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=0"
zpty -w z "stty cols 200; print RE''ADY"
zpty -r z shown '*READY*'
zpty -w -n z "$1"$'\t'
zpty -r z shown "$2"
print -r -- $shown
[[ $shown != *'bad option'* ]]
END
    offers() { # PATTERN LINE
        code=0
        timeout 60 zsh -f offers.zsh "$2" "$1" > .stdout 2> .stderr < /dev/null || code=$?
        [ $code -eq 77 ] || [ $code -eq 0 ] || fail "zsh, of '$2', not as it should: $1"
    }
    offers '*--loader*--loss-scale*' 'sgt-train --lo'
    offers '*--loader*--loss-scale*' 'nowhere/sgt-train --lo'
    offers '*mmap*preload*uring*' 'sgt-train --loader='
    offers '*corpus/*runs/*' 'sgt-train --run '
    offers '*mmap*uring*' 'sgt-bench loader --loader preload,'
    offers '*weights.bin*' 'sgt-inspect weig'
fi

if command -v fish > /dev/null; then
    offers() { offered "$1" fish --no-config -c "source ${2%% *}.fish; complete -C'$2'"; }
    offers '--loader --loss-scale ' 'sgt-train --lo'
    offers '--loader=uring ' 'sgt-train --loader=u'
    offers 'corpus/ runs/ ' 'sgt-train --run '
    offers '' 'sgt-train w'
    offers 'weights.bin with a space ' 'sgt-tokenize w'
    offers 'preload,mmap ' 'sgt-bench loader --loader preload,m'
fi
