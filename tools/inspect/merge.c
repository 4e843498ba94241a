/* merge.c: joins several sets without tokenizing again: first the train tokens of all sets in
 * order, then the val tokens, cut into new shards. Everything is written in OUT/.work, and an
 * earlier set in OUT stays unchanged until the end. Checksums of the input are verified before any
 * file gets its final name; manifest.json gets it last. If a merge is killed, the same command
 * starts it again. A shard that is the same in OUT (it begins where a new shard begins, and is full
 * or the last) is copied as a file; a file system that can share blocks does this at once, without
 * using space. */
#include "tools/inspect/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/file.h"
#include "loader/shards/json_dumps.h"
#include "loader/shards/tokenizer.h"
#include "tokenize/input/unit.h"
#include "tools/cli/talk.h"
#include "tokenize/vocab/vocab.h"

#define SHARD_TOKENS 100000000u /* tokens per shard, if the first set does not tell */
#define COPY ((size_t)1 << 20)

/* ---- the sets ---- */

/* Check that the set's merges are the first set's. The tokenizers themselves are compared, because
 * fingerprints of older releases leave the merges out. */
static int check_merges(const merge *m, const inspect_set *s, sgt_error *err)
{
    const char *first = m->sets[0].path;
    char *path[2] = {sgt_join(first, "tokenizer.json"), sgt_join(s->path, "tokenizer.json")},
         *text[2] = {NULL, NULL};
    sgt_vocab *v[2] = {NULL, NULL};
    size_t n[2] = {0, 0};
    int rc = path[0] && path[1] ? SGT_OK : sgt_fail_memory(err, s->path);
    if (rc < 0 || s == m->sets || sgt_file_gone(path[0]) || sgt_file_gone(path[1])) goto done;
    for (int i = 0; i < 2 && !rc; i++)
        rc = sgt_file_get(&text[i], &n[i], path[i], SGT_TOKENIZER_MOST, err);
    if (rc < 0 || (n[0] == n[1] && !memcmp(text[0], text[1], n[0]))) goto done;
    for (int i = 0; i < 2 && !rc; i++) rc = sgt_vocab_load(&v[i], path[i], NULL, err);
    if (!rc && !sgt_vocab_same_merges(v[0], v[1]))
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: made with another vocabulary: the merges in its tokenizer.json are not "
                      "those of %s (tokenize its text again with --vocab %s)",
                      s->path, first, first);
done:
    for (int i = 0; i < 2; i++) {
        sgt_vocab_free(v[i]);
        free(text[i]);
        free(path[i]);
    }
    return rc;
}

/* Refuse a set whose manifest would not be true of all sets together: that duplicates are left out,
 * and that the documents are shuffled. */
static int check_claims(const inspect_set *s, sgt_error *err)
{
    static const char *const claims[] = {"dedup", "shuffle"};
    json_t *options = json_loads(s->manifest->options, 0, NULL);
    int rc = SGT_OK;
    for (size_t i = 0; i < sizeof claims / sizeof *claims && !rc; i++)
        if (json_object_get(options, claims[i]))
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: made with --%s, which would not hold for the merged set (give "
                          "sgt-tokenize all inputs together)",
                          s->path, claims[i]);
    json_decref(options);
    return rc;
}

static int check_set(const merge *m, const inspect_set *s, sgt_error *err)
{
    int rc;
    if (!s->folder || !s->manifest)
        return sgt_fail(
            err, SGT_EFORMAT,
            "%s: has no manifest.json: only sets that sgt-tokenize made whole are merged", s->path);
    if (s->manifest->foreign)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: made for another trainer: only sets of sgt's own shards are merged",
                        s->path);
    if ((rc = check_claims(s, err)) < 0) return rc;
    if (s->manifest->fingerprint != m->sets[0].manifest->fingerprint)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: made with another vocabulary: fingerprint %016" PRIx64
                        ", that of %s is %016" PRIx64 " (tokenize its text again with --vocab %s)",
                        s->path, s->manifest->fingerprint, m->sets[0].path,
                        m->sets[0].manifest->fingerprint, m->sets[0].path);
    rc = check_merges(m, s, err);
    return rc < 0 ? rc : inspect_sources_verify(s, m->o, err);
}

