/* verify.c: verifies an entire data set. It compares the tokens with the checksums and with the
 * size of the vocabulary, the starts of documents with the tokens, and the totals in the manifest
 * with sources.jsonl. Each thread verifies one shard at a time, with large reads that do not fill
 * the page cache. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/base/file.h"
#include "loader/shards/set.h"
#include "tokenize/input/corpus.h"
#include "tools/cli/process.h"
#include "tools/cli/progress.h"
#include "tools/inspect/inspect.h"

/* state of a verification, which all threads share */
typedef struct work {
    inspect_set *set;
    const sgt_stop *stop;
    sgt_progress *bar;
    uint64_t bytes; /* number of bytes read so far; accessed atomically */
    int threads;
} work;

/* ---- one shard ---- */

/* state of a thread that verifies a shard */
typedef struct checking {
    work *w;
    const sgt_set_shard *shard;
    char idx[SGT_PATH]; /* path of the shard's .idx file */
    uint64_t *starts;   /* for each document, the index in the shard of its first token */
    /* count: number of elements in `starts`. next: index in `starts` of the first document that
     * begins after the tokens checked so far. */
    size_t count, next;
} checking;

/* Read the starts of the documents in a shard from its .idx file. If the data set has a manifest, a
 * missing .idx file is an error, because sgt-tokenize writes an .idx file for every shard. Without
 * a manifest, the data set may be from another program, so if there is no .idx file, the starts of
 * documents are not checked. */
static int read_starts(checking *c, sgt_error *err)
{
    const sgt_set_shard *d = c->shard;
    const sgt_manifest *m = &c->w->set->manifest;
    /* Do not read an .idx file for the formats of other trainers: they have none, except for
     * Megatron-LM's format, whose .idx file was checked when the data set was opened. */
    if (m->foreign || d->head.format == SGT_SHARD_MEGATRON) return SGT_OK;
    if (!sgt_index_path(c->idx, d->path) || (!m->options && sgt_file_gone(c->idx))) return SGT_OK;
    return sgt_index_read(&c->starts, &c->count, c->idx, d->head.tokens, d->documents, err);
}

/* Check that each document that starts in the n tokens at `ids` starts with the end-of-text id.
 * first: index in the shard of the first of these tokens. */
static int check_tokens(void *ctx, const void *ids, size_t n, uint64_t first, sgt_error *err)
{
    checking *c = ctx;
    const sgt_shard_header *h = &c->shard->head;
    for (size_t i; (i = c->next) < c->count && c->starts[i] < first + n; c->next++) {
        const uint32_t id = sgt_id_at(ids, h->width, c->starts[i] - first);
        if (h->vocab && id != h->eot)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: at byte %zu: document %zu starts at token %" PRIu64
                            ", which is %u, not the end-of-text id %" PRIu32,
                            c->idx, 8 * i, i, c->starts[i], id, h->eot);
    }
    uint64_t done = __atomic_add_fetch(&c->w->bytes, h->width * n, __ATOMIC_RELAXED);
    sgt_progress_update(c->w->bar, done, h->width * c->w->set->tokens, 0, NULL);
    return SGT_OK;
}

static int verify_shard(work *w, const sgt_set_shard *d, sgt_error *err)
{
    checking c = {.w = w, .shard = d};
    /* for a shard without a header, head.xxh3 is the checksum in the manifest */
    sgt_shard_visitor v = {check_tokens, &c, d->head.xxh3};
    int rc = read_starts(&c, err);
    if (!rc) rc = sgt_shard_verify(d->path, d->raw, inspect_ids(d), &v, w->stop, err);
    free(c.starts);
    return rc;
}

/* ---- all shards ---- */

/* Verify all shards with several threads. If a shard is damaged, record this in the shard
 * (sgt_set_shard.damage) and continue. After any other error, let the threads finish their current
 * shards, and return the error. */
