/* step.c: sgt-bench step: measures forward, backward and update of a GPT-2, and PyTorch's step in
 * the same run; or, for several batch sizes, each step with its estimated and its peak memory. */
#include "tools/bench/step.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "tools/bench/bench.h"
#include "tools/bench/script.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "train/device.h"
#include "train/sgt_train.h"

BENCH_EMBED(sgt_torch_step, "tests/peers/torch_step.py");

enum { MOST_TURNS = 100, MOST_BATCHES = 32 };

static struct {
    const char *batches, *data, *peer, *peer_mode;
    uint64_t steps, warmup, turns;
    int no_self_check, variants, parts;
} o = {.peer_mode = "default", .steps = 20, .warmup = 3, .turns = 2};

static sgt_config s; /* options of the step, as in sgt-train */
static bench_shape shape = BENCH_SHAPE;

#define ROW(name) &sgt_config_rows[SGT_SET_##name]
static const sgt_option table[] = {
    {.name = "What to run"},
    BENCH_DEVICE(shape),
    BENCH_MODEL(shape),
    {"batch-size", 'b', SGT_OPT_TEXT, &o.batches, "N|N,N,...",
     "rows of a micro-step; with several, also the memory that --estimate-memory foresees for each",
     .def = "64 on CUDA, 4 on a CPU"},
    BENCH_SEQ(shape, 1 << 20),
    {"grad-accum", .as = ROW(ACCUM), .to = &s.accum},
    BENCH_PRECISION(shape, "number format of the matrices"),
    {"optimizer", .as = ROW(OPTIMIZER), .to = &s.step.optim.kind},
    {"optimizer-state", .as = ROW(OPTIMIZER_STATE), .to = &s.step.optim.bf16_moments},
    {"dropout", .as = ROW(DROPOUT), .to = &s.step.dropout},
    {"recompute", .as = ROW(RECOMPUTE), .to = &s.recompute, .choices = sgt_recompute_words,
     .help = "what the backward pass recomputes instead of storing it"},
    {"attention", .as = ROW(ATTENTION), .to = &s.step.attention},
    {"no-fuse", .as = ROW(NO_FUSE), .to = &s.step.no_fuse},
    {"no-graphs", .as = ROW(NO_GRAPHS), .to = &s.step.no_graphs},
    {"no-overlap", .as = ROW(NO_OVERLAP), .to = &s.step.no_overlap},
    {"sync-metrics", .as = ROW(SYNC_METRICS), .to = &s.sync_metrics},
    {"sync-kernels", .as = ROW(SYNC_KERNELS), .to = &s.step.sync_kernels},
    {"no-self-check", 0, SGT_OPT_FLAG, &o.no_self_check,
     .help = "CUDA: use the fastest products without checking their results"},
    {"no-pad-vocab", .as = ROW(NO_PAD_VOCAB), .to = &s.step.no_pad_vocab},
    {"variant", .as = ROW(VARIANT), .to = &s.variant,
     .help = "optional kernels of a step, separated by commas; or all, none (CUDA)"},
    {"variants", 0, SGT_OPT_FLAG, &o.variants, .help = "list the variants, and do not measure"},
    {"deterministic", .as = ROW(DETERMINISTIC), .to = &s.step.deterministic},
    BENCH_THREADS(shape),
    {"data", 'd', SGT_OPT_TEXT, &o.data, "OUT/|SHARD", "shards to take rows from",
     .def = "random tokens"},
    {"loader", .as = ROW(LOADER), .to = &s.loader},
    {.name = "How"},
    {"steps", 0, SGT_OPT_COUNT, &o.steps, "N", "steps to measure; the median is shown", .def = "20",
     .min = 1, .max = 100000},
    {"warmup", 0, SGT_OPT_COUNT, &o.warmup, "N", "steps before the measured ones", .def = "3",
     .min = 0, .max = 100000},
    {"parts", 0, SGT_OPT_FLAG, &o.parts,
     .help = "also print milliseconds for each part of a step, or with CUDA for each kernel"},
    {"peer", 0, SGT_OPT_TEXT, &o.peer, "PYTHON",
     .help = "compare with PyTorch's step, run by this interpreter in alternating turns"},
    {"peer-mode", 0, SGT_OPT_CHOICE, &o.peer_mode, "default|max-autotune|eager",
     "mode of torch.compile", .def = "default"},
    {"turns", 0, SGT_OPT_COUNT, &o.turns, "N",
     "with --peer: turns of each program; medians are shown", .def = "2", .min = 1,
     .max = MOST_TURNS},
    BENCH_OUTPUT(shape.output),
    {0}};

