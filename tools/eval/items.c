/* items.c: reads questions and makes rows of them (see eval.h). The file is read as a whole; each
 * line is a JSON object. */
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "tokenize/text/normalize.h"
#include "tokenize/vocab/vocab.h"
#include "tools/eval/eval.h"

#define MOST_BYTES ((size_t)1 << 32) /* most bytes of a file */
#define MOST_CHOICES 1000
#define MOST_TEXT ((size_t)1 << 24) /* most bytes in a line's texts */

static const char *const wanted[] = {
    [EVAL_NONE] = "{\"ctx\": TEXT, \"endings\": [TEXT, ...], \"label\": N} or {\"text\": TEXT}",
    [EVAL_CHOICE] = "{\"ctx\": TEXT, \"endings\": [TEXT, ...], \"label\": N}",
    [EVAL_WORD] = "{\"text\": TEXT}",
};

typedef struct reading {
    eval_items *s;
    const char *path;
    size_t line;
    uint32_t positions;
    const sgt_vocab *vocab;
    sgt_encoder *encoder;
    sgt_normalizer normal;
    sgt_error *err;
} reading;

static int wrong(const reading *r, const char *why)
{
    return sgt_fail(r->err, SGT_EFORMAT, "%s: line %zu: expected %s: %s", r->path, r->line,
                    wanted[r->s->kind], why);
}

/* Make room for one more element of `size` bytes in an array with `count` of them. */
static int grow(void *array, size_t *room, size_t count, size_t size, const reading *r)
{
    void **at = array;
    if (count < *room) return SGT_OK;
    size_t more = 2 * count + 256;
    void *p = reallocarray(*at, more, size);
    if (!p) return sgt_fail_memory(r->err, r->path);
    *at = p;
    *room = more;
    return SGT_OK;
}

/* Append the ids of a text, in the normal form of the vocabulary, and set *count to their number.
 * Leave room for one more. */
static int encode(reading *r, const char *string, size_t n, uint32_t *count)
{
    eval_items *s = r->s;
    const uint8_t *text = (const uint8_t *)string;
    int rc = sgt_normalize_text(&r->normal, r->vocab->normalize, text, n, &text, &n, r->err);
    if (rc == SGT_OK)
        rc = grow(&s->tokens, &s->token_room, s->token_count + n, sizeof *s->tokens, r);
    if (rc < 0) return rc;
    size_t ids = sgt_encode(r->encoder, text, n, s->tokens + s->token_count);
    if (ids == SGT_ENCODE_FAILED)
        return sgt_fail(r->err, SGT_EFORMAT, "%s: line %zu: %s", r->path, r->line,
                        sgt_encoder_failure(r->encoder)->text);
    s->token_count += ids;
    *count = (uint32_t)ids;
    return SGT_OK;
}

/* Keep a row. If it is longer than the model's context, cut off its beginning. */
static int keep_row(const reading *r, eval_row row)
{
    eval_items *s = r->s;
    if (row.asked > r->positions)
        return sgt_fail(r->err, SGT_EFORMAT,
                        "%s: line %zu: an answer of %u tokens: the model has %u positions", r->path,
                        r->line, row.asked, r->positions);
    if (row.count > r->positions + 1) {
        row.start += row.count - (r->positions + 1);
        row.count = r->positions + 1;
        s->cut++;
    }
    if (row.count > s->longest) s->longest = row.count;
    s->rows[s->row_count++] = row;
    return SGT_OK;
}

/* Add the row made of a context and " answer". */
static int add_row(reading *r, const char *context, size_t c, const char *answer, size_t a)
{
    eval_items *s = r->s;
    eval_row row = {.start = s->token_count};
    uint32_t before = 0;
    char *spaced = malloc(a + 2);
    int rc = grow(&s->rows, &s->row_room, s->row_count, sizeof *s->rows, r);
    if (!spaced && rc == SGT_OK) rc = sgt_fail_memory(r->err, r->path);
    if (rc == SGT_OK) {
        spaced[0] = ' ';
        memcpy(spaced + 1, answer, a);
        rc = encode(r, context, c, &before);
        if (rc == SGT_OK && !before) {
            s->tokens[s->token_count++] = (uint16_t)sgt_vocab_eot(r->vocab);
            before = 1;
        }
    }
    if (rc == SGT_OK) rc = encode(r, spaced, a + 1, &row.asked);
    row.count = before + row.asked;
    free(spaced);
    return rc == SGT_OK ? keep_row(r, row) : rc;
}

/* ---- the two kinds ---- */

/* Read a label: a number in HellaSwag's own files, a text with a number in other files. Return 0 if
 * it is neither, or not below `choices`. */
