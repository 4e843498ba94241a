/* parts.c: lets several ranks (processes) each tokenize a part of the inputs at the same time, and
 * then joins the parts into one set: shards, sources.jsonl and the counts of the manifest.
 *
 * Shard k of a split holds tokens k*S ... (k+1)*S - 1 of the split, where S is the number of tokens
 * per shard. Because its range of tokens is known in advance, each shard can be written
 * independently of the others. A shard that exists in OUT is complete and is not written again;
 * therefore, a killed run needs no journal to resume this step. Tokens are read and written, not
 * copied with copy_file_range, because the checksum has to cover every token anyway. */
#include "tokenize/parts/parts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "loader/base/json.h"
#include "loader/base/ranks.h"
#include "loader/shards/shard.h"
#include "tokenize/out/made.h"
#include "tokenize/out/out.h"
#include "tokenize/out/writer.h"
#include "tokenize/parts/dedup.h"
#include "tokenize/parts/divide.h"
#include "tokenize/parts/order.h"
#include "tokenize/pipeline.h"
#include "tokenize/vocab/vocab.h"

/* minimum size in bytes of the hash table that finds duplicates */
#define LEAST_TABLE ((uint64_t)128 << 20)
#define SOURCES_BUFFER ((size_t)1 << 16) /* size in bytes of the write buffer for sources.jsonl */
/* number of tokens that the second pass processes between two progress reports */
#define REPORT_TOKENS ((uint64_t)1 << 20)

typedef struct parts {
    const sgt_tokenize_options *o;
    const sgt_out_request *r;
    uint32_t rank, ranks;
    /* array of ranks + 1 positions: rank i reads the inputs from cuts[i] up to cuts[i + 1] */
    sgt_cut *cuts;
    sgt_out out;
    /* the sets of shards of all parts, in the order of the ranks; a rank without inputs has no
     * part */
    sgt_made *set;
    /* connection to the other ranks; NULL if a user started the ranks separately, or if there is
     * only one */
    sgt_ranks *together;
    /* marks the duplicates; NULL if they have not been found yet, or if duplicates are kept */
    sgt_dedup *dedup;
    /* For the second pass, which writes shards from the parts:
     *   share    index of this rank among the ranks that write shards
     *   shares   number of these ranks
     *   memory   as sgt_order_request.memory
     *   shards   number of shards in each split */
    uint32_t share, shares;
    uint64_t memory, shards[SGT_SPLITS];
    /* Progress of the first pass, which tokenizes this rank's inputs. read: bytes read; read_bytes:
     * bytes to read, or 0 if unknown; tokens: tokens so far. */
    uint64_t read, read_bytes, tokens;
    /* Progress of the second pass, in tokens. again: tokens copied into buckets or written to
     * shards so far; reported: value of `again` at the last report; second: expected final value of
     * `again`. */
    uint64_t again, reported, second;
} parts;

int sgt_parts_wanted(const sgt_tokenize_options *o)
{
    return o->ranks > 1 || o->shuffle || o->dedup;
}

/* Write the path of the folder of a rank's part to `path`, and return `path`. */
static char *part_path(char path[SGT_PATH], const parts *p, uint32_t rank)
{
    return sgt_path(path, p->out.work, "part-%06" PRIu32, rank);
}

/* ---- progress ----
 *
 * Progress is reported as one number of bytes for two passes: tokenizing the inputs, and writing
 * shards from the parts. A token that the second pass copies or writes counts as two bytes. */

static void report(const parts *p, uint64_t second)
{
    const uint64_t all = p->read_bytes ? p->read_bytes + 2 * second : 0;
    const uint64_t done = p->read + 2 * (p->again < second ? p->again : second);
    if (p->o->progress) p->o->progress(p->o->progress_ctx, done, all, p->tokens);
}

