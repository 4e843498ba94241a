/* sgt-bench: how fast the parts are on this machine. Each subcommand has its own options; see tools/bench. */
#include <string.h>

#include "sgt_loader.h"
#include "tools/bench/bench.h"
#include "tools/cli/options.h"

static const sgt_option none[] = {{0}};

static const sgt_program program = {
    .name = "sgt-bench",
    .usage = "sgt-bench loader [OPTION]... OUT/\n"
             "       sgt-bench tokenize [OPTION]... INPUT...\n"
             "       sgt-bench gemm [OPTION]...\n"
             "       sgt-bench attention [OPTION]...\n"
             "       sgt-bench step [OPTION]...\n"
             "       sgt-bench ablation [OPTION]... --data OUT/\n"
             "       sgt-bench score [OPTION]... --model DIR FILE",
    .about =
        "Measures on this machine: `loader`, how fast each reader makes batches; `tokenize`, how fast text becomes\n"
        "tokens; `gemm`, each matrix product of a step; `attention`, one layer's; `step`, a whole training step;\n"
        "`ablation`, what each technique of training brings; `score`, what a model knows. `sgt-bench loader --help` and so on\n"
        "list their options.",
    .options = none,
    .examples = "  sgt-bench loader out/\n"
                "  sgt-bench tokenize corpus/\n"
                "  sgt-bench gemm --device cuda\n"
                "  sgt-bench attention --device cuda\n"
                "  sgt-bench step --model 4x256x4 --seq-len 512 --batch-size 8\n"
                "  sgt-bench ablation --data out/ --model 4x256x4 --seq-len 128\n"
                "  sgt-bench score --model run/ hellaswag_val.jsonl"};

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"loader", bench_loader}, {"tokenize", bench_tokenize}, {"gemm", bench_gemm},
                {"attention", bench_attention}, {"step", bench_step}, {"ablation", bench_ablation},
                {"score", bench_score}};

#define NAMES "loader, tokenize, gemm, attention, step, ablation, score"

int main(int argc, char **argv)
{
    sgt_loader_guard_sigbus(NULL); /* where it cannot be had, a shard that is cut short ends the program */
    for (size_t i = 0; i < sizeof commands / sizeof *commands && argc > 1; i++)
        if (!strcmp(argv[1], commands[i].name)) return commands[i].run(argc - 1, argv + 1);
    int first = sgt_options_parse(&program, argc, argv);
    if (first < argc) sgt_usage(&program, "%s: no such subcommand (" NAMES ")", argv[first]);
    sgt_usage(&program, "what is to be measured? (" NAMES ")");
}
