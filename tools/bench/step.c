/* step.c: the subcommand `sgt-bench step`, which measures a training step of GPT-2 (forward pass,
 * backward pass and update) and, with --peer, the same step in PyTorch. If a list of batch sizes is
 * given, it measures a step with each of them, and also prints the estimated and the peak
 * memory. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bench.h"
#include "tools/cli/talk.h"
#include "train/sgt_train.h"

BENCH_EMBED(sgt_torch_step, "tests/peers/torch_step.py");

static struct {
    const char *batches, *peer, *peer_mode;
    uint64_t steps, warmup, turns;
    int variants, parts;
} o;

static const sgt_option table[] = {
    {.name = "What to run"},
    {"device", .as = BENCH_ROW(DEVICE), .to = &bench_config.device},
    {"model", .as = BENCH_ROW(MODEL), .to = &bench_config.model},
    {"batch-size", 'b', SGT_OPT_TEXT, &o.batches, "N|N,N,...",
     "rows per micro-step; a list of sizes also shows predicted and measured memory",
     .def = "64 on CUDA, 4 on a CPU"},
    {"seq-len", .as = BENCH_ROW(SEQ), .to = &bench_config.seq, .def = "1024 on CUDA, 64 on a CPU"},
    {"grad-accum", .as = BENCH_ROW(ACCUM), .to = &bench_config.accum},
    {"precision", .as = BENCH_ROW(PRECISION), .to = &bench_config.step.precision,
     .def = "bf16 on CUDA, fp32 on a CPU"},
    {"optimizer", .as = BENCH_ROW(OPTIMIZER), .to = &bench_config.step.optim.kind},
    {"optimizer-state", .as = BENCH_ROW(OPTIMIZER_STATE),
     .to = &bench_config.step.optim.bf16_moments},
    {"dropout", .as = BENCH_ROW(DROPOUT), .to = &bench_config.step.dropout},
    {"recompute", .as = BENCH_ROW(RECOMPUTE), .to = &bench_config.recompute,
     .choices = sgt_recompute_words,
     .help = "activations to recompute in the backward pass rather than store"},
    {"no-self-check", 0, SGT_OPT_FLAG, &bench_config.step.unverified,
     .help = "use the fastest matrix products without checking their results (CUDA)"},
    {"variants", 0, SGT_OPT_FLAG, &o.variants,
     .help = "print the names that --variant accepts, and exit"},
    {"deterministic", .as = BENCH_ROW(DETERMINISTIC), .to = &bench_config.step.deterministic},
    {"threads", .as = BENCH_ROW(THREADS), .to = &bench_config.threads},
    {"data", 'd', SGT_OPT_TEXT, &bench_config.data, "OUT/|SHARD",
     "set or shard from which to draw rows", .def = "random tokens"},
    {"loader", .as = BENCH_ROW(LOADER), .to = &bench_config.loader},
    {.name = "Techniques", .kind = SGT_OPT_ROWS, .section = SGT_SECTION_TECHNIQUES},
    {.name = "How"},
    {"steps", 0, SGT_OPT_COUNT, &o.steps, "N", "number of steps to measure; the median is shown",
     .def = "20", .min = 1, .max = 100000},
    {"warmup", 0, SGT_OPT_COUNT, &o.warmup, "N", "number of steps to run before the measured steps",
     .def = "3", .min = 0, .max = 100000},
    {"parts", 0, SGT_OPT_FLAG, &o.parts,
     .help = "also print the time of each kernel in a step (CUDA)"},
    {"peer", 0, SGT_OPT_TEXT, &o.peer, "PYTHON",
     .help = "also measure PyTorch with this Python interpreter, alternating with sgt"},
    {"peer-mode", 0, SGT_OPT_CHOICE, &o.peer_mode, "default|max-autotune|eager",
     "mode of torch.compile", .def = "default"},
    {"turns", 0, SGT_OPT_COUNT, &o.turns, "N",
     "with --peer: number of measurements per program; medians are shown", .def = "2", .min = 1,
     .max = BENCH_TURNS},
    BENCH_OUTPUT,
    {0}};

static const sgt_program program = {
    .name = "sgt-bench step",
    .usage = "sgt-bench step [OPTION]...",
    .about = "Measures complete training steps (forward pass, backward pass, gradient clipping "
             "and update) on random tokens or, with --data, on shards.",
    .options = table,
    .rows = sgt_config_rows,
    .settings = &bench_config,
    .given = bench_config.given,
    .examples = "  sgt-bench step --model 4x256x4 --seq-len 512 --batch-size 8\n"
                "  sgt-bench step --model 4x256x4 --seq-len 512 --batch-size 8 --peer python3\n"
                "  sgt-bench step --model 4x256x4 --seq-len 512 --batch-size 4,8,16\n"
                "  sgt-bench step --device cuda --batch-size 64 --seq-len 1024 --precision bf16 "
                "--data out"};

static struct {
    uint64_t batches[BENCH_ROWS]; /* batch sizes; batches[0] is 0 for the default batch size */
    /* Number of batch sizes. For each of them, a row of the table measures sgt's training step.
     * With --peer, the next row measures PyTorch's step. */
    size_t batch_count;
} state;

