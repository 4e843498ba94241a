/* sample.c: sgt-bench sample: the speed of text generation, compared with reading the model's
 * weights once per token, and with nanoGPT and transformers, in alternating turns. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/arena.h"
#include "loader/base/cpu.h"
#include "loader/base/philox.h"
#include "train/generate/generate.h"
#include "tools/bench/bench.h"
#include "tools/bench/picture.h"
#include "tools/bench/script.h"
#include "tools/bench/shape.h"
#include "tools/cli/talk.h"

BENCH_EMBED(sgt_torch_sample, "tests/peers/torch_sample.py");

enum { MOST_TURNS = 99, PIECE = 1 << 20 }; /* PIECE: bytes that a unit of the limit reads */

static bench_shape shape = {.model = "gpt2"};
static struct {
    uint64_t prompt, tokens, batch, turns;
    const char *peer;
} o = {.prompt = 16, .tokens = 64, .batch = 1, .turns = 3};

static const sgt_option table[] = {
    {.name = "What to run"},
    BENCH_MODEL(shape),
    {"prompt-tokens", 0, SGT_OPT_COUNT, &o.prompt, "N", "tokens of the prompt", .def = "16",
     .min = 1, .max = 65535},
    {"tokens", 'n', SGT_OPT_COUNT, &o.tokens, "N", "tokens to generate per prompt", .def = "64",
     .min = 1, .max = 65535},
    {"batch-size", 'b', SGT_OPT_COUNT, &o.batch, "N", "prompts computed together", .def = "1",
     .min = 1, .max = SGT_DECODER_ROWS},
    BENCH_THREADS(shape),
    {.name = "How"},
    {"turns", 0, SGT_OPT_COUNT, &o.turns, "N", "turns of each program; medians are shown",
     .def = "3", .min = 1, .max = MOST_TURNS},
    {"peer", 0, SGT_OPT_TEXT, &o.peer, "PYTHON",
     .help = "compare with nanoGPT's sampling and transformers, run by this interpreter, which "
             "needs PyTorch"},
    BENCH_OUTPUT(shape.output),
    {0}};

static const sgt_program program = {
    .name = "sgt-bench sample",
    .usage = "sgt-bench sample [OPTION]...",
    .about = "Measures on a CPU how fast a GPT-2 with random weights goes on with a prompt, that "
             "included in the time.",
    .options = table,
    .examples = "  sgt-bench sample\n"
                "  sgt-bench sample --model gpt2-medium --tokens 200 --batch-size 8\n"
                "  sgt-bench sample --peer python3"};

/* A measured program: ours or a peer. */
typedef struct line {
    const char *name, *asked, *precision; /* asked: name for torch_sample.py; NULL: our program */
    /* the peer's name and version, or why it was not measured */
    char said[96];
    double seconds[MOST_TURNS], tokens_per_s;
    uint64_t weights; /* least bytes that a token reads; 0: unknown */
    int missing;
} line;

typedef struct sample_bench {
    sgt_model model;
    line lines[5];
    size_t count;
    sgt_decoder *decoders[2]; /* the decoders of lines 0 and 1: float32 and bfloat16 weights */
    uint16_t *ids;
    sgt_prompt *prompts;
    bench_script script;
    bench_child *child;
    char positions[16], vocab[16], layers[48];
    const char *args[4];
    sgt_arena block;   /* memory that the limit reads, as large as the float32 weights */
    double read_per_s; /* bytes per second that the limit reads */
    const sgt_stop *stop;
} sample_bench;

/* ---- ours ---- */

