/* parquet_parts.c: rows become parts. A null, and a string that is not UTF-8, is a bad row. */
#include "tokenize/input/parquet_parts.h"

#include <stdlib.h>

#include "tokenize/input/feed.h"
#include "tokenize/input/parquet_page.h"
#include "tokenize/text/utf8.h"

/* Return whether all strings are UTF-8, in one look: between them in the unit's text is only ASCII,
 * or strings of the same kind (sgt_parquet_page_decode), and none begins within a character. */
static int all_valid(const sgt_unit *u, const sgt_parquet_string *rows, uint64_t count)
{
    size_t from = SIZE_MAX, to = 0, before = SIZE_MAX;
    for (uint64_t i = 0; i < count; i++) {
        const size_t at = rows[i].at, end = at + rows[i].length;
        if (at == SGT_PARQUET_NULL || at == end) continue;
        /* a string that does not follow another one at once has ASCII before it */
        if (at == before && (u->text[at] & 0xC0) == 0x80) return 0;
        if (at < from) from = at;
        if (end > to) to = end;
        before = end;
    }
    return from == SIZE_MAX || sgt_utf8_valid(u->text + from, to - from) == to - from;
}

/* Return why the row is no document, and the byte; NULL if it is one. valid: it is UTF-8. */
static const char *bad_row(const sgt_unit *u, const sgt_parquet_string *s, int valid,
                           uint64_t *byte)
{
    *byte = 0;
    if (s->at == SGT_PARQUET_NULL) return "the field is null";
    if (valid) return NULL;
    const size_t good = sgt_utf8_valid(u->text + s->at, s->length);
    if (good == s->length) return NULL;
    *byte = good + 1;
    return "not UTF-8";
}

static int add_rows(sgt_unit *u, const sgt_part *p, const sgt_parquet_string *rows, uint64_t count,
                    const sgt_corpus *c, const sgt_tokenize_options *o, sgt_error *err)
{
    const char *name = c->files[p->file].name, *why = NULL;
    const int valid = all_valid(u, rows, count);
    sgt_part next = *p;
    uint64_t byte;
    int rc = SGT_OK;
    next.folded = next.closes = next.first = next.last = 0;
    next.page = 0;
    next.valid = 1;
    next.end = p->offset;
    next.line = next.length = 0;
    for (uint64_t i = 0; i < count && !rc; i++) {
        if ((why = bad_row(u, &rows[i], valid, &byte)) && !o->skip_bad) break;
        next.end = p->offset + i + 1;
        next.line++;
        next.bad += why != NULL;
        if (why) continue;
        sgt_part row = next;
        row.at = rows[i].at;
        row.length = rows[i].length;
        row.first = row.last = 1;
        row.kept = p->offset + i;
        row.split = sgt_text_feed_split(name, p->offset + i, o->val_fraction);
        rc = sgt_unit_add_part(u, &row, err);
        next.offset = next.end;
        next.line = next.bad = 0;
    }
    if (rc < 0) return rc;
    const int stopped = why && !o->skip_bad;
    if (stopped) u->bad = (sgt_bad_line){p->file, byte, why};
    next.closes = p->closes && !stopped;
    if (next.closes || next.end > next.offset) rc = sgt_unit_add_part(u, &next, err);
    return rc < 0 ? rc : stopped;
}

int sgt_parquet_parts(sgt_unit *u, const sgt_part *p, const sgt_corpus *c,
                      const sgt_tokenize_options *o, sgt_error *err)
{
    const sgt_parquet_page *page = p->page ? &u->pages[p->page - 1] : NULL;
    const uint64_t count = page ? page->count : 0;
    sgt_parquet_string *rows = malloc((size_t)(count + 1) * sizeof *rows);
    if (!rows) return sgt_fail_memory(err, "rows of a page");
    int rc = page ? sgt_parquet_page_decode(page, u, rows, c->files[p->file].path, err) : SGT_OK;
    if (!rc) rc = add_rows(u, p, rows, count, c, o, err);
    free(rows);
    return rc;
}
