#!/bin/sh
# variants.sh BUILD: print the names of the step's variants, one word each, or nothing if the
# program has none. They are the first column of `sgt-bench step --variants`.
bench=$1/host/bin/sgt-bench
! "$bench" step --help | grep -q -e '--variants' ||
    "$bench" step --variants | sed -n 's/^ *\([a-z0-9-]*\)[[:space:]].*/\1/p'
