/* checkpoint.c: writes the files of a checkpoint to a temporary folder, and reads state.json. run.c
 * renames the complete folder, so that a checkpoint appears atomically. */
#include "train/run/checkpoint.h"

#include <float.h>
#include <inttypes.h>
#include <jansson.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "train/model/model.h"
#include "train/run/safetensors.h"
#include "loader/base/json.h"
#include "loader/shards/manifest.h"

#define PIECE SGT_CHECKPOINT_PIECE
#define SUM_BYTES ((size_t)1 << 20) /* number of bytes read at a time to compute a checksum */
#define MAX_STATE ((size_t)1 << 20) /* maximum size of state.json in bytes */
#define STATE_VALUES ((size_t)1 << 16)

/* A file of tensors in a checkpoint. what: the one or two states stored in the file; prefix[i]: the
 * prefix of the names of the tensors of state what[i]. */
typedef struct tensors_file {
    const char *name, *prefix[2];
    sgt_state what[2];
} tensors_file;
static const tensors_file model_file = {"model.safetensors", {"transformer."}, {SGT_PARAMETERS}},
                          optimizer_file = {
                              "optimizer.safetensors", {"m.", "v."}, {SGT_MOMENT1, SGT_MOMENT2}};

/* ---- checksums ---- */

/* state.json stores the XXH3-64 checksum (xxhash.com) of every other file.
 *
 *     "files": {"model.safetensors": {"bytes": 1234, "xxh3": "0123456789abcdef"}, ...},
 *     "xxh3": "..."
 *
 * The last "xxh3" protects state.json itself, and is called the seal. It is the checksum of the
 * JSON object without the last "xxh3", as jansson writes the object in compact form. With the seal,
 * a flipped bit in any file of the checkpoint is detected. */

/* Add a member for the file `name`, with the file's size and checksum, to the JSON object
 * `files`. */
static int add_sum(json_t *files, const char *name, uint64_t bytes, uint64_t xxh3, sgt_error *err)
{
    json_t *sum = json_pack("{s:I, s:o}", "bytes", (json_int_t)bytes, "xxh3", sgt_json_hex(xxh3));
    if (json_object_set_new(files, name, sum) < 0) return sgt_fail_memory(err, name);
    return SGT_OK;
}

/* Set *out to the XXH3-64 of the first `bytes` bytes of the open file, which is read in blocks of
 * SUM_BYTES bytes. */
static int hash_open_file(uint64_t *out, int fd, uint64_t bytes, const char *path, sgt_error *err)
{
    int rc = SGT_OK;
    char *piece = malloc(SUM_BYTES);
    XXH3_state_t *hash = XXH3_createState();
    if (!piece || !hash) rc = sgt_fail_memory(err, path);
    else XXH3_64bits_reset(hash);
    for (uint64_t at = 0; at < bytes && rc == SGT_OK; at += SUM_BYTES) {
        size_t n = bytes - at < SUM_BYTES ? (size_t)(bytes - at) : SUM_BYTES;
        rc = sgt_pread_all(fd, piece, n, at, path, err);
        if (rc == SGT_OK) XXH3_64bits_update(hash, piece, n);
    }
    if (rc == SGT_OK) *out = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    free(piece);
    return rc;
}

/* Set *out to the XXH3-64 of the file, and *bytes to its size. If `want` is not NULL, return an
 * error if the size is not *want. */
static int hash_file(uint64_t *out, uint64_t *bytes, const uint64_t *want, const char *path,
                     sgt_error *err)
{
    struct stat st;
    /* O_NONBLOCK: opening a named pipe must not block */
    int rc, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return sgt_fail(err, SGT_EFORMAT, "%s: missing", path);
    if (fd < 0) return sgt_fail_errno(err, "%s", path);
    if (fstat(fd, &st) < 0) rc = sgt_fail_errno(err, "%s", path);
    else if (!S_ISREG(st.st_mode)) rc = sgt_fail(err, SGT_EFORMAT, "%s: not a regular file", path);
    else if (want && (uint64_t)st.st_size != *want)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: %lld bytes, but state.json says %" PRIu64, path,
                      (long long)st.st_size, *want);
    else rc = hash_open_file(out, fd, *bytes = (uint64_t)st.st_size, path, err);
    close(fd);
    return rc;
}

