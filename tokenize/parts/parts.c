/* parts.c: several ranks (processes) each make a part of OUT at the same time, and then join the
 * parts. */
#include "tokenize/parts/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tokenize/parts/advance.h"
#include "tokenize/parts/assemble.h"
#include "loader/base/file.h"
#include "tokenize/parts/dedup.h"
#include "tokenize/parts/divide.h"
#include "tokenize/parts/order.h"
#include "tokenize/out/out.h"
#include "tokenize/out/out_compare.h"
#include "tokenize/pipeline.h"
#include "tokenize/parts/made.h"
#include "tokenize/parts/sources.h"
#include "loader/shards/json_dumps.h"
#include "tokenize/vocab/vocab.h"

#define SUMS 4 /* number of sums over ranks that each rank takes part in */
/* longest wait for another machine's files to appear on a shared file system */
#define APPEAR_SECONDS 120

typedef struct parts {
    const sgt_tokenize_options *o;
    const sgt_corpus *corpus;
    const sgt_vocab *vocab;
    uint32_t rank, ranks;
    sgt_cut *cuts; /* rank i reads what lies from cuts[i] to cuts[i + 1] */
    sgt_out out;
    sgt_made **sets; /* sets of the parts that have files, in order */
    char **paths;
    size_t count;
    sgt_dedup *dedup; /* NULL until duplicates are found, or if they are kept */
    sgt_share share;  /* our share of the second pass; {0}: all of it */
    int helped;       /* all ranks have assembled their shares of OUT */
    /* first pass: bytes done, bytes in all (0: unknown), tokens */
    uint64_t read, read_bytes, tokens;
    /* second pass so far: tokens shuffled, and tokens written to our share of the shards */
    uint64_t behind[2][SGT_SPLITS];
    uint64_t second; /* tokens that the second pass goes over */
} parts;

int sgt_parts_wanted(const sgt_tokenize_options *o)
{
    return sgt_ranks_size(o->ranks) > 1 || o->shuffle || o->dedup;
}

/* ---- one progress bar for both passes, by the bytes that they read ---- */

/* Return about how many tokens the second pass goes over, as a multiple of those of our part. */
static uint64_t times_again(const parts *p)
{
    const sgt_ranks *r = p->o->ranks;
    if (p->ranks > 1 && !sgt_ranks_connected(r)) return 0; /* likely, another one assembles */
    /* the ranks of one machine seldom copy them into buckets */
    return p->o->shuffle && p->ranks > 1 && r->here < r->size ? 2 : 1;
}

static void tell(const parts *p, uint64_t second)
{
    uint64_t behind = 0, all = p->read_bytes ? p->read_bytes + 2 * second : 0;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < SGT_SPLITS; k++) behind += p->behind[i][k];
    uint64_t done = p->read + 2 * (behind < second ? behind : second);
    if (p->o->progress) p->o->progress(p->o->progress_ctx, done, all, p->tokens);
}

static void first_pass(void *ctx, uint64_t done, uint64_t total, uint64_t tokens)
{
    parts *p = ctx;
    p->read = done;
    p->read_bytes = total;
    p->tokens = tokens;
    tell(p, total && done
                ? (uint64_t)((double)tokens / (double)done * (double)total * (double)times_again(p))
                : 0);
}

static void go_on(parts *p, int step, int split, uint64_t tokens)
{
    if (tokens > p->behind[step][split]) p->behind[step][split] = tokens;
    tell(p, p->second);
}

static void tell_shuffled(void *ctx, int split, uint64_t tokens) { go_on(ctx, 0, split, tokens); }

static void tell_assembled(void *ctx, int split, uint64_t tokens) { go_on(ctx, 1, split, tokens); }

static sgt_order_request order_of(parts *p, int split, int force)
{
    return (sgt_order_request){.parts = p->sets,
                               .count = p->count,
                               .split = split,
                               .dedup = p->dedup,
                               .shuffle = p->o->shuffle,
                               .seed = p->o->shuffle_seed,
                               .work = p->out.work,
                               .force = force,
                               .share = p->share,
                               .stop = p->o->stop,
                               .advance = {tell_shuffled, p}};
}

/* Start the progress of the second pass, when all parts are open. The first pass is done. */
static void begin_second(parts *p, uint32_t shares)
{
    uint64_t all = 0;
    for (int k = 0; k < SGT_SPLITS; k++) {
        const sgt_order_request r = order_of(p, k, p->o->force);
        const uint64_t times = sgt_order_copies(&r, NULL) > 0 ? 2 : 1, before = all;
        for (size_t i = 0; i < p->count; i++) all += sgt_made_tokens(p->sets[i], k);
        p->second += times * (all - before) / shares;
    }
    if (p->read_bytes) p->read = p->read_bytes;
    if (!p->tokens) p->tokens = all; /* our part was complete, so this run has not counted */
    tell(p, p->second);
}