/* ---- set-up ---- */

/* Parse the argument of --batch-size, which is a number or a comma-separated list of numbers. */
static int read_batches(sgt_error *err)
{
    char word[32];
    size_t count = 0, n;
    int bad = 0;
    for (const char *at = o.batches; at && !bad; at = at[n] ? at + n + 1 : NULL, count++) {
        uint64_t *batch = &state.batches[count];
        n = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        bad = count == BENCH_ROWS || n >= sizeof word || sgt_parse_count(word, batch) < 0 ||
              *batch < 1 || *batch > 1 << 20;
    }
    state.batch_count = count > 1 ? count : 1;
    if (bad)
        return sgt_fail(err, SGT_EUSAGE,
                        "--batch-size %s: expected a number from 1 to 1048576, or a list of up to "
                        "%d, such as 16,32",
                        o.batches, BENCH_ROWS);
    if (count > 1 && (o.peer || o.parts))
        return sgt_fail(err, SGT_EUSAGE, "%s: needs a single --batch-size",
                        o.peer ? "--peer" : "--parts");
    if (count) bench_config.batch = state.batches[0];
    return SGT_OK;
}

/* ---- the peer ---- */

/* Measure a training step in PyTorch with the same model, batch size and number of CPU cores, by
 * running the embedded script torch_step.py. */
static int take_peer(json_t **figures, sgt_error *err)
{
    const sgt_config *s = &bench_config;
    int cpu = !bench_on_cuda();
    sgt_model m;
    json_t *answer;
    int rc = sgt_model_named(&m, s->model, err);
    if (rc < 0) return rc;
    bench_script script = {.python = o.peer,
                           .text = sgt_torch_step,
                           .needs = "ms_per_step",
                           .threads = cpu ? (int)s->threads : 0};
    snprintf(script.words, sizeof script.words,
             "%ux%ux%u %u %u --precision %s --device %s --mode %s --steps %u --accum %u", m.layers,
             m.channels, m.heads, (unsigned)s->batch, (unsigned)s->seq,
             sgt_precision_words[s->step.precision], cpu ? "cpu" : "cuda", o.peer_mode,
             (unsigned)o.steps, (unsigned)s->accum);
    if (cpu) {
        /* With these settings, glibc does not return large blocks to the kernel in every step.
         * Without them, page faults make PyTorch's step up to 1.9 times slower. */
        setenv("GLIBC_TUNABLES",
               "glibc.malloc.mmap_threshold=34359738368:glibc.malloc.trim_threshold=34359738368:"
               "glibc.malloc.hugetlb=1",
               1);
        setenv("THP_MEM_ALLOC_ENABLE", "1", 1);
    }
    if ((rc = bench_script_run(&script, &answer, err)) < 0) return rc;
    const char *name = bench_get_text(answer, "peer");
    *figures = json_pack("{s:s, s:f, s:f, s:f, s:I}", "name", name ? name : "", "ms_per_step",
                         bench_get(answer, "ms_per_step"), "tokens_per_s",
                         bench_get(answer, "tokens_per_s"), "first_steps_s",
                         bench_get(answer, "first_steps_s"), "peak_bytes",
                         (json_int_t)bench_get(answer, "peak_bytes"));
    json_decref(answer);
    return SGT_OK;
}

/* ---- several batch sizes ---- */

/* Estimate the memory that a training step needs, and add the estimate to the row. It does not
 * include the memory of the loader. */
static int estimate(bench_row *row, sgt_error *err)
{
    sgt_train_estimate e;
    const sgt_train_options none = {0};
    sgt_config copy = bench_config;
    uint64_t bytes = 0;
    int rc = sgt_train_estimate_memory(&copy, &none, &e, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < e.count; i++)
        if (strcmp(e.kinds[i].name, "loader") != 0) bytes += e.kinds[i].bytes;
    bench_put_all(row->result,
                  json_pack("{s:I, s:I, s:I, s:b, s:n}", "batch", (json_int_t)copy.batch,
                            "activation_bytes", (json_int_t)sgt_train_estimate_activations(&e),
                            "estimate_bytes", (json_int_t)bytes, "fits", bytes <= e.available,
                            "peak_bytes"));
    if (bytes > e.available) snprintf(row->why, sizeof row->why, "needs more than the free memory");
    return SGT_OK;
}

