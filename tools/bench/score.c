/* score.c: sgt-bench score: how many questions a checkpoint answers right, by the likelihood of the answers. */
#include "tools/bench/score.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/checkpoint.h"
#include "model/config.h"
#include "device.h"
#include "run/run.h"
#include "tools/bench/bench.h"
#include "tools/bench/picture.h"
#include "tools/bench/shape.h"
#include "tools/cli/progress.h"
#include "tools/cli/talk.h"

#define CPU_ROWS 8
#define GPT2_VOCAB 50257

static bench_shape shape = {.device = "auto"};

static const sgt_option table[] = {
    {.name = "What is run"},
    {"model", 'm', SGT_OPT_TEXT, &shape.model, "DIR",
     .help = "a checkpoint, a run (its newest one), or any Hugging Face GPT-2 directory (needed)"},
    BENCH_DEVICE(shape),
    {"batch-size", 'b', SGT_OPT_COUNT, &shape.batch, "N", "answers at a time", .def = "64 on CUDA, 8 on a CPU",
     .min = 1, .max = 65536},
    BENCH_PRECISION(shape, "what matrices are kept in"),
    BENCH_THREADS(shape),
    BENCH_OUTPUT(shape),
    {0}};

static const sgt_program program = {
    .name = "sgt-bench score",
    .usage = "sgt-bench score [OPTION]... --model DIR FILE",
    .about =
        "Accuracy of a model on the questions of a JSON-lines file: {\"ctx\", \"endings\", \"label\"} as HellaSwag\n"
        "has them, or {\"text\"}, whose last word is to be said, as LAMBADA has them.",
    .options = table,
    .examples = "  sgt-bench score --model run/step-00001000 hellaswag_val.jsonl\n"
                "  sgt-bench score --model gpt2/ --device cuda lambada_test.jsonl --json"};

typedef struct scoring {
    const char *path, *device;
    char *model; /* the checkpoint's folder */
    score_items items;
    sgt_backend_options o;
    sgt_backend *b;
    uint16_t *tokens; /* (B, T + 1) */
    int32_t *targets; /* (B, T) */
    float *losses;    /* (B, T) */
    uint8_t *greedy;  /* (B, T), of last words */
    const sgt_stop *stop;
    /* over all items */
    size_t right, right_by_length;
    double loss; /* of last words */
} scoring;

/* ---- the model ---- */

static int find_model(scoring *s, const sgt_notice *notice, sgt_error *err)
{
    int rc = sgt_run_newest(&s->model, shape.model, 0, notice, err);
    if (rc == SGT_OK && !s->model && !(s->model = strdup(shape.model)))
        rc = sgt_fail(err, SGT_ENOMEM, "%s: out of memory", shape.model);
    return rc == SGT_OK ? sgt_config_read(&s->o.model, s->model, err) : rc;
}

static int open_model(scoring *s, const sgt_notice *notice, sgt_error *err)
{
    int cuda = strcmp(s->device, "cuda") == 0;
    uint64_t rows = shape.batch ? shape.batch : cuda ? 64 : CPU_ROWS;
    s->o.batch = (uint32_t)(rows < s->items.row_count ? rows : s->items.row_count);
    s->o.seq = s->items.longest - 1;
    s->o.optim = (sgt_optim){.kind = SGT_SGD}; /* with the least state: nothing is updated */
    s->o.threads = bench_threads(&shape);
    s->o.precision = bench_precision(&shape, cuda);
    s->o.notice = *notice;
    size_t n = (size_t)s->o.batch * s->o.seq;
    s->tokens = calloc(n + s->o.batch, sizeof *s->tokens);
    s->targets = calloc(n, sizeof *s->targets);
    s->losses = calloc(n, sizeof *s->losses);
    s->greedy = calloc(n, sizeof *s->greedy);
    if (!s->tokens || !s->targets || !s->losses || !s->greedy) return sgt_fail(err, SGT_ENOMEM, "out of memory");
    int rc = sgt_device_backend(&s->b, s->device, &s->o, err);
    return rc == SGT_OK ? sgt_checkpoint_load_model(s->model, s->b, &s->o.model, err) : rc;
}

/* ---- rows ---- */

/* Row r of the batch: tokens, zeros behind them, and the answer's targets alone. */
static void put_row(scoring *s, size_t r, const score_row *row)
{
    size_t T = s->o.seq;
    uint16_t *tokens = s->tokens + r * (T + 1);
    int32_t *targets = s->targets + r * T;
    memset(tokens, 0, (T + 1) * sizeof *tokens);
    for (size_t t = 0; t < T; t++) targets[t] = -1;
    if (!row) return;
    memcpy(tokens, s->items.tokens + row->start, row->count * sizeof *tokens);
    for (size_t t = row->count - row->asked; t < row->count; t++) targets[t - 1] = tokens[t];
}

