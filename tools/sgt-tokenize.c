/* sgt-tokenize: converts text to shards (files of tokens). This file contains the command line and
 * the messages; the library function sgt_tokenize does the conversion. */
#include "tokenize/sgt_tokenize.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/base/clock.h"
#include "loader/base/ids.h"
#include "tokenize/out/export.h"
#include "tokenize/out/out.h"
#include "tokenize/before.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/ranks/ranks.h"

/* Values of the command-line options. `t` is passed to sgt_tokenize. `o` contains the options that
 * sgt_tokenize does not need, or that must be converted first. */
static sgt_tokenize_options t = {.size = sizeof t};
static struct {
    const char *cpu;
    int normalize; /* argument of --normalize, as an index into its list of words */
    sgt_option_list filters;
    uint64_t threads, rank, ranks, train_vocab;
    int rank_given, ranks_given, shard_tokens_given;
    int dry_run, json, quiet;
} o = {.cpu = "auto", .normalize = SGT_DEFAULT_WORD};

static const sgt_option table[] = {
    {.name = "Input"},
    {"format", 0, SGT_OPT_WORD, &t.format, "auto|text|jsonl",
     "input format; auto recognizes it by name and content; jsonl has one document per line",
     .def = "auto"},
    {"field", 0, SGT_OPT_TEXT, &t.field, "NAME",
     "JSONL field or Parquet column with the text; a.b is field b of the object a", .def = "text"},
    {"skip-bad", 0, SGT_OPT_FLAG, &t.skip_bad,
     .help = "skip damaged lines, rows and ends of .gz and .zst files, and print their number"},
    {"keep-fields", 0, SGT_OPT_TEXT, &t.keep_fields, "NAME,...",
     "JSONL fields or Parquet columns to copy to sources.jsonl for each document", .def = "none"},
    {"invalid-utf8", 0, SGT_OPT_WORD, &t.invalid_utf8, "keep|replace|fail",
     "handling of invalid UTF-8: keep it, replace it with U+FFFD, or fail", .def = "keep"},
    {"binary", 0, SGT_OPT_WORD, &t.binary, "skip|keep",
     "handling of files that are not text (PDF, images, programs, archives, UTF-16): skip "
     "them and print their number, or encode them byte for byte",
     .def = "skip"},
    {"hidden", 0, SGT_OPT_FLAG, &t.hidden,
     .help = "also read hidden files and folders below INPUT (names that begin with a dot, and "
             "_SUCCESS, _metadata and _common_metadata)"},
    {"filter", 0, SGT_OPT_LIST, &o.filters, "EXT=COMMAND",
     .help =
         "read the output of COMMAND instead of each file named *.EXT; {} in COMMAND is the file's "
         "path, as in 'pdf=pdftotext {} -'; if COMMAND prints JSONL, write EXT=jsonl:COMMAND"},
    {"special", 0, SGT_OPT_WORD, &t.special_eot, "none|eot",
     "meaning of <|endoftext|> in a text: start of a new document (eot) or ordinary text (none)",
     .def = "none"},
    {"normalize", 0, SGT_OPT_WORD, &o.normalize, "none|nfc|nfkc",
     "Unicode normal form to which documents are converted before encoding; GPT-2 uses none",
     .def = "the vocabulary's, or none"},
    {.name = "Output"},
    {"vocab", 0, SGT_OPT_TEXT, &t.vocab, "gpt2|FILE|DIR",
     "byte-level BPE vocabulary: tokenizer.json, merges.txt, vocab.json or .tiktoken",
     .def = "gpt2, built in"},
    {"train-vocab", 0, SGT_OPT_COUNT, &o.train_vocab, "N",
     "train a vocabulary of N tokens on the INPUTs and write it to OUT instead of shards",
     .min = 257, .max = 1 << 20},
    {"pattern", 0, SGT_OPT_TEXT, &t.pattern, "REGEX|NAME",
     "pattern that splits text into pre-tokens before merging: a PCRE2 regular expression, or "
     "gpt2, cl100k, o200k, llama3, qwen2 or nanochat",
     .def = "the vocabulary's, or GPT-2's"},
    {"split", 0, SGT_OPT_PERCENT, &t.val_fraction, "N%|none",
     "percentage of the documents to set aside for validation, chosen by a hash of the path",
     .def = "none"},
    {"shards", 0, SGT_OPT_WORD, &t.layout, "sgt|megatron|nanogpt|npy",
     "format of OUT: sgt's shards, or one file per split for Megatron-LM (.bin and .idx), "
     "nanoGPT (train.bin, val.bin) or OLMo-core (.npy, but without NumPy's header)",
     .def = "sgt"},
    {"shard-tokens", 0, SGT_OPT_COUNT, &t.shard_tokens, "N", "number of tokens per shard",
     .def = "100M", .min = 1, .max = 2147483647, .given = &o.shard_tokens_given},
    {"shuffle", 0, SGT_OPT_COUNT, &t.shuffle_seed, "SEED",
     "shuffle the documents into an order that depends on SEED", .def = "the order of the inputs",
     .min = 0, .max = 9007199254740992, .given = &t.shuffle},
    {"dedup", 0, SGT_OPT_FLAG, &t.dedup,
     .help = "keep only the first of several identical documents, even across splits"},
    {"force", 0, SGT_OPT_FLAG, &t.force,
     .help = "replace OUT even if it is complete or comes from other inputs; start even if the "
             "disk seems too small"},
    {.name = "Running"},
    {"threads", 't', SGT_OPT_COUNT, &o.threads, "N",
     "number of CPU threads; the output is the same for any number", .def = "all available cores",
     .min = 1, .max = 1024},
    {"cpu", 0, SGT_OPT_TEXT, &o.cpu, "auto|plain|avx2|avx512|amx",
     "most advanced CPU instruction set to use", .def = "auto"},
    {"rank", 0, SGT_OPT_COUNT, &o.rank, "I",
     "rank of this process, counted from 0, if several processes share the work",
     .def = "the launcher's, or 0", .min = 0, .max = 999999, .given = &o.rank_given},
    {"ranks", 0, SGT_OPT_COUNT, &o.ranks, "N", "number of processes that share the work",
     .def = "the launcher's, or 1", .min = 1, .max = 1000000, .given = &o.ranks_given},
    {"dry-run", 0, SGT_OPT_FLAG, &o.dry_run,
     .help = "count the files, estimate tokens and disk space from file sizes, and write "
             "nothing; OUT can be omitted"},
    {"json", 0, SGT_OPT_FLAG, &o.json, .help = "print the results as one JSON object"},
    {"quiet", 'q', SGT_OPT_FLAG, &o.quiet, .help = "print only warnings, errors and --json output"},
    {0}};