static void first_pass(void *ctx, uint64_t done, uint64_t total, uint64_t tokens)
{
    parts *p = ctx;
    p->read = done;
    p->read_bytes = total;
    p->tokens = tokens;
    /* Estimate how many tokens this rank will handle in the second pass. It takes part in that pass
     * if a launcher started the ranks, or if there is only one. It then handles about as many
     * tokens as its part has, because tokens are seldom copied into buckets first. Otherwise
     * another rank probably writes the shards, so the estimate is 0. */
    const int again = total && done && (p->ranks == 1 || p->together);
    report(p, again ? (uint64_t)((double)tokens / (double)done * (double)total) : 0);
}

static void second_pass(void *ctx, uint64_t tokens)
{
    parts *p = ctx;
    p->again += tokens;
    if (p->again - p->reported < REPORT_TOKENS) return;
    p->reported = p->again;
    report(p, p->second);
}

static sgt_order_request order_of(parts *p, int split)
{
    return (sgt_order_request){.set = p->set,
                               .split = split,
                               .dedup = p->dedup,
                               .shuffle = p->o->shuffle,
                               .seed = p->o->shuffle_seed,
                               .work = p->out.work,
                               .rank = p->share,
                               .ranks = p->shares,
                               .memory = p->memory,
                               .stop = p->o->stop,
                               .advance = second_pass,
                               .ctx = p};
}

/* Begin to report the progress of the second pass, which writes shards from the parts. The first
 * pass must be done, and all parts must be open. */
static void begin_second(parts *p)
{
    uint64_t all = 0;
    for (int k = 0; k < SGT_SPLITS; k++) {
        const sgt_order_request r = order_of(p, k);
        const uint64_t times = sgt_order_copies(&r) ? 2 : 1, tokens = sgt_made_tokens(p->set, k);
        all += tokens;
        p->second += times * tokens / p->shares;
    }
    if (p->read_bytes) p->read = p->read_bytes;
    /* if this rank's part was already complete when the run began, the first pass has counted no
     * tokens */
    if (!p->tokens) p->tokens = all;
    report(p, p->second);
}

/* ---- shards ---- */

/* Look for shard k of a split, and check that it has `tokens` tokens. Return 1 if it exists, 0 if
 * not, or a negative SGT_E*. */
static int find_shard(const parts *p, int split, uint64_t k, uint64_t tokens, sgt_error *err)
{
    sgt_manifest_shard s;
    const int rc = sgt_out_find_shard(&p->out, split, k, &s, err);
    if (rc <= 0 || s.tokens == tokens) return rc;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s/%s: has %" PRIu64 " tokens, expected %" PRIu64 " (--force starts over)",
                    p->out.shards, s.file, s.tokens, tokens);
}

