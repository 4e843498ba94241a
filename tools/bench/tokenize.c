/* tokenize.c: sgt-bench tokenize: measures how fast text that is already in memory is encoded, from
 * empty caches. Reading files is not measured and no byte is encoded twice in a turn. With --disk,
 * it measures whole commands instead. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "loader/base/file.h"
#include "tokenize/input/corpus.h"
#include "tokenize/sgt_tokenize.h"
#include "tools/bench/bench.h"
#include "tools/bench/subcommand.h"
#include "tools/bench/tokenize_peer.h"
#include "tools/bench/tokenize_text.h"
#include "tools/bench/tokenize_ways.h"
#include "tools/cli/options.h"
#include "tools/cli/talk.h"

#define LIMIT_TURNS 3

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
     .def = "3", .min = 1, .max = TOKENIZE_TURNS},
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

typedef struct text_bench {
    sgt_corpus *corpus;
    bench_text text;
    size_t next; /* atomic: the piece that the next free thread takes */
    uint64_t bytes, tokens, sum;
    double seconds;     /* the median of the turns */
    double cpu_seconds; /* CPU time of all threads, in the last turn */
    /* seconds of the limit: reading the text from memory; with --disk, writing as many ids to the
     * same disk */
    double limit_s;
    tokenize_turn turn;
    char *work, *out; /* --disk: a temporary folder, and a name in it */
    tokenize_peer peers[TOKENIZE_PEERS];
    tokenize_ways ways;
    sgt_vocab *vocab;
    sgt_encoder **encoders;
    uint16_t **ids;
    int threads;
} text_bench;

/* ---- measuring ---- */

static int prepare(text_bench *b, sgt_error *err)
{
    b->bytes = b->text.bytes;
    b->encoders = calloc((size_t)b->threads, sizeof *b->encoders);
    b->ids = calloc((size_t)b->threads, sizeof *b->ids);
    if (!b->encoders || !b->ids) return sgt_fail_memory(err, NULL);
    for (int t = 0; t < b->threads; t++) {
        if (!(b->ids[t] = malloc(b->text.longest * sizeof **b->ids)))
            return sgt_fail_memory(err, NULL);
        memset(b->ids[t], 0,
               b->text.longest * sizeof **b->ids); /* prefault the pages before the clock runs */
    }
    return SGT_OK;
}

/* Encode pieces until none is left: the only unit of work of a thread. */
static int encode_pieces(void *ctx, int thread, uint64_t k, sgt_error *err)
{
    text_bench *b = ctx;
    uint64_t tokens = 0;
    (void)k;
    (void)err;
    for (;;) {
        size_t i = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);
        if (i >= b->text.count) break;
        tokens += sgt_encode(b->encoders[thread], b->text.pieces[i].text, b->text.pieces[i].n,
                             b->ids[thread]);
    }
    __atomic_fetch_add(&b->tokens, tokens, __ATOMIC_RELAXED);
    return SGT_OK;
}

static void free_encoders(text_bench *b)
{
    for (int t = 0; b->encoders && t < b->threads; t++) {
        sgt_encoder_free(b->encoders[t]);
        b->encoders[t] = NULL;
    }
}

/* Run a turn with new encoders of vocabulary v, whose caches are empty. */
static int encode_all(text_bench *b, const sgt_vocab *v, double *seconds, sgt_error *err)
{
    uint64_t units;
    bench_slice s = {.most = 1, .seconds = 1e9, .threads = b->threads};
    int rc = SGT_OK;
    free_encoders(b);
    for (int t = 0; t < b->threads && rc == SGT_OK; t++)
        rc = sgt_encoder_new(&b->encoders[t], v, err);
    b->next = b->tokens = 0;
    if (rc < 0) return rc;
    const clock_t cpu = clock();
    rc = bench_run(&s, encode_pieces, b, &units, seconds, err);
    b->cpu_seconds = (double)(clock() - cpu) / CLOCKS_PER_SEC;
    return rc;
}

/* Read pieces of the text and discard them, which measures the limit that memory sets. The sum
 * keeps the compiler from removing the loop. */
