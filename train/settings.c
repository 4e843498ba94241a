/* settings.c: defaults, checks and JSON of the settings, all made from the rows of
 * settings_rows.c. */
#include "train/settings.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/backend.h"
#include "train/settings_rows.h"
#include "loader/sgt_loader.h"

#define CPU_BATCH 8
#define CUDA_BATCH 64

static void *field(const sgt_settings *s, const sgt_option *row)
{
    return (char *)(uintptr_t)s + row->offset;
}

static int given(const sgt_settings *s, const sgt_option *row)
{
    return s->given[row - sgt_settings_rows];
}

/* Return the row of the field that follows `last`'s field in sgt_settings, which is the order of
 * options.json; for NULL, the first. Return NULL after the last. */
static const sgt_option *next(const sgt_option *last)
{
    const sgt_option *found = NULL;
    for (const sgt_option *row = sgt_settings_rows; row->name; row++)
        if ((!last || row->offset > last->offset) && (!found || row->offset < found->offset))
            found = row;
    return found;
}

static const sgt_option *next_kept(const sgt_option *last)
{
    do last = next(last);
    while (last && last->flags & NOT_KEPT);
    return last;
}

static void set_default(sgt_settings *s, const sgt_option *row)
{
    int later = row->flags & LATER, whole = sgt_option_is_whole(row);
    void *at = field(s, row);
    if (row->kind == SGT_OPT_FLAG) *(int *)at = 0;
    else if (row->kind == SGT_OPT_TEXT) *(const char **)at = later ? NULL : row->def;
    else if (row->kind == SGT_OPT_WORD)
        *(int *)at =
            later ? SGT_DEFAULT_WORD : sgt_option_word(row, row->def, strcspn(row->def, ":"));
    else if (whole) *(uint64_t *)at = later ? SGT_DEFAULT_COUNT : strtoull(row->def, NULL, 10);
    else *(double *)at = later ? SGT_DEFAULT_REAL : strtod(row->def, NULL);
}

void sgt_settings_default(sgt_settings *s)
{
    *s = (sgt_settings){0};
    for (const sgt_option *row = sgt_settings_rows; row->name; row++) set_default(s, row);
}

void sgt_settings_free(sgt_settings *s)
{
    for (int i = 0; i < 2; i++) json_decref(s->owner[i]);
    s->owner[0] = s->owner[1] = NULL;
}

/* ---- checks ---- */

int sgt_settings_betas(const sgt_settings *s, double betas[2], sgt_error *err)
{
    char *end;
    betas[0] = strtod(s->betas, &end);
    int ok = end != s->betas && *end == ',';
    if (ok) {
        const char *second = end + 1;
        betas[1] = strtod(second, &end);
        ok = end != second && *end == '\0';
    }
    /* a beta that rounds to 1 in float32 would cause a division by 0 */
    for (int i = 0; ok && i < 2; i++) ok = betas[i] >= 0 && (float)betas[i] < 1;
    if (!ok)
        return sgt_fail(err, SGT_EUSAGE,
                        "--betas %s: not two numbers from 0 to below 1, such as 0.9,0.95",
                        s->betas);
    return SGT_OK;
}

static int no_word(const sgt_option *row, const char *word, sgt_error *err)
{
    char value[SGT_OPTION_VALUE];
    return sgt_fail(err, SGT_EUSAGE, "--%s %s: must be one of %s", row->name, word,
                    sgt_option_value(row, value));
}

/* Check a field with a number, or with the number of a word, against its row. */
static int check_row(const sgt_settings *s, const sgt_option *row, sgt_error *err)
{
    char shown[32];
    int later = row->flags & LATER, words = 0;
    const void *at = field(s, row);
    if (sgt_option_is_whole(row)) {
        uint64_t n = *(const uint64_t *)at;
        snprintf(shown, sizeof shown, "%llu", (unsigned long long)n);
        return later && n == SGT_DEFAULT_COUNT ? SGT_OK
                                               : sgt_option_check(row, (double)n, shown, err);
    }
    if (row->kind == SGT_OPT_REAL) {
        double x = *(const double *)at;
        snprintf(shown, sizeof shown, "%g", x);
        return later && x == SGT_DEFAULT_REAL ? SGT_OK : sgt_option_check(row, x, shown, err);
    }
    if (row->kind != SGT_OPT_WORD) return SGT_OK;
    while (row->choices[words]) words++;
    int word = *(const int *)at;
    snprintf(shown, sizeof shown, "%d", word);
    return word < words && word >= (later ? SGT_DEFAULT_WORD : 0) ? SGT_OK
                                                                  : no_word(row, shown, err);
}

