/* vocab_train.c: trains a vocabulary on inputs. Each thread takes units from the feed, splits them
 * and counts the pieces in its own table. Then the tables are added up, and merges are trained on
 * the sums (merges.h). The sums do not depend on which thread counted which unit, so the vocabulary
 * does not depend on the threads. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "loader/base/memory.h"
#include "loader/base/thread.h"
#include "tokenize/input/feed.h"
#include "tokenize/learn/merges.h"
#include "tokenize/before.h"
#include "tokenize/out/out.h"
#include "tokenize/text/pattern.h"
#include "tokenize/text/split.h"
#include "tokenize/vocab/vocab_file.h"

#define PIECE ((size_t)256 << 10)
#define ENDS 320 /* entries of ends[]: 64 more than the 256 that make a call worthwhile (split.h) */
#define EOT "<|endoftext|>"
#define EOT_BYTES (sizeof EOT - 1)

/* Number of JSONL lines that end in a unit. Their sums give the line number of a bad line. */
typedef struct line_count {
    uint64_t ticket, file, lines;
} line_count;

typedef struct counting {
    const sgt_tokenize_options *o;
    const sgt_corpus *corpus;
    const char *rule;      /* pattern to split by; NULL: GPT-2's */
    const sgt_rule *known; /* that rule, if it is another one of split.h */
    pthread_mutex_t lock;  /* protects the fields below, and the calls of progress */
    sgt_text_feed *feed;
    uint64_t ticket, documents, bytes, invalid, raw;
    line_count *lines;
    size_t line_units, line_room;
    int ended, rc;
    uint64_t failed; /* ticket of the first unit that failed */
    sgt_bad_line bad;
    sgt_error err;
} counting;

typedef struct counter {
    counting *c;
    sgt_pieces *pieces;
    sgt_pattern *pattern;
    sgt_unit unit;
    pthread_t thread;
    int running;
} counter;

/* ---- a unit's pieces ---- */

static int count_by_pattern(counter *k, const uint8_t *s, size_t n, sgt_error *err)
{
    size_t ends[256], from = 0;
    int rc = sgt_pattern_start(k->pattern, s, n, err), count = 0;
    while (!rc && (count = sgt_pattern_split(k->pattern, ends, 256, err)) > 0)
        for (int i = 0; i < count && !rc; from = ends[i++])
            rc = sgt_pieces_add(k->pieces, s + from, ends[i] - from, 1, err);
    return rc < 0 ? rc : count;
}

static int count_text(counter *k, const uint8_t *s, size_t n, sgt_error *err)
{
    int rc = sgt_normalize_text(&k->unit.normal, k->c->o->normalize, s, n, &s, &n, err);
    if (rc < 0) return rc;
    if (k->pattern) return count_by_pattern(k, s, n, err);
    sgt_splitter sp = sgt_splitter_by(k->c->known, s, n);
    uint32_t ends[ENDS];
    for (size_t pieces, at = 0; !rc && (pieces = sgt_split(&sp, ends, ENDS)) > 0; at = sp.at) {
        if (ends[0] == UINT32_MAX) rc = sgt_pieces_add(k->pieces, s + at, sp.at - at, 1, err);
        else
            for (size_t i = 0, from = 0; i < pieces && !rc; from = ends[i++])
                rc = sgt_pieces_add(k->pieces, s + at + from, ends[i] - from, 1, err);
    }
    return rc;
}

static int count_part(counter *k, sgt_part *p, sgt_error *err)
{
    const uint8_t *text;
    size_t n;
    const int rc = sgt_unit_text(&k->unit, p, k->c->o, &text, &n, err);
    return rc < 0 ? rc : count_text(k, text, n, err);
}

static int count_unit(counter *k, sgt_error *err)
{
    sgt_unit *u = &k->unit;
    sgt_error why;
    u->invalid_count = 0;
    u->bad.why = NULL;
    const sgt_literal literal = {EOT, k->c->o->special_eot};
    int rc = sgt_unit_unfold(u, k->c->corpus, k->c->o, &literal, err);
    for (size_t i = 0; i < u->count && !rc; i++) {
        rc = count_part(k, &u->parts[i], &why);
        if (rc < 0)
            return sgt_fail(err, rc, "%s: %s", k->c->corpus->files[u->parts[i].file].path,
                            why.text);
    }
    return rc;
}

/* ---- threads ---- */

static int record_lines(counting *c, uint64_t ticket, const sgt_part *p, sgt_error *err)
{
    if (!p->records) return SGT_OK;
    int rc =
        sgt_reserve(&c->lines, &c->line_room, c->line_units + 1, sizeof *c->lines, "lines", err);
    if (rc == SGT_OK) c->lines[c->line_units++] = (line_count){ticket, p->file, p->records};
    return rc;
}

