/* pipeline.c: tokenizes the inputs into one set of shards in one process. Worker threads encode
 * units of text (about 256 KiB each; units.h) in parallel, and the calling thread writes the tokens
 * of the units in the order of the text. */
#include "tokenize/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenize/input/units.h"
#include "tokenize/out/export.h"
#include "tokenize/out/out.h"
#include "tokenize/out/record.h"
#include "tokenize/vocab/vocab.h"

#define SHARD_TOKENS 100000000u

/* ---- units ---- */

static int write_units(sgt_units *units, const sgt_tokenize_options *o, const sgt_corpus *c,
                       sgt_record *r, sgt_error *err)
{
    sgt_unit *u;
    int rc;
    /* Report progress once before the first unit is tokenized. If this run resumes an interrupted
     * run, the first report covers only the work of the interrupted run. The caller can subtract
     * that work to compute the speed of this run. */
    do {
        if (o->progress)
            o->progress(o->progress_ctx, sgt_record_read(r), c->stream ? 0 : c->bytes,
                        sgt_record_tokens(r));
    } while ((rc = sgt_units_next(units, &u, err)) == 0 && (rc = sgt_record_unit(r, u, err)) == 0);
    return rc < 0 ? rc : SGT_OK;
}

/* Tokenize the files of the corpus c, from the checkpoint *from up to the end of the last file.
 * Pass the tokens to r, which writes them. */
static int run(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
               const sgt_checkpoint *from, sgt_record *r, sgt_error *err)
{
    const size_t piece = sgt_text_feed_piece(), threads = sgt_units_threads(c, o->threads, piece);
    sgt_encoder **encoders = calloc(threads, sizeof *encoders);
    sgt_units_job job = {.feed = {.reading = {.corpus = c, .o = o, .vocab = v},
                                  .piece = piece,
                                  .threads = threads,
                                  .from = {from->file, from->offset, from->hashed, from->hash,
                                           from->block, from->split}},
                         .work = sgt_part_encode,
                         .workers = encoders,
                         .worker_size = sizeof *encoders};
    sgt_units *units = NULL;
    int rc = encoders ? SGT_OK : sgt_fail_memory(err, "threads");
    for (size_t i = 0; i < threads && !rc; i++) rc = sgt_encoder_new(&encoders[i], v, err);
    if (!rc) rc = sgt_units_start(&units, &job, err);
    if (!rc) rc = write_units(units, o, c, r, err);
    sgt_units_stop(units);
    for (size_t i = 0; encoders && i < threads; i++) sgt_encoder_free(encoders[i]);
    free(encoders);
    return rc;
}

/* ---- the set ---- */

uint64_t sgt_pipeline_shard_tokens(const sgt_tokenize_options *o)
{
    return o->shard_tokens ? o->shard_tokens : SHARD_TOKENS;
}

/* Set the counts in *r from the manifest m of a set of shards. */
static void fill_counts(sgt_tokenize_result *r, const sgt_manifest *m)
{
    r->tokens = m->tokens;
    r->documents = m->documents;
    r->bytes = m->bytes;
    r->files = m->files;
    r->invalid_utf8 = m->invalid_utf8;
    r->bad_lines = m->bad_lines;
    r->duplicates = m->duplicates;
    r->lone_surrogates = m->lone_surrogates;
    r->eot_literals = m->eot_literals;
    r->skipped = m->skipped;
    r->shards = m->count;
    for (size_t i = 0; i < m->count; i++)
        *(strcmp(m->shards[i].split, "val") ? &r->train_tokens : &r->val_tokens) +=
            m->shards[i].tokens;
}

int sgt_pipeline_check(const sgt_manifest *m, const sgt_corpus *c, const sgt_tokenize_options *o,
                       sgt_error *err)
{
    sgt_tokenize_result r = {0};
    if (o->skip_bad && m->bad_lines && !m->documents)
        return sgt_fail(
            err, SGT_EFORMAT,
            "%s: nothing to tokenize: --skip-bad skipped every line, row or file, %" PRIu64
            " in all (run without it to see the first error)",
            c->files[0].path, m->bad_lines);
    fill_counts(&r, m);
    if (r.train_tokens || !r.documents || o->val_fraction <= 0 || o->val_fraction >= 1)
        return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "--split %.15g%%: all documents (%" PRIu64
                    ") fell into the validation split, so none is left for training (use a smaller "
                    "value, with --force)",
                    100 * o->val_fraction, r.documents);
}

/* Convert the shards that the manifest m describes to the layout r->layout, and describe the
 * converted files in the manifest *laid_out. */