static int read_label(uint32_t *label, const json_t *v, size_t choices)
{
    json_int_t n = -1;
    const char *text = json_string_value(v);
    char *end;
    if (json_is_integer(v)) n = json_integer_value(v);
    if (text && *text >= '0' && *text <= '9') {
        n = strtoll(text, &end, 10);
        if (*end) n = -1;
    }
    if (n < 0 || (size_t)n >= choices) return 0;
    *label = (uint32_t)n;
    return 1;
}

static int add_choices(reading *r, const json_t *o, eval_item *item)
{
    const json_t *ctx = json_object_get(o, "ctx"), *endings = json_object_get(o, "endings");
    size_t n = json_array_size(endings);
    int rc = SGT_OK;
    if (!json_is_string(ctx)) return wrong(r, "no text \"ctx\"");
    if (n < 2 || n > MOST_CHOICES) return wrong(r, "\"endings\" are not 2 to 1000 texts");
    if (!read_label(&item->label, json_object_get(o, "label"), n))
        return wrong(r, "\"label\" is no ending's number");
    for (size_t i = 0; i < n && rc == SGT_OK; i++) {
        const json_t *ending = json_array_get(endings, i);
        size_t c = json_string_length(ctx), a = json_string_length(ending);
        if (!json_is_string(ending) || c + a > MOST_TEXT)
            return wrong(r, "\"endings\" are not 2 to 1000 texts");
        rc = add_row(r, json_string_value(ctx), c, json_string_value(ending), a);
    }
    item->choices = (uint32_t)n;
    return rc;
}

static int add_word(reading *r, const json_t *o, eval_item *item)
{
    const json_t *v = json_object_get(o, "text");
    const char *text = json_string_value(v);
    size_t n = json_string_length(v);
    if (!text || n > MOST_TEXT) return wrong(r, "no text \"text\"");
    while (n && strchr(" \t\r\n", text[n - 1])) n--;
    size_t word = n;
    while (word && text[word - 1] != ' ') word--;
    if (word < 2) return wrong(r, "no two words with a space between them");
    item->choices = 1;
    return add_row(r, text, word - 1, text + word, n - word);
}

/* ---- lines ---- */

static int add_item(reading *r, const json_t *o)
{
    eval_items *s = r->s;
    eval_kind kind = json_object_get(o, "text") ? EVAL_WORD : EVAL_NONE;
    if (json_object_get(o, "endings")) kind = EVAL_CHOICE;
    eval_item item = {.line = r->line, .row = s->row_count};
    if (!json_is_object(o)) return wrong(r, "it is no object");
    if (kind == EVAL_NONE && !s->kind) return wrong(r, "neither");
    if (s->kind && kind != s->kind) return wrong(r, "it is of another kind");
    s->kind = kind;
    int rc = kind == EVAL_CHOICE ? add_choices(r, o, &item) : add_word(r, o, &item);
    if (rc == SGT_OK) rc = grow(&s->items, &s->room, s->count, sizeof *s->items, r);
    if (rc == SGT_OK) s->items[s->count++] = item;
    return rc;
}

static int read_line(reading *r, const char *text, size_t n)
{
    json_error_t why;
    if (strspn(text, " \t\r") >= n) return SGT_OK;
    json_t *o = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    int rc =
        o ? add_item(r, o)
          : sgt_fail(r->err, SGT_EFORMAT, "%s: line %zu: not JSON: %s", r->path, r->line, why.text);
    json_decref(o);
    return rc;
}

int eval_items_read(eval_items *s, const char *path, uint32_t positions, const sgt_vocab *v,
                    sgt_error *err)
{
    char *text = NULL;
    size_t n = 0;
    reading r = {.s = s, .path = path, .positions = positions, .vocab = v, .err = err};
    int rc = sgt_file_get(&text, &n, path, MOST_BYTES, err);
    if (rc == SGT_OK) rc = sgt_encoder_new(&r.encoder, v, err);
    for (size_t at = sgt_utf8_mark(text, n), end; rc == SGT_OK && at < n; at = end + 1) {
        const char *newline = memchr(text + at, '\n', n - at);
        end = newline ? (size_t)(newline - text) : n;
        r.line++;
        rc = read_line(&r, text + at, end - at);
    }
    if (rc == SGT_OK && !s->count)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: no line in it: expected %s a line", path,
                      wanted[EVAL_NONE]);
    sgt_normalizer_free(&r.normal);
    sgt_encoder_free(r.encoder);
    free(text);
    return rc;
}

void eval_items_free(eval_items *s)
{
    free(s->tokens);
    free(s->rows);
    free(s->items);
    *s = (eval_items){0};
}
