/* kept.c: parses the field names that are passed to --keep-fields, and reads the values of these
 * fields from a JSONL line or a Parquet row. */
#include "tokenize/input/kept.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/memory.h"
#include "tokenize/input/parquet.h"
#include "tokenize/text/utf8.h"

/* Return NULL if `name` is a valid name of a field to keep; otherwise return the reason why it is
 * not. A name must not contain characters that need escaping in JSON, because names are copied into
 * JSON unchanged. */
static const char *wrong_name(const sgt_kept_names *k, const char *name)
{
    for (size_t i = 0; i < k->count; i++)
        if (!strcmp(name, k->names[i])) return "is given twice";
    for (const char *s = name; *s; s++)
        if (*s == '"' || *s == '\\' || (unsigned char)*s < 0x20)
            return "contains a quote, a backslash or a control character";
    return NULL;
}

int sgt_kept_names_set(sgt_kept_names *k, const char *list, sgt_error *err)
{
    *k = (sgt_kept_names){.text = list ? strdup(list) : NULL};
    if (list && !k->text) return sgt_fail_memory(err, "keep-fields");
    char *rest = k->text, *name;
    while ((name = strsep(&rest, ","))) {
        const char *why = wrong_name(k, name);
        sgt_error said;
        if (k->count == SGT_KEPT_NAMES)
            return sgt_fail(err, SGT_EUSAGE, "keep-fields: more than %d names", SGT_KEPT_NAMES);
        if (why) return sgt_fail(err, SGT_EUSAGE, "keep-fields: \"%s\" %s", name, why);
        if (sgt_json_path_set(&k->paths[k->count], name, &said) < 0)
            return sgt_fail(err, SGT_EUSAGE, "keep-fields: %s", said.text);
        k->names[k->count++] = name;
    }
    return SGT_OK;
}

int sgt_kept_line(const sgt_kept_names *k, uint8_t *line, sgt_unit *u, sgt_part *p, sgt_error *err)
{
    p->line.kept = u->kept_used;
    for (size_t i = 0; i < k->count; i++) {
        const char *name = k->names[i], *value = "null";
        size_t at, n;
        if (!sgt_json_value(&k->paths[i], line, u->scratch, &at, &n) && n)
            value = (const char *)line + at;
        else n = strlen(value);
        /* reserve 8 bytes in addition to the name and the value: up to three for `, "`, three for
         * `": `, one for `}` and one for a NUL */
        const int rc = sgt_reserve(&u->kept, &u->kept_room, u->kept_used + strlen(name) + n + 8, 1,
                                   "fields to keep", err);
        if (rc < 0) return rc;
        u->kept_used += (size_t)snprintf(u->kept + u->kept_used, u->kept_room - u->kept_used,
                                         "%s\"%s\": %.*s", i ? ", " : "{", name, (int)n, value);
    }
    u->kept[u->kept_used++] = '}';
    p->line.kept_length = u->kept_used - p->line.kept;
    return SGT_OK;
}

/* ---- rows of Parquet ----
 *
 * Each column that --keep-fields names has a separate reader, because the pages of different
 * columns need not begin and end at the same rows. */

typedef struct column {
    sgt_parquet *reader;
    sgt_unit unit; /* holds the current page */
    /* Values of the column in the rows of the current page. For each i < count, rows[i] is the
     * value in the row with the index first + i in the file. */
    sgt_parquet_string *rows;
    uint64_t first, count;
} column;

struct sgt_kept_rows {
    const sgt_kept_names *names;
    const sgt_corpus_file *file;
    column columns[SGT_KEPT_NAMES];
    /* memory stream (open_memstream) for the JSON object of a row; its contents are the `size`
     * bytes at `text` */
    FILE *to;
    char *text;
    size_t size;
};

static int open_rows(sgt_kept_rows **out, const sgt_kept_names *k, const sgt_corpus_file *f,
                     uint64_t row, sgt_error *err)
{
    sgt_kept_rows *r = calloc(1, sizeof *r);
    if (!r) return sgt_fail_memory(err, f->path);
    r->names = k;
    r->file = f;
    int rc = (r->to = open_memstream(&r->text, &r->size)) ? SGT_OK : sgt_fail_memory(err, f->path);
    for (size_t i = 0; i < k->count && !rc; i++) {
        const sgt_parquet_request q = {.file = f, .field = k->names[i], .row = row, .kept = 1};
        column *c = &r->columns[i];
        c->first = row;
        /* allocate room for the maximum number of rows that the reader returns at a time */
        c->rows = calloc(SGT_PARQUET_ROWS, sizeof *c->rows);
        rc = c->rows ? sgt_parquet_open(&c->reader, &q, err) : sgt_fail_memory(err, f->path);
    }
    if (rc < 0) sgt_kept_rows_close(r);
    else *out = r;
    return rc;
}

void sgt_kept_rows_close(sgt_kept_rows *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->names->count; i++) {
        sgt_parquet_close(r->columns[i].reader);
        sgt_unit_free(&r->columns[i].unit);
        free(r->columns[i].rows);
    }
    if (r->to) fclose(r->to);
    free(r->text);
    free(r);
}

