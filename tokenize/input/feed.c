/* feed.c: read files one after the other and cut them into units. Only this file knows how
 * documents lie in files. */
#include "tokenize/input/feed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tokenize/input/ahead.h"
#include "tokenize/input/binary.h"
#include "tokenize/bpe/extent.h"
#include "tokenize/input/form.h"
#include "tokenize/input/parquet.h"
#include "tokenize/input/same.h"
#include "tokenize/text/utf8.h"

/* text that has no other place to cut for so many bytes is cut between tokens */
#define LONG_PIECE ((size_t)1 << 20)
/* maximum bytes of a line, or of text, that cannot be cut */
#define EXTENT ((size_t)1 << 30)

struct sgt_text_feed {
    sgt_text_feed_options o;
    uint64_t file;   /* index of the current or next file */
    uint64_t offset; /* offset in the file's stream of the first byte not yet delivered */
    sgt_ahead *inputs;
    sgt_parquet *rows;    /* `file`, if it is open and Parquet */
    int opened;           /* 1: `file` is open */
    int ended;            /* 1: its stream has no bytes after those in `carry` */
    int said;             /* 1: the notice about JSONL was given */
    int split;            /* split of the current text: 0 train, 1 val */
    sgt_stream_hash hash; /* of the stream up to `offset` */
    uint8_t *carry;       /* bytes already read but not delivered */
    size_t carried, carry_room;
    sgt_encoder *encoder; /* finds cuts in long pieces; NULL: not needed yet */
    sgt_error failure;    /* code 0: none */
};

/* Return a hash of a file's name and a position in it. The position is XXH3's seed. */
static uint64_t hash_of(const char *name, uint64_t position)
{
    return XXH3_64bits_withSeed(name, strlen(name), position);
}

int sgt_text_feed_split(const char *name, uint64_t position, double val_fraction)
{
    if (val_fraction <= 0) return 0;
    /* Compare 64 bits of hash with the fraction of 2^64. */
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

/* Begin with file number `file`. */
static void begin_file(sgt_text_feed *f, uint64_t file)
{
    f->file = file;
    f->offset = file < f->o.corpus->count ? f->o.corpus->files[file].from_row : 0;
}

static const sgt_corpus_file *current(const sgt_text_feed *f)
{
    return &f->o.corpus->files[f->file];
}

static int other_bytes(const sgt_text_feed *f, sgt_error *err)
{
    return sgt_fail(
        err, SGT_EFORMAT,
        "%s: its %s are others than when the run was interrupted, within the first %" PRIu64
        " (--force starts over)",
        current(f)->path,
        current(f)->filter            ? "filter's bytes"
        : sgt_corpus_made(current(f)) ? "bytes, unpacked,"
                                      : "bytes",
        f->offset);
}

static int reserve_carry(sgt_text_feed *f, size_t bytes, sgt_error *err)
{
    if (bytes <= f->carry_room) return SGT_OK;
    uint8_t *more = realloc(f->carry, bytes);
    if (!more) return sgt_fail_memory(err, current(f)->path);
    f->carry = more;
    f->carry_room = bytes;
    return SGT_OK;
}

/* Check that standard input is text. Files are checked when they are listed. */
static int check_stream(const sgt_text_feed *f, sgt_error *err)
{
    const size_t n = f->carried;
    const sgt_magic *b = sgt_binary_of(f->carry, n, f->ended, current(f)->lines);
    if (!b || !f->o.corpus->skip_binary) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "standard input: %s, not UTF-8 text (pass it as a file, or --binary keep takes "
                    "its bytes)",
                    b->what);
}

/* Take the form that the first bytes of a stream tell. */
static int take_form(sgt_text_feed *f, sgt_form form, sgt_error *err)
{
    sgt_corpus_file *s = &f->o.corpus->files[f->file];
    const char *name = s->stream ? "standard input" : s->path,
               *field = f->o.field ? f->o.field : "text",
               *other = s->filter ? "EXT=text:COMMAND" : "--format text";
    if (form == SGT_FORM_ARRAY)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: a JSON array, not JSON Lines (jq -c '.[]' makes lines of it, and %s "
                        "reads it as it is)",
                        name, other);
    s->lines = form == SGT_FORM_LINES;
    if (form != SGT_FORM_TEXT && !f->said++)
        sgt_form_say(&f->o.notice, form, name, 0, field, other);
    return SGT_OK;
}

