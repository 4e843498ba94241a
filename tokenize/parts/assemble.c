/* assemble.c: write the documents of an order into shards. */
#include "tokenize/parts/assemble.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tokenize/out/writer.h"
#include "loader/shards/shard.h"

/* A position in the order: the next token to write. */
typedef struct reader {
    sgt_order *order;
    uint64_t at; /* index of that token among all tokens of the split */
    /* tokens of the current document; how many of them are written. Equal: no document is
     * current */
    uint64_t tokens, begun;
    int known; /* 1: `order` is positioned at token `at` */
    /* first token of this rank's share, and the progress last reported within it */
    uint64_t first, told;
} reader;

/* Look for shard k in OUT. Return 1 if it exists, described in *s; 0 if not; or a negative
 * SGT_E*. */
static int whole(const sgt_assembly *a, int split, uint64_t k, uint64_t tokens,
                 sgt_manifest_shard *s, sgt_error *err)
{
    char index[64];
    struct stat st;
    sgt_shard_header h;
    *s = (sgt_manifest_shard){0};
    sgt_writer_name(s->file, sgt_split_names[split], k, "bin");
    sgt_writer_name(index, sgt_split_names[split], k, "idx");
    snprintf(s->split, sizeof s->split, "%s", sgt_split_names[split]);
    char *bin = sgt_join(a->out->path, s->file), *idx = sgt_join(a->out->path, index);
    int rc = bin && idx ? 0 : sgt_fail_memory(err, a->out->path);
    if (!rc && lstat(bin, &st) == 0 && lstat(idx, &st) == 0) {
        int fd = sgt_shard_open(&h, bin, 0, err);
        rc = fd < 0 ? fd : 1;
        if (fd >= 0) close(fd);
        if (rc == 1 && h.tokens != tokens)
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: %" PRIu64 " tokens, expected %" PRIu64 " (--force starts over)", bin,
                          h.tokens, tokens);
        s->tokens = tokens;
        s->xxh3 = h.xxh3;
        s->documents = (uint64_t)st.st_size / 8;
    }
    free(bin);
    free(idx);
    return rc;
}

/* Move a shard and its index into OUT. The index goes first, so that a shard in OUT always has its
 * index. */
static int publish(const sgt_out *o, const sgt_manifest_shard *s, sgt_error *err)
{
    char name[64], temporary[80];
    int n = (int)strlen(s->file) - 3; /* without "bin" */
    snprintf(name, sizeof name, "%.*sidx", n, s->file);
    snprintf(temporary, sizeof temporary, "%s.tmp", name);
    int rc = sgt_move(o->work, o->path, temporary, name, NULL, err);
    snprintf(temporary, sizeof temporary, "%s.tmp", s->file);
    return rc < 0 ? rc : sgt_move(o->work, o->path, temporary, s->file, NULL, err);
}

static int next_document(reader *r, sgt_error *err)
{
    int rc;
    r->begun = 0;
    rc = r->known ? sgt_order_next(r->order, &r->tokens, err)
                  : sgt_order_seek(r->order, r->at, &r->tokens, &r->begun, err);
    r->known = 1;
    return rc == 1 ? sgt_fail(err, SGT_EFORMAT,
                              "the parts end before their %" PRIu64 " tokens (--force starts over)",
                              sgt_order_tokens(r->order))
                   : rc;
}

/* Write the next `tokens` tokens of the order as shard k. */
static int make_shard(const sgt_assembly *a, int split, uint64_t k, uint64_t tokens, reader *r,
                      sgt_manifest_shard *s, sgt_error *err)
{
    sgt_writer *w;
    sgt_writer_options o = {a->out->work, sgt_split_names[split], a->shard_tokens, a->vocab};
    int rc = sgt_writer_open(&w, &o, k, 0, 0, err);
    if (rc < 0) return rc;
    while (!rc && sgt_writer_tokens(w) < tokens) {
        const uint16_t *ids;
        if (sgt_stopped(a->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        if (!rc && r->begun == r->tokens) rc = next_document(r, err);
        uint64_t n = tokens - sgt_writer_tokens(w);
        if (n > r->tokens - r->begun) n = r->tokens - r->begun;
        if (n > SGT_MADE_WINDOW) n = SGT_MADE_WINDOW;
        if (!rc) rc = sgt_order_ids(r->order, r->begun, (size_t)n, &ids, err);
        if (!rc && r->begun == 0) rc = sgt_writer_document(w, err);
        if (!rc) rc = sgt_writer_append(w, ids, (size_t)n, err);
        r->begun += n;
        r->at += n;
        sgt_advance_to(&a->advance, split, r->at - r->first, &r->told);
    }
    if (!rc) rc = sgt_writer_finish(w, s, err);
    if (!rc) rc = publish(a->out, s, err);
    sgt_writer_close(w);
    return rc;
}

int sgt_assemble(const sgt_assembly *a, int split, sgt_order *order, sgt_manifest *m,
                 uint64_t *documents, sgt_error *err)
{
    uint64_t all = sgt_order_tokens(order), count = (all + a->shard_tokens - 1) / a->shard_tokens;
    reader r = {.order = order};
    if (count > SGT_WRITER_SHARDS)
        return sgt_fail(err, SGT_EUSAGE, "more than %d shards (take more --shard-tokens)",
                        SGT_WRITER_SHARDS);
    sgt_manifest_shard *more = reallocarray(m->shards, m->count + (size_t)count + 1, sizeof *more);
    if (!more) return sgt_fail_memory(err, a->out->path);
    m->shards = more;
    uint64_t first = a->shares ? count * a->share / a->shares : 0;
    uint64_t last = a->shares ? count * (a->share + 1) / a->shares : 0;
    r.first = first * a->shard_tokens;
    for (uint64_t k = first; k < last; k++) {
        uint64_t from = k * a->shard_tokens,
                 tokens = all - from < a->shard_tokens ? all - from : a->shard_tokens;
        sgt_manifest_shard *s = &m->shards[m->count];
        int rc = whole(a, split, k, tokens, s, err);
        if (rc == 0 || (rc < 0 && a->force)) {
            if (r.at != from)
                r = (reader){.order = order, .at = from, .first = r.first, .told = r.told};
            rc = make_shard(a, split, k, tokens, &r, s, err);
        }
        if (rc < 0) return rc;
        m->count++;
        m->tokens += tokens;
        *documents += s->documents;
    }
    return SGT_OK;
}
