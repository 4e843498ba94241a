/* feed.c: reads input files in units of work, divides units into documents, and encodes documents.
 * How this is done depends on the format of the file: text, JSONL or Parquet. Functions of
 * json_line.c and parquet_page.c find the documents in JSONL lines and Parquet pages. */
#include "tokenize/input/feed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/memory.h"
#include "tokenize/bpe/bpe.h"
#include "tokenize/input/corpus.h"
#include "tokenize/input/json_line.h"
#include "tokenize/input/parquet.h"
#include "tokenize/input/source.h"
#include "tokenize/text/split.h"
#include "tokenize/text/utf8.h"
#include "tokenize/vocab/vocab.h"

/* If the split rule allows no cut in this many bytes of text, the text is cut between two tokens
 * (cut_long). */
#define LONG_PIECE ((size_t)1 << 20)
/* Limit in bytes on a JSONL line, and on a stretch of text that cannot be cut. A longer line counts
 * as a bad line; a longer stretch of text is an error. */
#define EXTENT ((size_t)1 << 30)
/* number of bytes of text per unit of work; small enough that the text and its ids fit into the L2
 * cache of a CPU core */
#define PIECE ((size_t)256 << 10)
/* Size in bytes of the largest buffer that a unit keeps for reuse; a larger buffer is freed after
 * use. The compressed and the uncompressed bytes of a Parquet page usually fit into this size.
 * Allocating new memory for a page would take longer than decompressing the page with lz4. */
#define LARGE ((size_t)4 << 20)
/* Maximum number of files that are opened before they are needed. The number is limited because a
 * filtered file needs two descriptors, and a process may usually have only 1,024. */
#define AHEAD 256
/* maximum number of notices that say that some bytes of a file were skipped; further files with
 * skipped bytes are only counted */
#define LEFT_SAID 5
/* number of bytes that sgt_same_hash and read_again read at a time */
#define CHUNK ((size_t)128 << 10)

/* ---- the literal end of text ---- */

/* Return 1 if the n bytes at `text` begin with the literal *l (such as <|endoftext|>); otherwise
 * 0. */
static int begins_with(const sgt_literal *l, const uint8_t *text, size_t n)
{
    return l->text && n >= strlen(l->text) && !memcmp(text, l->text, strlen(l->text));
}

/* Return the offset, from `text`, of the last occurrence of the literal *l (such as <|endoftext|>)
 * in the n bytes at `text`. A literal at offset 0 is ignored. If there is no other literal, return
 * 0. */
static size_t last_literal(const sgt_literal *l, const uint8_t *text, size_t n)
{
    const size_t bytes = strlen(l->text);
    size_t last = 0;
    const uint8_t *found;
    for (size_t at = 1; at < n && (found = memmem(text + at, n - at, l->text, bytes));
         at = last + bytes)
        last = (size_t)(found - text);
    return last;
}

/* memchr searches for the first byte of the literal (such as <|endoftext|>). This is faster than a
 * search for the complete literal with memmem, because text has few such bytes. */
uint64_t sgt_literal_count(const sgt_literal *l, const uint8_t *text, size_t n)
{
    const uint8_t *end = text + n;
    uint64_t count = 0;
    for (; (text = memchr(text, *l->text, (size_t)(end - text))); text++)
        count += begins_with(l, text, (size_t)(end - text)) != 0;
    return count;
}

/* Return the maximum number of bytes of the literal *l (such as <|endoftext|>) that can be after
 * the end of a text if the literal begins in this text: the length of the literal minus 1, or 0 if
 * no literal is searched for. */
static size_t literal_beyond(const sgt_literal *l) { return l->text ? strlen(l->text) - 1 : 0; }

/* Return 1 if the literal *l (such as <|endoftext|>) occurs across the end of the n bytes at
 * `text`, so that it begins in these bytes and ends in the `more` bytes that follow; otherwise
 * 0. */
static uint64_t is_across(const sgt_literal *l, const uint8_t *text, size_t n, size_t more)
{
    const size_t beyond = literal_beyond(l), before = n < beyond ? n : beyond;
    return l->text
               ? sgt_literal_count(l, text + n - before, before + (more < beyond ? more : beyond))
               : 0;
}

/* ---- the memory of a unit ---- */

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
    if (!more) return sgt_fail_memory(err, "text being read");
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
        return sgt_fail_memory(err, "text being decoded");
    u->scratch_room = bytes;
    return SGT_OK;
}

/* Append a copy of *p to the parts of the unit. The number of parts may exceed SGT_UNIT_PARTS. */
static int append_part(sgt_unit *u, const sgt_part *p, sgt_error *err)
{
    int rc =
        sgt_reserve(&u->parts, &u->part_room, u->count + 1, sizeof *p, "list of documents", err);
    if (rc == SGT_OK) u->parts[u->count++] = *p;
    return rc;
}

/* `array` points to a pointer to an array with room for *room elements. If *room exceeds `most`,
 * free the array, and set the pointer to NULL and *room to 0. */
static void free_large(void *array, size_t *room, size_t most)
{
    if (*room <= most) return;
    free(*(void **)array);
    *(void **)array = NULL;
    *room = 0;
}