static int open_ours(sample_bench *b, sgt_error *err)
{
    int rc = SGT_OK;
    size_t n = o.prompt;
    b->ids = malloc(n * sizeof *b->ids);
    b->prompts = calloc(o.batch, sizeof *b->prompts);
    if (!b->ids || !b->prompts) return sgt_fail_memory(err, NULL);
    for (size_t i = 0; i < n; i++) b->ids[i] = (uint16_t)(sgt_philox_u64(1, i, 0) % b->model.vocab);
    for (size_t i = 0; i < o.batch; i++)
        b->prompts[i] = (sgt_prompt){.ids = b->ids, .count = n, .sample = i};
    for (int bf16 = 0; bf16 < 2 && rc == SGT_OK; bf16++) {
        sgt_decoder_options d = {.model = b->model,
                                 .sequences = (uint32_t)o.batch,
                                 .window = (uint32_t)(o.prompt + o.tokens),
                                 .threads = bench_threads(&shape),
                                 .bf16 = bf16};
        rc = sgt_decoder_open(&b->decoders[bf16], &d, err);
        if (rc < 0) break;
        rc =
            sgt_init_parameters(sgt_decoder_loads(b->decoders[bf16]), &b->model, 1, d.threads, err);
        b->lines[bf16].weights = sgt_decoder_weights(b->decoders[bf16]);
    }
    return rc;
}

static int our_turn(sample_bench *b, size_t which, double *seconds, sgt_error *err)
{
    sgt_generate_result r;
    sgt_generate_options g = {.choice = {.temperature = 0.8, .top_k = 200, .seed = 1},
                              .tokens = o.tokens,
                              .eot = -1,
                              .stop = b->stop};
    int rc = sgt_generate(b->decoders[which], b->prompts, o.batch, &g, &r, err);
    *seconds = r.prompt_seconds + r.token_seconds;
    return rc;
}

/* ---- the limit: reading as many bytes as the weights have, and no more ---- */

static int read_piece(void *ctx, int thread, uint64_t k, sgt_error *err)
{
    const sample_bench *b = ctx;
    const uint64_t *p =
        (const uint64_t *)(const void *)(b->block.base + k % (b->block.used / PIECE) * PIECE);
    uint64_t sum[8] = {0};
    (void)thread;
    (void)err;
    for (size_t i = 0; i < PIECE / sizeof *p; i += 8) {
        __builtin_prefetch(p + i + 256); /* 2 KiB ahead */
        for (size_t j = 0; j < 8; j++) sum[j] += p[i + j];
    }
    for (size_t j = 1; j < 8; j++) sum[0] ^= sum[j];
    __asm__ volatile("" : : "r"(sum[0])); /* keeps the compiler from removing the reads */
    return SGT_OK;
}

static int open_limit(sample_bench *b, sgt_error *err)
{
    size_t n = (b->lines[0].weights / PIECE + 1) * PIECE;
    int rc = sgt_arena_map(&b->block, n, 1, err);
    if (rc == SGT_OK) memset(sgt_arena_take(&b->block, n, 1), 1, n);
    return rc;
}

static int limit_turn(sample_bench *b, double *per_s, sgt_error *err)
{
    uint64_t units;
    double seconds;
    bench_slice s = {.seconds = 0.2, .threads = bench_threads(&shape)};
    int rc = bench_run(&s, read_piece, b, &units, &seconds, err);
    *per_s = (double)units * PIECE / seconds;
    return rc;
}

/* ---- the peers ---- */

static int open_peer(sample_bench *b, sgt_error *err)
{
    char *said = malloc(BENCH_SAID);
    if (!said) return sgt_fail_memory(err, NULL);
    snprintf(b->layers, sizeof b->layers, "%ux%ux%u", b->model.layers, b->model.channels,
             b->model.heads);
    snprintf(b->positions, sizeof b->positions, "%u", b->model.positions);
    snprintf(b->vocab, sizeof b->vocab, "%u", b->model.vocab);
    b->args[0] = b->layers, b->args[1] = b->positions, b->args[2] = b->vocab;
    b->script = (bench_script){.python = o.peer,
                               .name = "torch_sample.py",
                               .text = sgt_torch_sample,
                               .args = b->args,
                               .threads = bench_threads(&shape),
                               .stop = b->stop};
    int rc = bench_script_open(&b->child, &b->script, err);
    if (rc == SGT_OK) rc = bench_script_ask(b->child, "ready\n", said, err);
    free(said);
    return rc;
}