/* ---- this rank's part ---- */

static char *part_path(const parts *p, uint32_t rank)
{
    char name[32];
    sgt_out_part_name(name, rank);
    return sgt_join(p->out.work, name);
}

static int make_part(parts *p, const char *options, sgt_tokenize_result *result, sgt_error *err)
{
    sgt_corpus mine;
    sgt_tokenize_options o = *p->o;
    char *path;
    int rc;
    if (!sgt_divide_any(p->cuts, p->rank)) return SGT_OK;
    if ((rc = sgt_divide_take(&mine, p->corpus, p->cuts, p->rank, err)) < 0) return rc;
    mine.skipped = 0; /* files skipped are counted for OUT as a whole */
    if (!(path = part_path(p, p->rank))) {
        free(mine.files);
        return sgt_fail_memory(err, p->o->out);
    }
    o.out = path;
    o.force = o.force ? SGT_OUT_DIFFERENT : SGT_OUT_KEEP;
    o.progress = first_pass;
    o.progress_ctx = p;
    p->read_bytes = mine.bytes; /* set even if the part is complete already */
    rc = sgt_pipeline_make(&o, &mine, p->vocab, options, result, err);
    free(path);
    free(mine.files);
    return rc;
}

/* Return 1 if the part is complete; 0 if its manifest does not exist. If stat fails for another
 * reason, fail: the part may be complete. */
static int is_whole(const parts *p, uint32_t rank, sgt_error *err)
{
    struct stat st;
    char *part = part_path(p, rank), *path = part ? sgt_join(part, "manifest.json") : NULL;
    int rc = path ? 1 : sgt_fail_memory(err, p->o->out);
    if (path && stat(path, &st) < 0) rc = errno == ENOENT ? 0 : sgt_fail_errno(err, "%s", path);
    free(path);
    free(part);
    return rc;
}

/* Count the parts of other ranks that are not complete yet. */
static int count_missing(const parts *p, uint32_t *missing, sgt_error *err)
{
    *missing = 0;
    for (uint32_t i = 0; i < p->ranks; i++) {
        int rc = !sgt_divide_any(p->cuts, i) || i == p->rank ? 1 : is_whole(p, i, err);
        if (rc < 0) return rc;
        *missing += !rc;
    }
    return SGT_OK;
}

/* ---- all parts ---- */

/* Check that the parts, which ranks may have made at other times, are all of these inputs. */
static int check_inputs(const parts *p, sgt_error *err)
{
    int rc = SGT_OK;
    for (uint32_t i = 0; i < p->ranks && !rc; i++) {
        sgt_corpus files;
        if (!sgt_divide_any(p->cuts, i)) continue;
        char *part = part_path(p, i);
        if (!part) return sgt_fail_memory(err, p->o->out);
        const sgt_out_request r = {.path = p->o->out,
                                   .corpus = &files,
                                   .notice = p->o->notice,
                                   .stop = p->o->stop,
                                   .field = p->o->field};
        if ((rc = sgt_divide_take(&files, p->corpus, p->cuts, i, err)) == 0) {
            rc = sgt_out_compare_inputs(&r, part, err);
            free(files.files);
        }
        free(part);
    }
    return rc;
}

static int open_sets(parts *p, sgt_error *err)
{
    int rc = SGT_OK;
    if (p->sets) return SGT_OK;
    p->sets = calloc(p->ranks, sizeof(sgt_made *));
    p->paths = calloc(p->ranks, sizeof(char *));
    if (!p->sets || !p->paths) return sgt_fail_memory(err, p->o->out);
    for (uint32_t i = 0; i < p->ranks && !rc; i++) {
        if (!sgt_divide_any(p->cuts, i)) continue;
        char *path = part_path(p, i);
        rc = path ? sgt_made_open(&p->sets[p->count], path, err) : sgt_fail_memory(err, p->o->out);
        if (rc < 0) free(path);
        else p->paths[p->count++] = path;
    }
    return rc;
}

static void close_sets(parts *p)
{
    sgt_dedup_close(p->dedup);
    p->dedup = NULL;
    for (size_t i = 0; i < p->count; i++) {
        sgt_made_close(p->sets[i]);
        free(p->paths[i]);
    }
    free(p->sets);
    free(p->paths);
    p->sets = NULL;
    p->paths = NULL;
    p->count = 0;
}

