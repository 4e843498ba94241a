/* tokenize.c: sgt-bench tokenize: measures how fast text that is already in memory is encoded, from
 * empty caches. Reading files is not measured and no byte is encoded twice in a turn. With --disk,
 * it measures whole commands instead. Rows take turns: sgt, the same text split in another way, and
 * other tokenizers (tests/peers/bpe.py). */
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
#include "tools/bench/script.h"
#include "tools/cli/options.h"
#include "tools/cli/talk.h"

BENCH_EMBED(sgt_bpe_py, "tests/peers/bpe.py");

enum { MOST_ROWS = 3, MOST_TURNS = 100, LIMIT_TURNS = 3 };

static struct {
    const char *cpu, *peer, *disk, *vocab, *pattern;
    uint64_t threads, turns;
    bench_output output;
} o = {.cpu = "auto", .turns = 3};

static const sgt_option table[] = {
    {.name = "Options"},
    {"threads", 0, SGT_OPT_COUNT, &o.threads, "N", "threads that encode",
     .def = "all available cores", .min = 1, .max = 1024},
    {"cpu", 0, SGT_OPT_TEXT, &o.cpu, "auto|plain|avx2|avx512|amx",
     "highest CPU instruction level to use", .def = "auto"},
    {"peer", 0, SGT_OPT_TEXT, &o.peer, "PYTHON",
     .help =
         "compare with gigatoken and tiktoken (Parquet: with datasets and tiktoken), run by this "
         "interpreter in alternating turns"},
    {"turns", 0, SGT_OPT_COUNT, &o.turns, "N", "turns of each row, where there are several",
     .def = "3", .min = 1, .max = MOST_TURNS},
    {"vocab", 0, SGT_OPT_TEXT, &o.vocab, "gpt2|FILE|DIR", "vocabulary, as sgt-tokenize takes it",
     .def = "gpt2, built in"},
    {"pattern", 0, SGT_OPT_TEXT, &o.pattern, "REGEX|NAME",
     "pattern, likewise; one with a name is compared with PCRE2 and with GPT-2's",
     .def = "the vocabulary's"},
    {"disk", 0, SGT_OPT_TEXT, &o.disk, "FOLDER",
     .help = "measure whole commands instead, from files to 16-bit ids on disk; the output goes "
             "below FOLDER"},
    BENCH_OUTPUT(o.output),
    {0}};

static const sgt_program program = {
    .name = "sgt-bench tokenize",
    .usage = "sgt-bench tokenize [OPTION]... INPUT...",
    .about = "Measures how fast text becomes tokens: reads the inputs (files, folders, - for "
             "standard input) into memory\n"
             "first, then encodes each byte once from empty caches. Or, with --disk, how long the "
             "whole command takes.",
    .options = table,
    .examples = "  sgt-bench tokenize corpus/\n"
                "  sgt-bench tokenize --threads 1 --json corpus/\n"
                "  sgt-bench tokenize --threads 1 --peer python3 corpus/\n"
                "  sgt-bench tokenize --threads 1 --pattern llama3 corpus/\n"
                "  sgt-bench tokenize --disk /tmp --peer python3 corpus/\n"
                "  sgt-bench tokenize --disk /tmp --peer python3 fineweb/*.parquet"};

typedef struct piece {
    const char *text;
    size_t n;
} piece;

/* The inputs in memory, cut into pieces. */
typedef struct text {
    char **files; /* (file_count) */
    size_t file_count;
    piece *pieces;
    size_t count, room, longest; /* longest: bytes of the longest piece */
    uint64_t bytes;
} text;

/* A row of the table. */
typedef struct row {
    char name[64];            /* "sgt", "gigatoken 0.10.0" */
    sgt_vocab *vocab;         /* ours: the vocabulary to encode with */
    const char *peer;         /* the tokenizer's name in bpe.py; NULL: ours */
    int best_counts;          /* 1: the best turn counts, not the median */
    int left_out;             /* 1: the interpreter lacks this tokenizer */
    uint64_t tokens;          /* in one turn */
    double cpu_seconds;       /* ours: CPU time of all threads, in the last turn */
    double turns[MOST_TURNS]; /* seconds of each turn */
    double seconds;           /* of the turn that counts */
} row;

