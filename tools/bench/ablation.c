/* ablation.c: the subcommand `sgt-bench ablation`, which measures how much faster each technique
 * (an optimization such as bf16 or CUDA graphs) makes a training step, on the user's own data and
 * machine. The row with index t of the table shows the time of a step with the first t + 1
 * techniques turned on, so that each row shows the gain of one more technique. */
#include <math.h>
#include <stdio.h>

#include "tools/bench/bench.h"
#include "tools/cli/talk.h"

/* Indices into the array `techniques`, for the techniques that need code of their own. TECHNIQUES
 * is the number of all techniques. */
typedef enum technique {
    TECHNIQUE_TEXT,
    TECHNIQUE_COLD,
    TECHNIQUE_MMAP,
    TECHNIQUE_BF16 = 8,
    TECHNIQUE_ACCUM = 14,
    TECHNIQUES = 16
} technique;

static const char *const names[] = {"text",   "cold", "mmap",  "preload",   "simd",   "overlap",
                                    "async",  "tf32", "bf16",  "fused",     "graphs", "flash",
                                    "padded", "tied", "accum", "recompute", NULL};

#define SETS(field, value) offsetof(sgt_config, field), value

/* the techniques, in the order in which they are turned on */
static const struct {
    const char *about;
    /* reason why the technique cannot be measured on a CPU; NULL if it can */
    const char *not_on_cpu;
    /* field: byte offset in sgt_config of the int that turns the technique on, or 0 if make_config
     * has other code for this. value: value of this int in the row of the technique and in all
     * later rows. */
    size_t field;
    int value;
} techniques[] = {
    {"text encoded each step", NULL, SETS(loader, SGT_READER_MMAP)},
    {"mmap, read from disk", NULL, SETS(loader, SGT_READER_MMAP)},
    {"mmap, in page cache", NULL, SETS(loader, SGT_READER_MMAP)},
    {"shards held in memory", NULL, SETS(loader, SGT_READER_PRELOAD)},
    {"vectorized batching", NULL, SETS(batching, 0)},
    {"batching in parallel", NULL, SETS(step.no_overlap, 0)},
    {"metrics a step later", "a CPU has a step's metrics when the step ends",
     SETS(sync_metrics, 0)},
    {"TF32 matrix products", "CPUs do not support TF32", SETS(step.precision, SGT_PRECISION_TF32)},
    {"matrices in bf16", NULL, SETS(step.precision, SGT_PRECISION_BF16)},
    {"fused kernels", "the CPU's kernels are always fused", SETS(step.no_fuse, 0)},
    {"CUDA graphs", "CUDA graphs need a GPU", SETS(step.no_graphs, 0)},
    {"flash attention", "the CPU's attention never stores T x T scores",
     SETS(step.attention, SGT_ATTENTION_AUTO)},
    {"padded to 50,304 ids", "only CUDA pads the vocabulary", SETS(step.no_pad_vocab, 0)},
    {"head tied to embedding", NULL, SETS(no_tie, 0)},
    {"gradient accumulation", NULL, 0, 0},
    {"activations recomputed", NULL, SETS(recompute, SGT_RECOMPUTE_BLOCK)},
};

_Static_assert(sizeof techniques / sizeof *techniques == TECHNIQUES, "all techniques");
_Static_assert((int)TECHNIQUES <= 32, "room for all techniques");

/* ---- options ---- */

static struct {
    const char *rows;
    uint64_t steps, warmup, rounds;
} o;