/* Concatenate the parts' sources.jsonl. */
static int join_sources(const parts *p, sgt_error *err)
{
    char *path = sgt_join(p->out.work, "sources.jsonl");
    FILE *f = path ? sgt_file_stream(path, 0) : NULL;
    int rc = f ? SGT_OK : path ? sgt_fail_errno(err, "%s", path) : sgt_fail_memory(err, p->o->out);
    sgt_part_sources all = {.corpus = p->corpus, .cuts = p->cuts, .to = f};
    for (uint32_t i = 0; i < p->ranks && !rc; i++) {
        if (!sgt_divide_any(p->cuts, i)) continue;
        char *part = part_path(p, i), *sources = part ? sgt_join(part, "sources.jsonl") : NULL;
        if (!sources) rc = sgt_fail_memory(err, p->o->out);
        else rc = sgt_part_sources_add(&all, i, sources, err);
        free(sources);
        free(part);
    }
    if (!rc && (fflush(f) != 0 || ferror(f) || fsync(fileno(f)) < 0))
        rc = sgt_fail_errno(err, "%s: cannot flush to disk", path);
    if (f) fclose(f);
    free(path);
    return rc;
}

/* Join the first places of ill-formed UTF-8 of all parts. */
static int join_invalid(const parts *p, sgt_manifest *m, sgt_error *err)
{
    json_t *all = json_array(), *place;
    size_t k;
    int bad = 0; /* out of memory */
    for (size_t i = 0; i < p->count; i++) {
        const char *text = sgt_made_manifest(p->sets[i])->invalid;
        json_t *some = json_loads(text ? text : "[]", 0, NULL);
        bad |= !some;
        json_array_foreach(some, k, place) if (json_array_size(all) < SGT_INVALID_LISTED) bad |=
            json_array_append(all, place);
        json_decref(some);
    }
    m->invalid = all && !bad ? sgt_json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return m->invalid ? SGT_OK : sgt_fail_memory(err, p->o->out);
}

/* Do our share of what all ranks must have done before any shard is made: find duplicates, and
 * scatter documents. */
static int prepare(parts *p, int force, sgt_error *err)
{
    sgt_dedup_request r = {.parts = p->sets,
                           .paths = (const char *const *)p->paths,
                           .count = p->count,
                           .work = p->out.work,
                           .share = p->share,
                           .stop = p->o->stop};
    int rc = p->o->dedup ? sgt_dedup_open(&p->dedup, &r, err) : SGT_OK;
    for (int split = 0; split < SGT_SPLITS && p->o->shuffle && !rc; split++) {
        const sgt_order_request order = order_of(p, split, force);
        rc = sgt_order_scatter(&order, err);
    }
    return rc ? rc : sgt_share_barrier(&p->share, err);
}

/* Assemble share `share` of `shares` of the shards. */
static int assemble_shards(parts *p, uint32_t share, uint32_t shares, sgt_manifest *m,
                           sgt_error *err)
{
    const sgt_tokenize_options *o = p->o;
    sgt_assembly a = {&p->out, p->vocab, sgt_pipeline_shard_tokens(o), o->force, o->stop,
                      share,   shares,   {tell_assembled, p}};
    int rc = SGT_OK;
    for (int split = 0; split < SGT_SPLITS && !rc; split++) {
        const sgt_order_request r = order_of(p, split, 0);
        sgt_order *order;
        if ((rc = sgt_order_open(&order, &r, err)) < 0) break;
        const uint64_t tokens = sgt_order_tokens(order) / shares;
        if (sgt_order_copied(order)) tell_shuffled(p, split, tokens);
        rc = sgt_assemble(&a, split, order, m, &m->documents, err);
        if (!rc) tell_assembled(p, split, tokens);
        sgt_order_close(order);
    }
    return rc;
}

static int put_together(parts *p, sgt_manifest *m, sgt_error *err)
{
    int rc = p->helped ? SGT_OK : prepare(p, p->o->force, err);
    if (!rc) rc = assemble_shards(p, 0, 1, m, err);
    if (p->dedup) m->duplicates = sgt_dedup_count(p->dedup);
    return rc;
}