typedef struct text_bench {
    sgt_corpus *corpus;
    const bench_call *call;
    text text;
    uint64_t bytes;      /* of all inputs */
    row rows[MOST_ROWS]; /* ours; then two other ways to split, or two peers */
    size_t row_count;
    char *work, *out; /* --disk: a temporary folder, and a name in it */
    double limit_s;   /* seconds that reading the text from memory takes */
    int threads;
    /* what the threads of a turn share */
    size_t next;            /* atomic: the piece that the next free thread takes */
    uint64_t tokens, sum;   /* atomic */
    sgt_encoder **encoders; /* (threads) */
    uint16_t **ids;         /* (threads, longest) */
} text_bench;

/* ---- the text ---- */

/* bytes of a piece: texts are cut to this size where possible, as sgt-tokenize cuts documents */
#define PIECE_BYTES ((size_t)256 << 10)
/* most bytes of a file; a larger one does not fit into memory */
#define MOST_BYTES ((size_t)1 << 40)

static int read_stream(char **out, size_t *n, sgt_error *err)
{
    static const char name[] = "standard input";
    size_t room = 0, got = 1;
    char *p = NULL;
    int rc = SGT_OK;
    for (*n = 0; got && rc == SGT_OK; *n += got) {
        rc = sgt_reserve(&p, &room, *n + PIECE_BYTES, 1, name, err);
        got = rc == SGT_OK ? fread(p + *n, 1, room - *n, stdin) : 0;
    }
    if (rc == SGT_OK && ferror(stdin)) rc = sgt_fail_errno(err, "%s", name);
    if (rc < 0) free(p);
    else *out = p;
    return rc;
}

static int add_piece(text *t, const char *p, size_t n, sgt_error *err)
{
    int rc = sgt_reserve(&t->pieces, &t->room, t->count + 1, sizeof *t->pieces, "the text", err);
    if (rc < 0) return rc;
    t->pieces[t->count++] = (piece){p, n};
    if (n > t->longest) t->longest = n;
    return SGT_OK;
}

/* Cut a file's text into pieces, only where that does not change its tokens. If there is no such
 * place within PIECE_BYTES, try twice as many. */
static int add_pieces(text *t, const sgt_vocab *vocab, const char *p, size_t n, sgt_error *err)
{
    size_t want = PIECE_BYTES;
    while (n) {
        size_t at =
            n <= want ? n
                      : sgt_rule_cut(sgt_vocab_known_rule(vocab), p, want, sgt_vocab_joins(vocab));
        if (!at) {
            want *= 2;
            continue;
        }
        int rc = add_piece(t, p, at, err);
        if (rc < 0) return rc;
        p += at;
        n -= at;
        want = PIECE_BYTES;
    }
    return SGT_OK;
}

/* Return a failure if the inputs have no bytes. */
static int check_bytes(const text_bench *b, sgt_error *err)
{
    if (b->bytes) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT, "%s: no text in it: nothing to measure",
                    b->corpus->files[0].path);
}

