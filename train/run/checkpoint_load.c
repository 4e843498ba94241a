/* checkpoint_load.c: loads parameters and moments from a checkpoint, and parameters from any
 * Hugging Face GPT-2 directory or llm.c file. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "train/run/checkpoint.h"
#include "train/model/model.h"
#include "train/run/llmc.h"
#include "train/run/safetensors.h"

#define WTE "wte.weight"
#define HEAD "lm_head.weight"
#define PIECE ((size_t)1 << 20) /* floats copied at a time */
#define MAX_PARTS 64            /* most files of a model; GPT-2 XL in fp32 has 2 */
/* most bytes of model.safetensors.index.json; a tensor takes about 100 */
#define MAX_INDEX ((size_t)16 << 20)
/* most JSON values in model.safetensors.index.json; a tensor takes one */
#define MAX_VALUES ((size_t)1 << 18)

/* The files with a model's tensors: a single one, or those that Hugging Face's index names. */
typedef struct parts {
    sgt_safetensors *file[MAX_PARTS];
    size_t count;
} parts;

static void close_parts(parts *p)
{
    for (size_t i = 0; i < p->count; i++) sgt_safetensors_close(p->file[i]);
    p->count = 0;
}

static int add_part(parts *p, const char *dir, const char *name, sgt_error *err)
{
    if (p->count == MAX_PARTS)
        return sgt_fail(err, SGT_EUNSUPPORTED, "%s: more than %d files of tensors", dir, MAX_PARTS);
    char *path = sgt_join(dir, name);
    int rc = path ? sgt_safetensors_open(&p->file[p->count], path, err) : sgt_fail_memory(err, dir);
    free(path);
    p->count += rc == SGT_OK;
    return rc;
}

/* Open the files that an index names: {"weight_map": {"wte.weight":
 * "model-00001-of-00002.safetensors", ...}}. Which tensor is where is read from the files
 * themselves. */
static int add_indexed(parts *p, const char *dir, const char *path, const json_t *index,
                       sgt_error *err)
{
    const char *name;
    json_t *v, *seen = json_object(), *map = json_object_get(index, "weight_map");
    int rc = seen ? SGT_OK : sgt_fail_memory(err, path);
    if (rc == SGT_OK && !json_is_object(map))
        rc = sgt_fail(err, SGT_EFORMAT, "%s: no weight_map in it", path);
    if (rc < 0) goto out;
    json_object_foreach(map, name, v)
    {
        const char *file = json_string_value(v);
        if (!file || !*file || strchr(file, '/'))
            rc = sgt_fail(err, SGT_EFORMAT, "%s: tensor %s: not the name of a file beside it", path,
                          name);
        else if (!json_object_get(seen, file)) {
            json_object_set_new(seen, file, json_true());
            rc = add_part(p, dir, file, err);
        }
        if (rc < 0) break;
    }
out:
    json_decref(seen);
    return rc;
}

static int open_indexed(parts *p, const char *dir, const char *path, sgt_error *err)
{
    char *text = NULL;
    size_t n;
    json_error_t why;
    int rc = sgt_file_get(&text, &n, path, MAX_INDEX, err);
    if (rc < 0) return rc;
    json_t *index = (rc = sgt_json_fits(text, n, MAX_VALUES, path, err)) < 0
                        ? NULL
                        : json_loadb(text, n, 0, &why);
    if (index) rc = add_indexed(p, dir, path, index, err);
    else if (rc == SGT_OK) rc = sgt_fail(err, SGT_EFORMAT, "%s: %s", path, why.text);
    json_decref(index);
    free(text);
    return rc;
}

static int open_model(parts *p, const char *dir, sgt_error *err)
{
    char *one = sgt_join(dir, "model.safetensors"),
         *index = sgt_join(dir, "model.safetensors.index.json");
    int rc;
    if (!one || !index) rc = sgt_fail_memory(err, dir);
    else if (access(one, F_OK) < 0 && access(index, F_OK) == 0)
        rc = open_indexed(p, dir, index, err);
    else rc = add_part(p, dir, "model.safetensors", err);
    free(one);
    free(index);
    return rc;
}

static int same_shape(const sgt_safetensor *found, const sgt_tensor *t)
{
    int same = found->dims == t->dims;
    for (uint32_t i = 0; same && i < t->dims; i++) same = found->dim[i] == t->dim[i];
    return same;
}

/* Return the tensor in one of the files that has this name after any of the prefixes, or NULL. */
static const sgt_safetensor *find(const sgt_safetensors **in, const parts *p,
                                  const char *const *prefixes, const char *name)
{
    const sgt_safetensor *found = NULL;
    char full[80];
    for (; *prefixes && !found; prefixes++) {
        snprintf(full, sizeof full, "%s%s", *prefixes, name);
        for (size_t i = 0; i < p->count && !found; i++)
            found = sgt_safetensors_find(*in = p->file[i], full);
    }
    return found;
}

/* Find tensor `t` of the model in one of the files, and check its shape. A tied weight may be there
 * as wte, as lm_head, or as both. */
