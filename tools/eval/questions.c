/* questions.c: counts the questions that a model answers right. The model's answer is the one that
 * it finds the likeliest. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/progress.h"
#include "tools/cli/talk.h"
#include "tools/eval/eval.h"

typedef struct answers {
    eval_items items;
    const char *path;
    size_t right, right_by_length;
    double loss; /* sum of the losses of the last words */
} answers;

/* ---- rows ---- */

/* Fill in row r of the batch: the tokens of `row`, then zeros. Only the tokens of its answer are
 * targets. If `row` is NULL, there are none. */
static void put_row(eval_batch *x, size_t r, const eval_items *items, const eval_row *row)
{
    uint16_t *tokens = x->tokens + r * (x->seq + 1);
    int32_t *targets = x->targets + r * x->seq;
    memset(tokens, 0, (x->seq + 1) * sizeof *tokens);
    for (size_t t = 0; t < x->seq; t++) targets[t] = -1;
    if (!row) return;
    memcpy(tokens, items->tokens + row->start, row->count * sizeof *tokens);
    for (size_t t = row->count - row->asked; t < row->count; t++) targets[t - 1] = tokens[t];
}

static void take_row(const eval_batch *x, size_t r, eval_row *row)
{
    row->greedy = 1;
    for (size_t t = row->count - row->asked; t < row->count; t++) {
        row->loss += (double)x->losses[r * x->seq + t - 1];
        row->greedy &= x->greedy[r * x->seq + t - 1];
    }
}

static int run_rows(answers *a, eval_batch *x, const eval *e, sgt_error *err)
{
    eval_items *s = &a->items;
    int rc = SGT_OK;
    sgt_progress *p = sgt_progress_new("answers", SGT_PROGRESS_ITEMS, e->quiet);
    for (size_t at = 0; at < s->row_count && rc == SGT_OK; at += x->rows) {
        size_t n = s->row_count - at < x->rows ? s->row_count - at : x->rows;
        for (size_t r = 0; r < x->rows; r++) put_row(x, r, s, r < n ? &s->rows[at + r] : NULL);
        if ((rc = eval_batch_run(x, e, a->path, s->kind == EVAL_WORD, err)) < 0) break;
        for (size_t r = 0; r < n; r++) take_row(x, r, &s->rows[at + r]);
        sgt_progress_update(p, at + n, s->row_count, 0, "");
    }
    sgt_progress_end(p);
    return rc;
}

/* ---- questions ---- */

/* Return the index of the likeliest answer, the first of equal ones: that with the least sum of its
 * tokens' losses, or with by_length, the least mean. */
static uint32_t pick(const eval_items *s, const eval_item *item, int by_length)
{
    const eval_row *rows = s->rows + item->row;
    uint32_t best = 0;
    double least = INFINITY;
    for (uint32_t i = 0; i < item->choices; i++) {
        double loss = by_length ? rows[i].loss / rows[i].asked : rows[i].loss;
        if (loss < least) best = i, least = loss;
    }
    return best;
}

static void count_right(answers *a)
{
    const eval_items *s = &a->items;
    for (size_t i = 0; i < s->count; i++) {
        const eval_item *item = &s->items[i];
        if (s->kind == EVAL_CHOICE) {
            a->right += pick(s, item, 0) == item->label;
            a->right_by_length += pick(s, item, 1) == item->label;
        } else {
            a->right += (size_t)s->rows[item->row].greedy;
            a->loss += s->rows[item->row].loss;
        }
    }
}

static double share(const answers *a, size_t right)
{
    return (double)right / (double)a->items.count;
}

/* Return the standard error of the share p of n independent answers that are right: sqrt(p (1 - p)
 * / (n - 1)). */
static double doubt(const answers *a, size_t right)
{
    double p = share(a, right), n = (double)a->items.count;
    return n > 1 ? sqrt(p * (1 - p) / (n - 1)) : 0;
}

