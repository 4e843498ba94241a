/* json_parts.c: divide parts into lines, and make a document of each. json_line.c reads a line. */
#include "tokenize/input/json_parts.h"

#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "tokenize/input/feed.h"
#include "tokenize/input/json_line.h"
#include "tokenize/input/kept.h"
#include "tokenize/input/parquet.h"
#include "tokenize/text/utf8.h"

typedef struct unfolding {
    sgt_unit *u;
    const sgt_corpus *corpus;
    const sgt_tokenize_options *o;
    sgt_json_path path;
    sgt_kept_names kept;
    int valid;     /* 1: the whole part is known to be UTF-8 */
    sgt_part next; /* the lines after the last document, until one of them holds a document */
} unfolding;

/* Begin a part where the part before it ends. */
static void begin_next(sgt_part *next)
{
    next->offset = next->end;
    next->line = next->bad = next->surrogates = 0;
    next->length = next->kept_length = 0;
    next->first = next->last = 0;
}

static int is_blank(const uint8_t *line)
{
    while (*line == ' ' || *line == '\t' || *line == '\r') line++;
    return *line == '\n';
}

/* Find the document in line[n]. Return NULL, or what is wrong and at which byte. */
static const char *read_document(unfolding *f, uint8_t *line, size_t n, sgt_json_text *t)
{
    size_t good = f->valid ? n : sgt_utf8_valid(line, n);
    if (good == n) return sgt_json_line(&f->path, line, f->u->scratch, t);
    t->at = good;
    return "not UTF-8";
}

/* Handle the line of n bytes at text + at, which belongs to f->next. Return 1 if the line is bad
 * and ends the unit. */
static int unfold_line(unfolding *f, uint8_t *text, size_t at, size_t n, uint64_t position,
                       sgt_error *err)
{
    sgt_part *next = &f->next;
    size_t bom = position == 0 ? sgt_utf8_mark(text + at, n) : 0;
    uint8_t *line = text + at + bom;
    sgt_json_text t;
    const char *why;
    if (is_blank(line)) return 0;
    /* before the text, which is decoded in place */
    const size_t kept = f->u->kept_used;
    if (f->kept.count) {
        const int rc = sgt_kept_line(&f->kept, line, f->u, next, err);
        if (rc < 0) return rc;
    }
    if (!(why = read_document(f, line, n - bom, &t))) {
        next->at = (size_t)(line - f->u->text) + t.at;
        next->length = t.length;
        next->surrogates = t.surrogates;
        next->first = next->last = 1;
        next->split =
            sgt_text_feed_split(f->corpus->files[next->file].name, position, f->o->val_fraction);
        return sgt_unit_add_part(f->u, next, err);
    }
    f->u->kept_used = kept;
    next->kept_length = 0;
    if (f->o->skip_bad) {
        next->bad++;
        return 0;
    }
    f->u->bad = (sgt_bad_line){next->file, t.at == SGT_JSON_NOWHERE ? 0 : bom + t.at + 1, why};
    return 1;
}

/* Unfold the lines of a part. Return 1 if a bad line ended it. */
static int unfold(unfolding *f, const sgt_part *p, sgt_error *err)
{
    uint8_t *text = f->u->text + p->at;
    int rc = 0;
    f->valid = sgt_utf8_valid(text, p->length) == p->length;
    f->next = *p;
    f->next.folded = f->next.closes = 0;
    f->next.valid = 1;
    f->next.end = p->offset;
    begin_next(&f->next);
    for (size_t at = 0; at < p->length && !rc;) {
        /* a newline was added after a file's last line if it had none */
        const uint8_t *newline = memchr(text + at, '\n', p->length + 1 - at);
        size_t n = (size_t)(newline - (text + at)),
               after = at + n < p->length ? at + n + 1 : p->length;
        sgt_part before = f->next;
        f->next.end = p->offset + after;
        f->next.line++;
        if ((rc = unfold_line(f, text, at, n, p->offset + at, err)) == 1) f->next = before;
        if (f->next.first) begin_next(&f->next);
        at = after;
    }
    if (rc < 0) return rc;
    f->next.closes = p->closes && !rc;
    int left =
        f->next.closes || f->next.end > f->next.offset ? sgt_unit_add_part(f->u, &f->next, err) : 0;
    return left < 0 ? left : rc;
}

static int unfold_part(unfolding *f, const sgt_part *p, sgt_error *err)
{
    if (!p->folded) return sgt_unit_add_part(f->u, p, err);
    if (f->corpus->files[p->file].rows) return sgt_parquet_parts(f->u, p, f->corpus, f->o, err);
    return unfold(f, p, err);
}

