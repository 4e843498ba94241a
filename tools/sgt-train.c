/* sgt-train: trains GPT-2 on shards (files of tokens). This file contains the command line and the
 * messages; the code in train/ does the training. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "loader/sgt_loader.h"
#include "train/sgt_train.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/ranks/ranks.h"
#include "train/device.h"
#include "train/paths.h"
#include "loader/base/memory.h"
#include "tokenize/vocab/vocab.h"
#include "tools/sample/sample.h"

#define MAX_CONFIG ((size_t)1 << 20) /* maximum size in bytes of the file given with --config */
/* maximum size in bytes of a JSONL file of prompts and completions */
#define MOST_BYTES ((size_t)1 << 34)

static sgt_config s;
static struct {
    const char *run, *config, *profile;
    int resume, resume_or_start, force, quiet, verbose, json, estimate, stop_diverged, self_check,
        no_self_check;
} o = {.run = "run"};

/* Table of the command-line options. The options that are saved with a run are defined in
 * train/config.c, which divides them into sections. ROWS inserts one of these sections into the
 * table. */
#define ROWS(title, s)                                                  \
    {                                                                   \
        .name = title, .kind = SGT_OPT_ROWS, .section = SGT_SECTION_##s \
    }
static const sgt_option table[] = {
    ROWS("Data", DATA),
    {.name = "Run"},
    {"run", 0, SGT_OPT_TEXT, &o.run, "DIR", "folder for the checkpoints and the log", .def = "run"},
    {"resume", 0, SGT_OPT_FLAG, &o.resume,
     .help = "continue from the run's newest checkpoint, or fail if there is none"},
    {"resume-or-start", 0, SGT_OPT_FLAG, &o.resume_or_start,
     .help = "continue from the run's newest checkpoint, or start at step 0 if there is none"},
    {"force", 0, SGT_OPT_FLAG, &o.force, .help = "remove the run's checkpoints and start over"},
    {"config", 0, SGT_OPT_TEXT, &o.config, "FILE",
     .help = "file of options, such as a run's options.json; the command line takes precedence"},
    ROWS("", RUN),
    ROWS("Model", MODEL),
    ROWS("Optimizer", OPTIMIZER),
    {"stop-diverged", 0, SGT_OPT_FLAG, &o.stop_diverged,
     .help = "save a checkpoint and exit with status 1 if the loss stays above its initial value "
             "for 50 steps"},
    ROWS("Machine", MACHINE),
    {"self-check", 0, SGT_OPT_FLAG, &o.self_check,
     .help = "test the kernels and libraries that the CUDA backend uses, then exit"},
    {"no-self-check", 0, SGT_OPT_FLAG, &o.no_self_check,
     .help = "train without first testing the kernels and libraries of the CUDA backend"},
    {"estimate-memory", 0, SGT_OPT_FLAG, &o.estimate,
     .help = "print an estimate of the memory that a step needs, by kind of data, then exit"},
    ROWS("Techniques that can be turned off to measure their effect", TECHNIQUES),
    {.name = "Output"},
    {"profile", 0, SGT_OPT_TEXT, &o.profile, "FILE",
     .help = "write a trace of steps 10 to 19 to FILE, for ui.perfetto.dev or chrome://tracing"},
    {"quiet", 'q', SGT_OPT_FLAG, &o.quiet, .help = "print only warnings, errors and --json output"},
    {"verbose", 0, SGT_OPT_FLAG, &o.verbose,
     .help = "also print the device, the kernels, the measured peak speed, the source of the "
             "learning rate, the compute in PF-days, and how many rows come from each set"},
    {"json", 0, SGT_OPT_FLAG, &o.json,
     .help = "print the results as one JSON object instead of a text summary"},
    {0}};