static const sgt_program program = {
    .name = "sgt-bench step",
    .usage = "sgt-bench step [OPTION]...",
    .about = "Measures a whole training step (forward, backward, clipping, update) over random "
             "tokens, or over shards.",
    .options = table,
    .examples = "  sgt-bench step --model 4x256x4 --seq-len 512 --batch-size 8 --parts\n"
                "  sgt-bench step --model 4x256x4 --seq-len 512 --batch-size 8 --peer python3\n"
                "  sgt-bench step --model 4x256x4 --seq-len 512 --batch-size 4,8,16\n"
                "  sgt-bench step --device cuda --batch-size 64 --seq-len 1024 --precision bf16 "
                "--data out"};

/* The peer's step. */
typedef struct peer_result {
    char name[96]; /* "torch 2.9.1 default"; "": there is no peer */
    double ms, tokens_per_s, first_steps_s;
    uint64_t peak_bytes;
} peer_result;

/* A batch size of several. Bytes are of the process on a CPU, and of the device on CUDA. */
typedef struct batch_row {
    uint64_t batch, activations, estimate, available;
    double ms, tokens_per_s;
    uint64_t peak; /* 0: not measured, for the reason in `why` */
    char why[200];
} batch_row;

typedef struct step_bench {
    sgt_backend_options backend;
    const char *device;
    char *cache;
    const sgt_stop *stop;
    sgt_notice notice;
    step_result r;
    peer_result peer;
    batch_row rows[MOST_BATCHES]; /* the batch sizes, if there are several */
    size_t count;
} step_bench;

/* ---- set-up ---- */

/* Read --batch-size: set shape.batch to a single number, or add a row for each of several. */
static int read_batches(step_bench *b, sgt_error *err)
{
    char *words[MOST_BATCHES];
    int count = o.batches ? sgt_split_list(o.batches, words, MOST_BATCHES) : 0, bad = count < 0;
    for (int i = 0; i < count; i++) {
        uint64_t *batch = &b->rows[i].batch;
        bad |= sgt_parse_count(words[i], batch) != 0 || *batch < 1 || *batch > 1 << 20;
        free(words[i]);
    }
    if (bad)
        return sgt_fail(err, SGT_EUSAGE,
                        "--batch-size %s: must be a number from 1 to 1048576, or at most %d of "
                        "them, such as 16,32",
                        o.batches, MOST_BATCHES);
    if (count == 1) shape.batch = b->rows[0].batch;
    if (count > 1) b->count = (size_t)count;
    if (b->count && (o.peer || o.parts))
        return sgt_fail(err, SGT_EUSAGE, "%s: needs one --batch-size",
                        o.peer ? "--peer" : "--parts");
    return SGT_OK;
}

/* Decide the settings that depend on the device, and derive the backend's options from them. */
static int read_options(step_bench *b, sgt_error *err)
{
    int cuda = strcmp(b->device, "cuda") == 0;
    sgt_backend_options *k = &b->backend;
    s.device = cuda ? SGT_DEVICE_CUDA : SGT_DEVICE_CPU;
    if (cuda && !s.variant) s.variant = "default";
    s.model = shape.model;
    s.seq = bench_seq(&shape, cuda);
    s.threads = (uint64_t)bench_threads(&shape);
    s.step.precision = (int)bench_precision(&shape, cuda);
    int rc = sgt_config_step(&s, err);
    if (rc < 0) return rc;
    *k = s.step;
    k->batch = bench_batch(&shape, cuda);
    k->seq = (uint32_t)s.seq;
    k->threads = (int)s.threads;
    k->precision = (sgt_precision)s.step.precision;
    k->notice = k->detail = b->notice;
    k->unverified = o.no_self_check;
    k->cache = b->cache;
    rc = sgt_model_named(&k->model, shape.model, err);
    if (k->seq > k->model.positions) k->model.positions = k->seq;
    return rc;
}