/* Compute the checksum of the file dir/name, and add the file to the JSON object `files`. */
static int add_file_sum(json_t *files, const char *dir, const char *name, sgt_error *err)
{
    uint64_t xxh3 = 0, bytes = 0;
    char path[SGT_PATH];
    int rc = hash_file(&xxh3, &bytes, NULL, sgt_path(path, dir, "%s", name), err);
    return rc < 0 ? rc : add_sum(files, name, bytes, xxh3, err);
}

static int check_file_sum(const json_t *sum, const char *dir, const char *name, sgt_error *err)
{
    const char *text = json_string_value(json_object_get(sum, "xxh3"));
    const json_t *size = json_object_get(sum, "bytes");
    uint64_t want = (uint64_t)json_integer_value(size), got = 0, bytes = 0;
    char path[SGT_PATH];
    if (!text || !json_is_integer(size) || strchr(name, '/'))
        return sgt_fail(err, SGT_EFORMAT, "%s/state.json: files: %s: expected bytes and xxh3", dir,
                        name);
    int rc = hash_file(&got, &bytes, &want, sgt_path(path, dir, "%s", name), err);
    if (rc == SGT_OK && got != strtoull(text, NULL, 16))
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: damaged: XXH3-64 is %016" PRIx64 ", but state.json says %.16s", path,
                      got, text);
    return rc;
}

/* Return an error unless every file that the JSON object `files` names has the stated size and
 * checksum in the folder `dir`. */
static int check_file_sums(const json_t *files, const char *dir, sgt_error *err)
{
    const char *name;
    json_t *sum;
    int rc = SGT_OK;
    if (!files) return SGT_OK;
    if (!json_is_object(files))
        return sgt_fail(err, SGT_EFORMAT, "%s/state.json: files is not an object", dir);
    json_object_foreach((json_t *)files, name,
                        sum) if ((rc = check_file_sum(sum, dir, name, err)) < 0) break;
    return rc;
}

static int hash_state(uint64_t *out, const json_t *state, const char *what, sgt_error *err)
{
    char *text = sgt_json_dumps(state, JSON_COMPACT);
    if (!text) return sgt_fail_memory(err, what);
    *out = XXH3_64bits(text, strlen(text));
    free(text);
    return SGT_OK;
}

static int seal(json_t *state, sgt_error *err)
{
    uint64_t sum = 0;
    int rc = hash_state(&sum, state, "state.json", err);
    if (rc == SGT_OK && json_object_set_new(state, "xxh3", sgt_json_hex(sum)) < 0)
        rc = sgt_fail_memory(err, "state.json");
    return rc;
}

/* Verify the seal of state.json (see "checksums" above). Accept a state.json without a seal. */
static int check_seal(json_t *state, const char *path, sgt_error *err)
{
    uint64_t sum = 0;
    const char *text = json_string_value(json_object_get(state, "xxh3"));
    if (!text) return SGT_OK;
    uint64_t want = strtoull(text, NULL, 16);
    json_object_del(state, "xxh3");
    int rc = hash_state(&sum, state, path, err);
    if (rc == SGT_OK && sum != want)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: damaged: XXH3-64 is %016" PRIx64 ", but xxh3 in it says %016" PRIx64,
                      path, sum, want);
    return rc;
}

/* ---- writing tensors ---- */

/* Return the prefix for the name of tensor `t`: `prefix`, but "" for lm_head.weight after
 * "transformer.", because the head of the transformers library is not a part of the module
 * "transformer". */
static const char *prefix_of(const char *prefix, const sgt_tensor *t)
{
    return strcmp(t->name, "lm_head.weight") == 0 && strcmp(prefix, "transformer.") == 0 ? ""
                                                                                         : prefix;
}