static const sgt_program program = {
    .name = "sgt-train",
    .usage = "sgt-train [--data DIR] [--run DIR] [--model NAME] [OPTION]...",
    .about = "Trains GPT-2 on shards of tokens. Writes log.jsonl and checkpoints, which Hugging "
             "Face Transformers can load, to the run's folder. On Ctrl-C, finishes the step, saves "
             "a checkpoint and exits with status 130 (see --resume).",
    .options = table,
    .rank = sgt_ranks_number,
    .rows = sgt_config_rows,
    .settings = &s,
    .given = s.given,
    .examples =
        "  sgt-train --loader preload                       GPT-2 124M on the shards in ./out\n"
        "  sgt-train --data web:0.7,books:0.3 --run run     seven rows of web for three of books\n"
        "  sgt-train --data out --run run --model 6x384x6 --steps 2000\n"
        "  sgt-train --data out --run run --resume --steps 4000\n"
        "  sgt-train --data out --run tuned --init run/step-00002000 --lr 1e-5\n"
        "  sgt-train --data answers.jsonl --run tuned --init gpt2/ --seq-len 256 --lr 1e-5",
};

static void show_progress(void *ctx, const sgt_metrics *m, uint64_t steps, uint64_t first)
{
    char facts[160], rate[32], mfu[32] = "";
    if (m->mfu > 0) snprintf(mfu, sizeof mfu, "\tMFU %.0f %%", 100 * m->mfu);
    snprintf(facts, sizeof facts, "loss %.4f\t%s\tlr %.2e%s", m->loss,
             sgt_format_rate(rate, sizeof rate, m->tokens_per_s, "tokens/s"), m->lr, mfu);
    sgt_progress_update(ctx, m->step + 1, steps, first, facts);
}

/* Start the clock of the progress bar. This function is called when the backend is open. The time
 * before this call must not lower the displayed rate, because the process may have waited until
 * another process released the run's folder. */
static void start_clock(void *ctx, const sgt_backend *b)
{
    (void)b;
    sgt_progress_update(ctx, 0, 0, 0, NULL);
}

static void show_line(void *ctx, const char *line) { sgt_progress_line(ctx, line); }

/* Write a loss to the n bytes at `buf`, with enough digits to compare it with other losses, for
 * example 14927, 10.79 or 0.0123. Return `buf`. */
static const char *format_loss(char *buf, size_t n, double loss)
{
    double x = loss < 0 ? -loss : loss;
    snprintf(buf, n, x < 1 ? "%.3g" : x < 1000 ? "%.2f" : "%.0f", loss);
    return buf;
}

/* Print a line such as "loss: 10.79 → 5.47 (mean of the last 20 steps), validation 5.61 (1.870 bits
 * per byte)". The bits per byte are omitted if they are unknown, as for an unknown vocabulary. */
static void print_losses(const sgt_train_losses *l)
{
    char first[32], mean[32], val[32], bits[48] = "", since[48] = "", of[48] = "";
    char evaluated[128] = "", at[40] = "";
    if (!l->steps) return;
    if (l->resumed)
        snprintf(since, sizeof since, " since step %llu", (unsigned long long)l->resumed);
    if (l->of > 1)
        snprintf(of, sizeof of, " (mean of the last %llu steps)", (unsigned long long)l->of);
    if (l->val_step < l->resumed + l->steps)
        snprintf(at, sizeof at, " at step %llu", (unsigned long long)l->val_step);
    if (l->val_bits_per_byte > 0)
        snprintf(bits, sizeof bits, " (%.3f bits per byte)", l->val_bits_per_byte);
    if (l->val_step)
        snprintf(evaluated, sizeof evaluated, ", validation %s%s%s",
                 format_loss(val, sizeof val, l->val), bits, at);
    format_loss(first, sizeof first, l->first);
    format_loss(mean, sizeof mean, l->mean);
    if (l->resumed || l->steps == 1)
        sgt_put_line(stdout, "loss%s: %s%s%s", since, mean, of, evaluated);
    else sgt_put_line(stdout, "loss%s: %s → %s%s%s", since, first, mean, of, evaluated);
}

static void print_tokens(const sgt_training_result *r)
{
    char a[32], b[32], c[32], path[1024];
    sgt_format_count(a, sizeof a, r->train_tokens);
    if (r->val_tokens)
        sgt_put_line(stdout, "tokens seen: %s training, %s validation, %s in all", a,
                     sgt_format_count(b, sizeof b, r->val_tokens),
                     sgt_format_count(c, sizeof c, r->train_tokens + r->val_tokens));
    else sgt_put_line(stdout, "tokens seen: %s", a);
    for (uint32_t i = 0; i < r->set_count; i++)
        sgt_put_line(stdout, "rows of %s: %s (%.3g epoch%s)",
                     sgt_printable(path, sizeof path, r->sets[i].data),
                     sgt_format_count(a, sizeof a, r->sets[i].rows), r->sets[i].epochs,
                     r->sets[i].epochs == 1 ? "" : "s");
    if (r->documents != UINT64_MAX && r->documents)
        sgt_put_line(stdout, "documents begun: %s", sgt_format_count(a, sizeof a, r->documents));
}

