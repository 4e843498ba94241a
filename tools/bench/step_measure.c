/* step_measure.c: measures training steps of sgt_train. The time of a step goes from the end of the
 * previous step to the end of this step. On CUDA, a few more steps follow, in which CUPTI (NVIDIA's
 * profiling library) counts the kernels and, with --parts, measures their times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/cupti.h"
#include "loader/base/clock.h"
#include "loader/base/memory.h"
#include "loader/base/philox.h"
#include "tokenize/sgt_tokenize.h"
#include "tools/bench/bench.h"
#include "train/device.h"
#include "train/log/metrics.h"
#include "train/sgt_train.h"

enum { RECORDED = 5 }; /* number of steps that CUPTI records with --parts */

/* The activities (kernels, memory copies and fills) that CUPTI recorded during one or more
 * steps. */
typedef struct spans {
    /* JSON object with one member for each name of a kernel. It contains the kernel's launches,
     * time, bytes and operations, each added up over all recorded steps. */
    json_t *kernels;
    struct interval {
        uint64_t start, end; /* times in nanoseconds */
    } * of;
    /* count: number of intervals in the array `of`. room: number of intervals for which memory is
     * allocated. launches: number of intervals that are kernels, not memory copies or fills. */
    size_t count, room, launches;
    int lost; /* 1 if memory ran out, so that the record is incomplete; otherwise 0 */
} spans;

static void add_to(json_t *kernel, const char *key, double x)
{
    bench_put(kernel, key, bench_get(kernel, key) + x);
}

static void add_span(void *ctx, const sgt_cupti_kernel *s)
{
    spans *x = ctx;
    const char *name = s->label ? s->label : s->name;
    x->lost |= sgt_reserve(&x->of, &x->room, x->count + 1, sizeof *x->of, "kernels", NULL) < 0;
    if (x->lost) return;
    x->of[x->count++] = (struct interval){s->start, s->end};
    x->launches += strcmp(s->category, "kernel") == 0;
    json_t *kernel = json_object_get(x->kernels, name);
    if (!kernel) {
        kernel = json_pack("{s:s}", "name", name);
        json_object_set_new(x->kernels, name, kernel);
    }
    add_to(kernel, "launches", 1);
    add_to(kernel, "ms", (double)(s->end - s->start) * 1e-6);
    add_to(kernel, "bytes", s->bytes);
    add_to(kernel, "flops", s->flops);
}