static int declare_all(sgt_safetensors_writer *w, const sgt_model *m, const char *prefix,
                       sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < sgt_model_tensors(m) && rc == SGT_OK; i++) {
        sgt_tensor t;
        char name[80];
        sgt_model_tensor(m, i, &t);
        snprintf(name, sizeof name, "%s%s", prefix_of(prefix, &t), t.name);
        rc = sgt_safetensors_declare(w, name, t.dim, t.dims, err);
    }
    return rc;
}

/* Write all tensors of a state. */
static int write_all(sgt_safetensors_writer *w, sgt_backend *b, sgt_state what, const sgt_model *m,
                     float *buffer, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        for (size_t at = 0; at < t.count && rc == SGT_OK; at += PIECE) {
            size_t n = t.count - at < PIECE ? t.count - at : PIECE;
            rc = b->get(b, what, i, at, n, buffer, err);
            if (rc == SGT_OK) rc = sgt_safetensors_write(w, buffer, n, err);
        }
    }
    return rc;
}

/* Write the file of tensors that *f describes, and add its size and checksum to the JSON object
 * `files`. */
static int write_tensors(const char *dir, const tensors_file *f, json_t *files, sgt_backend *b,
                         const sgt_model *m, sgt_error *err)
{
    uint64_t bytes = 0, xxh3 = 0;
    sgt_safetensors_writer *w = NULL;
    char path[SGT_PATH];
    float *buffer = malloc(PIECE * sizeof *buffer);
    sgt_path(path, dir, "%s", f->name);
    int rc = buffer ? sgt_safetensors_begin(&w, path, err) : sgt_fail_memory(err, path);
    for (int i = 0; i < 2 && f->prefix[i] && rc == SGT_OK; i++)
        rc = declare_all(w, m, f->prefix[i], err);
    for (int i = 0; i < 2 && f->prefix[i] && rc == SGT_OK; i++)
        rc = write_all(w, b, f->what[i], m, buffer, err);
    if (rc == SGT_OK) rc = sgt_safetensors_commit(w, &bytes, &xxh3, err);
    else sgt_safetensors_abandon(w);
    free(buffer);
    return rc == SGT_OK ? add_sum(files, f->name, bytes, xxh3, err) : rc;
}

/* ---- state.json ---- */

static json_t *scaler_json(const sgt_checkpoint_state *s)
{
    if (!s->scaling) return json_null();
    return json_pack("{s:f, s:I, s:I}", "scale", (double)s->scaler.scale, "good_steps",
                     (json_int_t)s->scaler.good_steps, "skipped", (json_int_t)s->scaler.skipped);
}

/* Return, as JSON, the losses and gradient norms that --skip-spikes remembers. The numbers have
 * enough digits to be read back exactly. */
static json_t *outliers_json(const sgt_outliers *o)
{
    json_t *loss = json_array(), *norm = json_array();
    int bad = 0;
    for (uint64_t i = 0; i < o->taken && i < SGT_OUTLIER_STEPS; i++) {
        bad |= json_array_append_new(loss, json_real(o->loss[i]));
        bad |= json_array_append_new(norm, json_real(o->norm[i]));
    }
    if (bad) {
        json_decref(loss);
        json_decref(norm);
        return NULL;
    }
    return json_pack("{s:I, s:I, s:o, s:o}", "taken", (json_int_t)o->taken, "left_out",
                     (json_int_t)o->spikes, "loss", loss, "grad_norm", norm);
}

/* Return a JSON object that describes the machine. It has a member "choices" only if the backend
 * has chosen algorithms for matrix products by timing them, which CPU backends never do. */
static json_t *machine_json(const sgt_checkpoint_state *s)
{
    json_t *json = json_pack("{s:s, s:s, s:s}", "device", s->device, "cpu_level", s->level,
                             "library", s->library);
    if (!s->choices || json_object_set_new(json, "choices", json_string(s->choices)) == 0)
        return json;
    json_decref(json);
    return NULL;
}