static void print_end(const sgt_training_result *r)
{
    char a[32], b[32], c[32], path[1024];
    if (!r->steps) return;
    print_losses(&r->losses);
    print_tokens(r);
    if (o.verbose) sgt_put_line(stdout, "compute: %.3g PF-days", r->pf_days);
    sgt_put_line(stdout, "time: %s in steps, %s in all",
                 sgt_format_duration(a, sizeof a, r->step_seconds),
                 sgt_format_duration(b, sizeof b, r->seconds));
    if (r->step_peak_bytes)
        sgt_put_line(stdout, "memory: %s in steps, %s in all, of %s (%.1f %%)",
                     sgt_format_bytes(a, sizeof a, r->step_peak_bytes),
                     sgt_format_bytes(b, sizeof b, r->peak_bytes),
                     sgt_format_bytes(c, sizeof c, r->total_bytes),
                     100 * (double)r->peak_bytes / (double)r->total_bytes);
    if (r->checkpoint)
        sgt_put_line(stdout, "checkpoint: %s", sgt_printable(path, sizeof path, r->checkpoint));
}

/* Print a JSON object that contains the results of the run, and all members of the last line in the
 * run's log. */
static int print_json(const sgt_training_result *r, sgt_error *err)
{
    json_t *doc = r->last ? json_loads(r->last, 0, NULL) : NULL,
           *sets = r->sets ? json_array() : NULL;
    if (!doc) doc = json_object();
    for (uint32_t i = 0; r->sets && i < r->set_count; i++)
        json_array_append_new(
            sets, json_pack("{s:o, s:I, s:f}", "data", sgt_json_string(r->sets[i].data), "rows",
                            (json_int_t)r->sets[i].rows, "epochs", r->sets[i].epochs));
    json_t *run = json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:o*, s:o*, s:f, s:f, s:f, s:I, s:I, s:I}", "run",
        sgt_json_string(o.run), "checkpoint",
        r->checkpoint ? sgt_json_string(r->checkpoint) : json_null(), "steps", (json_int_t)r->steps,
        "train_tokens", (json_int_t)r->train_tokens, "val_tokens", (json_int_t)r->val_tokens,
        "documents", r->documents == UINT64_MAX ? NULL : json_integer((json_int_t)r->documents),
        "sets", sets, "pf_days", r->pf_days, "seconds", r->seconds, "step_seconds", r->step_seconds,
        "step_memory", (json_int_t)r->step_peak_bytes, "memory_used", (json_int_t)r->peak_bytes,
        "memory_total", (json_int_t)r->total_bytes);
    json_object_update(doc, run);
    json_decref(run);
    return sgt_print_json(doc, JSON_REAL_PRECISION(9), err);
}

/* ---- estimates, self-checks ---- */

static int on_cuda(const sgt_train_estimate *e) { return strcmp(e->device, "cuda") == 0; }

static void print_estimate(const sgt_train_estimate *e)
{
    const sgt_model *m = &e->model;
    char a[32];
    printf("a step of %ux%ux%u, %u ids, %llu rows of %llu tokens, %s on %s\n", m->layers,
           m->channels, m->heads, m->vocab, (unsigned long long)s.batch, (unsigned long long)s.seq,
           sgt_precision_words[s.step.precision], on_cuda(e) ? "CUDA" : "the CPU");
    for (size_t i = 0; i < e->count; i++)
        printf("  %-24s %12s %6.1f %%\n", e->kinds[i].name,
               sgt_format_bytes(a, sizeof a, e->kinds[i].bytes),
               100 * (double)e->kinds[i].bytes / (double)e->total);
    printf("  %-24s %12s", "in all", sgt_format_bytes(a, sizeof a, e->total));
    if (e->available != UINT64_MAX)
        printf("%s %s free now", e->total > e->available ? ", more than the" : " of",
               sgt_format_bytes(a, sizeof a, e->available));
    putchar('\n');
    if (on_cuda(e) && e->checkpoint)
        printf("  %-24s %12s of the host's memory\n", "checkpoint",
               sgt_format_bytes(a, sizeof a, e->checkpoint));
}

