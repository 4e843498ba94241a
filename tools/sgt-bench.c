/* sgt-bench: measures how fast the parts of sgt are on this machine. Each subcommand has its own
 * options; see tools/bench. */
#include <stdio.h>
#include <string.h>

#include "loader/sgt_loader.h"
#include "tools/bench/bench.h"
#include "tools/cli/options.h"
#include "tools/cli/process.h"

static const sgt_option none[] = {{0}};

static const sgt_command *const commands[] = {
    &bench_loader_command,    &bench_tokenize_command, &bench_gemm_command,
    &bench_attention_command, &bench_step_command,     &bench_ablation_command,
    &bench_memory_command,    &bench_sample_command,   NULL};

static const sgt_program program = {
    .name = "sgt-bench",
    .usage = "sgt-bench SUBCOMMAND [OPTION]...",
    .about = "Measures the parts of sgt on this machine, each beside its limit or its peers.",
    .options = none,
    .examples = "  sgt-bench loader out/\n"
                "  sgt-bench tokenize corpus/\n"
                "  sgt-bench gemm --device cuda\n"
                "  sgt-bench attention --device cuda\n"
                "  sgt-bench step --model 4x256x4 --seq-len 512 --batch-size 8\n"
                "  sgt-bench ablation --data out/ --model 4x256x4 --seq-len 128\n"
                "  sgt-bench memory --model 4x256x4 --batch-size 4,8,16\n"
                "  sgt-bench sample --peer python3",
    .commands = commands};

static const struct {
    const char *name, *now;
} gone[] = {{"all", "is gone: run the other subcommands, one after the other"},
            {"score", "is a program of its own now: sgt-eval RUN/ FILE.jsonl"}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof gone / sizeof *gone; i++)
        if (strcmp(argv[1], gone[i].name) == 0) {
            fprintf(stderr, "sgt-bench: %s %s\n", gone[i].name, gone[i].now);
            return SGT_EXIT_USAGE;
        }
    sgt_spin_little(argv);
    sgt_search_wheels();
    /* if this fails, reading a truncated shard ends the program */
    sgt_loader_guard_sigbus(NULL);
    return sgt_run_command(&program, argc, argv);
}