static int open_sets(merge *m, const char *const *paths, size_t count, sgt_error *err)
{
    if (!(m->sets = calloc(count, sizeof *m->sets))) return sgt_fail_memory(err, m->out);
    for (; m->count < count; m->count++) {
        inspect one = *m->o;
        one.path = paths[m->count];
        int rc = merge_check_not_out(m, one.path, err);
        if (rc < 0 || (rc = inspect_set_open(&m->sets[m->count], &one, err)) < 0) return rc;
        m->all_tokens += m->sets[m->count].tokens;
        if ((rc = check_set(m, &m->sets[m->count], err)) < 0) {
            inspect_set_close(&m->sets[m->count]);
            return rc;
        }
    }
    json_t *options = json_loads(m->sets[0].manifest->options, 0, NULL);
    m->shard_tokens = (uint64_t)json_integer_value(json_object_get(options, "shard_tokens"));
    json_decref(options);
    if (m->o->shard_tokens) m->shard_tokens = m->o->shard_tokens;
    if (!m->shard_tokens || m->shard_tokens > SGT_SHARD_MAX_TOKENS) m->shard_tokens = SHARD_TOKENS;
    const inspect_shard *first = &m->sets[0].shards[0];
    int rc = inspect_vocabulary(&m->vocab, &first->header, first->path, err);
    /* Copied shards keep the fingerprint of an older release, and all shards of a set must have the
     * same one. */
    if (!rc) m->vocab->fingerprint = m->sets[0].manifest->fingerprint;
    return rc;
}

/* ---- shards ---- */

static int keep_shard(merge *m, const sgt_manifest_shard *s, sgt_error *err)
{
    sgt_manifest *all = &m->manifest;
    /* the capacity doubles whenever the count is a power of two */
    if (!(all->count & (all->count - 1))) {
        sgt_manifest_shard *more =
            reallocarray(all->shards, all->count ? 2 * all->count : 1, sizeof *more);
        if (!more) return sgt_fail_memory(err, m->out);
        all->shards = more;
    }
    all->shards[all->count++] = *s;
    m->index++;
    return SGT_OK;
}

static int finish_shard(merge *m, sgt_error *err)
{
    sgt_manifest_shard s;
    int rc = sgt_writer_finish(m->writer, &s, err);
    return rc < 0 ? rc : keep_shard(m, &s, err);
}

static int append(merge *m, const uint16_t *ids, size_t n, sgt_error *err)
{
    while (n) {
        uint64_t room = sgt_writer_room(m->writer);
        size_t k = room < n ? (size_t)room : n;
        int rc = sgt_writer_append(m->writer, ids, k, err);
        if (!rc && k == room) rc = finish_shard(m, err);
        if (rc < 0) return rc;
        ids += k;
        n -= k;
    }
    return SGT_OK;
}

/* A shard that is being read, with the starts of its documents. */
typedef struct passage {
    merge *m;
    const inspect_shard *shard;
    inspect_starts starts;
    uint64_t next; /* index of the next document start to be reached */
} passage;

static int write_tokens(void *ctx, const uint16_t *ids, size_t n, uint64_t first, sgt_error *err)
{
    passage *p = ctx;
    int rc = SGT_OK;
    for (size_t i = 0; i < n && !rc;) {
        uint64_t end = first + n;
        if (p->next < p->starts.count && p->starts.at[p->next] == first + i) {
            rc = inspect_starts_check(&p->starts, p->next++, p->shard, ids[i], err);
            if (!rc) rc = sgt_writer_document(p->m->writer, err);
        }
        if (p->next < p->starts.count && p->starts.at[p->next] < end) end = p->starts.at[p->next];
        if (!rc) rc = append(p->m, ids + i, (size_t)(end - first) - i, err);
        i = (size_t)(end - first);
    }
    p->m->bytes += 2 * n;
    sgt_progress_update(p->m->bar, p->m->bytes, 2 * p->m->all_tokens, 0, NULL);
    return rc;
}

static int rewrite(merge *m, const inspect_set *s, const inspect_shard *d, sgt_error *err)
{
    passage p = {.m = m, .shard = d};
    sgt_shard_visitor v = {write_tokens, &p};
    int rc = inspect_starts_read(&p.starts, s, d, err);
    if (!rc) rc = sgt_shard_verify(d->path, 0, inspect_ids(d), &v, m->o->stop, err);
    inspect_starts_free(&p.starts);
    return rc;
}

