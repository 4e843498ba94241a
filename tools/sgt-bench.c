/* sgt-bench: measures how fast the parts of sgt are on this machine. Each subcommand has its own
 * options; see tools/bench. */
#include <stdio.h>
#include <string.h>

#include "loader/sgt_loader.h"
#include "tools/bench/bench.h"
#include "tools/cli/options.h"
#include "tools/cli/spin.h"
#include "tools/cli/wheels.h"

static const sgt_option none[] = {{0}};

static const sgt_command *const commands[] = {&bench_loader_command, &bench_tokenize_command,
                                              &bench_gemm_command,   &bench_attention_command,
                                              &bench_step_command,   &bench_ablation_command,
                                              &bench_memory_command, &bench_sample_command,
                                              &bench_all_command,    NULL};

static const sgt_program program = {
    .name = "sgt-bench",
    .usage = "sgt-bench SUBCOMMAND [OPTION]...",
    .about = "Measures the parts of sgt on this machine, each beside its limit or its peers.",
    .options = none,
    .examples = "  sgt-bench all -o bench.html\n"
                "  sgt-bench loader out/\n"
                "  sgt-bench tokenize corpus/\n"
                "  sgt-bench gemm --device cuda\n"
                "  sgt-bench attention --device cuda\n"
                "  sgt-bench step --model 4x256x4 --seq-len 512 --batch-size 8\n"
                "  sgt-bench ablation --data out/ --model 4x256x4 --seq-len 128\n"
                "  sgt-bench memory --model 4x256x4 --batch-size 4,8,16\n"
                "  sgt-bench sample --peer python3",
    .commands = commands};

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "score") == 0) {
        fputs("sgt-bench: score is a program of its own now: sgt-eval RUN/ FILE.jsonl\n", stderr);
        return SGT_EXIT_USAGE;
    }
    sgt_spin_little(argv);
    sgt_search_wheels();
    /* if this fails, reading a truncated shard ends the program */
    sgt_loader_guard_sigbus(NULL);
    return sgt_run_command(&program, argc, argv);
}
