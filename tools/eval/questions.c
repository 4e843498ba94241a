/* questions.c: reads a file of questions, one JSON object per line, and counts the questions that
 * the model answers correctly. Each possible answer to a question becomes a row of tokens. The
 * answer to which the model gives the highest probability counts as its answer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/memory.h"
#include "tokenize/vocab/vocab.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/cli/talk.h"
#include "tools/eval/eval.h"

#define MOST_BYTES ((size_t)1 << 32) /* maximum size of a file in bytes */
#define MOST_CHOICES 1000
#define MOST_TEXT ((size_t)1 << 24) /* maximum total size in bytes of the strings in one line */

typedef enum question_kind {
    NONE,
    CHOICE, /* objects {"ctx", "endings", "label"}, which ask for the right ending of a text */
    WORD    /* objects {"text"}, which ask for the last word of a text */
} question_kind;

/* Rules by which the model's answer to a question is chosen. It is the answer with the lowest total
 * loss of its tokens (BY_SUM), the lowest loss per character (BY_CHARACTER), or the lowest loss per
 * token (BY_TOKEN). As in lm-evaluation-harness, the space before an answer does not count as a
 * character. */
enum { BY_SUM, BY_CHARACTER, BY_TOKEN, RULES };
static const char *const acc_names[] = {"acc", "acc_norm", "acc_token"};
static const char *const stderr_names[] = {"acc_stderr", "acc_norm_stderr", "acc_token_stderr"};

/* A possible answer to a question. Its row, on which the model runs, is the tokens of the
 * question's context, followed by the tokens of the answer. */
typedef struct answer_row {
    uint64_t start; /* index of the row's first token in the array questions.file.tokens */
    /* count: number of tokens in the row. asked: number of tokens of the answer, which are the last
     * ones in the row. characters: number of characters of the answer. */
    uint32_t count, asked, characters;
    double loss; /* total loss of the tokens of the answer */
    int greedy;  /* 1 if greedy decoding after the context would generate the answer; otherwise 0 */
} answer_row;

typedef struct question {
    /* line: number of the question's line in the file, counted from 1. row: index in questions.rows
     * of the question's first answer; the other answers follow. */
    size_t line, row;
    uint32_t choices; /* number of possible answers */
    uint32_t label;   /* index of the right answer, counted from 0 */
} question;

typedef struct questions {
    question_kind kind;
    sample_lines file;
    answer_row *rows;
    question *items;
    size_t row_count, count;
    size_t row_room, room;
    uint32_t positions; /* context length of the model */
    /* number of rows whose first tokens were removed, because the rows were longer than the model's
     * context */
    size_t cut;
    uint32_t longest; /* number of tokens in the longest row */
    /* right[r] is the number of questions that the model answers correctly by rule r. If `kind` is
     * WORD, all elements are equal, because a question has only one answer. */
    size_t right[RULES];
    /* total loss of the last words of all questions if `kind` is WORD; not used if it is CHOICE */
    double loss;
} questions;

/* ---- rows ---- */

static const char *const wanted[] = {
    [NONE] = "{\"ctx\": TEXT, \"endings\": [TEXT, ...], \"label\": N} or {\"text\": TEXT}",
    [CHOICE] = "{\"ctx\": TEXT, \"endings\": [TEXT, ...], \"label\": N}",
    [WORD] = "{\"text\": TEXT}",
};

static int wrong(const questions *s, const char *why)
{
    return sample_lines_fail(&s->file, "expected %s: %s", wanted[s->kind], why);
}

/* Append a row to s->rows. If the row is too long for the model's context, remove tokens from its
 * beginning. Fail if even the answer is too long for the context. */
static int keep_row(questions *s, answer_row row)
{
    if (row.asked > s->positions)
        return sample_lines_fail(&s->file, "answer of %u tokens exceeds the model's %u positions",
                                 row.asked, s->positions);
    if (row.count > s->positions + 1) {
        row.start += row.count - (s->positions + 1);
        row.count = s->positions + 1;
        s->cut++;
    }
    if (row.count > s->longest) s->longest = row.count;
    s->rows[s->row_count++] = row;
    return SGT_OK;
}

