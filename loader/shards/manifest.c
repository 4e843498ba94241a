/* manifest.c: read and write manifest.json with the library jansson. Checksums and the fingerprint
 * are written as strings of 16 hex digits, because JSON numbers cannot hold every 64-bit integer.
 * Fields are written in a fixed order, so that the same content always gives the same bytes. */
#include "loader/shards/manifest.h"

#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "loader/shards/shard.h"

#define VERSION 1
/* maximum size in bytes of a manifest; the manifest of a million shards takes 130 MB */
#define MAX_BYTES ((size_t)1 << 30)
/* minimum number of bytes per JSON value: a manifest of n bytes may have at most SOME_VALUES + n /
 * FEWEST_BYTES values. Without this limit, a small file could take much memory. Manifests that sgt
 * writes have 21 bytes per value, or 13 if white space is removed */
#define FEWEST_BYTES 12
/* number of JSON values that a manifest may have even if its text is very short (see
 * FEWEST_BYTES) */
#define SOME_VALUES 65536
/* maximum number of tokens in a shard without a header; with 2-byte ids, such a shard would have
 * 2^61 bytes */
#define MOST_TOKENS (UINT64_C(1) << 60)

/* type of a field, in JSON and in the C struct */
typedef enum kind {
    COUNT, /* uint64_t */
    SMALL, /* uint32_t, up to SGT_MOST_IDS */
    HEX,   /* uint64_t; in JSON a string of 16 hex digits */
    TEXT   /* string in an array of `size` bytes; it must not be empty */
} kind;

typedef struct field {
    const char *name;
    kind kind;
    /* 1: the field may be missing in a manifest, and is written only if it is not 0; 0: the field
     * is required */
    int optional;
    size_t offset, size;
} field;

/* the fields of the JSON objects in a manifest, in the order in which they are written */
static const field shard_fields[] = {
    {"file", TEXT, 0, offsetof(sgt_manifest_shard, file), sizeof(((sgt_manifest_shard *)0)->file)},
    {"split", TEXT, 0, offsetof(sgt_manifest_shard, split),
     sizeof(((sgt_manifest_shard *)0)->split)},
    {"tokens", COUNT, 0, offsetof(sgt_manifest_shard, tokens), 0},
    {"documents", COUNT, 0, offsetof(sgt_manifest_shard, documents), 0},
    {"xxh3", HEX, 0, offsetof(sgt_manifest_shard, xxh3), 0},
    {0}};
static const field vocabulary_fields[] = {
    {"name", TEXT, 0, offsetof(sgt_manifest, vocabulary), sizeof(((sgt_manifest *)0)->vocabulary)},
    {"fingerprint", HEX, 0, offsetof(sgt_manifest, fingerprint), 0},
    {"size", SMALL, 0, offsetof(sgt_manifest, vocab), 0},
    {"eot", SMALL, 0, offsetof(sgt_manifest, eot), 0},
    {0}};
static const field totals_fields[] = {
    {"tokens", COUNT, 0, offsetof(sgt_manifest, tokens), 0},
    {"documents", COUNT, 0, offsetof(sgt_manifest, documents), 0},
    {"bytes", COUNT, 0, offsetof(sgt_manifest, bytes), 0},
    {"files", COUNT, 0, offsetof(sgt_manifest, files), 0},
    {"invalid_utf8", COUNT, 0, offsetof(sgt_manifest, invalid_utf8), 0},
    {"bad_lines", COUNT, 1, offsetof(sgt_manifest, bad_lines), 0},
    {"lone_surrogates", COUNT, 1, offsetof(sgt_manifest, lone_surrogates), 0},
    {"eot_literals", COUNT, 1, offsetof(sgt_manifest, eot_literals), 0},
    {"duplicates", COUNT, 1, offsetof(sgt_manifest, duplicates), 0},
    {"skipped", COUNT, 1, offsetof(sgt_manifest, skipped), 0},
    {0}};
static const field version_field[] = {{"version", COUNT, 0, 0, 0}, {0}};

/* ---- writing ---- */

/* Return a JSON object with the fields f of the struct `from`. Return NULL if memory runs out, or
 * if a string is not UTF-8. */