void sgt_unit_trim(sgt_unit *u)
{
    free_large(&u->text, &u->room, LARGE);
    free_large(&u->ids, &u->id_room, LARGE / sizeof *u->ids);
    free_large(&u->scratch, &u->scratch_room, LARGE);
    free_large(&u->kept, &u->kept_room, LARGE);
    if (u->normal.room > LARGE || u->normal.point_room > LARGE / 4) sgt_normalizer_free(&u->normal);
}

/* ---- reading files ---- */

struct sgt_text_feed {
    sgt_text_feed_options o;
    sgt_reading r; /* copy of o.reading in which the feed has set the remaining fields */
    uint64_t file; /* index of the current or next file */
    /* offset, in the current file's stream, of the first byte that was not yet delivered */
    uint64_t offset;
    /* Compressed and filtered files are opened before they are needed. `opened` is the number of
     * such files opened so far, and `taken` is the number of these that have become the current
     * file since. The k-th opened file, counted from 0, is at ahead[k % ahead_most]. `ahead_file`
     * is the index in the corpus of the next file to consider for opening. */
    sgt_source **ahead;
    uint64_t opened, taken, ahead_file;
    size_t ahead_most;
    sgt_source *source; /* the current file if it is open and not Parquet; otherwise NULL */
    sgt_parquet *rows;  /* the current file if it is open and Parquet; otherwise NULL */
    /* number of streams that the feed recognized by their first bytes as something other than plain
     * text; a notice is printed only for the first of them */
    int noticed;
    /* number of files so far of which damaged bytes or trailing garbage were skipped */
    uint64_t left;
    int split; /* split of the current document of a text file: 0 training, 1 validation */
    sgt_stream_hash hash; /* hash of the stream up to `offset` */
    sgt_lookahead carry;  /* bytes that were read from the stream but not yet delivered */
    /* encoder that finds cuts between two tokens in long text (cut_long); NULL until first
     * needed */
    sgt_encoder *encoder;
    sgt_error failure; /* the first failure; code 0: none */
};

/* Return the XXH3-64 hash of a file's name, with `position` (see sgt_text_feed_split) as the
 * seed. */
static uint64_t hash_of(const char *name, uint64_t position)
{
    return XXH3_64bits_withSeed(name, strlen(name), position);
}

int sgt_text_feed_split(const char *name, uint64_t position, double val_fraction)
{
    if (val_fraction <= 0) return 0;
    /* hashes are uniformly distributed over 0 to 2^64 - 1, so the fraction val_fraction of them is
     * less than val_fraction * 2^64 */
    return (double)hash_of(name, position) < val_fraction * 18446744073709551616.0;
}

int sgt_text_feed_choose(sgt_corpus *c, double val_fraction)
{
    sgt_corpus_file *least = NULL, *most = NULL;
    size_t val = 0;
    if (val_fraction <= 0 || !c->count || c->line_files || c->stream) return 0;
    for (size_t i = 0; i < c->count; i++) {
        sgt_corpus_file *f = &c->files[i];
        val += sgt_text_feed_split(f->name, 0, val_fraction) != 0;
        if (!least || hash_of(f->name, 0) < hash_of(least->name, 0)) least = f;
        if (!most || hash_of(f->name, 0) > hash_of(most->name, 0)) most = f;
    }
    if (!val && c->count > 1) least->val = 1;
    most->train = val == c->count && val_fraction < 1;
    return most->train;
}

static const sgt_corpus_file *current(const sgt_text_feed *f)
{
    return &f->r.corpus->files[f->file];
}

/* Read the first bytes of the current file, which has just been opened, and determine from them
 * what the file holds (a value of sgt_form). The bytes stay in f->carry and are delivered later. */
static int read_form(sgt_text_feed *f, sgt_error *err)
{
    sgt_corpus_file *s = &f->r.corpus->files[f->file];
    const int form = sgt_stream_form(&f->carry, f->source, f->r.corpus, s, err);
    const sgt_error why = *err;
    if (form < 0) return form;
    if (form == SGT_FORM_OTHER)
        return sgt_fail(err, SGT_EFORMAT, "%s: %s", sgt_corpus_shown(s), why.text);
    if (s->detect) s->lines = form == SGT_FORM_LINES;
    if (form != SGT_FORM_TEXT && !f->noticed++)
        sgt_form_notice(&f->r.o->notice, f->r.corpus, s, (sgt_form)form, 0);
    return SGT_OK;
}

/* Advance the stream of the current file to f->offset, where an earlier run stopped, and hash the
 * bytes before this offset. Return an error if the first `hashed` bytes do not have the hash that
 * the earlier run recorded. If the file is neither compressed nor filtered, start reading at the
 * beginning of the hash block that contains byte `hashed`. Otherwise, start at the beginning of the
 * stream, whose first bytes may already be in f->carry. */