int sgt_settings_check(const sgt_settings *s, sgt_error *err)
{
    int rc = SGT_OK;
    double betas[2];
    uint32_t set;
    sgt_model m;
    for (const sgt_option *row = sgt_settings_rows; row->name && rc == SGT_OK; row++)
        rc = check_row(s, row, err);
    if (rc < 0 || (rc = sgt_settings_betas(s, betas, err)) < 0) return rc;
    if (s->variant && (rc = sgt_variants_parse(&set, s->variant, err)) < 0) return rc;
    if (s->scale_lr && s->lr == SGT_DEFAULT_REAL)
        return sgt_fail(
            err, SGT_EUSAGE,
            "--scale-lr: give the --lr to scale (--lr auto follows the batch by itself)");
    if (s->init && s->given[SGT_SET_MODEL])
        return sgt_fail(err, SGT_EUSAGE,
                        "--model %s: not together with --init, which determines the shape",
                        s->model);
    return s->init ? SGT_OK : sgt_model_named(&m, s->model, err);
}

/* ---- options that depend on each other and on the device ---- */

int sgt_settings_examples(const sgt_settings *s)
{
    size_t n = s->data ? strlen(s->data) : 0;
    return n > 6 && strcmp(s->data + n - 6, ".jsonl") == 0;
}

/* Return what the option requires to have an effect and the settings lack, or NULL. */
static const char *lacks(const sgt_settings *s, const sgt_option *row)
{
    int examples = sgt_settings_examples(s);
    switch (row->needs) {
    case SHARDS: return examples ? "--data of shards" : NULL;
    case EXAMPLES: return examples ? NULL : "a --data FILE.jsonl";
    case DOCUMENTS:
        return examples || s->sampling == SGT_SAMPLING_DOCUMENTS ? NULL : "--sampling documents";
    case ADAMW: return s->optimizer == SGT_ADAMW ? NULL : "--optimizer adamw";
    case BETAS: return s->optimizer != SGT_SGD ? NULL : "--optimizer adamw or muon";
    case SGD: return s->optimizer == SGT_SGD ? NULL : "--optimizer sgd";
    case MOMENTUM:
        if (s->optimizer != SGT_SGD) return "--optimizer sgd";
        return s->momentum > 0 ? NULL : "a --momentum above 0";
    case FP16: return s->precision == SGT_PRECISION_FP16 ? NULL : "--precision fp16";
    default: return NULL;
    }
}

int sgt_settings_check_together(const sgt_settings *s, sgt_error *err)
{
    for (const sgt_option *row = next(NULL); row; row = next(row))
        if (given(s, row) && lacks(s, row))
            return sgt_fail(err, SGT_EUSAGE, "--%s: needs %s", row->name, lacks(s, row));
    return SGT_OK;
}

/* Set an option that only CUDA supports back to its default; fail if the user gave it. Such options
 * are texts, choices of a word, or flags. */
static int without_cuda(sgt_settings *s, const sgt_option *row, sgt_error *err)
{
    sgt_settings usual;
    void *at = field(s, row), *was = field(&usual, row);
    int text = row->kind == SGT_OPT_TEXT;
    set_default(&usual, row);
    const char *now = text ? *(const char **)at : NULL, *then = text ? *(const char **)was : NULL;
    int differs = text ? now && (!then || strcmp(now, then) != 0) : *(int *)at != *(int *)was;
    if (row->kind == SGT_OPT_WORD) now = row->choices[*(int *)at];
    if (differs && given(s, row))
        return sgt_fail(err, SGT_EUNSUPPORTED, "--%s%s%s: needs --device cuda", row->name,
                        now ? " " : "", now ? now : "");
    set_default(s, row);
    return SGT_OK;
}