static int find_tensor(const sgt_safetensor **out, const sgt_safetensors **in, const parts *p,
                       const sgt_model *m, const sgt_tensor *t, const char *const *prefixes,
                       const char *where, sgt_error *err)
{
    const sgt_safetensor *found = find(in, p, prefixes, t->name);
    if (!found && !m->untied && strcmp(t->name, WTE) == 0) found = find(in, p, prefixes, HEAD);
    if (!found) return sgt_fail(err, SGT_EFORMAT, "%s: no tensor %s", where, t->name);
    if (!same_shape(found, t))
        return sgt_fail(
            err, SGT_EFORMAT,
            "%s: tensor %s has %u dimensions, %llu x %llu, where config.json says %u x %u", where,
            t->name, found->dims, (unsigned long long)(found->dims ? found->dim[0] : 0),
            (unsigned long long)(found->dims > 1 ? found->dim[1] : 1), t->dim[0], t->dim[1]);
    *out = found;
    return SGT_OK;
}

/* Load every tensor of the model to b. If b is NULL, only check that all of them exist. */
static int load_tensors(const parts *p, const char *const *prefixes, const char *where,
                        sgt_backend *b, sgt_state what, const sgt_model *m, sgt_error *err)
{
    int rc = SGT_OK;
    float *buffer = b ? malloc(PIECE * sizeof *buffer) : NULL;
    if (b && !buffer) return sgt_fail_memory(err, where);
    for (size_t i = 0; i < sgt_model_tensors(m) && rc == SGT_OK; i++) {
        sgt_tensor t;
        const sgt_safetensor *from = NULL;
        const sgt_safetensors *in = NULL;
        sgt_model_tensor(m, i, &t);
        rc = find_tensor(&from, &in, p, m, &t, prefixes, where, err);
        for (size_t at = 0; b && at < t.count && rc == SGT_OK; at += PIECE) {
            size_t n = t.count - at < PIECE ? t.count - at : PIECE;
            rc = sgt_safetensors_read(in, from, at, n, buffer, err);
            if (rc == SGT_OK) rc = b->put(b, what, i, at, n, buffer, err);
        }
    }
    free(buffer);
    return rc;
}

/* Refuse a file with another lm_head than wte for a model in which they are one tensor. */
static int check_tied(const parts *p, const char *const *prefixes, const char *where,
                      const sgt_model *m, sgt_error *err)
{
    const sgt_safetensors *in[2];
    const sgt_safetensor *wte = find(&in[0], p, prefixes, WTE),
                         *head = find(&in[1], p, prefixes, HEAD);
    if (m->untied || !wte || !head) return SGT_OK;
    float *numbers = malloc(2 * PIECE * sizeof *numbers);
    int rc = numbers ? SGT_OK : sgt_fail_memory(err, where), same = wte->count == head->count;
    for (uint64_t at = 0; same && at < wte->count && rc == SGT_OK; at += PIECE) {
        size_t n = wte->count - at < PIECE ? (size_t)(wte->count - at) : PIECE;
        rc = sgt_safetensors_read(in[0], wte, at, n, numbers, err);
        if (rc == SGT_OK) rc = sgt_safetensors_read(in[1], head, at, n, numbers + PIECE, err);
        if (rc == SGT_OK) same = !memcmp(numbers, numbers + PIECE, n * sizeof *numbers);
    }
    free(numbers);
    if (rc < 0 || same) return rc;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: its " HEAD " is not its " WTE ", and would be lost: config.json ties the "
                    "two (\"tie_word_embeddings\": false there loads both)",
                    where);
}

/* Return whether path is a file: a model of llm.c is a file, every other model is a folder. */
static int is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

int sgt_checkpoint_shape(sgt_model *m, const char *path, sgt_error *err)
{
    return is_file(path) ? sgt_llmc_read_shape(m, path, err) : sgt_model_read_config(m, path, err);
}

int sgt_checkpoint_load_model(const char *dir, sgt_backend *b, const sgt_model *m, sgt_error *err)
{
    static const char *const prefixes[] = {"transformer.", "", NULL};
    char where[512];
    parts p = {.count = 0};
    if (b && is_file(dir)) return sgt_llmc_load(dir, b, m, err);
    int rc = open_model(&p, dir, err);
    snprintf(where, sizeof where, "%s/model.safetensors%s", dir, p.count > 1 ? ".index.json" : "");
    if (rc == SGT_OK && b) rc = check_tied(&p, prefixes, where, m, err);
    if (rc == SGT_OK) rc = load_tensors(&p, prefixes, where, b, SGT_PARAMETERS, m, err);
    close_parts(&p);
    return rc;
}

int sgt_checkpoint_load_moments(const char *dir, sgt_backend *b, const sgt_model *m, sgt_error *err)
{
    static const char *const moments[] = {"m.", "v."};
    static const sgt_state states[] = {SGT_MOMENT1, SGT_MOMENT2};
    char where[512];
    parts p = {.count = 0};
    int rc = add_part(&p, dir, "optimizer.safetensors", err);
    snprintf(where, sizeof where, "%s/optimizer.safetensors", dir);
    for (int i = 0; i < 2 && rc == SGT_OK; i++) {
        const char *const prefixes[] = {moments[i], NULL};
        rc = load_tensors(&p, prefixes, where, b, states[i], m, err);
    }
    close_parts(&p);
    return rc;
}