static sgt_program program = {
    .name = "sgt-tokenize",
    .usage = "sgt-tokenize [OPTION]... INPUT... OUT/",
    .makes_folder = 1,
    .about =
        "Converts text to tokens (by default, GPT-2's) and writes the token ids to shards in the "
        "folder OUT. INPUT is a file, a folder (including its subfolders), @LIST (a file that "
        "lists paths), or - (standard input). If the command was stopped, repeat it to continue.",
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
    /* Time in seconds of the first progress report, from which the speed is computed. The start of
     * the program is too early for this, because the program may first wait until another process
     * releases the output folder. */
    double began;
    /* Amount of work that an earlier, interrupted run had done before this run: bytes of text
     * (`from`) and tokens (`tokens_from`). */
    uint64_t from, tokens_from;
    int begun; /* 1 if the fields above are set, otherwise 0 */
} meter;

static void show_progress(void *ctx, uint64_t done, uint64_t total, uint64_t tokens)
{
    meter *m = ctx;
    char text[64];
    if (!m->begun) *m = (meter){m->bar, sgt_now(), done, tokens, 1};
    const double seconds = sgt_now() - m->began;
    double speed = seconds > 0 ? (double)(tokens - m->tokens_from) / seconds : 0;
    sgt_format_rate(text, sizeof text, speed, "tokens/s");
    sgt_progress_update(m->bar, done, total, m->from, text);
}

static double mb_per_s(uint64_t bytes, double seconds)
{
    return seconds > 0 ? 1e-6 * (double)bytes / seconds : 0;
}