/* Copy with reads and writes, for files between which copy_file_range does not work. */
static int copy_plainly(int from, int to, const char *path, sgt_error *err)
{
    char *buffer = malloc(COPY);
    int rc = buffer ? SGT_OK : sgt_fail_memory(err, path);
    for (ssize_t n = 1; !rc && n;) {
        if ((n = read(from, buffer, COPY)) < 0 && errno == EINTR) continue;
        rc = n < 0 ? sgt_fail_errno(err, "%s", path)
                   : sgt_write_all(to, buffer, (size_t)n, path, err);
    }
    free(buffer);
    return rc;
}

static int copy_file(const char *path, const char *folder, const char *name, sgt_error *err)
{
    char *copy = sgt_join(folder, name);
    int from = open(path, O_RDONLY | O_CLOEXEC), to = -1,
        rc = copy ? SGT_OK : sgt_fail_memory(err, folder);
    if (!rc && from < 0) rc = sgt_fail_errno(err, "%s", path);
    if (!rc && (to = open(copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666)) < 0)
        rc = sgt_fail_errno(err, "%s", copy);
    while (!rc) {
        ssize_t n = copy_file_range(from, NULL, to, NULL, (size_t)1 << 30, 0);
        if (n == 0) break;
        if (n > 0 || errno == EINTR) continue;
        if (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG)
            rc = sgt_fail_errno(err, "%s", copy);
        /* continue from the current offsets of both files */
        else rc = copy_plainly(from, to, copy, err);
        break;
    }
    if (!rc && fsync(to) < 0) rc = sgt_fail_errno(err, "%s: cannot flush to disk", copy);
    if (from >= 0) close(from);
    if (to >= 0) close(to);
    free(copy);
    return rc;
}

static int open_writer(merge *m, sgt_error *err)
{
    sgt_writer_options w = {m->work, m->split, m->shard_tokens, m->vocab};
    sgt_writer_close(m->writer);
    m->writer = NULL;
    return sgt_writer_open(&m->writer, &w, m->index, 0, 0, err);
}

/* Copy a shard that becomes the next one of OUT unchanged. It is read once before that, to verify
 * it. */
static int copy_shard(merge *m, const inspect_set *s, const inspect_shard *d, sgt_error *err)
{
    char name[64], temporary[80];
    sgt_manifest_shard kept = {
        .tokens = d->header.tokens, .documents = d->documents, .xxh3 = d->header.xxh3};
    snprintf(kept.split, sizeof kept.split, "%s", m->split);
    sgt_writer_name(kept.file, m->split, m->index, "bin");
    snprintf(temporary, sizeof temporary, "%s.tmp", kept.file);
    int rc = inspect_shard_verify(s, d, m->o->stop, &m->bytes, err);
    if (!rc) rc = copy_file(d->path, m->work, temporary, err);
    char *idx = inspect_index_path(d->path);
    sgt_writer_name(name, m->split, m->index, "idx");
    snprintf(temporary, sizeof temporary, "%s.tmp", name);
    if (!rc) rc = idx ? copy_file(idx, m->work, temporary, err) : sgt_fail_memory(err, d->path);
    free(idx);
    if (!rc) rc = keep_shard(m, &kept, err);
    sgt_progress_update(m->bar, m->bytes, 2 * m->all_tokens, 0, NULL);
    return rc < 0 ? rc : open_writer(m, err);
}

static int merge_shard(merge *m, const inspect_set *s, const inspect_shard *d, int last,
                       sgt_error *err)
{
    uint64_t n = d->header.tokens;
    if (!n) return SGT_OK;
    if (!sgt_writer_tokens(m->writer) && d->header.revision &&
        (n == m->shard_tokens || (last && n < m->shard_tokens)))
        return copy_shard(m, s, d, err);
    return rewrite(m, s, d, err);
}

static int merge_split(merge *m, sgt_error *err)
{
    uint64_t left = 0;
    m->index = 0;
    int rc = open_writer(m, err);
    for (size_t i = 0; i < m->count; i++) left += inspect_tokens(&m->sets[i], m->split);
    for (size_t i = 0; i < m->count; i++) {
        const inspect_set *s = &m->sets[i];
        for (size_t k = 0; k < s->count && !rc; k++) {
            const inspect_shard *d = &s->shards[k];
            if (strcmp(d->split, m->split)) continue;
            left -= d->header.tokens;
            rc = merge_shard(m, s, d, !left, err);
        }
    }
    if (!rc && sgt_writer_tokens(m->writer)) rc = finish_shard(m, err);
    sgt_writer_close(m->writer);
    m->writer = NULL;
    return rc;
}