/* Read all files of the corpus, and standard input for "-", and cut them for our vocabulary. */
static int read_text(text_bench *b, sgt_error *err)
{
    text *t = &b->text;
    t->file_count = b->corpus->count;
    t->files = calloc(t->file_count + 1, sizeof *t->files);
    if (!t->files) return sgt_fail_memory(err, NULL);
    for (size_t i = 0; i < t->file_count; i++) {
        const sgt_corpus_file *f = &b->corpus->files[i];
        size_t n;
        if (sgt_stopped(b->call->stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
        int rc = f->stream ? read_stream(&t->files[i], &n, err)
                           : sgt_file_get(&t->files[i], &n, f->path, MOST_BYTES, err);
        if (rc < 0 || (rc = add_pieces(t, b->rows[0].vocab, t->files[i], n, err)) < 0) return rc;
        b->bytes += n;
    }
    return check_bytes(b, err);
}

static void free_text(text *t)
{
    for (size_t i = 0; t->files && i < t->file_count; i++) free(t->files[i]);
    free(t->files);
    free(t->pieces);
}

/* ---- in memory ---- */

static int allocate_ids(text_bench *b, sgt_error *err)
{
    b->encoders = calloc((size_t)b->threads, sizeof *b->encoders);
    b->ids = calloc((size_t)b->threads, sizeof *b->ids);
    if (!b->encoders || !b->ids) return sgt_fail_memory(err, NULL);
    for (int t = 0; t < b->threads; t++) {
        size_t bytes = b->text.longest * sizeof **b->ids;
        if (!(b->ids[t] = malloc(bytes))) return sgt_fail_memory(err, NULL);
        memset(b->ids[t], 0, bytes); /* prefault the pages before the clock runs */
    }
    return SGT_OK;
}

static void free_encoders(text_bench *b)
{
    for (int t = 0; b->encoders && t < b->threads; t++) {
        sgt_encoder_free(b->encoders[t]);
        b->encoders[t] = NULL;
    }
}

/* Return the next piece that no thread has taken; NULL if none is left. */
static const piece *claim_piece(text_bench *b)
{
    size_t i = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);
    return i < b->text.count ? &b->text.pieces[i] : NULL;
}

/* Encode pieces until none is left: the only unit of work of a thread. */
static int encode_pieces(void *ctx, int thread, uint64_t k, sgt_error *err)
{
    text_bench *b = ctx;
    uint64_t tokens = 0;
    (void)k;
    (void)err;
    for (const piece *p; (p = claim_piece(b));)
        tokens += sgt_encode(b->encoders[thread], p->text, p->n, b->ids[thread]);
    __atomic_fetch_add(&b->tokens, tokens, __ATOMIC_RELAXED);
    return SGT_OK;
}

/* Read pieces and discard them, which measures the limit that memory sets. The sum keeps the
 * compiler from removing the loop. */
static int read_pieces(void *ctx, int thread, uint64_t k, sgt_error *err)
{
    text_bench *b = ctx;
    uint64_t sum = 0, word;
    (void)thread;
    (void)k;
    (void)err;
    for (const piece *p; (p = claim_piece(b));)
        for (size_t at = 0; at + sizeof word <= p->n; at += sizeof word) {
            memcpy(&word, p->text + at, sizeof word);
            sum += word;
        }
    __atomic_fetch_add(&b->sum, sum, __ATOMIC_RELAXED);
    return SGT_OK;
}

static int run_pieces(text_bench *b, bench_work *work, double *seconds, sgt_error *err)
{
    bench_slice s = {.most = 1, .seconds = 1e9, .threads = b->threads};
    uint64_t units;
    b->next = 0;
    return bench_run(&s, work, b, &units, seconds, err);
}

/* Encode the text with new encoders, whose caches are empty. */
static int encode_text(text_bench *b, row *r, double *seconds, sgt_error *err)
{
    int rc = SGT_OK;
    free_encoders(b);
    for (int t = 0; t < b->threads && rc == SGT_OK; t++)
        rc = sgt_encoder_new(&b->encoders[t], r->vocab, err);
    if (rc < 0) return rc;
    b->tokens = 0;
    const clock_t cpu = clock();
    rc = run_pieces(b, encode_pieces, seconds, err);
    r->cpu_seconds = (double)(clock() - cpu) / CLOCKS_PER_SEC;
    r->tokens = b->tokens;
    return rc;
}

static int measure_limit(text_bench *b, sgt_error *err)
{
    double seconds[LIMIT_TURNS];
    int rc = SGT_OK;
    for (int i = 0; i < LIMIT_TURNS && rc == SGT_OK; i++)
        rc = run_pieces(b, read_pieces, &seconds[i], err);
    if (rc == SGT_OK) b->limit_s = bench_median(seconds, LIMIT_TURNS);
    return rc;
}

/* ---- commands ---- */

/* Run a command on as many cores as we use, and read the JSON line that it prints. *seconds is the
 * time of the whole process. The caller frees *answer. */
static int run_command(const text_bench *b, bench_script command, json_t **answer, char *said,
                       double *seconds, sgt_error *err)
{
    command.threads = b->threads;
    command.stop = b->call->stop;
    double from = sgt_now();
    int rc = bench_script_run(&command, said, err);
    *seconds = sgt_now() - from;
    *answer = rc == SGT_OK ? json_loads(said, 0, NULL) : NULL;
    return rc;
}

/* Run the program sgt-tokenize of this program's folder from the inputs to b->out. */
static int run_ours(const text_bench *b, row *r, double *seconds, char *said, sgt_error *err)
{
    char *program_path = sgt_beside_program(1, "sgt-tokenize"), count[16];
    const char *options[] = {"--json", "--quiet", "--threads", count, "--cpu", o.cpu};
    size_t n = sizeof options / sizeof *options, inputs = b->call->count;
    const char **args = calloc(n + inputs + 2, sizeof *args);
    json_t *answer = NULL;
    int rc = program_path && args ? SGT_OK : sgt_fail_memory(err, NULL);
    if (rc == SGT_OK) {
        snprintf(count, sizeof count, "%d", b->threads);
        memcpy(args, options, sizeof options);
        memcpy(args + n, b->call->operands, inputs * sizeof *args);
        args[n + inputs] = b->out;
        bench_script command = {.python = program_path, .name = "nothing", .args = args};
        rc = run_command(b, command, &answer, said, seconds, err);
        r->tokens = (uint64_t)json_integer_value(json_object_get(answer, "tokens"));
    }
    json_decref(answer);
    free(program_path);
    free(args);
    return rc;
}

/* Return a memory file with the paths of the corpus, with a NUL after each: there may be more than
 * a command line holds. */
static int list_files(const sgt_corpus *c, sgt_error *err)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < c->count; i++) n += strlen(c->files[i].path) + 1;
    char *all = malloc(n + 1);
    if (!all) return sgt_fail_memory(err, NULL);
    for (size_t i = 0; i < c->count; i++)
        at = (size_t)(stpcpy(all + at, c->files[i].path) - all) + 1;
    int fd = bench_memory_file("inputs", all, n, err);
    free(all);
    return fd;
}

