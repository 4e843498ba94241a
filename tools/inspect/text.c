/* text.c: reads the tokens of a set, or of one of its splits, as one sequence over all shards, and
 * decodes them to text. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "tools/cli/options.h"
#include "tools/cli/talk.h"
#include "tools/inspect/inspect.h"
#include "tokenize/vocab/vocab.h"

/* Pages that have been read are evicted from the page cache in extents of this size. */
#define DROP_BYTES ((uint64_t)8 << 20)

#define GPT2_VOCAB 50257        /* limit of the ids if the header has no vocabulary size */
#define PIECE ((size_t)1 << 16) /* tokens decoded at a time */

/* ---- tokens ---- */

uint32_t inspect_ids(const inspect_shard *d)
{
    return d->header.vocab ? d->header.vocab : GPT2_VOCAB;
}

static int belongs(const inspect_shard *d, const char *split)
{
    return !split || !strcmp(d->split, split);
}

uint64_t inspect_tokens(const inspect_set *s, const char *split)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        n += belongs(&s->shards[i], split) ? s->shards[i].header.tokens : 0;
    return n;
}

const inspect_shard *inspect_place(const inspect_set *s, const char *split, uint64_t token,
                                   uint64_t *offset)
{
    for (size_t i = 0; i < s->count; i++) {
        const inspect_shard *d = &s->shards[i];
        if (!belongs(d, split)) continue;
        *offset = token;
        if (token < d->header.tokens) return d;
        token -= d->header.tokens;
    }
    return NULL;
}

void inspect_reader_start(inspect_reader *r, const inspect_set *s, const char *split, uint64_t from)
{
    const inspect_shard *d = inspect_place(s, split, from, &from);
    size_t shard = d ? (size_t)(d - s->shards) : s->count;
    *r = (inspect_reader){.s = s, .split = split, .shard = shard, .at = from, .fd = -1};
}

static int open_shard(inspect_reader *r, sgt_error *err)
{
    const inspect_shard *d = &r->s->shards[r->shard];
    sgt_shard_header h;
    r->fd = sgt_shard_open(&h, d->path, d->header.data ? 0 : SGT_SHARD_RAW16, err);
    if (r->fd < 0) return r->fd;
    if (h.tokens != d->header.tokens)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: changed while it was read: %" PRIu64 " tokens, now %" PRIu64, d->path,
                        d->header.tokens, h.tokens);
    r->dropped = h.data + 2 * r->at;
    posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return SGT_OK;
}

static void next_shard(inspect_reader *r)
{
    if (r->fd >= 0) {
        posix_fadvise(r->fd, 0, 0, POSIX_FADV_DONTNEED);
        close(r->fd);
    }
    r->fd = -1;
    r->at = 0;
    r->shard++;
}

/* Read n tokens of the open shard. */
static int read_some(inspect_reader *r, uint16_t *ids, size_t n, sgt_error *err)
{
    const inspect_shard *d = &r->s->shards[r->shard];
    uint64_t byte = d->header.data + 2 * r->at;
    int rc = sgt_pread_all(r->fd, ids, 2 * n, byte, d->path, err);
    if (rc < 0) return rc;
    for (size_t i = 0; r->vocab && i < n; i++)
        if (ids[i] >= r->vocab)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: token %" PRIu64 " (byte %" PRIu64
                            "): id %u, expected below %" PRIu32,
                            d->path, r->at + i, byte + 2 * i, ids[i], r->vocab);
    r->at += n;
    if (byte - r->dropped < DROP_BYTES) return SGT_OK;
    posix_fadvise(r->fd, (off_t)r->dropped, (off_t)(byte - r->dropped), POSIX_FADV_DONTNEED);
    r->dropped = byte;
    return SGT_OK;
}

int inspect_reader_next(inspect_reader *r, uint16_t *ids, size_t want, size_t *got, sgt_error *err)
{
    for (*got = 0; *got < want && r->shard < r->s->count;) {
        const inspect_shard *d = &r->s->shards[r->shard];
        uint64_t left = d->header.tokens - r->at;
        size_t n = left < want - *got ? (size_t)left : want - *got;
        if (!belongs(d, r->split) || !n) {
            next_shard(r);
            continue;
        }
        int rc = r->fd < 0 ? open_shard(r, err) : SGT_OK;
        if (rc < 0 || (rc = read_some(r, ids + *got, n, err)) < 0) return rc;
        *got += n;
    }
    return SGT_OK;
}

void inspect_reader_end(inspect_reader *r)
{
    if (r->fd >= 0) close(r->fd);
    r->fd = -1;
}

/* ---- text ---- */

int inspect_span(uint64_t *from, uint64_t *count, const char *text, const char *option,
                 sgt_error *err)
{
    char first[64];
    const char *colon = strchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : strlen(text);
    *count = 1;
    if (n < sizeof first) {
        memcpy(first, text, n);
        first[n] = 0;
        if (sgt_parse_count(first, from) == 0 &&
            (!colon || (sgt_parse_count(colon + 1, count) == 0 && *count > 0)) &&
            *from <= UINT64_MAX - *count)
            return SGT_OK;
    }
    return sgt_fail(err, SGT_EUSAGE,
                    "--%s %s: expected a whole number, or two as in 100:20, the second at least 1",
                    option, text);
}

/* Return the path of tokenizer.json in the folder of the shard at `path`, malloc'd. */
static char *vocabulary_beside(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup("."), *file = NULL;
    if (folder) file = sgt_join(folder, "tokenizer.json");
    free(folder);
    return file;
}