static int read_again(sgt_text_feed *f, sgt_error *err)
{
    const uint64_t hashed = f->o.from.hashed;
    uint64_t done = sgt_corpus_made(current(f)) ? 0 : hashed - hashed % SGT_HASH_BLOCK;
    sgt_lookahead *l = &f->carry;
    int rc = done ? sgt_source_seek(f->source, done, err) : SGT_OK;
    if (done) sgt_stream_hash_begin(&f->hash, done, f->o.from.block);
    while (done < f->offset && !rc) {
        const uint64_t left = (done < hashed ? hashed : f->offset) - done;
        if (!l->n && (rc = sgt_lookahead_read(l, f->source, left < CHUNK ? (size_t)left : CHUNK,
                                              current(f)->path, err)) < 0)
            return rc;
        const size_t n = left < l->n ? (size_t)left : l->n;
        sgt_stream_hash_add(&f->hash, l->bytes, n);
        done += n;
        if (!n || (done == hashed && sgt_stream_hash_now(&f->hash) != f->o.from.hash))
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: changed since the run was interrupted, within the first %" PRIu64
                          " bytes%s (--force starts over)",
                          current(f)->path, f->offset,
                          current(f)->filter ? " of its filter's output" : "");
        l->n -= n;
        if (l->n) memmove(l->bytes, l->bytes + n, l->n);
    }
    return rc;
}

/* Open the current file, and compressed or filtered files that follow it, until f->ahead_most such
 * files are open. */
static int open_source(sgt_text_feed *f, sgt_error *err)
{
    const sgt_corpus *c = f->r.corpus;
    const sgt_stop *stop = f->r.o->stop;
    for (; f->ahead_file < c->count && f->opened - f->taken < f->ahead_most; f->ahead_file++) {
        sgt_source **s = &f->ahead[f->opened % f->ahead_most];
        if (!sgt_corpus_made(&c->files[f->ahead_file])) continue;
        const int rc = sgt_source_open(s, &c->files[f->ahead_file], stop, f->o.cancel, err);
        if (rc < 0) return rc;
        sgt_source_ahead(*s);
        f->opened++;
    }
    if (!sgt_corpus_made(current(f)))
        return sgt_source_open(&f->source, current(f), stop, f->o.cancel, err);
    f->source = f->ahead[f->taken++ % f->ahead_most];
    return SGT_OK;
}

static int open_file(sgt_text_feed *f, sgt_error *err)
{
    const sgt_corpus_file *s = current(f);
    if (s->rows) {
        const sgt_parquet_request r = {.file = s,
                                       .field = f->r.corpus->field,
                                       .row = f->offset,
                                       .hashed = f->file == f->o.from.file ? f->o.from.hashed : 0,
                                       .hash = f->o.from.hash,
                                       .stop = f->r.o->stop,
                                       .cancel = f->o.cancel};
        uint64_t first;
        const int rc = sgt_parquet_open(&f->rows, &r, err);
        if (rc < 0) return rc;
        sgt_parquet_hash(f->rows, &first);
        if (f->offset < first) f->offset = first; /* the first row of the file's range */
        return SGT_OK;
    }
    f->split = !s->train && (s->val || sgt_text_feed_split(s->name, 0, f->r.o->val_fraction));
    if (f->offset && f->r.literal.divides) f->split = f->o.from.split != 0;
    int rc = open_source(f, err);
    f->carry.end = 0;
    sgt_stream_hash_begin(&f->hash, 0, 0);
    if (!rc && (s->stream || s->detect)) rc = read_form(f, err);
    return rc < 0 || !f->offset ? rc : read_again(f, err);
}

static void close_file(sgt_text_feed *f)
{
    sgt_source_close(f->source);
    sgt_parquet_close(f->rows);
    f->source = NULL;
    f->rows = NULL;
}

static void next_file(sgt_text_feed *f)
{
    close_file(f);
    f->file++;
    f->offset = 0;
}

/* ---- cutting text and lines ---- */

static int set_carry(sgt_text_feed *f, const uint8_t *bytes, size_t n, sgt_error *err)
{
    sgt_lookahead *l = &f->carry;
    free_large(&l->bytes, &l->room, LARGE);
    const int rc = sgt_reserve(&l->bytes, &l->room, n + 1, 1, current(f)->path, err);
    if (rc < 0) return rc;
    if (n) memcpy(l->bytes, bytes, n);
    l->n = n;
    return SGT_OK;
}

/* Return 1 if the n bytes at `text` begin with the end-of-text literal (such as <|endoftext|>),
 * literals begin documents (--special eot), and the current file is not JSONL; otherwise 0. */
static int begins_document(const sgt_text_feed *f, const uint8_t *text, size_t n)
{
    return f->r.literal.divides && !current(f)->lines && begins_with(&f->r.literal, text, n);
}

/* Append a part to the unit. The text of the part is the n bytes at u->text + at, which come from
 * the current file. Advance f->offset past these bytes. closes: 1 if the file ends after them. */