static json_t *state_json(const sgt_checkpoint_state *s, json_t *files)
{
    const sgt_schedule *c = &s->schedule;
    return json_pack("{s:i, s:I, s:I, s:I, s:{s:s, s:I, s:I}, s:o, "
                     "s:{s:s, s:f, s:f, s:I, s:I, s:I, s:f}, "
                     "s:{s:o}, s:o, s:o, s:O}",
                     "version", 1, "step", (json_int_t)s->step, "tokens", (json_int_t)s->tokens,
                     "documents", (json_int_t)s->documents, "sampler", "sampling", s->sampling,
                     "seed", (json_int_t)s->seed, "next_batch", (json_int_t)s->next_batch, "scaler",
                     scaler_json(s), "schedule", "kind", sgt_schedule_words[c->kind], "lr", c->lr,
                     "min_lr", c->min_lr, "warmup", (json_int_t)c->warmup, "steps",
                     (json_int_t)c->steps, "first", (json_int_t)c->first, "from", c->from, "data",
                     "hash", sgt_json_hex(s->data_hash), "machine", machine_json(s), "options",
                     json_loads(s->options, 0, NULL), "files", files);
}

static int write_state(const char *dir, const sgt_checkpoint_state *s, json_t *files,
                       sgt_error *err)
{
    json_t *json = state_json(s, files);
    char path[SGT_PATH], *text = NULL;
    /* Fail if there is no memory for one of the members added below. Otherwise the member would be
     * silently missing from state.json. */
    int rc = SGT_OK, bad = !json;
    if (!bad && s->skipping)
        bad |= json_object_set_new(json, "spikes", outliers_json(&s->scaler.outliers));
    if (!bad && s->val_loss > 0)
        bad |= json_object_set_new(json, "val_loss", json_real(s->val_loss));
    if (!bad && s->sets)
        bad |= json_object_set_new(json_object_get(json, "data"), "sets",
                                   json_loads(s->sets, 0, NULL));
    if (!bad) rc = seal(json, err);
    if (!bad && rc == SGT_OK) bad |= !(text = sgt_json_dumps(json, JSON_INDENT(2)));
    if (bad) rc = sgt_fail(err, SGT_ENOMEM, "%s/state.json: out of memory", dir);
    else if (rc == SGT_OK)
        rc = sgt_file_put(sgt_path(path, dir, "state.json"), text, strlen(text), err);
    free(text);
    json_decref(json);
    return rc;
}

/* Set s->choices to the stored names of matrix-product algorithms, and s->sets to the stored list
 * of data sets. Either is NULL if it is missing from the JSON object, as for backends that choose
 * no algorithms, or for a single data set. */
static int parse_texts(sgt_checkpoint_state *s, const json_t *json, const char *path,
                       sgt_error *err)
{
    const json_t *machine = json_object_get(json, "machine"),
                 *sets = json_object_get(json_object_get(json, "data"), "sets");
    const char *choices = json_string_value(json_object_get(machine, "choices"));
    if (choices) s->choices = strdup(choices);
    if (sets) s->sets = sgt_json_dumps(sets, JSON_ENCODE_ANY);
    if ((!choices || s->choices) && (!sets || s->sets)) return SGT_OK;
    return sgt_fail_memory(err, path);
}

static int parse_numbers(double *to, uint64_t n, const json_t *array, const char *path,
                         sgt_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(array, i);
        if (!json_is_number(x))
            return sgt_fail(err, SGT_EFORMAT, "%s: spikes: number %" PRIu64 " is missing", path, i);
        to[i] = json_number_value(x);
    }
    return SGT_OK;
}

/* Read the losses and gradient norms that --skip-spikes remembers, if the checkpoint contains
 * them. */
