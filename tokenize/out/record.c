/* record.c: writes encoded units to disk, with checkpoints from which a killed run resumes.
 *
 * A checkpoint is written when a shard is full, which can happen in the middle of a part of a
 * document (parts are the sections that feed.h cuts long documents into). The checkpoint then has
 * the position of the first byte of this part, and `skip` is the number of the part's tokens that
 * are already written. A later run encodes the part from its first byte and skips these tokens. The
 * part is encoded to the same tokens again, because parts are cut only where no token crosses the
 * cut.
 *
 * If document records are written (dedup.h), a run cannot resume in the middle of a document,
 * because a record has a hash of the entire document. The checkpoint then has the position of the
 * beginning of the document. If <|endoftext|> splits one line or row into several documents, they
 * have the same offset, and the checkpoint has the position of the first of them. */
#include "tokenize/out/record.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "tokenize/input/kept.h"
#include "tokenize/out/writer.h"
#include "tokenize/pipeline.h"

/* number of document records (sgt_dedup_record) for which the write buffer has room */
#define RECORDS 2048
#define SOURCES_BUFFER ((size_t)1 << 16) /* size in bytes of the write buffer for sources.jsonl */

/* ---- documents.sgt ---- */

typedef struct digests {
    sgt_sink file;
    /* running hash of the text of the current document, for documents that have several parts; NULL
     * if no document records are written */
    XXH3_state_t *hash;
    uint64_t length;
} digests;

/* Open the file `name` in .work for appending. Keep its first `bytes` bytes, and truncate it after
 * them. */
static int open_sink(sgt_sink *s, size_t size, const sgt_out *o, const char *name, uint64_t bytes,
                     sgt_error *err)
{
    s->size = size;
    int rc = sgt_sink_open(s, o->work, name, O_CREAT, err);
    return rc < 0 ? rc : sgt_sink_cut(s, bytes, err);
}

/* Add n bytes of text, a part of a document, to the hash of the document. `first` is 1 if this is
 * the document's first part, else 0; `last` is 1 if it is the document's last part, else 0. After
 * the last part, append the document's record to the file. */
static int add_digest(digests *d, const void *text, size_t n, int first, int last, int split,
                      sgt_error *err)
{
    XXH128_hash_t h;
    if (first) {
        XXH3_128bits_reset(d->hash);
        d->length = 0;
    }
    d->length += n;
    if (first && last) h = XXH3_128bits(text, n);
    else XXH3_128bits_update(d->hash, text, n);
    if (!last) return SGT_OK;
    if (!first) h = XXH3_128bits_digest(d->hash);
    const sgt_dedup_record record = {{h.low64, h.high64}, d->length | (split ? SGT_DEDUP_VAL : 0)};
    return sgt_sink_put(&d->file, &record, sizeof record, err);
}

/* ---- units ---- */

struct sgt_record {
    const sgt_out *o;
    const sgt_corpus *corpus;
    uint64_t shard_tokens;
    size_t width; /* bytes of an id */
    sgt_writer *writers[SGT_SPLITS];
    sgt_sink sources;
    sgt_checkpoint now;
    uint64_t tokens; /* number of tokens in both splits so far, for a progress display */
    /* total size on disk, in bytes, of the input files that are completely recorded */
    uint64_t done;
    /* number of bytes that have been read from the current input file on disk so far */
    uint64_t reading;
    digests digests;
    /* Value of `now` at the start of the current document. If the document's line or row contains
     * several documents, `begun` is the value at the start of the first of them, because a run can
     * resume only at the start of a line or row. */
    sgt_checkpoint begun;
    /* number of tokens in the parts that have been completely recorded since `begun` was set */
    uint64_t begun_tokens;
    /* 1 in the middle of a document, or of a line or row that contains several documents; otherwise
     * 0 */
    int inside;
    /* reader of the columns that --keep-fields names; NULL unless the current input file is a
     * Parquet file */
    sgt_kept_rows *kept_rows;
};

static int open_files(sgt_record *r, const sgt_tokenize_options *o, sgt_error *err)
{
    int rc = open_sink(&r->sources, SOURCES_BUFFER, r->o, "sources.jsonl", r->now.sources, err);
    if (rc < 0 || !o->dedup) return rc;
    if (!(r->digests.hash = XXH3_createState())) return sgt_fail_memory(err, r->o->path);
    return open_sink(&r->digests.file, RECORDS * sizeof(sgt_dedup_record), r->o, SGT_DEDUP_FILE,
                     r->now.all_documents * sizeof(sgt_dedup_record), err);
}