static int verify_shards(inspect_set *s, const inspect *o, sgt_error *err)
{
    work w = {.set = s,
              .stop = o->stop,
              .bar = sgt_progress_new("B", o->quiet),
              .threads = sgt_threads(o->threads, 1)};
    int rc = SGT_OK;
    if ((size_t)w.threads > s->set.count) w.threads = s->set.count ? (int)s->set.count : 1;
#pragma omp parallel for schedule(dynamic, 1) num_threads(w.threads)
    for (size_t i = 0; i < s->set.count; i++) {
        sgt_error why;
        int skip, bad;
#pragma omp critical
        skip = rc < 0 || s->set.shards[i].damage;
        bad = skip ? SGT_OK : verify_shard(&w, &s->set.shards[i], &why);
#pragma omp critical
        if (bad < 0 && (bad = sgt_set_keep_damage(&s->set, &s->set.shards[i], bad, &why)) < 0 &&
            !rc)
            rc = sgt_fail(err, bad, "%s", why.text);
    }
    sgt_progress_update(w.bar, w.bytes, s->first.width * s->tokens, 0, NULL);
    sgt_progress_end(w.bar);
    return rc;
}

/* ---- sources.jsonl ---- */

typedef struct sums {
    uint64_t lines, files, documents, tokens;
    /* Number of lines about documents since the last line about a file. With --keep-fields,
     * sources.jsonl contains a line for each document, and a line for each file after the lines for
     * its documents. */
    uint64_t kept;
} sums;

static int add_line(sums *t, const char *line, size_t n, const char *path, sgt_error *err)
{
    json_int_t documents, tokens;
    json_t *o = json_loadb(line, n, JSON_ALLOW_NUL, NULL);
    const int bad = !o || json_unpack(o, "{s:I, s:I}", "documents", &documents, "tokens", &tokens);
    const uint64_t kept = t->kept;
    json_decref(o);
    if (bad)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: line %" PRIu64 ": expected a JSON object with documents and tokens",
                        path, t->lines);
    if (kept && kept != (uint64_t)documents)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: line %" PRIu64
                        ": %lld documents, but the lines before it list fields of %" PRIu64,
                        path, t->lines, documents, kept);
    t->files++;
    t->documents += (uint64_t)documents;
    t->tokens += (uint64_t)tokens;
    t->kept = 0;
    return SGT_OK;
}

static int compare_sums(const sums *t, const sgt_manifest *m, const char *path, sgt_error *err)
{
    const struct {
        const char *what;
        uint64_t got, want;
    } rows[] = {{"files", t->files, m->files},
                {"documents", t->documents, m->documents + m->duplicates},
                {"tokens", t->tokens, m->tokens}};
    /* Do not compare the numbers of tokens if duplicates were removed, because sources.jsonl also
     * counts the tokens of the removed documents. */
    for (size_t i = 0; i < (m->duplicates ? 2 : sizeof rows / sizeof *rows); i++)
        if (rows[i].got != rows[i].want)
            return sgt_fail(err, SGT_EFORMAT, "%s: %" PRIu64 " %s, but the manifest says %" PRIu64,
                            path, rows[i].got, rows[i].what, rows[i].want);
    return SGT_OK;
}

static int verify_sources(const inspect_set *s, const inspect *o, sgt_error *err)
{
    char path[SGT_PATH], line[SGT_CORPUS_LINE];
    sums t = {0};
    FILE *f = NULL;
    int rc = sgt_file_lines(&f, sgt_path(path, s->path, "sources.jsonl"), err);
    for (size_t n; !rc && (n = sgt_file_line(line, sizeof line, f)) > 0;) {
        t.lines++;
        if (sgt_stopped(o->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "%s: interrupted", path);
        else if (sgt_corpus_is_document(line)) t.kept++;
        else rc = add_line(&t, line, n, path, err);
    }
    if (!rc && ferror(f)) rc = sgt_fail_errno(err, "%s", path);
    if (!rc) rc = compare_sums(&t, &s->manifest, path, err);
    if (f) fclose(f);
    return rc;
}

int inspect_set_verify(inspect_set *s, const inspect *o, sgt_error *err)
{
    int rc = verify_shards(s, o, err);
    return rc < 0 || s->set.damaged || !s->manifest.options || o->split ? rc
                                                                        : verify_sources(s, o, err);
}