/* Reset the peak memory that Linux records for this process (clear_refs in proc(5)), so that each
 * batch size gets its own peak. If this fails, the peak also includes all batch sizes that were
 * measured before. */
static void reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "we");
    if (!f) return;
    fputs("5", f);
    fclose(f);
}

/* Measure row i of the table: sgt's training step with the batch size state.batches[i] if i <
 * state.batch_count, otherwise PyTorch's training step. */
static int measure_row(size_t i, json_t **figures, sgt_error *err)
{
    bench_row *row = &bench.rows[i];
    const int several = state.batch_count > 1;
    if (i == state.batch_count) return take_peer(figures, err);
    if (several) bench_config.batch = state.batches[i];
    int rc = several ? estimate(row, err) : SGT_OK;
    if (rc < 0 || row->why[0]) return rc;
    if (several) reset_peak();
    const step_run run = {.config = bench_config,
                          .warmup = (unsigned)o.warmup,
                          .steps = (unsigned)o.steps,
                          .parts = o.parts};
    rc = bench_step_measure(figures, &run, err);
    if (several && rc == SGT_ENOMEM) return bench_leave_out(row, SGT_EUNSUPPORTED, NULL, err);
    if (several && rc == SGT_OK)
        sgt_say(&bench.notice, "%" PRIu64 " rows: %.3f ms/step", state.batches[i],
                bench_get(*figures, "ms_per_step"));
    return rc;
}

/* ---- results ---- */

static void to_json(json_t *top)
{
    const sgt_config *s = &bench_config;
    char names[SGT_VARIANTS_TEXT];
    bench_put_all(top, json_pack("{s:s, s:s, s:s, s:i, s:i, s:i}", "device",
                                 bench_on_cuda() ? "cuda" : "cpu", "model", s->model, "precision",
                                 sgt_precision_words[s->step.precision], "seq", (int)s->seq,
                                 "accum", (int)s->accum, "threads", (int)s->threads));
    if (state.batch_count > 1) {
        json_t *results = json_array();
        for (const bench_row *r = bench.rows; r < bench.rows + bench.count; r++) {
            if (r->why[0]) bench_put_text(r->result, "why", r->why);
            json_array_append(results, r->result);
        }
        json_object_set_new(top, "results", results);
        return;
    }
    json_object_set_new(top, "batch", json_integer((json_int_t)s->batch));
    json_object_update(top, bench.rows[0].result);
    if (bench_on_cuda())
        bench_put_text(top, "variants", sgt_variants_words(names, s->step.variants));
    if (!o.peer) return;
    json_t *peer = bench.rows[1].result;
    bench_put(peer, "ratio", bench_get(peer, "ms_per_step") / bench_get(top, "ms_per_step"));
    bench_put(peer, "memory_ratio", bench_get(top, "peak_bytes") / bench_get(peer, "peak_bytes"));
    json_object_set(top, "peer", peer);
}

/* Add a row for a time that does not belong to a single kernel: idle time, overlap, or the time of
 * the step. */
static void add_rest(json_t *rows, const char *name, double ms)
{
    json_array_append_new(rows, json_pack("{s:s, s:f}", "name", name, "ms", ms));
}

/* Print a table of the kernels in a step. The times of the kernels do not add up to the time of the
 * step, because there can be gaps between kernels, and kernels can overlap. Two more rows show the
 * difference: the idle time, and the time in which kernels overlap, as a negative number. */
static void show_parts(const json_t *top)
{
    static const bench_column columns[] = {{"name", "kernel", .kind = BENCH_TEXT},
                                           {.key = "launches", .head = "launches"},
                                           {"ms", "ms/step", .decimals = 3},
                                           {"share", "of the step", BENCH_PERCENT, 1, 100},
                                           {"gb_per_s", "GB/s", .decimals = 1},
                                           {"tflops", "TFLOP/s", .decimals = 1},
                                           {0}};
    double step = bench_get(top, "step_ms"), idle = bench_get(top, "idle_ms"), rest = step - idle;
    json_t *rows = json_object_get(top, "kernels"), *row;
    size_t i;
    json_array_foreach(rows, i, row) { rest -= bench_get(row, "ms"); }
    add_rest(rows, "overlap", rest);
    add_rest(rows, "idle", idle);
    add_rest(rows, "step", step);
    json_array_foreach(rows, i, row)
    {
        json_object_set_new(row, "share", json_real(bench_get(row, "ms") / step));
    }
    putchar('\n');
    bench_table(rows, columns, "");
}

/* Print a table of the measured steps. If `several` is 1, the table has a row for each batch size.
 * If `several` is 0, it has a row for sgt's step, whose values are members of `top` itself, and,
 * with --peer, a row for PyTorch's step. */