static int their_turn(sample_bench *b, line *l, double *seconds, sgt_error *err)
{
    char question[96], *said = malloc(BENCH_SAID);
    if (!said) return sgt_fail_memory(err, NULL);
    snprintf(question, sizeof question, "%s %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", l->asked,
             l->precision, o.prompt, o.tokens, o.batch);
    int rc = bench_script_ask(b->child, question, said, err);
    json_t *j = rc == SGT_OK ? json_loads(said, 0, NULL) : NULL;
    const char *name = json_string_value(json_object_get(j, "peer"));
    const char *why = json_string_value(json_object_get(j, "error"));
    *seconds = json_number_value(json_object_get(j, "seconds"));
    l->missing = why != NULL;
    if (rc == SGT_OK && !why && !(*seconds > 0))
        rc = sgt_fail(err, SGT_EUNSUPPORTED, "--peer %s: no seconds in what it said: %.200s",
                      o.peer, said);
    if (rc == SGT_OK) snprintf(l->said, sizeof l->said, "%s", why ? why : name ? name : l->name);
    json_decref(j);
    free(said);
    return rc;
}

/* ---- turns ---- */

static int take_turns(sample_bench *b, sgt_error *err)
{
    double reads[MOST_TURNS], warm;
    int rc = our_turn(b, 0, &warm, err); /* warm-up, for page faults and clock frequencies */
    if (rc == SGT_OK) rc = our_turn(b, 1, &warm, err);
    for (size_t t = 0; t < o.turns && rc == SGT_OK; t++) {
        rc = limit_turn(b, &reads[t], err);
        for (size_t i = 0; i < b->count && rc == SGT_OK; i++) {
            line *l = &b->lines[i];
            if (sgt_stopped(b->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
            if (l->asked && !l->missing) rc = their_turn(b, l, &l->seconds[t], err);
            else if (!l->asked) rc = our_turn(b, i, &l->seconds[t], err);
        }
    }
    if (rc < 0) return rc;
    b->read_per_s = bench_median(reads, o.turns);
    for (size_t i = 0; i < b->count; i++)
        if (!b->lines[i].missing)
            b->lines[i].tokens_per_s =
                (double)(o.tokens * o.batch) / bench_median(b->lines[i].seconds, o.turns);
    return SGT_OK;
}

/* ---- what is shown ---- */

static const char *name_of(const line *l)
{
    return l->asked && l->said[0] && !l->missing ? l->said : l->name;
}

/* Return the most tokens per second that memory allows: a pass over the weights makes one token for
 * each prompt. */
static double limit_of(const sample_bench *b, const line *l)
{
    return l->weights ? b->read_per_s / (double)l->weights * (double)o.batch : 0;
}

static json_t *to_json(void *bench)
{
    const sample_bench *b = bench;
    json_t *results = json_array();
    for (size_t i = 0; i < b->count; i++) {
        const line *l = &b->lines[i];
        json_t *one = json_pack("{s:s, s:s}", "name", name_of(l), "precision", l->precision);
        if (l->missing) json_object_set_new(one, "why_not", json_string(l->said));
        else json_object_set_new(one, "tokens_per_s", json_real(l->tokens_per_s));
        if (l->weights) json_object_set_new(one, "limit", json_real(limit_of(b, l)));
        json_array_append_new(results, one);
    }
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:i, s:f, s:o}", "cpu", sgt_cpu_model(), "model",
                     shape.model, "prompt_tokens", (json_int_t)o.prompt, "tokens",
                     (json_int_t)o.tokens, "batch", (json_int_t)o.batch, "threads",
                     bench_threads(&shape), "read_gb_per_s", b->read_per_s * 1e-9, "results",
                     results);
}

static const line *best_line(const sample_bench *b)
{
    const line *best = b->lines;
    for (size_t i = 1; i < b->count; i++)
        if (b->lines[i].tokens_per_s > best->tokens_per_s) best = &b->lines[i];
    return best;
}

