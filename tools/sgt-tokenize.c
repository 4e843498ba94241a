/* sgt-tokenize: turns text into GPT-2's tokens on disk. sgt_tokenize does the work; this file has
 * the command line and the messages. */
#include "tokenize/sgt_tokenize.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "loader/base/json.h"
#include "tokenize/out/export.h"
#include "tokenize/before.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/ranks/ranks.h"

static struct {
    const char *vocab, *pattern, *field, *keep_fields, *cpu;
    int format, special, invalid_utf8, normalize, binary, layout; /* indices of the chosen words */
    double split;
    sgt_option_list filters;
    uint64_t shard_tokens, shuffle_seed, threads, rank, ranks, train_vocab;
    int shuffle, rank_given, ranks_given, vocab_given, split_given, shard_tokens_given;
    int dedup, hidden, skip_bad, force, dry_run, json, quiet;
} o = {.vocab = "gpt2",
       .field = "text",
       .normalize = SGT_DEFAULT_WORD,
       .binary = SGT_DEFAULT_WORD,
       .cpu = "auto",
       .shard_tokens = 100000000};

static const sgt_option table[] = {
    {.name = "Input"},
    {"format", 0, SGT_OPT_WORD, &o.format, "auto|text|jsonl",
     "text: each file is a document; jsonl: each line is one; auto: by name and first lines",
     .def = "auto"},
    {"field", 0, SGT_OPT_TEXT, &o.field, "NAME",
     "field of JSONL, or column of Parquet, that holds the text; a.b for a nested one",
     .def = "text"},
    {"skip-bad", 0, SGT_OPT_FLAG, &o.skip_bad,
     .help = "skip lines or rows without that field, and count them"},
    {"keep-fields", 0, SGT_OPT_TEXT, &o.keep_fields, "NAME,...",
     "fields of JSONL, or columns of Parquet, to keep of each document in sources.jsonl",
     .def = "none"},
    {"invalid-utf8", 0, SGT_OPT_WORD, &o.invalid_utf8, "keep|replace|fail",
     "what to do with bytes that are not UTF-8: keep them, replace them by U+FFFD, or fail",
     .def = "keep"},
    {"binary", 0, SGT_OPT_WORD, &o.binary, "skip|keep",
     "files that are not text (PDF, images, programs, archives, UTF-16): skip and count them, or "
     "read them byte for byte",
     .def = "skip"},
    {"hidden", 0, SGT_OPT_FLAG, &o.hidden,
     .help = "also read hidden files and folders below INPUT (names that begin with a dot, and "
             "_SUCCESS, _metadata and _common_metadata)"},
    {"filter", 0, SGT_OPT_LIST, &o.filters, "EXT=COMMAND",
     .help = "read files with extension EXT through COMMAND, which prints text (EXT=jsonl:COMMAND: "
             "JSONL)"},
    {"special", 0, SGT_OPT_WORD, &o.special, "none|eot",
     "eot: each literal <|endoftext|> begins a document; none: it is text", .def = "none"},
    {"normalize", 0, SGT_OPT_WORD, &o.normalize, "none|nfc|nfkc",
     "Unicode normalization of each document, before it is split; GPT-2 uses none",
     .def = "the vocabulary's, or none"},
    {.name = "Output"},
    {"vocab", 0, SGT_OPT_TEXT, &o.vocab, "gpt2|FILE|DIR",
     "vocabulary, a byte-level BPE: tokenizer.json, merges.txt, vocab.json or .tiktoken",
     .def = "gpt2, built in", .given = &o.vocab_given},
    {"train-vocab", 0, SGT_OPT_COUNT, &o.train_vocab, "N",
     "train a vocabulary of N tokens on INPUTs and write it to OUT, instead of shards", .min = 257,
     .max = 65536},
    {"pattern", 0, SGT_OPT_TEXT, &o.pattern, "REGEX|NAME",
     "what splits text before merging: a regular expression (PCRE2), or gpt2, cl100k, o200k, "
     "llama3, qwen2 or nanochat",
     .def = "the vocabulary's, or GPT-2's"},
    {"split", 0, SGT_OPT_PERCENT, &o.split, "N%|none",
     "share of the documents used for validation, chosen by a hash of their path", .def = "none",
     .given = &o.split_given},
    {"shards", 0, SGT_OPT_WORD, &o.layout, "sgt|megatron|nanogpt|npy",
     "files of OUT: sgt's shards; or one file for each split, for Megatron-LM (.bin and .idx), "
     "nanoGPT (train.bin, val.bin) or OLMo-core (.npy, 16-bit ids without NumPy's header)",
     .def = "sgt"},
    {"shard-tokens", 0, SGT_OPT_COUNT, &o.shard_tokens, "N", "tokens of a shard", .def = "100M",
     .min = 1, .max = 2147483647, .given = &o.shard_tokens_given},
    {"shuffle", 0, SGT_OPT_COUNT, &o.shuffle_seed, "SEED",
     "shuffle the documents, in an order that SEED decides", .def = "the order of the inputs",
     .min = 0, .max = 9007199254740992, .given = &o.shuffle},
    {"dedup", 0, SGT_OPT_FLAG, &o.dedup,
     .help = "leave out documents whose whole text already occurred"},
    {"force", 0, SGT_OPT_FLAG, &o.force,
     .help = "make OUT anew, also if it is complete or was made from other inputs"},
    {.name = "Running"},
    {"threads", 't', SGT_OPT_COUNT, &o.threads, "N",
     "number of CPU threads; the output is the same for any number", .def = "all available cores",
     .min = 1, .max = 1024},
    {"cpu", 0, SGT_OPT_TEXT, &o.cpu, "auto|plain|avx2|avx512|amx",
     "highest CPU instruction level to use", .def = "auto"},
    {"rank", 0, SGT_OPT_COUNT, &o.rank, "I", "number of this process, from 0 to N - 1 of --ranks",
     .def = "the launcher's, or 0", .min = 0, .max = 999999, .given = &o.rank_given},
    {"ranks", 0, SGT_OPT_COUNT, &o.ranks, "N", "number of processes that make OUT together",
     .def = "the launcher's, or 1", .min = 1, .max = 1000000, .given = &o.ranks_given},
    {"dry-run", 0, SGT_OPT_FLAG, &o.dry_run,
     .help = "write nothing: count files, and estimate tokens and disk from their bytes; OUT may "
             "be left out"},
    {"json", 0, SGT_OPT_FLAG, &o.json, .help = "print one JSON document on standard output"},
    {"quiet", 'q', SGT_OPT_FLAG, &o.quiet, .help = "print nothing unless something is wrong"},
    {0}};

