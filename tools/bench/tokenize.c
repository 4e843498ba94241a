/* tokenize.c: the subcommand `sgt-bench tokenize`, which measures how fast text is tokenized. The
 * text is read into memory first, which is not measured. Each measurement uses new encoders, whose
 * caches are empty. With --peer, the same text is tokenized a second time, with full caches. With
 * --disk, complete commands are measured instead. The rows of the table are measured alternately:
 * sgt, sgt with other split patterns, and other tokenizers (tests/peers/bpe.py). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "tokenize/input/corpus.h"
#include "tokenize/sgt_tokenize.h"
#include "tokenize/vocab/vocab.h"
#include "tools/bench/bench.h"
#include "tools/cli/options.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"

BENCH_EMBED(sgt_bpe_py, "tests/peers/bpe.py");

static struct {
    const char *cpu, *peer, *disk, *vocab, *pattern;
    uint64_t threads, turns;
} o = {.cpu = "auto", .vocab = "gpt2"};

static const sgt_option table[] = {
    {.name = "Options"},
    {"threads", .as = BENCH_ROW(THREADS), .to = &o.threads, .help = "number of encoder threads"},
    {"cpu", .as = BENCH_ROW(CPU), .to = &o.cpu},
    {"peer", 0, SGT_OPT_TEXT, &o.peer, "PYTHON",
     .help = "also measure gigatoken, quicktok, riptoken and tiktoken (for Parquet: datasets and "
             "tiktoken) with this Python interpreter, alternating with sgt"},
    {"turns", 0, SGT_OPT_COUNT, &o.turns, "N", "measurements per row if there are several rows",
     .def = "3", .min = 1, .max = BENCH_TURNS},
    {"vocab", 0, SGT_OPT_TEXT, &o.vocab, "gpt2|FILE|DIR",
     "vocabulary in a format that sgt-tokenize reads", .def = "gpt2, built in"},
    {"pattern", 0, SGT_OPT_TEXT, &o.pattern, "REGEX|NAME",
     "split pattern; a built-in one other than GPT-2's is compared with GPT-2's and PCRE2",
     .def = "the vocabulary's"},
    {"disk", 0, SGT_OPT_TEXT, &o.disk, "FOLDER",
     .help = "measure complete sgt-tokenize runs that write to a temporary folder in FOLDER"},
    BENCH_OUTPUT,
    {0}};

static const sgt_program program = {
    .name = "sgt-bench tokenize",
    .usage = "sgt-bench tokenize [OPTION]... INPUT...",
    .about = "Measures how fast text is tokenized. The inputs (files, folders, or - for standard "
             "input) are first read into memory. Each measurement then encodes all inputs once, "
             "beginning with empty caches. --disk measures complete sgt-tokenize runs instead.",
    .options = table,
    .examples =
        "  sgt-bench tokenize corpus/\n"
        "  sgt-bench tokenize --threads 1 --json corpus/\n"
        "  sgt-bench tokenize --threads 1 --peer python3 corpus/\n"
        "  sgt-bench tokenize --threads 1 --pattern llama3 corpus/\n"
        "  sgt-bench tokenize --threads 1 --vocab o200k_base.tiktoken --peer python3 corpus/\n"
        "  sgt-bench tokenize --disk /tmp --peer python3 corpus/\n"
        "  sgt-bench tokenize --disk /tmp --peer python3 fineweb/*.parquet"};

typedef struct piece {
    const char *text;
    size_t n;
    /* buffer with the text of the file, in the first piece of the file, which owns it; NULL in the
     * other pieces */
    char *file;
} piece;

/* the encoder and the output buffer of one thread */
typedef struct coder {
    sgt_encoder *encoder;
    void *ids; /* buffer that is large enough for the token ids of the longest piece */
} coder;

static struct {
    sgt_corpus *corpus;
    uint64_t bytes;              /* total size of the inputs */
    piece *pieces;               /* the inputs in memory */
    size_t count, room, longest; /* longest: length in bytes of the longest piece */
    /* For each row of the table, the vocabulary of sgt's encoder; NULL if the row measures another
     * tokenizer. Row 0 is sgt's encoder. Up to two rows follow for sgt's encoder with other ways to
     * split text. The last rows are other tokenizers. */
    sgt_vocab *vocabs[BENCH_ROWS];
    /* for each row of the table, the name of the tokenizer in bpe.py; NULL if the row measures
     * sgt's encoder */
    const char *peers[BENCH_ROWS];
    /* Paths that are used only with --disk: a temporary folder (`work`), and the path in it to
     * which a command writes its output (`out`). */
    char work[SGT_PATH], out[SGT_PATH];
    int threads;
    coder *coders;   /* array with one element per thread */
    size_t next;     /* index of the next piece to tokenize; accessed atomically */
    uint64_t tokens; /* number of tokens of all threads together; accessed atomically */
} state;

