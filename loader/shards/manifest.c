/* manifest.c: read and write manifest.json with jansson. Checksums and the fingerprint are strings
 * of 16 hex digits, because JSON numbers cannot hold every 64-bit number. The order of names is
 * fixed, so the same content always gives the same bytes. */
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
/* largest manifest in bytes; a million shards take 130 MB */
#define MAX_BYTES ((size_t)1 << 30)
/* fewest bytes of a manifest per JSON value, on average: sgt writes 21, and without white space
 * 13 */
#define FEWEST_BYTES 12
#define SOME_VALUES 65536               /* JSON values allowed in a file of any size */
#define MOST_TOKENS (UINT64_C(1) << 60) /* tokens of a file without a header; 2^61 bytes */

/* The totals, in the order in which they are written; an optional one is not written if it is 0. */
static const struct {
    const char *name;
    size_t offset;
    int optional;
} totals_fields[] = {{"tokens", offsetof(sgt_manifest, tokens), 0},
                     {"documents", offsetof(sgt_manifest, documents), 0},
                     {"bytes", offsetof(sgt_manifest, bytes), 0},
                     {"files", offsetof(sgt_manifest, files), 0},
                     {"invalid_utf8", offsetof(sgt_manifest, invalid_utf8), 0},
                     {"bad_lines", offsetof(sgt_manifest, bad_lines), 1},
                     {"lone_surrogates", offsetof(sgt_manifest, lone_surrogates), 1},
                     {"eot_literals", offsetof(sgt_manifest, eot_literals), 1},
                     {"duplicates", offsetof(sgt_manifest, duplicates), 1},
                     {"skipped", offsetof(sgt_manifest, skipped), 1}};
#define TOTALS (sizeof totals_fields / sizeof *totals_fields)

/* ---- writing ---- */

static json_t *shard_object(const sgt_manifest_shard *s)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:o}", "file", s->file, "split", s->split, "tokens",
                     (json_int_t)s->tokens, "documents", (json_int_t)s->documents, "xxh3",
                     sgt_json_hex(s->xxh3));
}

static json_t *totals_object(const sgt_manifest *m)
{
    json_t *totals = json_object();
    for (size_t i = 0; i < TOTALS && totals; i++) {
        uint64_t total;
        memcpy(&total, (const char *)m + totals_fields[i].offset, sizeof total);
        if (!total && totals_fields[i].optional) continue;
        if (json_object_set_new(totals, totals_fields[i].name, json_integer((json_int_t)total)) <
            0) {
            json_decref(totals);
            return NULL;
        }
    }
    return totals;
}

/* Return the manifest's JSON, or NULL. */
static json_t *to_json(const sgt_manifest *m)
{
    json_t *shards = json_array();
    int bad = 0;
    for (size_t i = 0; i < m->count; i++)
        bad |= json_array_append_new(shards, shard_object(&m->shards[i]));
    json_t *o = json_pack("{s:i, s:o, s:{s:s, s:o, s:I, s:I}, s:o, s:o, s:o}", "version", VERSION,
                          "options", json_loads(m->options ? m->options : "{}", 0, NULL),
                          "vocabulary", "name", m->vocabulary, "fingerprint",
                          sgt_json_hex(m->fingerprint), "size", (json_int_t)m->vocab, "eot",
                          (json_int_t)m->eot, "shards", shards, "totals", totals_object(m),
                          "invalid_utf8_at", json_loads(m->invalid ? m->invalid : "[]", 0, NULL));
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
    if (text) text[n] = '\n'; /* replace the NUL by a newline: sgt_file_put takes a length */
    int rc =
        text ? sgt_file_put(path, text, n + 1, err)
             : sgt_fail(err, SGT_ENOMEM, "%s: out of memory, or a name in it is not UTF-8", path);
    json_decref(o);
    free(text);
    return rc;
}

/* ---- reading ---- */

typedef struct source {
    const char *path;
    sgt_error *err;
} source;

static int wrong(const source *s, const char *field, const char *wanted)
{
    return sgt_fail(s->err, SGT_EFORMAT, "%s: field %s: missing, or not %s", s->path, field,
                    wanted);
}

static int read_count(uint64_t *out, const json_t *o, const char *field, const source *s)
{
    const json_t *v = json_object_get(o, field);
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return wrong(s, field, "a whole number from 0");
    *out = (uint64_t)json_integer_value(v);
    return SGT_OK;
}

