/* join.c: write the documents of an order into shards, and join the parts' lists and counts. */
#include "tokenize/parts/join.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "loader/shards/shard.h"
#include "tokenize/out/writer.h"

/* ---- shards ---- */

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
static int find_shard(const sgt_join_request *j, int split, uint64_t k, uint64_t tokens,
                      sgt_manifest_shard *s, sgt_error *err)
{
    char index[64];
    struct stat st;
    sgt_shard_header h;
    *s = (sgt_manifest_shard){0};
    sgt_writer_name(s->file, sgt_split_names[split], k, "bin");
    sgt_writer_name(index, sgt_split_names[split], k, "idx");
    snprintf(s->split, sizeof s->split, "%s", sgt_split_names[split]);
    char *bin = sgt_join(j->out->path, s->file), *idx = sgt_join(j->out->path, index);
    int rc = bin && idx ? 0 : sgt_fail_memory(err, j->out->path);
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
static int make_shard(const sgt_join_request *j, int split, uint64_t k, uint64_t tokens, reader *r,
                      sgt_manifest_shard *s, sgt_error *err)
{
    sgt_writer *w;
    sgt_writer_options o = {j->out->work, sgt_split_names[split], j->shard_tokens, j->vocab};
    int rc = sgt_writer_open(&w, &o, k, 0, 0, err);
    if (rc < 0) return rc;
    while (!rc && sgt_writer_tokens(w) < tokens) {
        const uint16_t *ids;
        if (sgt_stopped(j->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        if (!rc && r->begun == r->tokens) rc = next_document(r, err);
        uint64_t n = tokens - sgt_writer_tokens(w);
        if (n > r->tokens - r->begun) n = r->tokens - r->begun;
        if (n > SGT_MADE_WINDOW) n = SGT_MADE_WINDOW;
        if (!rc) rc = sgt_order_ids(r->order, r->begun, (size_t)n, &ids, err);
        if (!rc && r->begun == 0) rc = sgt_writer_document(w, err);
        if (!rc) rc = sgt_writer_append(w, ids, (size_t)n, err);
        r->begun += n;
        r->at += n;
        sgt_advance_to(&j->advance, split, r->at - r->first, &r->told);
    }
    if (!rc) rc = sgt_writer_finish(w, s, err);
    if (!rc) rc = publish(j->out, s, err);
    sgt_writer_close(w);
    return rc;
}

int sgt_join_shards(const sgt_join_request *j, int split, sgt_order *order, uint32_t share,
                    uint32_t shares, sgt_manifest *m, sgt_error *err)
{
    uint64_t all = sgt_order_tokens(order), count = (all + j->shard_tokens - 1) / j->shard_tokens;
    reader r = {.order = order};
    if (count > SGT_WRITER_SHARDS)
        return sgt_fail(err, SGT_EUSAGE, "more than %d shards (take more --shard-tokens)",
                        SGT_WRITER_SHARDS);
    sgt_manifest_shard *more = reallocarray(m->shards, m->count + (size_t)count + 1, sizeof *more);
    if (!more) return sgt_fail_memory(err, j->out->path);
    m->shards = more;
    uint64_t first = count * share / shares, last = count * (share + 1) / shares;
    r.first = first * j->shard_tokens;
    for (uint64_t k = first; k < last; k++) {
        uint64_t from = k * j->shard_tokens,
                 tokens = all - from < j->shard_tokens ? all - from : j->shard_tokens;
        sgt_manifest_shard *s = &m->shards[m->count];
        int rc = find_shard(j, split, k, tokens, s, err);
        if (rc == 0 || (rc < 0 && j->force)) {
            if (r.at != from)
                r = (reader){.order = order, .at = from, .first = r.first, .told = r.told};
            rc = make_shard(j, split, k, tokens, &r, s, err);
        }
        if (rc < 0) return rc;
        m->count++;
        m->tokens += tokens;
        m->documents += s->documents;
    }
    return SGT_OK;
}

/* ---- sources.jsonl: lines are copied, but for those of a file that several ranks have read ---- */

typedef struct sources {
    const sgt_join_request *j;
    FILE *to;
    sgt_corpus_counts counts; /* so far, of a file that is cut between ranks */
} sources;

static int add_counts(sgt_corpus_counts *c, const char *line, size_t n, const char *path,
                      sgt_error *err)
{
    json_int_t mtime, documents, bytes, tokens;
    const char *hash;
    json_t *o = json_loadb(line, n, JSON_ALLOW_NUL, NULL);
    const int bad =
        !o || json_unpack(o, "{s:I, s:I, s:I, s:I, s:s}", "mtime", &mtime, "documents", &documents,
                          "bytes", &bytes, "tokens", &tokens, "xxh3", &hash) < 0;
    /* only Parquet is cut, and its hash is a sum */
    if (!bad) c->hash += strtoull(hash, NULL, 16);
    json_decref(o);
    if (bad) return sgt_fail(err, SGT_EFORMAT, "%s: a line is damaged (--force starts over)", path);
    c->mtime = mtime;
    c->documents += (uint64_t)documents;
    c->bytes += (uint64_t)bytes;
    c->tokens += (uint64_t)tokens;
    return SGT_OK;
}

/* Write the line of a file that was cut. */
static int write_counts(sources *s, size_t file, const char *path, sgt_error *err)
{
    const sgt_corpus *c = s->j->corpus;
    char *line = sgt_corpus_source(c, file, c->files[file].size, &s->counts);
    if (!line) return sgt_fail_memory(err, path);
    const int rc = fputs(line, s->to) < 0 ? sgt_fail_errno(err, "%s", path) : SGT_OK;
    free(line);
    s->counts = (sgt_corpus_counts){0};
    return rc;
}

/* Append the lines of rank `rank`, which are in the file at `path`. Ranks come in order. */
static int append_sources(sources *s, uint32_t rank, const char *path, sgt_error *err)
{
    const sgt_cut from = s->j->cuts[rank], to = s->j->cuts[rank + 1];
    size_t file = from.file, room = 0;
    char *line = NULL;
    FILE *f = NULL;
    int rc = sgt_file_lines(&f, path, err);
    for (ssize_t n; !rc && (n = getline(&line, &room, f)) > 0;) {
        const int begins = !(file == from.file && from.row), ends = file != to.file;
        const int whole = sgt_corpus_is_document(line) || (begins && ends);
        if (whole && fwrite(line, 1, (size_t)n, s->to) < (size_t)n)
            rc = sgt_fail_errno(err, "%s", path);
        if (!whole) rc = add_counts(&s->counts, line, (size_t)n, path, err);
        if (!rc && !whole && ends) rc = write_counts(s, file, path, err);
        file += !sgt_corpus_is_document(line);
    }
    /* getline also returns -1 if memory runs out, without an error of the stream */
    if (!rc && !feof(f)) rc = sgt_fail_errno(err, "%s", path);
    if (f) fclose(f);
    free(line);
    return rc;
}

int sgt_join_sources(const sgt_join_request *j, sgt_error *err)
{
    char *path = sgt_join(j->out->work, "sources.jsonl");
    FILE *f = path ? sgt_file_stream(path, 0) : NULL;
    int rc = f      ? SGT_OK
             : path ? sgt_fail_errno(err, "%s", path)
                    : sgt_fail_memory(err, j->out->path);
    sources all = {.j = j, .to = f};
    size_t part = 0;
    for (uint32_t i = 0; i < j->ranks && !rc; i++) {
        if (!sgt_divide_any(j->cuts, i)) continue;
        char *of_part = sgt_join(sgt_made_path(j->parts[part++]), "sources.jsonl");
        rc = of_part ? append_sources(&all, i, of_part, err) : sgt_fail_memory(err, j->out->path);
        free(of_part);
    }
    if (!rc && (fflush(f) != 0 || ferror(f) || fsync(fileno(f)) < 0))
        rc = sgt_fail_errno(err, "%s: cannot flush to disk", path);
    if (f) fclose(f);
    free(path);
    return rc;
}

/* ---- counts ---- */

/* Join the first places of ill-formed UTF-8 of all parts. */
static int join_invalid(const sgt_join_request *j, sgt_manifest *m, sgt_error *err)
{
    json_t *all = json_array(), *place;
    size_t k;
    int bad = 0; /* out of memory */
    for (size_t i = 0; i < j->count; i++) {
        const char *text = sgt_made_manifest(j->parts[i])->invalid;
        json_t *some = json_loads(text ? text : "[]", 0, NULL);
        bad |= !some;
        json_array_foreach(some, k, place) if (json_array_size(all) < SGT_INVALID_LISTED) bad |=
            json_array_append(all, place);
        json_decref(some);
    }
    m->invalid = all && !bad ? sgt_json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return m->invalid ? SGT_OK : sgt_fail_memory(err, j->out->path);
}

int sgt_join_counts(const sgt_join_request *j, sgt_manifest *m, sgt_error *err)
{
    for (size_t i = 0; i < j->count; i++) {
        const sgt_manifest *part = sgt_made_manifest(j->parts[i]);
        m->bytes += part->bytes;
        m->invalid_utf8 += part->invalid_utf8;
        m->bad_lines += part->bad_lines;
        m->lone_surrogates += part->lone_surrogates;
        m->eot_literals += part->eot_literals;
    }
    m->files = j->corpus->count;
    m->skipped = j->corpus->skipped;
    return join_invalid(j, m, err);
}