static int read_pieces(void *ctx, int thread, uint64_t k, sgt_error *err)
{
    text_bench *b = ctx;
    uint64_t sum = 0, word;
    (void)thread;
    (void)k;
    (void)err;
    for (;;) {
        size_t i = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED), at = 0;
        if (i >= b->text.count) break;
        for (; at + sizeof word <= b->text.pieces[i].n; at += sizeof word) {
            memcpy(&word, b->text.pieces[i].text + at, sizeof word);
            sum += word;
        }
    }
    __atomic_fetch_add(&b->sum, sum, __ATOMIC_RELAXED);
    return SGT_OK;
}

/* Measure the limit of --disk: write and flush as many bytes as the ids have. */
static int write_ids(text_bench *b, sgt_error *err)
{
    static const char zeros[BENCH_PIECE];
    sgt_error why;
    sgt_file *f;
    double began = sgt_now();
    int rc = sgt_file_begin(&f, b->out, err);
    if (rc < 0) return rc;
    for (uint64_t left = 2 * b->tokens; left && rc == SGT_OK;) {
        size_t n = left < BENCH_PIECE ? (size_t)left : BENCH_PIECE;
        rc = sgt_file_write(f, zeros, n, err);
        left -= n;
    }
    if (rc < 0) sgt_file_abandon(f);
    else rc = sgt_file_commit(f, err);
    b->limit_s = sgt_now() - began;
    sgt_remove_tree(b->out, &why);
    return rc;
}

static int take_limit(text_bench *b, sgt_error *err)
{
    double seconds[LIMIT_TURNS];
    uint64_t units;
    int rc = SGT_OK;
    bench_slice s = {.most = 1, .seconds = 1e9, .threads = b->threads};
    if (o.disk) return write_ids(b, err);
    for (int i = 0; i < LIMIT_TURNS && rc == SGT_OK; i++) {
        b->next = 0;
        rc = bench_run(&s, read_pieces, b, &units, &seconds[i], err);
    }
    if (rc == SGT_OK) b->limit_s = bench_median(seconds, LIMIT_TURNS);
    return rc;
}

/* Run a turn of our encoder; with --disk, of the program sgt-tokenize. */
static int take_ours(text_bench *b, double *seconds, sgt_error *err)
{
    sgt_error why;
    if (!o.disk) return encode_all(b, b->vocab, seconds, err);
    int rc = bench_tokenize_ours(seconds, &b->tokens, &b->turn, err);
    sgt_remove_tree(b->out, &why);
    return rc;
}

/* Run turn i of the other ways to split (tokenize_ways.h). */
static int take_ways(text_bench *b, int i, sgt_error *err)
{
    uint64_t ours = b->tokens;
    int rc = SGT_OK;
    for (tokenize_way *w = b->ways.all; w < b->ways.all + b->ways.count && rc == SGT_OK; w++) {
        rc = encode_all(b, w->vocab, &w->seconds[i], err);
        w->tokens = b->tokens;
    }
    b->tokens = ours;
    return rc;
}

/* Run turns that alternate between ours, the other ways and the peers. A peer that the interpreter
 * lacks is left out with a notice. */
static int take_turns(text_bench *b, const sgt_notice *notice, sgt_error *err)
{
    double ours[TOKENIZE_TURNS];
    int turns = o.peer || o.disk || b->ways.count ? (int)o.turns : 1, rc = SGT_OK;
    /* read the files into the page cache for all programs */
    if (o.disk) rc = take_ours(b, ours, err);
    for (int i = 0; i < turns && rc == SGT_OK; i++) {
        rc = take_ours(b, &ours[i], err);
        if (rc == SGT_OK) rc = take_ways(b, i, err);
        for (int p = 0; o.peer && p < TOKENIZE_PEERS && rc == SGT_OK; p++) {
            tokenize_peer *peer = &b->peers[p];
            if (!peer->left_out) rc = bench_tokenize_peer(peer, i, &b->turn, err);
            if (o.disk) unlink(b->out);
            if (rc != SGT_EUNSUPPORTED) continue;
            sgt_say(notice, "%s is left out: %s", peer->kind, err->text);
            peer->left_out = 1;
            rc = SGT_OK;
        }
    }
    if (rc != SGT_OK) return rc;
    b->seconds = bench_median(ours, (size_t)turns);
    bench_tokenize_ways_settle(&b->ways, turns);
    return rc;
}

