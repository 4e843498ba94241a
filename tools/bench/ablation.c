/* ablation.c: sgt-bench ablation: the gain of each training technique, on the user's own data and
 * machine. The techniques are switched on one after the other, and each is measured together with
 * all before it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bench.h"
#include "tools/cli/talk.h"
#include "train/device.h"

/* The techniques, in the order in which they are switched on. */
typedef enum technique {
    TECHNIQUE_TEXT,
    TECHNIQUE_COLD,
    TECHNIQUE_MMAP,
    TECHNIQUE_PRELOAD,
    TECHNIQUE_SIMD,
    TECHNIQUE_OVERLAP,
    TECHNIQUE_ASYNC,
    TECHNIQUE_TF32,
    TECHNIQUE_BF16,
    TECHNIQUE_FUSED,
    TECHNIQUE_GRAPHS,
    TECHNIQUE_FLASH,
    TECHNIQUE_PADDED,
    TECHNIQUE_TIED,
    TECHNIQUE_ACCUM,
    TECHNIQUE_RECOMPUTE,
    TECHNIQUES
} technique;

static const char *const names[] = {"text",   "cold", "mmap",  "preload",   "simd",   "overlap",
                                    "async",  "tf32", "bf16",  "fused",     "graphs", "flash",
                                    "padded", "tied", "accum", "recompute", NULL};

static const struct {
    const char *about;
    const char *not_on_cpu; /* why a CPU has no such row; NULL if it has one */
} techniques[TECHNIQUES] = {
    [TECHNIQUE_TEXT] = {"encoded as needed", NULL},
    [TECHNIQUE_COLD] = {"mapped, not cached", NULL},
    [TECHNIQUE_MMAP] = {"mapped, in memory", NULL},
    [TECHNIQUE_PRELOAD] = {"shards in memory", NULL},
    [TECHNIQUE_SIMD] = {"rows by vector code", NULL},
    [TECHNIQUE_OVERLAP] = {"rows beside the step", NULL},
    [TECHNIQUE_ASYNC] = {"metrics a step late", "a CPU's step is over when its metrics are there"},
    [TECHNIQUE_TF32] = {"products in TF32", "no CPU has TF32"},
    [TECHNIQUE_BF16] = {"matrices in 16 bits", NULL},
    [TECHNIQUE_FUSED] = {"fused operations", "the CPU's kernels are fused always"},
    [TECHNIQUE_GRAPHS] = {"launched as a whole", "a CPU launches nothing"},
    [TECHNIQUE_FLASH] = {"no T x T scores", "the CPU's attention never stores T x T scores"},
    [TECHNIQUE_PADDED] = {"vocabulary of 50,304", "a CPU gains nothing by it"},
    [TECHNIQUE_TIED] = {"head is the embedding", NULL},
    [TECHNIQUE_ACCUM] = {"rows in micro-steps", NULL},
    [TECHNIQUE_RECOMPUTE] = {"blocks run twice", NULL},
};

_Static_assert((int)TECHNIQUES <= (int)BENCH_WORDS, "room for all techniques");

/* ---- options ---- */

static struct {
    const char *data, *rows;
    uint64_t steps, warmup, rounds;
} o = {.steps = 10, .warmup = 2};

static bench_shape shape = BENCH_SHAPE;

static const sgt_option table[] = {
    {.name = "What to run"},
    {"data", 'd', SGT_OPT_TEXT, &o.data, "OUT/|SHARD", .help = "shards to train on (required)"},
    BENCH_DEVICE(shape),
    {"model", .as = BENCH_ROW(MODEL), .to = &shape.model,
     .help = "a GPT-2, or layers x channels x heads"},
    {"batch-size", 'b', SGT_OPT_COUNT, &shape.batch, "N",
     "rows per step, the same for all techniques", .def = "64 on CUDA, if they fit; 4 on a CPU",
     .min = 1, .max = 1 << 20},
    {"seq-len", .as = BENCH_ROW(SEQ), .to = &shape.seq, .def = "1024 on CUDA, 64 on a CPU"},
    {"rows", 0, SGT_OPT_TEXT, &o.rows, "LIST",
     "techniques to measure, separated by commas:", .def = "all", .choices = names},
    {"threads", .as = BENCH_ROW(THREADS), .to = &shape.threads, .help = "number of CPU threads"},
    {.name = "How"},
    {"steps", 0, SGT_OPT_COUNT, &o.steps, "N", "steps measured per technique; the median is shown",
     .def = "10", .min = 1, .max = 100000},
    {"warmup", 0, SGT_OPT_COUNT, &o.warmup, "N", "steps before the measured ones", .def = "2",
     .min = 0, .max = 100000},
    {"rounds", 0, SGT_OPT_COUNT, &o.rounds, "N", "rounds over all techniques; the median is shown",
     .def = "1 on CUDA, 3 on a CPU", .min = 1, .max = BENCH_TURNS},
    BENCH_OUTPUT,
    {0}};

