/* corpus.c: turns folders of text into shards with libsgt-tokenize, as sgt-tokenize does. It prints
 * notices and progress, and stops at Ctrl-C; the same command then continues.
 *
 *     cc corpus.c $(pkg-config --cflags --libs sgt-tokenize) -o corpus && ./corpus OUT/ INPUT... */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <sgt_tokenize.h>

static sgt_stop stop;

static void ask_to_stop(int signal)
{
    (void)signal;
    sgt_stop_request(&stop);
}

static void print_line(void *ctx, const char *line)
{
    (void)ctx;
    fprintf(stderr, "corpus: %s\n", line);
}

/* Print the progress. bytes_total is 0 if the inputs' total size is unknown, as for standard input
 * and compressed files. */
static void show(void *ctx, uint64_t bytes_done, uint64_t bytes_total, uint64_t tokens)
{
    uint64_t *last = ctx, percent = bytes_total ? 100 * bytes_done / bytes_total : 0;
    if (percent < *last + 10) return;
    *last = percent;
    fprintf(stderr, "%3" PRIu64 " %%, %" PRIu64 " tokens\n", percent, tokens);
}

int main(int argc, char **argv)
{
    uint64_t percent = 0;
    sgt_tokenize_result result = {.size = sizeof result};
    sgt_error err;
    if (argc < 3) {
        fprintf(stderr, "usage: corpus OUT/ INPUT...\n");
        return 2;
    }
    sgt_tokenize_options options = {.size = sizeof options,
                                    .inputs = (const char *const *)argv + 2,
                                    .input_count = (size_t)argc - 2,
                                    .out = argv[1],
                                    /* fraction of documents put into the validation split, chosen
                                     * by a hash of each document's path */
                                    .val_fraction = .01,
                                    .shard_tokens = 1000000,
                                    .notice = {print_line, NULL},
                                    .stop = &stop,
                                    .progress = show,
                                    .progress_ctx = &percent};
    signal(SIGINT, ask_to_stop);
    if (sgt_tokenize(&options, &result, &err) < 0) {
        fprintf(stderr, "corpus: %s\n", err.text);
        return err.code == SGT_ESTOPPED ? 130 : EXIT_FAILURE;
    }
    printf("%s: %" PRIu64 " tokens from %" PRIu64 " documents in %" PRIu64 " shards, %" PRIu64
           " for validation%s\n",
           argv[1], result.tokens, result.documents, result.shards, result.val_tokens,
           result.already_done ? ", already complete" : "");
    return EXIT_SUCCESS;
}
