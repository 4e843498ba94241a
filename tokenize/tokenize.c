/* tokenize.c: sgt_tokenize: check the options, list the inputs, check the disk space, and make the
 * set: in this process alone (pipeline.c), or by parts that are then assembled (parts/). Another
 * trainer's files are made from a set. */
#include "tokenize/sgt_tokenize.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/file.h"
#include "loader/base/json.h"
#include "tokenize/input/feed.h"
#include "tokenize/before.h"
#include "tokenize/out/export.h"
#include "tokenize/out/out.h"
#include "tokenize/parts/meet.h"
#include "tokenize/parts/parts.h"
#include "tokenize/pipeline.h"
#include "tokenize/vocab/vocab.h"

/* Return the options that change the output, as malloc'd JSON. --split is a percentage with 15
 * digits, which a double always holds. */
static char *options_json(const sgt_tokenize_options *o, const sgt_vocab *v)
{
    static const char *const formats[] = {"auto", "text", "jsonl"}, *const invalid[] = {
                                                                        "keep", "replace", "fail"};
    char split[40] = "none";
    if (o->val_fraction > 0) snprintf(split, sizeof split, "%.15g%%", 100 * o->val_fraction);
    json_t *j = json_pack(
        "{s:s, s:s, s:s, s:b, s:s, s:I, s:s, s:s}", "vocab", sgt_vocab_name(v), "format",
        formats[o->format], "field", o->field ? o->field : "text", "skip_bad", o->skip_bad, "split",
        split, "shard_tokens", (json_int_t)sgt_pipeline_shard_tokens(o), "special",
        o->special_eot ? "eot" : "none", "invalid_utf8", invalid[o->invalid_utf8]);
    const char *binary = o->binary == SGT_BINARY_KEEP ? "keep" : "skip";
    int bad = 0; /* out of memory: without this option, OUT would look made with other options */
    bad |= json_object_set_new(j, "binary", json_string(binary));
    if (o->special_eot) bad |= json_object_set_new(j, "special_revision", json_integer(2));
    if (sgt_vocab_normalizes(v))
        bad |= json_object_set_new(j, "normalize",
                                   json_string(v->normalize == SGT_NORMALIZE_NFC ? "nfc" : "nfkc"));
    if (v->rule) bad |= json_object_set_new(j, "pattern", json_string(v->rule));
    if (o->filter_count) {
        json_t *filters = json_array();
        for (size_t i = 0; i < o->filter_count; i++)
            bad |= json_array_append_new(filters, json_string(o->filters[i]));
        bad |= json_object_set_new(j, "filter", filters);
    }
    if (o->shuffle)
        bad |= json_object_set_new(j, "shuffle", json_integer((json_int_t)o->shuffle_seed));
    if (o->dedup) bad |= json_object_set_new(j, "dedup", json_true());
    if (o->keep_fields) bad |= json_object_set_new(j, "keep_fields", json_string(o->keep_fields));
    char *text = j && !bad ? sgt_json_dumps(j, 0) : NULL;
    json_decref(j);
    return text;
}

/* Notify the user of names that promise another format, because those files are read as text. */
static void notice_names(const sgt_tokenize_options *o, const sgt_corpus *c)
{
    static const char *const others[] = {".xz", ".bz2", ".zip"};
    size_t found = 0, first = 0;
    for (size_t i = 0; i < c->count && o->format == SGT_FORMAT_AUTO; i++) {
        const char *dot = strrchr(c->files[i].name, '.');
        if (c->files[i].filter || !dot) continue;
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (!strcmp(dot, others[k]) && !found++) first = i;
    }
    if (found)
        sgt_say(&o->notice,
                "%s: read as plain text, byte for byte (%zu such %s; --format text says so)",
                c->files[first].path, found, found == 1 ? "name" : "names");
}

/* ---- another trainer's layout ---- */

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
    sgt_manifest to = {0};
    sgt_export e = {.work = l->out.work, .layout = l->o->layout, .stop = l->o->stop};
    int rc = sgt_made_open(&e.set, l->set, err);
    if (!rc) rc = sgt_export_write(&e, &to, err);
    if (!rc) rc = sgt_export_copy(l->set, l->out.work, "sources.jsonl", err);
    if (!rc) rc = sgt_export_move(l->out.work, l->o->out, &to, err);
    if (!rc) rc = sgt_out_publish(&l->out, &to, l->vocab, err);
    *result = (sgt_tokenize_result){.bytes_read = result->bytes_read};
    if (!rc) sgt_pipeline_result(result, &to);
    sgt_made_close(e.set);
    sgt_manifest_free(&to);
    return rc;
}

