#!/bin/sh
# variants.sh BUILD: the names of the step's variants, a word each; nothing where the program has none. The first column
# of `sgt-bench step --variants`.
bench=$1/host/bin/sgt-bench
! "$bench" step --help | grep -q -e '--variants' ||
    "$bench" step --variants | sed -n 's/^ *\([a-z0-9-]*\)[[:space:]].*/\1/p'
