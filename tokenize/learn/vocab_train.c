/* vocab_train.c: trains a vocabulary on the text of input files. Each thread reads units of text
 * (about 256 KiB each; feed.h), splits the text into pieces (pre-tokens), and counts the pieces in
 * the thread's own table. Finally, the counts of all tables are added up, and merges are trained on
 * the sums (merges.h). The sums, and therefore the vocabulary, do not depend on the number of
 * threads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/base/clock.h"
#include "loader/base/memory.h"
#include "tokenize/input/units.h"
#include "tokenize/learn/merges.h"
#include "tokenize/before.h"
#include "tokenize/out/out.h"
#include "tokenize/text/pattern.h"
#include "tokenize/vocab/vocab_file.h"

/* number of elements of the array `ends` that sgt_split fills: 256 for the ends of pieces, which is
 * enough to make the cost of a call per piece small, and 64 more that sgt_split may overwrite
 * (split.h) */
#define ENDS 320

typedef struct counting {
    const sgt_tokenize_options *o;
    const sgt_corpus *corpus;
    sgt_rule rule;          /* the rule that splits the text */
    sgt_tokenize_result *r; /* totals so far */
    /* index of the input file that is being counted, and number of lines or rows of this file that
     * have been counted so far */
    uint64_t file, lines;
} counting;

/* The state of one thread. */
typedef struct counter {
    const counting *c;
    sgt_pieces pieces;
    sgt_pattern *pattern;
} counter;

/* ---- a unit's pieces ---- */

/* Count the pieces (pre-tokens) in the n bytes at `text`, and add their number to u->id_count. This
 * function has the type sgt_part_work, and is called for each part of a unit (feed.h). */
static int count_part(void *counter_, sgt_unit *u, sgt_part *p, const uint8_t *text, size_t n,
                      sgt_error *err)
{
    counter *k = counter_;
    const uint64_t before = k->pieces.total;
    sgt_error why = {0};
    sgt_splitter sp = k->pattern ? sgt_pattern_splitter(k->pattern, text, n, &why)
                                 : sgt_splitter_by(&k->c->rule, text, n);
    uint32_t ends[ENDS];
    int rc = SGT_OK;
    (void)p;
    for (size_t pieces, at = 0; !rc && (pieces = sgt_split(&sp, ends, ENDS)) > 0; at = sp.at) {
        if (ends[0] == UINT32_MAX) rc = sgt_pieces_add(&k->pieces, text + at, sp.at - at, 1, err);
        else
            for (size_t i = 0, from = 0; i < pieces && !rc; from = ends[i++])
                rc = sgt_pieces_add(&k->pieces, text + at + from, ends[i] - from, 1, err);
    }
    if (!rc && sp.at < n) rc = sgt_fail(err, why.code, "%s", why.text);
    u->id_count += (size_t)(k->pieces.total - before);
    return rc;
}

/* ---- all units ---- */

/* Add the counts of a unit (feed.h) to the totals in c->r. Units must be passed in the order of the
 * text. */
static int add_unit(counting *c, const sgt_unit *u, sgt_error *err)
{
    for (size_t i = 0; i < u->count; i++) {
        const sgt_part *p = &u->parts[i];
        if (p->file != c->file) c->lines = 0;
        c->file = p->file;
        c->lines += p->records;
        c->r->documents += p->first != 0;
        c->r->bytes += p->length;
        c->r->bad_lines += p->bad;
        if (p->kind == SGT_PART_TEXT) c->r->invalid_utf8 += p->text.invalid;
    }
    c->r->pieces += u->id_count;
    if (u->bad.why)
        return sgt_bad_line_fail(&u->bad, c->corpus, 1 + (u->bad.file == c->file ? c->lines : 0),
                                 err);
    if (c->o->progress)
        c->o->progress(c->o->progress_ctx, c->r->bytes, c->corpus->unsized ? 0 : c->corpus->bytes,
                       c->r->pieces);
    return SGT_OK;
}

/* Count the pieces (pre-tokens) of all inputs with `threads` threads, and store the total counts in
 * the table all[0].pieces. */
