/* dry_run.c: estimate from samples. Sampled places are spread evenly over all bytes on disk. Their
 * tokens, divided by the bytes on disk that they cover, estimate the tokens per byte (a ratio
 * estimate). How far single places differ from that ratio gives its error. */
#include "tokenize/dry_run.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "loader/base/file.h"
#include "tokenize/input/corpus.h"
#include "tokenize/input/feed.h"
#include "tokenize/input/kept.h"
#include "tokenize/input/unit.h"
#include "tokenize/options.h"
#include "tokenize/space.h"
#include "tokenize/vocab/vocab.h"

#define PLACES 256
#define PIECE ((size_t)32 << 10)
#define UNPACKED 268435456. /* most bytes of text unpacked from all packed files together */
#define PACKED 1048576. /* least bytes of text unpacked from each packed file, if it has so many */
#define LEAST_UNITS 4   /* least number of pieces encoded of each packed file */
/* minimum number of files read only in part from which an error can be estimated */
#define BEGUN 16
#define KEPT_LINE 52 /* approximate bytes of a document's line in sources.jsonl, without fields */
#define START_UP .02 /* seconds to start */
#define ANY_FILE UINT64_MAX

/* The result of one place. */
typedef struct sample {
    double bytes;     /* bytes on disk that it covers */
    double tokens;    /* without end-of-text ids of text files, as many as there are files */
    double documents; /* JSONL documents */
} sample;

typedef struct dry_run {
    const sgt_corpus *corpus;
    const sgt_vocab *vocab;
    sgt_tokenize_options o; /* the caller's options, changed so that no sample fails */
    sgt_encoder *encoder;
    sgt_unit unit;
    sample *samples;
    size_t count, room;
    /* seconds spent reading `seen` bytes on disk, and encoding the text of `encoded` of them */
    double read_seconds, encode_seconds;
    double seen, encoded;
    double packed; /* bytes on disk of all files that are packed or come from a command */
    size_t begun;  /* number of these files that were read only in part */
    sgt_kept_names kept;
    sgt_kept_rows *kept_rows;
    double kept_bytes; /* lines in sources.jsonl of the documents in the samples */
    sgt_dry_run_result *r;
} dry_run;

/* Add an empty sample and return it; NULL: out of memory. Pointers to earlier samples become
 * invalid. */
static sample *next_sample(dry_run *d, sgt_error *err)
{
    if (d->count == d->room) {
        size_t room = d->room ? 2 * d->room : PLACES;
        sample *more = reallocarray(d->samples, room, sizeof *more);
        if (!more) {
            sgt_fail_memory(err, "samples");
            return NULL;
        }
        d->samples = more;
        d->room = room;
    }
    d->samples[d->count] = (sample){0};
    return &d->samples[d->count++];
}

/* ---- one unit ---- */

/* Read the next unit of the feed. Return 1 at the end. */
static int next_unit(dry_run *d, sgt_text_feed *f, sgt_error *err)
{
    double began = sgt_now();
    int rc = sgt_stopped(d->o.stop) ? sgt_fail(err, SGT_ESTOPPED, "stopped")
                                    : sgt_text_feed_next(f, &d->unit, err);
    d->read_seconds += sgt_now() - began;
    return rc;
}

/* Drop the remaining bytes of a character that began before the sampled place. */
static void trim_character(sgt_unit *u)
{
    sgt_part *p = &u->parts[0];
    for (int i = 0;
         i < 3 && p->offset && !p->folded && p->length && (u->text[p->at] & 0xC0) == 0x80; i++) {
        p->at++;
        p->offset++;
        p->length--;
    }
}

/* Count the line of sources.jsonl for the document of this part, if fields are kept. */
static int take_kept(dry_run *d, const sgt_corpus_file *f, const sgt_part *p, sgt_error *err)
{
    const char *json;
    size_t n = 0;
    if (!p->first || !d->kept.count) return SGT_OK;
    int rc = sgt_kept_of(&d->kept_rows, &d->kept, f, &d->unit, p, &json, &n, err);
    d->kept_bytes += (double)(n + KEPT_LINE);
    return rc;
}

/* Encode the first n parts of the unit and add the result to s. Of JSONL, count only lines that
 * begin before `limit` in file number `file` (or ANY_FILE). */
