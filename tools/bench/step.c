/* step.c: sgt-bench step: forward, backward and update of a GPT-2 over random tokens, and the peer's in the same run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "tools/bench/bench.h"
#include "tools/bench/step.h"
#include "tools/cli/options.h"
#include "tools/cli/talk.h"

static struct {
    const char *device, *model, *precision, *recompute, *attention, *optimizer;
    uint64_t batch, seq, accum, threads, steps, warmup;
    double dropout;
    int no_fuse, no_graphs, no_overlap, no_pad_vocab, deterministic, json, quiet, precision_given;
} o = {.device = "auto",
       .model = "gpt2",
       .precision = "fp32",
       .recompute = "none",
       .attention = "auto",
       .optimizer = "adamw",
       .accum = 1,
       .steps = 20,
       .warmup = 3};

static const sgt_option table[] = {
    {.name = "What is run"},
    {"device", 0, SGT_OPT_CHOICE, &o.device, "auto|cpu|cuda", "where", .def = "auto"},
    {"model", 'm', SGT_OPT_TEXT, &o.model, "NAME|LxCxH", "gpt2, gpt2-medium, ..., or layers x channels x heads",
     .def = "gpt2"},
    {"batch-size", 'b', SGT_OPT_COUNT, &o.batch, "N", "rows of a micro-step", .def = "64 on CUDA, 4 on a CPU", .min = 1,
     .max = 1 << 20},
    {"seq-len", 0, SGT_OPT_COUNT, &o.seq, "N", "tokens of a row", .def = "1024 on CUDA, 64 on a CPU", .min = 1,
     .max = 1 << 20},
    {"grad-accum", 0, SGT_OPT_COUNT, &o.accum, "N", "micro-steps of a step", .def = "1", .min = 1, .max = 1 << 20},
    {"precision", 0, SGT_OPT_CHOICE, &o.precision, "fp32|tf32|bf16|fp16", "what matrices are kept in",
     .def = "bf16 on CUDA, fp32 on a CPU", .given = &o.precision_given},
    {"optimizer", 0, SGT_OPT_CHOICE, &o.optimizer, "adamw|sgd", "the update", .def = "adamw"},
    {"dropout", 0, SGT_OPT_REAL, &o.dropout, "P", "share of numbers dropped", .def = "0", .min = 0, .max = 0.99},
    {"recompute", 0, SGT_OPT_CHOICE, &o.recompute, "none|gelu|block", "what backward computes again", .def = "none"},
    {"attention", 0, SGT_OPT_CHOICE, &o.attention, "auto|own|cudnn|naive", "which attention", .def = "auto"},
    {"no-fuse", 0, SGT_OPT_FLAG, &o.no_fuse, .help = "CUDA: every operation a kernel of its own"},
    {"no-graphs", 0, SGT_OPT_FLAG, &o.no_graphs, .help = "CUDA: kernels launched one by one"},
    {"no-overlap", 0, SGT_OPT_FLAG, &o.no_overlap, .help = "CUDA: rows are copied within the step"},
    {"no-pad-vocab", 0, SGT_OPT_FLAG, &o.no_pad_vocab, .help = "CUDA: 50,257 rows of logits, not 50,304"},
    {"deterministic", 0, SGT_OPT_FLAG, &o.deterministic, .help = "CUDA: nothing is chosen by timing"},
    {"threads", 0, SGT_OPT_COUNT, &o.threads, "N", "threads of the CPU", .def = "the cores at hand", .min = 1,
     .max = 1024},
    {.name = "How"},
    {"steps", 0, SGT_OPT_COUNT, &o.steps, "N", "steps measured; the median is given", .def = "20", .min = 1,
     .max = 100000},
    {"warmup", 0, SGT_OPT_COUNT, &o.warmup, "N", "steps before them", .def = "3", .min = 0, .max = 100000},
    {"json", 0, SGT_OPT_FLAG, &o.json, NULL, .help = "one JSON document"},
    {"quiet", 'q', SGT_OPT_FLAG, &o.quiet, NULL, .help = "print nothing but what --json asks for, and failures"},
    {0}};

static const sgt_program program = {
    .name = "sgt-bench step",
    .usage = "sgt-bench step [OPTION]...",
    .about = "Measures a whole training step (forward, backward, clipping, update) over random tokens.",
    .options = table,
    .examples = "  sgt-bench step --model 4x256x4 --seq-len 512 --batch-size 8\n"
                "  sgt-bench step --device cuda --batch-size 64 --seq-len 1024 --precision bf16"};

static int index_of(const char *word, const char *const *words)
{
    int i = 0;
    while (words[i] && strcmp(word, words[i])) i++;
    return i;
}

static int take_options(sgt_backend_options *b, const sgt_notice *notice, sgt_error *err)
{
    static const char *const precisions[] = {"fp32", "tf32", "bf16", "fp16", NULL};
    static const char *const recomputes[] = {"none", "gelu", "block", NULL};
    static const char *const attentions[] = {"auto", "own", "cudnn", "naive", NULL};
    int rc, cuda = strcmp(o.device, "cuda") == 0;
    *b = (sgt_backend_options){
        .optim = {.kind = strcmp(o.optimizer, "sgd") == 0 ? SGT_SGD : SGT_ADAMW,
                  .beta1 = 0.9f,
                  .beta2 = 0.95f,
                  .eps = 1e-8f,
                  .momentum = 0.9f,
                  .weight_decay = 0.1f,
                  .grad_clip = 1},
        .batch = (uint32_t)(o.batch ? o.batch : cuda ? 64 : 4),
        .seq = (uint32_t)(o.seq ? o.seq : cuda ? 1024 : 64),
        .accum = (uint32_t)o.accum,
        .threads = o.threads ? (int)o.threads : sgt_cpu_count(),
        .notice = *notice,
        .precision = (sgt_precision)index_of(!o.precision_given && cuda ? "bf16" : o.precision, precisions),
        .recompute = (sgt_recompute)index_of(o.recompute, recomputes),
        .dropout = (float)o.dropout,
        .seed = 1,
        .attention = (sgt_attention)index_of(o.attention, attentions),
        .no_fuse = o.no_fuse,
        .no_graphs = o.no_graphs,
        .no_overlap = o.no_overlap,
        .no_pad_vocab = o.no_pad_vocab,
        .deterministic = o.deterministic};
    if ((rc = sgt_model_named(&b->model, o.model, err)) < 0) return rc;
    if (b->seq > b->model.positions) b->model.positions = b->seq;
    return SGT_OK;
}

/* ---- results ---- */