/* ---- ours ---- */

static int open_data(sgt_loader **l, step_rows **rows, step_bench *b, sgt_error *err)
{
    sgt_loader_options options = {.reader = (sgt_reader)s.loader,
                                  .batch = b->backend.batch,
                                  .seq = b->backend.seq,
                                  .seed = 1,
                                  .notice = b->notice};
    sgt_loader_info info;
    int rc = sgt_loader_open(l, o.data, &options, err);
    if (rc < 0) return rc;
    sgt_loader_get_info(*l, &info);
    b->backend.model.vocab = info.vocab;
    return bench_rows_loader(rows, *l, s.step.no_overlap, err);
}

/* Measure our step with the backend's options, whose vocabulary becomes that of the data. */
static int measure_ours(step_bench *b, sgt_error *err)
{
    const sgt_backend_options *k = &b->backend;
    sgt_loader *l = NULL;
    step_run run = {.device = b->device,
                    .backend = k,
                    .warmup = (unsigned)o.warmup,
                    .steps = (unsigned)o.steps,
                    .sync_metrics = s.sync_metrics,
                    .parts = o.parts,
                    .stop = b->stop};
    int rc = o.data ? open_data(&l, &run.rows, b, err)
                    : bench_rows_random(&run.rows, k->model.vocab, k->batch, k->seq, err);
    if (rc == SGT_OK) rc = bench_step_measure(&b->r, &run, err);
    bench_rows_free(run.rows);
    sgt_loader_close(l);
    return rc;
}

/* ---- the peer ---- */

static int read_peer(peer_result *r, const char *said, sgt_error *err)
{
    json_t *j = json_loads(said, 0, NULL);
    const char *name = json_string_value(json_object_get(j, "peer"));
    *r = (peer_result){.ms = json_number_value(json_object_get(j, "ms_per_step")),
                       .tokens_per_s = json_number_value(json_object_get(j, "tokens_per_s")),
                       .first_steps_s = json_number_value(json_object_get(j, "first_steps_s")),
                       .peak_bytes = (uint64_t)json_number_value(json_object_get(j, "peak_bytes"))};
    snprintf(r->name, sizeof r->name, "%s", name ? name : "");
    json_decref(j);
    if (r->ms > 0) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED, "--peer %s: no ms_per_step in what it said: %.*s",
                    o.peer, (int)strcspn(said, "\n"), said);
}

/* Run torch_step.py, which is embedded in the program, with the same shape and number of cores. */
static int measure_peer(step_bench *b, sgt_error *err)
{
    const sgt_backend_options *k = &b->backend;
    int cpu = strcmp(b->device, "cpu") == 0;
    char layers[48], batch[16], seq[16], steps[16], accum[16], *said = malloc(BENCH_SAID);
    if (!said) return sgt_fail_memory(err, NULL);
    snprintf(layers, sizeof layers, "%ux%ux%u", k->model.layers, k->model.channels, k->model.heads);
    snprintf(batch, sizeof batch, "%u", k->batch);
    snprintf(seq, sizeof seq, "%u", k->seq);
    snprintf(steps, sizeof steps, "%u", (unsigned)o.steps);
    snprintf(accum, sizeof accum, "%u", k->accum ? k->accum : 1);
    const char *args[] = {
        layers,     batch,     seq,      "--precision", sgt_precision_words[k->precision],
        "--device", b->device, "--mode", o.peer_mode,   "--steps",
        steps,      "--accum", accum,    NULL};
    bench_script script = {.python = o.peer,
                           .name = "torch_step.py",
                           .text = sgt_torch_step,
                           .args = args,
                           .threads = cpu ? k->threads : 0,
                           .stop = b->stop};
    if (cpu) {
        /* By default glibc returns large blocks to the kernel at every step, and PyTorch then waits
         * for page faults: it is up to 1.9 times slower without these settings. */
        setenv("GLIBC_TUNABLES",
               "glibc.malloc.mmap_threshold=34359738368:glibc.malloc.trim_threshold=34359738368:"
               "glibc.malloc.hugetlb=1",
               1);
        setenv("THP_MEM_ALLOC_ENABLE", "1", 1);
    }
    int rc = bench_script_run(&script, said, err);
    if (rc == SGT_OK) rc = read_peer(&b->peer, said, err);
    free(said);
    return rc;
}