static json_int_t number(uint64_t v) { return (json_int_t)v; }

static int print_json(const sgt_tokenize_result *r, sgt_error *err)
{
    json_t *j = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:b}",
        "tokens", number(r->tokens), "documents", number(r->documents), "bytes", number(r->bytes),
        "files", number(r->files), "invalid_utf8", number(r->invalid_utf8), "bad_lines",
        number(r->bad_lines), "lone_surrogates", number(r->lone_surrogates), "duplicates",
        number(r->duplicates), "skipped", number(r->skipped), "eot_literals",
        number(r->eot_literals), "bytes_read", number(r->bytes_read), "seconds", r->seconds,
        "mb_per_s", mb_per_s(r->bytes_read, r->seconds), "shards", number(r->shards),
        "train_tokens", number(r->train_tokens), "val_tokens", number(r->val_tokens),
        "already_done", r->already_done);
    return sgt_print_json(j, JSON_REAL_PRECISION(6), err);
}

static void print_things(FILE *to, const char *before, uint64_t n, const char *singular,
                         const char *plural, const char *after)
{
    char text[80];
    fprintf(to, "%s%s%s", before, sgt_format_things(text, sizeof text, n, singular, plural), after);
}

/* Print a line about the work done, for example "24 B of text in 4 files, 3 ms, 8.00 kB/s". bytes:
 * size of all text. read: size of the text that this run has read. If `read` is less than `bytes`,
 * an earlier, interrupted run has read the other text, so the line shows the sizes for both
 * runs. */
static void print_work(FILE *to, uint64_t bytes, uint64_t read, uint64_t files, double seconds)
{
    char all[40], here[40], before[40], time[40], rate[40];
    fprintf(to, "%s of text in ", sgt_format_bytes(all, sizeof all, bytes));
    print_things(to, "", files, "file", "files", "");
    if (read < bytes)
        fprintf(to, ": %s in an earlier run, %s in this run",
                sgt_format_bytes(before, sizeof before, bytes - read),
                sgt_format_bytes(here, sizeof here, read));
    fprintf(to, ", %s", sgt_format_duration(time, sizeof time, seconds));
    if (read)
        fprintf(to, ", %s",
                sgt_format_rate(rate, sizeof rate, 1e6 * mb_per_s(read, seconds), "B/s"));
    fprintf(to, "\n");
}

static void print_skipped(FILE *to, uint64_t files)
{
    if (files)
        print_things(to, "", files, "file", "files",
                     t.skip_bad ? " skipped: not plain text (see --binary), or truncated Parquet\n"
                                : " skipped: not plain text (see --binary)\n");
}

/* Print that the validation split contains no documents, and why. Unless there is only one
 * document, suggest a value of --split with which the split would probably contain some. */
static void print_no_validation(FILE *to, const sgt_tokenize_result *r)
{
    fputs("No document fell into the validation split: ", to);
    if (r->documents == 1) fputs("there is only one, and documents are not divided.\n", to);
    else print_things(to, "with ", r->documents, "document", "documents", ", ");
    if (r->documents == 1) return;
    fprintf(to, "%g %% may pick none. Try --split %d%%.\n", 100 * t.val_fraction,
            t.val_fraction < .2 ? 20 : 50);
}