static void take_row(const scoring *s, size_t r, score_row *row)
{
    row->greedy = 1;
    for (size_t t = row->count - row->asked; t < row->count; t++) {
        row->loss += (double)s->losses[r * s->o.seq + t - 1];
        row->greedy &= s->greedy[r * s->o.seq + t - 1];
    }
}

static int run_rows(scoring *s, sgt_progress *p, sgt_error *err)
{
    score_items *all = &s->items;
    double loss;
    uint64_t counted;
    sgt_batch rows = {.tokens = s->tokens,
                     .targets = s->targets,
                     .losses = s->losses,
                     .greedy = all->kind == SCORE_WORD ? s->greedy : NULL};
    for (size_t at = 0; at < all->row_count; at += s->o.batch) {
        if (sgt_stopped(s->stop)) return sgt_fail(err, SGT_ESTOPPED, "%s: interrupted", s->path);
        for (size_t r = 0; r < s->o.batch; r++)
            put_row(s, r, at + r < all->row_count ? &all->rows[at + r] : NULL);
        int rc = s->b->eval(s->b, &rows, &loss, &counted, err);
        if (rc < 0) return rc;
        size_t n = all->row_count - at < s->o.batch ? all->row_count - at : s->o.batch;
        for (size_t r = 0; r < n; r++) take_row(s, r, &all->rows[at + r]);
        sgt_progress_update(p, at + n, all->row_count, 0, "");
    }
    return SGT_OK;
}

/* ---- items ---- */

/* The likeliest answer, the first of such: its tokens' losses summed, or that divided by how many they are. */
static uint32_t pick(const scoring *s, const score_item *item, int by_length)
{
    const score_row *rows = s->items.rows + item->row;
    uint32_t best = 0;
    double least = INFINITY;
    for (uint32_t i = 0; i < item->choices; i++) {
        double loss = by_length ? rows[i].loss / rows[i].asked : rows[i].loss;
        if (loss < least) best = i, least = loss;
    }
    return best;
}

static void count_right(scoring *s)
{
    for (size_t i = 0; i < s->items.count; i++) {
        const score_item *item = &s->items.items[i];
        if (s->items.kind == SCORE_CHOICE) {
            s->right += pick(s, item, 0) == item->label;
            s->right_by_length += pick(s, item, 1) == item->label;
        } else {
            s->right += (size_t)s->items.rows[item->row].greedy;
            s->loss += s->items.rows[item->row].loss;
        }
    }
}

static double share(const scoring *s, size_t right) { return (double)right / (double)s->items.count; }

/* Of a right share p of n independent answers: sqrt(p (1 - p) / (n - 1)). */
static double doubt(const scoring *s, size_t right)
{
    double p = share(s, right), n = (double)s->items.count;
    return n > 1 ? sqrt(p * (1 - p) / (n - 1)) : 0;
}

static json_t *item_json(const scoring *s, const score_item *item)
{
    json_t *losses = json_array();
    const score_row *rows = s->items.rows + item->row;
    for (uint32_t i = 0; i < item->choices; i++) json_array_append_new(losses, json_real(rows[i].loss));
    if (s->items.kind == SCORE_CHOICE)
        return json_pack("{s:I, s:i, s:i, s:i, s:o}", "line", (json_int_t)item->line, "label", (int)item->label, "pick",
                         (int)pick(s, item, 0), "pick_norm", (int)pick(s, item, 1), "losses", losses);
    return json_pack("{s:I, s:b, s:i, s:o}", "line", (json_int_t)item->line, "right", rows->greedy, "tokens",
                     (int)rows->asked, "losses", losses);
}

static int print_json(const scoring *s, sgt_error *err)
{
    int choice = s->items.kind == SCORE_CHOICE;
    json_t *items = json_array();
    for (size_t i = 0; i < s->items.count; i++) json_array_append_new(items, item_json(s, &s->items.items[i]));
    json_t *top = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:f, s:f}", "file", s->path, "model", s->model, "kind",
                            choice ? "endings" : "last word", "device", s->b->name, "precision",
                            sgt_precision_words[s->o.precision], "items", (json_int_t)s->items.count, "acc",
                            share(s, s->right), "acc_stderr", doubt(s, s->right));
    if (!top) return sgt_fail(err, SGT_ENOMEM, "out of memory, or a name that is not UTF-8");
    if (choice) {
        json_object_set_new(top, "acc_norm", json_real(share(s, s->right_by_length)));
        json_object_set_new(top, "acc_norm_stderr", json_real(doubt(s, s->right_by_length)));
    } else {
        json_object_set_new(top, "perplexity", json_real(exp(s->loss / (double)s->items.count)));
    }
    json_object_set_new(top, "results", items);
    int bad = json_dumpf(top, stdout, JSON_REAL_PRECISION(9)) < 0 || putchar('\n') == EOF;
    json_decref(top);
    return bad ? sgt_fail_errno(err, "standard output") : SGT_OK;
}

/* The share of right answers that guessing gives: of last words, none. */
static double guessed(const scoring *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->items.count && s->items.kind == SCORE_CHOICE; i++) sum += 1.0 / s->items.items[i].choices;
    return sum / (double)s->items.count;
}

