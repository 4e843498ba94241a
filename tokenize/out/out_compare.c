/* out_compare.c: compare what is in OUT with the request of this run. */
#include "tokenize/out/out_compare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "loader/shards/shard.h"
#include "tokenize/input/feed.h"
#include "tokenize/vocab/vocab.h"
#include "tokenize/out/writer.h"

#define MEGATRON_INDEX 42 /* bytes of Megatron-LM's index for no document (megatron.h) */

/* ---- files ---- */

int sgt_out_file_exists(const char *folder, const char *name)
{
    struct stat st;
    char *path = sgt_join(folder, name);
    int there = path && lstat(path, &st) == 0;
    free(path);
    return there;
}

int sgt_out_holds_other_than(const char *folder, const char *const *names, size_t count)
{
    int found = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && !found && (e = readdir(d));) {
        found = strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
        for (size_t i = 0; i < count && found; i++) found = strcmp(e->d_name, names[i]) != 0;
    }
    if (d) closedir(d);
    return found;
}

int sgt_out_is_part(const char *name)
{
    if (!strcmp(name, SGT_OUT_SORTING) || !strcmp(name, SGT_OUT_SET)) return 1;
    return !strncmp(name, "part-", 5) && strspn(name + 5, "0123456789") == 6 && !name[11];
}

int sgt_out_has_parts(const char *work)
{
    int found = 0;
    DIR *d = opendir(work);
    for (const struct dirent *e; d && !found && (e = readdir(d));)
        found = sgt_out_is_part(e->d_name);
    if (d) closedir(d);
    return found;
}

int sgt_out_check_size(const char *folder, const char *name, uint64_t want, int at_least,
                       sgt_error *err)
{
    struct stat st;
    char *path = sgt_join(folder, name);
    int rc = path ? SGT_OK : sgt_fail_memory(err, folder);
    if (!rc && stat(path, &st) < 0)
        rc =
            sgt_fail(err, SGT_EFORMAT, "%s: is gone since it was written: %s (--force starts over)",
                     path, strerror(errno));
    if (!rc && (at_least ? (uint64_t)st.st_size < want : (uint64_t)st.st_size != want))
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: %lld bytes, %" PRIu64 " were written (--force starts over)", path,
                      (long long)st.st_size, want);
    free(path);
    return rc;
}

/* ---- options ---- */

/* Return an option's value as a user would type it on the command line, malloc'd. */
static char *as_typed(const json_t *v)
{
    return json_is_string(v) ? strdup(json_string_value(v))
           : v               ? sgt_json_dumps(v, JSON_ENCODE_ANY)
                             : strdup("not given");
}

/* Fail: option `key` has the value `a` in OUT, and the value `b` in this run. */
static int differs(const char *out, const char *key, const json_t *a, const json_t *b,
                   sgt_error *err)
{
    char *had = as_typed(a), *has = as_typed(b), *option = strdup(key);
    int rc;
    for (char *p = option; p && *p; p++)
        if (*p == '_') *p = '-';
    if (!had || !has || !option) rc = sgt_fail_memory(err, out);
    else
        rc = sgt_fail(err, SGT_EFORMAT, "%s: made with --%s %s, now %s (--force replaces it)", out,
                      option, had, has);
    free(had);
    free(has);
    free(option);
    return rc;
}

/* Compare options as JSON objects: `a` those of OUT, `b` those of this run. */
static int compare_objects(const char *out, json_t *a, json_t *b, sgt_error *err)
{
    const char *key;
    json_t *value;
    int rc = SGT_OK;
    /* the layout first: it decides which other options there are */
    const json_t *x = json_object_get(a, "shards"), *y = json_object_get(b, "shards");
    if ((x || y) && !json_equal(x, y)) rc = differs(out, "shards", x, y, err);
    json_object_foreach(b, key, value) if (!rc && !json_equal(json_object_get(a, key), value)) rc =
        differs(out, key, json_object_get(a, key), value, err);
    json_object_foreach(a, key, value) if (!rc && !json_object_get(b, key)) rc =
        differs(out, key, value, NULL, err);
    return rc;
}

static int compare_options(const char *out, const char *made, const char *now, sgt_error *err)
{
    json_t *a = json_loads(made, 0, NULL), *b = json_loads(now, 0, NULL);
    int rc = json_is_object(a) && json_is_object(b)
                 ? compare_objects(out, a, b, err)
                 : sgt_fail(err, SGT_EFORMAT,
                            "%s: does not record the options that it was made with (--force "
                            "replaces it)",
                            out);
    json_decref(a);
    json_decref(b);
    return rc;
}