/* Record the result of unit `ticket`; the caller holds the lock. If several units fail, the first
 * in the text is reported. */
static void record_result(counting *c, const sgt_unit *u, uint64_t ticket, int rc, sgt_error *why)
{
    for (size_t i = 0; i < u->count && !rc; i++) {
        const sgt_part *p = &u->parts[i];
        c->documents += p->first != 0;
        c->bytes += p->length;
        if (p->kind == SGT_PART_TEXT) c->invalid += p->text.invalid;
        if (p->raw > c->raw) c->raw = p->raw;
        rc = record_lines(c, ticket, p, why);
    }
    int bad = !rc && u->bad.why;
    if (bad) rc = SGT_EFORMAT;
    if (rc >= 0 || (c->rc < 0 && c->failed < ticket)) return;
    c->rc = rc;
    c->failed = ticket;
    c->ended = 1;
    c->bad = bad ? u->bad : (sgt_bad_line){0};
    if (!bad) c->err = *why;
}

static void *count_units(void *arg)
{
    counter *k = arg;
    counting *c = k->c;
    for (int rc = SGT_OK; !rc;) {
        sgt_error why = {0};
        pthread_mutex_lock(&c->lock);
        uint64_t ticket = c->ticket++;
        k->unit.count = 0;
        if (!c->ended && sgt_stopped(c->o->stop)) rc = sgt_fail(&why, SGT_ESTOPPED, "stopped");
        else if (!c->ended) rc = sgt_text_feed_next(c->feed, &k->unit, &why);
        else rc = 1;
        if (rc == 1) c->ended = 1;
        pthread_mutex_unlock(&c->lock);
        if (!rc) rc = count_unit(k, &why);
        pthread_mutex_lock(&c->lock);
        if (rc <= 0) record_result(c, &k->unit, ticket, rc, &why);
        if (rc < 0 || c->rc < 0) rc = -1;
        else if (!rc && c->o->progress)
            c->o->progress(c->o->progress_ctx, c->bytes, c->corpus->unsized ? 0 : c->corpus->bytes,
                           k->pieces->total);
        pthread_mutex_unlock(&c->lock);
        sgt_unit_trim(&k->unit, PIECE);
    }
    return NULL;
}

static int bad_line(const counting *c, sgt_error *err)
{
    uint64_t line = 1;
    for (size_t i = 0; i < c->line_units; i++)
        if (c->lines[i].ticket <= c->failed && c->lines[i].file == c->bad.file)
            line += c->lines[i].lines;
    return sgt_bad_line_fail(&c->bad, c->corpus, line, err);
}

static int start(counting *c, counter *all, size_t threads, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < threads && !rc; i++) {
        all[i].c = c;
        rc = sgt_pieces_new(&all[i].pieces, err);
        if (!rc) rc = sgt_unit_new(&all[i].unit, err);
        if (!rc && c->rule && !c->known) rc = sgt_pattern_new(&all[i].pattern, c->rule, err);
    }
    /* The calling thread counts too; it does all the work if no other thread can be started. */
    for (size_t i = 1; i < threads && !rc; i++)
        all[i].running = sgt_thread_start(&all[i].thread, count_units, &all[i]) == 0;
    return rc;
}

/* Count all pieces into all[0].pieces. */
static int count_all(counting *c, counter *all, size_t threads, sgt_error *err)
{
    int rc = start(c, all, threads, err);
    if (rc < 0) return rc;
    count_units(&all[0]);
    for (size_t i = 1; i < threads; i++)
        if (all[i].running) pthread_join(all[i].thread, NULL);
    if (c->rc < 0 && c->bad.why) return bad_line(c, err);
    if (c->rc < 0 && err) *err = c->err;
    rc = c->rc;
    for (size_t i = 1; i < threads && !rc; i++) {
        rc = sgt_pieces_add_all(all[0].pieces, all[i].pieces, err);
        sgt_pieces_free(all[i].pieces);
        all[i].pieces = NULL;
    }
    return rc;
}

/* ---- the vocabulary ---- */

/* Fill in the tokens and merges, under the ids they were trained with. */
static int fill_parts(sgt_vocab_parts *p, const sgt_merges *m, sgt_error *err)
{
    sgt_alphabet a;
    sgt_alphabet_fill(&a);
    int rc = sgt_vocab_parts_token(p, 0, EOT, EOT_BYTES, 1, err);
    for (uint32_t i = 0; i < 256 && !rc; i++)
        rc = sgt_vocab_parts_token(p, i + 1, a.order + i, 1, 0, err);
    for (uint32_t i = 0; i < m->count && !rc; i++) {
        const sgt_vocab_part *l = &p->tokens.parts[m->pairs[i][0]],
                             *r = &p->tokens.parts[m->pairs[i][1]];
        rc = sgt_vocab_parts_merge(p, l->s, l->n, r->s, r->n, err);
        if (rc < 0) break;
        const sgt_vocab_part *made = &p->merges.parts[i];
        rc = sgt_vocab_parts_token(p, SGT_MERGES_FIRST + i, made->s, made->n, 0, err);
    }
    return rc;
}