static int parse_outliers(sgt_checkpoint_state *s, json_t *json, const char *path, sgt_error *err)
{
    sgt_outliers *o = &s->scaler.outliers;
    json_int_t taken, spikes;
    json_error_t why;
    json_t *loss, *norm, *spike = json_object_get(json, "spikes");
    if (!spike) return SGT_OK;
    if (json_unpack_ex(spike, &why, 0, "{s:I, s:I, s:o, s:o}", "taken", &taken, "left_out", &spikes,
                       "loss", &loss, "grad_norm", &norm) < 0)
        return sgt_fail(err, SGT_EFORMAT, "%s: spikes: %s", path, why.text);
    if (taken < 0 || spikes < 0)
        return sgt_fail(err, SGT_EFORMAT, "%s: spikes: a count is out of range", path);
    s->skipping = 1;
    o->taken = (uint64_t)taken;
    o->spikes = (uint64_t)spikes;
    uint64_t n = o->taken < SGT_OUTLIER_STEPS ? o->taken : SGT_OUTLIER_STEPS;
    int rc = parse_numbers(o->loss, n, loss, path, err);
    return rc < 0 ? rc : parse_numbers(o->norm, n, norm, path, err);
}

static int parse_scaler(sgt_checkpoint_state *s, json_t *json, const char *path, sgt_error *err)
{
    double scale;
    json_int_t good, skipped;
    json_error_t why;
    json_t *scaler = json_object_get(json, "scaler");
    if (!scaler || json_is_null(scaler)) return SGT_OK;
    if (json_unpack_ex(scaler, &why, 0, "{s:F, s:I, s:I}", "scale", &scale, "good_steps", &good,
                       "skipped", &skipped) < 0)
        return sgt_fail(err, SGT_EFORMAT, "%s: scaler: %s", path, why.text);
    if (!(scale > 0 && scale <= FLT_MAX) || good < 0 || good > UINT32_MAX || skipped < 0)
        return sgt_fail(err, SGT_EFORMAT, "%s: the scaler is out of range", path);
    s->scaling = 1;
    s->scaler.scale = (float)scale;
    s->scaler.good_steps = (uint32_t)good;
    s->scaler.skipped = (uint64_t)skipped;
    return SGT_OK;
}

static int parse_state(sgt_checkpoint_state *s, json_t *json, const char *path, sgt_error *err)
{
    json_int_t version, step, documents, warmup, steps, first = 0;
    const char *hash, *device, *level, *library, *kind;
    json_t *options;
    json_error_t why;
    if (json_unpack_ex(json, &why, 0, "{s:I}", "version", &version) < 0)
        return sgt_fail(err, SGT_EFORMAT, "%s: %s", path, why.text);
    /* A newer version of sgt may have written this checkpoint, which is therefore not incomplete.
     * SGT_EFORMAT would make the caller skip the checkpoint as incomplete, so return
     * SGT_EUNSUPPORTED. */
    if (version != 1)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "%s: version %lld, expected 1 (use the newer sgt that wrote it)", path,
                        (long long)version);
    if (json_unpack_ex(json, &why, 0,
                       "{s:I, s:I, s:{s:s, s:F, s:F, s:I, s:I, s?I, s?F}, s:{s:s}, "
                       "s:{s:s, s:s, s:s}, s:o}",
                       "step", &step, "documents", &documents, "schedule", "kind", &kind, "lr",
                       &s->schedule.lr, "min_lr", &s->schedule.min_lr, "warmup", &warmup, "steps",
                       &steps, "first", &first, "from", &s->schedule.from, "data", "hash", &hash,
                       "machine", "device", &device, "cpu_level", &level, "library", &library,
                       "options", &options) < 0)
        return sgt_fail(err, SGT_EFORMAT, "%s: %s", path, why.text);
    if (step < 1 || step > 99999999 || documents < 0 || first < 0 || !json_is_object(options))
        return sgt_fail(err, SGT_EFORMAT, "%s: a count is out of range", path);
    s->step = (uint64_t)step;
    s->documents = (uint64_t)documents;
    s->val_loss = json_number_value(json_object_get(json, "val_loss"));
    s->schedule.warmup = (uint64_t)warmup;
    s->schedule.steps = (uint64_t)steps;
    s->schedule.first = (uint64_t)first;
    s->data_hash = strtoull(hash, NULL, 16);
    snprintf(s->device, sizeof s->device, "%s", device);
    snprintf(s->level, sizeof s->level, "%s", level);
    snprintf(s->library, sizeof s->library, "%s", library);
    for (int k = 0; k < SGT_SCHEDULES; k++)
        if (strcmp(kind, sgt_schedule_words[k]) == 0) s->schedule.kind = (sgt_schedule_kind)k;
    s->options = sgt_json_dumps(options, 0);
    if (!s->options) return sgt_fail_memory(err, path);
    int rc = parse_scaler(s, json, path, err);
    if (rc == SGT_OK) rc = parse_outliers(s, json, path, err);
    return rc < 0 ? rc : parse_texts(s, json, path, err);
}