/* Add a row with the tokens of a context (the c bytes at `context`), followed by the tokens of a
 * space and an answer (the a bytes at `answer`). An empty context becomes the end-of-text id. */
static int add_row(questions *s, const char *context, size_t c, const char *answer, size_t a)
{
    sample_lines *f = &s->file;
    answer_row row = {.start = f->count};
    char *spaced = malloc(a + 2);
    int rc = spaced ? SGT_OK : sgt_fail_memory(f->err, f->path);
    if (rc == SGT_OK)
        rc =
            sgt_reserve(&s->rows, &s->row_room, s->row_count + 1, sizeof *s->rows, f->path, f->err);
    if (rc == SGT_OK) rc = sample_lines_encode(f, context, c);
    if (rc == SGT_OK && f->count == row.start)
        f->tokens[f->count++] = (int32_t)sgt_vocab_eot(f->vocab);
    size_t before = f->count;
    if (rc == SGT_OK) {
        spaced[0] = ' ';
        memcpy(spaced + 1, answer, a);
        rc = sample_lines_encode(f, spaced, a + 1);
    }
    row.asked = (uint32_t)(f->count - before);
    row.count = (uint32_t)(f->count - row.start);
    for (size_t i = 0; i < a; i++) row.characters += (answer[i] & 0xc0) != 0x80;
    free(spaced);
    return rc == SGT_OK ? keep_row(s, row) : rc;
}

/* ---- the two kinds ---- */

/* Set *label to the index of the right ending, from the JSON value v, which is an integer, as in
 * HellaSwag's own files, or a string of digits. Return 1, or 0 if v is neither, or if the index is
 * not less than `choices`. */
static int read_label(uint32_t *label, const json_t *v, size_t choices)
{
    const char *text = json_string_value(v);
    /* a negative integer becomes a very large number, which is not less than `choices` */
    uint64_t n = (uint64_t)json_integer_value(v);
    if (!json_is_integer(v) &&
        (!text || text[strspn(text, "0123456789")] || sgt_parse_count(text, &n) < 0))
        return 0;
    if (n >= choices) return 0;
    *label = (uint32_t)n;
    return 1;
}

static int add_choices(questions *s, const json_t *o, question *item)
{
    const json_t *ctx = json_object_get(o, "ctx"), *endings = json_object_get(o, "endings");
    size_t n = json_array_size(endings);
    int rc = SGT_OK;
    if (!json_is_string(ctx)) return wrong(s, "\"ctx\" must be a string");
    if (n < 2 || n > MOST_CHOICES) return wrong(s, "\"endings\" must be 2 to 1000 strings");
    if (!read_label(&item->label, json_object_get(o, "label"), n))
        return wrong(s, "\"label\" must be the index of an ending, from 0");
    for (size_t i = 0; i < n && rc == SGT_OK; i++) {
        const json_t *ending = json_array_get(endings, i);
        size_t c = json_string_length(ctx), a = json_string_length(ending);
        if (!json_is_string(ending) || c + a > MOST_TEXT)
            return wrong(s, "\"endings\" must be 2 to 1000 strings");
        rc = add_row(s, json_string_value(ctx), c, json_string_value(ending), a);
    }
    item->choices = (uint32_t)n;
    return rc;
}

static int add_word(questions *s, const json_t *o, question *item)
{
    const json_t *v = json_object_get(o, "text");
    const char *text = json_string_value(v);
    size_t n = json_string_length(v);
    if (!text || n > MOST_TEXT) return wrong(s, "\"text\" must be a string of at most 16 MiB");
    while (n && memchr(" \t\r\n", text[n - 1], 4)) n--;
    size_t word = n;
    while (word && text[word - 1] != ' ') word--;
    if (word < 2) return wrong(s, "\"text\" must have two words with a space between them");
    item->choices = 1;
    return add_row(s, text, word - 1, text + word, n - word);
}