static const char *precision_name(sgt_precision p)
{
    static const char *const names[] = {"fp32", "tf32", "bf16", "fp16"};
    return names[p];
}

static int print_json(const step_result *r, const sgt_backend_options *b, sgt_error *err)
{
    json_t *top = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "cpu", sgt_cpu_model(),
        "device", r->device, "level", r->level, "library", r->library, "model", o.model, "precision",
        precision_name(b->precision), "batch", (int)b->batch, "seq", (int)b->seq, "accum", (int)b->accum, "steps",
        (int)r->steps, "ms_per_step", r->ms, "tokens_per_s", r->tokens_per_s, "tflops", r->flops * 1e-12, "loss",
        r->loss, "open_s", r->open_s, "first_step_s", r->first_s, "backend_bytes", (json_int_t)r->bytes);
    if (!top) return sgt_fail(err, SGT_ENOMEM, "out of memory");
    if (r->peak_flops > 0) json_object_set_new(top, "mfu", json_real(r->flops / r->peak_flops));
    if (r->datasheet_flops > 0) json_object_set_new(top, "mfu_datasheet", json_real(r->flops / r->datasheet_flops));
    if (r->launches_step) {
        json_object_set_new(top, "launches_forward", json_integer((json_int_t)r->launches_forward));
        json_object_set_new(top, "launches_step", json_integer((json_int_t)r->launches_step));
    }
    if (r->seen_step) json_object_set_new(top, "cupti_kernels_step", json_integer((json_int_t)r->seen_step));
    int bad = json_dumpf(top, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) < 0 || putchar('\n') == EOF;
    json_decref(top);
    return bad ? sgt_fail_errno(err, "standard output") : SGT_OK;
}

static void show(const step_result *r, const sgt_backend_options *b)
{
    char bytes[32], cpu[128];
    printf("%s, %s, %s, %s\n", sgt_printable(cpu, sizeof cpu, sgt_cpu_model()), r->device, r->level, r->library);
    printf("%s, %s, %u x %u x %u tokens a step; median of %u\n\n", o.model, precision_name(b->precision), b->accum,
           b->batch, b->seq, r->steps);
    printf("  ms/step    tokens/s   TFLOP/s   of the peak   of the datasheet     memory   first step\n");
    printf("%9.3f  %10.0f  %8.3f", r->ms, r->tokens_per_s, r->flops * 1e-12);
    if (r->peak_flops > 0) printf("  %10.1f %%", 100 * r->flops / r->peak_flops);
    else printf("  %12s", "-");
    if (r->datasheet_flops > 0) printf("  %15.1f %%", 100 * r->flops / r->datasheet_flops);
    else printf("  %17s", "-");
    printf("  %9s  %9.2f s\n", sgt_format_bytes(bytes, sizeof bytes, r->bytes), r->open_s + r->first_s);
    if (r->launches_step)
        printf("\n%u kernels a forward pass, %u a step\n", r->launches_forward, r->launches_step);
    if (r->seen_step) printf("%u a step, as CUPTI counts them\n", r->seen_step);
}

int bench_step(int argc, char **argv)
{
    sgt_error err;
    step_result r;
    sgt_backend_options b;
    int first = sgt_options_parse(&program, argc, argv);
    if (first < argc) sgt_usage(&program, "%s: what is that?", argv[first]);
    sgt_talk talk = {program.name, o.quiet};
    sgt_notice notice = sgt_talk_notice(&talk);
    const sgt_stop *stop = sgt_catch_signals();
    int rc = take_options(&b, &notice, &err);
    if (rc == SGT_OK) rc = bench_step_measure(&r, o.device, &b, (unsigned)o.warmup, (unsigned)o.steps, stop, &err);
    if (rc == SGT_OK && o.json) rc = print_json(&r, &b, &err);
    else if (rc == SGT_OK && !o.quiet) show(&r, &b);
    if (rc == SGT_OK && (fflush(stdout) == EOF || ferror(stdout))) rc = sgt_fail_errno(&err, "standard output");
    if (rc == SGT_EUSAGE) sgt_usage(&program, "%s", err.text);
    return rc < 0 ? sgt_report_failure(&program, &err) : SGT_EXIT_OK;
}