/* Read the state.json of the folder `dir` into *out, and write the file's path to `path`. */
static int load_state(json_t **out, char path[SGT_PATH], const char *dir, sgt_error *err)
{
    return sgt_json_file(out, sgt_path(path, dir, "state.json"), MAX_STATE, STATE_VALUES, err);
}

int sgt_checkpoint_read(sgt_checkpoint_state *state, const char *dir, sgt_error *err)
{
    json_t *json = NULL;
    char path[SGT_PATH];
    *state = (sgt_checkpoint_state){0};
    int rc = load_state(&json, path, dir, err);
    if (rc == SGT_OK) rc = parse_state(state, json, path, err);
    json_decref(json);
    return rc;
}

void sgt_checkpoint_state_free(sgt_checkpoint_state *state)
{
    free(state->options);
    free(state->choices);
    free(state->sets);
    *state = (sgt_checkpoint_state){0};
}

/* ---- the complete folder ---- */

/* Maximum number of JSON values in tokenizer.json: nine for each token id. At most six are for
 * merges (two merges per id with three values each), and at most three for everything else. */
#define MOST_VALUES ((size_t)SGT_MOST_IDS * 9)

/* Return the name of the end-of-text token: the name of the token with this id. If there is no such
 * token, return the name that sgt-tokenize would choose. Return NULL if there is neither, or if
 * `tokenizer` is NULL. `tokenizer` owns the returned string. */
static const char *name_of(const json_t *tokenizer, json_int_t id)
{
    static const char *const usual[] = {SGT_EOT_NAMES};
    size_t i, best = sizeof usual / sizeof *usual;
    const char *name, *found = NULL;
    json_t *v;
    json_array_foreach(json_object_get(tokenizer, "added_tokens"), i, v)
    {
        const json_t *of = json_object_get(v, "id");
        name = json_string_value(json_object_get(v, "content"));
        if (json_is_integer(of) && json_integer_value(of) == id) return name;
        for (size_t k = 0; k < best && name; k++)
            if (!strcmp(name, usual[k])) found = usual[best = k];
    }
    json_object_foreach(json_object_get(json_object_get(tokenizer, "model"), "vocab"), name,
                        v) if (json_is_integer(v) && json_integer_value(v) == id) return name;
    return found;
}

/* Write tokenizer_config.json. `tokenizer` is the text of tokenizer.json. If it defines an
 * end-of-text token, the new file contains this token's name. */
static int write_tokenizer_config(const char *dir, const char *tokenizer, int64_t eot,
                                  uint32_t positions, sgt_error *err)
{
    json_error_t why = {0};
    const int fits = !sgt_json_fits(tokenizer, strlen(tokenizer), MOST_VALUES, "", NULL);
    json_t *json = fits ? json_loads(tokenizer, 0, &why) : NULL;
    if (!json && json_error_code(&why) == json_error_out_of_memory)
        return sgt_fail_memory(err, "tokenizer.json");
    int rc = sgt_tokenizer_config_write(dir, name_of(json, eot), positions, err);
    json_decref(json);
    return rc;
}