/* Run bpe.py, which is embedded in the program, on every file of the corpus. In memory, the texts
 * are read before its clock starts; with --disk, the whole process is timed. If it fails, returns
 * SGT_EUNSUPPORTED with its last line of output. */
static int run_peer(const text_bench *b, row *r, double *seconds, char *said, sgt_error *err)
{
    char files[32], count[16];
    double whole;
    json_t *answer;
    int fd = list_files(b->corpus, err);
    if (fd < 0) return fd;
    snprintf(files, sizeof files, "@/proc/self/fd/%d", fd);
    snprintf(count, sizeof count, "%d", b->threads);
    const char *memory[] = {r->peer, "memory", files, "--threads", count, NULL};
    const char *disk[] = {r->peer, "disk", files, b->out, "--threads", count, NULL};
    bench_script command = {
        .python = o.peer, .name = "bpe.py", .text = sgt_bpe_py, .args = o.disk ? disk : memory};
    int rc = run_command(b, command, &answer, said, &whole, err);
    close(fd);
    const char *name = json_string_value(json_object_get(answer, "peer"));
    *seconds = json_number_value(json_object_get(answer, "seconds"));
    r->tokens = (uint64_t)json_integer_value(json_object_get(answer, "tokens"));
    if (name) snprintf(r->name, sizeof r->name, "%s", name);
    json_decref(answer);
    if (rc == SGT_OK && !(*seconds > 0))
        return sgt_fail(err, SGT_EUNSUPPORTED, "--peer %s: %s: no seconds in what it said: %.*s",
                        o.peer, r->peer, (int)strcspn(said, "\n"), said);
    if (o.disk) *seconds = whole;
    return rc;
}

