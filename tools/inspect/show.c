/* show.c: prints a summary of a set of shards, as JSON or as lines of text. */
#include <inttypes.h>
#include <string.h>

#include "loader/base/json.h"
#include "tools/cli/talk.h"
#include "tools/inspect/inspect.h"

static json_t *hex(uint64_t v) { return v ? sgt_json_hex(v) : json_null(); }

static json_t *shard_json(const sgt_set_shard *s, const char *split)
{
    const char *slash = strrchr(s->path, '/'), *name = slash ? slash + 1 : s->path;
    return json_pack("{s:o, s:s*, s:s, s:I, s:o, s:I, s:o, s:o*}", "file", sgt_json_string(name),
                     "split", split, "format", sgt_shard_format_name(s->head.format), "tokens",
                     (json_int_t)s->head.tokens, "documents", sgt_json_count(s->documents), "bytes",
                     (json_int_t)sgt_shard_bytes(&s->head), "xxh3", hex(s->head.xxh3), "damage",
                     s->damage ? sgt_json_string(s->damage) : NULL);
}

static json_t *vocabulary_json(const inspect_set *s)
{
    const sgt_shard_header *h = &s->first;
    const sgt_manifest *m = &s->manifest;
    int known = m->options || h->vocab;
    return json_pack("{s:s*, s:o, s:o, s:o}", "name", m->options ? m->vocabulary : NULL, "size",
                     sgt_json_count(known ? h->vocab : UINT64_MAX), "eot",
                     sgt_json_count(known ? h->eot : UINT64_MAX), "fingerprint",
                     hex(h->fingerprint));
}

/* Return a JSON object with one member for each split that is not empty. The member contains the
 * numbers of shards, tokens and documents in the split. */
static json_t *splits_json(const inspect_set *s)
{
    json_t *splits = json_object();
    for (int i = 0; i < SGT_SPLITS; i++) {
        uint64_t documents, tokens = inspect_count(s, i, &documents);
        uint32_t shards = s->ends[i] - (i ? s->ends[i - 1] : 0);
        if (shards)
            json_object_set_new(splits, sgt_split_names[i],
                                json_pack("{s:I, s:I, s:o}", "shards", (json_int_t)shards, "tokens",
                                          (json_int_t)tokens, "documents",
                                          sgt_json_count(documents)));
    }
    return splits;
}

/* Return a JSON object with what the manifest says about the text from which the data set was
 * made. */
static json_t *text_json(const sgt_manifest *m)
{
    json_t *invalid = m->invalid ? json_loads(m->invalid, 0, NULL) : NULL;
    json_t *text =
        json_pack("{s:I, s:I, s:I, s:O*, s:I, s:I, s:I, s:o}", "bytes", (json_int_t)m->bytes,
                  "files", (json_int_t)m->files, "invalid_utf8", (json_int_t)m->invalid_utf8,
                  "first_invalid", json_array_get(invalid, 0), "bad_lines",
                  (json_int_t)m->bad_lines, "eot_literals", (json_int_t)m->eot_literals, "skipped",
                  (json_int_t)m->skipped, "options", json_loads(m->options, 0, NULL));
    json_decref(invalid);
    return text;
}

static json_t *set_json(const inspect_set *s, const inspect *o)
{
    /* summed: number of shards that have a checksum. bytes: total size of all shards. */
    uint64_t summed = 0, bytes = 0;
    json_t *shards = json_array();
    for (uint32_t i = 0; i < s->set.count; i++) {
        const sgt_set_shard *d = &s->set.shards[i];
        json_array_append_new(shards,
                              shard_json(d, s->folder ? sgt_split_names[i >= s->ends[0]] : NULL));
        summed += d->head.xxh3 != 0;
        bytes += sgt_shard_bytes(&d->head);
    }
    json_t *top = json_pack("{s:s, s:o, s:I, s:o, s:o*}", "kind", s->folder ? "shards" : "shard",
                            "path", sgt_json_string(s->path), "tokens", (json_int_t)s->tokens,
                            "documents", sgt_json_count(s->documents), "unfinished",
                            s->folder ? json_boolean(s->unfinished) : NULL);
    if (s->manifest.options) json_object_update_new(top, text_json(&s->manifest));
    if (s->set.count)
        json_object_set_new(top, "format", json_string(sgt_shard_format_name(s->first.format)));
    json_object_set_new(top, "disk_bytes", json_integer((json_int_t)bytes));
    json_object_set_new(top, "vocabulary", vocabulary_json(s));
    if (s->folder) json_object_set_new(top, "splits", splits_json(s));
    json_object_set_new(top, "shards", shards);
    if (!o->verify) return top;
    json_object_set_new(top, "verified", json_boolean(!s->set.damaged));
    json_object_set_new(top, "checksums", json_integer((json_int_t)summed));
    return top;
}

int inspect_set_show(const inspect_set *s, const inspect *o, sgt_error *err)
{
    const char *what = "a set of shards without a manifest";
    if (!s->folder) what = "a shard of tokens";
    else if (s->unfinished)
        what = "a set of shards, unfinished (run the same command again to finish it)";
    else if (s->manifest.options) what = "a set of shards, made by sgt-tokenize";
    return sgt_print_result(o->json, o->quiet, s->path, what, set_json(s, o), err);
}