static void show_steps(json_t *top, int several)
{
    const bench_column columns[] = {{"program", "", .kind = BENCH_TEXT},
                                    {"activation_bytes", "activations", .kind = BENCH_BYTES},
                                    {"estimate_bytes", "estimate", .kind = BENCH_BYTES},
                                    {"ms_per_step", "ms/step", .decimals = 3},
                                    {.key = "tokens_per_s", .head = "tokens/s"},
                                    {several ? "" : "tflops", "TFLOP/s", .decimals = 3},
                                    {several ? "" : "mfu", "of peak", BENCH_PERCENT, 1, 100},
                                    {several ? "" : "data_wait_ms", "wait ms", .decimals = 3},
                                    {"peak_bytes", "peak", .kind = BENCH_BYTES},
                                    {"of_estimate", "estimate/peak", .decimals = 3},
                                    {0}};
    json_t *rows = several ? json_incref(json_object_get(top, "results")) : json_array(), *row;
    json_t *peer = json_object_get(top, "peer");
    char name[32];
    size_t i;
    json_array_foreach(rows, i, row)
    {
        double peak = bench_get(row, "peak_bytes");
        snprintf(name, sizeof name, "%.0f rows", bench_get(row, "batch"));
        bench_put_text(row, "program", name);
        if (peak > 0) bench_put(row, "of_estimate", bench_get(row, "estimate_bytes") / peak);
    }
    if (!several) {
        bench_put_text(top, "program", "sgt");
        json_array_append(rows, top);
    }
    if (peer) {
        json_object_set(peer, "program", json_object_get(peer, "name"));
        json_array_append(rows, peer);
    }
    bench_table(rows, columns, "tokens_per_s");
    json_decref(rows);
}

static void show(json_t *top)
{
    const sgt_config *s = &bench_config;
    char turns[48];
    double peak = bench_get(top, "peak_tflops");
    int several = state.batch_count > 1;
    const json_t *peer = json_object_get(top, "peer");
    if (several)
        printf("%s on %s, %s, rows of %u tokens\n\n", s->model,
               bench_on_cuda() ? "CUDA" : "the CPU", sgt_precision_words[s->step.precision],
               (unsigned)s->seq);
    else
        printf("%s, %s, %s\n%s, %s, steps of %u x %u x %u tokens; medians of %u steps\n\n",
               bench_get_text(top, "device"), bench_get_text(top, "level"),
               bench_get_text(top, "library"), s->model, sgt_precision_words[s->step.precision],
               (unsigned)s->accum, (unsigned)s->batch, (unsigned)s->seq, (unsigned)o.steps);
    show_steps(top, several);
    if (several) {
        printf("\n* fastest. estimate: from sgt-train --estimate-memory, without the loader and "
               "checkpoints.\npeak: maximum memory %s.\n",
               bench_on_cuda() ? "in use on the device" : "that was resident");
        return;
    }
    printf("\n* fastest.\n");
    if (peer)
        printf("sgt is %.3f times as fast, with %.3f times the memory; medians of %s\n",
               bench_get(peer, "ratio"), bench_get(peer, "memory_ratio"),
               sgt_format_things(turns, sizeof turns, o.turns, "turn", "turns"));
    if (peak > 0) printf("peak speed, measured with a large matrix product: %.3f TFLOP/s\n", peak);
    if (json_object_get(top, "mfu_datasheet"))
        printf("%.1f %% of the datasheet's peak speed\n", 100 * bench_get(top, "mfu_datasheet"));
    if (json_object_get(top, "launches_step"))
        printf("kernel launches: %.0f per forward pass, %.0f per step\n",
               bench_get(top, "launches_forward"), bench_get(top, "launches_step"));
    if (json_object_get(top, "cupti_kernels_step"))
        printf("kernels counted by CUPTI: %.0f per step\n", bench_get(top, "cupti_kernels_step"));
    if (o.parts) show_parts(top);
}

/* ---- the subcommand ---- */

static int measure(sgt_error *err)
{
    for (int i = 0; o.variants && i < SGT_VARIANTS; i++)
        printf("%s\t%s\n", sgt_variants[i].name, sgt_variants[i].what);
    if (o.variants) return 1; /* nothing was measured */
    int rc = read_batches(err);
    if (rc == SGT_OK) rc = bench_choose_device(err);
    if (rc < 0) return rc;
    if (o.parts && !bench_on_cuda())
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "--parts: needs --device cuda (on a CPU, sgt-train --profile trace.json "
                        "shows the parts of a step)");
    size_t rows = state.batch_count + (o.peer ? 1 : 0);
    while (bench.count < rows) bench_add(NULL);
    return bench_take_turns(0, rows, o.peer ? (size_t)o.turns : 1, measure_row, err);
}

const bench_subcommand bench_step = {
    .command = {"step", "how fast a complete training step is", &program, bench_run_subcommand},
    .measure = measure,
    .json = to_json,
    .show = show};
