/* text.c: reads the tokens in all shards of a data set, or of a split, as one sequence, and decodes
 * tokens to text. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "loader/rows/rows.h"
#include "tools/cli/options.h"
#include "tools/cli/talk.h"
#include "tools/inspect/inspect.h"
#include "tools/sample/sample.h"
#include "tokenize/vocab/vocab.h"

#define PIECE ((size_t)1 << 16) /* number of tokens decoded at a time */

/* ---- tokens ---- */

uint32_t inspect_ids(const sgt_set_shard *d)
{
    return d->head.vocab ? d->head.vocab : sgt_ids_bound(d->head.width);
}

/* Return the first shard of the split with the index `split`, or of the entire data set if `split`
 * is -1. */
static const sgt_set_shard *first_of(const inspect_set *s, int split)
{
    return s->set.shards + (split > 0 ? s->ends[split - 1] : 0);
}

static const sgt_set_shard *end_of(const inspect_set *s, int split)
{
    return s->set.shards + (split < 0 ? s->set.count : s->ends[split]);
}

uint64_t inspect_count(const inspect_set *s, int split, uint64_t *documents)
{
    uint64_t n = 0, known = 0;
    for (const sgt_set_shard *d = first_of(s, split); d < end_of(s, split); d++) {
        n += d->head.tokens;
        known =
            known == UINT64_MAX || d->documents == UINT64_MAX ? UINT64_MAX : known + d->documents;
    }
    if (documents) *documents = known;
    return n;
}

const sgt_set_shard *inspect_place(const inspect_set *s, int split, uint64_t token,
                                   uint64_t *offset)
{
    for (const sgt_set_shard *d = first_of(s, split); d < end_of(s, split); d++) {
        *offset = token;
        if (token < d->head.tokens) return d;
        token -= d->head.tokens;
    }
    return NULL;
}

/* Open the file of shard d as s->fd. If another shard is open, close its file first. */
static int open_shard(inspect_set *s, const sgt_set_shard *d, sgt_error *err)
{
    if (s->opened == d) return SGT_OK;
    inspect_close_shard(s);
    s->fd = sgt_set_open_shard(&s->set, (uint32_t)(d - s->set.shards), err);
    if (s->fd < 0) return s->fd;
    s->opened = d;
    posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return SGT_OK;
}

void inspect_close_shard(inspect_set *s)
{
    if (!s->opened) return;
    posix_fadvise(s->fd, 0, 0, POSIX_FADV_DONTNEED);
    close(s->fd);
    s->opened = NULL;
}

int inspect_read(inspect_set *s, int split, uint64_t from, void *ids, size_t want, size_t *got,
                 sgt_error *err)
{
    uint64_t at;
    const size_t width = s->first.width;
    const sgt_set_shard *d;
    for (*got = 0; *got < want && (d = inspect_place(s, split, from + *got, &at));) {
        uint64_t left = d->head.tokens - at;
        size_t n = left < want - *got ? (size_t)left : want - *got;
        int rc = open_shard(s, d, err);
        if (rc == SGT_OK)
            rc = sgt_pread_all(s->fd, (char *)ids + width * *got, width * n,
                               d->head.data + width * at, d->path, err);
        if (rc < 0) return rc;
        *got += n;
    }
    return SGT_OK;
}

/* ---- text ---- */

int inspect_span(uint64_t *from, uint64_t *count, const char *text, const char *option,
                 sgt_error *err)
{
    char first[64];
    const char *colon = strchrnul(text, ':');
    size_t n = (size_t)(colon - text);
    *count = 1;
    snprintf(first, sizeof first, "%.*s", (int)n, text);
    if (n < sizeof first && sgt_parse_count(first, from) == 0 &&
        (!*colon || (sgt_parse_count(colon + 1, count) == 0 && *count > 0)) &&
        *from <= UINT64_MAX - *count)
        return SGT_OK;
    return sgt_fail(err, SGT_EUSAGE,
                    "--%s %s: expected a whole number, or two, as in 100:20, the second at least 1",
                    option, text);
}

int inspect_vocabulary(sgt_vocab **out, uint64_t fingerprint, size_t width, const char *path,
                       sgt_error *err)
{
    const char *slash = strrchr(path, '/');
    char file[SGT_PATH];
    sgt_error why;
    snprintf(file, sizeof file, "%.*stokenizer.json", slash ? (int)(slash + 1 - path) : 0, path);
    const char *tokenizer = fingerprint && !sgt_file_gone(file) ? file : NULL;
    const int rc = sample_vocab_of_data(
        out, tokenizer, fingerprint, width == 2 && !sample_has_meta(path) ? SGT_GPT2_IDS : 0, &why);
    if (rc == SGT_OK) return rc;
    if (rc == SGT_ENOMEM || rc == SGT_EIO) return sgt_fail(err, rc, "%s", why.text);
    return sgt_fail(err, SGT_EUNSUPPORTED,
                    "%s: cannot be decoded: its vocabulary is not GPT-2's (fingerprint %016" PRIx64
                    "; %s)",
                    path, fingerprint, why.text);
}

