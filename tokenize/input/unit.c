/* unit.c: the memory and the text of one unit of work, and where a document may be cut. */
#include "tokenize/input/unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenize/input/parquet.h"
#include "tokenize/text/split.h"
#include "tokenize/text/utf8.h"

int sgt_unit_new(sgt_unit *u, sgt_error *err)
{
    *u = (sgt_unit){.parts = calloc(SGT_UNIT_PARTS, sizeof *u->parts),
                    .folded = calloc(SGT_UNIT_PARTS, sizeof *u->folded),
                    .part_room = SGT_UNIT_PARTS,
                    .folded_room = SGT_UNIT_PARTS};
    return u->parts && u->folded ? SGT_OK : sgt_fail_memory(err, "a unit of work");
}

void sgt_unit_free(sgt_unit *u)
{
    sgt_parquet_pages_drop(u);
    free(u->pages);
    free(u->text);
    free(u->parts);
    free(u->folded);
    free(u->ids);
    free(u->scratch);
    free(u->kept);
    sgt_normalizer_free(&u->normal);
    *u = (sgt_unit){0};
}

int sgt_unit_reserve(sgt_unit *u, size_t bytes, sgt_error *err)
{
    if (bytes <= u->room) return SGT_OK;
    uint8_t *more = realloc(u->text, bytes + SGT_UNIT_PAD);
    if (!more) return sgt_fail_memory(err, "an extent of text that cannot be cut");
    u->text = more;
    u->room = bytes;
    return SGT_OK;
}

int sgt_unit_reserve_scratch(sgt_unit *u, size_t bytes, sgt_error *err)
{
    if (bytes <= u->scratch_room) return SGT_OK;
    free(u->scratch);
    u->scratch_room = 0;
    if (!(u->scratch = malloc(bytes + SGT_UNIT_PAD)))
        return sgt_fail_memory(err, "text on its way");
    u->scratch_room = bytes;
    return SGT_OK;
}

int sgt_unit_reserve_page(sgt_unit *u, sgt_error *err)
{
    if (u->page_count < u->page_room) return SGT_OK;
    const size_t room = 2 * u->page_room + 4;
    struct sgt_parquet_page *more = reallocarray(u->pages, room, sizeof *more);
    if (!more) return sgt_fail_memory(err, "pages of a unit of work");
    u->pages = more;
    u->page_room = room;
    return SGT_OK;
}

int sgt_unit_add_part(sgt_unit *u, const sgt_part *p, sgt_error *err)
{
    if (u->count == u->part_room) {
        sgt_part *more = reallocarray(u->parts, 2 * u->part_room, sizeof *more);
        if (!more) return sgt_fail_memory(err, "documents of a unit of work");
        u->parts = more;
        u->part_room *= 2;
    }
    u->parts[u->count++] = *p;
    return SGT_OK;
}

int sgt_bad_line_fail(const sgt_bad_line *b, const sgt_corpus *c, uint64_t line, sgt_error *err)
{
    const sgt_corpus_file *f = &c->files[b->file];
    const char *kind = f->rows ? "row" : "line";
    char at[40] = "";
    if (b->byte) snprintf(at, sizeof at, " byte %" PRIu64 ":", b->byte);
    /* byte 0: the line is valid JSON, but another field may hold the text */
    return sgt_fail(err, SGT_EFORMAT, "%s: %s %" PRIu64 ":%s %s (%s--skip-bad leaves such %ss out)",
                    f->path, kind, line, at, b->why,
                    b->byte ? "" : "--field NAME says which has the text, ", kind);
}

static size_t more(size_t a, size_t b) { return a > b ? a : b; }

void sgt_unit_trim(sgt_unit *u, size_t bytes)
{
    if (u->used) u->wanted = !u->unpacked ? 0 : more(u->used, u->wanted - u->wanted / 8);
    if (u->room > 4 * bytes && u->room > 2 * u->wanted) {
        free(u->text);
        u->text = NULL;
        u->room = 0;
    }
    if (u->id_room > 4 * (bytes + SGT_UNIT_PARTS)) {
        free(u->ids);
        u->ids = NULL;
        u->id_room = 0;
    }
    if (u->scratch_room > 4 * bytes) {
        free(u->scratch);
        u->scratch = NULL;
        u->scratch_room = 0;
    }
    if (u->kept_room > 4 * bytes) {
        free(u->kept);
        u->kept = NULL;
        u->kept_room = 0;
    }
    if (u->normal.room > 4 * bytes || u->normal.point_room > bytes) sgt_normalizer_free(&u->normal);
}

/* Count the part's ill-formed units, and record where the first ones of the unit lie in the
 * file. */
static void locate_invalid(sgt_unit *u, sgt_part *p)
{
    uint64_t at[SGT_INVALID_LISTED];
    size_t free_places = SGT_INVALID_LISTED - u->invalid_count;
    p->invalid = sgt_utf8_count_ill_formed(u->text + p->at, p->length, at, free_places);
    for (size_t i = 0; i < p->invalid && i < free_places; i++)
        u->invalid[u->invalid_count++] = (sgt_invalid_at){p->file, p->end - p->length + at[i]};
}

int sgt_unit_text(sgt_unit *u, sgt_part *p, const sgt_tokenize_options *o, const uint8_t **text,
                  size_t *n, sgt_error *err)
{
    *text = u->text + p->at;
    *n = p->length;
    if (!p->valid) locate_invalid(u, p);
    if (p->invalid && o->invalid_utf8 == SGT_INVALID_FAIL)
        return sgt_fail(err, SGT_EFORMAT,
                        "offset %" PRIu64 ": not UTF-8 (--invalid-utf8 keep or replace reads it)",
                        u->invalid[0].offset);
    if (p->invalid && o->invalid_utf8 == SGT_INVALID_REPLACE) {
        /* each ill-formed unit has at least one byte and becomes three */
        int rc = sgt_unit_reserve_scratch(u, *n + 2 * p->invalid, err);
        if (rc < 0) return rc;
        *n = sgt_utf8_replace(u->scratch, *text, *n);
        *text = u->scratch;
    }
    return SGT_OK;
}

size_t sgt_unit_cut(const uint8_t *text, size_t n, const sgt_rule *rule, const uint64_t *joins,
                    const sgt_literal *literal)
{
    size_t from = 0, cut, around;
    if (!literal->text) return n ? sgt_rule_cut(rule, text, n, joins) : 0;
    if (literal->divides) {
        if ((cut = sgt_literal_last(literal, text, n)) > 0) return cut;
        /* the text after the literal is encoded by itself */
        if (sgt_literal_begins(literal, text, n)) from = strlen(literal->text);
    }
    /* a literal that has begun at the end lies behind the cut, so that the next one is before it */
    for (size_t end = literal->divides ? sgt_literal_around(literal, text, n, n) : n;;
         end = around) {
        cut = end > from ? sgt_rule_cut(rule, text + from, end - from, joins) : 0;
        if (!cut) return 0;
        around = sgt_literal_around(literal, text, n, from + cut);
        if (around == from + cut) return around;
        if (around <= from) return 0;
    }
}