int sgt_record_open(sgt_record **record, const sgt_out *out, const sgt_corpus *c,
                    const sgt_vocab *v, const sgt_tokenize_options *o, sgt_error *err)
{
    const sgt_journal *j = out->journal;
    sgt_record *r = calloc(1, sizeof *r);
    if (!r) return sgt_fail_memory(err, out->path);
    *r = (sgt_record){.o = out,
                      .corpus = c,
                      .sources.fd = -1,
                      .digests.file.fd = -1,
                      .shard_tokens = sgt_pipeline_shard_tokens(o),
                      .width = sgt_vocab_width(v),
                      .now = j->now};
    int rc = open_files(r, o, err);
    for (int s = 0; s < SGT_SPLITS && !rc; s++) {
        sgt_writer_options w = {out->work, sgt_split_names[s], r->shard_tokens, v};
        rc = sgt_writer_open(&r->writers[s], &w, j->now.shards[s], j->now.tokens[s],
                             j->now.documents[s], err);
        r->tokens += j->now.shards[s] * r->shard_tokens + j->now.tokens[s];
    }
    for (size_t i = 0; i < r->now.file && i < c->count; i++)
        r->done += sgt_corpus_share(&c->files[i]);
    if (r->now.file < c->count && sgt_corpus_sought(&c->files[r->now.file]))
        r->reading = r->now.offset;
    if (rc < 0) sgt_record_close(r);
    else *record = r;
    return rc;
}

void sgt_record_close(sgt_record *r)
{
    if (!r) return;
    for (int s = 0; s < SGT_SPLITS; s++) sgt_writer_close(r->writers[s]);
    sgt_sink_free(&r->digests.file);
    XXH3_freeState(r->digests.hash);
    sgt_sink_free(&r->sources);
    sgt_kept_rows_close(r->kept_rows);
    free(r);
}

uint64_t sgt_record_bytes(const sgt_record *r) { return r->now.all_bytes; }
uint64_t sgt_record_read(const sgt_record *r) { return r->done + r->reading; }
uint64_t sgt_record_tokens(const sgt_record *r) { return r->tokens; }

/* Return the checkpoint that a later run must resume from if this run is killed now. */
static sgt_checkpoint resume_point(const sgt_record *r)
{
    /* 1 if the line or row of the current document has not ended; in that case, the current offset
     * is still the offset at which the line or row begins */
    const int line = r->now.file == r->begun.file && r->now.offset == r->begun.offset;
    if (!r->inside || !(r->digests.hash || line)) return r->now;
    sgt_checkpoint at = r->begun;
    memcpy(at.shards, r->now.shards, sizeof at.shards);
    memcpy(at.tokens, r->now.tokens, sizeof at.tokens);
    memcpy(at.documents, r->now.documents, sizeof at.documents);
    at.skip = r->begun_tokens + r->now.skip;
    return at;
}

/* Flush all files to disk, write a checkpoint to the journal, and then move the shards that are now
 * complete to the output folder. If the run is killed before it has moved them, the next run moves
 * them. If `finish` is 1, also complete the shards that are not full. */
static int checkpoint(sgt_record *r, int finish, sgt_error *err)
{
    sgt_manifest_shard done[SGT_SPLITS] = {0};
    int rc = SGT_OK;
    for (int s = 0; s < SGT_SPLITS && !rc; s++) {
        uint64_t tokens = sgt_writer_tokens(r->writers[s]);
        rc = tokens == r->shard_tokens || (finish && tokens)
                 ? sgt_writer_finish(r->writers[s], &done[s], err)
                 : sgt_writer_sync(r->writers[s], err);
        r->now.shards[s] += done[s].tokens > 0;
        r->now.tokens[s] = sgt_writer_tokens(r->writers[s]);
        r->now.documents[s] = sgt_writer_documents(r->writers[s]);
    }
    if (rc < 0) return rc;
    if ((rc = sgt_sink_sync(&r->sources, err)) < 0) return rc;
    if (r->digests.hash && (rc = sgt_sink_sync(&r->digests.file, err)) < 0) return rc;
    const sgt_checkpoint at = resume_point(r);
    if ((rc = sgt_sync_folder(r->o->work, err)) < 0 ||
        (rc = sgt_journal_commit(r->o->journal, &at, err)) < 0)
        return rc;
    for (int s = 0; s < SGT_SPLITS && !rc; s++)
        if (done[s].tokens) rc = sgt_out_move_shard(r->o, &done[s], err);
    return rc;
}