static json_t *estimate_json(const sgt_train_estimate *e)
{
    json_t *kinds = json_array();
    for (size_t i = 0; i < e->count; i++)
        json_array_append_new(kinds, json_pack("{s:s, s:I}", "name", e->kinds[i].name, "bytes",
                                               (json_int_t)e->kinds[i].bytes));
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:I, s:I, s:o}", "device", e->device,
                     "precision", sgt_precision_words[s.step.precision], "parameters",
                     (json_int_t)sgt_model_parameters(&e->model), "batch", (json_int_t)s.batch,
                     "seq", (json_int_t)s.seq, "kinds", kinds, "total_bytes", (json_int_t)e->total,
                     "checkpoint_bytes", (json_int_t)e->checkpoint, "available_bytes",
                     sgt_json_count(e->available));
}

static int estimate(const sgt_train_options *options)
{
    sgt_error err;
    sgt_train_estimate e;
    if (!sgt_ranks_first(options->ranks)) return SGT_EXIT_OK;
    int rc = sgt_train_estimate_memory(&s, options, &e, &err);
    if (rc == SGT_OK && o.json) rc = sgt_print_json(estimate_json(&e), 0, &err);
    else if (rc == SGT_OK) print_estimate(&e);
    return sgt_end_program(&program, rc, &err);
}

static void print_paths(const sgt_cuda_device *d, const sgt_cuda_versions *libraries,
                        const sgt_verdicts *v)
{
    printf("%s (sm_%d%d)", d->name, d->major, d->minor);
    for (size_t i = 0; i < libraries->count; i++)
        printf(", %s %s", libraries->of[i].library, libraries->of[i].version);
    putchar('\n');
    for (size_t i = 0; i < v->count; i++) {
        const sgt_checked *c = &v->of[i];
        printf("  %-33s  %-7s%s%s\n", c->path, c->verdict, *c->why ? "  " : "", c->why);
    }
}

static json_t *paths_json(const sgt_cuda_device *d, const sgt_cuda_versions *libraries,
                          const sgt_verdicts *v)
{
    json_t *paths = json_array(), *versions = json_object();
    for (size_t i = 0; i < libraries->count; i++)
        json_object_set_new(versions, libraries->of[i].library,
                            json_string(libraries->of[i].version));
    for (size_t i = 0; i < v->count; i++)
        json_array_append_new(paths, json_pack("{s:s, s:s, s:s}", "path", v->of[i].path, "verdict",
                                               v->of[i].verdict, "why", v->of[i].why));
    return json_pack("{s:s, s:o, s:o}", "device", d->name, "libraries", versions, "paths", paths);
}

/* Implement --self-check: test every path of the CUDA backend (for example, each implementation of
 * attention), even if the folder `cache` contains the results of earlier tests. Store the new
 * results in this folder, and print them. Return the program's exit code, which is 0 only if all
 * paths were tested and passed. */
static int check_paths(const char *cache, const sgt_stop *stop)
{
    sgt_error err, why;
    sgt_verdicts v = {0};
    sgt_cuda_versions libraries;
    sgt_cuda_device d;
    const sgt_cuda_library *lib;
    sgt_paths_options options = {.program = "/proc/self/exe",
                                 .cache = cache,
                                 .fresh = 1,
                                 .stop = stop,
                                 .warning = sgt_talk_notice(program.name, 0)};
    int rc = sgt_device_cuda(&lib, &d, &why), out = 0;
    if (rc < 0) sgt_fail(&err, rc, "--self-check: %s", why.text);
    else rc = sgt_paths_check(&v, lib, &options, &err);
    if (rc < 0) return sgt_report_failure(&program, &err);
    lib->checks->versions(&libraries, &d);
    if (o.json) rc = sgt_print_json(paths_json(&d, &libraries, &v), 0, &err);
    else print_paths(&d, &libraries, &v);
    for (size_t i = 0; i < v.count; i++) out += !sgt_checked_good(&v.of[i]);
    if (out) rc = sgt_fail(&err, SGT_EIO, "self-check: %d of %zu paths did not pass", out, v.count);
    return sgt_end_program(&program, rc, &err);
}