static int compare_vocabulary(const char *out, uint64_t made, const sgt_vocab *v, sgt_error *err)
{
    if (made == sgt_vocab_fingerprint(v)) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: made with another vocabulary: fingerprint %016" PRIx64 ", now %016" PRIx64
                    " (--force replaces it)",
                    out, made, sgt_vocab_fingerprint(v));
}

/* ---- inputs ---- */

/* Fail, and say how `line` (NULL: the list has ended) differs from input i of the corpus. */
static int other_input(const char *out, const char *line, const sgt_corpus *c, size_t i,
                       sgt_error *err)
{
    json_t *o = line ? json_loads(line, 0, NULL) : NULL;
    const char *path = json_string_value(json_object_get(o, "path"));
    const sgt_corpus_file *f = i < c->count ? &c->files[i] : NULL;
    json_int_t size = json_integer_value(json_object_get(o, "size"));
    int rc;
    if (line && !path)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: its list of inputs is damaged (--force replaces it)",
                      out);
    else if (!path)
        rc = sgt_fail(
            err, SGT_EFORMAT,
            "%s: made from other inputs: %zu of them, now %zu, %s is new (--force replaces it)",
            out, i, c->count, f->path);
    else if (!f)
        rc = sgt_fail(
            err, SGT_EFORMAT,
            "%s: made from other inputs: input %zu was %s, now there are %zu (--force replaces it)",
            out, i + 1, path, c->count);
    else if (strcmp(path, f->name))
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: made from other inputs: input %zu was %s, now %s (--force replaces it)",
                      out, i + 1, path, f->path);
    else if ((json_object_get(o, "format") != NULL) != (f->lines == 2))
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: made from other inputs: %s was read as %s, now as %s (--force replaces "
                      "it)",
                      out, f->path, f->lines ? "text" : "JSONL", f->lines ? "JSONL" : "text");
    else
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: made from other inputs: %s had %lld bytes, now %" PRIu64
                      " (--force replaces it)",
                      out, f->path, (long long)size, f->size);
    json_decref(o);
    return rc;
}

/* What is known of the inputs of an earlier run (feed.h). Each list has a line per input. */
typedef struct known {
    FILE *inputs;    /* inputs.jsonl; NULL: there is none, so inputs are compared by their hashes */
    FILE *sources;   /* sources.jsonl; NULL: there is none */
    uint64_t hashed; /* number of inputs whose hashes are in `sources` */
    const sgt_checkpoint *now; /* NULL, or how far the input after these was read */
    char *input, *source;      /* (SGT_CORPUS_LINE): the last lines read */
} known;

/* Read the next line about a file into line[SGT_CORPUS_LINE]; "" at the end. */
static void next_line(char *line, FILE *f)
{
    do
        if (!f || !sgt_file_line(line, SGT_CORPUS_LINE, f)) *line = 0;
    while (*line && sgt_corpus_is_document(line));
}

/* Check that input i, which is not known to be unchanged, has the bytes that were read: all of it,
 * or the part that an interrupted run has read. */
static int compare_bytes(const sgt_out_request *r, const known *k, size_t i, sgt_error *err)
{
    static const char key[] = "\"xxh3\": \"";
    const sgt_corpus_file *f = &r->corpus->files[i];
    const char *at = strstr(k->source, key);
    const int begun = k->now && i == k->now->file && k->now->hashed > f->from_row;
    uint64_t hash = 0, was = at ? strtoull(at + sizeof key - 1, NULL, 16) : 0;
    if (!*k->source && !begun) return SGT_OK; /* not read yet, or compared by the parts */
    if (*k->source && !at) return other_input(r->path, "", r->corpus, i, err);
    if (!at) was = k->now->hash;
    int rc = sgt_same_hash(&hash, f, r->field ? r->field : "text", at ? UINT64_MAX : k->now->hashed,
                           r->stop, err);
    if (rc < 0 || hash == was) return rc;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: made from other inputs: %s has other bytes than then (--force replaces "
                    "it)",
                    r->path, f->path);
}

/* Compare the next lines with input i of the corpus. *changed counts inputs that do not have the
 * device, inode and time that are recorded. */
