/* parts.c: lets each of several ranks (processes) tokenize a share of the inputs into a set of
 * shards, called the rank's part, and then joins all parts into one set: its shards, its
 * sources.jsonl, and the counts in its manifest.
 *
 * If a shard has S tokens, shard k of a split holds the tokens k*S ... (k+1)*S - 1 of the split.
 * Because this range is known in advance, each shard can be written independently of the others. A
 * shard that exists in the output folder is complete and is not written again, so a killed run can
 * resume joining without a journal. Tokens are read and written, not copied with copy_file_range,
 * because the checksum has to cover every token anyway. */
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

/* lower bound, in bytes, of the limit for the size of the hash table that finds duplicates */
#define LEAST_TABLE ((uint64_t)128 << 20)
#define SOURCES_BUFFER ((size_t)1 << 16) /* size in bytes of the write buffer for sources.jsonl */
/* minimum number of tokens that the second pass (joining the parts) processes between two progress
 * reports */
#define REPORT_TOKENS ((uint64_t)1 << 20)

typedef struct parts {
    const sgt_tokenize_options *o;
    const sgt_out_request *r;
    uint32_t rank, ranks;
    /* ranks + 1 positions in the corpus: rank i reads the inputs from cuts[i] up to cuts[i + 1] */
    sgt_cut *cuts;
    sgt_out out;
    /* the parts (sets of shards) of all ranks, in the order of the ranks; a rank without inputs has
     * no part */
    sgt_made *set;
    /* communication among ranks that a launcher started; NULL if the user started each rank
     * separately, or if there is only one rank */
    sgt_ranks *together;
    /* the duplicates; NULL if they have not been found yet, or if duplicates are kept */
    sgt_dedup *dedup;
    /* For the second pass, which writes the shards of the complete set from the parts:
     *   share    index of this rank among the ranks that write shards
     *   shares   number of ranks that write shards
     *   memory   value of sgt_order_request.memory
     *   shards   number of shards in each split of the complete set */
    uint32_t share, shares;
    uint64_t memory, shards[SGT_SPLITS];
    /* Progress of the first pass, in which this rank tokenizes its inputs. read: number of bytes
     * read so far. read_bytes: total number of bytes to read; 0 if unknown. tokens: number of
     * tokens so far. */
    uint64_t read, read_bytes, tokens;
    /* Progress of the second pass, which joins the parts, in tokens. again: number of tokens that
     * were copied into buckets or written to shards so far. reported: value of `again` at the last
     * progress report. second: expected value of `again` at the end. */
    uint64_t again, reported, second;
} parts;

int sgt_parts_wanted(const sgt_tokenize_options *o)
{
    return o->ranks > 1 || o->shuffle || o->dedup;
}

/* Write the path of the folder for the part (set of shards) of rank `rank` to `path`, and return
 * `path`. */
static char *part_path(char path[SGT_PATH], const parts *p, uint32_t rank)
{
    return sgt_path(path, p->out.work, "part-%06" PRIu32, rank);
}

/* ---- progress ----
 *
 * The progress of both passes (tokenizing the inputs, and writing shards from the parts) is
 * reported as a single number of bytes. Each token that the second pass copies into a bucket or
 * writes to a shard counts as two bytes. */

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
    /* Estimate how many tokens this rank will process in the second pass. If a launcher started the
     * ranks, or if there is only one, this rank takes part in the second pass; then, the estimate
     * is the number of tokens in its part, because tokens are seldom also copied into buckets.
     * Otherwise, the estimate is 0, because another rank will probably write all shards. */
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

/* Begin to report the progress of the second pass, which joins the parts. The first pass must have
 * ended, and p->set must have all parts. */
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
    /* if this rank's part was already complete before this run, the first pass has not counted its
     * tokens */
    if (!p->tokens) p->tokens = all;
    report(p, p->second);
}

/* ---- shards ---- */

/* Check if shard k of a split exists. Return 1 if it exists, 0 if it does not, or a negative
 * SGT_E*, for example if the shard does not have exactly `tokens` tokens. */
static int find_shard(const parts *p, int split, uint64_t k, uint64_t tokens, sgt_error *err)
{
    sgt_manifest_shard s;
    const int rc = sgt_out_find_shard(&p->out, split, k, &s, err);
    if (rc <= 0 || s.tokens == tokens) return rc;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s/%s: has %" PRIu64 " tokens, expected %" PRIu64 " (--force starts over)",
                    p->out.shards, s.file, s.tokens, tokens);
}

/* Write shard k of a split. It gets the tokens of `order` from index `from` up to, but not
 * including, index `end`. */
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