/* Read pages of the column c until the current page contains the row with index `row`. */
static int go_to(column *c, const sgt_corpus_file *f, uint64_t row, sgt_error *err)
{
    while (row >= c->first + c->count) {
        uint64_t n;
        c->unit.used = 0;
        sgt_parquet_pages_drop(&c->unit);
        c->first += c->count;
        c->count = 0;
        int rc = sgt_parquet_next(c->reader, &c->unit, &n, err);
        if (!rc) rc = sgt_parquet_page_decode(&c->unit.pages[0], &c->unit, c->rows, f->path, err);
        if (rc == 1)
            rc = sgt_fail(err, SGT_EFORMAT, "%s: row %" PRIu64 " is missing", f->path, row);
        if (rc < 0) return rc;
        c->count = n;
    }
    return SGT_OK;
}

/* Write v / 10^scale as a decimal number. */
static void put_decimal(FILE *to, int64_t v, int scale)
{
    uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v, one = 1;
    for (int i = 0; i < scale; i++) one *= 10;
    fprintf(to, "%s%" PRIu64 ".%0*" PRIu64, v < 0 ? "-" : "", size / one, scale, size % one);
}

/* Write the number whose bytes are at p as JSON. Infinity and NaN, which JSON does not have, are
 * written as null. */
static void put_number(FILE *to, const sgt_parquet_column *c, const uint8_t *p)
{
    const int is_float = c->type == SGT_PARQUET_FLOAT;
    int32_t i;
    int64_t v = 0;
    float f;
    double d;
    if (is_float || c->type == SGT_PARQUET_DOUBLE) {
        memcpy(is_float ? (void *)&f : &d, p, is_float ? sizeof f : sizeof d);
        if (is_float) d = (double)f;
        if (isfinite(d)) fprintf(to, "%.*g", is_float ? 9 : 17, d);
        else fputs("null", to);
        return;
    }
    memcpy(c->type == SGT_PARQUET_INT32 ? (void *)&i : &v, p, sgt_parquet_width(c->type));
    if (c->type == SGT_PARQUET_INT32) v = c->is_unsigned ? (int64_t)(uint32_t)i : i;
    if (c->scale) put_decimal(to, v, c->scale);
    else if (c->is_unsigned) fprintf(to, "%" PRIu64, (uint64_t)v);
    else fprintf(to, "%" PRId64, v);
}

static void put_string(FILE *to, const uint8_t *s, size_t n)
{
    fputc('"', to);
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"' || s[i] == '\\') fputc('\\', to);
        if (s[i] < 0x20) fprintf(to, "\\u%04x", s[i]);
        else fputc(s[i], to);
    }
    fputc('"', to);
}

static int put_value(sgt_kept_rows *r, column *c, uint64_t row, sgt_error *err)
{
    const sgt_parquet_string at = c->rows[row - c->first];
    const sgt_parquet_column *kind = &c->unit.pages[0].column;
    const size_t n = at.length;
    const uint8_t *s = at.at == SGT_PARQUET_NULL ? NULL : c->unit.text + at.at;
    int rc = SGT_OK;
    if (!s) fputs("null", r->to);
    else if (kind->type != SGT_PARQUET_BYTES) put_number(r->to, kind, s);
    else if (sgt_utf8_valid(s, n) == n) put_string(r->to, s, n);
    else if ((rc = sgt_unit_reserve_scratch(&c->unit, 3 * n, err)) == 0)
        put_string(r->to, c->unit.scratch, sgt_utf8_replace(c->unit.scratch, s, n));
    return rc;
}

/* Set *json to a JSON object with the fields of the row with index `row`, and *n to the length of
 * the object in bytes. The object is valid until the next call. Rows must be requested in ascending
 * order. */
static int write_row(sgt_kept_rows *r, uint64_t row, const char **json, size_t *n, sgt_error *err)
{
    int rc = SGT_OK;
    rewind(r->to);
    for (size_t i = 0; i < r->names->count && !rc; i++) {
        rc = go_to(&r->columns[i], r->file, row, err);
        fprintf(r->to, "%s\"%s\": ", i ? ", " : "{", r->names->names[i]);
        if (!rc) rc = put_value(r, &r->columns[i], row, err);
    }
    fputc('}', r->to);
    if (!rc && (fflush(r->to) != 0 || ferror(r->to))) rc = sgt_fail_memory(err, r->file->path);
    *json = r->text;
    *n = r->size;
    return rc;
}

int sgt_kept_of(sgt_kept_rows **rows, const sgt_corpus *c, const sgt_unit *u, const sgt_part *p,
                const char **json, size_t *n, sgt_error *err)
{
    const sgt_corpus_file *f = &c->files[p->file];
    int rc = SGT_OK;
    if (p->kind == SGT_PART_LINE) {
        *json = u->kept + p->line.kept;
        *n = p->line.kept_length;
        return SGT_OK;
    }
    if (*rows && (*rows)->file != f) {
        sgt_kept_rows_close(*rows);
        *rows = NULL;
    }
    if (!*rows) rc = open_rows(rows, &c->kept, f, p->row.number, err);
    return rc < 0 ? rc : write_row(*rows, p->row.number, json, n, err);
}