static int take_parts(dry_run *d, size_t n, uint64_t file, uint64_t limit, sample *s,
                      sgt_error *err)
{
    sgt_unit *u = &d->unit;
    double began = sgt_now();
    u->count = n;
    d->r->sample_bytes += u->parts[n - 1].at + u->parts[n - 1].length;
    trim_character(u);
    int rc = sgt_unit_encode(u, d->encoder, d->vocab, d->corpus, &d->o, err);
    d->encode_seconds += sgt_now() - began;
    for (size_t i = 0; i < u->count && !rc; i++) {
        const sgt_part *p = &u->parts[i];
        const sgt_corpus_file *f = &d->corpus->files[p->file];
        int lines = f->lines || f->rows;
        if (lines && ((file != ANY_FILE && p->file != file) || p->offset >= limit)) continue;
        s->bytes += (double)(p->end - p->offset);
        const int begins = p->first && !lines && !p->offset; /* a file of text, counted apart */
        s->tokens += (double)p->ids - begins;
        s->documents += p->first && !begins;
        if (lines) rc = take_kept(d, f, p, err);
        d->r->bad_lines += p->bad;
        d->r->invalid_utf8 += p->invalid;
        d->r->sample_tokens += p->ids;
    }
    return rc;
}

/* Return how many of the unit's first parts are text files stored as they are. */
static size_t plain_parts(const dry_run *d)
{
    size_t n = 0;
    for (; n < d->unit.count; n++) {
        const sgt_corpus_file *f = &d->corpus->files[d->unit.parts[n].file];
        if (!sgt_corpus_sought(f) || f->lines) break;
    }
    return n;
}

/* ---- one place, by the kind of its file ---- */

/* Sample text from a place on, through as many files as a unit holds. */
static int take_text(dry_run *d, sgt_text_feed *f, sample *s, sgt_error *err)
{
    int rc = next_unit(d, f, err);
    if (!rc) rc = take_parts(d, plain_parts(d), ANY_FILE, 0, s, err);
    d->seen += s->bytes;
    d->encoded += s->bytes;
    return rc;
}

/* Sample the lines that begin in PIECE bytes, each to its end: so every line has the same chance
 * whatever its length. */
static int take_lines(dry_run *d, sgt_text_feed *f, uint64_t file, uint64_t at, sample *s,
                      sgt_error *err)
{
    uint64_t limit = at + PIECE, end = 0;
    int rc = SGT_OK;
    while (!rc && end < limit && !(rc = next_unit(d, f, err))) {
        size_t n = 0;
        while (n < d->unit.count && d->unit.parts[n].file == file) n++;
        if (!n) break;
        end = d->unit.parts[n - 1].closes ? limit : d->unit.parts[n - 1].end;
        rc = take_parts(d, n, file, limit, s, err);
    }
    d->seen += s->bytes;
    d->encoded += s->bytes;
    return rc;
}

/* ---- files that are packed or come from a command ---- */

/* How far a packed file has been read. */
typedef struct unpacking {
    /* bytes of text read so far, and bytes on disk that they came from */
    double text, raw;
    double text_from, raw_from; /* the same two numbers after the first unit */
    int ended;
} unpacking;

/* Read the next unit; its first *parts parts belong to the file. Return 1 at the end. */
static int unpack_unit(dry_run *d, sgt_text_feed *f, uint64_t file, unpacking *p, size_t *parts,
                       sgt_error *err)
{
    const sgt_unit *u = &d->unit;
    int rc = p->ended ? 1 : next_unit(d, f, err);
    for (*parts = 0; !rc && *parts < u->count && u->parts[*parts].file == file;) ++*parts;
    if (rc || !*parts) return rc ? rc : 1;
    const sgt_part *last = &u->parts[*parts - 1];
    p->ended = last->closes;
    if (p->text <= 0) { /* this is the first unit */
        p->text_from = (double)(last->end - u->parts[0].offset);
        p->raw_from = (double)last->raw;
    }
    p->text += (double)(last->end - u->parts[0].offset);
    p->raw = (double)last->raw;
    return 0;
}

/* Return the bytes on disk per byte of text. Unpacking reads ahead, so the place in the file is not
 * exact: measure from the end of the first unit to the end of the last. At the end of the file, use
 * its size. */
static double bytes_per_text(const dry_run *d, uint64_t file, const unpacking *p)
{
    if (p->ended) return p->text > 0 ? (double)d->corpus->files[file].size / p->text : 1;
    return p->text > p->text_from && p->raw > p->raw_from
               ? (p->raw - p->raw_from) / (p->text - p->text_from)
               : 1;
}