/* ---- turns ---- */

static int run_turn(text_bench *b, row *r, double *seconds, sgt_error *err)
{
    sgt_error why;
    if (!o.disk && !r->peer) return encode_text(b, r, seconds, err);
    char *said = malloc(BENCH_SAID);
    if (!said) return sgt_fail_memory(err, NULL);
    int rc = (r->peer ? run_peer : run_ours)(b, r, seconds, said, err);
    if (b->out) sgt_remove_tree(b->out, &why);
    free(said);
    return rc;
}

/* Run turns that alternate between the rows. A peer that the interpreter lacks is left out with a
 * notice. */
static int run_turns(text_bench *b, sgt_error *err)
{
    int turns = b->row_count > 1 || o.disk ? (int)o.turns : 1, rc = SGT_OK;
    /* read the files into the page cache for all programs */
    if (o.disk) rc = run_turn(b, &b->rows[0], &b->rows[0].seconds, err);
    for (int i = 0; i < turns; i++)
        for (row *r = b->rows; r < b->rows + b->row_count && rc == SGT_OK; r++) {
            if (r->left_out) continue;
            rc = run_turn(b, r, &r->turns[i], err);
            if (rc != SGT_EUNSUPPORTED || !r->peer) continue;
            sgt_say(&b->call->notice, "%s is left out: %s", r->peer, err->text);
            r->left_out = 1;
            rc = SGT_OK;
        }
    for (row *r = b->rows; r < b->rows + b->row_count; r++) {
        double median = bench_median(r->turns, (size_t)turns); /* sorts the turns */
        r->seconds = r->best_counts && !o.disk ? r->turns[0] : median;
    }
    return rc;
}

/* ---- what is measured ---- */

static row *add_row(text_bench *b, const char *name)
{
    row *r = &b->rows[b->row_count++];
    snprintf(r->name, sizeof r->name, "%s", name);
    return r;
}

/* Load our vocabulary. If its pattern is one that our own code splits by, the text is split by
 * PCRE2 too, and also by GPT-2's pattern. A pattern in brackets is not among the known ones, so
 * PCRE2 splits by it. */
static int add_ours(text_bench *b, sgt_error *err)
{
    const char *path = o.vocab ? o.vocab : "gpt2";
    row *ours = add_row(b, "sgt");
    int rc = sgt_vocab_load(&ours->vocab, path, o.pattern, err);
    if (rc < 0 || !sgt_vocab_known_rule(ours->vocab)) return rc;
    const char *rule = sgt_vocab_rule(ours->vocab);
    const size_t room = strlen(rule) + sizeof "(?:)";
    char *bracketed = malloc(room);
    if (!bracketed) return sgt_fail_memory(err, NULL);
    snprintf(bracketed, room, "(?:%s)", rule);
    rc = sgt_vocab_load(&add_row(b, "the same by PCRE2")->vocab, path, bracketed, err);
    free(bracketed);
    if (rc < 0) return rc;
    return sgt_vocab_load(&add_row(b, "by GPT-2's pattern")->vocab, path, "gpt2", err);
}