static int add_part(sgt_text_feed *f, sgt_unit *u, size_t at, size_t n, int closes, sgt_error *err)
{
    const sgt_error *left = sgt_source_left(f->source);
    const int bad = closes && *left->text, nothing = bad && left->code && !f->offset && !n;
    /* `nothing` is 1 if a damaged file has no readable byte before the damage, and therefore no
     * document. In this case, deliver an empty block of JSONL lines, even if the file is a text
     * file, because an empty part of a text file would count as an empty document. */
    const int lines = current(f)->lines || nothing, begins = begins_document(f, u->text + at, n);
    if (bad && f->left++ < LEFT_SAID) sgt_say(&f->r.o->notice, "%s", left->text);
    if (begins && f->offset)
        f->split = sgt_text_feed_split(current(f)->name, f->offset, f->r.o->val_fraction);
    sgt_part part = {.kind = lines ? SGT_PART_LINES : SGT_PART_TEXT,
                     .file = f->file,
                     .offset = f->offset,
                     .end = f->offset + n,
                     .hashed = f->offset,
                     .hash = sgt_stream_hash_now(&f->hash),
                     .block = f->hash.block,
                     .raw = sgt_source_raw(f->source),
                     .at = at,
                     .length = n,
                     .first = !lines && (f->offset == 0 || begins),
                     .last = !lines && (closes || begins_document(f, f->carry.bytes, f->carry.n)),
                     .closes = closes,
                     .split = f->split,
                     .bad = (uint64_t)bad,
                     .literals = lines ? 0 : is_across(&f->r.literal, u->text + at, n, f->carry.n)};
    u->used = at + n;
    f->offset += n;
    sgt_stream_hash_add(&f->hash, u->text + at, n);
    if (closes) part.all = sgt_stream_hash_now(&f->hash);
    /* the last line of the file may lack a newline: append one, because the JSON parser requires
     * that every line ends in a newline */
    if (lines && n && u->text[u->used - 1] != '\n') u->text[u->used++] = '\n';
    if (closes) next_file(f);
    return append_part(u, &part, err);
}

/* Find a cut (an offset at which the text can be divided without changing its ids) in the n bytes
 * at `text`. Ill-formed UTF-8 in the text will be replaced with U+FFFD before it is encoded. Set
 * *good to the offset of the cut, or to 0 if none is found. The cut is searched for in a copy of
 * the text with the replacements, and its offset in the copy is then converted to an offset in the
 * text. */
static int cut_replaced(sgt_text_feed *f, const uint8_t *text, size_t n, size_t *good,
                        sgt_error *err)
{
    uint8_t *twin = malloc(3 * n);
    if (!twin) return sgt_fail_memory(err, current(f)->path);
    size_t cut = sgt_extent_cut(f->encoder, twin, sgt_utf8_replace(twin, text, n));
    free(twin);
    *good = sgt_utf8_replaced_at(text, n, cut);
    return SGT_OK;
}

/* Find a cut (an offset at which the text can be divided without changing its ids) between two
 * tokens in the n bytes at `text`. Call this if the split rule allows no cut in these bytes, and if
 * no literal begins a document in them. The tokens before the cut must be the same whatever text
 * follows. Text to be normalized is cut only if it is all ASCII. Normalization can then change only
 * the last character of the text, depending on the text that follows, and this character is after
 * the cut. Set *good to the offset of the cut; if there is none, *good, which is 0 before the call,
 * stays 0. */
static int cut_long(sgt_text_feed *f, const uint8_t *text, size_t n, size_t *good, sgt_error *err)
{
    if (!f->r.vocab || n < (f->o.long_piece ? f->o.long_piece : LONG_PIECE)) return SGT_OK;
    if (f->r.normalize > SGT_NORMALIZE_NONE && sgt_utf8_ascii(text, n) < n) return SGT_OK;
    int rc = f->encoder ? SGT_OK : sgt_encoder_new(&f->encoder, f->r.vocab, err);
    if (rc < 0) return rc;
    if (f->r.o->invalid_utf8 == SGT_INVALID_REPLACE && sgt_utf8_valid(text, n) < n)
        return cut_replaced(f, text, n, good, err);
    *good = sgt_extent_cut(f->encoder, text, n);
    return SGT_OK;
}

/* Find a cut (an offset at which the text can be divided without changing its ids) in the n bytes
 * at `text`, which come from a text file. Set *good to the cut, or to 0 if there is none. If
 * literals (such as <|endoftext|>) begin documents, cut before the last literal. If there is no
 * such literal, cut where the split rule allows it, except in the last few bytes, which may be the
 * beginning of a literal. As a result, no cut is inside a literal that begins a document, and no
 * literal that is ordinary text is missed when literals are counted. */
static int cut_text(sgt_text_feed *f, const uint8_t *text, size_t n, size_t *good, sgt_error *err)
{
    const sgt_literal *l = &f->r.literal;
    const size_t beyond = literal_beyond(l), from = begins_document(f, text, n) ? beyond + 1 : 0;
    int rc = SGT_OK;
    if (l->divides && (*good = last_literal(l, text, n)) > 0) return SGT_OK;
    if (sgt_rule_by(f->r.rule) == SGT_RULE_PCRE2 || n <= from + beyond) return SGT_OK;
    /* If the text begins with a literal that begins a document, search for a cut only after the
     * literal, because the literal must not be cut. The text after the literal is encoded
     * separately. */
    text += from;
    n -= from + beyond;
    *good = f->r.normalize > SGT_NORMALIZE_NONE
                ? sgt_rule_cut_normalized(f->r.rule, text, n)
                : sgt_rule_cut(f->r.rule, text, n, f->r.vocab ? f->r.vocab->joins : NULL);
    if (!*good) rc = cut_long(f, text, n, good, err);
    if (*good) *good += from;
    return rc;
}