static int write_files(const char *dir, json_t *files, sgt_backend *b, const sgt_model *m,
                       const char *tokenizer, int64_t eot, sgt_error *err)
{
    static const char *const texts[] = {"config.json", "generation_config.json", "tokenizer.json",
                                        SGT_TOKENIZER_CONFIG};
    char path[SGT_PATH];
    int rc;
    if ((rc = sgt_model_write_config(m, dir, eot, err)) < 0 ||
        (rc = write_tensors(dir, &model_file, files, b, m, err)) < 0 ||
        (rc = write_tensors(dir, &optimizer_file, files, b, m, err)) < 0)
        return rc;
    if (tokenizer && ((rc = sgt_file_put(sgt_path(path, dir, "tokenizer.json"), tokenizer,
                                         strlen(tokenizer), err)) < 0 ||
                      (rc = write_tokenizer_config(dir, tokenizer, eot, m->positions, err)) < 0))
        return rc;
    for (int i = 0; i < (tokenizer ? 4 : 2) && rc == SGT_OK; i++)
        rc = add_file_sum(files, dir, texts[i], err);
    return rc;
}

int sgt_checkpoint_write(const char *dir, const sgt_checkpoint_state *state, sgt_backend *b,
                         const sgt_model *m, const char *tokenizer, int64_t eot, sgt_error *err)
{
    json_t *files = json_object();
    int rc = files ? write_files(dir, files, b, m, tokenizer, eot, err) : sgt_fail_memory(err, dir);
    if (rc == SGT_OK) rc = write_state(dir, state, files, err);
    json_decref(files);
    return rc;
}

int sgt_checkpoint_copy(float *const *to, int states, sgt_backend *b, const sgt_model *m,
                        sgt_error *err)
{
    static const sgt_state order[] = {SGT_PARAMETERS, SGT_MOMENT1, SGT_MOMENT2};
    float *piece = to ? NULL : malloc(PIECE * sizeof *piece);
    int rc = to || piece ? SGT_OK : sgt_fail_memory(err, "a checkpoint");
    for (int s = 0; s < states; s++)
        for (size_t i = 0; i < sgt_model_tensors(m); i++) {
            sgt_tensor t;
            sgt_model_tensor(m, i, &t);
            for (size_t at = 0; at < t.count && rc == SGT_OK; at += PIECE)
                rc = b->get(b, order[s], i, at, t.count - at < PIECE ? t.count - at : PIECE,
                            to ? to[s] + t.offset + at : piece, err);
        }
    free(piece);
    return rc;
}

/* ---- checking a folder ---- */

/* Verify the checksums of all files. Call this function before parse_state, which rejects a
 * state.json that seems to come from a newer version: if a damaged file is the reason, the checksum
 * error must be reported. */
static int check_sums(const char *dir, sgt_error *err)
{
    json_t *json = NULL;
    char path[SGT_PATH];
    int rc = load_state(&json, path, dir, err);
    if (rc == SGT_OK) rc = check_seal(json, path, err);
    if (rc == SGT_OK) rc = check_file_sums(json_object_get(json, "files"), dir, err);
    json_decref(json);
    return rc;
}

int sgt_checkpoint_check(const char *dir, uint64_t step, int sums, sgt_error *err)
{
    sgt_model m;
    sgt_checkpoint_state state;
    int rc = sgt_model_read_config(&m, dir, err);
    if (rc == SGT_OK) rc = sgt_checkpoint_load_model(dir, NULL, &m, err);
    if (rc == SGT_OK) rc = sgt_checkpoint_load_moments(dir, NULL, &m, err);
    if (rc == SGT_OK && sums) rc = check_sums(dir, err);
    if (rc < 0) return rc;
    rc = sgt_checkpoint_read(&state, dir, err);
    if (rc == SGT_OK && state.step != step)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: its state.json says step %llu", dir,
                      (unsigned long long)state.step);
    sgt_checkpoint_state_free(&state);
    return rc;
}