/* Complete OUT from all parts; we have OUT alone. */
static int complete(parts *p, const char *options, sgt_tokenize_result *result, sgt_error *err)
{
    sgt_manifest m = {0};
    int rc = p->corpus->stream ? SGT_OK : check_inputs(p, err);
    if (!rc) rc = open_sets(p, err);
    for (size_t i = 0; i < p->count; i++) {
        const sgt_manifest *part = sgt_made_manifest(p->sets[i]);
        m.bytes += part->bytes;
        m.invalid_utf8 += part->invalid_utf8;
        m.bad_lines += part->bad_lines;
        m.lone_surrogates += part->lone_surrogates;
        m.eot_literals += part->eot_literals;
    }
    m.files = p->corpus->count;
    m.skipped = p->corpus->skipped;
    if (!rc && !p->helped) begin_second(p, 1);
    if (!rc && (rc = put_together(p, &m, err)) == 0 && (rc = join_sources(p, err)) == 0 &&
        (rc = join_invalid(p, &m, err)) == 0 &&
        (rc = sgt_pipeline_check(&m, p->corpus, p->o, err)) == 0) {
        if (!(m.options = strdup(options))) rc = sgt_fail_memory(err, p->o->out);
        snprintf(m.vocabulary, sizeof m.vocabulary, "%s", sgt_vocab_name(p->vocab));
        m.fingerprint = sgt_vocab_fingerprint(p->vocab);
        m.vocab = sgt_vocab_size(p->vocab);
        m.eot = sgt_vocab_eot(p->vocab);
        if (!rc) rc = sgt_out_publish(&p->out, &m, p->vocab, err);
        *result = (sgt_tokenize_result){.bytes_read = result->bytes_read};
        sgt_pipeline_result(result, &m);
        /* the second pass is done, even if duplicates made it shorter than estimated */
        p->read += 2 * p->second;
        p->read_bytes += p->read_bytes ? 2 * p->second : 0;
        p->tokens = m.tokens;
        tell(p, 0);
    }
    sgt_manifest_free(&m);
    return rc;
}

/* ---- ranks ---- */