static const sgt_option table[] = {
    {.name = "What to run"},
    {"data", 'd', SGT_OPT_TEXT, &bench_config.data, "OUT/|SHARD",
     .help = "set or shard to train on (required)"},
    {"device", .as = BENCH_ROW(DEVICE), .to = &bench_config.device},
    {"model", .as = BENCH_ROW(MODEL), .to = &bench_config.model},
    {"batch-size", 'b', SGT_OPT_COUNT, &bench_config.batch, "N",
     "rows per step, the same for all techniques", .def = "64 on CUDA, if they fit; 4 on a CPU",
     .min = 1, .max = 1 << 20},
    {"seq-len", .as = BENCH_ROW(SEQ), .to = &bench_config.seq, .def = "1024 on CUDA, 64 on a CPU"},
    {"rows", 0, SGT_OPT_TEXT, &o.rows, "LIST",
     "techniques to measure, separated by commas:", .def = "all", .choices = names},
    {"threads", .as = BENCH_ROW(THREADS), .to = &bench_config.threads},
    {.name = "How"},
    {"steps", 0, SGT_OPT_COUNT, &o.steps, "N",
     "steps to measure per technique; the median is shown", .def = "10", .min = 1, .max = 100000},
    {"warmup", 0, SGT_OPT_COUNT, &o.warmup, "N", "number of steps to run before the measured steps",
     .def = "2", .min = 0, .max = 100000},
    {"rounds", 0, SGT_OPT_COUNT, &o.rounds, "N", "rounds over all techniques; the median is shown",
     .def = "1 on CUDA, 3 on a CPU", .min = 1, .max = BENCH_TURNS},
    BENCH_OUTPUT,
    {0}};

static const sgt_program program = {
    .name = "sgt-bench ablation",
    .usage = "sgt-bench ablation [OPTION]... --data OUT/",
    .about = "Measures how much faster each of sgt's training techniques makes a step. For each "
             "row of the table, a model is trained for a few steps on the same batches, with one "
             "more technique than in the row above. The techniques are, in this order: text, cold, "
             "mmap, preload, simd, overlap, async, tf32, bf16, fused, graphs, flash, padded, tied, "
             "accum and recompute (the last two save memory). Unsupported techniques are skipped.",
    .options = table,
    .examples = "  sgt-bench ablation --data out/ --model 4x256x4 --seq-len 128\n"
                "  sgt-bench ablation --data out/ --rows text,preload,tied --steps 30\n"
                "  sgt-bench ablation --data out/ --device cuda"};

/* State of the subcommand. bench.rows[t] is the row of technique t. If the technique cannot be
 * measured, bench.rows[t].why is the reason. */
static struct {
    sgt_loader *set; /* loader that is used only to list the shards, not to draw batches */
    uint32_t wanted; /* mask of the techniques to measure: bit t stands for technique t */
    size_t rounds;
    /* 1 if the batch size must not change when memory runs out, because the user has set it or an
     * earlier row was measured with it; 0 if it can be halved */
    int fits;
    json_t *last; /* values of the last measurement */
} state;

/* ---- what a row is ---- */

/* Return the training options for row t. Techniques 0 to t are turned on, except those that cannot
 * be measured on this device or with this data. Techniques that the user excluded from the table
 * with --rows are also turned on. */
static sgt_config make_config(size_t t)
{
    sgt_config c = bench_config;
    c.batching = c.sync_metrics = c.no_tie = 1;
    c.step.no_overlap = c.step.no_fuse = c.step.no_graphs = c.step.no_pad_vocab = 1;
    c.step.precision = SGT_PRECISION_FP32;
    c.step.attention = SGT_ATTENTION_NAIVE;
    for (size_t k = 0; k <= t; k++)
        if (techniques[k].field && !bench.rows[k].why[0])
            *(int *)(void *)((char *)&c + techniques[k].field) = techniques[k].value;
    /* Split the batch into c.accum micro-batches of equal size, where c.accum is the smallest
     * number from 2 on that divides the batch size. */
    if (t >= TECHNIQUE_ACCUM && c.batch > 1) c.accum = 2;
    while (c.batch % c.accum) c.accum++;
    c.batch /= c.accum;
    /* Mark the loader's reader as set by the user. Otherwise, training would use mmap instead of
     * preload if memory is short. */
    c.given[SGT_SET_LOADER] = 1;
    return c;
}

/* ---- which rows there are ---- */

/* Skip technique t, which cannot be measured for the reason `why`. Return SGT_EUNSUPPORTED if the
 * user named the technique with --rows, otherwise SGT_OK. */
