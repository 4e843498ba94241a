/* layout.c: a set of shards, and then another trainer's files. */
#include "tokenize/layout.h"

#include <stdlib.h>

#include "loader/base/file.h"
#include "tokenize/out/export.h"
#include "tokenize/out/out.h"
#include "tokenize/parts/parts.h"
#include "tokenize/pipeline.h"

typedef struct layout {
    const sgt_tokenize_options *o;
    const sgt_corpus *corpus;
    const sgt_vocab *vocab;
    sgt_out out;
    char *set; /* OUT/.work/set */
} layout;

/* Make the set of shards, alone or with other ranks. */
static int make_set(layout *l, const char *options, sgt_tokenize_result *result, sgt_error *err)
{
    sgt_tokenize_options o = *l->o;
    o.out = l->set;
    o.layout = SGT_LAYOUT_SGT;
    o.force = o.force ? SGT_OUT_DIFFERENT : SGT_OUT_KEEP;
    return (sgt_parts_wanted(&o) ? sgt_parts_make : sgt_pipeline_make)(&o, l->corpus, l->vocab,
                                                                       options, result, err);
}

/* Write OUT from the set; we have OUT alone. */
static int write_out(layout *l, sgt_tokenize_result *result, sgt_error *err)
{
    sgt_manifest from = {0}, to = {0};
    sgt_export e = {.set = l->set,
                    .from = &from,
                    .work = l->out.work,
                    .layout = l->o->layout,
                    .stop = l->o->stop};
    int rc = sgt_manifest_read(&from, l->set, err);
    if (!rc) rc = sgt_export_write(&e, &to, err);
    if (!rc) rc = sgt_export_copy(l->set, l->out.work, "sources.jsonl", err);
    if (!rc) rc = sgt_export_move(l->out.work, l->o->out, &to, err);
    if (!rc) rc = sgt_out_publish(&l->out, &to, l->vocab, err);
    *result = (sgt_tokenize_result){.bytes_read = result->bytes_read};
    if (!rc) sgt_pipeline_result(result, &to);
    sgt_manifest_free(&from);
    sgt_manifest_free(&to);
    return rc;
}

/* Finish, when this rank has nothing more to do for the set. The rank that completed the set, or of
 * connected ranks rank 0, writes OUT. */
static int finish(layout *l, const sgt_out_request *r, sgt_tokenize_result *result, sgt_error *err)
{
    sgt_out_share_no_more(&l->out);
    if (result->waiting) return SGT_OK;
    int rc = sgt_out_alone(&l->out, r, err);
    if (rc < 0) return rc;
    return rc ? sgt_pipeline_reread(result, l->o->out, err) : write_out(l, result, err);
}

int sgt_layout_make(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                    const char *options, sgt_tokenize_result *result, sgt_error *err)
{
    layout l = {.o = o, .corpus = c, .vocab = v};
    char *laid_out = sgt_export_options(options, o->layout);
    if (!laid_out) return sgt_fail_memory(err, o->out);
    sgt_out_request r = {o->out, c, v, laid_out, laid_out, o->force, o->notice, o->stop, o->field};
    int rc = sgt_out_join(&l.out, &r, err);
    if (rc == 0) {
        l.set = sgt_join(l.out.work, SGT_OUT_SET);
        rc = l.set ? make_set(&l, options, result, err) : sgt_fail_memory(err, o->out);
        if (!rc) rc = finish(&l, &r, result, err);
        sgt_out_leave(&l.out);
    } else if (rc == 1) {
        rc = sgt_pipeline_reread(result, o->out, err);
        result->already_done = 1;
    }
    free(l.set);
    free(laid_out);
    return rc;
}
