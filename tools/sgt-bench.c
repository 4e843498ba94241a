/* sgt-bench: measures the speed of sgt's loader, tokenizer, kernels and training steps on this
 * machine. Each subcommand has its own options and source file in tools/bench. */
#include "loader/sgt_loader.h"
#include "tools/bench/bench.h"
#include "tools/cli/options.h"
#include "tools/cli/process.h"

static const sgt_option none[] = {{0}};

static const sgt_command *const commands[] = {&bench_loader.command,   &bench_tokenize.command,
                                              &bench_kernels.command,  &bench_step.command,
                                              &bench_ablation.command, NULL};

static const sgt_program program = {
    .name = "sgt-bench",
    .usage = "sgt-bench SUBCOMMAND [OPTION]...",
    .about = "Measures how fast sgt reads, tokenizes and trains, compared with other programs.",
    .options = none,
    .examples = "  sgt-bench loader out/\n"
                "  sgt-bench tokenize corpus/\n"
                "  sgt-bench kernels --device cuda\n"
                "  sgt-bench step --model 4x256x4 --seq-len 512 --batch-size 8\n"
                "  sgt-bench ablation --data out/ --model 4x256x4 --seq-len 128",
    .commands = commands};

int main(int argc, char **argv)
{
    sgt_spin_little(argv);
    sgt_search_wheels();
    sgt_config_default(&bench_config);
    bench_config.seq = 0;
    /* A failure to install the handler is ignored. Without the handler, reading a truncated shard
     * kills the process with SIGBUS instead of returning an error. */
    sgt_loader_guard_sigbus(NULL);
    return sgt_run_command(&program, argc, argv);
}