/* ---- lines ---- */

static int add_item(void *ctx, const json_t *o)
{
    questions *s = ctx;
    question_kind kind = json_object_get(o, "text") ? WORD : NONE;
    if (json_object_get(o, "endings")) kind = CHOICE;
    question item = {.line = s->file.line, .row = s->row_count};
    if (!json_is_object(o)) return wrong(s, "not a JSON object");
    if (kind == NONE && !s->kind) return wrong(s, "\"endings\" and \"text\" are missing");
    if (s->kind && kind != s->kind) return wrong(s, "all lines must have the same form");
    s->kind = kind;
    int rc = kind == CHOICE ? add_choices(s, o, &item) : add_word(s, o, &item);
    if (rc == SGT_OK)
        rc = sgt_reserve(&s->items, &s->room, s->count + 1, sizeof *s->items, s->file.path,
                         s->file.err);
    if (rc == SGT_OK) s->items[s->count++] = item;
    return rc;
}

/* Read all questions in a file, which must be of the same kind, and add their rows to s->rows. If a
 * line is invalid, return SGT_EFORMAT with a message that names the file and the line. */
static int read_questions(questions *s, const char *path, const sgt_vocab *v, sgt_error *err)
{
    s->file = (sample_lines){.path = path, .vocab = v, .err = err};
    int rc = sample_lines_read(&s->file, MOST_BYTES, add_item, s);
    sample_lines_free(&s->file);
    if (rc == SGT_OK && !s->count)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: no line in it: expected lines %s", path, wanted[NONE]);
    return rc;
}

/* ---- answers ---- */

/* Fill in row r of the batch with the tokens of `row`, followed by zeros. Only the tokens of the
 * answer become targets, so that only they have a loss. If `row` is NULL, fill row r with zeros and
 * without targets. */
static void put_row(eval_batch *x, size_t r, const questions *items, const answer_row *row)
{
    int32_t *inputs = x->inputs + r * x->seq, *targets = x->targets + r * x->seq;
    const int32_t *tokens = row ? items->file.tokens + row->start : NULL;
    size_t n = row ? row->count : 0, first = row ? n - row->asked : 0;
    for (size_t t = 0; t < x->seq; t++) {
        inputs[t] = t < n ? tokens[t] : 0;
        targets[t] = t + 1 < n && t + 1 >= first ? tokens[t + 1] : -1;
    }
}

static void take_row(const eval_batch *x, size_t r, answer_row *row)
{
    row->greedy = 1;
    for (size_t t = row->count - row->asked; t < row->count; t++) {
        row->loss += (double)x->losses[r * x->seq + t - 1];
        row->greedy &= x->greedy[r * x->seq + t - 1];
    }
}

static int run_rows(questions *s, eval_batch *x, const eval *e, sgt_error *err)
{
    int rc = SGT_OK;
    sgt_progress *p = sgt_progress_new("answers", e->quiet);
    for (size_t at = 0; at < s->row_count && rc == SGT_OK; at += x->rows) {
        size_t n = s->row_count - at < x->rows ? s->row_count - at : x->rows;
        for (size_t r = 0; r < x->rows; r++) put_row(x, r, s, r < n ? &s->rows[at + r] : NULL);
        if ((rc = eval_batch_run(x, e, s->file.path, s->kind == WORD, err)) < 0) break;
        for (size_t r = 0; r < n; r++) take_row(x, r, &s->rows[at + r]);
        sgt_progress_update(p, at + n, s->row_count, 0, "");
    }
    sgt_progress_end(p);
    return rc;
}

/* ---- questions ---- */

/* Return the index of the model's answer to a question, which is the possible answer with the
 * lowest loss by `rule` (BY_SUM, BY_CHARACTER or BY_TOKEN). If several answers have this loss,
 * return the first. */