static void print_summary(const char *out, const sgt_tokenize_result *r)
{
    const struct {
        uint64_t count;
        const char *singular, *plural, *after;
    } counted[] = {
        {r->duplicates, "duplicate", "duplicates", " removed"},
        {r->bad_lines, "bad line, row or end of a file", "bad lines, rows or ends of files",
         " skipped"},
        {r->lone_surrogates, "lone surrogate", "lone surrogates", " in JSONL, replaced by U+FFFD"},
        {r->eot_literals, "end-of-text string", "end-of-text strings",
         " in the documents, tokenized as ordinary text (with --special eot, each begins a "
         "document)"},
        {r->invalid_utf8, "invalid UTF-8 sequence", "invalid UTF-8 sequences",
         t.invalid_utf8 == SGT_INVALID_REPLACE
             ? ", replaced by U+FFFD; manifest.json lists the first ones"
             : ", kept byte for byte (see --invalid-utf8); manifest.json lists the first ones"}};
    char train[40], shown[1024];
    sgt_manifest m = {0};
    sgt_wrapped w;
    FILE *to = sgt_wrapped_open(&w, sgt_columns(fileno(stdout)));
    fprintf(to, "%s: ", sgt_printable(shown, sizeof shown, out));
    print_things(to, "", r->tokens, "token", "tokens", "");
    print_things(to, ", ", r->documents, "document", "documents", "");
    print_things(to, ", ", r->shards, t.layout ? "file" : "shard", t.layout ? "files" : "shards",
                 "");
    if (r->val_tokens) {
        fprintf(to, "; train %s", sgt_format_count(train, sizeof train, r->train_tokens));
        print_things(to, ", val ", r->val_tokens, "token", "tokens", "");
        fprintf(to, " (%.3g %%: --split chooses whole documents)",
                100 * (double)r->val_tokens / (double)(r->train_tokens + r->val_tokens));
    }
    fprintf(to, r->already_done ? "; already complete, nothing to do\n" : "\n");
    if (!r->already_done) print_work(to, r->bytes, r->bytes_read, r->files, r->seconds);
    if (t.layout && r->shards && sgt_manifest_find(&m, out, NULL) == SGT_OK)
        fprintf(to, "%s\n", sgt_layout_says[sgt_id_width(m.vocab) == 4][t.layout]);
    sgt_manifest_free(&m);
    print_skipped(to, r->skipped);
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (counted[i].count) {
            print_things(to, "", counted[i].count, counted[i].singular, counted[i].plural,
                         counted[i].after);
            fputc('\n', to);
        }
    if (t.val_fraction > 0 && r->documents && !r->val_tokens) print_no_validation(to, r);
    sgt_wrapped_close(&w);
}

/* ---- --dry-run ---- */

/* Return 1 if `path`, the last operand with --dry-run, is the output folder, or 0 if it is an
 * input. It is the output folder if it does not exist, is an empty folder, or is a folder that
 * sgt-tokenize has written. */
static int can_be_out(const char *path)
{
    struct stat st;
    if (!strcmp(path, "-")) return 0;
    if (stat(path, &st) < 0) return 1;
    return S_ISDIR(st.st_mode) &&
           (sgt_out_is_begun(path) || !sgt_out_holds_other_than(path, NULL, 0));
}

static int print_estimate_json(const sgt_dry_run_result *r, sgt_error *err)
{
    return sgt_print_json(json_pack("{s:b, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "dry_run",
                                    1, "files", number(r->files), "bytes", number(r->bytes),
                                    "documents", sgt_json_count(r->documents), "tokens",
                                    number(r->tokens), "skipped", number(r->skipped), "shards",
                                    number(r->shards), "disk_bytes", number(r->disk),
                                    "disk_meanwhile", number(r->disk_meanwhile), "disk_free",
                                    sgt_json_count(r->disk_free)),
                          0, err);
}

static void print_estimate(const sgt_dry_run_result *r)
{
    char a[40];
    sgt_wrapped w;
    FILE *to = sgt_wrapped_open(&w, sgt_columns(fileno(stdout)));
    fprintf(to, "inputs      %s in ", sgt_format_bytes(a, sizeof a, r->bytes));
    print_things(to, "", r->files, "file", "files", "");
    if (r->documents != SGT_NOT_KNOWN)
        print_things(to, ", ", r->documents, "document", "documents", "");
    fprintf(to, "\ntokens      about %s: bytes / 4%s\n", sgt_format_count(a, sizeof a, r->tokens),
            r->packed ? ", and compressed files are assumed to expand to 3 times their size" : "");
    fprintf(to, "disk        about %s in ", sgt_format_bytes(a, sizeof a, r->disk));
    print_things(to, "", r->shards, "shard", "shards", "");
    if (r->disk_meanwhile)
        fprintf(to, ", and %s more while running",
                sgt_format_bytes(a, sizeof a, r->disk_meanwhile));
    if (r->disk_free != SGT_NOT_KNOWN)
        fprintf(to, ", %s free there%s", sgt_format_bytes(a, sizeof a, r->disk_free),
                sgt_space_lacks(NULL, r, NULL) < 0 ? " (too little)" : "");
    fputc('\n', to);
    print_skipped(to, r->skipped);
    sgt_wrapped_close(&w);
}