static sgt_program program = {
    .name = "sgt-tokenize",
    .usage = "sgt-tokenize [OPTION]... INPUT... OUT/",
    .about = "Turns text into GPT-2's tokens: shards of 16-bit ids in the folder OUT. INPUTs are "
             "files, folders (all that is below them), @LIST (a file of paths) and - for standard "
             "input. A run that was stopped or killed is finished by the same command.",
    .options = table,
    .examples = "  sgt-tokenize corpus/ out/\n"
                "  sgt-tokenize --split 1% corpus/ out/\n"
                "  sgt-tokenize --field content --skip-bad pages.jsonl.gz out/\n"
                "  sgt-tokenize --dry-run corpus/\n"
                "  zcat pages.gz | sgt-tokenize - out/\n"
                "  mpirun -n 4 sgt-tokenize corpus/ out/\n"
                "  sgt-tokenize --filter 'pdf=pdftotext {} -' @papers.txt out/",
    .rank = sgt_ranks_number};

typedef struct meter {
    sgt_progress *bar;
    int begun;
    uint64_t from, tokens_from; /* bytes and tokens that an earlier run has processed */
    double began;
} meter;

static void show_progress(void *ctx, uint64_t done, uint64_t total, uint64_t tokens)
{
    meter *m = ctx;
    char text[64];
    double now = sgt_now();
    if (!m->begun) {
        *m = (meter){m->bar, 1, done, tokens, now};
        return; /* the speed is not known yet */
    }
    double speed = now > m->began ? (double)(tokens - m->tokens_from) / (now - m->began) : 0;
    sgt_format_rate(text, sizeof text, speed, "tokens/s");
    sgt_progress_update(m->bar, done, total, m->from, text);
}

static double mb_per_s(uint64_t bytes, double seconds)
{
    return seconds > 0 ? 1e-6 * (double)bytes / seconds : 0;
}