/* Let the samples from `first` on stand for `weight` places of their file. If the file was not read
 * to its end, merge them into one sample, because its beginning may differ from the rest. */
static void weigh(dry_run *d, size_t first, double weight, double per_text, int ended)
{
    sample all = {0};
    for (size_t i = first; i < d->count; i++) {
        all.bytes += d->samples[i].bytes * per_text;
        all.tokens += d->samples[i].tokens;
        all.documents += d->samples[i].documents;
    }
    double share = all.bytes > 0 ? weight * (double)PIECE / all.bytes : 0;
    d->encoded += all.bytes;
    if (ended)
        for (size_t i = first; i < d->count; i++) {
            const sample *s = &d->samples[i];
            d->samples[i] =
                (sample){s->bytes * per_text * share, s->tokens * share, s->documents * share};
        }
    else {
        d->samples[first] = (sample){all.bytes * share, all.tokens * share, all.documents * share};
        d->count = first + 1;
        d->begun++;
    }
}

/* Sample a packed file up to its share of UNPACKED, encoding units at a regular stride. A Parquet
 * file is sampled in the same way, with rows in place of bytes of text. */
static int take_packed(dry_run *d, sgt_text_feed *f, uint64_t file, double weight, sgt_error *err)
{
    double size = (double)d->corpus->files[file].size, most = UNPACKED * size / d->packed;
    double wanted = weight < LEAST_UNITS ? LEAST_UNITS : weight;
    if (most < PACKED) most = PACKED;
    /* number of units to expect, if text is packed to a quarter of its size */
    double expected = (4 * size < most ? 4 * size : most) / (double)PIECE;
    size_t stride = expected > wanted ? (size_t)(expected / wanted) : 1, first = d->count, parts;
    unpacking p = {0};
    int rc = SGT_OK;
    for (size_t k = 0;
         p.text < most && p.raw < most && !(rc = unpack_unit(d, f, file, &p, &parts, err)); k++) {
        sample *s = k % stride ? NULL : next_sample(d, err);
        if (k % stride == 0 && !s) return SGT_ENOMEM;
        if (s && (rc = take_parts(d, parts, file, UINT64_MAX, s, err)) < 0) break;
    }
    if (rc < 0) return rc;
    double per_text = bytes_per_text(d, file, &p);
    d->seen += p.text * per_text;
    if (d->count > first) weigh(d, first, weight, per_text, p.ended);
    return SGT_OK;
}

/* ---- places ---- */

/* Find the first line of an unpacked file that begins at `at` or later; *line is the file's size if
 * there is none. */
static int next_line(const sgt_corpus_file *f, uint64_t at, uint64_t *line, sgt_error *err)
{
    char *block = malloc(PIECE);
    int fd = block ? open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1, rc = SGT_OK;
    if (!block) rc = sgt_fail_memory(err, f->path);
    else if (fd < 0) rc = sgt_fail_errno(err, "%s", f->path);
    for (*line = at ? f->size : 0; at && at < f->size && *line == f->size && !rc;) {
        size_t n = f->size - at + 1 < PIECE ? (size_t)(f->size - at + 1) : PIECE;
        rc = sgt_pread_all(fd, block, n, at - 1, f->path, err);
        const char *newline = rc ? NULL : memchr(block, '\n', n);
        if (newline) *line = at + (uint64_t)(newline - block);
        at += n;
    }
    if (fd >= 0) close(fd);
    free(block);
    return rc;
}

static int open_feed(const dry_run *d, sgt_text_feed **f, uint64_t file, uint64_t at,
                     sgt_error *err)
{
    sgt_text_feed_options o = {.corpus = d->corpus,
                               .joins = sgt_vocab_joins(d->vocab),
                               .piece = PIECE,
                               .field = d->o.field,
                               .literal = {d->vocab->eot_text, d->o.special_eot},
                               .normalized = sgt_vocab_normalizes(d->vocab),
                               .vocab = d->vocab,
                               .replaced = d->o.invalid_utf8 == SGT_INVALID_REPLACE,
                               .stop = d->o.stop,
                               .sample = 1,
                               .from = {.file = file, .offset = at}};
    return sgt_text_feed_open(f, &o, err);
}

