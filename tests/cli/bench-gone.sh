# sgt-bench: subcommands and options that are gone are refused by a line that says what to type now.
. "$ROOT/tests/cli/lib.sh"

gone() { # WORD NOW ARGUMENT...
    refused="sgt-bench: $1 is gone: $2"
    shift 2
    run 2 sgt-bench "$@"
    stdout_is ''
    stderr_is "$refused
try 'sgt-bench --help'"
}
gone all 'run the other subcommands, one after the other' all -o bench.html
gone attention 'type sgt-bench kernels --kind attention; --model 1xCxH gives the heads' attention --heads 12
gone gemm 'type sgt-bench kernels --kind gemm' gemm --layer head
gone memory 'type sgt-bench step --batch-size 1,2,4,8,16' memory
gone sample 'sgt-sample RUN/ prints its tokens/s' sample --tokens 16
gone score 'it is a program of its own now: sgt-eval RUN/ FILE.jsonl' score run
gone --largest 'type sgt-bench step --batch-size LIST for larger batches' ablation --data out --largest
gone --limits 'loader compares with memcpy, numpy (--peer) and fio (--cold) in its table' loader out --limits all
gone --plot '--json has every number of the table' step --plot a.svg
gone --plot '--json has every number of the table' loader out --plot=a.svg