/* Print j (NULL: out of memory) on one line, and free it. Return 0 or -1. */
static int put_json(json_t *j)
{
    char *text = sgt_json_dumps(j, JSON_REAL_PRECISION(6));
    if (text) puts(text);
    free(text);
    json_decref(j);
    return text ? 0 : -1;
}

/* Return the exit code of a program whose output is complete, if all of it could be written. */
static int flush_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return SGT_EXIT_OK;
    fprintf(stderr, "%s: cannot write to standard output\n", program.name);
    return SGT_EXIT_FAILED;
}

static int print_json(const sgt_tokenize_result *r)
{
    json_t *j = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:b}",
        "tokens", (json_int_t)r->tokens, "documents", (json_int_t)r->documents, "bytes",
        (json_int_t)r->bytes, "files", (json_int_t)r->files, "invalid_utf8",
        (json_int_t)r->invalid_utf8, "bad_lines", (json_int_t)r->bad_lines, "lone_surrogates",
        (json_int_t)r->lone_surrogates, "duplicates", (json_int_t)r->duplicates, "skipped",
        (json_int_t)r->skipped, "eot_literals", (json_int_t)r->eot_literals, "bytes_read",
        (json_int_t)r->bytes_read, "seconds", r->seconds, "mb_per_s",
        mb_per_s(r->bytes_read, r->seconds), "shards", (json_int_t)r->shards, "train_tokens",
        (json_int_t)r->train_tokens, "val_tokens", (json_int_t)r->val_tokens, "already_done",
        r->already_done);
    return put_json(j);
}

static void print_things(FILE *to, const char *before, uint64_t n, const char *singular,
                         const char *plural, const char *after)
{
    char text[80];
    fprintf(to, "%s%s%s", before, sgt_format_things(text, sizeof text, n, singular, plural), after);
}

/* Print the work done: "24 B of text in 4 files, 3 ms, 8.00 kB/s". If this run continued an earlier
 * one, also print how much it did itself. */
static void print_work(FILE *to, const sgt_tokenize_result *r)
{
    char bytes[40], here[40], before[40], time[40], rate[40];
    fprintf(to, "%s of text in ", sgt_format_bytes(bytes, sizeof bytes, r->bytes));
    print_things(to, "", r->files, "file", "files", "");
    if (r->bytes_read < r->bytes)
        fprintf(to, ": %s there already, %s in this run",
                sgt_format_bytes(before, sizeof before, r->bytes - r->bytes_read),
                sgt_format_bytes(here, sizeof here, r->bytes_read));
    fprintf(to, ", %s", sgt_format_duration(time, sizeof time, r->seconds));
    if (r->bytes_read)
        fprintf(
            to, ", %s",
            sgt_format_rate(rate, sizeof rate, 1e6 * mb_per_s(r->bytes_read, r->seconds), "B/s"));
    fprintf(to, "\n");
}

/* Tell why the validation split is empty, and which --split would give one. */
static void print_no_validation(FILE *to, const sgt_tokenize_result *r)
{
    char count[80];
    if (r->documents == 1) {
        fprintf(
            to,
            "No document fell into the validation split: there is only one, and it is not cut.\n");
        return;
    }
    fprintf(to,
            "No document fell into the validation split: with %s, %g %% may pick none. Try --split "
            "%d%%.\n",
            sgt_format_things(count, sizeof count, r->documents, "document", "documents"),
            100 * o.split, o.split < .2 ? 20 : 50);
}