static int make_work(text_bench *b, sgt_error *err)
{
    b->bytes = b->corpus->bytes;
    if (!b->bytes)
        return sgt_fail(err, SGT_EFORMAT, "%s: no text in it: nothing to measure",
                        b->corpus->files[0].path);
    char *work = sgt_join(o.disk, "sgt-bench.XXXXXX");
    if (!work) return sgt_fail_memory(err, NULL);
    if (!mkdtemp(work)) {
        int rc = sgt_fail_errno(err, "--disk %s: no folder can be made there", o.disk);
        free(work);
        return rc;
    }
    b->work = work;
    if (!(b->turn.out = b->out = sgt_join(work, "ids"))) return sgt_fail_memory(err, NULL);
    return SGT_OK;
}

/* Choose the peers by the corpus: another program reads Parquet than text. */
static int choose_peers(text_bench *b, sgt_error *err)
{
    const sgt_corpus *c = b->corpus;
    b->peers[0] =
        (tokenize_peer){.kind = c->row_files ? "datasets" : "gigatoken", .best = !c->row_files};
    b->peers[1] = (tokenize_peer){.kind = "tiktoken", .left_out = c->row_files > 0};
    if (c->row_files && !o.disk)
        return sgt_fail(err, SGT_EUSAGE,
                        "Parquet files are measured as whole commands only (add --disk FOLDER)");
    if (o.peer && c->row_files && c->row_files < c->count)
        return sgt_fail(err, SGT_EUSAGE,
                        "--peer: no peer reads Parquet and other files (measure them apart)");
    return SGT_OK;
}

static int measure(void *bench, const bench_call *call, sgt_error *err)
{
    text_bench *b = bench;
    sgt_corpus_request request = {.inputs = (const char *const *)call->operands,
                                  .count = call->count,
                                  .out = "",
                                  .notice = call->notice,
                                  .stop = call->stop};
    int rc;
    if (!call->count)
        return sgt_fail(err, SGT_EUSAGE,
                        "expected INPUT...: files or folders of text, or - for standard input");
    sgt_take_cpu(&program, o.cpu);
    b->threads = o.threads ? (int)o.threads : sgt_cpu_count();
    if ((o.vocab || o.pattern) && (o.peer || o.disk))
        return sgt_fail(err, SGT_EUSAGE, "%s: measured with GPT-2's vocabulary (not with %s)",
                        o.peer ? "--peer" : "--disk", o.vocab ? "--vocab" : "--pattern");
    const char *vocab = o.vocab ? o.vocab : "gpt2";
    if ((rc = sgt_vocab_load(&b->vocab, vocab, o.pattern, err)) < 0 ||
        (rc = bench_tokenize_ways(&b->ways, b->vocab, vocab, err)) < 0 ||
        (rc = sgt_corpus_list(&b->corpus, &request, err)) < 0 || (rc = choose_peers(b, err)) < 0)
        return rc;
    if ((o.peer || o.disk) && b->corpus->stream)
        return sgt_fail(err, SGT_EUSAGE, "%s: standard input can be read once only (name a file)",
                        o.peer ? "--peer" : "--disk");
    b->turn = (tokenize_turn){.corpus = b->corpus,
                              .inputs = request.inputs,
                              .input_count = call->count,
                              .python = o.peer,
                              .cpu = o.cpu,
                              .threads = b->threads,
                              .stop = call->stop};
    rc = o.disk ? make_work(b, err)
                : bench_text_read(&b->text, b->corpus, b->vocab, call->stop, err);
    if (rc == SGT_OK && !o.disk) rc = prepare(b, err);
    if (rc == SGT_OK) rc = take_turns(b, &call->notice, err);
    return rc == SGT_OK ? take_limit(b, err) : rc;
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
    bench_text_free(&b->text);
    sgt_corpus_free(b->corpus);
    sgt_vocab_free(b->vocab);
    bench_tokenize_ways_free(&b->ways);
}

/* ---- results ---- */

static double peer_seconds(tokenize_peer *p)
{
    double median = bench_median(p->seconds, (size_t)o.turns); /* sorts its argument */
    return p->best && !o.disk ? p->seconds[0] : median;
}