static int by_start(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Set *whole to the time from the start of the first interval to the end of the last one, and
 * return the part of this time in which there was no activity. Both are in milliseconds. The
 * intervals must be sorted by their start. */
static double sum_gaps(const spans *x, double *whole)
{
    uint64_t first = x->count ? x->of[0].start : 0, end = first, gaps = 0;
    for (size_t i = 0; i < x->count; i++) {
        if (x->of[i].start > end) gaps += x->of[i].start - end;
        if (x->of[i].end > end) end = x->of[i].end;
    }
    *whole = (double)(end - first) * 1e-6;
    return (double)gaps * 1e-6;
}

/* Add the recorded kernels to the JSON object `figures`, with averages per step, sorted by
 * descending time. The speed of a kernel is added only if the number of its bytes or operations is
 * known. Also add the time of a step (step_ms), and the time in it without activity (idle_ms). */
static void add_kernels(json_t *figures, spans *x, unsigned steps)
{
    json_t *kernel, *all = json_array();
    const char *name;
    double whole;
    if (x->count) qsort(x->of, x->count, sizeof *x->of, by_start);
    json_object_set_new(figures, "idle_ms", json_real(sum_gaps(x, &whole) / steps));
    json_object_set_new(figures, "step_ms", json_real(whole / steps));
    json_object_foreach(x->kernels, name, kernel)
    {
        double ms = bench_get(kernel, "ms"), bytes = bench_get(kernel, "bytes"),
               flops = bench_get(kernel, "flops");
        size_t at = 0;
        json_object_set_new(kernel, "launches", json_real(bench_get(kernel, "launches") / steps));
        json_object_set_new(kernel, "ms", json_real(ms / steps));
        bench_put(kernel, "gb_per_s", ms > 0 ? bytes / ms * 1e-6 : 0);
        bench_put(kernel, "tflops", ms > 0 ? flops / ms * 1e-9 : 0);
        json_object_del(kernel, "bytes");
        json_object_del(kernel, "flops");
        while (bench_get(json_array_get(all, at), "ms") > ms / steps) at++;
        json_array_insert(all, at, kernel);
    }
    json_object_set_new(figures, "kernels", all);
}

/* what is needed to decode the rows of a step to text and to tokenize this text again */
typedef struct coder {
    sgt_loader *loader;
    sgt_cursor *cursor;
    sgt_vocab *vocab;
    sgt_encoder *encoder;
    /* rows: buffer for the token ids of a step's rows. ids: buffer of `room` ids for the result of
     * tokenizing the decoded text. */
    uint16_t *rows, *ids;
    size_t room;
} coder;

typedef struct measurement {
    const step_run *run;
    /* training options, in which sgt_train replaces each value "auto" with the value it has
     * chosen */
    sgt_config config;
    const sgt_backend *b; /* backend of the training; valid only while sgt_train runs */
    /* arrays of measured_steps() times in milliseconds: the time of each step, and the part of it
     * in which the step waited for data */
    double *ms, *wait;
    double last; /* time in seconds at which the last step ended */
    double open_s, loss;
    json_t *figures;
    coder coder;
    /* time in milliseconds that tokenizing the text of the current step's rows took */
    double encode_ms;
    const sgt_cuda_library *lib;
    sgt_cupti *cupti;
    spans spans;
    /* rc, why: first error of a callback, which makes the measurement fail. unrecorded,
     * why_unrecorded: first error of CUPTI, which makes the measurement fail only with --parts.
     * Without --parts, only the number of kernels is missing. */
    int rc, unrecorded;
    sgt_error why, why_unrecorded;
} measurement;

static uint64_t measured_steps(const step_run *run) { return (uint64_t)run->warmup + run->steps; }

/* Return the number of steps that are run after the measured steps, and that CUPTI records. */
static unsigned recorded_steps(const step_run *run)
{
    return run->config.device != SGT_DEVICE_CUDA ? 0 : run->parts ? RECORDED : 1;
}

/* ---- random tokens, and text ---- */

/* Number of positions in the file of random tokens at which a row can begin. The file has as many
 * tokens and one more row. */
enum { RANDOM_TOKENS = 1 << 20 };

/* Write random tokens to a file in memory, in the format of a shard without a header. Return the
 * file's descriptor, or a negative SGT_E* on error. */
static int write_random(uint64_t seq, sgt_error *err)
{
    size_t count = RANDOM_TOKENS + seq + 1;
    uint16_t *tokens = malloc(count * sizeof *tokens);
    if (!tokens) return sgt_fail_memory(err, "random tokens");
    for (size_t i = 0; i < count; i++) tokens[i] = (uint16_t)(sgt_philox(1, i, 0).x[0] % 50257);
    int fd = bench_memory_file("tokens", (const char *)tokens, count * sizeof *tokens, err);
    free(tokens);
    return fd;
}

static int open_coder(coder *x, const sgt_config *c, sgt_error *err)
{
    const sgt_loader_options o = {.size = sizeof o,
                                  .data = c->data,
                                  .seed = c->seed,
                                  .batch = (uint32_t)c->batch,
                                  .seq = (uint32_t)c->seq,
                                  .reader = SGT_READER_MMAP};
    int rc = sgt_loader_open(&x->loader, &o, err);
    if (rc == SGT_OK) rc = sgt_cursor_open(&x->cursor, x->loader, err);
    if (rc == SGT_OK) rc = sgt_vocab_load(&x->vocab, "gpt2", NULL, err);
    if (rc == SGT_OK) rc = sgt_encoder_new(&x->encoder, x->vocab, err);
    if (rc == SGT_OK && !(x->rows = malloc(c->batch * (c->seq + 1) * sizeof *x->rows)))
        rc = sgt_fail_memory(err, "the text of the rows");
    return rc;
}

static void close_coder(coder *x)
{
    sgt_cursor_close(x->cursor);
    sgt_loader_close(x->loader);
    sgt_encoder_free(x->encoder);
    sgt_vocab_free(x->vocab);
    free(x->rows);
    free(x->ids);
}

/* Decode the rows of a step to text, and tokenize this text again. Set *ms to the time in
 * milliseconds that tokenizing took. */
static int encode_rows(coder *x, const sgt_config *c, uint64_t step, double *ms, sgt_error *err)
{
    char *text = NULL;
    size_t n = 0, count, ids = c->batch * (c->seq + 1);
    int rc = sgt_loader_read(x->loader, x->cursor, step, 1, SGT_OUTPUT_U16, x->rows,
                             ids * sizeof *x->rows, err);
    if (rc == SGT_OK) rc = sgt_decode(x->vocab, x->rows, ids, &text, &n, err);
    /* allocate one id per byte of text, because text never has more tokens than bytes */
    if (rc == SGT_OK) rc = sgt_reserve(&x->ids, &x->room, n, sizeof *x->ids, "text", err);
    double before = sgt_now();
    if (rc == SGT_OK) rc = sgt_encode(x->encoder, text, n, x->ids, 2 * x->room, &count, err);
    *ms = (sgt_now() - before) * 1e3;
    free(text);
    return rc;
}

/* ---- recording kernels with CUPTI ---- */

static int open_cupti(measurement *m, sgt_error *err)
{
    int rc = sgt_device_open(&m->lib, err);
    return rc < 0 ? rc : m->lib->cupti.open(&m->cupti, err);
}

/* Make CUPTI start to record kernels. If CUPTI is unavailable (which is possible only without
 * --parts), record nothing. */
static void begin_recording(measurement *m)
{
    if (!m->cupti && open_cupti(m, NULL) < 0) return;
    m->spans.kernels = json_object();
    m->unrecorded = m->lib->cupti.begin(m->cupti, &m->why_unrecorded);
}

/* Make CUPTI stop recording kernels, and add the results to m->figures. */
static void end_recording(measurement *m)
{
    sgt_error *err = &m->why_unrecorded;
    const unsigned steps = recorded_steps(m->run);
    if (!steps || !m->spans.kernels || m->unrecorded < 0) return;
    int rc = m->lib->cupti.end(m->cupti, add_span, &m->spans, err);
    if (rc == SGT_OK && m->spans.lost)
        rc = sgt_fail(err, SGT_ENOMEM, "recording the kernels of a step: out of memory");
    if (rc == SGT_OK)
        json_object_set_new(m->figures, "cupti_kernels_step",
                            json_integer((json_int_t)(m->spans.launches / steps)));
    if (rc == SGT_OK && m->run->parts) add_kernels(m->figures, &m->spans, steps);
    m->unrecorded = rc;
}

/* ---- steps ---- */

/* Return a JSON object with the values that were measured. Unknown values are omitted. */
static json_t *make_figures(const measurement *m)
{
    const sgt_backend *b = m->b;
    const sgt_config *c = &m->config;
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    uint64_t bytes = 0;
    for (size_t i = 0, n = b->memory(b, kinds); i < n; i++) bytes += kinds[i].bytes;
    double first = m->ms[0], ms = bench_median(m->ms + m->run->warmup, m->run->steps);
    double tokens_per_s = (double)(c->batch * c->seq * c->accum) / ms * 1e3;
    double flops = tokens_per_s * sgt_flops_per_token(&c->step.model, c->seq);
    /* The peak speed is also measured, so a step can be faster than the peak. In that case, use the
     * speed of the step as the peak, as training does, so that the MFU is at most 100 %. */
    double peak = b->peak_flops > 0 && flops > b->peak_flops ? flops : b->peak_flops;
    json_t *j = json_pack(
        "{s:s, s:s, s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I}", "device", b->name,
        "level", b->level, "library", b->library, "steps", (int)m->run->steps, "ms_per_step", ms,
        "tokens_per_s", tokens_per_s, "tflops", flops * 1e-12, "data_wait_ms",
        bench_median(m->wait + m->run->warmup, m->run->steps), "open_s", m->open_s, "first_step_s",
        first / 1e3, "backend_bytes", (json_int_t)bytes, "peak_bytes",
        (json_int_t)(b->memory_total ? bytes : sgt_memory_peak()), "total_bytes",
        (json_int_t)(b->memory_total ? b->memory_total : sgt_memory_total()));
    /* if the loss is NaN or infinite, json_real returns NULL, and the member "loss" is omitted */
    json_object_set_new(j, "loss", json_real(m->loss));
    if (peak > 0) bench_put(j, "mfu", flops / peak);
    bench_put(j, "peak_tflops", peak * 1e-12);
    if (b->datasheet_flops > 0) bench_put(j, "mfu_datasheet", flops / b->datasheet_flops);
    if (b->launches_step)
        bench_put_all(j, json_pack("{s:i, s:i}", "launches_forward", (int)b->launches_forward,
                                   "launches_step", (int)b->launches_step));
    return j;
}

/* Start the clock for the step with number `step`. If m->run->text is 1, first tokenize the text of
 * the step's rows, and count the time for this as part of the step. */
static void begin_step(measurement *m, uint64_t step)
{
    if (m->run->text && m->rc == SGT_OK)
        m->rc = encode_rows(&m->coder, &m->config, step, &m->encode_ms, &m->why);
    m->last = sgt_now() - m->encode_ms / 1e3;
}

static void on_open(void *ctx, const sgt_backend *b)
{
    measurement *m = ctx;
    m->b = b;
    m->open_s = sgt_now() - m->last;
    begin_step(m, 0);
}

static void on_step(void *ctx, const sgt_metrics *s, uint64_t steps, uint64_t first)
{
    measurement *m = ctx;
    double now = sgt_now();
    uint64_t done = s->step + 1, measured = measured_steps(m->run);
    (void)first;
    if (done <= measured) {
        m->ms[s->step] = (now - m->last) * 1e3;
        m->wait[s->step] = s->data_wait_ms + m->encode_ms;
        m->loss = s->loss;
    }
    if (done == measured) m->figures = make_figures(m);
    if (done == measured && done < steps) begin_recording(m);
    else if (done == steps) end_recording(m);
    if (done < steps) begin_step(m, done);
}

/* Train with the options m->config. CUPTI must not start to record while a measured step is still
 * running. Therefore, a checkpoint is saved after the last measured step, because training waits
 * for the end of all earlier steps before it saves a checkpoint. */
static int train(measurement *m, sgt_error *err)
{
    sgt_training_result r;
    sgt_config *c = &m->config;
    const sgt_train_options o = {.notice = bench.notice,
                                 .detail = bench.notice,
                                 .cache = bench.cache,
                                 .stop = bench.stop,
                                 .opened = on_open,
                                 .progress = on_step,
                                 .ctx = m};
    c->steps = measured_steps(m->run) + recorded_steps(m->run);
    c->save_every = measured_steps(m->run);
    c->eval_every = c->warmup = 0;
    c->lr = 1e-4;
    c->schedule = SGT_CONSTANT;
    m->last = sgt_now();
    int rc = sgt_train(c, &o, &r, err);
    sgt_training_result_free(&r);
    if (rc == SGT_ESTOPPED) return sgt_fail(err, rc, "interrupted");
    if (rc == SGT_OK && m->rc < 0) return sgt_fail(err, m->rc, "%s", m->why.text);
    if (rc < 0 || m->unrecorded == SGT_OK) return rc;
    if (m->run->parts) return sgt_fail(err, m->unrecorded, "%s", m->why_unrecorded.text);
    sgt_say(&bench.notice, "could not count the kernels of a step: %s", m->why_unrecorded.text);
    return SGT_OK;
}

int bench_step_measure(json_t **figures, const step_run *run, sgt_error *err)
{
    measurement m = {.run = run, .config = run->config};
    char random[32];
    int fd = run->config.data ? SGT_OK : write_random(run->config.seq, err), rc = fd < 0 ? fd : 0;
    snprintf(random, sizeof random, "/proc/self/fd/%d", fd);
    if (!run->config.data) m.config.data = random;
    m.ms = calloc(measured_steps(run), sizeof *m.ms);
    m.wait = calloc(measured_steps(run), sizeof *m.wait);
    if (rc == SGT_OK && (!m.ms || !m.wait)) rc = sgt_fail_memory(err, NULL);
    /* CUPTI must be opened before the backend captures a CUDA graph */
    if (rc == SGT_OK && run->parts) rc = open_cupti(&m, err);
    if (rc == SGT_OK && run->text) rc = open_coder(&m.coder, &m.config, err);
    if (rc == SGT_OK) rc = train(&m, err);
    if (fd > 0) close(fd);
    if (m.cupti) m.lib->cupti.close(m.cupti);
    close_coder(&m.coder);
    json_decref(m.spans.kernels);
    free(m.spans.of);
    free(m.ms);
    free(m.wait);
    if (rc == SGT_OK) *figures = m.figures;
    else json_decref(m.figures);
    return rc;
}