static void show_share(const scoring *s, const char *name, size_t right)
{
    size_t most = s->right > s->right_by_length ? s->right : s->right_by_length;
    printf("%c %-10s  %.4f +- %.4f  (%zu of %zu)\n", right == most ? '*' : ' ', name, share(s, right), doubt(s, right),
           right, s->items.count);
}

static void show(const scoring *s)
{
    char path[48], model[48], machine[160];
    printf("%s\n%s, %s, %s, %s\n", bench_machine(machine, sizeof machine), bench_name(path, sizeof path, s->path),
           bench_name(model, sizeof model, s->model), s->b->name, sgt_precision_words[s->o.precision]);
    show_share(s, "acc", s->right);
    if (s->items.kind == SCORE_CHOICE) {
        show_share(s, "acc_norm", s->right_by_length);
        printf("  %-10s  %.4f\n\n* the better one\n", "guessing", guessed(s));
    } else printf("  %-10s  %.4f\n", "perplexity", exp(s->loss / (double)s->items.count));
}

static int plot(const scoring *s, sgt_error *err)
{
    char path[48], model[48];
    bench_picture *p = bench_picture_new("Right answers of %s by %s", bench_name(path, sizeof path, s->path),
                                         bench_name(model, sizeof model, s->model));
    bench_picture_group(p, "share of %zu, on %s in %s", s->items.count, s->b->name,
                        sgt_precision_words[s->o.precision]);
    bench_picture_bar(p, BENCH_OURS, share(s, s->right), "acc", "%.4f +- %.4f", share(s, s->right), doubt(s, s->right));
    if (s->items.kind == SCORE_CHOICE) {
        bench_picture_bar(p, BENCH_OURS, share(s, s->right_by_length), "acc_norm", "%.4f +- %.4f",
                          share(s, s->right_by_length), doubt(s, s->right_by_length));
        bench_picture_bar(p, BENCH_LIMIT, guessed(s), "guessing", "%.4f", guessed(s));
    }
    bench_picture_bar(p, BENCH_LIMIT, 1, "all", "1");
    return bench_picture_write(p, shape.plot, err);
}

/* ---- the whole ---- */

static int score(scoring *s, const sgt_notice *notice, sgt_error *err)
{
    int rc = bench_device(&s->device, notice, err);
    if (rc == SGT_OK) rc = find_model(s, notice, err);
    if (rc == SGT_OK && s->o.model.vocab < GPT2_VOCAB)
        rc = sgt_fail(err, SGT_EUNSUPPORTED, "%s: a vocabulary of %u, not GPT-2's %d", s->model, s->o.model.vocab,
                      GPT2_VOCAB);
    if (rc == SGT_OK) rc = score_items_read(&s->items, s->path, s->o.model.positions, err);
    if (rc == SGT_OK && s->items.cut)
        sgt_say(notice, "%s: %zu of %zu contexts are cut at their beginning to the model's %u positions", s->path,
                s->items.cut, s->items.row_count, s->o.model.positions);
    if (rc == SGT_OK) rc = open_model(s, notice, err);
    if (rc < 0) return rc;
    sgt_progress *p = sgt_progress_new("answers", SGT_PROGRESS_ITEMS, shape.quiet);
    rc = run_rows(s, p, err);
    sgt_progress_end(p);
    if (rc == SGT_OK) count_right(s);
    return rc;
}

static int bench_score(int argc, char **argv)
{
    sgt_error err;
    scoring s = {0};
    int first = sgt_options_parse(&program, argc, argv);
    if (argc - first != 1)
        sgt_usage(&program, first == argc ? "wanted a FILE of questions, a JSON object a line" : "one FILE at a time");
    if (!shape.model) sgt_usage(&program, "--model: needed (a checkpoint, a run or a Hugging Face directory)");
    sgt_talk talk = {program.name, shape.quiet};
    sgt_notice notice = sgt_talk_notice(&talk);
    s.path = argv[first];
    s.device = shape.device;
    s.stop = sgt_catch_signals();
    int rc = score(&s, &notice, &err);
    if (rc == SGT_OK && shape.plot) rc = plot(&s, &err);
    if (rc == SGT_OK && shape.json) rc = print_json(&s, &err);
    else if (rc == SGT_OK && !shape.quiet) show(&s);
    if (rc == SGT_OK && (fflush(stdout) == EOF || ferror(stdout))) rc = sgt_fail_errno(&err, "standard output");
    if (s.b) s.b->close(s.b);
    score_items_free(&s.items);
    free(s.tokens);
    free(s.targets);
    free(s.losses);
    free(s.greedy);
    free(s.model);
    if (rc == SGT_EUSAGE) sgt_usage(&program, "%s", err.text);
    return rc < 0 ? sgt_report_failure(&program, &err) : SGT_EXIT_OK;
}

const sgt_command bench_score_command = {"score", "what a model knows: its accuracy on questions", &program,
                                         bench_score};