static void add_peers(json_t *top, text_bench *b)
{
    json_t *all = json_array();
    for (int i = 0; i < TOKENIZE_PEERS; i++) {
        tokenize_peer *p = &b->peers[i];
        if (p->left_out) continue;
        double s = peer_seconds(p);
        json_array_append_new(all, json_pack("{s:s, s:I, s:f, s:f, s:f}", "peer", p->name, "tokens",
                                             (json_int_t)p->tokens, "seconds", s, "mb_per_s",
                                             (double)b->bytes / s * 1e-6, "ratio", s / b->seconds));
    }
    json_object_set_new(top, "peers", all);
}

static json_t *to_json(void *bench)
{
    text_bench *b = bench;
    json_t *top = json_pack("{s:s, s:s, s:i, s:i, s:I, s:I, s:I, s:f, s:f}", "cpu", sgt_cpu_model(),
                            "level", sgt_cpu_name(), "cores", sgt_cpu_count(), "threads",
                            b->threads, "files", (json_int_t)b->corpus->count, "bytes",
                            (json_int_t)b->bytes, "tokens", (json_int_t)b->tokens, "seconds",
                            b->seconds, "mb_per_s", (double)b->bytes / b->seconds * 1e-6);
    if (top && !o.disk) json_object_set_new(top, "cpu_seconds", json_real(b->cpu_seconds));
    if (top && o.peer) add_peers(top, b);
    if (top && b->ways.count) bench_tokenize_ways_add(top, &b->ways, b->bytes, b->seconds);
    return top;
}

static void show_row(const text_bench *b, uint64_t tokens, double seconds, int best,
                     const char *who)
{
    char count[32];
    printf("%c %-24.24s %7d  %15s  %11.3f  %9.3f  %9.1f  %10.2f\n", best ? '*' : ' ', who,
           b->threads, sgt_format_count(count, sizeof count, tokens),
           (double)b->bytes / (double)tokens, seconds, (double)b->bytes / seconds * 1e-6,
           (double)tokens / seconds * 1e-6);
}

/* Return the seconds of the fastest program. Also sorts each peer's times. */
static double fastest(text_bench *b)
{
    double best = b->seconds;
    for (int i = 0; i < b->ways.count; i++)
        if (b->ways.all[i].seconds[0] < best) best = b->ways.all[i].seconds[0];
    for (int i = 0; i < TOKENIZE_PEERS && o.peer; i++)
        if (!b->peers[i].left_out && peer_seconds(&b->peers[i]) < best)
            best = peer_seconds(&b->peers[i]);
    return best;
}

static const char *limit_text(void)
{
    return o.disk ? "writing and flushing as many ids there"
                  : "reading the text from memory, and no more";
}

static void show(void *bench)
{
    text_bench *b = bench;
    char bytes[32], files[32], machine[160];
    double best = fastest(b);
    printf("%s\n%s in %s file%s, %s\n\n", bench_machine(machine, sizeof machine),
           sgt_format_bytes(bytes, sizeof bytes, b->bytes),
           sgt_format_count(files, sizeof files, b->corpus->count),
           b->corpus->count == 1 ? "" : "s", o.disk ? "from files to files" : "in memory");
    printf("                           threads           tokens  bytes/token    seconds       MB/s "
           "  Mtokens/s\n");
    show_row(b, b->tokens, b->seconds, b->seconds <= best, "sgt");
    for (int i = 0; i < b->ways.count; i++) {
        const tokenize_way *w = &b->ways.all[i];
        show_row(b, w->tokens, w->seconds[0], w->seconds[0] <= best, w->name);
        printf("  ours is %.2f times as fast\n", w->seconds[0] / b->seconds);
    }
    for (int i = 0; i < TOKENIZE_PEERS && o.peer; i++) {
        tokenize_peer *p = &b->peers[i];
        double s = p->left_out ? 0 : peer_seconds(p);
        if (p->left_out) continue;
        show_row(b, p->tokens, s, s <= best, p->name);
        printf("  ours is %.2f times as fast\n", s / b->seconds);
    }
    printf("\n* the fastest. Limit, %s: %.0f MB/s; ours is %.2f %% of that.\n", limit_text(),
           (double)b->bytes / b->limit_s * 1e-6, 100 * b->limit_s / b->seconds);
    if (o.peer || b->ways.count)
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
