/* memory.c: sgt-bench memory: what --estimate-memory says of a step, beside the measured peak, by
 * batch size. Each batch size is measured by `sgt-bench step` in a process of its own, because the
 * peak of a process never falls. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "train/device.h"
#include "train/sgt_train.h"
#include "tools/bench/bench.h"
#include "tools/bench/script.h"
#include "tools/bench/shape.h"
#include "tools/cli/talk.h"

enum { MOST_BATCHES = 32 };

static struct {
    const char *batches;
} o = {.batches = "1,2,4,8,16"};

static sgt_settings s; /* options of the step, as in sgt-train */
static bench_shape shape = BENCH_SHAPE;

#define ROW(name) &sgt_settings_rows[SGT_SET_##name]
static const sgt_option table[] = {
    {.name = "What to run"},
    BENCH_DEVICE(shape),
    BENCH_MODEL(shape),
    {"batch-size", 'b', SGT_OPT_TEXT, &o.batches, "N,N,...", "rows of a step, a line each",
     .def = "1,2,4,8,16"},
    BENCH_SEQ(shape, "64", 1 << 20),
    BENCH_PRECISION(shape, "number format of the matrices"),
    {"optimizer", .as = ROW(OPTIMIZER), .to = &s.optimizer},
    {"optimizer-state", .as = ROW(OPTIMIZER_STATE), .to = &s.optimizer_state},
    {"recompute", .as = ROW(RECOMPUTE), .to = &s.recompute, .choices = sgt_recompute_words,
     .help = "what the backward pass recomputes instead of storing it"},
    BENCH_THREADS(shape),
    {.name = "How"},
    BENCH_OUTPUT(shape.output),
    {0}};

static const sgt_program program = {
    .name = "sgt-bench memory",
    .usage = "sgt-bench memory [OPTION]...",
    .about = "Shows the memory of a training step by batch size: what sgt-train --estimate-memory "
             "says, beside the peak\nof a process that runs three steps over random tokens.",
    .options = table,
    .examples = "  sgt-bench memory --model 4x256x4 --seq-len 512 --batch-size 4,8,16,32\n"
                "  sgt-bench memory --device cuda --batch-size 16,32,64 --seq-len 1024"};

/* A batch size. Bytes are of the process on a CPU, and of the device on CUDA. */
typedef struct row {
    uint64_t batch, activations, estimate, available;
    uint64_t measured; /* 0: it was not */
    char why[200];     /* why not */
} row;

typedef struct memory_bench {
    const char *device;
    row rows[MOST_BATCHES];
    size_t count;
    const sgt_stop *stop;
} memory_bench;

static int take_batches(memory_bench *b, sgt_error *err)
{
    char *words[MOST_BATCHES];
    int count = sgt_split_list(o.batches, words, MOST_BATCHES), bad = count < 0;
    for (int i = 0; i < count; i++) {
        row *r = &b->rows[b->count++];
        bad |= sgt_parse_count(words[i], &r->batch) != 0 || r->batch < 1 || r->batch > 1 << 20;
        free(words[i]);
    }
    if (!bad) return SGT_OK;
    return sgt_fail(err, SGT_EUSAGE,
                    "--batch-size %s: not a list of at most %d numbers, such as 16,32", o.batches,
                    MOST_BATCHES);
}

static void take_settings(const memory_bench *b)
{
    const int cuda = strcmp(b->device, "cuda") == 0;
    s.device = cuda ? SGT_DEVICE_CUDA : SGT_DEVICE_CPU;
    s.model = shape.model;
    s.seq = bench_seq(&shape, cuda, 64);
    s.precision = (int)bench_precision(&shape, cuda);
    s.threads = (uint64_t)bench_threads(&shape);
}

/* Estimate what a step holds. The loader's and the checkpoint's memory, which `sgt-bench step` does
 * without, is left out. */
static int estimate(row *r, sgt_error *err)
{
    sgt_train_estimate e;
    const sgt_train_options none = {.run = "run"};
    s.batch = r->batch;
    int rc = sgt_train_estimate_memory(&s, &none, &e, err);
    if (rc < 0) return rc;
    r->activations = sgt_train_estimate_activations(&e);
    r->available = e.available;
    for (size_t i = 0; i < e.count; i++)
        if (strcmp(e.kinds[i].name, "loader") != 0 && strcmp(e.kinds[i].name, "checkpoint") != 0)
            r->estimate += e.kinds[i].bytes;
    return SGT_OK;
}