/* Wait until the complete parts of other machines are visible here. */
static int wait_for_parts(const parts *p, uint32_t *missing, sgt_error *err)
{
    int rc;
    for (int turn = 0;
         (rc = count_missing(p, missing, err)) == 0 && *missing && turn < APPEAR_SECONDS; turn++) {
        if (sgt_stopped(p->o->stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
    if (rc < 0 || !*missing) return rc;
    return sgt_fail(err, SGT_EIO,
                    "%s: %" PRIu32
                    " parts of other ranks are missing (all ranks need one shared folder)",
                    p->o->out, *missing);
}

/* Replace *n by its sum over connected ranks; all ranks wait for each other here. */
static int sum(const parts *p, uint64_t *n, sgt_error *err)
{
    sgt_ranks *r = p->o->ranks;
    double all = (double)*n;
    if (!sgt_ranks_connected(r)) return SGT_OK;
    int rc = r->sum(r, &all, 1, err);
    *n = (uint64_t)all;
    return rc;
}

/* Do our share of the second pass, as a connected rank. */
static int help_along(parts *p, sgt_error *err)
{
    const uint32_t shares = p->ranks < SGT_SHARE_MOST ? p->ranks : SGT_SHARE_MOST;
    sgt_manifest ignored = {0};
    int rc = open_sets(p, err);
    if (rc < 0) return rc;
    p->share = (sgt_share){.index = p->rank, .count = shares, .ranks = p->o->ranks};
    if ((rc = sgt_share_memory(&p->share, err)) < 0) return rc;
    begin_second(p, p->ranks);
    if ((rc = prepare(p, p->o->force, err)) == 0)
        rc = assemble_shards(p, p->rank, p->ranks, &ignored, err);
    sgt_manifest_free(&ignored);
    return rc;
}

/* Divide the second pass among connected ranks. Rank 0, which holds OUT, passes `ready` 1 if there
 * is something to do; the others pass 0. If a rank is missing, because it found OUT complete, then
 * rank 0 works alone. */
static int help(parts *p, int ready, sgt_error *err)
{
    uint64_t votes = p->rank ? 1 : ready ? p->ranks : 0, none = 0;
    int rc = sum(p, &votes, err);
    if (rc < 0) return rc;
    p->helped = votes == 2 * (uint64_t)p->ranks - 1;
    if (p->helped && p->rank) rc = sgt_out_help(&p->out, err);
    /* nothing is written before all ranks hold their locks */
    if (p->helped && !rc && (rc = sum(p, &none, err)) == 0) rc = help_along(p, err);
    if (p->rank) sgt_out_share_no_more(&p->out);
    return rc < 0 ? rc : sum(p, &none, err);
}

/* Finish as the rank that completes OUT, when all parts are complete. */
static int finish_all(parts *p, const sgt_out_request *r, sgt_tokenize_result *result,
                      sgt_error *err)
{
    int rc = sgt_out_alone(&p->out, r, err), mine = rc == 0;
    if (rc >= 0 && sgt_ranks_connected(p->o->ranks)) rc = help(p, mine, err);
    if (rc < 0) return rc;
    return mine ? complete(p, r->options, result, err)
                : sgt_pipeline_reread(result, p->o->out, err);
}

/* Finish, when our own part is complete. */
static int finish(parts *p, const sgt_out_request *r, sgt_tokenize_result *result, sgt_error *err)
{
    int connected = sgt_ranks_connected(p->o->ranks);
    uint32_t missing = 0;
    uint64_t none = 0;
    sgt_out_share_no_more(&p->out);
    int rc = sum(p, &result->bytes_read, err);
    if (rc < 0) return rc;
    if (connected && p->rank) {
        result->waiting = 1;
        rc = help(p, 0, err);
        return rc < 0 ? rc : sum(p, &none, err); /* rank 0 has completed it */
    }
    rc = connected ? wait_for_parts(p, &missing, err) : count_missing(p, &missing, err);
    /* ranks that are not connected: another rank may have completed OUT meanwhile */
    if (!rc && missing && sgt_out_is_complete(r, err) == 1) missing = 0;
    result->waiting = missing;
    if (rc < 0 || missing) return rc;
    rc = finish_all(p, r, result, err);
    return rc < 0 ? rc : sum(p, &none, err);
}

/* Return the options, including what divides OUT into parts, malloc'd. */
static char *with_ranks(const parts *p, const char *options)
{
    char *text;
    size_t n = strlen(options) - 1; /* without its closing brace */
    if (p->ranks < 2) return strdup(options);
    const char *cuts = sgt_divide_cuts(p->cuts, p->ranks) ? ", \"row_groups\": true" : "";
    return asprintf(&text, "%.*s, \"ranks\": %" PRIu32 "%s}", (int)n, options, p->ranks, cuts) < 0
               ? NULL
               : text;
}

static int check(const parts *p, sgt_error *err)
{
    if (p->ranks > SGT_OUT_PARTS)
        return sgt_fail(err, SGT_EUSAGE, "ranks: %" PRIu32 " are more than %d", p->ranks,
                        SGT_OUT_PARTS);
    if (p->rank >= p->ranks)
        return sgt_fail(err, SGT_EUSAGE,
                        "rank: %" PRIu32 " of %" PRIu32 ", expected less (they count from 0)",
                        p->rank, p->ranks);
    if (p->corpus->stream && p->ranks > 1)
        return sgt_fail(
            err, SGT_EUSAGE,
            "standard input (-) cannot be divided among ranks (save it as files first)");
    return SGT_OK;
}

int sgt_parts_make(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                   const char *options, sgt_tokenize_result *result, sgt_error *err)
{
    parts p = {.o = o,
               .corpus = c,
               .vocab = v,
               .rank = o->ranks ? o->ranks->rank : 0,
               .ranks = sgt_ranks_size(o->ranks)};
    char *divided = NULL;
    int sums = SUMS, rc = check(&p, err);
    if (rc < 0) return rc;
    p.cuts = calloc(p.ranks + 1u, sizeof *p.cuts);
    if (!p.cuts) return sgt_fail_memory(err, p.o->out);
    if ((rc = sgt_divide(c, o->field, p.ranks, p.cuts, o->stop, err)) < 0) goto done;
    if (!(divided = with_ranks(&p, options))) {
        rc = sgt_fail_memory(err, p.o->out);
        goto done;
    }
    sgt_out_request r = {o->out, c, v, options, divided, o->force, o->notice, o->stop, o->field};
    if ((rc = sgt_out_join(&p.out, &r, err)) == 0) {
        rc = make_part(&p, divided, result, err);
        if (!rc) rc = finish(&p, &r, result, err);
        sgt_out_leave(&p.out);
    } else if (rc == 1) {
        rc = sgt_pipeline_reread(result, o->out, err);
        result->already_done = 1;
        if (!rc) rc = sum(&p, &result->bytes_read, err);
        for (uint64_t none = 0; sums-- > 1 && !rc; none = 0) rc = sum(&p, &none, err);
    }
done:
    close_sets(&p);
    free(p.cuts);
    free(divided);
    return rc;
}