int sgt_settings_take_device(sgt_settings *s, int cuda, int bf16, sgt_error *err)
{
    int rc = SGT_OK;
    for (const sgt_option *row = next(NULL); row && !cuda && rc == SGT_OK; row = next(row))
        if (row->flags & CUDA) rc = without_cuda(s, row, err);
    if (cuda && !s->variant) s->variant = "default";
    if (s->precision == SGT_DEFAULT_WORD)
        s->precision = bf16 ? SGT_PRECISION_BF16 : SGT_PRECISION_FP32;
    if (s->batch == SGT_DEFAULT_COUNT && !s->batch_auto) s->batch = cuda ? CUDA_BATCH : CPU_BATCH;
    return rc;
}

/* ---- JSON ---- */

static int take_word(int *at, const sgt_option *row, const char *word, sgt_error *err)
{
    *at = sgt_option_word(row, word, strlen(word));
    return *at < 0 ? no_word(row, word, err) : SGT_OK;
}

static int take(sgt_settings *s, const sgt_option *row, const json_t *v, const char *what,
                sgt_error *err)
{
    void *at = field(s, row);
    int text = row->kind == SGT_OPT_TEXT || row->kind == SGT_OPT_WORD;
    int whole = sgt_option_is_whole(row);
    if (row->kind == SGT_OPT_WORD && json_is_string(v))
        return take_word(at, row, json_string_value(v), err);
    if (text && json_is_string(v)) *(const char **)at = json_string_value(v);
    else if (whole && json_is_integer(v) && json_integer_value(v) >= 0)
        *(uint64_t *)at = (uint64_t)json_integer_value(v);
    else if (row->kind == SGT_OPT_REAL && json_is_number(v)) *(double *)at = json_number_value(v);
    else if (row->kind == SGT_OPT_FLAG && json_is_boolean(v)) *(int *)at = json_is_true(v);
    else if (row->kind == SGT_OPT_REAL && row->flags & LATER && json_is_string(v) &&
             strcmp(json_string_value(v), "auto") == 0)
        *(double *)at = SGT_DEFAULT_REAL;
    else
        return sgt_fail(err, SGT_EFORMAT, "%s: '%s' is not %s", what, row->name,
                        text                        ? "a text"
                        : whole                     ? "a whole number of at least 0"
                        : row->kind == SGT_OPT_FLAG ? "true or false"
                                                    : "a number");
    return SGT_OK;
}

static const sgt_option *find(const char *name)
{
    const sgt_option *row = sgt_settings_rows;
    while (row->name && (strcmp(row->name, name) != 0 || row->flags & NOT_KEPT)) row++;
    return row->name ? row : NULL;
}

static json_t *parse(const char *text, const char *what, sgt_error *err)
{
    json_error_t why;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (json_is_object(json)) return json;
    sgt_fail(err, SGT_EFORMAT, "%s: not a JSON object%s%s", what, json ? "" : ": ",
             json ? "" : why.text);
    json_decref(json);
    return NULL;
}

int sgt_settings_merge(sgt_settings *s, const char *text, const char *what, int mark,
                       sgt_error *err)
{
    const char *name;
    json_t *v, *json = parse(text, what, err);
    if (!json) return SGT_EFORMAT;
    s->owner[s->owner[0] ? 1 : 0] = json;
    json_object_foreach(json, name, v)
    {
        const sgt_option *row = find(name);
        int rc;
        if (!row)
            return sgt_fail(
                err, SGT_EFORMAT,
                "%s: unknown option '%s' (options are named as in --help, without the dashes)",
                what, name);
        if (given(s, row) || json_is_null(v) || (!mark && (row->flags & LOCAL))) continue;
        if ((rc = take(s, row, v, what, err)) < 0) return rc;
        if (mark) s->given[row - sgt_settings_rows] = 1;
    }
    return SGT_OK;
}

/* Return the text of an option for options.json; NULL if it is undecided or not a text. Variants
 * are written by name, so that a run keeps them when the default changes. */
static const char *kept_text(char names[SGT_VARIANTS_TEXT], const sgt_settings *s,
                             const sgt_option *row)
{
    uint32_t set;
    int word = row->kind == SGT_OPT_WORD ? *(const int *)field(s, row) : SGT_DEFAULT_WORD;
    if (row->kind != SGT_OPT_TEXT) return word < 0 ? NULL : row->choices[word];
    const char *text = *(const char *const *)field(s, row);
    if (row != &sgt_settings_rows[SGT_SET_VARIANT] || !text ||
        sgt_variants_parse(&set, text, NULL) < 0)
        return text;
    return sgt_variants_words(names, set);
}

