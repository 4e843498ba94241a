/* step.c: sgt-bench step: measures forward, backward and update of a GPT-2, and PyTorch's step in
 * the same run. */
#include "tools/bench/step.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "train/device.h"
#include "train/plan.h"
#include "tools/bench/bench.h"
#include "tools/bench/peer.h"
#include "tools/bench/shape.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"

enum { MOST_TURNS = 100 };

static struct {
    const char *data, *peer, *peer_mode;
    uint64_t steps, warmup, turns;
    int no_self_check, variants, variant_given, parts;
} o = {.peer_mode = "default", .steps = 20, .warmup = 3, .turns = 2};

static sgt_settings s; /* options of the step, as in sgt-train */
static bench_shape shape = BENCH_SHAPE;

#define ROW(name) &sgt_settings_rows[SGT_SET_##name]
static const sgt_option table[] = {
    {.name = "What to run"},
    BENCH_DEVICE(shape),
    BENCH_MODEL(shape),
    BENCH_BATCH(shape, "rows of a micro-step", 1 << 20),
    BENCH_SEQ(shape, "64", 1 << 20),
    {"grad-accum", .as = ROW(ACCUM), .to = &s.accum},
    BENCH_PRECISION(shape, "number format of the matrices"),
    {"optimizer", .as = ROW(OPTIMIZER), .to = &s.optimizer},
    {"optimizer-state", .as = ROW(OPTIMIZER_STATE), .to = &s.optimizer_state},
    {"dropout", .as = ROW(DROPOUT), .to = &s.dropout},
    {"recompute", .as = ROW(RECOMPUTE), .to = &s.recompute, .choices = sgt_recompute_words,
     .help = "what the backward pass recomputes instead of storing it"},
    {"attention", .as = ROW(ATTENTION), .to = &s.attention},
    {"no-fuse", .as = ROW(NO_FUSE), .to = &s.no_fuse},
    {"no-graphs", .as = ROW(NO_GRAPHS), .to = &s.no_graphs},
    {"no-overlap", .as = ROW(NO_OVERLAP), .to = &s.no_overlap},
    {"sync-metrics", .as = ROW(SYNC_METRICS), .to = &s.sync_metrics},
    {"sync-kernels", .as = ROW(SYNC_KERNELS), .to = &s.sync_kernels},
    {"no-self-check", 0, SGT_OPT_FLAG, &o.no_self_check,
     .help = "CUDA: use the fastest products without checking their results"},
    {"no-pad-vocab", .as = ROW(NO_PAD_VOCAB), .to = &s.no_pad_vocab},
    {"variant", .as = ROW(VARIANT), .to = &s.variant, .given = &o.variant_given,
     .help = "optional kernels of a step, separated by commas; or all, none (CUDA)"},
    {"variants", 0, SGT_OPT_FLAG, &o.variants, .help = "list the variants, and do not measure"},
    {"deterministic", .as = ROW(DETERMINISTIC), .to = &s.deterministic},
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
                "  sgt-bench step --device cuda --batch-size 64 --seq-len 1024 --precision bf16 "
                "--data out"};

/* The measurement of our step and of the peer's. */
typedef struct step_bench {
    sgt_backend_options backend;
    const char *device;
    char *cache;
    sgt_loader *loader;
    step_rows *rows;
    const sgt_stop *stop;
    step_result r;
    peer_result peer; /* name "": there is no peer */
} step_bench;

/* ---- set-up ---- */

static int take_options(step_bench *b, const sgt_notice *notice, sgt_error *err)
{
    int cuda = strcmp(b->device, "cuda") == 0;
    sgt_backend_options *k = &b->backend;
    int rc = sgt_resolve_step(k, &s, err);
    if (rc < 0) return rc;
    k->batch = bench_batch(&shape, cuda);
    k->seq = bench_seq(&shape, cuda, 64);
    k->threads = bench_threads(&shape);
    k->precision = bench_precision(&shape, cuda);
    if (!cuda && !o.variant_given) k->variants = 0;
    k->notice = k->detail = *notice;
    k->unverified = o.no_self_check;
    k->cache = b->cache;
    return sgt_model_named(&k->model, shape.model, err);
}

static int open_data(step_bench *b, const sgt_notice *notice, sgt_error *err)
{
    sgt_loader_options l = {.reader = (sgt_reader)s.loader,
                            .batch = b->backend.batch,
                            .seq = b->backend.seq,
                            .seed = 1,
                            .notice = *notice};
    sgt_loader_info info;
    int rc = sgt_loader_open(&b->loader, o.data, &l, err);
    if (rc < 0) return rc;
    sgt_loader_get_info(b->loader, &info);
    b->backend.model.vocab = info.vocab;
    return bench_rows_loader(&b->rows, b->loader, s.no_overlap, err);
}