static uint32_t pick(const questions *s, const question *item, int rule)
{
    const answer_row *rows = s->rows + item->row;
    uint32_t best = 0;
    double least = INFINITY;
    for (uint32_t i = 0; i < item->choices; i++) {
        const double length[] = {1, rows[i].characters, rows[i].asked};
        double loss = rows[i].loss / length[rule];
        if (loss < least) best = i, least = loss;
    }
    return best;
}

static void count_right(questions *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const question *item = &s->items[i];
        const answer_row *first = &s->rows[item->row];
        for (int rule = 0; rule < RULES; rule++)
            s->right[rule] +=
                s->kind == CHOICE ? pick(s, item, rule) == item->label : first->greedy;
        s->loss += first->loss;
    }
}

/* ---- results ---- */

/* Add two members to the JSON object `top`: the fraction p of the n questions that the model
 * answered correctly by `rule`, and the standard error of p, which is sqrt(p (1 - p) / (n - 1)) if
 * the questions are independent of each other. */
static void put_share(json_t *top, const questions *s, int rule)
{
    double n = (double)s->count, p = (double)s->right[rule] / n;
    json_object_set_new(top, acc_names[rule], json_real(p));
    json_object_set_new(top, stderr_names[rule],
                        json_real(n > 1 ? sqrt(p * (1 - p) / (n - 1)) : 0));
}

static json_t *item_json(const questions *s, const question *item)
{
    json_t *losses = json_array();
    const answer_row *rows = s->rows + item->row;
    for (uint32_t i = 0; i < item->choices; i++)
        json_array_append_new(losses, json_real(rows[i].loss));
    if (s->kind == CHOICE)
        return json_pack("{s:I, s:i, s:i, s:i, s:i, s:o}", "line", (json_int_t)item->line, "label",
                         (int)item->label, "pick", (int)pick(s, item, BY_SUM), "pick_norm",
                         (int)pick(s, item, BY_CHARACTER), "pick_token",
                         (int)pick(s, item, BY_TOKEN), "losses", losses);
    return json_pack("{s:I, s:b, s:i, s:o}", "line", (json_int_t)item->line, "right", rows->greedy,
                     "tokens", (int)rows->asked, "losses", losses);
}

static json_t *to_json(const questions *s)
{
    int choice = s->kind == CHOICE;
    const char *path = s->file.path;
    /* average number of questions that random guessing would answer correctly */
    double guessed = 0;
    json_t *items = json_array();
    for (size_t i = 0; i < s->count; i++) {
        json_array_append_new(items, item_json(s, &s->items[i]));
        guessed += 1.0 / s->items[i].choices;
    }
    json_t *top = json_pack("{s:o, s:s, s:I}", "file", sgt_json_string(path), "kind",
                            choice ? "endings" : "last word", "items", (json_int_t)s->count);
    for (int rule = 0; rule < (choice ? RULES : 1); rule++) put_share(top, s, rule);
    if (choice) json_object_set_new(top, "guessing", json_real(guessed / (double)s->count));
    else json_object_set_new(top, "perplexity", json_real(exp(s->loss / (double)s->count)));
    json_object_set_new(top, "answers", items);
    return top;
}

int eval_questions(eval *e, const char *path, sgt_error *err)
{
    questions s = {.positions = e->model.shape.positions};
    eval_batch x = {0};
    int rc = read_questions(&s, path, e->model.vocab, err);
    if (rc == SGT_OK && s.cut)
        sgt_say(&e->notice,
                "%s: %zu of %zu contexts lose their beginning, to fit the model's %u positions",
                path, s.cut, s.row_count, s.positions);
    if (rc == SGT_OK)
        rc = eval_batch_open(&x, e, e->batch < s.row_count ? e->batch : s.row_count, s.longest - 1,
                             err);
    if (rc == SGT_OK) rc = run_rows(&s, &x, e, err);
    eval_batch_close(&x);
    if (rc == SGT_OK) {
        count_right(&s);
        eval_show(e, path, s.kind == CHOICE ? "questions" : "last words", to_json(&s));
    }
    free(s.file.tokens);
    free(s.rows);
    free(s.items);
    return rc;
}
