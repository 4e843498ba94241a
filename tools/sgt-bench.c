/* sgt-bench: measures how fast the parts of sgt are on this machine. Each subcommand has its own
 * options; see tools/bench. */
#include <stdio.h>
#include <string.h>

#include "loader/sgt_loader.h"
#include "tools/bench/bench.h"
#include "tools/cli/options.h"
#include "tools/cli/process.h"

static const sgt_option none[] = {{0}};

static const sgt_command *const commands[] = {&bench_loader_command,   &bench_tokenize_command,
                                              &bench_kernels_command,  &bench_step_command,
                                              &bench_ablation_command, NULL};

static const sgt_program program = {
    .name = "sgt-bench",
    .usage = "sgt-bench SUBCOMMAND [OPTION]...",
    .about = "Measures the parts of sgt on this machine, each beside its limit or its peers.",
    .options = none,
    .examples = "  sgt-bench loader out/\n"
                "  sgt-bench tokenize corpus/\n"
                "  sgt-bench kernels --device cuda\n"
                "  sgt-bench step --model 4x256x4 --seq-len 512 --batch-size 8\n"
                "  sgt-bench ablation --data out/ --model 4x256x4 --seq-len 128",
    .commands = commands};

/* Subcommands and options that earlier versions had, and what to type now. */
static const struct {
    const char *word, *now;
} gone[] = {
    {"all", "run the other subcommands, one after the other"},
    {"attention", "type sgt-bench kernels --kind attention; --model 1xCxH gives the heads"},
    {"gemm", "type sgt-bench kernels --kind gemm"},
    {"memory", "type sgt-bench step --batch-size 1,2,4,8,16"},
    {"sample", "sgt-sample RUN/ prints its tokens/s"},
    {"score", "it is a program of its own now: sgt-eval RUN/ FILE.jsonl"},
    {"--limits", "loader compares with memcpy, numpy (--peer) and fio (--cold) in its table"},
    {"--plot", "--json has every number of the table"}};

/* Return whether argument i is the word, or for an option --word=VALUE. Subcommands come first. */
static int is_word(char **argv, int i, const char *word)
{
    size_t n = strlen(word);
    if (word[0] != '-') return i == 1 && strcmp(argv[i], word) == 0;
    return strncmp(argv[i], word, n) == 0 && (!argv[i][n] || argv[i][n] == '=');
}

int main(int argc, char **argv)
{
    for (size_t g = 0; g < sizeof gone / sizeof *gone; g++)
        for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
            if (is_word(argv, i, gone[g].word)) {
                fprintf(stderr, "sgt-bench: %s is gone: %s\n", gone[g].word, gone[g].now);
                return SGT_EXIT_USAGE;
            }
    sgt_spin_little(argv);
    sgt_search_wheels();
    /* if this fails, reading a truncated shard ends the program */
    sgt_loader_guard_sigbus(NULL);
    return sgt_run_command(&program, argc, argv);
}