/* Find a cut in the n bytes at `text`, as close to their end as possible. A cut is an offset at
 * which text can be divided without changing its ids, or at which a JSONL line ends. Set *good to
 * the cut, or to 0 if there is no cut and more text must be read. An earlier search has found that
 * the first `seen` bytes contain no cut. */
static int cut_part(sgt_text_feed *f, const uint8_t *text, size_t n, size_t seen, size_t *good,
                    sgt_error *err)
{
    *good = 0;
    if (!current(f)->lines) return cut_text(f, text, n, good, err);
    const uint8_t *newline = memrchr(text + seen, '\n', n - seen);
    if (newline) *good = (size_t)(newline + 1 - text);
    return SGT_OK;
}

/* Append a part for a JSONL line that is too long and therefore bad. The first n bytes of the line
 * are at u->text + at. With --skip-bad, also read up to the end of the line and discard these
 * bytes. Without --skip-bad, do not read further, because the run fails at this line. */
static int add_long_line(sgt_text_feed *f, sgt_unit *u, size_t at, size_t n, sgt_error *err)
{
    uint8_t *text = u->text + at;
    const uint8_t *newline = NULL;
    int rc = add_part(f, u, at, n, 0, err);
    if (rc < 0) return rc;
    while (f->r.o->skip_bad && !newline && !f->carry.end && !rc) {
        size_t got = 0;
        rc = sgt_source_read(f->source, text, &got, n, &f->carry.end, err);
        newline = memchr(text, '\n', got);
        const size_t line = newline ? (size_t)(newline + 1 - text) : got;
        sgt_stream_hash_add(&f->hash, text, line);
        f->offset += line;
        if (newline && !rc) rc = set_carry(f, newline + 1, got - line, err);
    }
    sgt_part *part = &u->parts[u->count - 1];
    part->records = 1;
    part->end = f->offset;
    part->raw = sgt_source_raw(f->source);
    u->used = at;
    /* if reading failed before the end of the line, remove the part again, because the feed returns
     * the error instead of the part */
    u->count -= rc < 0;
    return rc;
}

/* Append the next part of the current file, which is text or JSONL, to the unit. Return 1 if the
 * unit is full, 0 if it is not, or a negative SGT_E*. */
static int read_part(sgt_text_feed *f, sgt_unit *u, sgt_error *err)
{
    size_t at = u->used, n = f->carry.n, want = f->o.piece > at ? f->o.piece - at : 1, seen = 0,
           good;
    int rc;
    const size_t most = f->o.extent ? f->o.extent : EXTENT;
    for (;; seen = n, want = 2 * n < most ? 2 * n : most + 1) {
        if (n > most && current(f)->lines) {
            rc = add_long_line(f, u, at, n, err);
            if (rc < 0 || f->r.o->skip_bad) return rc < 0 ? rc : 1;
        }
        /* if the unit already has parts, sgt_text_feed_next delivers these parts first, and returns
         * this error when it is called again */
        if (n > most)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: offset %" PRIu64
                            ": more than %zu MiB without a place to divide the text (split -C 512M "
                            "FILE makes smaller files)",
                            current(f)->path, f->offset, most >> 20);
        if ((rc = sgt_unit_reserve(u, at + (want > n ? want : n), err)) < 0) return rc;
        if (f->carry.n) memcpy(u->text + at, f->carry.bytes, f->carry.n);
        f->carry.n = 0;
        if ((rc = sgt_source_read(f->source, u->text + at, &n, want, &f->carry.end, err)) < 0)
            return rc;
        if (f->carry.end) return add_part(f, u, at, n, 1, err);
        if ((rc = cut_part(f, u->text + at, n, seen, &good, err)) < 0) return rc;
        if (good || u->count) break;
    }
    rc = set_carry(f, u->text + at + good, n - good, err);
    if (rc < 0) return rc;
    if (good) rc = add_part(f, u, at, good, 0, err);
    return rc < 0 ? rc : 1;
}

/* ---- rows of Parquet ---- */

/* Append the next rows of the current file, which is Parquet, to the unit as a part. Return 1 if
 * the unit is full, 0 if it is not, or a negative SGT_E*. */
static int read_rows(sgt_text_feed *f, sgt_unit *u, sgt_error *err)
{
    const size_t at = u->used, pages = u->page_count;
    uint64_t rows, hashed;
    const uint64_t hash = sgt_parquet_hash(f->rows, &hashed);
    int rc = sgt_parquet_next(f->rows, u, &rows, err);
    if (rc < 0) return rc;
    const int ended = rc == 1;
    uint64_t after;
    const sgt_parquet_page *page = u->page_count > pages ? &u->pages[pages] : NULL;
    const sgt_part part = {.kind = SGT_PART_PAGE,
                           .file = f->file,
                           .offset = f->offset,
                           .end = f->offset + rows,
                           .hashed = hashed,
                           .hash = hash,
                           .all = sgt_parquet_hash(f->rows, &after),
                           .raw = sgt_parquet_raw(f->rows),
                           .at = at,
                           .length = u->used - at,
                           .closes = ended,
                           .page.page = page ? u->page_count : 0};
    f->offset += rows;
    if (page) u->unpacked += page->text;
    if (ended) next_file(f);
    rc = append_part(u, &part, err);
    return rc < 0 ? rc : !ended && u->unpacked >= f->o.piece;
}