/* ---- prompts and completions ---- */

typedef struct reading {
    sample_lines file;
    sgt_examples *e;
    /* numbers of elements allocated for the arrays e->starts (`room`) and e->learnt
     * (`learnt_room`) */
    size_t room, learnt_room;
} reading;

static int add_example(reading *r, const json_t *prompt, const json_t *completion)
{
    sgt_examples *e = r->e;
    sample_lines *f = &r->file;
    size_t start = f->count;
    int rc = sgt_reserve(&e->starts, &r->room, e->count + 2, sizeof *e->starts, f->path, f->err);
    if (rc == SGT_OK)
        rc = sgt_reserve(&e->learnt, &r->learnt_room, e->count + 1, sizeof *e->learnt, f->path,
                         f->err);
    if (rc == SGT_OK)
        rc = sample_lines_encode(f, json_string_value(prompt), json_string_length(prompt));
    if (rc < 0) return rc;
    if (f->count - start > UINT32_MAX)
        return sample_lines_fail(f, "the prompt is too long: it has %zu tokens", f->count - start);
    if (f->count == start) f->tokens[f->count++] = (int32_t)e->eot;
    e->learnt[e->count] = (uint32_t)(f->count - start);
    rc = sample_lines_encode(f, json_string_value(completion), json_string_length(completion));
    if (rc < 0) return rc;
    f->tokens[f->count++] = (int32_t)e->eot;
    e->starts[e->count++] = start;
    e->starts[e->count] = f->count;
    return SGT_OK;
}

static int read_example(void *ctx, const json_t *line)
{
    reading *r = ctx;
    const json_t *prompt = json_object_get(line, "prompt"),
                 *completion = json_object_get(line, "completion");
    if (json_is_string(prompt) && json_is_string(completion))
        return add_example(r, prompt, completion);
    return sample_lines_fail(&r->file, "expected {\"prompt\": TEXT, \"completion\": TEXT}, but %s",
                             !json_is_object(line)    ? "the line is not an object"
                             : json_is_string(prompt) ? "\"completion\" is missing or not a string"
                                                      : "\"prompt\" is missing or not a string");
}

/* Read examples for training from a JSONL file. (This is sgt_train_options.examples.) Each line of
 * the file is {"prompt": TEXT, "completion": TEXT}. Other keys and blank lines are ignored. If a
 * line is invalid, return SGT_EFORMAT with a message that names the file and the line.
 *
 * Each text is normalized and tokenized. The vocabulary is that in the folder of the model at path
 * `model`, which has `vocab` ids, or GPT-2's if `model` is NULL. An example consists of the
 * prompt's tokens, the completion's tokens and the end-of-text id. An empty prompt is replaced with
 * the end-of-text id. */
static int read_examples(const char *path, const char *model, uint32_t vocab, sgt_examples *e,
                         sgt_error *err)
{
    size_t n;
    sgt_vocab *v = NULL;
    reading r = {.file = {.path = path, .err = err}, .e = e};
    int rc = model ? sample_vocab_beside(&v, model, vocab, "copy its tokenizer.json there", err)
                   : sgt_vocab_load(&v, "gpt2", NULL, err);
    if (rc == SGT_EUSAGE) rc = sgt_fail(err, SGT_EUNSUPPORTED, "%s", err->text);
    if (rc == SGT_OK) {
        r.file.vocab = v;
        e->eot = sgt_vocab_eot(v);
        e->vocab = sgt_vocab_size(v);
        rc = sample_lines_read(&r.file, MOST_BYTES, read_example, &r);
    }
    if (rc == SGT_OK && !e->count)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: it has no examples: expected one {\"prompt\": TEXT, \"completion\": "
                      "TEXT} per line",
                      path);
    if (rc == SGT_OK) rc = sgt_vocab_tokenizer_json(v, &e->tokenizer, &n, err);
    e->tokens = r.file.tokens;
    e->hash = r.file.hash;
    sample_lines_free(&r.file);
    sgt_vocab_free(v);
    return rc;
}

