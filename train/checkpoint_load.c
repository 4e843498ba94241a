/* checkpoint_load.c: parameters and moments from a checkpoint, or from any Hugging Face GPT-2 directory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "checkpoint.h"
#include "safetensors.h"

#define PIECE ((size_t)1 << 20) /* floats moved at a time */

static int open_in(sgt_safetensors **out, const char *dir, const char *file, sgt_error *err)
{
    char *path = sgt_join(dir, file);
    int rc = path ? sgt_safetensors_open(out, path, err) : sgt_fail(err, SGT_ENOMEM, "%s: out of memory", dir);
    free(path);
    return rc;
}

/* The tensor `t` of the model in the file, under any of the prefixes, in its shape. */
static int find_tensor(const sgt_safetensor **out, const sgt_safetensors *s, const sgt_tensor *t,
                       const char *const *prefixes, const char *where, sgt_error *err)
{
    const sgt_safetensor *found = NULL;
    char name[80];
    for (; *prefixes && !found; prefixes++) {
        snprintf(name, sizeof name, "%s%s", *prefixes, t->name);
        found = sgt_safetensors_find(s, name);
    }
    if (!found) return sgt_fail(err, SGT_EFORMAT, "%s: no tensor %s", where, t->name);
    int same = found->dims == t->dims;
    for (uint32_t i = 0; same && i < t->dims; i++) same = found->dim[i] == t->dim[i];
    if (!same)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: tensor %s has %u dimensions, %llu x %llu, where config.json says %u x %u", where, t->name,
                        found->dims, (unsigned long long)(found->dims ? found->dim[0] : 0),
                        (unsigned long long)(found->dims > 1 ? found->dim[1] : 1), t->dim[0], t->dim[1]);
    *out = found;
    return SGT_OK;
}

/* Every tensor of the model into b; b NULL: only looks whether they are all there. */
static int load_tensors(const sgt_safetensors *s, const char *const *prefixes, const char *where, sgt_backend *b,
                        sgt_state what, const sgt_model *m, sgt_error *err)
{
    int rc = SGT_OK;
    float *buffer = b ? malloc(PIECE * sizeof *buffer) : NULL;
    if (b && !buffer) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", where);
    for (size_t i = 0; i < sgt_model_tensors(m) && rc == SGT_OK; i++) {
        sgt_tensor t;
        const sgt_safetensor *from = NULL;
        sgt_model_tensor(m, i, &t);
        rc = find_tensor(&from, s, &t, prefixes, where, err);
        for (size_t at = 0; b && at < t.count && rc == SGT_OK; at += PIECE) {
            size_t n = t.count - at < PIECE ? t.count - at : PIECE;
            rc = sgt_safetensors_read(s, from, at, n, buffer, err);
            if (rc == SGT_OK) rc = b->put(b, what, i, at, n, buffer, err);
        }
    }
    free(buffer);
    return rc;
}

static int load_file(const char *dir, const char *file, const char *const *prefixes, sgt_backend *b, sgt_state what,
                     const sgt_model *m, sgt_error *err)
{
    char where[512];
    sgt_safetensors *s = NULL;
    int rc = open_in(&s, dir, file, err);
    snprintf(where, sizeof where, "%s/%s", dir, file);
    if (rc == SGT_OK) rc = load_tensors(s, prefixes, where, b, what, m, err);
    sgt_safetensors_close(s);
    return rc;
}

int sgt_checkpoint_load_model(const char *dir, sgt_backend *b, const sgt_model *m, sgt_error *err)
{
    static const char *const prefixes[] = {"transformer.", "", NULL};
    return load_file(dir, "model.safetensors", prefixes, b, SGT_PARAMETERS, m, err);
}

int sgt_checkpoint_load_moments(const char *dir, sgt_backend *b, const sgt_model *m, sgt_error *err)
{
    static const char *const moments[] = {"m.", "v."};
    static const sgt_state moment_states[] = {SGT_MOMENT1, SGT_MOMENT2};
    int rc = SGT_OK;
    for (int i = 0; i < 2 && rc == SGT_OK; i++) {
        const char *const prefixes[] = {moments[i], NULL};
        rc = load_file(dir, "optimizer.safetensors", prefixes, b, moment_states[i], m, err);
    }
    return rc;
}