/* Look at the first bytes of the stream that has just been opened, and keep them in the carry. */
static int look(sgt_text_feed *f, sgt_error *err)
{
    const sgt_corpus_file *s = current(f);
    sgt_form form = SGT_FORM_MORE;
    int rc = SGT_OK;
    for (size_t want = SGT_BINARY_PREFIX; !rc && form == SGT_FORM_MORE; want *= 4) {
        if ((rc = reserve_carry(f, want, err)) < 0 ||
            (rc = sgt_ahead_read(f->inputs, f->carry, &f->carried, want, &f->ended, err)) < 0)
            return rc;
        if (s->stream && want == SGT_BINARY_PREFIX) rc = check_stream(f, err);
        if (!s->look) return rc;
        if (!rc)
            rc = sgt_form_look(&form, f->carry, f->carried, f->ended,
                               f->o.field ? f->o.field : "text", err);
    }
    return rc < 0 ? rc : take_form(f, form, err);
}

/* Go to where an earlier run stopped: read the stream again up to there, or, if it can be sought in,
 * the block of the hash that it was in. The hash of the first `hashed` bytes must be the same as
 * then. The first bytes of a stream that cannot be sought in may be in the carry. */
static int read_again(sgt_text_feed *f, sgt_error *err)
{
    uint8_t buffer[16384];
    const uint64_t hashed = f->o.from.hashed;
    uint64_t done = sgt_corpus_made(current(f)) ? 0 : hashed - hashed % SGT_SAME_BLOCK;
    size_t carried = 0; /* bytes of the carry that were used */
    int rc = done ? sgt_ahead_seek(f->inputs, done, err) : SGT_OK;
    if (done) sgt_stream_hash_begin(&f->hash, done, f->o.from.block);
    while (done < f->offset && !rc) {
        const uint64_t left = (done < hashed ? hashed : f->offset) - done;
        const size_t held = f->carried - carried;
        const uint8_t *bytes = held ? f->carry + carried : buffer;
        size_t n = 0, want = held ? held : sizeof buffer;
        if (left < want) want = (size_t)left;
        if (held) carried += n = want;
        else if ((rc = sgt_ahead_read(f->inputs, buffer, &n, want, &f->ended, err)) < 0) return rc;
        sgt_stream_hash_add(&f->hash, bytes, n);
        done += n;
        if (n < want || (done == hashed && sgt_stream_hash_now(&f->hash) != f->o.from.hash))
            rc = other_bytes(f, err);
    }
    f->carried -= carried;
    if (carried) memmove(f->carry, f->carry + carried, f->carried);
    return rc;
}

static int open_file(sgt_text_feed *f, sgt_error *err)
{
    const sgt_corpus_file *s = current(f);
    if (s->rows) {
        const sgt_parquet_request r = {.file = s,
                                       .field = f->o.field ? f->o.field : "text",
                                       .row = f->offset,
                                       .hashed = f->file == f->o.from.file ? f->o.from.hashed : 0,
                                       .hash = f->o.from.hash,
                                       .stop = f->o.stop,
                                       .cancel = f->o.cancel};
        const int opened = sgt_parquet_open(&f->rows, &r, err);
        f->opened = opened == 0;
        return opened;
    }
    f->split = !s->train && (s->val || sgt_text_feed_split(s->name, 0, f->o.val_fraction));
    if (f->offset && f->o.literal.divides) f->split = f->o.from.split != 0;
    int rc = sgt_ahead_begin(f->inputs, f->file, err);
    f->opened = 1;
    f->ended = 0;
    sgt_stream_hash_begin(&f->hash, 0, 0);
    if (!rc && (s->stream || s->look)) rc = look(f, err);
    return rc < 0 || !f->offset ? rc : read_again(f, err);
}

static void close_file(sgt_text_feed *f)
{
    sgt_ahead_finish(f->inputs);
    sgt_parquet_close(f->rows);
    f->rows = NULL;
    f->opened = 0;
}

static int set_carry(sgt_text_feed *f, const uint8_t *bytes, size_t n, sgt_error *err)
{
    if (n > f->carry_room || f->carry_room > 4 * (n + f->o.piece)) {
        free(f->carry);
        f->carry_room = 0;
        f->carry = malloc(n + 1);
        if (!f->carry) return sgt_fail_memory(err, current(f)->path);
        f->carry_room = n + 1;
    }
    if (n) memcpy(f->carry, bytes, n);
    f->carried = n;
    return SGT_OK;
}

/* Return whether these bytes of text begin a document with a literal. */
static int begins_document(const sgt_text_feed *f, const uint8_t *text, size_t n)
{
    return f->o.literal.divides && !current(f)->lines && sgt_literal_begins(&f->o.literal, text, n);
}