/* ---- sources.jsonl and the manifest ---- */

static int merge_sources(merge *m, sgt_error *err)
{
    char *path = sgt_join(m->work, "sources.jsonl");
    int rc = path ? SGT_OK : sgt_fail_memory(err, m->work), to = -1;
    if (!rc && (to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666)) < 0)
        rc = sgt_fail_errno(err, "%s", path);
    for (size_t i = 0; i < m->count && !rc; i++) {
        char *one = sgt_join(m->sets[i].path, "sources.jsonl");
        int from = one ? open(one, O_RDONLY | O_CLOEXEC) : -1;
        if (from < 0) rc = one ? sgt_fail_errno(err, "%s", one) : sgt_fail_memory(err, m->work);
        else rc = copy_plainly(from, to, path, err);
        if (from >= 0) close(from);
        free(one);
    }
    if (!rc && fsync(to) < 0) rc = sgt_fail_errno(err, "%s: cannot flush to disk", path);
    if (to >= 0) close(to);
    free(path);
    return rc;
}

/* Write tokenizer.json: the first set's, unchanged; or if it has none, one made from the
 * vocabulary. */
static int merge_tokenizer(merge *m, sgt_error *err)
{
    char *text = NULL, *path, *from;
    size_t n;
    int rc;
    if (inspect_exists(m->sets[0].path, "tokenizer.json")) {
        from = sgt_join(m->sets[0].path, "tokenizer.json");
        rc = from ? copy_file(from, m->work, "tokenizer.json", err) : sgt_fail_memory(err, m->work);
        free(from);
        return rc;
    }
    path = sgt_join(m->work, "tokenizer.json");
    rc = path ? sgt_vocab_tokenizer_json(m->vocab, &text, &n, err) : sgt_fail_memory(err, m->work);
    if (!rc) rc = sgt_file_put(path, text, n, err);
    free(text);
    free(path);
    return rc;
}

/* Return the value of `key` in the options of all sets: a single value if they agree; otherwise an
 * array of all values, in order, and *agree becomes 0. */
static json_t *common_value(json_t *const *options, size_t count, const char *key, int *agree)
{
    json_t *list = json_array(), *first = json_object_get(options[0], key);
    int same = 1;
    for (size_t i = 0; i < count; i++) {
        json_t *v = json_object_get(options[i], key);
        same &= (!v && !first) || (v && first && json_equal(v, first));
        json_array_append_new(list, v ? json_incref(v) : json_null());
    }
    *agree &= same;
    if (!same) return list;
    json_decref(list);
    return json_incref(first);
}

/* Return the options with which sgt-tokenize would have made the merged set, as malloc'd JSON text:
 * those that all sets share. If the sets differ, there are no such options, and "merged" is the
 * number of sets. */
static char *merge_options(const merge *m)
{
    json_t **options = calloc(m->count, sizeof *options), *all = json_object(), *value;
    const char *key;
    char *text = NULL;
    int agree = 1;
    for (size_t i = 0; options && i < m->count; i++)
        options[i] = json_loads(m->sets[i].manifest->options, 0, NULL);
    for (size_t i = 0; options && i < m->count; i++) json_object_foreach(options[i], key, value)
        {
            if (json_object_get(all, key)) continue;
            json_object_set_new(all, key,
                                strcmp(key, "shard_tokens")
                                    ? common_value(options, m->count, key, &agree)
                                    : json_integer((json_int_t)m->shard_tokens));
        }
    if (!agree) json_object_set_new(all, "merged", json_integer((json_int_t)m->count));
    if (options) text = sgt_json_dumps(all, JSON_COMPACT);
    for (size_t i = 0; options && i < m->count; i++) json_decref(options[i]);
    free(options);
    json_decref(all);
    return text;
}

/* Return where the sets' sources have ill-formed UTF-8: the first places over all sets, as malloc'd
 * JSON text. */
