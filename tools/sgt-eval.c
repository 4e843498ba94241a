/* sgt-eval: computes the loss of a GPT-2 model on sets of tokens, and its accuracy on files of
 * questions. This file contains the command line; tools/eval/ does the computations. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "train/device.h"
#include "train/run/checkpoint.h"
#include "loader/sgt_loader.h"
#include "train/config.h"
#include "tools/cli/options.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/eval/eval.h"

#define CPU_ROWS 8
#define CUDA_ROWS 64

static struct {
    sgt_option_list data;
    const char *device, *vocab, *split;
    int precision; /* sgt_precision */
    uint64_t batch, seq, threads;
    int precision_given, json, quiet;
} o;

static const sgt_option table[] = {
    {.name = "Data"},
    {"data", 'd', SGT_OPT_LIST, &o.data, "OUT/|SHARD",
     .help = "set or shard on which to compute the loss; can be given several times"},
    {"split", 0, SGT_OPT_CHOICE, &o.split, "train|val", "split of each set to read", .def = "val"},
    {"seq-len", 0, SGT_OPT_COUNT, &o.seq, "N", "number of tokens per window of --data",
     .def = "the --seq-len of the run, or all positions of the model", .min = 1, .max = 1 << 20},
    {"vocab", 0, SGT_OPT_TEXT, &o.vocab, "gpt2|FILE", "vocabulary of the model",
     .def = "the one in the model's folder, else gpt2"},
    {.name = "Model"},
    {"device", 0, SGT_OPT_CHOICE, &o.device, "auto|cpu|cuda",
     "where to run; auto uses a GPU if there is one", .def = "auto"},
    {"batch-size", 'b', SGT_OPT_COUNT, &o.batch, "N",
     "number of rows to compute together, which does not affect the results",
     .def = "64 on CUDA, 8 on a CPU", .min = 1, .max = 65536},
    {"precision", .as = &sgt_config_rows[SGT_SET_PRECISION], .to = &o.precision,
     .help = "number format of matrix products and activations",
     .def = "bf16 on CUDA, fp32 on a CPU", .given = &o.precision_given},
    {"threads", .as = &sgt_config_rows[SGT_SET_THREADS], .to = &o.threads},
    {.name = "Output"},
    {"json", 0, SGT_OPT_FLAG, &o.json, .help = "print results as one JSON object instead of text"},
    {"quiet", 'q', SGT_OPT_FLAG, &o.quiet, .help = "print only errors and --json output"},
    {0}};

static const sgt_program program = {
    .name = "sgt-eval",
    .usage = "sgt-eval [OPTION]... RUN/ | GPT2/ | MODEL.bin [FILE.jsonl]...",
    .about = "Evaluates a GPT-2 model: computes the loss, perplexity and bits per byte on sets of "
             "tokens (--data), and the accuracy on files of questions. A question has the fields "
             "\"ctx\", \"endings\" and \"label\", as in HellaSwag, or the field \"text\", whose "
             "last word the model predicts, as in LAMBADA.",
    .options = table,
    .examples = "  sgt-eval run/ --data out/\n"
                "  sgt-eval run/step-00001000 hellaswag_val.jsonl lambada_test.jsonl\n"
                "  sgt-eval gpt2/ --data out/ --device cuda --json"};

/* Return the sequence length with which the model in `folder` was trained, or 0 if it is
 * unknown. */
static uint64_t trained_seq(const char *folder)
{
    sgt_checkpoint_state state;
    if (sgt_checkpoint_read(&state, folder, NULL) < 0) return 0;
    json_t *options = state.options ? json_loads(state.options, 0, NULL) : NULL;
    json_int_t seq = json_integer_value(json_object_get(options, "seq-len"));
    json_decref(options);
    sgt_checkpoint_state_free(&state);
    return seq > 0 ? (uint64_t)seq : 0;
}

static int choose_seq(eval *e, sgt_error *err)
{
    uint32_t positions = e->model.shape.positions;
    if (o.seq > positions)
        return sgt_fail(err, SGT_EUSAGE,
                        "--seq-len %llu: the model has only %u positions (use a shorter --seq-len)",
                        (unsigned long long)o.seq, positions);
    e->seq = o.seq ? o.seq : trained_seq(e->model.path);
    if (!e->seq || e->seq > positions) e->seq = positions;
    return SGT_OK;
}

static int print_json(const eval *e, sgt_error *err)
{
    json_t *top =
        json_pack("{s:o, s:s, s:s, s:O}", "model", sgt_json_string(e->model.path), "device",
                  e->device, "precision", sgt_precision_words[e->precision], "results", e->results);
    return sgt_print_json(top, JSON_REAL_PRECISION(9), err);
}

static int evaluate(eval *e, const char *model, char **files, int count, sgt_error *err)
{
    int rc = sgt_device_choose(&e->device, &e->notice, err);
    if (rc == SGT_OK) rc = sample_model_find(&e->model, model, o.vocab, &e->notice, err);
    if (rc == SGT_OK) rc = choose_seq(e, err);
    if (rc < 0) return rc;
    int cuda = strcmp(e->device, "cuda") == 0;
    e->batch = o.batch ? o.batch : cuda ? CUDA_ROWS : CPU_ROWS;
    e->precision = cuda && !o.precision_given ? SGT_PRECISION_BF16 : (sgt_precision)o.precision;
    for (int i = 0; i < count && rc == SGT_OK; i++) rc = eval_questions(e, files[i], err);
    for (uint64_t i = 0; i < o.data.count && rc == SGT_OK; i++)
        rc = eval_set(e, o.data.items[i], err);
    return rc == SGT_OK && e->results ? print_json(e, err) : rc;
}

int main(int argc, char **argv)
{
    sgt_error err;
    sgt_spin_little(argv);
    sgt_search_wheels();
    /* A failure to install the handler is ignored. Without the handler, reading a truncated shard
     * kills the process with SIGBUS instead of returning an error. */
    sgt_loader_guard_sigbus(NULL);
    int first = sgt_options_parse(&program, argc, argv);
    if (argc - first == 1 && !o.data.count)
        sgt_usage(&program,
                  "nothing to evaluate on: pass FILE.jsonl with questions, or --data OUT/");
    eval e = {.device = o.device,
              .threads = sgt_threads(o.threads, 1),
              .quiet = o.quiet,
              .split = o.split,
              .notice = sgt_talk_notice(program.name, o.quiet),
              .stop = sgt_catch_signals(),
              .results = o.json ? json_array() : NULL};
    int rc = evaluate(&e, argv[first], argv + first + 1, argc - first - 1, &err);
    json_decref(e.results);
    sample_model_free(&e.model);
    return sgt_end_program(&program, rc, &err);
}