static void show(void *bench)
{
    const sample_bench *b = bench;
    char machine[160], name[40], why[48], prompt[48], more[48];
    const line *slow = b->count > 2 && !b->lines[2].missing ? &b->lines[2] : NULL;
    printf("%s\n%s, %" PRIu64 " prompt%s of %s, %s each, %d thread%s\n\n",
           bench_machine(machine, sizeof machine), shape.model, o.batch, o.batch > 1 ? "s" : "",
           sgt_format_things(prompt, sizeof prompt, o.prompt, "token", "tokens"),
           sgt_format_things(more, sizeof more, o.tokens, "more token", "more tokens"),
           bench_threads(&shape), bench_threads(&shape) > 1 ? "s" : "");
    printf("  %-26s  precision  tokens/s  ms a token  of limit%s\n", "", slow ? "  x nanoGPT" : "");
    for (size_t i = 0; i < b->count; i++) {
        const line *l = &b->lines[i];
        printf("%c %-26s  %-9s", l == best_line(b) ? '*' : ' ', sgt_printable(name, 27, name_of(l)),
               l->precision);
        if (l->missing) {
            printf("  %s\n", sgt_printable(why, sizeof why, l->said));
            continue;
        }
        printf("  %8.1f  %10.2f", l->tokens_per_s, 1e3 / l->tokens_per_s);
        if (l->weights) printf("  %6.1f %%", 100 * l->tokens_per_s / limit_of(b, l));
        else printf("  %8s", "-");
        if (slow) printf("  %9.2f", l->tokens_per_s / slow->tokens_per_s);
        printf("\n");
    }
    printf("\n* the fastest. Limit, reading every weight once a token: %.1f GB/s\n",
           b->read_per_s * 1e-9);
}

static int plot(void *bench, const char *path, sgt_error *err)
{
    const sample_bench *b = bench;
    bench_picture *p = bench_picture_new(
        "Text: %s, %" PRIu64 " x %" PRIu64 " tokens behind %" PRIu64 ", %d threads", shape.model,
        o.batch, o.tokens, o.prompt, bench_threads(&shape));
    bench_picture_group(p, "tokens a second");
    for (size_t i = 0; i < b->count; i++) {
        const line *l = &b->lines[i];
        char name[128];
        snprintf(name, sizeof name, "%s, %s", name_of(l), l->precision);
        if (l->weights)
            bench_picture_bar(p, BENCH_LIMIT, limit_of(b, l), "reading its weights", "%.1f",
                              limit_of(b, l));
        if (!l->missing)
            bench_picture_bar(p, l->asked ? BENCH_PEER : BENCH_OURS, l->tokens_per_s, name, "%.1f",
                              l->tokens_per_s);
    }
    return bench_picture_write(p, path, err);
}

/* ---- the subcommand ---- */

static int measure(void *bench, const bench_call *call, sgt_error *err)
{
    sample_bench *b = bench;
    static const line all[] = {
        {.name = "sgt", .precision = "fp32"},
        {.name = "sgt", .precision = "bf16"},
        {.name = "nanoGPT", .asked = "nanogpt", .precision = "fp32"},
        {.name = "transformers", .asked = "transformers", .precision = "fp32"},
        {.name = "transformers", .asked = "transformers", .precision = "bf16"}};
    b->stop = call->stop;
    b->count = o.peer ? 5 : 2;
    memcpy(b->lines, all, b->count * sizeof *all);
    int rc = sgt_model_named(&b->model, shape.model, err);
    if (rc == SGT_OK && o.prompt + o.tokens > b->model.positions)
        rc = sgt_fail(err, SGT_EUSAGE,
                      "--tokens %" PRIu64 ": behind %" PRIu64
                      " that is over the model's %u positions",
                      o.tokens, o.prompt, b->model.positions);
    if (rc == SGT_OK) rc = open_ours(b, err);
    if (rc == SGT_OK) rc = open_limit(b, err);
    if (rc == SGT_OK && o.peer) rc = open_peer(b, err);
    return rc == SGT_OK ? take_turns(b, err) : rc;
}

static void release(void *bench)
{
    sample_bench *b = bench;
    bench_script_close(b->child);
    for (int i = 0; i < 2; i++) sgt_decoder_close(b->decoders[i]);
    sgt_arena_unmap(&b->block);
    free(b->ids);
    free(b->prompts);
}

static const bench_subcommand sample = {.program = &program,
                                        .output = &shape.output,
                                        .size = sizeof(sample_bench),
                                        .measure = measure,
                                        .plot = plot,
                                        .json = to_json,
                                        .show = show,
                                        .release = release};

static int bench_sample(int argc, char **argv) { return bench_subcommand_run(&sample, argc, argv); }

const sgt_command bench_sample_command = {
    "sample", "text from a model, beside nanoGPT's and transformers'", &program, bench_sample};