/* Sample byte `at` of file i. The sample stands for `weight` of the evenly spread places. */
static int take_place(dry_run *d, size_t i, uint64_t at, double weight, sgt_error *err)
{
    const sgt_corpus_file *file = &d->corpus->files[i];
    sample *s = NULL;
    uint64_t line = at;
    sgt_text_feed *f;
    int rc = SGT_OK;
    if (!sgt_corpus_sought(file) || file->size <= PIECE) at = line = 0;
    else if (file->lines) rc = next_line(file, at, &line, err);
    if (rc < 0 || (line && line >= file->size)) return rc;
    if ((rc = open_feed(d, &f, i, line, err)) < 0) return rc;
    if (!sgt_corpus_sought(file)) rc = take_packed(d, f, i, weight, err);
    else if (!(s = next_sample(d, err))) rc = SGT_ENOMEM;
    else rc = file->lines ? take_lines(d, f, i, at, s, err) : take_text(d, f, s, err);
    sgt_text_feed_close(f);
    return rc < 0 ? rc : SGT_OK;
}

static uint64_t place(const sgt_corpus *c, int k)
{
    /* the first place is at the very beginning */
    return k ? c->bytes / PLACES * (uint64_t)k + c->bytes / PLACES / 2 : 0;
}

static int take_places(dry_run *d, sgt_error *err)
{
    const sgt_corpus *c = d->corpus;
    uint64_t before = 0; /* bytes of the files before file i */
    size_t i = 0;
    for (int k = 0, next; k < PLACES; k = next) {
        while (i + 1 < c->count && before + c->files[i].size <= place(c, k))
            before += c->files[i++].size;
        /* a packed file is sampled once, for all places that fall into it */
        for (next = k + 1; !sgt_corpus_sought(&c->files[i]) && next < PLACES; next++)
            if (place(c, next) >= before + c->files[i].size) break;
        int rc = take_place(d, i, place(c, k) - before, next - k, err);
        if (rc < 0) return rc;
    }
    return SGT_OK;
}

/* Read inputs that seem small as a whole. Return 1 if they are too large once unpacked. */
static int take_all(dry_run *d, sgt_error *err)
{
    sgt_text_feed *f;
    int rc = open_feed(d, &f, 0, 0, err);
    if (rc < 0) return rc;
    if (!next_sample(d, err)) rc = SGT_ENOMEM;
    while (!rc && (double)d->r->sample_bytes < UNPACKED && !(rc = next_unit(d, f, err)))
        rc = take_parts(d, d->unit.count, ANY_FILE, UINT64_MAX, &d->samples[0], err);
    sgt_text_feed_close(f);
    d->seen = d->encoded = (double)d->corpus->bytes;
    return rc < 0 ? rc : !rc;
}

/* Take all samples. *exact: everything was read. */
static int take_samples(dry_run *d, int *exact, sgt_error *err)
{
    int rc = 1;
    if (d->corpus->bytes <= PLACES * PIECE) rc = take_all(d, err);
    *exact = rc == 0;
    if (rc <= 0) return rc;
    *d->r = (sgt_dry_run_result){0};
    d->count = 0;
    sgt_kept_rows_close(d->kept_rows); /* it only goes forwards */
    d->kept_rows = NULL;
    d->seen = d->encoded = d->read_seconds = d->encode_seconds = d->kept_bytes = 0;
    return take_places(d, err);
}

/* ---- estimates ---- */

/* Return the sums over all samples, and set *error to twice the standard error of the tokens of all
 * inputs. For a ratio estimate with n places, the variance is n / (n - 1) * sum (tokens - ratio *
 * bytes)^2 / (sum bytes)^2. Text that was read has no error, so the factor `left` counts only the
 * rest. */
static sample sum_up(const dry_run *d, uint64_t *error)
{
    sample all = {0};
    double squares = 0, n = 0, bytes = (double)d->corpus->bytes,
           left = bytes > d->encoded ? 1 - d->encoded / bytes : 0;
    for (size_t i = 0; i < d->count; i++) {
        all.bytes += d->samples[i].bytes;
        all.tokens += d->samples[i].tokens;
        all.documents += d->samples[i].documents;
    }
    double ratio = all.bytes > 0 ? all.tokens / all.bytes : 0;
    for (size_t i = 0; i < d->count; i++) {
        const sample *s = &d->samples[i];
        if (s->bytes <= 0) continue;
        squares += (s->tokens - ratio * s->bytes) * (s->tokens - ratio * s->bytes);
        n++;
    }
    if (left <= 0) *error = 0;
    else if (n < 2 || (d->begun && d->begun < BEGUN)) *error = SGT_NOT_KNOWN;
    else *error = (uint64_t)(2 * sqrt(n / (n - 1) * squares * left) / all.bytes * bytes + .5);
    return all;
}