static int measure_row(const memory_bench *b, row *r, sgt_error *err)
{
    char batch[24], seq[24], threads[24], *said = malloc(BENCH_SAID);
    if (!said) return sgt_fail_memory(err, NULL);
    snprintf(batch, sizeof batch, "%llu", (unsigned long long)r->batch);
    snprintf(seq, sizeof seq, "%llu", (unsigned long long)s.seq);
    snprintf(threads, sizeof threads, "%llu", (unsigned long long)s.threads);
    const char *args[] = {"step",
                          "--json",
                          "--quiet",
                          "--steps",
                          "2",
                          "--warmup",
                          "1",
                          "--device",
                          b->device,
                          "--model",
                          shape.model,
                          "--batch-size",
                          batch,
                          "--seq-len",
                          seq,
                          "--threads",
                          threads,
                          "--precision",
                          sgt_precision_words[s.precision],
                          "--optimizer",
                          sgt_settings_rows[SGT_SET_OPTIMIZER].choices[s.optimizer],
                          "--optimizer-state",
                          sgt_settings_rows[SGT_SET_OPTIMIZER_STATE].choices[s.optimizer_state],
                          "--recompute",
                          sgt_recompute_words[s.recompute],
                          NULL};
    const bench_script self = {
        .python = "/proc/self/exe", .name = "step", .args = args, .stop = b->stop};
    sgt_error why;
    int rc = bench_script_run(&self, said, &why);
    json_t *j = rc == SGT_OK ? json_loads(said, 0, NULL) : NULL;
    r->measured = (uint64_t)json_integer_value(json_object_get(j, "peak_bytes"));
    json_decref(j);
    free(said);
    if (rc == SGT_ESTOPPED) return sgt_fail(err, rc, "%s", why.text);
    if (!r->measured)
        snprintf(r->why, sizeof r->why, "%.199s", rc < 0 ? why.text : "it told no peak");
    return SGT_OK;
}

static int measure(void *bench, const bench_call *call, sgt_error *err)
{
    memory_bench *b = bench;
    b->stop = call->stop;
    b->device = shape.device;
    int rc = take_batches(b, err);
    if (rc == SGT_OK) rc = sgt_device_choose(&b->device, &call->notice, err);
    if (rc < 0) return rc;
    take_settings(b);
    for (size_t i = 0; i < b->count && rc == SGT_OK; i++) {
        row *r = &b->rows[i];
        if ((rc = estimate(r, err)) < 0) return rc;
        if (r->estimate > r->available)
            snprintf(r->why, sizeof r->why, "more than the free memory");
        else rc = measure_row(b, r, err);
        if (rc == SGT_OK) sgt_say(&call->notice, "%llu rows done", (unsigned long long)r->batch);
    }
    return rc;
}

/* ---- results ---- */

static int fits(const row *r) { return r->estimate <= r->available; }

static void show(void *bench)
{
    const memory_bench *b = bench;
    char machine[160], a[32], c[32], d[32];
    printf("%s\n%s on %s, %s, rows of %llu tokens\n\n", bench_machine(machine, sizeof machine),
           shape.model, strcmp(b->device, "cuda") == 0 ? "CUDA" : "the CPU",
           sgt_precision_words[s.precision], (unsigned long long)s.seq);
    printf("     rows  activations     estimate         peak   estimate/peak\n");
    for (size_t i = 0; i < b->count; i++) {
        const row *r = &b->rows[i];
        printf("  %7llu %12s %12s", (unsigned long long)r->batch,
               sgt_format_bytes(a, sizeof a, r->activations),
               sgt_format_bytes(c, sizeof c, r->estimate));
        if (r->measured)
            printf(" %12s %15.3f\n", sgt_format_bytes(d, sizeof d, r->measured),
                   (double)r->estimate / (double)r->measured);
        else printf("  not measured: %.48s\n", r->why);
    }
    printf("\nestimate: what sgt-train --estimate-memory says, without the loader's memory and the "
           "checkpoint's.\n"
           "peak: %s in three steps.\n",
           strcmp(b->device, "cuda") == 0 ? "of what the device held"
                                          : "the most memory that a process had resident");
}

static json_t *to_json(void *bench)
{
    const memory_bench *b = bench;
    json_t *results = json_array();
    for (size_t i = 0; i < b->count; i++) {
        const row *r = &b->rows[i];
        json_t *j = json_pack("{s:I, s:I, s:I, s:b, s:o}", "batch", (json_int_t)r->batch,
                              "activation_bytes", (json_int_t)r->activations, "estimate_bytes",
                              (json_int_t)r->estimate, "fits", fits(r), "peak_bytes",
                              r->measured ? json_integer((json_int_t)r->measured) : json_null());
        if (j && !r->measured) json_object_set_new(j, "why", json_string(r->why));
        json_array_append_new(results, j);
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:o}", "cpu", sgt_cpu_model(), "device",
                     b->device, "model", shape.model, "precision", sgt_precision_words[s.precision],
                     "seq", (json_int_t)s.seq, "threads", (json_int_t)s.threads, "results",
                     results);
}

static const bench_subcommand memory = {.program = &program,
                                        .output = &shape.output,
                                        .size = sizeof(memory_bench),
                                        .digits = 6,
                                        .measure = measure,
                                        .json = to_json,
                                        .show = show};

static int bench_memory(int argc, char **argv)
{
    sgt_settings_default(&s);
    return bench_subcommand_run(&memory, argc, argv);
}

const sgt_command bench_memory_command = {"memory", "the estimated memory beside the measured peak",
                                          &program, bench_memory};