int inspect_vocabulary(sgt_vocab **out, const sgt_shard_header *h, const char *path, sgt_error *err)
{
    sgt_vocab *v = NULL;
    sgt_error why = {0};
    int rc = sgt_vocab_gpt2(&v, err);
    if (rc < 0) return rc;
    if (h->fingerprint && h->fingerprint != sgt_vocab_fingerprint(v)) {
        char *file = vocabulary_beside(path);
        sgt_vocab_free(v);
        v = NULL;
        if (!file) return sgt_fail_memory(err, path);
        if (access(file, F_OK) == 0 && (rc = sgt_vocab_load(&v, file, NULL, &why)) == 0 &&
            sgt_vocab_fingerprint(v) != h->fingerprint) {
            rc = sgt_fail(&why, SGT_EFORMAT, "%s is yet another", file);
            sgt_vocab_free(v);
            v = NULL;
        }
        free(file);
    }
    if (!v)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "%s: made with a vocabulary that is not GPT-2's (fingerprint %016" PRIx64
                        "): its text is not known here (%s)",
                        path, h->fingerprint, rc < 0 ? why.text : "no tokenizer.json beside it");
    *out = v;
    return SGT_OK;
}

/* Where decoded pieces go: to standard output, or to memory for JSON. */
typedef struct sink {
    json_t *ids; /* NULL: plain text, to standard output */
    /* 1: standard output is a terminal, to which no control characters of the text may go */
    int terminal;
    /* for JSON: all text; for a terminal: the beginning of a character that is not complete yet */
    char *text;
    size_t used, room;
    char last;
} sink;

/* Print the complete characters of the text so far; if `end` is set, print all of it. */
static void show_text(sink *k, int end)
{
    const uint8_t *s = (const uint8_t *)k->text;
    size_t whole = k->used;
    for (size_t i = 1; i <= 3 && i <= k->used && !end; i++)
        if (sgt_utf8_begins(s + k->used - i, i)) whole = k->used - i;
    if (whole) sgt_print_escaped(s, whole);
    if (k->used > whole) memmove(k->text, k->text + whole, k->used - whole);
    k->used -= whole;
}

static int put_piece(sink *k, const sgt_vocab *v, const uint16_t *ids, size_t n, sgt_error *err)
{
    char *text;
    size_t bytes;
    int rc = sgt_decode(v, ids, n, &text, &bytes, err);
    if (rc < 0) return rc;
    if (bytes) k->last = text[bytes - 1];
    if (!k->ids && !k->terminal) {
        if (fwrite(text, 1, bytes, stdout) != bytes) rc = sgt_fail_errno(err, "standard output");
    } else {
        rc = sgt_reserve(&k->text, &k->room, k->used + bytes + 1, 1, NULL, err);
        if (rc == SGT_OK) {
            memcpy(k->text + k->used, text, bytes);
            k->used += bytes;
            if (k->terminal) show_text(k, 0);
        }
        for (size_t i = 0; i < n && k->ids; i++)
            json_array_append_new(k->ids, json_integer(ids[i]));
    }
    free(text);
    return rc;
}

static int decode_span(const inspect_set *s, const inspect *o, const sgt_vocab *v, uint64_t from,
                       uint64_t count, sgt_error *err)
{
    int rc = SGT_OK;
    sink k = {.ids = o->json ? json_array() : NULL,
              .terminal = !o->json && isatty(STDOUT_FILENO),
              .last = '\n'};
    inspect_reader r;
    uint16_t *ids = malloc(PIECE * sizeof *ids);
    if (!ids) rc = sgt_fail_memory(err, NULL);
    inspect_reader_start(&r, s, NULL, from);
    r.vocab = sgt_vocab_size(v);
    for (uint64_t left = count; rc == SGT_OK && left;) {
        size_t n = left < PIECE ? (size_t)left : PIECE;
        if (sgt_stopped(o->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "%s: stopped", s->path);
        else if ((rc = inspect_reader_next(&r, ids, n, &n, err)) == SGT_OK)
            rc = put_piece(&k, v, ids, n, err);
        left -= n;
    }
    inspect_reader_end(&r);
    if (rc == SGT_OK && k.ids) {
        json_t *top =
            json_pack("{s:I, s:I, s:O, s:o}", "from", (json_int_t)from, "count", (json_int_t)count,
                      "ids", k.ids, "text", sgt_json_text(k.text ? k.text : "", k.used));
        rc = sgt_print_json(top, JSON_INDENT(2), err);
    } else if (
        /* a prompt or an error begins on a new line; a pipe gets the bytes unchanged */
        k.terminal) {
        show_text(&k, 1);
        if (k.last != '\n') putchar('\n');
        fflush(stdout);
    }
    json_decref(k.ids);
    free(k.text);
    free(ids);
    return rc;
}

int inspect_decode(const inspect_set *s, const inspect *o, sgt_error *err)
{
    uint64_t from, count;
    sgt_vocab *v;
    int rc = inspect_span(&from, &count, o->decode, "decode", err);
    if (rc < 0) return rc;
    if (from >= s->tokens)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: --decode %s: there is no token %" PRIu64 ", the last is %" PRIu64,
                        s->path, o->decode, from, s->tokens ? s->tokens - 1 : 0);
    if (count > s->tokens - from) {
        count = s->tokens - from;
        sgt_say(&o->notice, "%s ends after %" PRIu64 " token%s", s->path, s->tokens,
                s->tokens == 1 ? "" : "s");
    }
    if ((rc = inspect_vocabulary(&v, &s->shards[0].header, s->shards[0].path, err)) < 0) return rc;
    rc = decode_span(s, o, v, from, count, err);
    sgt_vocab_free(v);
    return rc;
}