/* ---- the feed ---- */

size_t sgt_text_feed_piece(void) { return PIECE; }

int sgt_text_feed_open(sgt_text_feed **out, const sgt_text_feed_options *o, sgt_error *err)
{
    sgt_text_feed *f = calloc(1, sizeof *f);
    if (!f) return sgt_fail_memory(err, "reading inputs");
    f->o = *o;
    f->r = o->reading;
    const sgt_vocab *v = f->r.vocab;
    if (v) f->r.rule = &v->rule;
    f->r.normalize = v ? v->normalize : f->r.o->normalize;
    f->r.literal = (sgt_literal){v ? v->eot_text : SGT_EOT_TEXT, f->r.o->special_eot};
    f->file = f->ahead_file = o->from.file;
    f->offset = o->from.offset;
    f->ahead_most = o->threads < AHEAD / 2 ? 2 * (o->threads + !o->threads) : AHEAD;
    f->ahead = calloc(f->ahead_most, sizeof *f->ahead);
    f->hash.state = XXH3_createState();
    if (f->ahead && f->hash.state) {
        *out = f;
        return SGT_OK;
    }
    sgt_text_feed_close(f);
    return sgt_fail_memory(err, "reading inputs");
}

int sgt_text_feed_next(sgt_text_feed *f, sgt_unit *u, sgt_error *err)
{
    int rc = SGT_OK;
    u->reading = &f->r;
    u->used = u->count = u->unpacked = 0;
    sgt_parquet_pages_drop(u);
    while (!f->failure.code && !rc && u->count < SGT_UNIT_PARTS &&
           (u->used < f->o.piece || !u->count)) {
        const int opened = f->source || f->rows;
        if (!opened && f->file == f->r.corpus->count) break;
        rc = opened ? SGT_OK : open_file(f, &f->failure);
        if (!rc) rc = f->rows ? read_rows(f, u, &f->failure) : read_part(f, u, &f->failure);
    }
    /* If parts were read before an error occurred, deliver the parts now, and return the error at
     * the next call. As a result, a run with a damaged input always fails at the same byte, no
     * matter how the text is divided into units. */
    if (u->count) return 0;
    if (!f->failure.code && f->left > LEFT_SAID)
        sgt_say(&f->r.o->notice,
                "more compressed files with damage or trailing garbage: %" PRIu64 "",
                f->left - LEFT_SAID);
    return f->failure.code ? sgt_fail(err, f->failure.code, "%s", f->failure.text) : 1;
}

void sgt_text_feed_close(sgt_text_feed *f)
{
    if (!f) return;
    close_file(f);
    while (f->ahead && f->taken < f->opened) sgt_source_close(f->ahead[f->taken++ % f->ahead_most]);
    free(f->ahead);
    sgt_encoder_free(f->encoder);
    XXH3_freeState(f->hash.state);
    free(f->carry.bytes);
    free(f);
}

/* ---- dividing lines and rows into documents ---- */

int sgt_bad_line_fail(const sgt_bad_line *b, const sgt_corpus *c, uint64_t line, sgt_error *err)
{
    const sgt_corpus_file *f = &c->files[b->file];
    const char *kind = f->rows ? "row" : "line";
    char at[40] = "";
    if (b->byte) snprintf(at, sizeof at, " byte %" PRIu64 ":", b->byte);
    /* if the error has no position (b->byte is 0), the line is valid JSON without the field, so
     * suggest naming a different field */
    return sgt_fail(err, SGT_EFORMAT, "%s: %s %" PRIu64 ":%s %s (%s--skip-bad skips such %ss)",
                    f->path, kind, line, at, b->why,
                    b->byte ? "" : "--field NAME selects the field with the text, ", kind);
}

/* Move the parts of the unit to u->folded, so that u->parts is empty and unfolding can append new
 * parts to it. Return the parts that were moved, and set *count to their number. */
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

/* Divide part p at the end-of-text literals in its text (<|endoftext|>), each of which begins a new
 * document. Append to the unit a part for the text before the first literal, and a part for the
 * text after each literal. */