static int check_options(const sgt_tokenize_options *o, uint32_t size, sgt_error *err)
{
    static const char *const ours[] = {"tokenizer.json", "vocab.json", "merges.txt"};
    int rc = sgt_tokenize_options_check_out(o, err);
    if (rc < 0) return rc;
    if (size < SGT_MERGES_FIRST || size > SGT_VOCAB_MAX_IDS)
        return sgt_fail(err, SGT_EUSAGE, "train-vocab: %u is not within %u and %u", size,
                        SGT_MERGES_FIRST, SGT_VOCAB_MAX_IDS);
    if (!o->force && sgt_out_holds_other_than(o->out, NULL, 0))
        return sgt_fail(
            err, SGT_EFORMAT, "%s: is not empty (name a new folder, or --force %s)", o->out,
            sgt_out_holds_other_than(o->out, ours, 3) ? "writes beside what is there"
                                                      : "replaces the vocabulary in it");
    return SGT_OK;
}

static int train(sgt_vocab **out, const sgt_tokenize_options *o, const sgt_corpus *corpus,
                 uint32_t size, sgt_train_result *result, sgt_error *err)
{
    size_t threads = o->threads ? (size_t)o->threads : (size_t)sgt_cpu_count(),
           units = corpus->bytes / PIECE + 1;
    if (!corpus->unsized && units < threads) threads = units;
    const char *rule = sgt_rule_pattern(o->rule);
    counting c = {.o = o, .corpus = corpus};
    if (rule && !sgt_pattern_is_gpt2(rule)) c.known = sgt_rule_of(c.rule = rule);
    sgt_text_feed_options f = {.corpus = corpus,
                               .piece = PIECE,
                               .field = o->field,
                               .literal = {EOT, o->special_eot},
                               .rule = c.known,
                               .whole = c.rule && !c.known,
                               .normalized = o->normalize > SGT_NORMALIZE_NONE,
                               .stop = o->stop,
                               .threads = threads,
                               .notice = o->notice};
    sgt_vocab_parts parts = {.path = o->out, .rule = c.rule, .normalize = o->normalize};
    sgt_merges m = {0};
    counter *all = calloc(threads, sizeof *all);
    int rc = all ? sgt_text_feed_open(&c.feed, &f, err) : sgt_fail_memory(err, "threads");
    if (rc < 0) goto done;
    pthread_mutex_init(&c.lock, NULL);
    rc = count_all(&c, all, threads, err);
    pthread_mutex_destroy(&c.lock);
    sgt_text_feed_close(c.feed);
    if (rc < 0) goto done;
    *result = (sgt_train_result){.files = corpus->count,
                                 .documents = c.documents,
                                 .bytes = c.bytes,
                                 .pieces = all[0].pieces->total,
                                 .distinct = all[0].pieces->count,
                                 .invalid_utf8 = c.invalid,
                                 .skipped = corpus->skipped};
    if ((rc = sgt_merges_train(&m, all[0].pieces, size, o->stop, err)) == 0 &&
        (rc = fill_parts(&parts, &m, err)) == 0)
        rc = sgt_vocab_from_parts(out, &parts, err);
    result->tokens = m.count + SGT_MERGES_FIRST;
done:
    for (size_t i = 0; all && i < threads; i++) {
        sgt_pieces_free(all[i].pieces);
        sgt_pattern_free(all[i].pattern);
        sgt_unit_free(&all[i].unit);
    }
    free(all);
    free(c.lines);
    free(m.pairs);
    sgt_vocab_parts_free(&parts);
    return rc;
}

int sgt_vocab_train(sgt_vocab **out, const sgt_tokenize_options *o, uint32_t size,
                    sgt_train_result *result, sgt_error *err)
{
    sgt_corpus *c = NULL;
    sgt_pattern *pattern = NULL;
    sgt_train_result ignored;
    int rc = check_options(o, size, err);
    if (!result) result = &ignored;
    *result = (sgt_train_result){0};
    if (rc < 0) return rc;
    double began = sgt_now();
    const char *rule = sgt_rule_pattern(o->rule);
    if (rule && !sgt_rule_of(rule) && (rc = sgt_pattern_new(&pattern, rule, err)) < 0) return rc;
    sgt_pattern_free(pattern);
    if ((rc = sgt_corpus_list(&c, o, err)) == 0) rc = train(out, o, c, size, result, err);
    if (!rc) sgt_vocab_say(*out, &o->notice);
    sgt_corpus_free(c);
    result->seconds = sgt_now() - began;
    return rc;
}