/* ---- the text ---- */

/* Maximum size in bytes of the pieces into which text is cut. sgt-tokenize uses the same size. A
 * piece is longer only if a cut anywhere in this range would change the tokens. */
#define PIECE_BYTES ((size_t)256 << 10)
/* maximum size in bytes of an input: 1 TiB */
#define MOST_BYTES ((size_t)1 << 40)

/* Cut the n bytes of text at `file` into pieces, without changing the tokens: each piece ends at
 * the last safe cut that is found (sgt_rule_cut) within PIECE_BYTES bytes. If there is no safe cut,
 * double the number of bytes until there is one. `file` is freed later, together with state.pieces,
 * or by this function on an error. */
static int add_pieces(char *file, size_t n, sgt_error *err)
{
    const sgt_vocab *vocab = state.vocabs[0];
    for (size_t from = 0, at; from < n; from += at) {
        const char *p = file + from;
        size_t want = PIECE_BYTES, rest = n - from;
        for (at = 0; !at; want *= 2)
            at = rest > want ? sgt_rule_cut(&vocab->rule, p, want, vocab->joins) : rest;
        int rc = sgt_reserve(&state.pieces, &state.room, state.count + 1, sizeof *state.pieces,
                             "the text", err);
        if (rc < 0) {
            if (!from) free(file);
            return rc;
        }
        state.pieces[state.count++] = (piece){p, at, from ? NULL : file};
        if (at > state.longest) state.longest = at;
    }
    if (!n) free(file);
    state.bytes += n;
    return SGT_OK;
}

/* Return SGT_OK, or SGT_EFORMAT if all inputs are empty. */
static int check_bytes(sgt_error *err)
{
    if (state.bytes) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT, "%s: no text in it, so there is nothing to measure",
                    state.corpus->files[0].path);
}