/* Measure ours and the peer's in turn. Each time is the median of the turns. The peak is the
 * highest of the turns, because other programs can only lower it. All else is taken from the last
 * turn. */
static int measure_turns(step_bench *b, sgt_error *err)
{
    double ours[MOST_TURNS], theirs[MOST_TURNS], peak = 0;
    size_t turns = o.peer ? (size_t)o.turns : 1;
    for (size_t i = 0; i < turns; i++) {
        int rc = measure_ours(b, err);
        if (rc == SGT_OK && o.peer) rc = measure_peer(b, err);
        if (rc < 0) return rc;
        if (b->r.peak_flops > peak) peak = b->r.peak_flops;
        ours[i] = b->r.ms;
        theirs[i] = b->peer.ms;
    }
    b->r.peak_flops = peak;
    double ms = bench_median(ours, turns);
    b->r.tokens_per_s *= b->r.ms / ms;
    b->r.flops *= b->r.ms / ms;
    b->r.ms = ms;
    if (!o.peer) return SGT_OK;
    ms = bench_median(theirs, turns);
    b->peer.tokens_per_s *= b->peer.ms / ms;
    b->peer.ms = ms;
    return SGT_OK;
}

/* ---- several batch sizes ---- */

/* Estimate what a step holds. The loader's and the checkpoint's memory, which these steps do
 * without, is left out. */
static int estimate_row(batch_row *row, sgt_error *err)
{
    sgt_train_estimate e;
    const sgt_train_options none = {.run = "run"};
    sgt_config copy = s;
    copy.batch = row->batch;
    copy.data = o.data;
    int rc = sgt_train_estimate_memory(&copy, &none, &e, err);
    if (rc < 0) return rc;
    row->activations = sgt_train_estimate_activations(&e);
    row->available = e.available;
    for (size_t i = 0; i < e.count; i++)
        if (strcmp(e.kinds[i].name, "loader") != 0 && strcmp(e.kinds[i].name, "checkpoint") != 0)
            row->estimate += e.kinds[i].bytes;
    return SGT_OK;
}

/* Let the kernel forget the process's peak memory so far (proc(5), clear_refs). Where it cannot,
 * the peak of a batch size is that of the largest so far. */
static void reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "we");
    if (!f) return;
    fputs("5", f);
    fclose(f);
}

static int measure_row(step_bench *b, batch_row *row, sgt_error *err)
{
    sgt_error why;
    int rc = estimate_row(row, err);
    if (rc < 0) return rc;
    snprintf(row->why, sizeof row->why, "more than the free memory");
    if (row->estimate > row->available) return SGT_OK;
    b->backend.batch = (uint32_t)row->batch;
    reset_peak();
    rc = measure_ours(b, &why);
    if (rc == SGT_ENOMEM) snprintf(row->why, sizeof row->why, "%.199s", why.text);
    if (rc < 0) return rc == SGT_ENOMEM ? SGT_OK : sgt_fail(err, rc, "%s", why.text);
    row->peak = b->r.peak_bytes;
    row->ms = b->r.ms;
    row->tokens_per_s = b->r.tokens_per_s;
    sgt_say(&b->notice, "%" PRIu64 " rows: %.3f ms/step", row->batch, row->ms);
    return SGT_OK;
}

static json_t *row_json(const batch_row *row)
{
    json_t *j =
        json_pack("{s:I, s:I, s:I, s:b, s:o}", "batch", (json_int_t)row->batch, "activation_bytes",
                  (json_int_t)row->activations, "estimate_bytes", (json_int_t)row->estimate, "fits",
                  row->estimate <= row->available, "peak_bytes",
                  row->peak ? json_integer((json_int_t)row->peak) : json_null());
    bench_put(j, "ms_per_step", row->ms);
    bench_put(j, "tokens_per_s", row->tokens_per_s);
    if (j && !row->peak) json_object_set_new(j, "why", json_string(row->why));
    return j;
}