static int compare_input(const sgt_out_request *r, known *k, size_t i, uint64_t *changed,
                         sgt_error *err)
{
    const sgt_corpus *c = r->corpus;
    next_line(k->input, k->inputs);
    if (i < k->hashed) next_line(k->source, k->sources);
    else *k->source = 0;
    const char *line = k->hashed == UINT64_MAX ? k->source : k->input;
    if (!*line) return other_input(r->path, NULL, c, i, err);
    if (i == c->count) return other_input(r->path, line, c, i, err);
    char *name = sgt_corpus_describe(c, i, c->files[i].size), *stat = sgt_corpus_input(c, i);
    int rc = SGT_OK;
    if (!name || !stat) rc = sgt_fail_memory(err, r->path);
    else if (strncmp(line, name, strlen(name))) rc = other_input(r->path, line, c, i, err);
    else if (strcmp(k->input, stat)) {
        *changed += 1;
        rc = c->stream ? SGT_OK : compare_bytes(r, k, i, err);
    }
    free(name);
    free(stat);
    return rc;
}

static int more_lines(known *k)
{
    next_line(k->hashed == UINT64_MAX ? k->source : k->input,
              k->hashed == UINT64_MAX ? k->sources : k->inputs);
    return k->hashed == UINT64_MAX ? *k->source : *k->input;
}

/* Open FOLDER/NAME in *f. */
static int open_list(FILE **f, const char *folder, const char *name, sgt_error *err)
{
    char *path = sgt_join(folder, name);
    sgt_error why;
    int rc = path ? sgt_file_lines(f, path, &why) : sgt_fail_memory(err, folder);
    if (path && rc < 0) sgt_fail(err, rc, "%s (--force starts over)", why.text);
    free(path);
    return rc;
}

/* Compare what FOLDER says of the inputs with the corpus: the folder of a complete set, or, with
 * the journal's state `now`, the .work of a run that is resumed. Record new inodes and times once
 * all inputs are known to be the same. */
static int compare_inputs(const sgt_out_request *r, const char *folder, const sgt_checkpoint *now,
                          sgt_error *err)
{
    const char *name = now ? "inputs.jsonl" : SGT_OUT_INPUTS;
    known k = {.hashed = now ? now->file : UINT64_MAX,
               .now = now,
               .input = malloc(SGT_CORPUS_LINE),
               .source = malloc(SGT_CORPUS_LINE)};
    uint64_t changed = 0;
    int rc = k.input && k.source ? SGT_OK : sgt_fail_memory(err, folder);
    if (!rc && (now || sgt_out_file_exists(folder, name)))
        rc = open_list(&k.inputs, folder, name, err);
    if (!rc && (!now || (now->sources && sgt_out_file_exists(folder, "sources.jsonl"))))
        rc = open_list(&k.sources, folder, "sources.jsonl", err);
    /* a run that was killed while it completed OUT has moved it there */
    if (!rc && !k.sources && now && now->sources)
        rc = open_list(&k.sources, r->path, "sources.jsonl", err);
    for (size_t i = 0; i < r->corpus->count && !rc; i++)
        rc = compare_input(r, &k, i, &changed, err);
    if (!rc && more_lines(&k))
        rc = other_input(r->path, now ? k.input : k.source, r->corpus, r->corpus->count, err);
    /* A complete set may be read-only. With parts, ranks are here at once, and the one that takes
     * OUT alone records them. */
    if (!rc && changed && !now) sgt_out_write_inputs(folder, name, r->corpus, NULL);
    if (!rc && changed && now && !r->journal_options)
        rc = sgt_out_write_inputs(folder, name, r->corpus, err);
    if (k.inputs) fclose(k.inputs);
    if (k.sources) fclose(k.sources);
    free(k.input);
    free(k.source);
    return rc;
}

int sgt_out_compare_inputs(const sgt_out_request *r, const char *folder, sgt_error *err)
{
    return compare_inputs(r, folder, NULL, err);
}

int sgt_out_write_inputs(const char *folder, const char *name, const sgt_corpus *c, sgt_error *err)
{
    char *path = NULL, *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    int rc = f && (path = sgt_join(folder, name)) ? SGT_OK : sgt_fail_memory(err, folder);
    for (size_t i = 0; i < c->count && !rc; i++) {
        char *line = sgt_corpus_input(c, i);
        if (!line || fputs(line, f) < 0) rc = sgt_fail_memory(err, folder);
        free(line);
    }
    if (f && fclose(f) != 0 && !rc) rc = sgt_fail_memory(err, folder);
    if (!rc) rc = sgt_file_put(path, text, n, err);
    free(path);
    free(text);
    return rc;
}

/* ---- OUT as a whole ---- */

/* Check the sizes of all files. Without a header, they have another trainer's layout; the index of
 * Megatron-LM has 20 bytes for a document. */