int sgt_record_save(sgt_record *r, sgt_error *err) { return checkpoint(r, 0, err); }

static int write_source(sgt_record *r, const char *text, size_t n, sgt_error *err)
{
    r->now.sources += n;
    return sgt_sink_put(&r->sources, text, n, err);
}

/* Write the line of sources.jsonl for the document that begins with part p. The line contains the
 * number of the document's line or row, its split, and the fields that --keep-fields names.
 * finish_part must have counted the part before. */
static int record_fields(sgt_record *r, const sgt_part *p, const sgt_unit *u, sgt_error *err)
{
    const char *json;
    char begin[96];
    size_t n;
    if (p->kind == SGT_PART_TEXT) return SGT_OK;
    int rc = sgt_kept_of(&r->kept_rows, r->corpus, u, p, &json, &n, err);
    if (rc < 0) return rc;
    const int size =
        snprintf(begin, sizeof begin,
                 "{\"document\": %" PRIu64 ", \"split\": \"%s\", \"fields\": ", r->now.line,
                 sgt_split_names[p->split]);
    rc = write_source(r, begin, (size_t)size, err);
    if (!rc) rc = write_source(r, json, n, err);
    return rc < 0 ? rc : write_source(r, "}\n", 2, err);
}

/* Write the line of sources.jsonl for the current input file, whose end has been reached. `hash` is
 * the hash of the file's stream (feed.h). */
static int record_source(sgt_record *r, uint64_t hash, sgt_error *err)
{
    const sgt_corpus_file *f = &r->corpus->files[r->now.file];
    const sgt_corpus_counts counts = {r->now.file_documents, r->now.file_bytes, r->now.file_tokens,
                                      hash};
    char *line =
        sgt_corpus_line(r->corpus, r->now.file, f->stream ? r->now.offset : f->size, 1, &counts);
    if (!line) return sgt_fail_memory(err, r->o->path);
    const int rc = write_source(r, line, strlen(line), err);
    free(line);
    if (rc < 0) return rc;
    r->now.file++;
    r->now.offset = r->now.hashed = r->now.hash = r->now.block = r->now.line = 0;
    r->now.file_tokens = r->now.file_documents = r->now.file_bytes = 0;
    r->done += f->stream ? r->reading : sgt_corpus_share(f);
    r->reading = 0;
    return SGT_OK;
}

static int record_ids(sgt_record *r, const sgt_part *p, const char *ids, size_t n, sgt_error *err)
{
    sgt_writer *w = r->writers[p->split];
    uint64_t skip = r->now.skip;
    int rc = p->first && !skip ? sgt_writer_document(w, err) : SGT_OK;
    for (size_t at = skip < n ? (size_t)skip : n; at < n && !rc;) {
        uint64_t room = sgt_writer_room(w);
        size_t k = room < n - at ? (size_t)room : n - at;
        rc = sgt_writer_append(w, ids + r->width * at, k, err);
        at += k;
        r->tokens += k;
        r->now.skip = at;
        if (!rc && k == room) rc = checkpoint(r, 0, err);
    }
    r->now.skip = skip > n ? skip - n : 0;
    return rc;
}

static int in_part(const sgt_invalid_at *at, const sgt_part *p)
{
    return at->file == p->file && at->offset - p->offset < p->end - p->offset;
}

static void count_part(sgt_record *r, const sgt_part *p)
{
    r->now.offset = p->end;
    r->now.line += p->records;
    r->now.file_tokens += p->ids;
    r->now.file_bytes += p->length;
    r->now.file_documents += p->first != 0;
    r->now.all_documents += p->first != 0;
    r->now.all_bytes += p->length;
    if (p->kind == SGT_PART_TEXT) r->now.all_invalid += p->text.invalid;
    r->now.all_bad += p->bad;
    if (p->kind == SGT_PART_LINE) r->now.all_surrogates += p->line.surrogates;
    r->now.all_literals += p->literals;
    r->reading = p->raw;
}