/* Write the tokens from `from` up to `end` of the order as shard k of a split. */
static int make_shard(parts *p, int split, uint64_t k, sgt_order *order, uint64_t from,
                      uint64_t end, sgt_error *err)
{
    sgt_writer *w;
    sgt_manifest_shard s;
    const sgt_writer_options o = {p->out.work, sgt_split_names[split],
                                  sgt_pipeline_shard_tokens(p->o), p->r->vocab};
    int rc = sgt_writer_open(&w, &o, k, 0, 0, err);
    if (rc < 0) return rc;
    for (uint64_t at = from; at < end && !rc;) {
        sgt_order_ids ids = {0};
        if (sgt_stopped(p->o->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        if (!rc) rc = sgt_out_check(&p->out, err);
        if (!rc) rc = sgt_order_read(order, at, end - at, &ids, err);
        if (!rc && ids.begins) rc = sgt_writer_document(w, err);
        if (!rc) rc = sgt_writer_append(w, ids.ids, ids.count, err);
        at += ids.count;
        second_pass(p, ids.count);
    }
    if (!rc) rc = sgt_writer_finish(w, &s, err);
    if (!rc) rc = sgt_out_move_shard(&p->out, &s, err);
    sgt_writer_close(w);
    return rc;
}

/* Write this rank's share of a split's shards, with the documents of `order`. */
static int make_share(parts *p, int split, sgt_order *order, sgt_error *err)
{
    const uint64_t size = sgt_pipeline_shard_tokens(p->o), all = sgt_order_tokens(order);
    const uint64_t count = (all + size - 1) / size;
    if (count > SGT_WRITER_SHARDS)
        return sgt_fail(err, SGT_EUSAGE, "more than %d shards (use a larger --shard-tokens)",
                        SGT_WRITER_SHARDS);
    p->shards[split] = count;
    for (uint64_t k = count * p->share / p->shares; k < count * (p->share + 1) / p->shares; k++) {
        const uint64_t from = k * size, tokens = all - from < size ? all - from : size;
        int rc = find_shard(p, split, k, tokens, err);
        if (rc == 1) second_pass(p, tokens);
        else if (!rc || p->o->force) rc = make_shard(p, split, k, order, from, from + tokens, err);
        if (rc < 0) return rc;
    }
    return SGT_OK;
}

/* ---- joining the parts' sources.jsonl ---- */

static int add_source(sgt_corpus_counts *c, const char *line, size_t n, const char *path,
                      sgt_error *err)
{
    json_int_t documents, bytes, tokens;
    const char *hash;
    json_t *o = json_loadb(line, n, JSON_ALLOW_NUL, NULL);
    const int bad = !o || json_unpack(o, "{s:I, s:I, s:I, s:s}", "documents", &documents, "bytes",
                                      &bytes, "tokens", &tokens, "xxh3", &hash) < 0;
    /* add up the hashes of a file that several ranks have read: only Parquet files are divided, and
     * their hashes are sums */
    if (!bad) c->hash += strtoull(hash, NULL, 16);
    json_decref(o);
    if (bad) return sgt_fail(err, SGT_EFORMAT, "%s: a line is damaged (--force starts over)", path);
    c->documents += (uint64_t)documents;
    c->bytes += (uint64_t)bytes;
    c->tokens += (uint64_t)tokens;
    return SGT_OK;
}

/* Write the line of an input file that was divided among ranks. */
static int put_source(const parts *p, size_t file, const sgt_corpus_counts *counts, sgt_sink *to,
                      sgt_error *err)
{
    char *line = sgt_corpus_line(p->r->corpus, file, p->r->corpus->files[file].size, 1, counts);
    if (!line) return sgt_fail_memory(err, to->path);
    const int rc = sgt_sink_put(to, line, strlen(line), err);
    free(line);
    return rc;
}

/* Append the lines of rank `rank`, from the file at `path`, to *to. Call this for the ranks in
 * ascending order. If ranks have divided an input file, *counts sums up its counts in the ranks so
 * far. */
static int append_sources(const parts *p, uint32_t rank, const char *path,
                          sgt_corpus_counts *counts, sgt_sink *to, sgt_error *err)
{
    const sgt_cut from = p->cuts[rank], end = p->cuts[rank + 1];
    size_t file = from.file, room = 0;
    char *line = NULL;
    FILE *f = NULL;
    int rc = sgt_file_lines(&f, path, err);
    for (ssize_t n; !rc && (n = getline(&line, &room, f)) > 0;) {
        const int document = sgt_corpus_is_document(line);
        const int begins = !(file == from.file && from.byte), ends = file != end.file;
        if (document || (begins && ends)) rc = sgt_sink_put(to, line, (size_t)n, err);
        else if ((rc = add_source(counts, line, (size_t)n, path, err)) == 0 && ends) {
            rc = put_source(p, file, counts, to, err);
            *counts = (sgt_corpus_counts){0};
        }
        file += !document;
    }
    /* getline also returns -1 if memory runs out, without setting the stream's error flag */
    if (!rc && !feof(f)) rc = sgt_fail_errno(err, "%s", path);
    if (f) fclose(f);
    free(line);
    return rc;
}

/* Write sources.jsonl of the complete set from the files of the parts. An input file that several
 * ranks have read gets one line, with the sums of its counts. */
static int join_sources(const parts *p, sgt_error *err)
{
    char part[SGT_PATH], path[SGT_PATH];
    sgt_corpus_counts counts = {0};
    sgt_sink to = {.fd = -1, .size = SOURCES_BUFFER};
    int rc = sgt_sink_open(&to, p->out.work, "sources.jsonl", O_CREAT | O_TRUNC, err);
    for (uint32_t i = 0; i < p->ranks && !rc; i++) {
        if (!sgt_divide_any(p->cuts, i)) continue;
        sgt_path(path, part_path(part, p, i), "sources.jsonl");
        rc = append_sources(p, i, path, &counts, &to, err);
    }
    if (!rc) rc = sgt_sink_sync(&to, err);
    sgt_sink_free(&to);
    return rc;
}

/* ---- counts ---- */

/* Set the counts of *m to the sums over the parts' manifests, and m->invalid to the first positions
 * of ill-formed UTF-8 of all parts. Shards, tokens and documents are set elsewhere. */
static int join_counts(const parts *p, sgt_manifest *m, sgt_error *err)
{
    json_t *all = json_array(), *place;
    size_t k;
    int bad = 0; /* 1: out of memory */
    m->files = p->r->corpus->count;
    m->skipped = p->r->corpus->skipped;
    for (size_t i = 0; i < sgt_made_folders(p->set); i++) {
        const sgt_manifest *part = sgt_made_manifest(p->set, i);
        m->bytes += part->bytes;
        m->invalid_utf8 += part->invalid_utf8;
        m->bad_lines += part->bad_lines;
        m->lone_surrogates += part->lone_surrogates;
        m->eot_literals += part->eot_literals;
        json_t *some = json_loads(part->invalid ? part->invalid : "[]", 0, NULL);
        bad |= !some;
        json_array_foreach(some, k, place) if (json_array_size(all) < SGT_INVALID_LISTED) bad |=
            json_array_append(all, place);
        json_decref(some);
    }
    m->invalid = all && !bad ? sgt_json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return m->invalid ? SGT_OK : sgt_fail_memory(err, p->out.path);
}

/* ---- this rank's part ---- */

static int make_part(parts *p, sgt_tokenize_result *result, sgt_error *err)
{
    char path[SGT_PATH];
    sgt_corpus mine;
    sgt_tokenize_options o = *p->o;
    sgt_out_request r = *p->r;
    int rc;
    if (!sgt_divide_any(p->cuts, p->rank)) return SGT_OK;
    if ((rc = sgt_divide_take(&mine, p->r->corpus, p->cuts, p->rank, err)) < 0) return rc;
    /* do not count skipped files per part: they are counted once, for all ranks together */
    mine.skipped = 0;
    r.path = part_path(path, p, p->rank);
    r.corpus = &mine;
    r.options = r.set_options;
    r.journal_options = NULL;
    /* print no notices for the part, because the same notices have been printed for the whole
     * run */
    r.notice = NULL;
    r.layout = SGT_LAYOUT_SGT;
    r.force = r.force ? SGT_OUT_DIFFERENT : SGT_OUT_KEEP;
    o.progress = first_pass;
    o.progress_ctx = p;
    /* set here because first_pass is not called if the part is already complete */
    p->read_bytes = mine.bytes;
    rc = sgt_pipeline_make(&o, &r, result, err);
    free(mine.files);
    return rc;
}

/* Return how many parts of other ranks are not complete yet. A part also counts as complete if its
 * manifest cannot be examined; the error is reported later, when the part is opened. */
static uint32_t count_missing(const parts *p)
{
    char part[SGT_PATH], path[SGT_PATH];
    uint32_t missing = 0;
    for (uint32_t i = 0; i < p->ranks; i++)
        if (sgt_divide_any(p->cuts, i) && i != p->rank)
            missing += sgt_file_gone(sgt_path(path, part_path(part, p, i), "manifest.json")) != 0;
    return missing;
}

/* ---- all parts ---- */

/* Return an error if any part was written from inputs other than this run's. A part may come from
 * an earlier run. */
static int check_inputs(const parts *p, sgt_error *err)
{
    char part[SGT_PATH];
    int rc = SGT_OK;
    for (uint32_t i = 0; i < p->ranks && !rc; i++) {
        sgt_corpus files;
        const sgt_out_request r = {.path = p->o->out, .corpus = &files, .stop = p->o->stop};
        if (!sgt_divide_any(p->cuts, i)) continue;
        if ((rc = sgt_divide_take(&files, p->r->corpus, p->cuts, i, err)) < 0) break;
        rc = sgt_out_compare_inputs(&r, part_path(part, p, i), NULL, err);
        free(files.files);
    }
    return rc;
}

static int open_set(parts *p, sgt_error *err)
{
    char path[SGT_PATH];
    int rc = SGT_OK;
    for (uint32_t i = 0; i < p->ranks && !rc; i++)
        if (sgt_divide_any(p->cuts, i)) rc = sgt_made_add(&p->set, part_path(path, p, i), err);
    return rc;
}

/* ---- the second pass ---- */

/* Wait until all ranks have reached this point (a barrier). After that, each rank can read what the
 * other ranks wrote before it. */
static int meet(const parts *p, sgt_error *err)
{
    return p->together ? p->together->barrier(p->together, err) : SGT_OK;
}

/* Return the value of sgt_order_request.memory: half of the memory that is available on this
 * machine. The other half is left for other uses. */
static uint64_t half_of_memory(void)
{
    sgt_memory m;
    sgt_memory_look(&m, NULL);
    return m.available / 2;
}

/* Let one of the ranks that take part in the second pass find the duplicates, and let all of them
 * read the result. */
static int find_duplicates(parts *p, sgt_error *err)
{
    const uint64_t room = half_of_memory() / 2;
    const sgt_dedup_request r = {.set = p->set,
                                 .work = p->out.work,
                                 .memory = room > LEAST_TABLE ? room : LEAST_TABLE,
                                 .stop = p->o->stop};
    int rc = p->share ? SGT_OK : sgt_dedup_find(&r, err);
    if (!rc) rc = meet(p, err);
    return rc ? rc : sgt_dedup_open(&p->dedup, &r, err);
}

/* Do this rank's share of the second pass: find duplicates, copy documents into buckets, and write
 * shards. */
static int make_shards(parts *p, sgt_error *err)
{
    int rc = open_set(p, err);
    if (rc < 0) return rc;
    begin_second(p);
    if (p->o->dedup) rc = find_duplicates(p, err);
    for (int split = 0; split < SGT_SPLITS && p->o->shuffle && !rc; split++) {
        const sgt_order_request r = order_of(p, split);
        rc = sgt_order_scatter(&r, err);
    }
    if (!rc) rc = meet(p, err);
    for (int split = 0; split < SGT_SPLITS && !rc; split++) {
        const sgt_order_request r = order_of(p, split);
        sgt_order *order;
        if ((rc = sgt_order_open(&order, &r, err)) < 0) break;
        rc = make_share(p, split, order, err);
        sgt_order_close(order);
    }
    return rc ? rc : meet(p, err);
}

/* Combine all shards and parts into the complete set, and publish it. No other rank may be using
 * the output folder. */
static int complete(parts *p, sgt_tokenize_result *result, sgt_error *err)
{
    sgt_manifest m = {0};
    int rc = sgt_out_list_shards(&p->out, p->shards, &m, err);
    if (p->dedup) m.duplicates = sgt_dedup_count(p->dedup);
    if (!rc) rc = join_sources(p, err);
    if (!rc) rc = join_counts(p, &m, err);
    if (!rc) rc = sgt_pipeline_check(&m, p->r->corpus, p->o, err);
    if (!rc) rc = sgt_pipeline_publish(&p->out, &m, p->r, result, err);
    if (!rc) {
        /* report the second pass as done, even if duplicates made it shorter than estimated */
        p->again = p->second;
        p->tokens = m.tokens;
        report(p, p->second);
    }
    sgt_manifest_free(&m);
    return rc;
}

/* When the parts of all ranks are complete, add up what the ranks have read, and decide which share
 * of the second pass this rank does. */
static int meet_counts(parts *p, sgt_tokenize_result *result, sgt_error *err)
{
    sgt_ranks *r = p->together;
    double read = (double)result->bytes_read;
    p->shares = r ? r->size : 1;
    p->share = r ? r->rank : 0;
    if (!r || r->here == r->size) p->memory = half_of_memory();
    if (!r) return SGT_OK;
    int rc = r->sum(r, &read, 1, err);
    if (!rc) rc = r->broadcast(r, &p->memory, sizeof p->memory, 0, err);
    result->bytes_read = (uint64_t)read;
    return rc;
}

/* Call this when this rank's part is complete. If the parts of all ranks are complete, join them.
 * If a launcher started the ranks, all of them write shards, and then rank 0 takes over the output
 * folder and publishes the set. If a user started the ranks separately, the last rank to complete
 * its part does all of this. */
static int finish(parts *p, sgt_tokenize_result *result, sgt_error *err)
{
    int rc = meet_counts(p, result, err);
    /* Count the missing parts now, while this rank shares the output folder: until it stops sharing
     * (sgt_out_alone, sgt_out_leave), no other rank can complete the set and remove the parts. */
    if (!rc) result->waiting = count_missing(p);
    if (!rc && result->waiting && p->together)
        rc = sgt_fail(err, SGT_EIO,
                      "%s: the part of another rank is missing (all ranks must share one folder)",
                      p->out.work);
    if (rc < 0 || result->waiting) return rc;
    if (!p->together) rc = sgt_out_alone(&p->out, p->r, err);
    if (!rc && !p->share && !p->r->corpus->stream) rc = check_inputs(p, err);
    if (!rc) rc = make_shards(p, err);
    if (!rc && p->share) {
        result->waiting = 1;
        return SGT_OK;
    }
    if (!rc && p->together) rc = sgt_out_alone(&p->out, p->r, err);
    if (rc == 1) return sgt_pipeline_reread(result, p->o->out, err);
    return rc ? rc : complete(p, result, err);
}

/* ---- ranks ---- */

/* Return the options as JSON text allocated with malloc. If there are several ranks, "ranks" is
 * added, because the number of ranks decides how the inputs are divided. */
static char *with_ranks(const parts *p, const char *options)
{
    char *text;
    size_t n = strlen(options) - 1; /* length without the closing brace */
    if (p->ranks < 2) return strdup(options);
    return asprintf(&text, "%.*s, \"ranks\": %" PRIu32 "}", (int)n, options, p->ranks) < 0 ? NULL
                                                                                           : text;
}

static int check(const parts *p, sgt_error *err)
{
    if (p->ranks > SGT_OUT_PARTS)
        return sgt_fail(err, SGT_EUSAGE, "ranks: %" PRIu32 " is too many (at most %d)", p->ranks,
                        SGT_OUT_PARTS);
    if (p->r->corpus->stream && p->ranks > 1)
        return sgt_fail(
            err, SGT_EUSAGE,
            "standard input (-) cannot be divided among ranks (save it as files first)");
    return SGT_OK;
}

int sgt_parts_make(const sgt_tokenize_options *o, const sgt_out_request *request,
                   sgt_tokenize_result *result, sgt_error *err)
{
    sgt_out_request r = *request;
    parts p = {.o = o, .r = &r, .rank = o->rank, .ranks = o->ranks ? o->ranks : 1};
    char *divided = NULL;
    int rc = check(&p, err);
    if (rc < 0) return rc;
    p.cuts = calloc(p.ranks + 1u, sizeof *p.cuts);
    if (!p.cuts) return sgt_fail_memory(err, p.o->out);
    sgt_divide(r.corpus, p.ranks, p.cuts);
    if (!(divided = with_ranks(&p, r.options))) rc = sgt_fail_memory(err, p.o->out);
    r.journal_options = divided;
    r.rank = p.rank;
    if (!rc && (rc = sgt_out_claim(&p.out, &r, err)) == 0) {
        if (p.ranks > 1) p.together = o->joined;
        result->seconds -= p.out.who.waited;
        rc = make_part(&p, result, err);
        if (!rc) rc = finish(&p, result, err);
        if (rc < 0) (void)sgt_out_check(&p.out, err);
        sgt_out_leave(&p.out);
    } else if (rc == 1) {
        rc = sgt_pipeline_reread(result, o->out, err);
        result->already_done = 1;
    }
    sgt_dedup_close(p.dedup);
    sgt_made_close(p.set);
    free(p.cuts);
    free(divided);
    return rc;
}