static json_t *write_fields(const void *from, const field *f)
{
    json_t *o = json_object();
    int bad = 0;
    for (; f->name; f++) {
        const void *at = (const char *)from + f->offset;
        uint64_t n = 0;
        if (f->kind == SMALL) n = *(const uint32_t *)at;
        if (f->kind == COUNT || f->kind == HEX) n = *(const uint64_t *)at;
        if (f->optional && !n) continue;
        if (f->kind == TEXT) bad |= json_object_set_new(o, f->name, json_string(at));
        else if (f->kind == HEX) bad |= json_object_set_new(o, f->name, sgt_json_hex(n));
        else bad |= json_object_set_new(o, f->name, json_integer((json_int_t)n));
    }
    if (!bad) return o;
    json_decref(o);
    return NULL;
}

/* Return the manifest as a JSON object. Return NULL if memory runs out, or if a string is not
 * UTF-8. */
static json_t *to_json(const sgt_manifest *m)
{
    json_t *shards = json_array();
    int bad = 0;
    for (size_t i = 0; i < m->count; i++)
        bad |= json_array_append_new(shards, write_fields(&m->shards[i], shard_fields));
    json_t *o = json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "version", VERSION, "options",
                          json_loads(m->options ? m->options : "{}", 0, NULL), "vocabulary",
                          write_fields(m, vocabulary_fields), "shards", shards, "totals",
                          write_fields(m, totals_fields), "invalid_utf8_at",
                          json_loads(m->invalid ? m->invalid : "[]", 0, NULL));
    if (!bad) return o;
    json_decref(o);
    return NULL;
}

int sgt_manifest_write(const sgt_manifest *m, const char *folder, sgt_error *err)
{
    char path[SGT_PATH];
    json_t *o = to_json(m);
    char *text = sgt_json_dumps(o, JSON_INDENT(1));
    size_t n = text ? strlen(text) : 0;
    sgt_path(path, folder, "manifest.json");
    /* replace the final NUL with a newline; sgt_file_put needs no NUL */
    if (text) text[n] = '\n';
    int rc =
        text ? sgt_file_put(path, text, n + 1, err)
             : sgt_fail(err, SGT_ENOMEM,
                        "%s: cannot write it: out of memory, or a file name is not UTF-8", path);
    json_decref(o);
    free(text);
    return rc;
}

/* ---- reading ---- */

typedef struct source {
    const char *path;
    sgt_error *err;
} source;

static int wrong(const source *s, const char *name, const char *wanted)
{
    return sgt_fail(s->err, SGT_EFORMAT, "%s: field %s is missing or not %s", s->path, name,
                    wanted);
}

/* Copy the fields f of the JSON object o into the struct `to`, after checking their types and
 * ranges. */
static int read_fields(void *to, const json_t *o, const field *f, const source *s)
{
    for (; f->name; f++) {
        void *at = (char *)to + f->offset;
        const json_t *v = json_object_get(o, f->name);
        const json_int_t n = json_is_integer(v) ? json_integer_value(v) : -1;
        const char *text = json_string_value(v);
        const size_t length = text ? strlen(text) : 0;
        if (f->optional && !v) continue;
        if (f->kind == COUNT && n < 0) return wrong(s, f->name, "a whole number");
        if (f->kind == SMALL && (n < 0 || n > SGT_MOST_IDS))
            return wrong(s, f->name, "a whole number up to 1048576");
        if (f->kind == HEX && (length != 16 || strspn(text, "0123456789abcdef") != 16))
            return wrong(s, f->name, "a string of 16 hex digits");
        if (f->kind == TEXT && (!length || length >= f->size))
            return wrong(s, f->name, "a short string");
        if (f->kind == COUNT) *(uint64_t *)at = (uint64_t)n;
        if (f->kind == SMALL) *(uint32_t *)at = (uint32_t)n;
        if (f->kind == HEX) *(uint64_t *)at = strtoull(text, NULL, 16);
        if (f->kind == TEXT) memcpy(at, text, length + 1);
    }
    return SGT_OK;
}

/* Read the entry of a shard. The shard's name must be a plain file name: it must contain no slash
 * and must not be "." or "..". */
static int read_shard(sgt_manifest_shard *d, const json_t *o, const source *s)
{
    int rc = read_fields(d, o, shard_fields, s);
    if (rc < 0) return rc;
    if (strchr(d->file, '/') || !strcmp(d->file, ".") || !strcmp(d->file, ".."))
        return sgt_fail(s->err, SGT_EFORMAT, "%s: shard \"%s\" lies outside the folder: refused",
                        s->path, d->file);
    return SGT_OK;
}