static json_t *batches_json(const step_bench *b)
{
    json_t *results = json_array();
    for (size_t i = 0; i < b->count; i++) json_array_append_new(results, row_json(&b->rows[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:o}", "cpu", sgt_cpu_model(), "device",
                     b->device, "model", shape.model, "precision",
                     sgt_precision_words[s.step.precision], "seq", (json_int_t)s.seq, "threads",
                     (json_int_t)s.threads, "results", results);
}

static void show_batches(const step_bench *b)
{
    static const bench_column columns[] = {{.key = "batch", .head = "rows"},
                                           {"activation_bytes", "activations", .kind = BENCH_BYTES},
                                           {"estimate_bytes", "estimate", .kind = BENCH_BYTES},
                                           {"peak_bytes", "peak", .kind = BENCH_BYTES},
                                           {"ratio", "estimate/peak", .decimals = 3},
                                           {"ms_per_step", "ms/step", .decimals = 3},
                                           {.key = "tokens_per_s", .head = "tokens/s"},
                                           {0}};
    int cuda = strcmp(b->device, "cuda") == 0;
    char machine[160];
    json_t *top = batches_json(b), *rows = json_object_get(top, "results");
    for (size_t i = 0; i < b->count; i++)
        if (b->rows[i].peak)
            bench_put(json_array_get(rows, i), "ratio",
                      (double)b->rows[i].estimate / (double)b->rows[i].peak);
    printf("%s\n%s on %s, %s, rows of %" PRIu64 " tokens\n\n",
           bench_machine(machine, sizeof machine), shape.model, cuda ? "CUDA" : "the CPU",
           sgt_precision_words[s.step.precision], s.seq);
    bench_table(rows, columns, "tokens_per_s");
    printf("\n* the fastest. estimate: as sgt-train --estimate-memory, without the loader and the "
           "checkpoint.\npeak: %s.\n",
           cuda ? "of what the device held" : "the most memory that was resident");
    json_decref(top);
}

/* ---- results ---- */

static json_t *parts_json(const step_result *r)
{
    json_t *parts = json_object();
    for (size_t i = 0; i < r->part_count; i++)
        json_object_set_new(parts, r->parts[i].name, json_real(r->parts[i].ms));
    return parts;
}

/* Return the parts of a step as an array, with their speeds where bytes or operations are known. */
static json_t *kernels_json(const step_result *r)
{
    json_t *kernels = json_array();
    for (size_t i = 0; i < r->part_count; i++) {
        const step_part *p = &r->parts[i];
        json_t *k =
            json_pack("{s:s, s:f, s:f}", "name", p->name, "launches", p->launches, "ms", p->ms);
        bench_put(k, "gb_per_s", p->ms > 0 ? p->bytes / p->ms * 1e-6 : 0);
        bench_put(k, "tflops", p->ms > 0 ? p->flops / p->ms * 1e-9 : 0);
        json_array_append_new(kernels, k);
    }
    return kernels;
}

static json_t *peer_json(const step_bench *b)
{
    const peer_result *p = &b->peer;
    return json_pack("{s:s, s:f, s:f, s:f, s:I, s:f, s:f}", "name", p->name, "ms_per_step", p->ms,
                     "tokens_per_s", p->tokens_per_s, "first_steps_s", p->first_steps_s,
                     "peak_bytes", (json_int_t)p->peak_bytes, "ratio", p->ms / b->r.ms,
                     "memory_ratio", (double)b->r.peak_bytes / (double)p->peak_bytes);
}

/* Add the values that not every run has; unknown ones are left out. */
static void add_known(json_t *top, const step_bench *b)
{
    const step_result *r = &b->r;
    char names[SGT_VARIANTS_TEXT];
    if (r->peak_flops > 0) bench_put(top, "mfu", r->flops / r->peak_flops);
    bench_put(top, "peak_tflops", r->peak_flops * 1e-12);
    if (r->datasheet_flops > 0) bench_put(top, "mfu_datasheet", r->flops / r->datasheet_flops);
    if (r->launches_step) {
        json_object_set_new(top, "launches_forward", json_integer((json_int_t)r->launches_forward));
        json_object_set_new(top, "launches_step", json_integer((json_int_t)r->launches_step));
    }
    if (strcmp(b->device, "cuda") == 0)
        json_object_set_new(top, "variants",
                            json_string(sgt_variants_words(names, b->backend.variants)));
    if (r->seen_step)
        json_object_set_new(top, "cupti_kernels_step", json_integer((json_int_t)r->seen_step));
    if (o.parts && r->parts_ms > 0) {
        json_object_set_new(top, "kernels", kernels_json(r));
        json_object_set_new(top, "idle_ms", json_real(r->idle_ms));
        json_object_set_new(top, "step_ms", json_real(r->parts_ms));
    } else if (o.parts) json_object_set_new(top, "parts_ms", parts_json(r));
    if (o.peer) json_object_set_new(top, "peer", peer_json(b));
}

static json_t *to_json(void *bench)
{
    const step_bench *b = bench;
    if (b->count) return batches_json(b);
    const step_result *r = &b->r;
    const sgt_backend_options *k = &b->backend;
    json_t *top = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, "
        "s:f, s:I, s:I, s:I}",
        "cpu", sgt_cpu_model(), "device", r->device, "level", r->level, "library", r->library,
        "model", shape.model, "precision", sgt_precision_words[k->precision], "batch",
        (int)k->batch, "seq", (int)k->seq, "accum", (int)k->accum, "threads", k->threads, "steps",
        (int)r->steps, "ms_per_step", r->ms, "tokens_per_s", r->tokens_per_s, "tflops",
        r->flops * 1e-12, "data_wait_ms", r->wait_ms, "loss", r->loss, "open_s", r->open_s,
        "first_step_s", r->first_s, "backend_bytes", (json_int_t)r->bytes, "peak_bytes",
        (json_int_t)r->peak_bytes, "total_bytes", (json_int_t)r->total_bytes);
    if (top) add_known(top, b);
    return top;
}