static int leave_out(int t, const char *why, sgt_error *err)
{
    snprintf(bench.rows[t].why, sizeof bench.rows[t].why, "%.319s", why);
    if (bench_has(state.wanted, t) && o.rows)
        return sgt_fail(err, SGT_EUNSUPPORTED, "--rows %s: %s", names[t], why);
    state.wanted &= ~(1U << t);
    return SGT_OK;
}

/* Skip the techniques that this device or the data does not support. For example, TECHNIQUE_COLD is
 * skipped if the shards cannot be evicted from the page cache, and TECHNIQUE_TEXT if the data does
 * not use GPT-2's vocabulary. */
static int choose_rows(sgt_error *err)
{
    sgt_error cold = {0};
    char text[80] = "";
    const sgt_loader_options options = {.size = sizeof options,
                                        .data = bench_config.data,
                                        .seq = (uint32_t)bench_config.seq,
                                        .reader = SGT_READER_MMAP};
    int rc = sgt_loader_open(&state.set, &options, err);
    if (rc < 0) return rc;
    const uint32_t vocab = sgt_loader_get_info(state.set)->vocab;
    if (bench_has(state.wanted, TECHNIQUE_COLD)) bench_cache(state.set, 0, &cold);
    if (vocab != 50257)
        snprintf(text, sizeof text, "the data's vocabulary of %u ids is not GPT-2's", vocab);
    for (int t = 0; t < TECHNIQUES && rc == SGT_OK; t++) {
        const char *why = t == TECHNIQUE_TEXT   ? text
                          : t == TECHNIQUE_COLD ? cold.text
                          : bench_on_cuda()     ? NULL
                                                : techniques[t].not_on_cpu;
        if (t == TECHNIQUE_BF16 && !bench_on_cuda() && !sgt_gemm_has_bf16())
            why = "this CPU cannot multiply in bf16: it rounds to bf16 and multiplies in fp32";
        if (why && *why) rc = leave_out(t, why, err);
    }
    return rc;
}

/* ---- measuring ---- */

static int measure_step(size_t t, json_t **figures, sgt_error *err)
{
    const step_run run = {.config = make_config(t),
                          .warmup = (unsigned)o.warmup,
                          .steps = (unsigned)o.steps,
                          .text = t == TECHNIQUE_TEXT};
    int rc = SGT_OK;
    if (t == TECHNIQUE_COLD || t == TECHNIQUE_MMAP)
        rc = bench_cache(state.set, t == TECHNIQUE_MMAP, err);
    return rc == SGT_OK ? bench_step_measure(figures, &run, err) : rc;
}

static int measure_row(size_t t, json_t **figures, sgt_error *err)
{
    static const char *const fields[][2] = {
        {"ms_per_step"}, {"tokens_per_s"},           {"data_wait_ms"},
        {"loss"},        {"bytes", "backend_bytes"}, {"kernels_step", "launches_step"}};
    uint64_t *batch = &bench_config.batch, asked = *batch;
    json_t *all = NULL;
    if (!bench_has(state.wanted, (int)t)) return SGT_OK;
    if (t == TECHNIQUE_ACCUM && *batch == 1)
        return leave_out((int)t, "a batch of one row cannot be split into micro-steps", err);
    int rc = measure_step(t, &all, err);
    /* If memory runs out in the first row, halve the batch size until the row fits. Later rows need
     * no more memory than the first, so they fit with the same batch size. */
    while (rc == SGT_ENOMEM && bench_on_cuda() && !state.fits && *batch > 1) {
        *batch /= 2;
        rc = measure_step(t, &all, err);
    }
    if (rc < 0) return rc;
    if (*batch < asked)
        sgt_say(&bench.notice, "using --batch-size %u, so that the first row fits in memory",
                (unsigned)*batch);
    state.fits = 1;
    *figures = json_object();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        json_object_set(*figures, fields[i][0],
                        json_object_get(all, fields[i][1] ? fields[i][1] : fields[i][0]));
    json_decref(state.last);
    state.last = all;
    sgt_say(&bench.notice, "%s: %.3f ms/step", names[t], bench_get(*figures, "ms_per_step"));
    return SGT_OK;
}