static void write_summary(FILE *to, const char *out, const sgt_tokenize_result *r)
{
    char train[40], shown[1024];
    fprintf(to, "%s: ", sgt_printable(shown, sizeof shown, out));
    print_things(to, "", r->tokens, "token", "tokens", "");
    print_things(to, ", ", r->documents, "document", "documents", "");
    print_things(to, ", ", r->shards, o.layout ? "file" : "shard", o.layout ? "files" : "shards",
                 "");
    if (r->val_tokens) {
        fprintf(to, "; train %s", sgt_format_count(train, sizeof train, r->train_tokens));
        print_things(to, ", val ", r->val_tokens, "token", "tokens", "");
        fprintf(to, " (%.3g %%: --split chooses whole documents)",
                100 * (double)r->val_tokens / (double)(r->train_tokens + r->val_tokens));
    }
    fprintf(to, r->already_done ? "; complete already, nothing was done\n" : "\n");
    if (!r->already_done) print_work(to, r);
    if (o.layout && r->shards) fprintf(to, "%s\n", sgt_layout_says[o.layout]);
    if (r->skipped)
        print_things(to, "", r->skipped, "file", "files",
                     " skipped: not plain text (see --binary)\n");
    if (r->duplicates)
        print_things(to, "", r->duplicates, "duplicate", "duplicates", " left out\n");
    if (r->bad_lines)
        print_things(to, "", r->bad_lines, "bad line or row", "bad lines or rows", " left out\n");
    if (r->lone_surrogates)
        print_things(to, "", r->lone_surrogates, "lone surrogate", "lone surrogates",
                     " in JSONL, now U+FFFD\n");
    if (r->eot_literals)
        print_things(to, "", r->eot_literals, "literal end of text", "literal ends of text",
                     " in the documents, tokenized as text (with --special eot each begins a "
                     "document)\n");
    if (o.split > 0 && r->documents && !r->val_tokens) print_no_validation(to, r);
    if (!r->invalid_utf8) return;
    print_things(to, "", r->invalid_utf8, "place", "places", " not UTF-8, ");
    fprintf(to, "%s; manifest.json names the first\n",
            o.invalid_utf8 == SGT_INVALID_REPLACE ? "replaced by U+FFFD"
                                                  : "kept byte for byte (see --invalid-utf8)");
}

/* Print the summary; its lines are wrapped between words to the terminal's width. */
static void print_summary(const char *out, const sgt_tokenize_result *r)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    write_summary(to ? to : stdout, out, r);
    if (to && !fclose(to) && n) sgt_put_line(stdout, "%.*s", (int)(n - 1), text);
    free(text);
}

/* ---- --dry-run ---- */

static int can_be_out(const char *path)
{
    struct stat st;
    int mine = 0, others = 0;
    if (!strcmp(path, "-")) return 0;
    if (stat(path, &st) < 0) return 1;
    DIR *d = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    if (!d) return 0;
    for (const struct dirent *e; (e = readdir(d));) {
        mine |= !strcmp(e->d_name, "manifest.json") || !strcmp(e->d_name, ".work");
        others |= strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    }
    closedir(d);
    return mine || !others;
}

static json_int_t number(uint64_t v) { return (json_int_t)v; }

static json_t *or_null(uint64_t v)
{
    return v == SGT_NOT_KNOWN ? json_null() : json_integer(number(v));
}

static int print_estimate_json(const sgt_dry_run_result *r)
{
    return put_json(json_pack("{s:b, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "dry_run", 1,
                              "files", number(r->files), "bytes", number(r->bytes), "documents",
                              or_null(r->documents), "tokens", number(r->tokens), "skipped",
                              number(r->skipped), "shards", number(r->shards), "disk_bytes",
                              number(r->disk), "disk_meanwhile", number(r->disk_meanwhile),
                              "disk_free", or_null(r->disk_free)));
}

static void write_estimate(FILE *to, const sgt_dry_run_result *r)
{
    char a[40], b[40], c[40];
    fprintf(to, "inputs      %s in %s file%s", sgt_format_bytes(a, sizeof a, r->bytes),
            sgt_format_count(b, sizeof b, r->files), r->files == 1 ? "" : "s");
    if (r->documents != SGT_NOT_KNOWN)
        fprintf(to, ", %s document%s", sgt_format_count(c, sizeof c, r->documents),
                r->documents == 1 ? "" : "s");
    fprintf(to, "\ntokens      about %s: bytes / 4%s\n", sgt_format_count(a, sizeof a, r->tokens),
            r->packed ? ", and packed files are taken for 3 times their bytes" : "");
    fprintf(to, "disk        about %s in %s shard%s", sgt_format_bytes(a, sizeof a, r->disk),
            sgt_format_count(b, sizeof b, r->shards), r->shards == 1 ? "" : "s");
    if (r->disk_meanwhile)
        fprintf(to, ", and %s while it is made", sgt_format_bytes(c, sizeof c, r->disk_meanwhile));
    if (r->disk_free != SGT_NOT_KNOWN)
        fprintf(to, ", %s free there%s", sgt_format_bytes(c, sizeof c, r->disk_free),
                sgt_space_lacks(NULL, r, NULL) < 0 ? ": too little" : "");
    fputc('\n', to);
    if (r->skipped)
        fprintf(to, "skipped     %s: not plain text (see --binary)\n",
                sgt_format_things(b, sizeof b, r->skipped, "file", "files"));
}