/* Print the estimate of --dry-run. The operand OUT, the output folder, is optional with --dry-run.
 * If the file system of OUT has too little free space, print the estimate and then return an error,
 * unless --force is given. */
static int estimate(sgt_error *err)
{
    sgt_dry_run_result r;
    if (t.rank) return SGT_OK;
    if (!t.input_count || !can_be_out(t.out)) {
        t.input_count++;
        t.out = NULL;
    }
    int rc = sgt_dry_run(&t, &r, err);
    if (rc == SGT_OK && o.json) rc = print_estimate_json(&r, err);
    if (rc < 0) return rc;
    if (!o.json && !o.quiet) print_estimate(&r);
    return t.force ? SGT_OK : sgt_space_lacks(t.out, &r, err);
}

/* ---- --train-vocab ---- */

static void show_pieces(void *ctx, uint64_t done, uint64_t total, uint64_t pieces)
{
    (void)pieces;
    sgt_progress_update(ctx, done, total, 0, "counting");
}

/* Implement --train-vocab: train a vocabulary on the inputs, write its files to the folder OUT, and
 * print the result. If there are several ranks (processes), return SGT_EUSAGE, because each of them
 * would train the same vocabulary. */
static int make_vocab(sgt_error *err)
{
    sgt_tokenize_result result = {.size = sizeof result};
    sgt_vocab *v = NULL;
    sgt_out out;
    const sgt_out_request r = {
        .path = t.out, .force = SGT_OUT_BESIDE, .notice = &t.notice, .stop = t.stop};
    char what[120], pieces[80];
    if (t.ranks > 1)
        return sgt_fail(
            err, SGT_EUSAGE,
            "--train-vocab runs in one process with many threads (start it without a launcher)");
    sgt_progress *bar = sgt_progress_new("B", o.quiet);
    t.notice = sgt_progress_notice(bar, program.name);
    t.progress = show_pieces;
    t.progress_ctx = bar;
    int rc = sgt_out_claim(&out, &r, err);
    if (!rc) {
        rc = sgt_vocab_train(&v, &t, (uint32_t)o.train_vocab, &result, err);
        if (!rc) rc = sgt_vocab_save(v, t.out, err);
        sgt_out_release(&out, out.had_work);
    }
    sgt_vocab_free(v);
    sgt_progress_end(bar);
    if (rc < 0) return rc;
    if (result.tokens < o.train_vocab && !o.quiet)
        fprintf(stderr,
                "%s: no pair of tokens is left to merge: the vocabulary has %u tokens, not %u\n",
                program.name, (uint32_t)result.tokens, (uint32_t)o.train_vocab);
    json_t *j = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "tokens",
                          number(result.tokens), "pieces", number(result.pieces), "distinct_pieces",
                          number(result.distinct), "documents", number(result.documents), "bytes",
                          number(result.bytes), "files", number(result.files), "invalid_utf8",
                          number(result.invalid_utf8), "bad_lines", number(result.bad_lines),
                          "skipped", number(result.skipped), "seconds", result.seconds, "mb_per_s",
                          mb_per_s(result.bytes, result.seconds));
    snprintf(what, sizeof what, "%u tokens from %s", (uint32_t)result.tokens,
             sgt_format_things(pieces, sizeof pieces, result.pieces, "piece", "pieces"));
    return o.json ? sgt_print_json(j, JSON_REAL_PRECISION(6), err)
                  : sgt_print_result(0, o.quiet, t.out, what, j, err);
}

/* ---- ranks ---- */

static void check_ranks(void)
{
    if (o.rank_given && !o.ranks_given)
        sgt_usage(&program, "--rank: needs --ranks N, the number of processes");
    if (!o.ranks_given) return;
    /* With --ranks, every process prints its own errors, even if a launcher such as mpirun has
     * started it. */
    program.rank = NULL;
    if (!o.rank_given) sgt_usage(&program, "--ranks: needs --rank I, the number of this process");
}

/* ---- --train-vocab ---- */

