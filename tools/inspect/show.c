/* show.c: prints a set of shards as text or as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/json.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/inspect/inspect.h"

/* ---- texts in turn in eight buffers ---- */

enum { BUFFER = 1024 };

static char *next_buffer(void)
{
    static char buffers[8][BUFFER];
    static unsigned turn;
    return buffers[turn++ % 8];
}

const char *inspect_count(uint64_t count, const char *thing)
{
    char *text = next_buffer(), *end;
    sgt_format_count(text, BUFFER, count);
    end = text + strlen(text);
    if (thing) sprintf(end, " %.64s%s", thing, count == 1 ? "" : "s");
    return text;
}

const char *inspect_bytes(uint64_t bytes) { return sgt_format_bytes(next_buffer(), BUFFER, bytes); }

const char *inspect_name(const char *text) { return sgt_printable(next_buffer(), BUFFER, text); }

/* ---- text ---- */

typedef struct totals {
    uint64_t shards, tokens, documents, bytes;
    int documents_known;
} totals;

static totals total_of(const inspect_set *s, const char *split)
{
    totals t = {.documents_known = 1};
    for (size_t i = 0; i < s->count; i++) {
        const inspect_shard *d = &s->shards[i];
        if (split && strcmp(split, d->split)) continue;
        t.shards++;
        t.tokens += d->header.tokens;
        t.documents += d->documents;
        t.bytes += sgt_shard_bytes(&d->header);
        t.documents_known &= d->documents_known;
    }
    return t;
}

static void show_totals(FILE *to, const char *label, const totals *t)
{
    fprintf(to, "  %-12s%s in %s", label, inspect_count(t->tokens, "token"),
            inspect_count(t->shards, "shard"));
    if (t->documents_known) fprintf(to, ", %s", inspect_count(t->documents, "document"));
    fprintf(to, ", %s on disk\n", inspect_bytes(t->bytes));
}

static void show_invalid(FILE *to, const sgt_manifest *m)
{
    json_t *list = m->invalid ? json_loads(m->invalid, 0, NULL) : NULL;
    const json_t *first = json_array_get(list, 0);
    const char *path = json_string_value(json_object_get(first, "path"));
    fprintf(to, "  %-12s%s", "invalid",
            inspect_count(m->invalid_utf8, "ill-formed UTF-8 sequence"));
    if (path)
        fprintf(to, ", the first in %s at byte %" JSON_INTEGER_FORMAT, inspect_name(path),
                json_integer_value(json_object_get(first, "offset")));
    fprintf(to, "\n");
    json_decref(list);
}

void inspect_show_pairs(FILE *to, const char *label, const json_t *object)
{
    const char *key, *between = "";
    json_t *value;
    int column = fprintf(to, "  %-12s", label), wide = sgt_columns(STDOUT_FILENO) - 1;
    if (wide < 40 || wide > 100) wide = 100;
    json_object_foreach((json_t *)object, key, value)
    {
        if (json_is_array(value) || json_is_object(value)) continue;
        char *text = json_is_string(value)
                         ? strdup(json_string_value(value))
                         : sgt_json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        if (!text) sgt_no_memory();
        int n = (int)(strlen(key) + strlen(text));
        if (column + n + 3 > wide && *between) {
            fprintf(to, ",");
            column = fprintf(to, "\n%14s", "") - 1;
            between = "";
        }
        column += fprintf(to, "%s%.64s %.256s", between, inspect_name(key), inspect_name(text));
        free(text);
        between = ", ";
    }
    fprintf(to, "\n");
}

/* Print a line about a count of the manifest that is not 0. */
static void show_some(FILE *to, const char *label, uint64_t count, const char *thing,
                      const char *what)
{
    if (count) fprintf(to, "  %-12s%s%s\n", label, inspect_count(count, thing), what);
}

static void show_manifest(FILE *to, const sgt_manifest *m)
{
    fprintf(to, "  %-12s%s in %s, %s", "text", inspect_bytes(m->bytes),
            inspect_count(m->files, "file"), inspect_count(m->documents, "document"));
    if (m->tokens && m->bytes)
        fprintf(to, ", %.3g bytes a token", (double)m->bytes / (double)m->tokens);
    fprintf(to, "\n");
    show_some(to, "skipped", m->skipped, "file", ": not plain text");
    show_some(to, "left out", m->bad_lines, "line", " that hold no document");
    show_some(to, "end of text", m->eot_literals, "literal", " in the text, encoded as text");
    fprintf(to, "  %-12s%s: %s tokens, end of text %" PRIu32 ", fingerprint %016" PRIx64 "\n",
            "vocabulary", inspect_name(m->vocabulary), inspect_count(m->vocab, NULL), m->eot,
            m->fingerprint);
    json_t *options = json_loads(m->options, 0, NULL);
    inspect_show_pairs(to, "options", options);
    json_decref(options);
    if (m->invalid_utf8) show_invalid(to, m);
}

static void show_header(FILE *to, const inspect_set *s)
{
    const sgt_shard_header *h = &s->first;
    static const char *const formats[] = {
        [SGT_SHARD_LLMC] = "llm.c: a header of 20240520, 1, tokens and nothing more",
        [SGT_SHARD_RAW] = "raw: 16-bit ids without a header",
        [SGT_SHARD_MEGATRON] = "megatron: 16-bit ids, and documents in .idx"};
    if (h->format == SGT_SHARD_OWN)
        fprintf(to, "  %-12srevision %" PRIu32 "\n", "header", h->revision);
    else fprintf(to, "  %-12s%s\n", "format", formats[h->format]);
    if (h->vocab)
        fprintf(to,
                "  %-12s%" PRIu32 " tokens, end of text %" PRIu32 ", fingerprint %016" PRIx64 "\n",
                "vocabulary", h->vocab, h->eot, h->fingerprint);
    if (h->xxh3 && s->count == 1)
        fprintf(to, "  %-12s%016" PRIx64 " (XXH3-64 of the token bytes)\n", "checksum", h->xxh3);
}