/* ---- vocabularies ---- */

/* Compare the vocabulary in the folder of the model at `path` with the vocabulary of the training
 * data. (This is sgt_train_options.vocabulary.) Return 1 if the vocabularies agree, 0 if they
 * differ, or a negative SGT_E* on error. If they agree and `bytes` is not NULL, set bytes[id] to
 * the length in bytes of the token's text, for each id below n. If `path` is NULL, there is no
 * model to compare with: return 1, and set bytes[] from the vocabulary of the data. */
static int compare_vocabulary(const char *path, const char *tokenizer, uint64_t fingerprint,
                              uint32_t *bytes, uint32_t n, sgt_error *err)
{
    sgt_vocab *v = NULL, *data = NULL;
    int rc = path ? sample_vocab_beside(&v, path, 0, "", err)
                  : sample_vocab_of_data(&v, NULL, fingerprint, n, err);
    /* SGT_EUSAGE means that the model's folder contains no vocabulary. In that case, assume that
     * the vocabularies agree, because nothing can be compared. */
    if (rc < 0) return path && rc == SGT_EUSAGE ? 1 : rc;
    int same = !path || !fingerprint || sgt_vocab_fingerprint(v) == fingerprint;
    if (!same) rc = sample_vocab_of_data(&data, tokenizer, fingerprint, 0, err);
    if (data) same = sample_vocab_agrees(data, v);
    if (same && bytes) sgt_vocab_text_bytes(v, bytes, n);
    sgt_vocab_free(v);
    sgt_vocab_free(data);
    return rc == SGT_ENOMEM ? rc : same;
}

/* ---- the command line ---- */

/* If the message in *err is about an option in the file given with --config, insert the file's path
 * and the option's line number before the message. Such a message begins with "--NAME". text:
 * contents of the file. */
static void name_line(sgt_error *err, const char *text)
{
    char key[64];
    size_t line = 1;
    snprintf(key, sizeof key, "\"%.*s\"", (int)strcspn(err->text + 2, " :"), err->text + 2);
    const char *at = strstr(text, key);
    if (!at) return;
    while (at > text) line += *--at == '\n';
    sgt_fail(err, err->code, "%s: line %zu: %s", o.config, line, err->text);
}

/* Read the file given with --config. Options on the command line take precedence over options in
 * the file. On an error, exit. */