/* Read all files of the corpus, or standard input for "-", and cut their text into pieces. */
static int read_text(sgt_error *err)
{
    for (size_t i = 0; i < state.corpus->count; i++) {
        const sgt_corpus_file *f = &state.corpus->files[i];
        char *file;
        size_t n;
        if (sgt_stopped(bench.stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        int rc = f->stream ? sgt_stream_get(&file, &n, stdin, "standard input", MOST_BYTES, err)
                           : sgt_file_get(&file, &n, f->path, MOST_BYTES, err);
        if (rc == SGT_OK) rc = add_pieces(file, n, err);
        if (rc < 0) return rc;
    }
    return check_bytes(err);
}

/* ---- in memory ---- */

static int allocate_ids(sgt_error *err)
{
    size_t bytes = state.longest * sgt_vocab_width(state.vocabs[0]);
    if (!(state.coders = calloc((size_t)state.threads, sizeof *state.coders)))
        return sgt_fail_memory(err, NULL);
    for (coder *c = state.coders; c < state.coders + state.threads; c++) {
        if (!(c->ids = malloc(bytes))) return sgt_fail_memory(err, NULL);
        memset(c->ids, 0, bytes); /* fault in the buffer's pages before the measurement starts */
    }
    return SGT_OK;
}

/* Take the next piece and tokenize it, until no piece is left. bench_run calls this function once
 * for each thread. The number k of the unit of work is not used. */
static int encode_pieces(void *ctx, int thread, uint64_t k, sgt_error *err)
{
    const coder *c = &state.coders[thread];
    const size_t room = state.longest * sgt_vocab_width(state.vocabs[0]);
    size_t tokens = 0, i, n = 0;
    int rc = SGT_OK;
    (void)ctx;
    (void)k;
    for (; !rc && (i = __atomic_fetch_add(&state.next, 1, __ATOMIC_RELAXED)) < state.count;
         tokens += n)
        rc = sgt_encode(c->encoder, state.pieces[i].text, state.pieces[i].n, c->ids, room, &n, err);
    __atomic_fetch_add(&state.tokens, tokens, __ATOMIC_RELAXED);
    return rc;
}

/* Tokenize the text with new encoders, whose caches are empty. With --peer, then tokenize the text
 * a second time with the same encoders, whose caches are full. Set *figures to the measured
 * values. */
static int encode_text(const sgt_vocab *vocab, json_t **figures, sgt_error *err)
{
    const bench_slice s = {.most = 1, .seconds = 1e9, .threads = state.threads};
    uint64_t units;
    double seconds, warm = 0;
    int rc = SGT_OK;
    for (coder *c = state.coders; c < state.coders + state.threads && rc == SGT_OK; c++) {
        sgt_encoder_free(c->encoder);
        c->encoder = NULL;
        rc = sgt_encoder_new(&c->encoder, vocab, err);
    }
    state.next = state.tokens = 0;
    const clock_t cpu = clock();
    if (rc == SGT_OK) rc = bench_run(&s, encode_pieces, NULL, &units, &seconds, err);
    if (rc == SGT_OK)
        *figures = json_pack("{s:I, s:f, s:f}", "tokens", (json_int_t)state.tokens, "seconds",
                             seconds, "cpu_seconds", (double)(clock() - cpu) / CLOCKS_PER_SEC);
    state.next = 0;
    if (rc == SGT_OK && o.peer) rc = bench_run(&s, encode_pieces, NULL, &units, &warm, err);
    if (rc == SGT_OK) bench_put(*figures, "warm_seconds", warm);
    return rc;
}

/* ---- commands ---- */

/* Run a command on as many CPU cores as sgt's encoder uses, and set *figures from the JSON object
 * that the command prints. The time is that of the complete process with --disk, otherwise the time
 * that the command reports. */
static int run_command(bench_script *command, json_t **figures, sgt_error *err)
{
    json_t *answer;
    command->needs = "seconds";
    command->threads = state.threads;
    double from = sgt_now();
    int rc = bench_script_run(command, &answer, err);
    if (rc < 0) return rc;
    double whole = sgt_now() - from;
    *figures =
        json_pack("{s:I, s:f}", "tokens", json_integer_value(json_object_get(answer, "tokens")),
                  "seconds", o.disk ? whole : bench_get(answer, "seconds"));
    const char *name = bench_get_text(answer, "peer");
    if (name) bench_put_text(*figures, "peer", name);
    bench_put(*figures, "warm_seconds", bench_get(answer, "warm_seconds"));
    json_decref(answer);
    return SGT_OK;
}

/* Run sgt-tokenize, from the folder that contains this program, on the inputs, with state.out as
 * the output folder. */
static int run_ours(json_t **figures, sgt_error *err)
{
    char *program_path = sgt_beside_program(1, "sgt-tokenize");
    size_t inputs = bench.operand_count;
    const char **args = calloc(inputs + 4, sizeof *args);
    bench_script command = {.python = program_path, .args = args};
    int rc = program_path && args ? SGT_OK : sgt_fail_memory(err, NULL);
    if (rc == SGT_OK) {
        memcpy(args, bench.operands, inputs * sizeof *args);
        args[inputs] = state.out;
        args[inputs + 1] = "--vocab";
        args[inputs + 2] = o.vocab;
        snprintf(command.words, sizeof command.words, "--json --quiet --threads %d --cpu %s",
                 state.threads, o.cpu);
        rc = run_command(&command, figures, err);
    }
    free(program_path);
    free(args);
    return rc;
}

/* Write the paths of the corpus's files, each followed by a NUL, to a file in memory, because they
 * can be too many for a command line. Return the file's descriptor or a negative SGT_E*. */
static int list_files(const sgt_corpus *c, sgt_error *err)
{
    int fd = bench_memory_file("inputs", "", 0, err);
    for (size_t i = 0; i < c->count && fd >= 0; i++)
        if (dprintf(fd, "%s%c", c->files[i].path, 0) < 0) {
            close(fd);
            fd = sgt_fail_memory(err, "the list of inputs");
        }
    return fd;
}

/* Run the embedded script bpe.py with the tokenizer `peer` on all files of the corpus. Without
 * --disk, the script reads the text into memory before it starts its clock. With --disk, the
 * complete process is timed. The script gets the split pattern as an argument, because a .tiktoken
 * file does not contain one. */
static int run_peer(const char *peer, json_t **figures, sgt_error *err)
{
    const sgt_vocab *v = state.vocabs[0];
    char files[32];
    int fd = list_files(state.corpus, err);
    if (fd < 0) return fd;
    snprintf(files, sizeof files, "@/proc/self/fd/%d", fd);
    const char *where = o.disk ? "disk" : "memory", *out = o.disk ? state.out : "/dev/null",
               *args[] = {peer,         where,     files,   out, "--pattern",
                          v->rule.text, "--vocab", o.vocab, NULL};
    bench_script command = {.python = o.peer, .text = sgt_bpe_py, .args = args};
    snprintf(command.words, sizeof command.words, "--threads %d --eot %u --name %s", state.threads,
             v->eot, v->rule.name ? v->rule.name : "none");
    int rc = run_command(&command, figures, err);
    close(fd);
    return rc;
}

/* ---- turns ---- */

static int measure_row(size_t i, json_t **figures, sgt_error *err)
{
    const char *peer = state.peers[i];
    sgt_error why;
    if (!o.disk && !peer) return encode_text(state.vocabs[i], figures, err);
    int rc = peer ? run_peer(peer, figures, err) : run_ours(figures, err);
    if (o.disk) sgt_remove_tree(state.out, &why);
    return peer ? bench_leave_out(&bench.rows[i], rc, peer, err) : rc;
}

static int run_turns(sgt_error *err)
{
    size_t turns = bench.count > 1 || o.disk ? (size_t)o.turns : 1;
    json_t *ignored = NULL;
    /* With --disk, first run sgt without recording the result, so that the files are in the page
     * cache for all programs. */
    int rc = o.disk ? measure_row(0, &ignored, err) : SGT_OK;
    json_decref(ignored);
    return rc == SGT_OK ? bench_take_turns(0, bench.count, turns, measure_row, err) : rc;
}

/* ---- what is measured ---- */

/* Add a row named `name` that measures sgt's encoder with the split pattern `pattern`. */
static int add_ours(const char *name, const char *pattern, sgt_error *err)
{
    size_t i = bench.count;
    bench_add(json_pack("{s:s}", "split", name));
    return sgt_vocab_load(&state.vocabs[i], o.vocab, pattern, err);
}

/* Add the rows that measure sgt's encoder. If neither --peer nor --disk is given, and sgt has its
 * own code for the split pattern of the vocabulary, other than GPT-2's, add two more rows for
 * comparison:
 * - the same pattern, executed by PCRE2. The pattern is put in parentheses for this, because sgt's
 *   own code recognizes a pattern only by its exact text.
 * - GPT-2's pattern */
static int add_all_ours(sgt_error *err)
{
    int rc = add_ours("sgt", o.pattern, err);
    if (rc < 0 || o.peer || o.disk || state.vocabs[0]->rule.by != SGT_RULE_OTHER) return rc;
    const char *rule = state.vocabs[0]->rule.text;
    const size_t room = strlen(rule) + sizeof "(?:)";
    char *bracketed = malloc(room);
    if (!bracketed) return sgt_fail_memory(err, NULL);
    snprintf(bracketed, room, "(?:%s)", rule);
    rc = add_ours("same pattern, by PCRE2", bracketed, err);
    free(bracketed);
    return rc == SGT_OK ? add_ours("GPT-2's pattern", "gpt2", err) : rc;
}

/* With --peer, add one row for each other program. The programs for Parquet files differ from those
 * for text files. */
static int add_peers(sgt_error *err)
{
    const sgt_corpus *c = state.corpus;
    if (c->row_files && !o.disk)
        return sgt_fail(err, SGT_EUSAGE,
                        "Parquet files need --disk FOLDER, which measures complete commands");
    if (!o.peer) return SGT_OK;
    if (c->row_files && c->row_files < c->count)
        return sgt_fail(err, SGT_EUSAGE,
                        "--peer: no peer reads both Parquet and other files (measure them apart)");
    static const char *const readers[] = {"datasets", NULL}, *const all[] = {"gigatoken",
                                                                             "quicktok", "riptoken",
                                                                             "tiktoken", NULL};
    for (const char *const *peer = c->row_files ? readers : all; *peer; peer++) {
        state.peers[bench.count] = *peer;
        bench_add(json_pack("{s:s}", "peer", *peer));
    }
    return SGT_OK;
}

static int make_work(sgt_error *err)
{
    state.bytes = state.corpus->bytes;
    int rc = check_bytes(err);
    if (rc < 0) return rc;
    if (!mkdtemp(sgt_path(state.work, o.disk, "sgt-bench.XXXXXX"))) {
        *state.work = 0;
        return sgt_fail_errno(err, "--disk %s: cannot create a folder there", o.disk);
    }
    sgt_path(state.out, state.work, "ids");
    return SGT_OK;
}

/* List the inputs and load the vocabularies. */
static int prepare(sgt_error *err)
{
    const char *whole = o.peer ? "--peer" : o.disk ? "--disk" : NULL;
    const sgt_tokenize_options inputs = {.inputs = (const char *const *)bench.operands,
                                         .input_count = bench.operand_count,
                                         .binary = SGT_BINARY_KEEP,
                                         .notice = bench.notice,
                                         .stop = bench.stop};
    int rc;
    if (o.pattern && whole)
        return sgt_fail(
            err, SGT_EUSAGE,
            "%s: cannot be combined with --pattern (it uses the vocabulary's own pattern)", whole);
    if ((rc = add_all_ours(err)) < 0 || (rc = sgt_corpus_list(&state.corpus, &inputs, err)) < 0 ||
        (rc = add_peers(err)) < 0)
        return rc;
    if (whole && state.corpus->stream)
        return sgt_fail(err, SGT_EUSAGE,
                        "%s: standard input can be read only once (name a file instead)", whole);
    return SGT_OK;
}

static int measure(sgt_error *err)
{
    sgt_take_cpu(&program, o.cpu);
    state.threads = sgt_threads(o.threads, 1);
    int rc = prepare(err);
    if (rc == SGT_OK) rc = o.disk ? make_work(err) : read_text(err);
    if (rc == SGT_OK && !o.disk) rc = allocate_ids(err);
    return rc == SGT_OK ? run_turns(err) : rc;
}

static void release(void)
{
    sgt_error why;
    if (*state.work) sgt_remove_tree(state.work, &why);
    for (coder *c = state.coders; c && c < state.coders + state.threads; c++) {
        sgt_encoder_free(c->encoder);
        free(c->ids);
    }
    free(state.coders);
    for (size_t i = 0; i < state.count; i++) free(state.pieces[i].file);
    free(state.pieces);
    sgt_corpus_free(state.corpus);
    for (size_t i = 0; i < bench.count; i++) sgt_vocab_free(state.vocabs[i]);
}

/* ---- results ---- */

static void to_json(json_t *top)
{
    json_t *ours = bench.rows[0].result;
    double seconds = bench_get(ours, "seconds");
    for (size_t i = 0; i < bench.count; i++) {
        json_t *r = bench.rows[i].result;
        double taken = bench_get(r, "seconds"), warm = bench_get(r, "warm_seconds");
        bench_put(r, "mb_per_s", (double)state.bytes / taken * 1e-6);
        bench_put(r, "warm_mb_per_s", warm > 0 ? (double)state.bytes / warm * 1e-6 : 0);
        bench_put(r, "bytes_per_token", (double)state.bytes / bench_get(r, "tokens"));
        bench_put(r, "tokens_per_s", bench_get(r, "tokens") / taken);
        if (i) bench_put(r, "ratio", taken / seconds);
        if (i) json_object_del(r, "cpu_seconds");
    }
    bench_put_all(top,
                  json_pack("{s:s, s:i, s:i, s:I, s:I}", "level", sgt_cpu_name(), "cores",
                            sgt_cpu_count(), "threads", state.threads, "files",
                            (json_int_t)state.corpus->count, "bytes", (json_int_t)state.bytes));
    json_object_update(top, ours);
    json_object_del(top, "split");
    if (o.peer || bench.count > 1)
        json_object_set_new(top, o.peer ? "peers" : "ways", bench_results(1, 0));
}

static void show(json_t *top)
{
    static const bench_column columns[] = {
        {"name", "", .kind = BENCH_TEXT},
        {.key = "tokens", .head = "tokens"},
        {"bytes_per_token", "bytes/token", .decimals = 3},
        {"seconds", "seconds", .decimals = 3},
        {"mb_per_s", "MB/s", .decimals = 1},
        {"warm_mb_per_s", "MB/s again", .decimals = 1},
        {"tokens_per_s", "Mtokens/s", .decimals = 2, .scale = 1e-6},
        {"ratio", "sgt is x times", .decimals = 2},
        {0}};
    char bytes[32], files[32], threads[32];
    json_t *rows = bench_results(0, 0), *row, *name;
    size_t i;
    (void)top;
    json_array_foreach(rows, i, row)
    {
        if (!(name = json_object_get(row, "peer"))) name = json_object_get(row, "split");
        json_object_set(row, "name", name);
    }
    printf(
        "%s in %s, %s, %s\n\n", sgt_format_bytes(bytes, sizeof bytes, state.bytes),
        sgt_format_things(files, sizeof files, state.corpus->count, "file", "files"),
        o.disk ? "from text files to shards" : "in memory",
        sgt_format_things(threads, sizeof threads, (uint64_t)state.threads, "thread", "threads"));
    bench_table(rows, columns, "mb_per_s");
    printf("\n* fastest.\n");
    if (bench.count > 1 || o.disk) printf("  turns (medians shown): %" PRIu64 "\n", o.turns);
    json_decref(rows);
}

const bench_subcommand bench_tokenize = {
    .command = {"tokenize", "how fast text is tokenized", &program, bench_run_subcommand},
    .measure = measure,
    .json = to_json,
    .show = show,
    .release = release};