/* Set the unit's parts aside, to be replaced by others. Return them, and their number in *count. */
static const sgt_part *set_aside(sgt_unit *u, size_t *count)
{
    sgt_part *parts = u->parts;
    const size_t room = u->part_room;
    u->parts = u->folded;
    u->part_room = u->folded_room;
    u->folded = parts;
    u->folded_room = room;
    *count = u->count;
    u->count = 0;
    return parts;
}

static int unfold_parts(sgt_unit *u, const sgt_corpus *c, const sgt_tokenize_options *o,
                        sgt_error *err)
{
    unfolding f = {.u = u, .corpus = c, .o = o};
    size_t count = u->count, longest = 0;
    int any = 0;
    for (size_t i = 0; i < count; i++) {
        const sgt_part *p = &u->parts[i];
        any |= p->folded;
        if (p->folded && !c->files[p->file].rows && p->length >= longest) longest = p->length + 1;
    }
    if (!any) return SGT_OK;
    int rc = sgt_json_path_set(&f.path, o->field ? o->field : "text", err);
    u->kept_used = 0;
    if (!rc) rc = sgt_kept_names_set(&f.kept, o->keep_fields, err);
    if (!rc) rc = sgt_unit_reserve_scratch(u, longest, err);
    if (rc < 0) goto done;
    const sgt_part *read = set_aside(u, &count);
    for (size_t i = 0; i < count && !rc; i++) rc = unfold_part(&f, &read[i], err);
    sgt_parquet_pages_drop(u);
done:
    sgt_kept_names_free(&f.kept);
    return rc < 0 ? rc : SGT_OK;
}

/* ---- literal ends of text ---- */

/* Append the documents that the literals in p's text begin, and first the text before them. */
static int divide(sgt_unit *u, const sgt_part *p, const sgt_corpus_file *f, double val_fraction,
                  const char *literal, sgt_error *err)
{
    const size_t bytes = strlen(literal);
    const uint8_t *begin = u->text + p->at, *end = begin + p->length, *found;
    const int text = !f->lines && !f->rows; /* its extents are bytes of the stream */
    sgt_part next = *p;
    int rc = SGT_OK;
    if (p->first && p->length >= bytes && !memcmp(begin, literal, bytes)) begin += bytes;
    for (uint64_t k = 1; !rc; k++) {
        found = memmem(begin, (size_t)(end - begin), literal, bytes);
        next.at = (size_t)(begin - u->text);
        next.length = (size_t)((found ? found : end) - begin);
        next.end = !found ? p->end : text ? p->end - (uint64_t)(end - found) : p->offset;
        next.last = found ? 1 : p->last;
        next.closes = found ? 0 : p->closes;
        rc = sgt_unit_add_part(u, &next, err);
        if (!found) break;
        begin = found + bytes;
        next.first = 1;
        next.offset = next.end;
        next.line = next.bad = next.surrogates = 0;
        /* of a line or row, its end and the document's number tell the position */
        next.split =
            sgt_text_feed_split(f->name, text ? next.offset : p->end ^ k << 40, val_fraction);
    }
    return rc;
}

static int divide_parts(sgt_unit *u, const sgt_corpus *c, const sgt_tokenize_options *o,
                        const sgt_literal *l, sgt_error *err)
{
    int any = 0, rc = SGT_OK;
    size_t count;
    for (size_t i = 0; i < u->count && !any; i++) {
        const sgt_part *p = &u->parts[i];
        any = memmem(u->text + p->at, p->length, l->text, strlen(l->text)) != NULL;
    }
    if (!any) return SGT_OK;
    const sgt_part *whole = set_aside(u, &count);
    for (size_t i = 0; i < count && !rc; i++) {
        const sgt_part *p = &whole[i];
        rc = divide(u, p, &c->files[p->file], o->val_fraction, l->text, err);
    }
    return rc;
}

int sgt_json_parts(sgt_unit *u, const sgt_corpus *c, const sgt_tokenize_options *o,
                   const sgt_literal *literal, sgt_error *err)
{
    const int rc = unfold_parts(u, c, o, err);
    if (rc < 0 || !literal->text) return rc;
    if (literal->divides) return divide_parts(u, c, o, literal, err);
    for (size_t i = 0; i < u->count; i++) {
        sgt_part *p = &u->parts[i];
        p->literals = sgt_literal_count(literal, u->text + p->at, p->length);
    }
    return SGT_OK;
}