static char *merge_invalid(const merge *m)
{
    json_t *all = json_array();
    for (size_t i = 0; i < m->count; i++) {
        json_t *list =
            m->sets[i].manifest->invalid ? json_loads(m->sets[i].manifest->invalid, 0, NULL) : NULL;
        for (size_t k = 0; k < json_array_size(list) && json_array_size(all) < SGT_INVALID_LISTED;
             k++)
            json_array_append(all, json_array_get(list, k));
        json_decref(list);
    }
    char *text = sgt_json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return text;
}

static int merge_manifest(merge *m, sgt_error *err)
{
    sgt_manifest *all = &m->manifest;
    const sgt_manifest *first = m->sets[0].manifest;
    for (size_t i = 0; i < m->count; i++) {
        const sgt_manifest *one = m->sets[i].manifest;
        all->tokens += one->tokens;
        all->documents += one->documents;
        all->bytes += one->bytes;
        all->files += one->files;
        all->invalid_utf8 += one->invalid_utf8;
        all->bad_lines += one->bad_lines;
        all->skipped += one->skipped;
        all->lone_surrogates += one->lone_surrogates;
        all->eot_literals += one->eot_literals;
    }
    memcpy(all->vocabulary, first->vocabulary, sizeof all->vocabulary);
    all->fingerprint = first->fingerprint;
    all->vocab = first->vocab;
    all->eot = first->eot;
    all->options = merge_options(m);
    all->invalid = merge_invalid(m);
    if (!all->options || !all->invalid) return sgt_fail_memory(err, m->out);
    return sgt_manifest_write(all, m->work, err);
}

/* ---- the merge ---- */

static int make_set(merge *m, sgt_error *err)
{
    int rc = SGT_OK;
    for (int i = 0; i < INSPECT_SPLITS && !rc; i++) {
        m->split = inspect_splits[i];
        rc = merge_split(m, err);
    }
    if (!rc) rc = merge_sources(m, err);
    if (!rc) rc = merge_tokenizer(m, err);
    if (!rc) rc = merge_manifest(m, err);
    return rc;
}

static int show(const merge *m, double seconds, sgt_error *err)
{
    char a[64], b[64], c[64], d[32], t[32], name[1024];
    const sgt_manifest *all = &m->manifest;
    if (m->o->json)
        return inspect_print_json(json_pack("{s:o, s:I, s:I, s:I, s:I, s:f}", "out",
                                            sgt_json_text(m->out, strlen(m->out)), "sets",
                                            (json_int_t)m->count, "tokens", (json_int_t)all->tokens,
                                            "documents", (json_int_t)all->documents, "shards",
                                            (json_int_t)all->count, "seconds", seconds),
                                  0, err);
    if (!m->o->quiet)
        printf("%s: %s, %s, %s, of %zu set%s, in %s, %s\n",
               sgt_printable(name, sizeof name, m->out),
               sgt_format_things(a, sizeof a, all->tokens, "token", "tokens"),
               sgt_format_things(b, sizeof b, all->documents, "document", "documents"),
               sgt_format_things(c, sizeof c, all->count, "shard", "shards"), m->count,
               m->count == 1 ? "" : "s", sgt_format_duration(t, sizeof t, seconds),
               sgt_format_rate(d, sizeof d, seconds > 0 ? 2 * (double)all->tokens / seconds : 0,
                               "B/s"));
    return SGT_OK;
}

static void let_go(merge *m)
{
    sgt_progress_end(m->bar);
    sgt_writer_close(m->writer);
    for (size_t i = 0; i < m->count; i++) inspect_set_close(&m->sets[i]);
    free(m->sets);
    sgt_manifest_free(&m->manifest);
    sgt_vocab_free(m->vocab);
}

int inspect_merge(const inspect *o, const char *const *paths, size_t count, sgt_error *err)
{
    merge m = {.o = o, .out = paths[count], .lock = -1};
    double began = sgt_now();
    int rc = open_sets(&m, paths, count, err);
    if (!rc && (rc = merge_claim(&m, err)) == 0) {
        m.bar = sgt_progress_new("B", SGT_PROGRESS_BYTES, o->quiet);
        rc = make_set(&m, err);
        sgt_progress_end(m.bar);
        m.bar = NULL;
        if (!rc) rc = merge_publish(&m, err);
        merge_release(&m, rc < 0);
    }
    if (!rc) rc = show(&m, sgt_now() - began, err);
    let_go(&m);
    return rc;
}