static void add_part(sgt_text_feed *f, sgt_unit *u, size_t at, size_t n, int closes)
{
    const int lines = current(f)->lines, begins = begins_document(f, u->text + at, n);
    if (begins && f->offset)
        f->split = sgt_text_feed_split(current(f)->name, f->offset, f->o.val_fraction);
    u->parts[u->count++] =
        (sgt_part){.file = f->file,
                   .offset = f->offset,
                   .end = f->offset + n,
                   .hashed = f->offset,
                   .hash = sgt_stream_hash_now(&f->hash),
                   .block = f->hash.block,
                   .raw = sgt_ahead_raw(f->inputs),
                   .at = at,
                   .length = n,
                   .first = !lines && (f->offset == 0 || begins),
                   .last = !lines && (closes || begins_document(f, f->carry, f->carried)),
                   .closes = closes,
                   .folded = lines,
                   .split = f->split};
    u->used = at + n;
    f->offset += n;
    sgt_stream_hash_add(&f->hash, u->text + at, n);
    u->parts[u->count - 1].all = closes ? sgt_stream_hash_now(&f->hash) : 0;
    /* the unit's last line must end in a newline too */
    if (lines && n && u->text[u->used - 1] != '\n') u->text[u->used++] = '\n';
    if (!closes) return;
    close_file(f);
    begin_file(f, f->file + 1);
}

static int is_ascii(const uint8_t *text, size_t n)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++) any |= text[i];
    return any < 0x80;
}

/* Find a cut in text whose ill-formed bytes become U+FFFD. The cut is found in the replaced text
 * and mapped back, as both have the same number of units. */
static int cut_replaced(sgt_text_feed *f, const uint8_t *text, size_t n, size_t *good,
                        sgt_error *err)
{
    uint8_t *twin = malloc(3 * n);
    if (!twin) return sgt_fail_memory(err, current(f)->path);
    size_t cut = sgt_extent_cut(f->encoder, f->o.vocab, twin, sgt_utf8_replace(twin, text, n));
    free(twin);
    *good = 0;
    for (size_t at = 0; at < cut;) {
        uint32_t cp;
        size_t len = sgt_utf8_unit(text + *good, n - *good, &cp);
        at += cp == SGT_UTF8_ILL_FORMED ? 3 : len;
        *good += len;
    }
    return SGT_OK;
}

/* Find a cut between tokens, in text without another place to cut and without a literal that
 * divides it. What follows the text cannot change the tokens before this cut. In normalized text,
 * what follows changes only the last character, which lies after the cut too. */
static int cut_long(sgt_text_feed *f, const uint8_t *text, size_t n, size_t *good, sgt_error *err)
{
    if (!f->o.vocab || n < (f->o.long_piece ? f->o.long_piece : LONG_PIECE)) return SGT_OK;
    if (f->o.normalized && !is_ascii(text, n)) return SGT_OK;
    int rc = f->encoder ? SGT_OK : sgt_encoder_new(&f->encoder, f->o.vocab, err);
    if (rc < 0) return rc;
    if (f->o.replaced && sgt_utf8_valid(text, n) < n) return cut_replaced(f, text, n, good, err);
    *good = sgt_extent_cut(f->encoder, f->o.vocab, text, n);
    return SGT_OK;
}

/* Set *good as cut does, in text, where a cut may lie within a line. */
static int cut_text(sgt_text_feed *f, const uint8_t *text, size_t n, size_t *good, sgt_error *err)
{
    const sgt_literal *l = &f->o.literal;
    if (l->divides && (*good = sgt_literal_last(l, text, n)) > 0) return SGT_OK;
    if (f->o.whole) return SGT_OK;
    *good = f->o.normalized ? sgt_normalize_cut(text, n, !f->o.rule)
                            : sgt_unit_cut(text, n, f->o.rule, f->o.joins, l);
    if (*good) return SGT_OK;
    const size_t from = begins_document(f, text, n) ? strlen(l->text) : 0;
    const int rc = cut_long(f, text + from, n - from, good, err);
    if (*good) *good += from;
    /* a literal must not be cut, nor begin right behind the cut, where it would not be seen */
    if (*good && l->text &&
        (sgt_literal_around(l, text, n, *good) < *good ||
         sgt_literal_around(l, text, n, *good + 1) == *good))
        *good = 0;
    return rc;
}

/* Set *good to the number of bytes that can be cut off text[n] as a part; 0: none yet. The first
 * `seen` bytes were searched before and have no cut. */
static int cut(sgt_text_feed *f, const uint8_t *text, size_t n, size_t seen, size_t *good,
               sgt_error *err)
{
    *good = 0;
    if (!current(f)->lines) return cut_text(f, text, n, good, err);
    const uint8_t *newline = memrchr(text + seen, '\n', n - seen);
    if (newline) *good = (size_t)(newline + 1 - text);
    return SGT_OK;
}