static void show_kind(FILE *to, const inspect_set *s)
{
    if (!s->folder) fprintf(to, "a shard of tokens\n");
    else if (s->unfinished)
        fprintf(to, "a set of shards, unfinished (the same command again finishes it)\n");
    else
        fprintf(to, "a set of shards%s\n",
                s->manifest ? ", made by sgt-tokenize" : " without a manifest");
}

static void show(FILE *to, const inspect_set *s, const inspect *o)
{
    totals all = total_of(s, NULL);
    fprintf(to, "%s: ", inspect_name(s->path));
    show_kind(to, s);
    show_totals(to, "tokens", &all);
    for (int i = 0; i < INSPECT_SPLITS && s->folder; i++) {
        totals t = total_of(s, inspect_splits[i]);
        if (t.shards && t.shards < all.shards) show_totals(to, inspect_splits[i], &t);
    }
    if (s->manifest) show_manifest(to, s->manifest);
    else if (s->count) show_header(to, s);
    if (!o->verify) return;
    size_t unsaid = 0;
    for (size_t i = 0; i < s->count; i++) unsaid += !s->shards[i].header.xxh3;
    fprintf(to, "  %-12ssizes and ids are right, %s\n", "verified",
            !unsaid             ? "checksums too"
            : unsaid < s->count ? "and the checksums that are there"
                                : "no checksum is there to compare");
}

/* ---- JSON ---- */

static json_t *hex(uint64_t v) { return v ? sgt_json_hex(v) : json_null(); }

static json_t *count_or_null(uint64_t v, int known)
{
    return known ? json_integer((json_int_t)v) : json_null();
}

static json_t *shard_json(const inspect_shard *s)
{
    const char *slash = strrchr(s->path, '/'), *name = slash ? slash + 1 : s->path;
    return json_pack("{s:o, s:s*, s:s, s:I, s:o, s:I, s:o, s:o*}", "file",
                     sgt_json_text(name, strlen(name)), "split", *s->split ? s->split : NULL,
                     "format", sgt_shard_format_name(s->header.format), "tokens",
                     (json_int_t)s->header.tokens, "documents",
                     count_or_null(s->documents, s->documents_known), "bytes",
                     (json_int_t)sgt_shard_bytes(&s->header), "xxh3", hex(s->header.xxh3), "damage",
                     s->damage ? sgt_json_text(s->damage, strlen(s->damage)) : NULL);
}

static json_t *vocabulary_json(const inspect_set *s)
{
    const sgt_shard_header *h = &s->first;
    const sgt_manifest *m = s->manifest;
    int known = m || h->vocab;
    return json_pack("{s:s*, s:o, s:o, s:o}", "name", m ? m->vocabulary : NULL, "size",
                     count_or_null(m ? m->vocab : h->vocab, known), "eot",
                     count_or_null(m ? m->eot : h->eot, known), "fingerprint",
                     hex(m ? m->fingerprint : h->fingerprint));
}

static json_t *splits_json(const inspect_set *s)
{
    json_t *o = json_object();
    for (int i = 0; i < INSPECT_SPLITS; i++) {
        totals t = total_of(s, inspect_splits[i]);
        if (!t.shards) continue;
        json_object_set_new(o, inspect_splits[i],
                            json_pack("{s:I, s:I, s:o}", "shards", (json_int_t)t.shards, "tokens",
                                      (json_int_t)t.tokens, "documents",
                                      count_or_null(t.documents, t.documents_known)));
    }
    return o;
}

/* Add what the manifest says of the text that the set was made from. */
static void add_manifest(json_t *top, const sgt_manifest *m)
{
    json_t *more =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "bytes", (json_int_t)m->bytes, "files",
                  (json_int_t)m->files, "invalid_utf8", (json_int_t)m->invalid_utf8, "bad_lines",
                  (json_int_t)m->bad_lines, "eot_literals", (json_int_t)m->eot_literals, "skipped",
                  (json_int_t)m->skipped, "options", json_loads(m->options, 0, NULL));
    json_object_update(top, more);
    json_decref(more);
}

static json_t *set_json(const inspect_set *s, const inspect *o)
{
    const sgt_manifest *m = s->manifest;
    json_t *shards = json_array();
    for (size_t i = 0; i < s->count; i++) json_array_append_new(shards, shard_json(&s->shards[i]));
    json_t *top =
        json_pack("{s:s, s:o, s:I, s:o, s:o*}", "kind", s->folder ? "shards" : "shard", "path",
                  sgt_json_text(s->path, strlen(s->path)), "tokens", (json_int_t)s->tokens,
                  "documents", count_or_null(s->documents, s->documents_known), "unfinished",
                  s->folder ? json_boolean(s->unfinished) : NULL);
    if (m) add_manifest(top, m);
    json_object_set_new(top, "vocabulary", vocabulary_json(s));
    if (s->folder) json_object_set_new(top, "splits", splits_json(s));
    json_object_set_new(top, "shards", shards);
    if (o->verify) json_object_set_new(top, "verified", json_boolean(!s->damaged));
    return top;
}

int inspect_set_show(const inspect_set *s, const inspect *o, sgt_error *err)
{
    if (o->json) return sgt_print_json(set_json(s, o), JSON_INDENT(2), err);
    if (o->quiet) return SGT_OK;
    sgt_wrapped w;
    show(sgt_wrapped_open(&w), s, o);
    sgt_wrapped_close(&w);
    return SGT_OK;
}