static void estimate_tokens(dry_run *d, int exact)
{
    sgt_dry_run_result *r = d->r;
    uint64_t texts = 0;
    for (size_t i = 0; i < d->corpus->count; i++) {
        const sgt_corpus_file *f = &d->corpus->files[i];
        texts += !f->lines && !f->rows; /* the feed has found out the form of a filter's output */
    }
    sample all = sum_up(d, &r->tokens_error);
    double share = exact ? 1 : all.bytes > 0 ? (double)d->corpus->bytes / all.bytes : 0;
    if (exact) r->tokens_error = 0;
    r->documents = texts + (uint64_t)(all.documents * share + .5);
    r->documents_exact = exact || texts == d->corpus->count;
    r->tokens = texts + (uint64_t)(all.tokens * share + .5);
}

/* Estimate the time. Reading, by one thread at a time, and encoding overlap. */
static void estimate_time(dry_run *d)
{
    double bytes = (double)d->corpus->bytes,
           threads = d->o.threads ? d->o.threads : sgt_cpu_count();
    double reading = d->seen > 0 ? d->read_seconds * bytes / d->seen : 0;
    double encoding = d->encoded > 0 ? d->encode_seconds * bytes / d->encoded / threads : 0;
    d->r->seconds = START_UP + (reading > encoding ? reading : encoding);
}

static int look(dry_run *d, sgt_error *err)
{
    const sgt_corpus *c = d->corpus;
    int exact, rc;
    for (size_t i = 0; i < c->count; i++)
        d->packed += !sgt_corpus_sought(&c->files[i]) ? (double)c->files[i].size : 0;
    if ((rc = sgt_kept_names_set(&d->kept, d->o.keep_fields, err)) < 0 ||
        (rc = sgt_encoder_new(&d->encoder, d->vocab, err)) < 0 ||
        (rc = sgt_unit_new(&d->unit, err)) < 0 || (rc = take_samples(d, &exact, err)) < 0)
        return rc;
    d->r->files = c->count;
    d->r->skipped = c->skipped;
    d->r->bytes = c->bytes;
    d->r->samples = d->count;
    estimate_tokens(d, exact);
    estimate_time(d);
    d->r->disk_free = sgt_space_free(d->o.out);
    d->r->disk_there = sgt_space_used(d->o.out);
    const double tokens = (double)d->r->sample_tokens;
    return sgt_space_needed(
        d->r, d->o.keep_fields && tokens > 0 ? d->kept_bytes * ((double)d->r->tokens / tokens) : 0,
        &d->o, c, d->vocab, err);
}

int sgt_dry_run_corpus(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                       sgt_dry_run_result *r, sgt_error *err)
{
    *r = (sgt_dry_run_result){0};
    dry_run d = {.corpus = c, .vocab = v, .o = *o, .r = r};
    d.o.skip_bad = 1;
    if (d.o.invalid_utf8 == SGT_INVALID_FAIL) d.o.invalid_utf8 = SGT_INVALID_KEEP;
    int rc = look(&d, err);
    sgt_encoder_free(d.encoder);
    sgt_unit_free(&d.unit);
    sgt_kept_rows_close(d.kept_rows);
    sgt_kept_names_free(&d.kept);
    free(d.samples);
    return rc;
}

int sgt_dry_run(const sgt_tokenize_options *o, sgt_dry_run_result *r, sgt_error *err)
{
    sgt_corpus *c = NULL;
    sgt_vocab *v = NULL;
    *r = (sgt_dry_run_result){0};
    int rc = sgt_tokenize_options_check(o, err);
    if (rc < 0) return rc;
    if ((rc = sgt_corpus_of(&c, o, err)) == 0 && c->stream)
        rc = sgt_fail(err, SGT_EUSAGE,
                      "standard input (-) cannot be read twice: a dry run would use it up");
    if (!rc && (rc = sgt_vocab_of(&v, o, err)) == 0) {
        sgt_vocab_say(v, &o->notice);
        rc = sgt_dry_run_corpus(o, c, v, r, err);
    }
    sgt_vocab_free(v);
    sgt_corpus_free(c);
    return rc;
}
