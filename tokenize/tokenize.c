/* tokenize.c: implements sgt_tokenize: checks the options, lists the inputs, checks the disk space,
 * and writes the set of shards. The set is either written directly by this process (pipeline.c), or
 * written in parts, usually by several processes, that are joined at the end (the folder
 * parts/). */
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

/* Return the options that change the output, as a JSON string allocated with malloc. The percentage
 * of --split is printed with 15 significant digits, so that a percentage of up to 15 digits is
 * printed as the user wrote it. */
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
    /* nonzero after memory has run out; NULL is then returned, because a string that lacks an
     * option would look like the string of a run without that option */
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
    /* `alike` is a copy of the options in which all ranks except rank 0 have no notice function. It
     * is used for calls whose notices are the same on every rank, so that only rank 0 prints
     * them. */
    alike = o;
    if (o.joined && o.rank) alike.notice.say = NULL;
    if ((rc = sgt_vocab_of(&v, &o, err)) == 0 && (rc = sgt_corpus_list(&c, &alike, err)) == 0) {
        sgt_vocab_say(v, &alike.notice);
        /* A hash of a text file's name decides whether the file is used for training or validation.
         * If this would leave one of these splits empty, choose a file for that split. With
         * special_eot, do not choose one, because <|endoftext|> in the text divides files into
         * documents, and the file name alone does not decide the split of each document. */
        kept = !o.special_eot && sgt_text_feed_choose(c, o.val_fraction);
        rc = tokenize_into(&o, &alike.notice, c, v, &r, err);
    }
    if (kept && !rc && !r.already_done)
        sgt_say(&alike.notice, "--split: all files fell into the validation split, so one was "
                               "moved to training (a hash of a file's path below INPUT decides)");
    sgt_vocab_free(v);
    sgt_corpus_free(c);
    /* Before this line, r.seconds is negative or 0: the time spent waiting for another process that
     * owned the output folder was subtracted from it. Adding the elapsed time therefore gives the
     * duration of the call without that wait. */
    r.seconds += sgt_now() - began;
    if (result) sgt_struct_write(result, &r, sizeof r);
    return rc;
}