/* Print the estimate; its lines are wrapped between words to the terminal's width. */
static void print_estimate(const sgt_dry_run_result *r)
{
    sgt_wrapped w;
    write_estimate(sgt_wrapped_open(&w), r);
    sgt_wrapped_close(&w);
}

/* Print the estimate of --dry-run on standard output. operands[0 .. count - 1] are INPUTs, and the
 * last of them is OUT if it can be: a new name, an empty folder, or one made by sgt-tokenize. If OUT
 * needs more space than is free and --force is not given, fail after printing. */
static int estimate(sgt_tokenize_options *options, const char *const *operands, size_t count,
                    sgt_error *err)
{
    sgt_dry_run_result r;
    int last_is_out = count > 1 && can_be_out(operands[count - 1]);
    options->inputs = operands;
    options->input_count = last_is_out ? count - 1 : count;
    options->out = last_is_out ? operands[count - 1] : NULL;
    int rc = sgt_dry_run(options, &r, err);
    if (rc < 0) return rc;
    if (o.json && print_estimate_json(&r) < 0) return sgt_fail_memory(err, NULL);
    if (!o.json && !o.quiet) print_estimate(&r);
    fflush(stdout);
    return o.force ? SGT_OK : sgt_space_lacks(options->out, &r, err);
}

/* ---- --train-vocab ---- */

static void show_pieces(void *ctx, uint64_t done, uint64_t total, uint64_t pieces)
{
    (void)pieces;
    sgt_progress_update(ctx, done, total, 0, "counting");
}

static int print_vocab_json(const sgt_train_result *r)
{
    json_t *j = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "tokens",
                          (json_int_t)r->tokens, "pieces", (json_int_t)r->pieces, "distinct_pieces",
                          (json_int_t)r->distinct, "documents", (json_int_t)r->documents, "bytes",
                          (json_int_t)r->bytes, "files", (json_int_t)r->files, "invalid_utf8",
                          (json_int_t)r->invalid_utf8, "skipped", (json_int_t)r->skipped, "seconds",
                          r->seconds, "mb_per_s", mb_per_s(r->bytes, r->seconds));
    return put_json(j);
}

static void print_vocab_summary(const char *out, const sgt_train_result *r)
{
    char tokens[80], pieces[80], distinct[40], bytes[40], files[80], time[40], rate[40],
        shown[1024];
    printf("%s: %s from %s, %s of them distinct\n", sgt_printable(shown, sizeof shown, out),
           sgt_format_things(tokens, sizeof tokens, r->tokens, "token", "tokens"),
           sgt_format_things(pieces, sizeof pieces, r->pieces, "piece", "pieces"),
           sgt_format_count(distinct, sizeof distinct, r->distinct));
    printf("%s of text in %s, %s, %s\n", sgt_format_bytes(bytes, sizeof bytes, r->bytes),
           sgt_format_things(files, sizeof files, r->files, "file", "files"),
           sgt_format_duration(time, sizeof time, r->seconds),
           sgt_format_rate(rate, sizeof rate, 1e6 * mb_per_s(r->bytes, r->seconds), "B/s"));
    if (r->skipped)
        printf("%s skipped: not plain text (see --binary)\n",
               sgt_format_things(files, sizeof files, r->skipped, "file", "files"));
}

/* Train a vocabulary on the inputs, write its files to OUT, print the result, and return the exit
 * code. */
static int make_vocab(sgt_tokenize_options *options)
{
    sgt_error err;
    sgt_train_result result = {0};
    sgt_vocab *v = NULL;
    sgt_progress *bar = sgt_progress_new("B", SGT_PROGRESS_BYTES, o.quiet);
    options->notice = sgt_progress_notice(bar, program.name);
    options->progress = show_pieces;
    options->progress_ctx = bar;
    int rc = sgt_vocab_train(&v, options, (uint32_t)o.train_vocab, &result, &err);
    if (!rc) rc = sgt_vocab_save(v, options->out, &err);
    sgt_vocab_free(v);
    sgt_progress_end(bar);
    if (rc < 0) return sgt_report_failure(&program, &err);
    if (result.tokens < o.train_vocab && !o.quiet)
        fprintf(stderr, "%s: no pair of tokens is left to merge: %u tokens, not %u\n", program.name,
                result.tokens, (uint32_t)o.train_vocab);
    if (o.json && print_vocab_json(&result) < 0) return SGT_EXIT_FAILED;
    if (!o.json && !o.quiet) print_vocab_summary(options->out, &result);
    return flush_output();
}