static int divide(sgt_unit *u, const sgt_part *p, sgt_error *err)
{
    const char *literal = u->reading->literal.text, *name = u->reading->corpus->files[p->file].name;
    const size_t bytes = strlen(literal);
    const uint8_t *begin = u->text + p->at, *end = begin + p->length, *found;
    /* 1 if the text of the part is a section of the stream, unchanged, so that offsets in the text
     * can be converted to offsets in the stream; 0 if the text was decoded from a line or row */
    const int text = p->kind == SGT_PART_TEXT;
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
        next.bad = found ? 0 : p->bad;
        rc = append_part(u, &next, err);
        if (!found) break;
        begin = found + bytes;
        next.first = 1;
        next.offset = next.end;
        next.records = 0;
        if (next.kind == SGT_PART_LINE) next.line.surrogates = 0;
        /* The split of a document is determined by a hash of a number that no other document of the
         * file has. In a text file, this number is the offset of the document. But all documents of
         * a line or row have the same offset. Their numbers are therefore the end of the line or
         * row, combined with the index of the document in the line or row. */
        next.split = sgt_text_feed_split(name, text ? next.offset : p->end ^ k << 40,
                                         u->reading->o->val_fraction);
    }
    return rc;
}

/* Append the part *p, which is a document or a section of one, to the unit. If literals
 * (<|endoftext|>) begin documents, divide the part at its literals. Otherwise only count its
 * literals. */
static int add_document(sgt_unit *u, const sgt_part *p, sgt_error *err)
{
    const sgt_literal *l = &u->reading->literal;
    if (l->text && l->divides) return divide(u, p, err);
    sgt_part part = *p;
    if (l->text) part.literals += sgt_literal_count(l, u->text + p->at, p->length);
    return append_part(u, &part, err);
}

/* Reset *next, a copy of which has been appended to the unit, so that it can collect the lines or
 * rows that follow. */
static void begin_records(sgt_part *next)
{
    next->offset = next->end;
    next->records = next->bad = next->length = 0;
    next->first = next->last = 0;
    if (next->kind == SGT_PART_LINE) next->line.surrogates = next->line.kept_length = 0;
}

int sgt_unit_add_record(sgt_unit *u, sgt_part *next, uint64_t position, uint64_t end,
                        const char *why, uint64_t byte, sgt_error *err)
{
    const sgt_tokenize_options *o = u->reading->o;
    if (why && !o->skip_bad) {
        u->bad = (sgt_bad_line){next->file, byte, why};
        return 1;
    }
    next->end = end;
    next->records++;
    if (why) {
        next->bad++;
        return SGT_OK;
    }
    next->first = next->last = 1;
    next->split =
        sgt_text_feed_split(u->reading->corpus->files[next->file].name, position, o->val_fraction);
    const int rc = add_document(u, next, err);
    begin_records(next);
    return rc;
}

static int unfold_part(sgt_unit *u, const sgt_part *p, sgt_error *err)
{
    const int lines = p->kind == SGT_PART_LINES,
              cut = lines && p->length && u->text[p->at + p->length - 1] != '\n';
    sgt_part next = *p;
    if (p->kind == SGT_PART_TEXT) return add_document(u, p, err);
    next.kind = lines ? SGT_PART_LINE : SGT_PART_ROW;
    next.end = p->offset;
    next.closes = 0;
    begin_records(&next);
    const int rc = p->records ? sgt_unit_add_record(u, &next, p->offset, p->end,
                                                    "longer than 1 GiB", p->length, err)
                              : (lines ? sgt_json_records : sgt_parquet_records)(u, p, &next, err);
    next.length = 0;
    next.closes = p->closes && !rc;
    /* If the end of a compressed file is damaged, the damage counts as one bad line (p->bad is 1).
     * If the last line before the damage is incomplete and was already counted as bad, do not count
     * the damage again. */
    if (next.closes && !(cut && next.bad)) next.bad += p->bad;
    /* Append a part without a document, which covers the lines or rows after the last document. In
     * two cases, this part is needed even if there are no such lines or rows. At the end of the
     * file, the last part must have `closes` set. Before a bad line or row at which the run fails,
     * `end` must say how far the unit reaches. */
    if (rc < 0 || !(next.closes || rc || next.end > next.offset)) return rc;
    const int left = append_part(u, &next, err);
    return left < 0 ? left : rc;
}

int sgt_unit_unfold(sgt_unit *u, sgt_error *err)
{
    size_t count;
    const sgt_part *read = set_aside(u, &count);
    int rc = SGT_OK;
    u->kept_used = 0;
    for (size_t i = 0; i < count && !rc; i++) rc = unfold_part(u, &read[i], err);
    sgt_parquet_pages_drop(u);
    return rc < 0 ? rc : SGT_OK;
}

/* ---- encoding ---- */

/* Return the number of ill-formed UTF-8 sequences in part p. Append the offsets of these sequences
 * in the file to u->invalid, until this array is full. */
static uint64_t locate_invalid(sgt_unit *u, sgt_part *p)
{
    uint64_t at[SGT_INVALID_LISTED];
    size_t free_places = SGT_INVALID_LISTED - u->invalid_count;
    const uint64_t found = sgt_utf8_count_ill_formed(u->text + p->at, p->length, at, free_places);
    for (size_t i = 0; i < found && i < free_places; i++)
        u->invalid[u->invalid_count++] = (sgt_invalid_at){p->file, p->end - p->length + at[i]};
    p->text.invalid = found;
    return found;
}