static int read_shards(sgt_manifest *m, const json_t *o, const source *s)
{
    const json_t *list = json_object_get(o, "shards");
    if (!json_is_array(list)) return wrong(s, "shards", "an array");
    size_t n = json_array_size(list);
    /* n + 1 cannot overflow, because n objects take at least n bytes of text, and the text has at
     * most MAX_BYTES bytes */
    m->shards = calloc(n + 1, sizeof *m->shards);
    if (!m->shards) return sgt_fail_memory(s->err, s->path);
    for (; m->count < n; m->count++) {
        sgt_manifest_shard *d = &m->shards[m->count];
        int rc = read_shard(d, json_array_get(list, m->count), s);
        if (rc < 0) return rc;
        if (d->tokens > (m->foreign ? MOST_TOKENS : SGT_SHARD_MAX_TOKENS))
            return wrong(s, "tokens", "a number of tokens that a shard can have");
    }
    return SGT_OK;
}

static int read_json_text(char **out, const json_t *v, const source *s)
{
    *out = sgt_json_dumps(v, JSON_COMPACT);
    return *out ? SGT_OK : sgt_fail_memory(s->err, s->path);
}

static int from_json(sgt_manifest *m, const json_t *o, const source *s)
{
    const json_t *options = json_object_get(o, "options"),
                 *vocabulary = json_object_get(o, "vocabulary");
    const json_t *invalid = json_object_get(o, "invalid_utf8_at");
    uint64_t version = 0;
    int rc = read_fields(&version, o, version_field, s);
    if (rc < 0) return rc;
    if (version != VERSION)
        return sgt_fail(s->err, SGT_EFORMAT,
                        "%s: version %" PRIu64 ", expected %d (made by a newer sgt?)", s->path,
                        version, VERSION);
    if (!json_is_object(options)) return wrong(s, "options", "an object");
    if (invalid && !json_is_array(invalid)) return wrong(s, "invalid_utf8_at", "an array");
    const char *layout = json_string_value(json_object_get(options, "shards"));
    m->foreign = layout != NULL;
    m->raw = layout && strcmp(layout, "megatron") != 0;
    if ((rc = read_json_text(&m->options, options, s)) < 0) return rc;
    if (json_array_size(invalid) && (rc = read_json_text(&m->invalid, invalid, s)) < 0) return rc;
    if ((rc = read_fields(m, vocabulary, vocabulary_fields, s)) < 0 ||
        (rc = read_fields(m, json_object_get(o, "totals"), totals_fields, s)) < 0)
        return rc;
    return read_shards(m, o, s);
}

int sgt_manifest_read(sgt_manifest *m, const char *folder, sgt_error *err)
{
    sgt_manifest got = {0};
    char *text = NULL, path[SGT_PATH];
    json_t *o = NULL;
    size_t n;
    int rc = sgt_file_get(&text, &n, sgt_path(path, folder, "manifest.json"), MAX_BYTES, err);
    if (rc == SGT_OK) rc = sgt_json_object(&o, text, n, SOME_VALUES + n / FEWEST_BYTES, path, err);
    if (rc == SGT_OK) rc = from_json(&got, o, &(source){path, err});
    got.hash = rc == SGT_OK ? XXH3_64bits(text, n) : 0;
    json_decref(o);
    free(text);
    if (rc < 0) sgt_manifest_free(&got);
    else *m = got;
    return sgt_fail_hint(err, rc, "damaged: copy the folder again, or tokenize again with --force");
}

int sgt_manifest_find(sgt_manifest *m, const char *folder, sgt_error *err)
{
    char path[SGT_PATH];
    *m = (sgt_manifest){0};
    if (sgt_file_gone(sgt_path(path, folder, "manifest.json"))) return SGT_OK;
    return sgt_manifest_read(m, folder, err);
}

void sgt_manifest_free(sgt_manifest *m)
{
    free(m->options);
    free(m->invalid);
    free(m->shards);
    *m = (sgt_manifest){0};
}

/* ---- tokenizer_config.json ---- */

int sgt_tokenizer_config_write(const char *dir, const char *eot, uint32_t positions, sgt_error *err)
{
    char path[SGT_PATH];
    json_t *json =
        json_pack(positions ? "{s:s, s:s*, s:s*, s:b, s:I}" : "{s:s, s:s*, s:s*, s:b}",
                  "tokenizer_class", "PreTrainedTokenizerFast", "bos_token", eot, "eos_token", eot,
                  "clean_up_tokenization_spaces", 0, "model_max_length", (json_int_t)positions);
    char *text = sgt_json_dumps(json, JSON_INDENT(2));
    sgt_path(path, dir, SGT_TOKENIZER_CONFIG);
    int rc = text ? sgt_file_put(path, text, strlen(text), err) : sgt_fail_memory(err, dir);
    json_decref(json);
    free(text);
    return rc;
}