static int lay_out(const sgt_out *out, const sgt_manifest *m, const sgt_out_request *r,
                   sgt_manifest *laid_out, sgt_error *err)
{
    sgt_export e = {.work = out->work, .layout = r->layout, .stop = r->stop};
    int rc = sgt_manifest_write(m, out->shards, err);
    if (!rc) rc = sgt_made_add(&e.set, out->shards, err);
    if (!rc) rc = sgt_export_write(&e, laid_out, err);
    if (!rc) rc = sgt_export_move(out->work, out->path, laid_out, err);
    sgt_made_close(e.set);
    return rc;
}

int sgt_pipeline_publish(sgt_out *out, sgt_manifest *m, const sgt_out_request *r,
                         sgt_tokenize_result *result, sgt_error *err)
{
    sgt_manifest laid_out = {0};
    const sgt_manifest *all = r->layout ? &laid_out : m;
    /* the string still belongs to r, so m->options is reset to NULL before this function returns;
     * otherwise, freeing m would free the string */
    m->options = (char *)r->set_options;
    snprintf(m->vocabulary, sizeof m->vocabulary, "%s", sgt_vocab_name(r->vocab));
    m->fingerprint = sgt_vocab_fingerprint(r->vocab);
    m->vocab = sgt_vocab_size(r->vocab);
    m->eot = sgt_vocab_eot(r->vocab);
    int rc = r->layout ? lay_out(out, m, r, &laid_out, err) : SGT_OK;
    if (!rc) rc = sgt_out_publish(out, all, r->vocab, err);
    *result = (sgt_tokenize_result){.bytes_read = result->bytes_read, .seconds = result->seconds};
    fill_counts(result, all);
    sgt_manifest_free(&laid_out);
    m->options = NULL;
    return rc;
}

/* Tokenize the inputs into an output folder that this run has claimed, and publish the complete set
 * of shards in the folder. */
static int fill_out(sgt_out *out, const sgt_tokenize_options *o, const sgt_out_request *request,
                    sgt_tokenize_result *result, sgt_error *err)
{
    const sgt_corpus *c = request->corpus;
    const sgt_vocab *v = request->vocab;
    const sgt_checkpoint from = out->journal->now;
    sgt_manifest m = {0};
    sgt_record *r;
    int rc = sgt_record_open(&r, out, c, v, o, err);
    if (rc < 0) return rc;
    rc = run(o, c, v, &from, r, err);
    if (rc == SGT_ESTOPPED && sgt_record_save(r, err) < 0) rc = err ? err->code : SGT_EIO;
    result->bytes_read = sgt_record_bytes(r) - from.all_bytes;
    if (!rc) rc = sgt_record_finish(r, &m, err);
    if (!rc && o->ranks < 2) rc = sgt_pipeline_check(&m, c, o, err);
    if (!rc) rc = sgt_pipeline_publish(out, &m, request, result, err);
    sgt_manifest_free(&m);
    sgt_record_close(r);
    return rc;
}

int sgt_pipeline_reread(sgt_tokenize_result *r, const char *out, sgt_error *err)
{
    sgt_manifest m;
    int rc = sgt_manifest_read(&m, out, err);
    if (rc < 0) return rc;
    *r = (sgt_tokenize_result){.bytes_read = r->bytes_read, .seconds = r->seconds};
    fill_counts(r, &m);
    sgt_manifest_free(&m);
    return SGT_OK;
}

int sgt_pipeline_make(const sgt_tokenize_options *o, const sgt_out_request *r,
                      sgt_tokenize_result *result, sgt_error *err)
{
    sgt_out out;
    int rc = sgt_out_claim(&out, r, err);
    result->seconds -= out.who.waited;
    if (rc == 1) {
        rc = sgt_pipeline_reread(result, r->path, err);
        result->already_done = rc == SGT_OK;
    } else if (rc == 0) {
        rc = fill_out(&out, o, r, result, err);
        /* The error may have occurred because another run has taken over the output folder and
         * removed the files of this run. If the folder was taken over, report that instead of the
         * error. */
        if (rc < 0) (void)sgt_out_check(&out, err);
        /* Keep the files in the output folder if the set is complete, if the journal records
         * at least one complete shard, or if a stop was requested and no input is standard
         * input. */
        int keep = rc == 0 || !sgt_journal_empty(out.journal) ||
                   (rc == SGT_ESTOPPED && !r->corpus->stream);
        sgt_out_release(&out, keep);
    }
    return rc;
}