/* Count part p, whose ids have been written to the shards. Also write the document's line of
 * sources.jsonl if --keep-fields requests it, and update the hash for documents.sgt. */
static int finish_part(sgt_record *r, const sgt_part *p, const sgt_unit *u, sgt_error *err)
{
    int rc = SGT_OK;
    count_part(r, p);
    if (p->first && r->corpus->kept.count && (rc = record_fields(r, p, u, err)) < 0) return rc;
    r->begun_tokens += p->ids;
    if (p->last && (p->end > p->offset || p->closes)) r->inside = 0;
    if (!r->digests.hash || !(p->first || p->last || p->length)) return SGT_OK;
    return add_digest(&r->digests, u->text + p->at, p->length, p->first, p->last, p->split, err);
}

int sgt_record_unit(sgt_record *r, const sgt_unit *u, sgt_error *err)
{
    size_t noted = 0;
    int rc = sgt_out_check(r->o, err);
    for (size_t i = 0; i < u->count && !rc; i++) {
        const sgt_part *p = &u->parts[i];
        /* Take the index of the first row from the first part: if a Parquet file is divided among
         * ranks, this rank may begin at a later row, which only the reader of the file knows */
        if (!r->now.offset && p->offset) r->now.offset = r->now.line = p->offset;
        assert(p->file == r->now.file && p->offset == r->now.offset);
        r->now.hashed = p->hashed;
        r->now.hash = p->hash;
        r->now.block = p->block;
        r->now.split = (uint64_t)p->split;
        if (p->first && !r->inside) {
            r->begun = r->now;
            r->begun_tokens = 0;
            r->inside = 1;
        }
        rc = record_ids(r, p, u->ids + r->width * p->first_id, p->ids, err);
        if (!rc) rc = finish_part(r, p, u, err);
        if (rc < 0) return rc;
        while (noted < u->invalid_count && in_part(&u->invalid[noted], p))
            sgt_journal_invalid(r->o->journal, u->invalid[noted++]);
        if (p->closes) rc = record_source(r, p->all, err);
    }
    if (rc < 0) return rc;
    return u->bad.why ? sgt_bad_line_fail(&u->bad, r->corpus, r->now.line + 1, err) : SGT_OK;
}

/* Return the positions of ill-formed UTF-8 that the journal lists, as JSON text: [{"path": ...,
 * "offset": N}, ...]. The caller frees the text. If memory runs out, return NULL. */
static char *invalid_places(const sgt_record *r)
{
    const sgt_journal *j = r->o->journal;
    json_t *all = json_array();
    int bad = 0;
    for (size_t i = 0; i < j->invalid_count; i++) {
        json_t *place = sgt_corpus_json_name(r->corpus, j->invalid[i].file);
        bad |= json_object_set_new(place, "offset", json_integer((json_int_t)j->invalid[i].offset));
        bad |= json_array_append_new(all, place);
    }
    char *text = bad ? NULL : sgt_json_dumps(all, 0);
    json_decref(all);
    return text;
}

int sgt_record_finish(sgt_record *r, sgt_manifest *m, sgt_error *err)
{
    int rc = checkpoint(r, 1, err);
    if (rc < 0) return rc;
    *m = (sgt_manifest){.bytes = r->now.all_bytes,
                        .files = r->corpus->count,
                        .invalid_utf8 = r->now.all_invalid,
                        .bad_lines = r->now.all_bad,
                        .lone_surrogates = r->now.all_surrogates,
                        .eot_literals = r->now.all_literals,
                        .skipped = r->corpus->skipped};
    m->invalid = invalid_places(r);
    rc = m->invalid ? sgt_out_list_shards(r->o, r->now.shards, m, err)
                    : sgt_fail_memory(err, r->o->path);
    if (!rc && m->documents != r->now.all_documents)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: its shards list %" PRIu64 " documents, but %" PRIu64
                      " were written (--force starts over)",
                      r->o->shards, m->documents, r->now.all_documents);
    if (rc < 0) sgt_manifest_free(m);
    return rc;
}