/* ---- ranks ---- */

/* Fill in t->ranks: from --rank and --ranks, or by connecting to the ranks that a launcher started.
 * *joined becomes the connection, or NULL if there is none. Connected ranks above 0 print
 * nothing. */
static int find_ranks(sgt_tokenize_options *t, sgt_ranks **joined, sgt_error *err)
{
    static sgt_ranks apart;
    *joined = NULL;
    if (o.ranks_given) {
        apart = (sgt_ranks){.rank = (uint32_t)o.rank, .size = (uint32_t)o.ranks};
        t->ranks = &apart;
        return SGT_OK;
    }
    int rc = sgt_ranks_open(joined, program.name, t->stop, err);
    if (rc < 0 || !*joined) return rc;
    t->ranks = *joined;
    if (!t->threads && (*joined)->sharing > 1) {
        t->threads = sgt_cpu_count() / (int)(*joined)->sharing;
        if (!t->threads) t->threads = 1;
    }
    if (!sgt_ranks_first(*joined)) o.quiet = 1;
    return SGT_OK;
}

static void check_ranks(void)
{
    if (o.rank_given && !o.ranks_given)
        sgt_usage(&program, "--rank: needs --ranks N, the number of processes");
    if (!o.ranks_given) return;
    program.rank = NULL; /* each process prints its own errors, even under a launcher */
    if (!o.rank_given) sgt_usage(&program, "--ranks: needs --rank I, the number of this process");
    if (o.rank >= o.ranks)
        sgt_usage(&program, "--rank %llu: must be less than --ranks %llu (they count from 0)",
                  (unsigned long long)o.rank, (unsigned long long)o.ranks);
}

/* ---- --train-vocab ---- */

static void check_train_vocab(void)
{
    const char *other = o.vocab_given          ? "--vocab"
                        : o.split_given        ? "--split"
                        : o.shard_tokens_given ? "--shard-tokens"
                        : o.shuffle            ? "--shuffle"
                        : o.dedup              ? "--dedup"
                        : o.keep_fields        ? "--keep-fields"
                        : o.layout             ? "--shards"
                                               : NULL;
    if (o.train_vocab && o.ranks_given) other = "--ranks";
    if (o.train_vocab && o.dry_run) other = "--dry-run";
    if (o.train_vocab && other)
        sgt_usage(&program, "--train-vocab makes a vocabulary and no shards: not with %s", other);
}

/* Train a vocabulary. Fail if there are several ranks, because each would train the same one. */
static int train(sgt_tokenize_options *options)
{
    sgt_error err;
    sgt_ranks *ranks = NULL;
    if (sgt_ranks_open(&ranks, program.name, options->stop, &err) < 0)
        return sgt_report_failure(&program, &err);
    int code = SGT_EXIT_OK;
    if (ranks && ranks->size > 1) {
        sgt_fail(
            &err, SGT_EUSAGE,
            "--train-vocab is for one process with many threads (start it without a launcher)");
        code = sgt_ranks_first(ranks) ? sgt_report_failure(&program, &err) : SGT_EXIT_USAGE;
    }
    sgt_ranks_close(ranks, code);
    return code ? code : make_vocab(options);
}

/* ---- the command ---- */

static void say_waiting(const char *out, const sgt_tokenize_result *r)
{
    char shown[1024];
    fprintf(stderr,
            "%s: %s: part %llu of %llu is whole, %u %s not (the process that makes the last one "
            "completes OUT)\n",
            program.name, sgt_printable(shown, sizeof shown, out), (unsigned long long)o.rank + 1,
            (unsigned long long)o.ranks, r->waiting, r->waiting == 1 ? "is" : "are");
}