static int check_shards(const char *out, const sgt_manifest *m, sgt_error *err)
{
    int rc = SGT_OK;
    uint64_t header = m->foreign ? 0 : SGT_SHARD_HEADER;
    for (size_t i = 0; i < m->count && !rc; i++) {
        const sgt_manifest_shard *s = &m->shards[i];
        char idx[80];
        snprintf(idx, sizeof idx, "%.*s.idx", (int)strcspn(s->file, "."), s->file);
        rc = sgt_out_check_size(out, s->file, header + 2 * s->tokens, 0, err);
        if (!rc && !m->raw)
            rc = sgt_out_check_size(
                out, idx, m->foreign ? MEGATRON_INDEX + 20 * s->documents : 8 * s->documents, 0,
                err);
    }
    return rc;
}

int sgt_out_is_complete(const sgt_out_request *r, sgt_error *err)
{
    sgt_manifest m;
    if (!sgt_out_file_exists(r->path, "manifest.json")) return 0;
    int rc = sgt_manifest_read(&m, r->path, err);
    if (rc < 0) return rc;
    if ((rc = compare_vocabulary(r->path, m.fingerprint, r->vocab, err)) < 0 ||
        (rc = compare_options(r->path, m.options, r->options, err)) < 0)
        goto done;
    if (r->corpus->stream) {
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: complete, and standard input cannot be compared with what it was made "
                      "from (--force replaces it)",
                      r->path);
        goto done;
    }
    if ((rc = compare_inputs(r, r->path, NULL, err)) == 0) rc = check_shards(r->path, &m, err);
done:
    sgt_manifest_free(&m);
    return rc < 0 ? rc : 1;
}

/* Check that the journal makes sense for these inputs and options; its contents are not trusted. */
static int check_journal(const sgt_journal *j, const sgt_out_request *r, sgt_error *err)
{
    const sgt_corpus_file *f =
        j->now.file < r->corpus->count ? &r->corpus->files[j->now.file] : NULL;
    int sound = f ? !sgt_corpus_sought(f) || j->now.offset <= f->size
                  : j->now.file == r->corpus->count && !j->now.offset;
    for (size_t i = 0; i < j->invalid_count; i++) sound &= j->invalid[i].file < r->corpus->count;
    for (int s = 0; s < SGT_SPLITS; s++) {
        sound &= j->count[s] <= SGT_WRITER_SHARDS && j->now.tokens[s] <= SGT_SHARD_MAX_TOKENS &&
                 j->now.documents[s] <= j->now.tokens[s];
        for (size_t i = 0; i < j->count[s]; i++)
            sound &= j->shards[s][i].tokens <= SGT_SHARD_MAX_TOKENS &&
                     j->shards[s][i].documents <= j->shards[s][i].tokens;
    }
    return sound ? SGT_OK
                 : sgt_fail(err, SGT_EFORMAT, "%s: damaged (--force starts over)", j->path);
}

static int compare_version(const sgt_journal *j, const sgt_out_request *r, sgt_error *err)
{
    if (!j->other || r->corpus->stream) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: begun by another version, whose journal this one cannot continue (finish "
                    "it with that version, or --force starts over)",
                    r->path);
}

int sgt_out_matches(const sgt_journal *j, const sgt_out_request *r, const char *work,
                    sgt_error *err)
{
    static const char *const expected[] = {".work", "lost+found"};
    int rc;
    if (!j && sgt_out_holds_other_than(r->path, expected, 2))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: OUT is not empty, and nothing says what made it (name a new folder, "
                        "or --force writes beside what is there)",
                        r->path);
    if (!j || !j->states) return 0;
    if ((rc = compare_vocabulary(r->path, j->fingerprint, r->vocab, err)) == 0 &&
        (rc = compare_options(r->path, j->options,
                              r->journal_options ? r->journal_options : r->options, err)) == 0 &&
        (rc = compare_version(j, r, err)) == 0 &&
        (rc = compare_inputs(r, work, &j->now, err)) == 0 && !r->corpus->stream)
        rc = check_journal(j, r, err);
    return rc < 0 ? rc : !r->corpus->stream;
}

int sgt_out_may_resume(const sgt_journal *j, const sgt_out_request *r, const char *work,
                       sgt_error *err)
{
    int rc = sgt_out_matches(j, r, work, err);
    /* without a complete shard or part, starting over loses nothing */
    return rc < 0 && j && sgt_journal_empty(j) && !sgt_out_has_parts(work) ? 0 : rc;
}