/* ---- results ---- */

/* Add two values to a row's result: its speed relative to `above`, the result of the nearest
 * measured row above it, and its speed relative to `first`, the result of the first row. With
 * several rounds, also add the range of the row's times in all rounds. If this range overlaps the
 * range of `above`, the difference between the two rows can be noise. */
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

static void to_json(json_t *top)
{
    json_t *results = json_array(), *first = NULL, *above = NULL;
    for (int t = 0; t < TECHNIQUES; t++) {
        const bench_row *row = &bench.rows[t];
        if (!json_array_size(row->turns)) continue;
        if (!first) first = above = row->result;
        compare(row, above, first);
        json_array_append(results, row->result);
        above = row->result;
    }
    bench_put_all(top, json_pack("{s:O, s:O, s:s, s:i, s:i, s:i, s:i, s:i, s:O, s:o, s:o}",
                                 "device", json_object_get(state.last, "device"), "library",
                                 json_object_get(state.last, "library"), "model",
                                 bench_config.model, "batch", (int)bench_config.batch, "seq",
                                 (int)bench_config.seq, "threads", (int)bench_config.threads,
                                 "steps", (int)o.steps, "rounds", (int)state.rounds, "total_bytes",
                                 json_object_get(state.last, "total_bytes"), "results", results,
                                 "left_out", bench_results(0, 1)));
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
        "\n* fastest. +-: half the range of the rounds. data ms: waiting for rows, per step.\n"
        "faster: than the row above (noise: within their ranges). in all: than the first row.\n");
}

static void show(json_t *top)
{
    char total[32];
    json_t *row;
    size_t i;
    printf("%s, %s, %s; %s of memory in all\n", bench_get_text(top, "device"),
           bench_get_text(state.last, "level"), bench_get_text(top, "library"),
           sgt_format_bytes(total, sizeof total, (uint64_t)bench_get(top, "total_bytes")));
    printf("%s, steps of %u x %u tokens, medians of %zu x %u steps; each row adds a technique\n\n",
           bench_config.model, (unsigned)bench_config.batch, (unsigned)bench_config.seq,
           state.rounds, (unsigned)o.steps);
    show_table(json_object_get(top, "results"));
    if (json_object_get(state.last, "mfu"))
        printf("\nThe last row reaches %.0f %% of the speed of a large matrix product.\n",
               100 * bench_get(state.last, "mfu"));
    if (json_object_get(top, "interrupted"))
        printf("\nInterrupted: the measurements so far, each row with the rounds that it "
               "completed.\n");
    json_array_foreach(json_object_get(top, "left_out"), i, row)
    {
        printf("%s%-9s not measured: %s\n", i ? "" : "\n", bench_get_text(row, "technique"),
               bench_get_text(row, "why"));
    }
}

/* ---- the subcommand ---- */

static int measure(sgt_error *err)
{
    if (!bench_config.data)
        return sgt_fail(err, SGT_EUSAGE, "--data: required (the shards to train on: --data OUT/)");
    for (int t = 0; t < TECHNIQUES; t++)
        bench_add(json_pack("{s:s, s:s}", "technique", names[t], "about", techniques[t].about));
    state.fits = bench_config.batch != SGT_DEFAULT_COUNT;
    int rc = bench_words(&state.wanted, "rows", o.rows, names, err);
    if (rc == SGT_OK) rc = bench_choose_device(err);
    state.rounds = (size_t)(o.rounds ? o.rounds : bench_on_cuda() ? 1 : 3);
    if (rc == SGT_OK) rc = choose_rows(err);
    return rc == SGT_OK ? bench_take_turns(0, TECHNIQUES, state.rounds, measure_row, err) : rc;
}

static void release(void)
{
    sgt_loader_close(state.set);
    json_decref(state.last);
}

const bench_subcommand bench_ablation = {
    .command = {"ablation", "how much faster each training technique makes a step", &program,
                bench_run_subcommand},
    .partial = 1,
    .measure = measure,
    .json = to_json,
    .show = show,
    .release = release};