static const sgt_program program = {
    .name = "sgt-bench ablation",
    .usage = "sgt-bench ablation [OPTION]... --data OUT/",
    .about = "Trains a few steps with each technique in turn, from text that is encoded within the "
             "loop to all that sgt has: every row has the techniques of those above it, and the "
             "same batches. Techniques: text, cold, mmap, preload, simd, overlap, async, tf32, "
             "bf16, fused, graphs, flash, padded, tied, and two that save memory: accum and "
             "recompute. Those that a device lacks are named, with why.",
    .options = table,
    .examples = "  sgt-bench ablation --data out/ --model 4x256x4 --seq-len 128\n"
                "  sgt-bench ablation --data out/ --rows text,preload,tied --steps 30\n"
                "  sgt-bench ablation --data out/ --device cuda"};

typedef struct ablation {
    bench base; /* row t is technique t; its `why` says why it cannot be measured */
    const char *device;
    sgt_backend_options options; /* those that all rows have; the vocabulary is the data's */
    uint32_t wanted;             /* bit t: row t is to be measured */
    size_t rounds;
    json_t *last; /* figures of the last step */
} ablation;

static int on_cuda(const ablation *a) { return strcmp(a->device, "cuda") == 0; }

static int read_options(ablation *a, sgt_error *err)
{
    sgt_config c;
    sgt_config_default(&c);
    int rc = sgt_config_step(&c, err);
    if (rc < 0) return rc;
    a->options = c.step;
    a->options.cache = a->base.cache;
    a->rounds = (size_t)(o.rounds ? o.rounds : on_cuda(a) ? 1 : 3);
    return bench_take_shape(&a->options, &shape, on_cuda(a), err);
}

/* ---- what a row is ---- */

/* Return the backend's options with all techniques up to `t`, including those that have no row of
 * their own. */
static sgt_backend_options backend_options(const ablation *a, technique t)
{
    int half = t >= TECHNIQUE_BF16 && !a->base.rows[TECHNIQUE_BF16].why[0];
    sgt_backend_options k = a->options;
    k.precision = half ? SGT_PRECISION_BF16 : SGT_PRECISION_FP32;
    k.recompute = t >= TECHNIQUE_RECOMPUTE ? SGT_RECOMPUTE_BLOCK : SGT_RECOMPUTE_NONE;
    k.model.untied = t < TECHNIQUE_TIED;
    k.accum = 1;
    /* micro-steps: the smallest divisor of the rows above 1 */
    if (t >= TECHNIQUE_ACCUM && k.batch > 1) k.accum = 2;
    while (k.batch % k.accum) k.accum++;
    k.batch /= k.accum;
    if (!on_cuda(a)) return k;
    if (t == TECHNIQUE_TF32) k.precision = SGT_PRECISION_TF32;
    k.attention = t < TECHNIQUE_FLASH ? SGT_ATTENTION_NAIVE : SGT_ATTENTION_AUTO;
    k.no_fuse = t < TECHNIQUE_FUSED;
    k.no_graphs = t < TECHNIQUE_GRAPHS;
    k.no_overlap = t < TECHNIQUE_OVERLAP;
    k.no_pad_vocab = t < TECHNIQUE_PADDED;
    k.variants = SGT_VARIANTS_DEFAULT;
    return k;
}

/* ---- which rows there are ---- */

/* Leave out a technique that cannot be measured; if --rows names it, that is an error. */
static int leave_out(ablation *a, int t, const char *why, sgt_error *err)
{
    snprintf(a->base.rows[t].why, sizeof a->base.rows[t].why, "%.159s", why);
    if (bench_has(a->wanted, t) && o.rows)
        return sgt_fail(err, SGT_EUNSUPPORTED, "--rows %s: %s", names[t], why);
    a->wanted &= ~(1U << t);
    return SGT_OK;
}

/* Give the model the data's vocabulary, and leave out what this device and data do not support:
 * TECHNIQUE_COLD if the shards cannot be evicted, and TECHNIQUE_TEXT if the data is not in GPT-2's
 * vocabulary. */