/* Set *text to the text of part p, and *n to its length. If the text contains ill-formed UTF-8, the
 * option invalid_utf8 decides whether it is kept, is replaced with U+FFFD, or causes an error. */
static int mend_text(sgt_unit *u, sgt_part *p, const uint8_t **text, size_t *n, sgt_error *err)
{
    const sgt_tokenize_options *o = u->reading->o;
    *text = u->text + p->at;
    *n = p->length;
    /* the text of lines and rows has already been checked to be valid UTF-8 */
    const uint64_t invalid = p->kind == SGT_PART_TEXT ? locate_invalid(u, p) : 0;
    if (invalid && o->invalid_utf8 == SGT_INVALID_FAIL)
        return sgt_fail(err, SGT_EFORMAT,
                        "offset %" PRIu64 ": not UTF-8 (--invalid-utf8 keep or replace accepts it)",
                        u->invalid[0].offset);
    if (invalid && o->invalid_utf8 == SGT_INVALID_REPLACE) {
        /* replacing an ill-formed sequence adds at most two bytes, because the sequence has at
         * least one byte, and U+FFFD has three */
        int rc = sgt_unit_reserve_scratch(u, *n + 2 * invalid, err);
        if (rc < 0) return rc;
        *n = sgt_utf8_replace(u->scratch, *text, *n);
        *text = u->scratch;
    }
    return SGT_OK;
}

int sgt_unit_work(sgt_unit *u, sgt_part_work *work, void *worker, sgt_error *err)
{
    const sgt_reading *r = u->reading;
    u->id_count = u->invalid_count = 0;
    u->bad.why = NULL;
    int rc = sgt_unit_unfold(u, err);
    for (size_t i = 0; i < u->count && !rc; i++) {
        sgt_part *p = &u->parts[i];
        const uint8_t *text;
        size_t n;
        sgt_error why;
        rc = mend_text(u, p, &text, &n, &why);
        if (!rc) rc = sgt_normalize_text(&u->normal, r->normalize, text, n, &text, &n, &why);
        if (!rc) rc = work(worker, u, p, text, n, &why);
        if (rc < 0) sgt_fail(err, rc, "%s: %s", r->corpus->files[p->file].path, why.text);
    }
    return rc;
}

int sgt_part_encode(void *encoder, sgt_unit *u, sgt_part *p, const uint8_t *text, size_t n,
                    sgt_error *err)
{
    sgt_encoder *e = *(sgt_encoder **)encoder;
    const sgt_vocab *v = u->reading->vocab;
    int rc = sgt_reserve(&u->ids, &u->id_room, u->id_count + n + 1, v->width, "token ids", err);
    if (rc < 0) return rc;
    p->first_id = u->id_count;
    if (p->first) memcpy(u->ids + v->width * u->id_count++, &v->eot, v->width);
    size_t count = 0;
    rc = sgt_encode(e, text, n, u->ids + v->width * u->id_count,
                    v->width * (u->id_room - u->id_count), &count, err);
    u->id_count += count;
    p->ids = u->id_count - p->first_id;
    return rc;
}

/* ---- the hash of an input ---- */

static int hash_rows(uint64_t *hash, const sgt_corpus_file *f, const char *field, uint64_t length,
                     const sgt_stop *stop, sgt_error *err)
{
    const sgt_parquet_request r = {.file = f, .field = field, .stop = stop};
    sgt_parquet *p = NULL;
    sgt_unit u = {0};
    uint64_t rows, covered = 0;
    int rc = sgt_parquet_open(&p, &r, err);
    if (!rc) *hash = sgt_parquet_hash(p, &covered);
    while (!rc && covered < length) {
        rc = sgt_parquet_next(p, &u, &rows, err);
        if (!rc && sgt_stopped(stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        *hash = sgt_parquet_hash(p, &covered);
        u.used = u.unpacked = 0;
        sgt_parquet_pages_drop(&u);
    }
    sgt_parquet_close(p);
    sgt_unit_free(&u);
    return rc < 0 ? rc : SGT_OK;
}

int sgt_same_hash(uint64_t *hash, const sgt_corpus_file *f, const char *field, uint64_t length,
                  const sgt_stop *stop, sgt_error *err)
{
    if (f->rows) return hash_rows(hash, f, field, length, stop, err);
    sgt_source *s = NULL;
    sgt_stream_hash h = {.state = XXH3_createState()};
    uint8_t *bytes = malloc(CHUNK);
    int end = 0, rc = h.state && bytes ? SGT_OK : sgt_fail_memory(err, f->path);
    if (!rc) rc = sgt_source_open(&s, f, stop, NULL, err);
    if (!rc) sgt_stream_hash_begin(&h, 0, 0);
    while (!rc && !end && h.at < length) {
        size_t n = 0, want = length - h.at < CHUNK ? (size_t)(length - h.at) : CHUNK;
        rc = sgt_source_read(s, bytes, &n, want, &end, err);
        sgt_stream_hash_add(&h, bytes, n);
        if (!rc && sgt_stopped(stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
    }
    if (!rc) *hash = sgt_stream_hash_now(&h);
    sgt_source_close(s);
    XXH3_freeState(h.state);
    free(bytes);
    return rc;
}