static int read_totals(sgt_manifest *m, const json_t *o, const source *s)
{
    for (size_t i = 0; i < TOTALS; i++) {
        uint64_t total;
        const char *name = totals_fields[i].name;
        if (totals_fields[i].optional && !json_object_get(o, name)) continue;
        int rc = read_count(&total, o, name, s);
        if (rc < 0) return rc;
        memcpy((char *)m + totals_fields[i].offset, &total, sizeof total);
    }
    return SGT_OK;
}

static int read_u32(uint32_t *out, const json_t *o, const char *field, const source *s)
{
    uint64_t v;
    int rc = read_count(&v, o, field, s);
    if (rc < 0) return rc;
    if (v > 65536) return wrong(s, field, "a number up to 65536");
    *out = (uint32_t)v;
    return SGT_OK;
}

static int read_hex(uint64_t *out, const json_t *o, const char *field, const source *s)
{
    const char *text = json_string_value(json_object_get(o, field));
    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return wrong(s, field, "16 hex digits in a string");
    *out = strtoull(text, NULL, 16);
    return SGT_OK;
}

static int read_text(char *out, size_t size, const json_t *o, const char *field, const source *s)
{
    const char *text = json_string_value(json_object_get(o, field));
    size_t n = text ? strlen(text) : 0;
    if (!n || n >= size) return wrong(s, field, "a short string");
    memcpy(out, text, n + 1);
    return SGT_OK;
}

/* Accept only a plain name beside the manifest: no slash, and neither "." nor "..". */
static int read_shard(sgt_manifest_shard *d, const json_t *o, const source *s)
{
    int rc;
    if ((rc = read_text(d->file, sizeof d->file, o, "file", s)) < 0 ||
        (rc = read_text(d->split, sizeof d->split, o, "split", s)) < 0 ||
        (rc = read_count(&d->tokens, o, "tokens", s)) < 0 ||
        (rc = read_count(&d->documents, o, "documents", s)) < 0 ||
        (rc = read_hex(&d->xxh3, o, "xxh3", s)) < 0)
        return rc;
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
    /* no overflow: each of the n objects took at least a byte of a text of at most MAX_BYTES */
    m->shards = calloc(n + 1, sizeof *m->shards);
    if (!m->shards) return sgt_fail_memory(s->err, s->path);
    for (; m->count < n; m->count++) {
        sgt_manifest_shard *d = &m->shards[m->count];
        int rc = read_shard(d, json_array_get(list, m->count), s);
        if (rc < 0) return rc;
        if (d->tokens > (m->foreign ? MOST_TOKENS : SGT_SHARD_MAX_TOKENS))
            return wrong(s, "tokens", "what a shard can hold");
    }
    return SGT_OK;
}

static void read_layout(sgt_manifest *m, const json_t *options)
{
    const char *layout = json_string_value(json_object_get(options, "shards"));
    m->foreign = layout != NULL;
    m->raw = layout && strcmp(layout, "megatron") != 0;
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
    uint64_t version;
    int rc = read_count(&version, o, "version", s);
    if (rc < 0) return rc;
    if (version != VERSION)
        return sgt_fail(s->err, SGT_EFORMAT,
                        "%s: version %" PRIu64 ", expected %d (made by a newer sgt?)", s->path,
                        version, VERSION);
    if (!json_is_object(options)) return wrong(s, "options", "an object");
    if (invalid && !json_is_array(invalid)) return wrong(s, "invalid_utf8_at", "an array");
    read_layout(m, options);
    if ((rc = read_json_text(&m->options, options, s)) < 0) return rc;
    if (json_array_size(invalid) && (rc = read_json_text(&m->invalid, invalid, s)) < 0) return rc;
    if ((rc = read_text(m->vocabulary, sizeof m->vocabulary, vocabulary, "name", s)) < 0 ||
        (rc = read_hex(&m->fingerprint, vocabulary, "fingerprint", s)) < 0 ||
        (rc = read_u32(&m->vocab, vocabulary, "size", s)) < 0 ||
        (rc = read_u32(&m->eot, vocabulary, "eot", s)) < 0 ||
        (rc = read_totals(m, json_object_get(o, "totals"), s)) < 0)
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