static int count_all(counting *c, counter *all, size_t threads, sgt_error *err)
{
    const sgt_tokenize_options *o = c->o;
    const sgt_units_job job = {.feed = {.reading = {.corpus = c->corpus, .o = o, .rule = &c->rule},
                                        .piece = sgt_text_feed_piece(),
                                        .threads = threads},
                               .work = count_part,
                               .workers = all,
                               .worker_size = sizeof *all};
    sgt_units *units = NULL;
    sgt_unit *u;
    int rc = SGT_OK;
    for (size_t i = 0; i < threads && !rc; i++) {
        all[i].c = c;
        if (c->rule.by == SGT_RULE_PCRE2) rc = sgt_pattern_new(&all[i].pattern, c->rule.text, err);
    }
    if (!rc) rc = sgt_units_start(&units, &job, err);
    while (!rc && (rc = sgt_units_next(units, &u, err)) == 0) rc = add_unit(c, u, err);
    sgt_units_stop(units);
    for (size_t i = 1; i < threads && rc >= 0; i++) {
        rc = sgt_pieces_add_all(&all[0].pieces, &all[i].pieces, err);
        sgt_pieces_free(&all[i].pieces);
    }
    return rc < 0 ? rc : SGT_OK;
}

/* ---- the vocabulary ---- */

static int check_options(const sgt_tokenize_options *o, uint32_t size, sgt_error *err)
{
    static const char *const ours[] = {".work", "tokenizer.json", "vocab.json", "merges.txt"},
                             *const guards[] = {"lock", "owner"};
    char work[SGT_PATH];
    if (size < SGT_MERGES_FIRST || size > SGT_MOST_IDS)
        return sgt_fail(err, SGT_EUSAGE, "train-vocab: %u is not between %u and %u", size,
                        SGT_MERGES_FIRST, SGT_MOST_IDS);
    if (sgt_out_holds_other_than(sgt_path(work, o->out, ".work"), guards, 2))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: holds an unfinished set, and finishing it would remove the vocabulary "
                        "(name a new folder, or remove %s)",
                        o->out, work);
    /* do not count the folder .work as contents, because sgt_out_claim may have created it */
    if (!o->force && sgt_out_holds_other_than(o->out, ours, 1))
        return sgt_fail(
            err, SGT_EFORMAT, "%s: is not empty (name a new folder, or --force %s)", o->out,
            sgt_out_holds_other_than(o->out, ours, 4) ? "adds the vocabulary to it"
                                                      : "replaces the vocabulary in it");
    return SGT_OK;
}

static int train(sgt_vocab **out, const sgt_tokenize_options *o, const sgt_corpus *corpus,
                 uint32_t size, sgt_tokenize_result *result, sgt_error *err)
{
    const size_t threads = sgt_units_threads(corpus, o->threads, sgt_text_feed_piece());
    counting c = {.o = o, .corpus = corpus, .rule = sgt_rule_of(o->pattern), .r = result};
    sgt_vocab_parts parts = {.path = o->out, .rule = o->pattern, .normalize = o->normalize};
    counter *all = calloc(threads, sizeof *all);
    int rc = all ? count_all(&c, all, threads, err) : sgt_fail_memory(err, "threads");
    if (rc < 0) goto done;
    result->files = corpus->count;
    result->skipped = corpus->skipped;
    result->distinct = all[0].pieces.count;
    rc = sgt_merges_train(&parts, &all[0].pieces, size, o->stop, err);
    if (!rc) rc = sgt_vocab_from_parts(out, &parts, err);
    result->tokens = parts.size;
done:
    for (size_t i = 0; all && i < threads; i++) {
        sgt_pieces_free(&all[i].pieces);
        sgt_pattern_free(all[i].pattern);
    }
    free(all);
    sgt_vocab_parts_free(&parts);
    return rc;
}

int sgt_vocab_train(sgt_vocab **out, const sgt_tokenize_options *given, uint32_t tokens,
                    sgt_tokenize_result *result, sgt_error *err)
{
    sgt_corpus *c = NULL;
    sgt_tokenize_options o;
    sgt_tokenize_result r = {0};
    const double began = sgt_now();
    int rc = sgt_tokenize_given(&o, given, result, err);
    if (!rc) rc = check_options(&o, tokens, err);
    if (!rc) rc = sgt_corpus_list(&c, &o, err);
    if (!rc) rc = train(out, &o, c, tokens, &r, err);
    if (!rc) sgt_vocab_say(*out, &o.notice);
    sgt_corpus_free(c);
    r.seconds = sgt_now() - began;
    if (result && !rc) sgt_struct_write(result, &r, sizeof r);
    return rc;
}
