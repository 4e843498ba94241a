/* unit.c: text to ids for one unit of work, and where a document may be cut. */
#include "unit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json_parts.h"
#include "text/split.h"
#include "text/utf8.h"
#include "vocab/vocab.h"

static int no_memory(const char *what, sgt_error *err)
{
    return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", what);
}

int sgt_unit_new(sgt_unit *u, sgt_error *err)
{
    *u = (sgt_unit){.parts = calloc(SGT_UNIT_PARTS, sizeof *u->parts),
                    .folded = calloc(SGT_UNIT_PARTS, sizeof *u->folded),
                    .part_room = SGT_UNIT_PARTS,
                    .folded_room = SGT_UNIT_PARTS};
    return u->parts && u->folded ? SGT_OK : no_memory("a unit of work", err);
}

void sgt_unit_free(sgt_unit *u)
{
    free(u->text);
    free(u->parts);
    free(u->folded);
    free(u->ids);
    free(u->scratch);
    sgt_normalizer_free(&u->normal);
    *u = (sgt_unit){0};
}

int sgt_unit_reserve(sgt_unit *u, size_t bytes, sgt_error *err)
{
    if (bytes <= u->room) return SGT_OK;
    uint8_t *more = realloc(u->text, bytes + SGT_UNIT_PAD);
    if (!more) return no_memory("a stretch of text that cannot be cut", err);
    u->text = more;
    u->room = bytes;
    return SGT_OK;
}

int sgt_unit_reserve_scratch(sgt_unit *u, size_t bytes, sgt_error *err)
{
    if (bytes <= u->scratch_room) return SGT_OK;
    free(u->scratch);
    u->scratch_room = 0;
    if (!(u->scratch = malloc(bytes + SGT_UNIT_PAD))) return no_memory("text on its way", err);
    u->scratch_room = bytes;
    return SGT_OK;
}