/* Add a row that is not a part itself, so that the rows of a table add up. */
static void add_rest(json_t *rows, const char *name, double ms, double step)
{
    json_array_append_new(rows,
                          json_pack("{s:s, s:f, s:f}", "name", name, "ms", ms, "share", ms / step));
}

/* Print where the time of a step goes. Of kernels, what is idle is added, and time in which two ran
 * at once is subtracted, so that the rows add up to the step. */
static void show_parts(const step_bench *b)
{
    const step_result *r = &b->r;
    int kernels = r->parts_ms > 0;
    double step = kernels ? r->parts_ms : r->ms, rest = step;
    const bench_column columns[] = {{"name", kernels ? "kernel" : "part", .kind = BENCH_TEXT},
                                    {.key = "launches", .head = "launches"},
                                    {"ms", "ms/step", .decimals = 3},
                                    {"share", "of the step", BENCH_PERCENT, 1, 100},
                                    {"gb_per_s", "GB/s", .decimals = 1},
                                    {"tflops", "TFLOP/s", .decimals = 1},
                                    {0}};
    json_t *rows = kernels_json(r);
    for (size_t i = 0; i < r->part_count; i++) {
        json_t *row = json_array_get(rows, i);
        bench_put(row, "share", r->parts[i].ms / step);
        if (!kernels) json_object_del(row, "launches");
        rest -= r->parts[i].ms;
    }
    if (kernels) {
        add_rest(rows, "two at once", rest - r->idle_ms, step);
        add_rest(rows, "idle", r->idle_ms, step);
        add_rest(rows, "step", step, step);
    } else add_rest(rows, "anything else", rest, step);
    putchar('\n');
    bench_table(rows, columns, "");
    json_decref(rows);
    if (!kernels && b->backend.threads > 1)
        puts("\nmost of an update is done beside the next step's forward pass, and counts there");
}