/* Write the shards of a split that are this rank's share, with the tokens of `order`. Shards that
 * already exist are not written again. */
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
    /* A file whose counts are added up was read by several ranks, so it is a Parquet file. The hash
     * of a Parquet file is the sum of the hashes that the ranks have computed. */
    if (!bad) c->hash += strtoull(hash, NULL, 16);
    json_decref(o);
    if (bad) return sgt_fail(err, SGT_EFORMAT, "%s: a line is damaged (--force starts over)", path);
    c->documents += (uint64_t)documents;
    c->bytes += (uint64_t)bytes;
    c->tokens += (uint64_t)tokens;
    return SGT_OK;
}

/* Append a line for an input file that was divided among several ranks to *to. `counts` are the
 * sums of its counts over these ranks. */
static int put_source(const parts *p, size_t file, const sgt_corpus_counts *counts, sgt_sink *to,
                      sgt_error *err)
{
    char *line = sgt_corpus_line(p->r->corpus, file, p->r->corpus->files[file].size, 1, counts);
    if (!line) return sgt_fail_memory(err, to->path);
    const int rc = sgt_sink_put(to, line, strlen(line), err);
    free(line);
    return rc;
}

/* Copy the lines of rank `rank` from its sources.jsonl, at `path`, to *to. If an input file was
 * divided among several ranks, add its counts to *counts, and write one line when its last rank has
 * been added. Call this for the ranks in ascending order. */
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
    /* the loop also ends if getline runs out of memory, which does not set the stream's error
     * flag */
    if (!rc && !feof(f)) rc = sgt_fail_errno(err, "%s", path);
    if (f) fclose(f);
    free(line);
    return rc;
}

/* Write sources.jsonl of the complete set from the sources.jsonl of each part. An input file that
 * was divided among several ranks gets a single line with the sums of its counts. */
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

/* Set the counts in *m to the sums of the counts in the manifests of all parts, except for the
 * counts of tokens and documents, which the caller sets. Set m->invalid to the first positions of
 * ill-formed UTF-8 in all parts. */
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
    /* do not count skipped files in each part: join_counts adds them once for the complete set */
    mine.skipped = 0;
    r.path = part_path(path, p, p->rank);
    r.corpus = &mine;
    r.options = r.set_options;
    r.journal_options = NULL;
    /* print no notices about the part, because they would repeat the notices about the run */
    r.notice = NULL;
    r.layout = SGT_LAYOUT_SGT;
    r.force = r.force ? SGT_OUT_DIFFERENT : SGT_OUT_KEEP;
    o.progress = first_pass;
    o.progress_ctx = p;
    /* set this here, because first_pass is not called if the part is already complete */
    p->read_bytes = mine.bytes;
    rc = sgt_pipeline_make(&o, &r, result, err);
    free(mine.files);
    return rc;
}

/* Return the number of parts of other ranks that are not complete. A part is incomplete if its
 * manifest does not exist. If this cannot be found out, the part counts as complete, because
 * opening it later will return the error. */
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

/* Return an error if a part was made from other inputs than those of this run, which is possible
 * because an earlier run may have made it. */
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

/* Barrier: wait until all ranks have called this function. After that, files that the other ranks
 * wrote before the call can be read. Without a launcher, return at once. */
static int meet(const parts *p, sgt_error *err)
{
    return p->together ? p->together->barrier(p->together, err) : SGT_OK;
}

/* Return half of the memory that is available on this machine, as the limit for
 * sgt_order_request.memory. The other half is left to other uses. */
static uint64_t half_of_memory(void)
{
    sgt_memory m;
    sgt_memory_look(&m, NULL);
    return m.available / 2;
}

/* Find the duplicates on the first rank that takes part in the second pass, and then read the
 * result on all ranks that take part. */
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

/* Do this rank's share of the second pass: find the duplicates, copy documents into buckets if
 * necessary, and write this rank's shards. */
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

/* Join the shards and the data of all parts into the complete set, and publish it in the output
 * folder, which no other rank may be using. */
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
        /* report the second pass as complete, even if it processed fewer tokens than expected
         * because of duplicates */
        p->again = p->second;
        p->tokens = m.tokens;
        report(p, p->second);
    }
    sgt_manifest_free(&m);
    return rc;
}

/* Add up the number of bytes that all ranks have read. Set this rank's share of the second pass,
 * and the limit of memory for it. With a launcher, wait until the parts of all ranks are
 * complete. */
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

/* Join the parts if the parts of all ranks are complete. This function is called when this rank's
 * part is complete. If a launcher started the ranks, each rank writes a share of the shards, and
 * then rank 0 takes over the output folder and publishes the set. If the user started each rank
 * separately, the last rank to complete its part does all of this. */
static int finish(parts *p, sgt_tokenize_result *result, sgt_error *err)
{
    int rc = meet_counts(p, result, err);
    /* Count the incomplete parts while this rank still shares the output folder. After it has
     * stopped sharing (sgt_out_alone, sgt_out_leave), another rank could complete the set and
     * remove the parts. */
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

/* Return a copy of `options` (JSON text), which the caller frees. If there are several ranks, add
 * "ranks" to it, because the number of ranks decides how the inputs are divided. */
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