void sgt_unit_trim(sgt_unit *u, size_t bytes)
{
    if (u->room > 4 * bytes) {
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
    if (u->normal.room > 4 * bytes || u->normal.point_room > bytes) sgt_normalizer_free(&u->normal);
}

static int reserve_ids(sgt_unit *u, size_t more, sgt_error *err)
{
    size_t want = u->id_count + more;
    if (want <= u->id_room) return SGT_OK;
    uint16_t *ids = reallocarray(u->ids, want, sizeof *ids);
    if (!ids) return no_memory("token ids", err);
    u->ids = ids;
    u->id_room = want;
    return SGT_OK;
}

/* Counts the part's ill-formed units; the first of the unit are noted where they lie in the file. */
static void locate_invalid(sgt_unit *u, sgt_part *p)
{
    uint64_t at[SGT_INVALID_LISTED];
    size_t free_places = SGT_INVALID_LISTED - u->invalid_count;
    p->invalid = sgt_utf8_count_ill_formed(u->text + p->at, p->length, at, free_places);
    for (size_t i = 0; i < p->invalid && i < free_places; i++)
        u->invalid[u->invalid_count++] = (sgt_invalid_at){p->file, p->offset + at[i]};
}

static int encode_text(sgt_unit *u, sgt_encoder *e, const sgt_vocab *v, const uint8_t *text, size_t n, sgt_error *err)
{
    int rc = sgt_normalize_text(&u->normal, v->normalize, text, n, &text, &n, err);
    if (rc < 0 || (rc = reserve_ids(u, n, err)) < 0) return rc;
    size_t count = sgt_encode(e, text, n, u->ids + u->id_count);
    if (count == SGT_ENCODE_FAILED) {
        if (err) *err = *sgt_encoder_failure(e);
        return sgt_encoder_failure(e)->code;
    }
    u->id_count += count;
    return SGT_OK;
}

/* A literal end of text is its id; what stands on either side is text of its own, as tiktoken has it. */
static int encode_special(sgt_unit *u, sgt_encoder *e, const sgt_vocab *v, const uint8_t *text, size_t n,
                          sgt_error *err)
{
    const uint8_t *end = text + n, *found;
    const size_t bytes = strlen(v->eot_text);
    int rc = SGT_OK;
    while (!rc && (found = memmem(text, (size_t)(end - text), v->eot_text, bytes))) {
        if ((rc = encode_text(u, e, v, text, (size_t)(found - text), err)) < 0 || (rc = reserve_ids(u, 1, err)) < 0)
            break;
        u->ids[u->id_count++] = (uint16_t)sgt_vocab_eot(v);
        text = found + bytes;
    }
    return rc < 0 ? rc : encode_text(u, e, v, text, (size_t)(end - text), err);
}

int sgt_unit_text(sgt_unit *u, sgt_part *p, const sgt_tokenize_options *o, const uint8_t **text, size_t *n,
                  sgt_error *err)
{
    *text = u->text + p->at;
    *n = p->length;
    if (!p->valid) locate_invalid(u, p);
    if (p->invalid && o->invalid_utf8 == SGT_INVALID_FAIL)
        return sgt_fail(err, SGT_EFORMAT, "offset %" PRIu64 ": not UTF-8 (--invalid-utf8 keep or replace reads it)",
                        u->invalid[0].offset);
    if (p->invalid && o->invalid_utf8 == SGT_INVALID_REPLACE) {
        int rc = sgt_unit_reserve_scratch(u, *n + 2 * p->invalid, err); /* at best one byte becomes three */
        if (rc < 0) return rc;
        *n = sgt_utf8_replace(u->scratch, *text, *n);
        *text = u->scratch;
    }
    return SGT_OK;
}

static int encode_part(sgt_unit *u, sgt_part *p, sgt_encoder *e, const sgt_vocab *v, const sgt_tokenize_options *o,
                       sgt_error *err)
{
    const uint8_t *text;
    size_t n;
    int rc = sgt_unit_text(u, p, o, &text, &n, err);
    if (rc < 0 || (rc = reserve_ids(u, n + 1, err)) < 0) return rc;
    p->first_id = u->id_count;
    if (p->first) u->ids[u->id_count++] = (uint16_t)sgt_vocab_eot(v);
    rc = o->special_eot ? encode_special(u, e, v, text, n, err) : encode_text(u, e, v, text, n, err);
    p->ids = u->id_count - p->first_id;
    return rc;
}

int sgt_unit_encode(sgt_unit *u, sgt_encoder *e, const sgt_vocab *v, const sgt_corpus *c, const sgt_tokenize_options *o,
                    sgt_error *err)
{
    u->id_count = u->invalid_count = 0;
    u->bad.why = NULL;
    int rc = sgt_json_parts(u, c, o, err);
    if (!rc) rc = reserve_ids(u, u->used + u->count, err);
    for (size_t i = 0; i < u->count && !rc; i++) {
        sgt_error why;
        rc = encode_part(u, &u->parts[i], e, v, o, &why);
        if (rc < 0) return sgt_fail(err, rc, "%s: %s", c->files[u->parts[i].file].path, why.text);
    }
    return rc;
}

/* The length of the longest end of text[n] that could be the beginning of a literal. */
static size_t begun_literal(const uint8_t *text, size_t n, const char *special, size_t bytes)
{
    size_t k = n < bytes - 1 ? n : bytes - 1;
    while (k && memcmp(text + n - k, special, k)) k--;
    return k;
}

size_t sgt_unit_cut(const uint8_t *text, size_t n, const uint64_t *joins, const char *special)
{
    if (!special) return n ? sgt_split_cut(text, n, joins) : 0;
    /* What stands between two literals is a text of its own: a cut just after a literal is always safe, and a cut of
     * the text after the last one is safe as long as it is not in a literal that has begun. */
    const size_t bytes = strlen(special);
    size_t after = 0;
    const uint8_t *found;
    while ((found = memmem(text + after, n - after, special, bytes))) after = (size_t)(found - text) + bytes;
    size_t rest = n - after - begun_literal(text + after, n - after, special, bytes);
    size_t cut = rest ? sgt_split_cut(text + after, rest, joins) : 0;
    return after + cut;
}