/* Wait until all ranks of a launcher have joined OUT: the one that writes its files has OUT alone,
 * and a rank that came after that could not join. */
static int meet_ranks(const layout *l, sgt_error *err)
{
    const sgt_ranks *r = l->o->ranks;
    sgt_meeting *m = NULL;
    if (!sgt_ranks_connected(r) || r->size < 2) return SGT_OK;
    int rc = sgt_meeting_open(&m, l->out.work, r, l->o->stop, err);
    if (!rc) rc = sgt_meet(m, SGT_MEET_COUNTS, err);
    sgt_meeting_close(m);
    return rc;
}

/* Finish, when this rank has nothing more to do for the set. The rank that completed the set, or of
 * connected ranks rank 0, writes OUT. */
static int finish_layout(layout *l, const sgt_out_request *r, sgt_tokenize_result *result,
                         sgt_error *err)
{
    sgt_out_share_no_more(&l->out);
    if (result->waiting) return SGT_OK;
    int rc = sgt_out_alone(&l->out, r, err);
    if (rc < 0) return rc;
    return rc ? sgt_pipeline_reread(result, l->o->out, err) : write_out(l, result, err);
}

/* Make OUT in another trainer's layout: first a set of shards in OUT/.work/set, then from it the
 * files of OUT (export.h). After a kill, the same command goes on with the set, or, if that is
 * complete, writes the files again. `options`: the JSON text for the manifest of the set. */
static int make_layout(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                       const char *options, sgt_tokenize_result *result, sgt_error *err)
{
    layout l = {.o = o, .corpus = c, .vocab = v};
    char *laid_out = sgt_export_options(options, o->layout);
    if (!laid_out) return sgt_fail_memory(err, o->out);
    sgt_out_request r = {o->out, c, v, laid_out, laid_out, o->force, o->notice, o->stop, o->field};
    int rc = sgt_out_join(&l.out, &r, err);
    if (rc == 0) {
        l.set = sgt_join(l.out.work, SGT_OUT_SET);
        rc = l.set ? meet_ranks(&l, err) : sgt_fail_memory(err, o->out);
        if (!rc) rc = make_set(&l, options, result, err);
        if (!rc) rc = finish_layout(&l, &r, result, err);
        sgt_out_leave(&l.out);
    } else if (rc == 1) {
        rc = sgt_pipeline_reread(result, o->out, err);
        result->already_done = 1;
    }
    free(l.set);
    free(laid_out);
    return rc;
}

/* ---- sgt_tokenize ---- */

static int tokenize_into(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                         sgt_tokenize_result *result, sgt_error *err)
{
    char *options = options_json(o, v);
    if (!options) return sgt_fail_memory(err, o->out);
    int rc = sgt_space_check(o, c, v, err);
    if (!rc)
        rc = (o->layout             ? make_layout
              : sgt_parts_wanted(o) ? sgt_parts_make
                                    : sgt_pipeline_make)(o, c, v, options, result, err);
    free(options);
    return rc;
}

int sgt_tokenize(const sgt_tokenize_options *o, sgt_tokenize_result *result, sgt_error *err)
{
    sgt_vocab *v = NULL;
    sgt_corpus *c = NULL;
    sgt_tokenize_result ignored;
    int kept = 0, rc = sgt_tokenize_options_check_out(o, err);
    if (!result) result = &ignored;
    *result = (sgt_tokenize_result){0};
    if (rc < 0) return rc;
    double began = sgt_now();
    if ((rc = sgt_vocab_of(&v, o, err)) == 0 && (rc = sgt_corpus_list(&c, o, err)) == 0) {
        sgt_vocab_say(v, &o->notice);
        notice_names(o, c);
        /* if literals begin documents, names alone do not tell which documents there are */
        kept = !o->special_eot && sgt_text_feed_choose(c, o->val_fraction);
        rc = tokenize_into(o, c, v, result, err);
    }
    if (kept && !rc && !result->already_done)
        sgt_say(&o->notice,
                "--split: its hash puts all documents into the validation split, so one stays in "
                "training (whole files are chosen)");
    sgt_vocab_free(v);
    sgt_corpus_free(c);
    result->seconds = sgt_now() - began;
    return rc;
}