static void check_train_vocab(void)
{
    const char *other = t.vocab                ? "--vocab"
                        : t.val_fraction > 0   ? "--split"
                        : o.shard_tokens_given ? "--shard-tokens"
                        : t.shuffle            ? "--shuffle"
                        : t.dedup              ? "--dedup"
                        : t.keep_fields        ? "--keep-fields"
                        : t.layout             ? "--shards"
                                               : NULL;
    if (o.train_vocab && o.ranks_given) other = "--ranks";
    if (o.train_vocab && o.dry_run) other = "--dry-run";
    if (o.train_vocab && other)
        sgt_usage(&program,
                  "--train-vocab makes a vocabulary, not shards: it cannot be combined with %s",
                  other);
}

/* ---- the command ---- */

static int tokenize(sgt_error *err)
{
    sgt_tokenize_result r = {.size = sizeof r};
    meter m = {.bar = sgt_progress_new("B", o.quiet)};
    if (!o.quiet) t.notice = sgt_progress_notice(m.bar, program.name);
    t.progress_ctx = &m;
    int rc = sgt_tokenize(&t, &r, err);
    if (!rc && r.waiting && !t.joined)
        sgt_say(&t.notice,
                "%s: part %u of %u is complete; parts still missing: %u (the process that finishes "
                "the last part completes OUT)",
                t.out, t.rank + 1, t.ranks, r.waiting);
    sgt_progress_end(m.bar);
    if (rc == SGT_ESTOPPED) return sgt_fail(err, rc, "stopped (run the same command to continue)");
    /* If the ranks (processes) are connected, only rank 0 prints results, because they are sums
     * over all ranks. */
    if (rc < 0 || (t.joined && t.rank)) return rc;
    if (!r.waiting && o.json) return print_json(&r, err);
    if (!r.waiting && !o.quiet) print_summary(t.out, &r);
    return SGT_OK;
}

/* Call `work`, and return the program's exit code. If a launcher such as mpirun has started several
 * ranks (processes), connect them first. In that case, only rank 0 prints results, but every rank
 * prints notices about the inputs that it skips. */
static int run(int (*work)(sgt_error *err))
{
    sgt_error err;
    sgt_ranks all = {.rank = (uint32_t)o.rank, .size = (uint32_t)o.ranks};
    int rc = SGT_OK;
    t.notice = sgt_talk_notice(program.name, o.quiet);
    if (!o.ranks_given) rc = sgt_ranks_open(&t.joined, program.name, &t.notice, o.dry_run, &err);
    if (t.joined) all = *t.joined;
    t.rank = all.rank;
    t.ranks = all.size;
    if (t.joined && t.rank) o.quiet = 1; /* except for notices */
    t.threads = sgt_threads(o.threads, t.joined ? all.sharing : 1);
    if (rc >= 0) rc = work(&err);
    if (rc < 0 && !t.joined) return sgt_report_failure(&program, &err);
    return sgt_ranks_close(t.joined, &program, rc, &err);
}

int main(int argc, char **argv)
{
    t.stop = sgt_catch_signals();
    int first = sgt_options_parse(&program, argc, argv), count = argc - first;
    if (count == 1 && !o.dry_run)
        sgt_usage(&program, "expected INPUT... and OUT, got only %s (OUT comes last)", argv[first]);
    if (!o.dry_run && strcmp(argv[argc - 1], "-") == 0)
        sgt_usage(&program, "OUT must be a folder, not - (./- names a folder called -)");
    sgt_take_cpu(&program, o.cpu);
    check_ranks();
    check_train_vocab();
    /* Without --shard-tokens, pass 0. In that case, the library uses its default number of tokens
     * per shard or, for the formats of other trainers, writes one file per split. */
    if (!o.shard_tokens_given) t.shard_tokens = 0;
    t.inputs = (const char *const *)(argv + first);
    t.input_count = (size_t)(count - 1);
    t.out = argv[argc - 1];
    t.normalize = (sgt_normalize)(o.normalize + 1);
    t.filters = o.filters.items;
    t.filter_count = o.filters.count;
    t.progress = show_progress;
    return run(o.dry_run ? estimate : o.train_vocab ? make_vocab : tokenize);
}