int inspect_set_vocabulary(sgt_vocab **out, const inspect_set *s, sgt_error *err)
{
    char path[SGT_PATH];
    return inspect_vocabulary(
        out, s->first.fingerprint, s->first.width,
        s->set.count ? s->set.shards[0].path : sgt_path(path, s->path, "manifest.json"), err);
}

/* destination of decoded text: standard output or, with --json, a buffer in memory */
typedef struct sink {
    json_t *ids; /* with --json, array of the ids decoded so far; otherwise NULL */
    /* 1 if standard output is a terminal, so that control characters must be escaped; otherwise
     * 0 */
    int terminal;
    /* Decoded text that has not been printed. With --json, this is all decoded text. Otherwise, it
     * is only an incomplete character at the end, whose last bytes have not been decoded yet. */
    char *text;
    size_t used, room;
    char last;
} sink;

/* Print the text in k->text. If `end` is 0, keep an incomplete character at the end of the text for
 * the next call. */
static int show_text(sink *k, int end, sgt_error *err)
{
    if (!k->text) return SGT_OK;
    size_t shown = sgt_print_text(k->text, k->used, k->terminal, end || !k->terminal);
    if (!shown) return SGT_OK;
    k->last = k->text[shown - 1];
    memmove(k->text, k->text + shown, k->used - shown);
    k->used -= shown;
    return ferror(stdout) ? sgt_fail_errno(err, "standard output") : SGT_OK;
}

static int put_piece(sink *k, const sgt_vocab *v, const void *ids, size_t n, sgt_error *err)
{
    char *text;
    size_t bytes, width = sgt_vocab_width(v);
    int rc = sgt_decode(v, ids, n, &text, &bytes, err);
    if (rc < 0) return rc;
    rc = sgt_reserve(&k->text, &k->room, k->used + bytes + 1, 1, NULL, err);
    if (rc == SGT_OK) memcpy(k->text + k->used, text, bytes);
    free(text);
    if (rc < 0) return rc;
    k->used += bytes;
    for (size_t i = 0; i < n && k->ids; i++)
        json_array_append_new(k->ids, json_integer(sgt_id_at(ids, width, i)));
    return k->ids ? SGT_OK : show_text(k, 0, err);
}

/* Return an error if one of the n ids at `ids` is not less than `vocab`, otherwise 0. from: index
 * in the data set of the first of these ids. */
static int check_ids(const inspect_set *s, uint64_t from, const void *ids, size_t n, uint32_t vocab,
                     sgt_error *err)
{
    uint64_t at;
    const size_t width = s->first.width, bad = sgt_rows_first_beyond(width, ids, n, vocab);
    if (bad == n) return SGT_OK;
    const sgt_set_shard *d = inspect_place(s, -1, from + bad, &at);
    return sgt_shard_bad_id(d->path, &d->head, at, sgt_id_at(ids, width, bad), vocab, err);
}

static int decode_span(inspect_set *s, const inspect *o, const sgt_vocab *v, uint64_t from,
                       uint64_t count, sgt_error *err)
{
    int rc = SGT_OK;
    sink k = {.ids = o->json ? json_array() : NULL,
              .terminal = !o->json && isatty(STDOUT_FILENO),
              .last = '\n'};
    void *ids = calloc(PIECE, sizeof(uint32_t));
    if (!ids) rc = sgt_fail_memory(err, NULL);
    for (uint64_t at = from; rc == SGT_OK && at < from + count;) {
        size_t n = from + count - at < PIECE ? (size_t)(from + count - at) : PIECE;
        if (sgt_stopped(o->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "%s: interrupted", s->path);
        else rc = inspect_read(s, -1, at, ids, n, &n, err);
        if (rc == SGT_OK) rc = check_ids(s, at, ids, n, sgt_vocab_size(v), err);
        if (rc == SGT_OK) rc = put_piece(&k, v, ids, n, err);
        at += n;
    }
    if (rc == SGT_OK && k.ids)
        rc = sgt_print_json(json_pack("{s:I, s:I, s:O, s:o}", "from", (json_int_t)from, "count",
                                      (json_int_t)count, "ids", k.ids, "text",
                                      sgt_json_text(k.text ? k.text : "", k.used)),
                            JSON_INDENT(2), err);
    /* end the last line, so that the shell's prompt or an error message begins on a new line */
    if (k.terminal) {
        show_text(&k, 1, NULL);
        if (k.last != '\n') putchar('\n');
        fflush(stdout);
    }
    json_decref(k.ids);
    free(k.text);
    free(ids);
    return rc;
}

int inspect_decode(inspect_set *s, const inspect *o, sgt_error *err)
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
        sgt_say(&o->notice, "%s has only %" PRIu64 " token%s", s->path, s->tokens,
                s->tokens == 1 ? "" : "s");
    }
    if ((rc = inspect_set_vocabulary(&v, s, err)) < 0) return rc;
    rc = decode_span(s, o, v, from, count, err);
    sgt_vocab_free(v);
    return rc;
}
