/* tokenize.c: implements sgt_tokenize: checks the options, lists the inputs, checks the disk space,
 * and writes the set of shards. A set is written either by this process alone (pipeline.c), or in
 * parts that are joined at the end (parts/). */
#include "tokenize/sgt_tokenize.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "loader/base/file.h"
#include "loader/base/json.h"
#include "loader/base/memory.h"
#include "tokenize/input/feed.h"
#include "tokenize/before.h"
#include "tokenize/out/export.h"
#include "tokenize/parts/parts.h"
#include "tokenize/pipeline.h"
#include "tokenize/vocab/vocab.h"

/* Return the options that change the output, as JSON text allocated with malloc. The percentage of
 * --split has at most 15 digits, because a double represents every number of 15 digits. */
static char *options_json(const sgt_tokenize_options *o, const sgt_vocab *v)
{
    static const char *const formats[] = {"auto", "text", "jsonl"}, *const invalid[] = {
                                                                        "keep", "replace", "fail"};
    char split[40] = "none";
    if (o->val_fraction > 0) snprintf(split, sizeof split, "%.15g%%", 100 * o->val_fraction);
    json_t *j = json_pack("{s:s, s:s, s:s, s:b, s:s, s:I, s:s, s:s, s:s}", "vocab",
                          sgt_vocab_name(v), "format", formats[o->format], "field",
                          o->field ? o->field : "text", "skip_bad", o->skip_bad, "split", split,
                          "shard_tokens", (json_int_t)sgt_pipeline_shard_tokens(o), "special",
                          o->special_eot ? "eot" : "none", "invalid_utf8", invalid[o->invalid_utf8],
                          "binary", o->binary == SGT_BINARY_KEEP ? "keep" : "skip");
    /* `bad` becomes nonzero if memory runs out. In this case, no text is returned, because a text
     * that lacks some options would be mistaken for the text of a run with other options. */
    int bad = 0;
    if (o->special_eot) bad |= json_object_set_new(j, "special_revision", json_integer(2));
    if (v->normalize > SGT_NORMALIZE_NONE)
        bad |= json_object_set_new(j, "normalize",
                                   json_string(v->normalize == SGT_NORMALIZE_NFC ? "nfc" : "nfkc"));
    if (v->rule.by != SGT_RULE_GPT2)
        bad |= json_object_set_new(j, "pattern", json_string(v->rule.text));
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

/* ---- sgt_tokenize ---- */

static int tokenize_into(const sgt_tokenize_options *o, const sgt_notice *to, const sgt_corpus *c,
                         const sgt_vocab *v, sgt_tokenize_result *result, sgt_error *err)
{
    char *set = options_json(o, v), *all = set ? sgt_export_options(set, o->layout) : NULL;
    const sgt_out_request r = {o->out, c, v, all, set, NULL, 0, o->force, to, o->stop, o->layout};
    int rc = all ? sgt_space_check(o, c, v, err) : sgt_fail_memory(err, o->out);
    if (!rc) rc = (sgt_parts_wanted(o) ? sgt_parts_make : sgt_pipeline_make)(o, &r, result, err);
    free(set);
    free(all);
    return rc;
}

int sgt_tokenize_threads(void) { return sgt_cpu_threads(1, 0); }

int sgt_tokenize(const sgt_tokenize_options *given, sgt_tokenize_result *result, sgt_error *err)
{
    sgt_vocab *v = NULL;
    sgt_corpus *c = NULL;
    sgt_tokenize_options o, alike;
    sgt_tokenize_result r = {0};
    const double began = sgt_now();
    int kept = 0, rc = sgt_tokenize_given(&o, given, result, err);
    if (rc < 0) return rc;
    /* copy of the options for messages that would be the same on every rank: only rank 0 prints
     * them */
    alike = o;
    if (o.joined && o.rank) alike.notice.say = NULL;
    if ((rc = sgt_vocab_of(&v, &o, err)) == 0 && (rc = sgt_corpus_list(&c, &alike, err)) == 0) {
        sgt_vocab_say(v, &alike.notice);
        /* A text file's split is a hash of its name. If this would leave a split empty, choose a
         * file for it. But with special_eot, <|endoftext|> in the text divides files into
         * documents, so file names do not determine the documents' splits. */
        kept = !o.special_eot && sgt_text_feed_choose(c, o.val_fraction);
        rc = tokenize_into(&o, &alike.notice, c, v, &r, err);
    }
    if (kept && !rc && !r.already_done)
        sgt_say(&alike.notice, "--split: all files fell into the validation split, so one was "
                               "moved to training (each file is assigned by a hash of its path)");
    sgt_vocab_free(v);
    sgt_corpus_free(c);
    /* Until here, r.seconds is minus the time that this run waited for other owners of the output
     * folder. The sum is the elapsed time without that wait. */
    r.seconds += sgt_now() - began;
    if (result) sgt_struct_write(result, &r, sizeof r);
    return rc;
}
