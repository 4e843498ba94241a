/* json_parts.c: divide parts into lines, and make a document of each. json_line.c reads a line. */
#include "tokenize/input/json_parts.h"

#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "tokenize/input/feed.h"
#include "tokenize/input/json_line.h"
#include "tokenize/input/kept.h"
#include "tokenize/input/parquet_page.h"
#include "tokenize/input/parquet_parts.h"
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

int sgt_json_parts(sgt_unit *u, const sgt_corpus *c, const sgt_tokenize_options *o, sgt_error *err)
{
    unfolding f = {.u = u, .corpus = c, .o = o};
    size_t count = u->count, room = u->part_room, longest = 0;
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
    sgt_part *read = u->parts;
    u->parts = u->folded;
    u->part_room = u->folded_room;
    u->folded = read;
    u->folded_room = room;
    u->count = 0;
    for (size_t i = 0; i < count && !rc; i++) rc = unfold_part(&f, &u->folded[i], err);
    sgt_parquet_pages_drop(u);
done:
    sgt_kept_names_free(&f.kept);
    return rc < 0 ? rc : SGT_OK;
}
