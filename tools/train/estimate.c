/* estimate.c: prints the memory of a step, for one batch size or several, and the table of learning
 * rates. */
#include "tools/train/estimate.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/talk.h"
#include "train/advice.h"

/* ---- the list of --batch-size ---- */

static char *batch_argument(int argc, char **argv)
{
    static const char name[] = "--batch-size";
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], name, sizeof name - 1) != 0) continue;
        if (argv[i][sizeof name - 1] == '=') return argv[i] + sizeof name;
        if (!argv[i][sizeof name - 1] && i + 1 < argc) return argv[i + 1];
    }
    return NULL;
}

void estimate_take_batches(estimate_batches *list, const sgt_program *program, int argc,
                           char **argv)
{
    char *value = batch_argument(argc, argv), *words[ESTIMATE_BATCHES];
    int estimating = 0, bad = 0;
    for (int i = 1; i < argc; i++) estimating |= strcmp(argv[i], "--estimate-memory") == 0;
    *list = (estimate_batches){.count = 0};
    if (!estimating || !value || !strchr(value, ',')) return;
    int count = sgt_split_list(value, words, ESTIMATE_BATCHES);
    for (int i = 0; i < count; i++) {
        bad |= sgt_parse_count(words[i], &list->sizes[i]) != 0 || list->sizes[i] < 1;
        free(words[i]);
    }
    if (count < 0 || bad)
        sgt_usage(program, "--batch-size %s: not a list of at most %d numbers, such as 16,32",
                  value, ESTIMATE_BATCHES);
    list->count = (size_t)count;
    value[strcspn(value, ",")] = '\0';
}

/* ---- one batch size ---- */

static int on_cuda(const sgt_train_estimate *e) { return strcmp(e->device, "cuda") == 0; }

static void print_shape(const sgt_config *s, const sgt_train_estimate *e, const char *rows)
{
    const sgt_model *m = &e->model;
    printf("a step of %ux%ux%u, %u ids, %s of %llu tokens, %s on %s\n", m->layers, m->channels,
           m->heads, m->vocab, rows, (unsigned long long)s->seq,
           sgt_precision_words[s->step.precision], on_cuda(e) ? "CUDA" : "the CPU");
}

static void print_one(const sgt_config *s, const sgt_train_estimate *e)
{
    char a[32];
    snprintf(a, sizeof a, "%llu rows", (unsigned long long)s->batch);
    print_shape(s, e, a);
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

static json_t *document(const sgt_config *s, const sgt_train_estimate *e)
{
    json_t *kinds = json_array();
    for (size_t i = 0; i < e->count; i++)
        json_array_append_new(kinds, json_pack("{s:s, s:I}", "name", e->kinds[i].name, "bytes",
                                               (json_int_t)e->kinds[i].bytes));
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:I, s:I, s:o}", "device", e->device,
                     "precision", sgt_precision_words[s->step.precision], "parameters",
                     (json_int_t)sgt_model_parameters(&e->model), "batch", (json_int_t)s->batch,
                     "seq", (json_int_t)s->seq, "kinds", kinds, "total_bytes", (json_int_t)e->total,
                     "checkpoint_bytes", (json_int_t)e->checkpoint, "available_bytes",
                     e->available == UINT64_MAX ? json_null()
                                                : json_integer((json_int_t)e->available));
}

/* ---- several ---- */

static void print_line(const sgt_config *s, const sgt_train_estimate *e)
{
    char a[32], b[32];
    printf("  %5llu %14s %12s  %s\n", (unsigned long long)s->batch,
           sgt_format_bytes(a, sizeof a, sgt_train_estimate_activations(e)),
           sgt_format_bytes(b, sizeof b, e->total),
           e->available == UINT64_MAX ? "free memory is not known"
           : e->total <= e->available ? "fits"
                                      : "does not fit: try --recompute block or --grad-accum");
}

/* Write a JSON document on one line. */
static void dump(json_t *doc)
{
    json_dumpf(doc, stdout, 0);
    putchar('\n');
    json_decref(doc);
}

static int print_list(sgt_config *s, const sgt_train_options *o, const estimate_batches *list,
                      int json, sgt_error *err)
{
    sgt_train_estimate e;
    json_t *all = json_array();
    int rc = SGT_OK;
    for (size_t i = 0; i < list->count && rc == SGT_OK; i++) {
        s->batch = list->sizes[i];
        rc = sgt_train_estimate_memory(s, o, &e, err);
        if (rc < 0) break;
        char a[32];
        if (!sgt_ranks_first(o->ranks)) continue;
        if (json) json_array_append_new(all, document(s, &e));
        else if (i == 0) {
            print_shape(s, &e, "rows");
            printf("   rows    activations       in all  of %s free now\n",
                   e.available == UINT64_MAX ? "unknown"
                                             : sgt_format_bytes(a, sizeof a, e.available));
        }
        if (!json) print_line(s, &e);
    }
    if (json && rc == SGT_OK && sgt_ranks_first(o->ranks)) dump(json_pack("{s:O}", "batches", all));
    json_decref(all);
    return rc;
}

int estimate_print(sgt_config *s, const sgt_train_options *o, const estimate_batches *list,
                   int json, sgt_error *err)
{
    sgt_train_estimate e;
    if (list->count) return print_list(s, o, list, json, err);
    int rc = sgt_train_estimate_memory(s, o, &e, err);
    if (rc < 0 || !sgt_ranks_first(o->ranks)) return rc;
    if (json) dump(document(s, &e));
    else print_one(s, &e);
    return SGT_OK;
}

/* ---- learning rates ---- */

void estimate_print_rates(int json)
{
    static const struct {
        const char *name;
        uint64_t parameters;
    } models[] = {{"1 million", 1000000},     {"10 million", 10000000},
                  {"30 million", 30000000},   {"gpt2", 124000000},
                  {"gpt2-medium", 355000000}, {"gpt2-large", 774000000},
                  {"gpt2-xl", 1500000000},    {"GPT-3", UINT64_C(175000000000)}};
    json_t *all = json_array();
    if (!json)
        printf("learning rates of AdamW; --lr auto takes the last three columns, by rows a step\n"
               "  %-12s %9s %9s %9s %9s %9s\n",
               "model", "lowest", "highest", "8 rows", "64 rows", "512 rows");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        sgt_lr_range r = sgt_advice_lr(models[i].parameters);
        double rate[3];
        for (int k = 0; k < 3; k++)
            rate[k] = sgt_advice_auto_lr(models[i].parameters, UINT64_C(8) << 3 * k, 64);
        if (!json)
            printf("  %-12s %9.2g %9.2g %9.2g %9.2g %9.2g\n", models[i].name, r.low, r.high,
                   rate[0], rate[1], rate[2]);
        json_array_append_new(
            all, json_pack("{s:s, s:I, s:f, s:f, s:{s:f, s:f, s:f}}", "model", models[i].name,
                           "parameters", (json_int_t)models[i].parameters, "low", r.low, "high",
                           r.high, "auto", "8", rate[0], "64", rate[1], "512", rate[2]));
    }
    if (json) dump(json_pack("{s:O}", "rates", all));
    json_decref(all);
}