static int print_result(const char *out, const sgt_tokenize_result *r)
{
    if (r->waiting && !o.quiet) say_waiting(out, r);
    if (!r->waiting && o.json && print_json(r) < 0) return SGT_EXIT_FAILED;
    if (!r->waiting && !o.json && !o.quiet) print_summary(out, r);
    return flush_output();
}

static int tokenize(sgt_tokenize_options *options)
{
    sgt_error err;
    sgt_tokenize_result result;
    sgt_ranks *ranks;
    int code, rc = find_ranks(options, &ranks, &err);
    if (rc < 0) return sgt_report_failure(&program, &err);
    meter m = {.bar = sgt_progress_new("B", SGT_PROGRESS_BYTES, o.quiet)};
    options->notice = sgt_progress_notice(m.bar, program.name);
    options->progress_ctx = &m;
    rc = sgt_tokenize(options, &result, &err);
    sgt_progress_end(m.bar);
    if (rc < 0 && ranks) ranks->give_up(ranks, &err);
    if (rc == SGT_ESTOPPED) sgt_fail(&err, rc, "stopped (the same command continues it)");
    if (rc < 0) code = sgt_report_failure(&program, &err);
    else code = sgt_ranks_first(ranks) ? print_result(options->out, &result) : SGT_EXIT_OK;
    sgt_ranks_close(ranks, code);
    return code;
}

/* Print the estimate of --dry-run. If a launcher started several ranks, only rank 0 prints it. */
static int dry_run(sgt_tokenize_options *options, const char *const *operands, size_t count)
{
    sgt_error err;
    sgt_ranks *ranks;
    sgt_talk talk = {program.name, o.quiet};
    int code, rc = find_ranks(options, &ranks, &err);
    if (rc < 0) return sgt_report_failure(&program, &err);
    options->notice = sgt_talk_notice(&talk);
    if (sgt_ranks_first(ranks)) rc = estimate(options, operands, count, &err);
    code = rc < 0 ? sgt_report_failure(&program, &err) : flush_output();
    sgt_ranks_close(ranks, code);
    return code;
}

int main(int argc, char **argv)
{
    sgt_stop *stop = sgt_catch_signals();
    int first = sgt_options_parse(&program, argc, argv), count = argc - first;
    if (!count)
        sgt_usage(&program, "expected INPUT... and OUT (such as: sgt-tokenize corpus/ out/)");
    if (count == 1 && !o.dry_run)
        sgt_usage(&program, "expected INPUT... and OUT, got only %s (the last one is OUT)",
                  argv[first]);
    if (!o.dry_run && strcmp(argv[argc - 1], "-") == 0)
        sgt_usage(&program, "OUT must be a folder, not - (./- names a folder called -)");
    sgt_take_cpu(&program, o.cpu);
    check_ranks();
    check_train_vocab();
    if (o.layout && o.shard_tokens_given)
        sgt_usage(&program,
                  "--shard-tokens: not together with --shards %s, which makes one file of "
                  "a split",
                  sgt_layout_names[o.layout]);
    sgt_tokenize_options options = {.inputs = (const char *const *)(argv + first),
                                    .input_count = (size_t)(count - 1),
                                    .out = argv[argc - 1],
                                    .vocab = o.vocab,
                                    .rule = o.pattern,
                                    .normalize = (sgt_normalize)(o.normalize + 1),
                                    .val_fraction = o.split,
                                    .shuffle = o.shuffle,
                                    .shuffle_seed = o.shuffle_seed,
                                    .dedup = o.dedup,
                                    .shard_tokens = o.layout ? 0 : o.shard_tokens,
                                    .layout = (sgt_layout)o.layout,
                                    .threads = (int)o.threads,
                                    .format = (sgt_format)o.format,
                                    .field = o.field,
                                    .keep_fields = o.keep_fields,
                                    .skip_bad = o.skip_bad,
                                    .filters = o.filters.items,
                                    .filter_count = o.filters.count,
                                    .special_eot = o.special,
                                    .invalid_utf8 = (sgt_invalid_utf8)o.invalid_utf8,
                                    .binary = (sgt_binary_files)(o.binary + 1),
                                    .hidden = o.hidden,
                                    .force = o.force,
                                    .stop = stop,
                                    .progress = show_progress};
    if (o.dry_run) return dry_run(&options, (const char *const *)(argv + first), (size_t)count);
    return o.train_vocab ? train(&options) : tokenize(&options);
}