/* Choose the peers by the corpus: another program reads Parquet than text. */
static int add_peers(text_bench *b, sgt_error *err)
{
    const sgt_corpus *c = b->corpus;
    if (c->row_files && !o.disk)
        return sgt_fail(err, SGT_EUSAGE,
                        "Parquet files are measured as whole commands only (add --disk FOLDER)");
    if (!o.peer) return SGT_OK;
    if (c->row_files && c->row_files < c->count)
        return sgt_fail(err, SGT_EUSAGE,
                        "--peer: no peer reads Parquet and other files (measure them apart)");
    const char *peers[] = {c->row_files ? "datasets" : "gigatoken", "tiktoken"};
    for (int i = 0; i < (c->row_files ? 1 : 2); i++) {
        row *r = add_row(b, peers[i]);
        r->peer = peers[i];
        r->best_counts = strcmp(peers[i], "gigatoken") == 0;
    }
    return SGT_OK;
}

static int make_work(text_bench *b, sgt_error *err)
{
    b->bytes = b->corpus->bytes;
    int rc = check_bytes(b, err);
    if (rc < 0) return rc;
    char *work = sgt_join(o.disk, "sgt-bench.XXXXXX");
    if (!work) return sgt_fail_memory(err, NULL);
    if (!mkdtemp(work)) {
        rc = sgt_fail_errno(err, "--disk %s: no folder can be made there", o.disk);
        free(work);
        return rc;
    }
    b->work = work;
    return (b->out = sgt_join(work, "ids")) ? SGT_OK : sgt_fail_memory(err, NULL);
}

/* List the inputs and load the vocabularies. */
static int prepare(text_bench *b, const bench_call *call, sgt_error *err)
{
    const char *whole = o.peer ? "--peer" : o.disk ? "--disk" : NULL;
    const sgt_tokenize_options inputs = {.inputs = (const char *const *)call->operands,
                                         .input_count = call->count,
                                         .binary = SGT_BINARY_KEEP,
                                         .notice = call->notice,
                                         .stop = call->stop};
    int rc;
    if ((o.vocab || o.pattern) && whole)
        return sgt_fail(err, SGT_EUSAGE, "%s: measured with GPT-2's vocabulary (not with %s)",
                        whole, o.vocab ? "--vocab" : "--pattern");
    if ((rc = add_ours(b, err)) < 0 || (rc = sgt_corpus_list(&b->corpus, &inputs, err)) < 0 ||
        (rc = add_peers(b, err)) < 0)
        return rc;
    if (whole && b->corpus->stream)
        return sgt_fail(err, SGT_EUSAGE, "%s: standard input can be read once only (name a file)",
                        whole);
    return SGT_OK;
}

static int measure(void *bench, const bench_call *call, sgt_error *err)
{
    text_bench *b = bench;
    if (!call->count)
        return sgt_fail(err, SGT_EUSAGE,
                        "expected INPUT...: files or folders of text, or - for standard input");
    sgt_take_cpu(&program, o.cpu);
    b->threads = o.threads ? (int)o.threads : sgt_cpu_count();
    b->call = call;
    int rc = prepare(b, call, err);
    if (rc == SGT_OK) rc = o.disk ? make_work(b, err) : read_text(b, err);
    if (rc == SGT_OK && !o.disk) rc = allocate_ids(b, err);
    if (rc == SGT_OK) rc = run_turns(b, err);
    return rc == SGT_OK && !o.disk ? measure_limit(b, err) : rc;
}

static void release(void *bench)
{
    text_bench *b = bench;
    sgt_error why;
    if (b->work) sgt_remove_tree(b->work, &why);
    free(b->work);
    free(b->out);
    free_encoders(b);
    for (int t = 0; b->ids && t < b->threads; t++) free(b->ids[t]);
    free(b->encoders);
    free(b->ids);
    free_text(&b->text);
    sgt_corpus_free(b->corpus);
    for (size_t i = 0; i < b->row_count; i++) sgt_vocab_free(b->rows[i].vocab);
}

/* ---- results ---- */

static double mb_per_s(const text_bench *b, const row *r)
{
    return (double)b->bytes / r->seconds * 1e-6;
}