/* Print our step and the peer's. The document itself is the row of ours. */
static void show_steps(const step_bench *b, int slow)
{
    const step_result *r = &b->r;
    const bench_column columns[] = {
        {"program", "", .kind = BENCH_TEXT},
        {"ms_per_step", "ms/step", .decimals = 3},
        {.key = "tokens_per_s", .head = "tokens/s"},
        {"tflops", slow ? "GFLOP/s" : "TFLOP/s", .decimals = 1, .scale = slow ? 1e3 : 1},
        {"mfu", "of peak", BENCH_PERCENT, 1, 100},
        {"data_wait_ms", "wait ms", .decimals = 3},
        {"start_s", "start s", .decimals = 2},
        {"peak_bytes", "peak", .kind = BENCH_BYTES},
        {0}};
    json_t *rows = json_array(), *ours = to_json((void *)(uintptr_t)b);
    json_object_set_new(ours, "program", json_string("sgt"));
    json_object_set_new(ours, "start_s", json_real(r->open_s + r->first_s));
    json_array_append(rows, ours);
    json_t *peer = json_object_get(ours, "peer");
    json_object_set_new(peer, "program", json_string(b->peer.name));
    json_object_set_new(peer, "start_s", json_real(b->peer.first_steps_s));
    if (peer) json_array_append(rows, peer);
    bench_table(rows, columns, "tokens_per_s");
    json_decref(ours);
    json_decref(rows);
}

static void show(void *bench)
{
    const step_bench *b = bench;
    char machine[160], turns[48];
    const step_result *r = &b->r;
    const sgt_backend_options *k = &b->backend;
    int slow = r->flops < 1e12;
    if (b->count) {
        show_batches(b);
        return;
    }
    printf("%s\n%s, %s, %s\n", bench_machine(machine, sizeof machine), r->device, r->level,
           r->library);
    printf("%s, %s, %u x %u x %u tokens a step; median of %u\n\n", shape.model,
           sgt_precision_words[k->precision], k->accum, k->batch, k->seq, r->steps);
    show_steps(b, slow);
    printf("\n* the fastest. start: until the first step was done%s.\n",
           o.peer ? "; of the peer, five steps" : "");
    if (o.peer)
        printf("ours is %.3f times as fast, with %.3f times the memory; medians of %s\n",
               b->peer.ms / r->ms, (double)r->peak_bytes / (double)b->peer.peak_bytes,
               sgt_format_things(turns, sizeof turns, o.turns, "turn", "turns"));
    if (r->peak_flops > 0)
        printf("peak, a large product of matrices: %.1f %s\n",
               r->peak_flops * (slow ? 1e-9 : 1e-12), slow ? "GFLOP/s" : "TFLOP/s");
    if (r->datasheet_flops > 0)
        printf("%.1f %% of the datasheet's speed\n", 100 * r->flops / r->datasheet_flops);
    if (r->launches_step)
        printf("%u kernels a forward pass, %u a step\n", r->launches_forward, r->launches_step);
    if (r->seen_step) printf("%u a step, as CUPTI counts them\n", r->seen_step);
    if (o.parts) show_parts(b);
}

/* ---- the subcommand ---- */

static int list_variants(void)
{
    for (int i = 0; i < SGT_VARIANTS; i++)
        printf("%s\t%s\n", sgt_variants[i].name, sgt_variants[i].what);
    return 1;
}

static int measure(void *bench, const bench_call *call, sgt_error *err)
{
    step_bench *b = bench;
    if (o.variants) return list_variants();
    b->stop = call->stop;
    b->notice = call->notice;
    b->device = shape.device;
    b->cache = sgt_cache_folder();
    int rc = read_batches(b, err);
    if (rc == SGT_OK) rc = sgt_device_choose(&b->device, &b->notice, err);
    if (rc == SGT_OK) rc = read_options(b, err);
    if (rc == SGT_OK && !b->count) return measure_turns(b, err);
    for (size_t i = 0; i < b->count && rc == SGT_OK; i++) rc = measure_row(b, &b->rows[i], err);
    return rc;
}

static void release(void *bench) { free(((step_bench *)bench)->cache); }

static const bench_subcommand step = {.program = &program,
                                      .output = &shape.output,
                                      .size = sizeof(step_bench),
                                      .measure = measure,
                                      .json = to_json,
                                      .show = show,
                                      .release = release};

static int bench_step(int argc, char **argv)
{
    sgt_config_default(&s);
    return bench_subcommand_run(&step, argc, argv);
}

const sgt_command bench_step_command = {"step", "a whole training step", &program, bench_step};