static int choose_rows(ablation *a, sgt_error *err)
{
    sgt_loader *l;
    sgt_loader_info info;
    sgt_error cold = {0};
    char text[80] = "";
    const sgt_loader_options options = {
        .reader = SGT_READER_MMAP, .batch = 1, .seq = a->options.seq};
    int rc = sgt_loader_open(&l, o.data, &options, err);
    if (rc < 0) return rc;
    sgt_loader_get_info(l, &info);
    if (bench_has(a->wanted, TECHNIQUE_COLD)) bench_cache_evict(l, &cold);
    sgt_loader_close(l);
    if (info.vocab != a->options.model.vocab)
        snprintf(text, sizeof text, "the data has %u ids, and is not GPT-2's tokens", info.vocab);
    a->options.model.vocab = info.vocab;
    for (int t = 0; t < TECHNIQUES && rc == SGT_OK; t++) {
        const char *why = t == TECHNIQUE_TEXT   ? text
                          : t == TECHNIQUE_COLD ? cold.text
                          : on_cuda(a)          ? NULL
                                                : techniques[t].not_on_cpu;
        if (t == TECHNIQUE_BF16 && !on_cuda(a) && !sgt_gemm_has_bf16())
            why = "here operands are rounded to bf16 and multiplied in fp32";
        if (why && *why) rc = leave_out(a, t, why, err);
    }
    return rc;
}

/* ---- measuring ---- */

static int measure_step(const ablation *a, technique t, json_t **figures, sgt_error *err)
{
    const sgt_backend_options k = backend_options(a, t);
    const step_run run = {.device = a->device,
                          .backend = &k,
                          .data = o.data,
                          .reader = t < TECHNIQUE_PRELOAD ? SGT_READER_MMAP : SGT_READER_PRELOAD,
                          .cache = t == TECHNIQUE_COLD   ? STEP_COLD
                                   : t == TECHNIQUE_MMAP ? STEP_CACHED
                                                         : STEP_AS_IT_IS,
                          .source = t == TECHNIQUE_TEXT     ? STEP_TEXT
                                    : t < TECHNIQUE_OVERLAP ? STEP_NOW
                                                            : STEP_LOADER,
                          .plain_rows = t < TECHNIQUE_SIMD,
                          .warmup = (unsigned)o.warmup,
                          .steps = (unsigned)o.steps,
                          .sync_metrics = t < TECHNIQUE_ASYNC,
                          .stop = a->base.stop};
    return bench_step_measure(figures, &run, err);
}

static int take(void *self, size_t t, json_t **figures, sgt_error *err)
{
    static const char *const fields[][2] = {
        {"ms_per_step"}, {"tokens_per_s"},           {"data_wait_ms"},
        {"loss"},        {"bytes", "backend_bytes"}, {"kernels_step", "launches_step"}};
    ablation *a = self;
    uint32_t *batch = &a->options.batch, asked = *batch;
    json_t *all = NULL;
    if (!bench_has(a->wanted, (int)t)) return SGT_OK;
    if (t == TECHNIQUE_ACCUM && *batch == 1)
        return leave_out(a, (int)t, "a batch of one row cannot be divided", err);
    int rc = measure_step(a, (technique)t, &all, err);
    /* the first row holds the most memory */
    while (rc == SGT_ENOMEM && on_cuda(a) && !shape.batch && !a->last && *batch > 1) {
        *batch /= 2;
        rc = measure_step(a, (technique)t, &all, err);
    }
    if (rc < 0) return rc;
    if (*batch < asked)
        sgt_say(&a->base.notice, "--batch-size %u, which is what the first row has room for",
                *batch);
    *figures = json_object();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        json_object_set(*figures, fields[i][0],
                        json_object_get(all, fields[i][1] ? fields[i][1] : fields[i][0]));
    json_decref(a->last);
    a->last = all;
    sgt_say(&a->base.notice, "%s: %.3f ms/step", names[t], bench_get(*figures, "ms_per_step"));
    return SGT_OK;
}

/* ---- results ---- */

/* Compare a row with the nearest measured row above it, or itself, and with the first. Two rows may be
 * equally fast if the ranges of their rounds overlap; with a single round, that is unknown. */
static void compare(const bench_row *row, const json_t *above, const json_t *first)
{
    json_t *result = row->result, *round;
    double ms = bench_get(result, "ms_per_step"), low = ms, high = ms;
    size_t i;
    bench_put(result, "factor", bench_get(above, "ms_per_step") / ms);
    bench_put(result, "factor_first", bench_get(first, "ms_per_step") / ms);
    if (json_array_size(row->turns) < 2) return;
    json_array_foreach(row->turns, i, round)
    {
        low = fmin(low, bench_get(round, "ms_per_step"));
        high = fmax(high, bench_get(round, "ms_per_step"));
    }
    json_object_set_new(result, "within_noise",
                        json_boolean(json_object_get(above, "ms_low") &&
                                     bench_get(above, "ms_low") <= high &&
                                     low <= bench_get(above, "ms_high")));
    bench_put(result, "ms_low", low);
    bench_put(result, "ms_high", high);
    json_object_set_new(result, "spread", json_real((high - low) / 2 / ms));
}