/* Write a text as JSON. Return 0 if out of memory. */
static int render_text(char *out, size_t n, const char *text)
{
    json_t *v = json_stringn_nocheck(text, strlen(text));
    if (!v) return 0;
    size_t used = json_dumpb(v, out, n, JSON_ENCODE_ANY);
    out[used < n ? used : 0] = '\0';
    json_decref(v);
    if (used || !(v = json_string(text))) return 1;
    json_decref(v); /* valid UTF-8, so the first call failed because memory ran out */
    return 0;
}

/* Write the value of an option as JSON: "" if it is undecided, off or without effect. A number gets
 * the fewest digits that read back as the same number. Return 0 if out of memory. */
static int render(char *out, size_t n, const sgt_settings *s, const sgt_option *row)
{
    char names[SGT_VARIANTS_TEXT];
    const void *at = field(s, row);
    int whole = sgt_option_is_whole(row);
    out[0] = '\0';
    if ((row->flags & LOCAL && !given(s, row)) || lacks(s, row)) return 1;
    if (row->kind == SGT_OPT_FLAG && *(const int *)at) snprintf(out, n, "true");
    if (whole && *(const uint64_t *)at != SGT_DEFAULT_COUNT)
        snprintf(out, n, "%llu", (unsigned long long)*(const uint64_t *)at);
    if (row->kind == SGT_OPT_REAL && *(const double *)at != SGT_DEFAULT_REAL)
        for (int digits = 6; digits <= 17; digits++) {
            /* adding 0 turns -0 into 0 */
            snprintf(out, n, "%.*g", digits, *(const double *)at + 0.0);
            if (strtod(out, NULL) == *(const double *)at) break;
        }
    const char *text = kept_text(names, s, row);
    return text ? render_text(out, n, text) : 1;
}

/* most bytes of a value: a path of PATH_MAX bytes, each escaped as \uXXXX */
#define MAX_VALUE 32768

char *sgt_settings_json(const sgt_settings *s)
{
    char *text = NULL, *value = malloc(MAX_VALUE);
    size_t n, lines = 0;
    int whole = value != NULL;
    FILE *f = open_memstream(&text, &n);
    if (f && value) {
        fputs("{", f);
        for (const sgt_option *row = next_kept(NULL); row; row = next_kept(row)) {
            whole &= render(value, MAX_VALUE, s, row);
            if (*value) fprintf(f, "%s\n  \"%s\": %s", lines++ ? "," : "", row->name, value);
        }
        fputs("\n}\n", f);
    }
    if (f && (ferror(f) | fclose(f))) whole = 0;
    if (!whole) {
        free(text);
        text = NULL;
    }
    free(value);
    return text;
}

int sgt_settings_same_run(const sgt_settings *s, const char *text, int moved, sgt_error *err)
{
    sgt_settings kept;
    char *now = malloc((size_t)2 * MAX_VALUE), *then = now ? now + MAX_VALUE : NULL;
    if (!now) return sgt_fail_memory(err, "options");
    sgt_settings_default(&kept);
    int rc = sgt_settings_merge(&kept, text, "the checkpoint's options", 1, err);
    for (const sgt_option *row = next_kept(NULL); row && rc == SGT_OK; row = next_kept(row)) {
        if (row->flags & (moved ? MAY_CHANGE | DEVICE : MAY_CHANGE)) continue;
        /* with --init, the shape came from that model */
        if (row == &sgt_settings_rows[SGT_SET_MODEL] && kept.init) continue;
        /* the run was made by a version without variants */
        if (row == &sgt_settings_rows[SGT_SET_VARIANT] && !kept.variant) continue;
        if (!render(now, MAX_VALUE, s, row) || !render(then, MAX_VALUE, &kept, row))
            rc = sgt_fail_memory(err, "options");
        else if (strcmp(now, then) != 0)
            rc = sgt_fail(err, SGT_EUNSUPPORTED,
                          "--%s: it is %.200s here and was %.200s in the run to resume (leave it "
                          "out, or start a new --run)",
                          row->name, *now ? now : "not set", *then ? then : "not set");
    }
    sgt_settings_free(&kept);
    free(now);
    return rc;
}