static void read_config(void)
{
    sgt_error err;
    char *text = NULL, names[4096], hint[SGT_HINT];
    size_t n;
    int rc = sgt_file_get(&text, &n, o.config, MAX_CONFIG, &err);
    if (rc == SGT_OK) rc = sgt_config_merge(&s, text, o.config, SGT_MERGE_GIVEN, &err);
    if (rc == SGT_OK) rc = sgt_config_check(&s, &err);
    if (rc == SGT_EUSAGE) name_line(&err, text);
    free(text);
    n = 0;
    for (const sgt_option *row = sgt_config_rows; s.unknown && row->name; row++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s ", row->name);
    if (s.unknown)
        sgt_fail(&err, rc, "%s%s", err.text,
                 sgt_suggest(s.unknown, strlen(s.unknown), names, "", 0, hint));
    if (rc == SGT_EUSAGE) sgt_usage(&program, "%s", err.text);
    if (rc < 0) exit(sgt_report_failure(&program, &err));
}

/* Parse the command line, and read the file given with --config. Exit with a usage error if options
 * are given that cannot be combined. (The table of options cannot express this.) */
static void parse_options(int argc, char **argv)
{
    sgt_error err;
    sgt_config_default(&s);
    sgt_options_parse(&program, argc, argv);
    if (o.verbose && o.quiet) sgt_usage(&program, "--verbose: not together with --quiet");
    if (o.resume && o.resume_or_start)
        sgt_usage(&program, "--resume: not together with --resume-or-start, which starts at step 0 "
                            "if there is no checkpoint");
    if (o.self_check && s.device == SGT_DEVICE_CPU)
        sgt_usage(&program, "--self-check: needs --device cuda");
    if (o.self_check && o.no_self_check)
        sgt_usage(&program, "--self-check: not together with --no-self-check");
    if (o.resume_or_start && o.force)
        sgt_usage(&program, "--resume-or-start: not together with --force");
    s.batch_auto = s.given[SGT_SET_BATCH] && s.batch == SGT_DEFAULT_COUNT;
    if (o.config) read_config();
    /* Treat `--batch-size auto` as if the option were not given, so that a resumed run keeps the
     * batch size that was chosen when the run started. */
    if (s.batch_auto) s.given[SGT_SET_BATCH] = 0;
    if (sgt_config_check(&s, &err) < 0) sgt_usage(&program, "%s", err.text);
    sgt_take_cpu(&program, s.cpu);
}

static int run(sgt_train_options *options)
{
    sgt_error err;
    sgt_training_result r;
    options->ctx = sgt_progress_new("step", o.quiet);
    sgt_progress_keep_last(options->ctx);
    int rc = sgt_train(&s, options, &r, &err);
    sgt_progress_end(options->ctx);
    /* Print the results even if an error occurred after the last step, for example when the
     * checkpoint was saved, because training itself is complete. */
    int ended = rc == SGT_OK || rc == SGT_ESTOPPED || r.steps == s.steps;
    if (sgt_ranks_first(options->ranks) && ended) {
        if (!o.json && !o.quiet) print_end(&r);
        if (o.json && print_json(&r, &err) < 0) rc = err.code;
    }
    sgt_training_result_free(&r);
    return sgt_ranks_close(options->ranks, &program, rc, &err);
}

/* If a launcher such as mpirun has started several ranks (processes), connect to the other ranks,
 * and turn off the output of this rank unless it is rank 0. With --estimate-memory, only find out
 * how many ranks there are. Return SGT_EXIT_OK, or another exit code of the program on error. */
static int join_ranks(sgt_train_options *options)
{
    sgt_error err;
    if (sgt_ranks_open(&options->ranks, program.name, &options->notice, o.estimate, &err) < 0)
        return sgt_report_failure(&program, &err);
    if (sgt_ranks_first(options->ranks)) return SGT_EXIT_OK;
    o.quiet = 1;
    options->notice = options->detail = options->warning = (sgt_notice){0};
    return SGT_EXIT_OK;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], SGT_PATHS_CHILD) == 0) {
        sgt_search_wheels();
        return sgt_paths_child(argv[2]);
    }
    sgt_spin_little(argv);
    sgt_end_without_memory(program.name);
    char *cache = sgt_cache_folder();
    char *command = sgt_command_line(program.name, argc, argv);
    sgt_stop *stop = sgt_catch_signals();
    /* A failure to install the handler is ignored. Without the handler, reading a truncated shard
     * kills the process with SIGBUS instead of returning an error. */
    sgt_loader_guard_sigbus(NULL);
    parse_options(argc, argv);
    if (s.device != SGT_DEVICE_CPU) sgt_search_wheels();
    sgt_train_options options = {.run = o.run,
                                 .resume = o.resume || o.resume_or_start,
                                 .or_start = o.resume_or_start,
                                 .force = o.force,
                                 .stop_diverged = o.stop_diverged,
                                 .notice = sgt_talk_notice(program.name, o.quiet),
                                 .detail = sgt_talk_notice(program.name, !o.verbose),
                                 .warning = sgt_talk_notice(program.name, 0),
                                 .command = command,
                                 .profile = o.profile,
                                 .examples = read_examples,
                                 .vocabulary = compare_vocabulary,
                                 .cache = cache,
                                 .checker = o.no_self_check ? NULL : "/proc/self/exe",
                                 .stop = stop,
                                 .most_threads = sgt_most_threads(),
                                 .opened = start_clock,
                                 .progress = show_progress,
                                 .line = show_line};
    s.step.unverified = o.no_self_check;
    int code = o.self_check ? check_paths(cache, stop) : join_ranks(&options);
    if (!o.self_check && code == SGT_EXIT_OK)
        code = o.estimate ? estimate(&options) : run(&options);
    sgt_config_free(&s);
    free(command);
    free(cache);
    return code;
}