/* Add an array of the rows behind ours, whose names are in the field `name`. */
static void add_rows(json_t *top, const text_bench *b, const char *array, const char *name)
{
    json_t *all = json_array();
    for (const row *r = b->rows + 1; r < b->rows + b->row_count; r++)
        if (!r->left_out)
            json_array_append_new(all, json_pack("{s:s, s:I, s:f, s:f, s:f}", name, r->name,
                                                 "tokens", (json_int_t)r->tokens, "seconds",
                                                 r->seconds, "mb_per_s", mb_per_s(b, r), "ratio",
                                                 r->seconds / b->rows[0].seconds));
    json_object_set_new(top, array, all);
}

static json_t *to_json(void *bench)
{
    const text_bench *b = bench;
    const row *ours = &b->rows[0];
    json_t *top = json_pack("{s:s, s:s, s:i, s:i, s:I, s:I, s:I, s:f, s:f}", "cpu", sgt_cpu_model(),
                            "level", sgt_cpu_name(), "cores", sgt_cpu_count(), "threads",
                            b->threads, "files", (json_int_t)b->corpus->count, "bytes",
                            (json_int_t)b->bytes, "tokens", (json_int_t)ours->tokens, "seconds",
                            ours->seconds, "mb_per_s", mb_per_s(b, ours));
    if (top && !o.disk) json_object_set_new(top, "cpu_seconds", json_real(ours->cpu_seconds));
    if (top && o.peer) add_rows(top, b, "peers", "peer");
    else if (top && b->row_count > 1) add_rows(top, b, "ways", "split");
    return top;
}

static void show_row(const text_bench *b, const row *r, double best)
{
    char count[32];
    printf("%c %-24.24s %7d  %15s  %11.3f  %9.3f  %9.1f  %10.2f\n", r->seconds <= best ? '*' : ' ',
           r->name, b->threads, sgt_format_count(count, sizeof count, r->tokens),
           (double)b->bytes / (double)r->tokens, r->seconds, mb_per_s(b, r),
           (double)r->tokens / r->seconds * 1e-6);
    if (r != b->rows) printf("  ours is %.2f times as fast\n", r->seconds / b->rows[0].seconds);
}

static void show(void *bench)
{
    const text_bench *b = bench;
    const row *ours = &b->rows[0], *end = b->rows + b->row_count;
    char bytes[32], files[32], machine[160];
    double best = ours->seconds;
    for (const row *r = ours; r < end; r++)
        if (!r->left_out && r->seconds < best) best = r->seconds;
    printf("%s\n%s in %s file%s, %s\n\n", bench_machine(machine, sizeof machine),
           sgt_format_bytes(bytes, sizeof bytes, b->bytes),
           sgt_format_count(files, sizeof files, b->corpus->count),
           b->corpus->count == 1 ? "" : "s", o.disk ? "from files to files" : "in memory");
    printf("                           threads           tokens  bytes/token    seconds       MB/s "
           "  Mtokens/s\n");
    for (const row *r = ours; r < end; r++)
        if (!r->left_out) show_row(b, r, best);
    printf("\n* the fastest.");
    if (!o.disk)
        printf(" Limit, reading the text from memory, and no more: %.0f MB/s; ours is %.2f %% of "
               "that.",
               (double)b->bytes / b->limit_s * 1e-6, 100 * b->limit_s / ours->seconds);
    printf("\n");
    if (b->row_count > 1 || o.disk)
        printf("  turns: %" PRIu64 "; medians%s\n", o.turns,
               o.disk || !o.peer ? "" : ", and the best turn of gigatoken");
}

static const bench_subcommand tokenize = {.program = &program,
                                          .output = &o.output,
                                          .size = sizeof(text_bench),
                                          .operands = 1,
                                          .measure = measure,
                                          .json = to_json,
                                          .show = show,
                                          .release = release};

static int bench_tokenize(int argc, char **argv)
{
    return bench_subcommand_run(&tokenize, argc, argv);
}

const sgt_command bench_tokenize_command = {"tokenize", "how fast text becomes tokens", &program,
                                            bench_tokenize};