static double perplexity(const answers *a) { return exp(a->loss / (double)a->items.count); }

/* ---- results ---- */

static json_t *item_json(const eval_items *s, const eval_item *item)
{
    json_t *losses = json_array();
    const eval_row *rows = s->rows + item->row;
    for (uint32_t i = 0; i < item->choices; i++)
        json_array_append_new(losses, json_real(rows[i].loss));
    if (s->kind == EVAL_CHOICE)
        return json_pack("{s:I, s:i, s:i, s:i, s:o}", "line", (json_int_t)item->line, "label",
                         (int)item->label, "pick", (int)pick(s, item, 0), "pick_norm",
                         (int)pick(s, item, 1), "losses", losses);
    return json_pack("{s:I, s:b, s:i, s:o}", "line", (json_int_t)item->line, "right", rows->greedy,
                     "tokens", (int)rows->asked, "losses", losses);
}

static json_t *to_json(const answers *a)
{
    int choice = a->items.kind == EVAL_CHOICE;
    json_t *items = json_array();
    for (size_t i = 0; i < a->items.count; i++)
        json_array_append_new(items, item_json(&a->items, &a->items.items[i]));
    json_t *top =
        json_pack("{s:o, s:s, s:I, s:f, s:f}", "file", sgt_json_text(a->path, strlen(a->path)),
                  "kind", choice ? "endings" : "last word", "items", (json_int_t)a->items.count,
                  "acc", share(a, a->right), "acc_stderr", doubt(a, a->right));
    if (choice) {
        json_object_set_new(top, "acc_norm", json_real(share(a, a->right_by_length)));
        json_object_set_new(top, "acc_norm_stderr", json_real(doubt(a, a->right_by_length)));
    } else {
        json_object_set_new(top, "perplexity", json_real(perplexity(a)));
    }
    json_object_set_new(top, "answers", items);
    return top;
}

static void show_share(const answers *a, const char *name, size_t right)
{
    printf("  %-13s  %.4f +- %.4f  (%zu of %zu)\n", name, share(a, right), doubt(a, right), right,
           a->items.count);
}

static void show(const answers *a, eval *e)
{
    char count[48];
    int choice = a->items.kind == EVAL_CHOICE;
    double guessed = 0;
    for (size_t i = 0; i < a->items.count; i++) guessed += 1.0 / a->items.items[i].choices;
    eval_show_name(e, a->path);
    printf(": %s\n",
           sgt_format_things(count, sizeof count, a->items.count, choice ? "question" : "last word",
                             choice ? "questions" : "last words"));
    show_share(a, "acc", a->right);
    if (!choice) {
        printf("  %-13s  %.4f\n", "perplexity", perplexity(a));
        return;
    }
    show_share(a, "acc_norm", a->right_by_length);
    printf("  %-13s  %.4f\n", "guessing", guessed / (double)a->items.count);
}

int eval_questions(eval *e, const char *path, sgt_error *err)
{
    answers a = {.path = path};
    eval_batch x = {0};
    uint32_t positions = e->model.shape.positions;
    int rc = eval_items_read(&a.items, path, positions, e->model.vocab, err);
    if (rc == SGT_OK && a.items.cut)
        sgt_say(&e->notice,
                "%s: %zu of %zu contexts are cut at their beginning to the model's %u positions",
                path, a.items.cut, a.items.row_count, positions);
    if (rc == SGT_OK)
        rc = eval_batch_open(&x, e, e->batch < a.items.row_count ? e->batch : a.items.row_count,
                             a.items.longest - 1, err);
    if (rc == SGT_OK) rc = run_rows(&a, &x, e, err);
    eval_batch_close(&x);
    if (rc == SGT_OK) {
        count_right(&a);
        if (e->results) json_array_append_new(e->results, to_json(&a));
        else if (!e->quiet) show(&a, e);
    }
    eval_items_free(&a.items);
    return rc;
}