/* Append the next part of the open file to the unit. Return 1 if the unit is full. */
static int take_part(sgt_text_feed *f, sgt_unit *u, sgt_error *err)
{
    size_t at = u->used, n = f->carried, want = f->o.piece > at ? f->o.piece - at : 1, seen = 0,
           good;
    int rc;
    const size_t most = f->o.extent ? f->o.extent : EXTENT;
    for (;; seen = n, want = 2 * n < most ? 2 * n : most + 1) {
        if (n > most)
            return sgt_fail(err, SGT_EFORMAT, "%s: offset %" PRIu64 ": more than %zu MiB %s",
                            current(f)->path, f->offset, most >> 20,
                            current(f)->lines ? "without a newline" : "of text that cannot be cut");
        if ((rc = sgt_unit_reserve(u, at + (want > n ? want : n), err)) < 0) return rc;
        if (f->carried) memcpy(u->text + at, f->carry, f->carried);
        f->carried = 0;
        if ((rc = sgt_ahead_read(f->inputs, u->text + at, &n, want, &f->ended, err)) < 0) return rc;
        if (f->ended) {
            add_part(f, u, at, n, 1);
            return 0;
        }
        if ((rc = cut(f, u->text + at, n, seen, &good, err)) < 0) return rc;
        if (good || u->count) break;
    }
    rc = set_carry(f, u->text + at + good, n - good, err);
    if (rc < 0) return rc;
    if (good) add_part(f, u, at, good, 0);
    return 1;
}

/* Append the next rows of the open Parquet file to the unit. Return 1 if the unit is full. */
static int take_rows(sgt_text_feed *f, sgt_unit *u, sgt_error *err)
{
    const size_t at = u->used;
    uint64_t rows, hashed;
    const uint64_t hash = sgt_parquet_hash(f->rows, &hashed);
    int rc = sgt_parquet_next(f->rows, u, &rows, err);
    if (rc < 0) return rc;
    const int ended = rc == 1;
    uint64_t after;
    const sgt_parquet_page *page = ended ? NULL : &u->pages[u->page_count - 1];
    u->parts[u->count++] = (sgt_part){.file = f->file,
                                      .offset = f->offset,
                                      .end = f->offset + rows,
                                      .hashed = hashed,
                                      .hash = hash,
                                      .all = sgt_parquet_hash(f->rows, &after),
                                      .raw = sgt_parquet_raw(f->rows),
                                      .at = at,
                                      .length = u->used - at,
                                      .closes = ended,
                                      .folded = 1,
                                      .page = ended ? 0 : u->page_count};
    f->offset += rows;
    if (page) u->unpacked += page->text;
    if (!ended) return u->unpacked >= f->o.piece;
    close_file(f);
    begin_file(f, f->file + 1);
    return 0;
}

int sgt_text_feed_open(sgt_text_feed **out, const sgt_text_feed_options *o, sgt_error *err)
{
    sgt_ahead_options ahead = {o->corpus, o->threads, o->stop, o->cancel};
    sgt_text_feed *f = calloc(1, sizeof *f);
    if (!f) return sgt_fail_memory(err, "reading inputs");
    f->o = *o;
    begin_file(f, o->from.file);
    if (f->offset < o->from.offset) f->offset = o->from.offset;
    int rc = (f->hash.state = XXH3_createState()) ? SGT_OK : sgt_fail_memory(err, "reading inputs");
    if (!rc) rc = sgt_ahead_new(&f->inputs, &ahead, err);
    if (rc < 0) sgt_text_feed_close(f);
    else *out = f;
    return rc;
}

int sgt_text_feed_next(sgt_text_feed *f, sgt_unit *u, sgt_error *err)
{
    int rc = SGT_OK;
    u->used = u->count = u->unpacked = 0;
    sgt_parquet_pages_drop(u);
    while (!f->failure.code && !rc && u->count < SGT_UNIT_PARTS &&
           (u->used < f->o.piece || !u->count)) {
        if (!f->opened && f->file == f->o.corpus->count) break;
        rc = !f->opened ? open_file(f, &f->failure) : SGT_OK;
        if (!rc) rc = f->rows ? take_rows(f, u, &f->failure) : take_part(f, u, &f->failure);
    }
    /* Deliver what was read before an error as a unit first. So a run fails at the same place,
     * however text is cut into units. */
    if (u->count) return 0;
    if (!f->failure.code) return 1;
    if (err) *err = f->failure;
    return f->failure.code;
}

void sgt_text_feed_close(sgt_text_feed *f)
{
    if (!f) return;
    sgt_parquet_close(f->rows);
    sgt_ahead_free(f->inputs);
    sgt_encoder_free(f->encoder);
    XXH3_freeState(f->hash.state);
    free(f->carry);
    free(f);
}