static int prepare(step_bench *b, const sgt_notice *notice, sgt_error *err)
{
    int rc = sgt_device_choose(&b->device, notice, err);
    if (rc == SGT_OK) rc = take_options(b, notice, err);
    sgt_model *m = &b->backend.model;
    if (rc == SGT_OK && b->backend.seq > m->positions) m->positions = b->backend.seq;
    if (rc < 0 || o.data) return rc < 0 ? rc : open_data(b, notice, err);
    return bench_rows_random(&b->rows, m->vocab, b->backend.batch, b->backend.seq, err);
}

/* ---- ours and the peer's in turn ---- */

static int our_turn(step_bench *b, sgt_error *err)
{
    step_run run = {.device = b->device,
                    .backend = &b->backend,
                    .rows = b->rows,
                    .warmup = (unsigned)o.warmup,
                    .steps = (unsigned)o.steps,
                    .sync_metrics = s.sync_metrics,
                    .parts = o.parts,
                    .stop = b->stop};
    return bench_step_measure(&b->r, &run, err);
}

/* Measure ours and the peer's in turn. Each time is the median of the turns. The peak is the
 * highest of the turns, because other programs can only lower it. All else is taken from the last
 * turn. */
static int take_turns(step_bench *b, sgt_error *err)
{
    double ours[MOST_TURNS], theirs[MOST_TURNS], peak = 0;
    size_t turns = o.peer ? (size_t)o.turns : 1;
    peer_run peer = {o.peer, o.peer_mode, b->device, &b->backend, (unsigned)o.steps, b->stop};
    for (size_t i = 0; i < turns; i++) {
        int rc = our_turn(b, err);
        if (rc == SGT_OK && o.peer) rc = bench_peer(&b->peer, &peer, err);
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

/* ---- results ---- */

static json_t *parts_json(const step_result *r)
{
    json_t *parts = json_object();
    for (size_t i = 0; i < r->part_count; i++)
        json_object_set_new(parts, r->parts[i].name, json_real(r->parts[i].ms));
    return parts;
}

/* Add the kernels of a step, with their speeds where bytes or operations are known. */
static void add_kernels(json_t *top, const step_result *r)
{
    json_t *kernels = json_array();
    for (size_t i = 0; i < r->part_count; i++) {
        const step_part *p = &r->parts[i];
        json_t *k =
            json_pack("{s:s, s:f, s:f}", "name", p->name, "launches", p->launches, "ms", p->ms);
        if (p->bytes > 0 && p->ms > 0)
            json_object_set_new(k, "gb_per_s", json_real(p->bytes / p->ms * 1e-6));
        if (p->flops > 0 && p->ms > 0)
            json_object_set_new(k, "tflops", json_real(p->flops / p->ms * 1e-9));
        json_array_append_new(kernels, k);
    }
    json_object_set_new(top, "kernels", kernels);
    json_object_set_new(top, "idle_ms", json_real(r->idle_ms));
    json_object_set_new(top, "step_ms", json_real(r->parts_ms));
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
    if (r->peak_flops > 0) {
        json_object_set_new(top, "mfu", json_real(r->flops / r->peak_flops));
        json_object_set_new(top, "peak_tflops", json_real(r->peak_flops * 1e-12));
    }
    if (r->datasheet_flops > 0)
        json_object_set_new(top, "mfu_datasheet", json_real(r->flops / r->datasheet_flops));
    if (r->launches_step) {
        json_object_set_new(top, "launches_forward", json_integer((json_int_t)r->launches_forward));
        json_object_set_new(top, "launches_step", json_integer((json_int_t)r->launches_step));
    }
    char names[SGT_VARIANTS_TEXT];
    if (strcmp(b->device, "cuda") == 0)
        json_object_set_new(top, "variants",
                            json_string(sgt_variants_words(names, b->backend.variants)));
    if (r->seen_step)
        json_object_set_new(top, "cupti_kernels_step", json_integer((json_int_t)r->seen_step));
    if (o.parts && r->parts_ms > 0) add_kernels(top, r);
    else if (o.parts) json_object_set_new(top, "parts_ms", parts_json(r));
    if (o.peer) json_object_set_new(top, "peer", peer_json(b));
}

static json_t *to_json(void *bench)
{
    const step_bench *b = bench;
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

static void show_parts(const step_bench *b)
{
    double sum = 0;
    const step_result *r = &b->r;
    printf("\n  part                    ms/step   of the step\n");
    for (size_t i = 0; i < r->part_count; i++) {
        printf("  %-20s  %9.3f  %10.1f %%\n", r->parts[i].name, r->parts[i].ms,
               100 * r->parts[i].ms / r->ms);
        sum += r->parts[i].ms;
    }
    printf("  %-20s  %9.3f  %10.1f %%\n", "anything else", r->ms - sum,
           100 * (r->ms - sum) / r->ms);
    if (strcmp(r->device, "cpu") == 0 && b->backend.threads > 1)
        puts("\nmost of an update is done beside the next step's forward pass, and counts there");
}

static void show_speed(double amount, double ms, double unit, int width)
{
    if (amount > 0 && ms > 0) printf("  %*.1f", width, amount / ms * 1e3 / unit);
    else printf("  %*s", width, "-");
}

/* Print the table of kernels. What is idle is added, and time in which two kernels ran at once is
 * subtracted, so that the rows add up to the step. */
static void show_kernels(const step_result *r)
{
    double sum = r->idle_ms;
    printf("\n  kernel                            launches    ms/step  of the step     GB/s  "
           "TFLOP/s\n");
    for (size_t i = 0; i < r->part_count; i++) {
        const step_part *p = &r->parts[i];
        printf("  %-32.32s  %8.6g  %9.3f  %9.1f %%", p->name, p->launches, p->ms,
               100 * p->ms / r->parts_ms);
        show_speed(p->bytes, p->ms, 1e9, 7);
        show_speed(p->flops, p->ms, 1e12, 7);
        putchar('\n');
        sum += p->ms;
    }
    const struct {
        const char *name;
        double ms;
    } rest[] = {{"two at once", r->parts_ms - sum}, {"idle", r->idle_ms}, {"step", r->parts_ms}};
    for (int i = 0; i < 3; i++)
        printf("  %-42s  %9.3f  %9.1f %%\n", rest[i].name, rest[i].ms,
               100 * rest[i].ms / r->parts_ms);
}

static void show_peer(const step_bench *b)
{
    char bytes[32], turns[48];
    const peer_result *p = &b->peer;
    printf("%c %9.3f  %9.0f  %s, its first five steps %.1f s, peak %s\n",
           b->r.ms < p->ms ? ' ' : '*', p->ms, p->tokens_per_s, p->name, p->first_steps_s,
           sgt_format_bytes(bytes, sizeof bytes, p->peak_bytes));
    printf(
        "\n* the fastest; ours is %.3f times as fast, with %.3f times the memory; medians of %s\n",
        p->ms / b->r.ms, (double)b->r.peak_bytes / (double)p->peak_bytes,
        sgt_format_things(turns, sizeof turns, o.turns, "turn", "turns"));
}

static void show_share(double part, double whole, int width)
{
    if (whole > 0) printf("  %*.1f %%", width - 2, 100 * part / whole);
    else printf("  %*s", width, "-");
}

static void show_peak(const step_result *r, int slow)
{
    if (r->peak_flops > 0)
        printf("%speak, a large product of matrices: %.1f %s\n", o.peer ? "" : "\n",
               r->peak_flops * (slow ? 1e-9 : 1e-12), slow ? "GFLOP/s" : "TFLOP/s");
}

static void show(void *bench)
{
    const step_bench *b = bench;
    char bytes[32], machine[160];
    const step_result *r = &b->r;
    const sgt_backend_options *k = &b->backend;
    int slow = r->flops < 1e12;
    printf("%s\n%s, %s, %s\n", bench_machine(machine, sizeof machine), r->device, r->level,
           r->library);
    printf("%s, %s, %u x %u x %u tokens a step; median of %u\n\n", shape.model,
           sgt_precision_words[k->precision], k->accum, k->batch, k->seq, r->steps);
    printf("    ms/step   tokens/s  %s  of peak  datasheet   data wait  first step        peak\n",
           slow ? "GFLOP/s" : "TFLOP/s");
    printf("%c %9.3f  %9.0f  %7.1f", !o.peer || r->ms < b->peer.ms ? '*' : ' ', r->ms,
           r->tokens_per_s, r->flops * (slow ? 1e-9 : 1e-12));
    show_share(r->flops, r->peak_flops, 7);
    show_share(r->flops, r->datasheet_flops, 9);
    printf("  %7.3f ms  %8.2f s  %10s\n", r->wait_ms, r->open_s + r->first_s,
           sgt_format_bytes(bytes, sizeof bytes, r->peak_bytes));
    if (o.peer) show_peer(b);
    show_peak(r, slow);
    if (r->launches_step)
        printf("\n%u kernels a forward pass, %u a step\n", r->launches_forward, r->launches_step);
    if (r->seen_step) printf("%u a step, as CUPTI counts them\n", r->seen_step);
    if (o.parts && r->parts_ms > 0) show_kernels(r);
    else if (o.parts) show_parts(b);
}

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
    b->device = shape.device;
    b->cache = sgt_cache_folder();
    int rc = prepare(b, &call->notice, err);
    return rc == SGT_OK ? take_turns(b, err) : rc;
}

static void release(void *bench)
{
    step_bench *b = bench;
    bench_rows_free(b->rows);
    sgt_loader_close(b->loader);
    free(b->cache);
}

static const bench_subcommand step = {.program = &program,
                                      .output = &shape.output,
                                      .size = sizeof(step_bench),
                                      .measure = measure,
                                      .json = to_json,
                                      .show = show,
                                      .release = release};

static int bench_step(int argc, char **argv)
{
    sgt_settings_default(&s);
    s.variant = "default";
    return bench_subcommand_run(&step, argc, argv);
}

const sgt_command bench_step_command = {"step", "a whole training step", &program, bench_step};