static void to_json(void *self, json_t *top)
{
    const ablation *a = self;
    json_t *results = json_array(), *first = NULL, *above = NULL;
    for (int t = 0; t < TECHNIQUES; t++) {
        const bench_row *row = &a->base.rows[t];
        if (!json_array_size(row->turns)) continue;
        if (!first) first = above = row->result;
        compare(row, above, first);
        json_array_append(results, row->result);
        above = row->result;
    }
    bench_put_all(top,
                  json_pack("{s:O, s:O, s:s, s:i, s:i, s:i, s:i, s:i, s:O, s:o, s:o}", "device",
                            json_object_get(a->last, "device"), "library",
                            json_object_get(a->last, "library"), "model", shape.model, "batch",
                            (int)a->options.batch, "seq", (int)a->options.seq, "threads",
                            a->options.threads, "steps", (int)o.steps, "rounds", (int)a->rounds,
                            "total_bytes", json_object_get(a->last, "total_bytes"), "results",
                            results, "left_out", bench_results(&a->base, 0, 1)));
}

static void show_table(json_t *rows)
{
    static const bench_column columns[] = {
        {"technique", "", .kind = BENCH_TEXT},      {"about", "", .kind = BENCH_TEXT},
        {"ms_per_step", "ms/step", .decimals = 3},  {"spread", "+-", BENCH_PERCENT, 0, 100},
        {"data_wait_ms", "data ms", .decimals = 3}, {.key = "tokens_per_s", .head = "tokens/s"},
        {"factor", "faster", .decimals = 3},        {"factor_first", "in all", .decimals = 2},
        {"bytes", "memory", .kind = BENCH_BYTES},   {0}};
    json_t *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        if (json_is_true(json_object_get(row, "within_noise")))
            bench_put_text(row, "factor", "noise");
        if (i == 0) json_object_del(row, "factor");
    }
    bench_table(rows, columns, "tokens_per_s");
    printf(
        "\n* the fastest. +-: half the range of the rounds. data ms: of a step, waiting for rows.\n"
        "noise: the ranges of this row and the one above overlap.\n");
}

static void show(const void *self, json_t *top)
{
    const ablation *a = self;
    char total[32];
    json_t *row;
    size_t i;
    printf("%s, %s, %s; memory is of %s\n", json_string_value(json_object_get(top, "device")),
           json_string_value(json_object_get(a->last, "level")),
           json_string_value(json_object_get(top, "library")),
           sgt_format_bytes(total, sizeof total, (uint64_t)bench_get(top, "total_bytes")));
    printf("%s, %u x %u tokens a step; median of %zu x %u; a row has all above it\n\n", shape.model,
           a->options.batch, a->options.seq, a->rounds, (unsigned)o.steps);
    show_table(json_object_get(top, "results"));
    if (json_object_get(a->last, "mfu"))
        printf("\nThe last row reaches %.0f %% of the speed of a large matrix product.\n",
               100 * bench_get(a->last, "mfu"));
    if (json_object_get(top, "interrupted"))
        printf("\nInterrupted: the measurements so far, each row with the rounds that it "
               "completed.\n");
    json_array_foreach(json_object_get(top, "left_out"), i, row)
    {
        printf("%s%-9s left out: %s\n", i ? "" : "\n",
               json_string_value(json_object_get(row, "technique")),
               json_string_value(json_object_get(row, "why")));
    }
}

/* ---- the subcommand ---- */

/* read_options is called before the device is chosen, so that usage errors are reported first; and
 * again once the device is known, because defaults depend on it. */
static int measure(void *self, sgt_error *err)
{
    ablation *a = self;
    if (!o.data)
        return sgt_fail(err, SGT_EUSAGE, "--data: needed: the shards to train on (--data OUT/)");
    a->device = shape.device;
    for (int t = 0; t < TECHNIQUES; t++)
        bench_add(&a->base,
                  json_pack("{s:s, s:s}", "technique", names[t], "about", techniques[t].about));
    int rc = bench_words(&a->wanted, "rows", o.rows, names, err);
    if (rc == SGT_OK) rc = read_options(a, err);
    if (rc == SGT_OK) rc = sgt_device_choose(&a->device, &a->base.notice, err);
    if (rc == SGT_OK) rc = read_options(a, err);
    if (rc == SGT_OK) rc = choose_rows(a, err);
    return rc == SGT_OK ? bench_take_turns(&a->base, 0, TECHNIQUES, a->rounds, take, err) : rc;
}

static void release(void *self) { json_decref(((ablation *)self)->last); }

const bench_subcommand bench_ablation = {.command = {"ablation",
                                                     "what each technique of training brings",
                                                     &program, bench_run_subcommand},
                                         .size = sizeof(ablation),
                                         .partial = 1,
                                         .measure = measure,
                                         .json = to_json,
                                         .show = show,
                                         .release = release};
