/* checkpoint_load.c: loads parameters and moments from a checkpoint. It also loads parameters from
 * other Hugging Face GPT-2 directories and from llm.c model files. */
#include <fcntl.h>
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
#include "train/run/safetensors.h"

#define WTE "wte.weight"
#define HEAD "lm_head.weight"
#define PIECE ((size_t)1 << 20) /* floats copied at a time */
/* maximum number of tensor files per model; GPT-2 XL in fp32 has 2 */
#define MAX_PARTS 64
/* maximum size of model.safetensors.index.json in bytes; each tensor needs about 100 bytes */
#define MAX_INDEX ((size_t)16 << 20)
/* maximum number of JSON values in model.safetensors.index.json; each tensor needs one value */
#define MAX_VALUES ((size_t)1 << 18)

/* The open safetensors files of a model: either a single file, or all files that the model's
 * model.safetensors.index.json lists. */
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
    char path[SGT_PATH];
    int rc = sgt_safetensors_open(&p->file[p->count], sgt_path(path, dir, "%s", name), err);
    p->count += rc == SGT_OK;
    return rc;
}

/* Open every file that the index lists. The index is the JSON object {"weight_map": {"wte.weight":
 * "model-00001-of-00002.safetensors", ...}}. Ignore which file the index states for a tensor,
 * because each file's header lists the file's tensors. */
static int add_indexed(parts *p, const char *dir, const char *path, const json_t *index,
                       sgt_error *err)
{
    const char *name;
    json_t *v, *seen = json_object(), *map = json_object_get(index, "weight_map");
    int rc = seen ? SGT_OK : sgt_fail_memory(err, path);
    if (rc == SGT_OK && !json_is_object(map))
        rc = sgt_fail(err, SGT_EFORMAT, "%s: it has no weight_map", path);
    if (rc < 0) goto out;
    json_object_foreach(map, name, v)
    {
        const char *file = json_string_value(v);
        if (!file || !*file || strchr(file, '/'))
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: tensor %s: its value is not the name of a file in this folder", path,
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
    json_t *index = NULL;
    int rc = sgt_json_file(&index, path, MAX_INDEX, MAX_VALUES, err);
    if (rc == SGT_OK) rc = add_indexed(p, dir, path, index, err);
    json_decref(index);
    return rc;
}

static int open_model(parts *p, const char *dir, sgt_error *err)
{
    char one[SGT_PATH], index[SGT_PATH];
    if (access(sgt_path(one, dir, "model.safetensors"), F_OK) < 0 &&
        access(sgt_path(index, dir, "model.safetensors.index.json"), F_OK) == 0)
        return open_indexed(p, dir, index, err);
    return add_part(p, dir, "model.safetensors", err);
}

static int same_shape(const sgt_safetensor *found, const sgt_tensor *t)
{
    int same = found->dims == t->dims;
    for (uint32_t i = 0; same && i < t->dims; i++) same = found->dim[i] == t->dim[i];
    return same;
}

/* Search all open files for a tensor whose name consists of one of `prefixes` and `name`. Return
 * the tensor and set *in to the file that contains it. Return NULL if there is no such tensor. */
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

/* Find the model's tensor `t` in the open files, and check its shape. If the head is tied, its
 * weight may be stored under the name of wte or of lm_head. */
static int find_tensor(const sgt_safetensor **out, const sgt_safetensors **in, const parts *p,
                       const sgt_model *m, const sgt_tensor *t, const char *const *prefixes,
                       const char *where, sgt_error *err)
{
    const sgt_safetensor *found = find(in, p, prefixes, t->name);
    if (!found && !m->untied && strcmp(t->name, WTE) == 0) found = find(in, p, prefixes, HEAD);
    if (!found) return sgt_fail(err, SGT_EFORMAT, "%s: tensor %s is missing", where, t->name);
    if (!same_shape(found, t))
        return sgt_fail(
            err, SGT_EFORMAT,
            "%s: tensor %s has %u dimensions, %llu x %llu, but config.json says %u x %u", where,
            t->name, found->dims, (unsigned long long)(found->dims ? found->dim[0] : 0),
            (unsigned long long)(found->dims > 1 ? found->dim[1] : 1), t->dim[0], t->dim[1]);
    *out = found;
    return SGT_OK;
}

/* Load every tensor of the model from the open files to the backend b. If b is NULL, only check
 * that the files contain every tensor with the expected shape. */
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

/* If the head is tied, return an error if the open files contain both wte and lm_head with
 * different values. With a tied head, both are the same tensor. */
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
    return sgt_fail(
        err, SGT_EFORMAT,
        "%s: its " HEAD " differs from its " WTE ", but config.json ties the "
        "two, so one would be lost (set \"tie_word_embeddings\": false there to load both)",
        where);
}

/* ---- llm.c model files ---- */

/* The format of the model files that karpathy/llm.c writes (write_model in train_gpt2.py and
 * gpt2_write_to_checkpoint in train_gpt2.cu).
 *
 * The header is 256 little-endian int32: magic number 20240326, version (3: float32, 5: bfloat16),
 * positions, vocabulary size V, layers L, heads, channels C, padded vocabulary size Vp, and unused
 * words. The parameters follow in this order, those of all layers together:
 *     wte (Vp, C), wpe (positions, C), ln1w, ln1b (L, C), qkvw (L, 3C, C), qkvb (L, 3C),
 *     attprojw (L, C, C), attprojb (L, C), ln2w, ln2b (L, C), fcw (L, 4C, C), fcb (L, 4C),
 *     fcprojw (L, C, 4C), fcprojb (L, C), lnfw, lnfb (C)
 * Linear weights have the shape (out, in) in the file, but (in, out) in sgt. The head is tied to
 * wte, and the activation function is GELU with tanh. */

#define MAGIC 20240326
#define HEADER 1024 /* bytes of the header */
/* Transpose a matrix in blocks of BLOCK x BLOCK elements. A block is small enough that its cache
 * lines, in both matrices, stay in the CPU's cache until the block is complete. */
#define BLOCK 64

enum {
    WORD_MAGIC,
    WORD_VERSION,
    WORD_POSITIONS,
    WORD_VOCAB,
    WORD_LAYERS,
    WORD_HEADS,
    WORD_CHANNELS,
    WORD_PADDED,
    WORDS
};

typedef struct llmc_file {
    int fd;
    const char *path;
    sgt_model model;
    uint64_t padded; /* number of rows of wte in the file: the vocabulary size plus padding rows */
    size_t width;    /* bytes per parameter: 4 for float32, 2 for bfloat16 */
    uint64_t at;     /* byte offset in the file of the next parameter to read */
} llmc_file;

/* Return an error unless the file's size is the total size of the header, the parameters and the
 * padding rows of wte. */
static int check_llmc_size(const llmc_file *f, sgt_error *err)
{
    struct stat st;
    const sgt_model *m = &f->model;
    uint64_t numbers = sgt_model_parameters(m) + (f->padded - m->vocab) * m->channels;
    uint64_t want = HEADER + numbers * f->width;
    if (fstat(f->fd, &st) < 0) return sgt_fail_errno(err, "%s", f->path);
    if ((uint64_t)st.st_size == want) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT, "%s: %lld bytes, but a model of %ux%ux%u has %llu%s", f->path,
                    (long long)st.st_size, m->layers, m->channels, m->heads,
                    (unsigned long long)want,
                    (uint64_t)st.st_size < want ? " (was it cut short?)" : "");
}

static int check_llmc_header(llmc_file *f, const int32_t *word, sgt_error *err)
{
    if (word[WORD_MAGIC] != MAGIC)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: its first number is %d, not %d: not a model of llm.c", f->path,
                        word[WORD_MAGIC], MAGIC);
    if (word[WORD_VERSION] != 3 && word[WORD_VERSION] != 5)
        return sgt_fail(err, SGT_EFORMAT, "%s: version %d: must be 3 (float32) or 5 (bfloat16)",
                        f->path, word[WORD_VERSION]);
    for (int i = WORD_POSITIONS; i < WORDS; i++)
        if (word[i] < 1)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: word %d of its header is %d, which is out of range", f->path, i,
                            word[i]);
    if (word[WORD_PADDED] < word[WORD_VOCAB])
        return sgt_fail(err, SGT_EFORMAT, "%s: a vocabulary of %d ids cannot be padded to %d",
                        f->path, word[WORD_VOCAB], word[WORD_PADDED]);
    f->width = word[WORD_VERSION] == 3 ? 4 : 2;
    f->padded = (uint64_t)word[WORD_PADDED];
    f->model = (sgt_model){.layers = (uint32_t)word[WORD_LAYERS],
                           .channels = (uint32_t)word[WORD_CHANNELS],
                           .heads = (uint32_t)word[WORD_HEADS],
                           .vocab = (uint32_t)word[WORD_VOCAB],
                           .positions = (uint32_t)word[WORD_POSITIONS],
                           .gelu = SGT_GELU_TANH,
                           .eps = 1e-5f};
    if (sgt_model_check(&f->model, f->path, err) < 0) {
        /* change the code from SGT_EUSAGE, because the error is in a file, not in an option */
        if (err) err->code = SGT_EFORMAT;
        return SGT_EFORMAT;
    }
    return check_llmc_size(f, err);
}

static int open_llmc(llmc_file *f, const char *path, sgt_error *err)
{
    int32_t word[WORDS]; /* little-endian, like this machine */
    struct stat st;
    *f = (llmc_file){
        .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .path = path, .at = HEADER};
    if (f->fd < 0) return sgt_fail_errno(err, "%s", path);
    if (fstat(f->fd, &st) < 0) return sgt_fail_errno(err, "%s", path);
    if (!S_ISREG(st.st_mode) || st.st_size < HEADER)
        return sgt_fail(err, SGT_EFORMAT, "%s: %lld bytes, but the header of llm.c's models has %d",
                        path, (long long)st.st_size, HEADER);
    int rc = sgt_pread_all(f->fd, word, sizeof word, 0, path, err);
    return rc < 0 ? rc : check_llmc_header(f, word, err);
}

/* Set *m to the shape of the model in an llm.c file. Return SGT_EFORMAT if the file is no llm.c
 * model file, has an unsupported version, or has a size that does not match the shape. */
static int read_llmc_shape(sgt_model *m, const char *path, sgt_error *err)
{
    llmc_file f;
    int rc = open_llmc(&f, path, err);
    if (rc == SGT_OK) *m = f.model;
    if (f.fd >= 0) close(f.fd);
    return rc;
}

/* Read the file's next `count` parameters as float32 to `to`. bfloat16 parameters are first read to
 * the second half of the memory at `to`, and then converted in ascending order. This is safe:
 * writing float i overwrites at most the bfloat16 numbers up to index i, which have already been
 * read. */
static int read_numbers(llmc_file *f, float *to, size_t count, sgt_error *err)
{
    uint16_t *half = (uint16_t *)to + count;
    int rc = sgt_pread_all(f->fd, f->width == 4 ? (void *)to : (void *)half, count * f->width,
                           f->at, f->path, err);
    f->at += count * f->width;
    for (size_t i = 0; i < count && f->width == 2 && rc == SGT_OK; i++) {
        uint16_t h;
        memcpy(&h, half + i, sizeof h);
        uint32_t bits = (uint32_t)h << 16;
        memcpy(to + i, &bits, sizeof bits);
    }
    return rc;
}

/* Write the transpose of `from`, a matrix with shape (out, in), to `to`, with shape (in, out). */
static void transpose(float *to, const float *from, size_t in, size_t out)
{
    for (size_t r = 0; r < out; r += BLOCK)
        for (size_t c = 0; c < in; c += BLOCK)
            for (size_t i = r; i < out && i < r + BLOCK; i++)
                for (size_t j = c; j < in && j < c + BLOCK; j++) to[j * out + i] = from[i * in + j];
}

/* Read the file's next tensor, and load it as the model's tensor with index `index`. room[0] and
 * room[1] are buffers, each large enough for the model's largest tensor. */
static int load_llmc_tensor(llmc_file *f, sgt_backend *b, size_t index, float *room[2],
                            sgt_error *err)
{
    sgt_tensor t;
    sgt_model_tensor(&f->model, index, &t);
    int linear = t.dims == 2 && index > 1, rc = read_numbers(f, room[0], t.count, err);
    if (rc < 0) return rc;
    if (linear) transpose(room[1], room[0], t.dim[0], t.dim[1]);
    if (index == 0) f->at += (f->padded - f->model.vocab) * f->model.channels * f->width;
    return b->put(b, SGT_PARAMETERS, index, 0, t.count, room[linear], err);
}

static int load_llmc_tensors(llmc_file *f, sgt_backend *b, float *room[2], sgt_error *err)
{
    size_t layers = f->model.layers, last = 2 + layers * SGT_BLOCK_TENSORS;
    int rc = load_llmc_tensor(f, b, 0, room, err);
    if (rc == SGT_OK) rc = load_llmc_tensor(f, b, 1, room, err);
    for (size_t kind = 0; kind < SGT_BLOCK_TENSORS; kind++)
        for (size_t l = 0; l < layers && rc == SGT_OK; l++)
            rc = load_llmc_tensor(f, b, 2 + l * SGT_BLOCK_TENSORS + kind, room, err);
    for (size_t i = last; i < last + 2 && rc == SGT_OK; i++)
        rc = load_llmc_tensor(f, b, i, room, err);
    return rc;
}

/* Load all parameters from an llm.c model file to the backend b. *m is the shape that
 * read_llmc_shape has read from the same file. */
static int load_llmc(const char *path, sgt_backend *b, const sgt_model *m, sgt_error *err)
{
    llmc_file f;
    float *room[2] = {NULL, NULL};
    size_t largest = 0;
    int rc = open_llmc(&f, path, err);
    if (rc == SGT_OK && (f.model.layers != m->layers || f.model.channels != m->channels ||
                         f.model.vocab != m->vocab))
        rc = sgt_fail(err, SGT_EIO, "%s: changed since it was opened", path);
    if (rc < 0) goto out;
    for (size_t i = 0; i < sgt_model_tensors(&f.model); i++) {
        sgt_tensor t;
        sgt_model_tensor(&f.model, i, &t);
        if (t.count > largest) largest = t.count;
    }
    for (int i = 0; i < 2; i++) room[i] = malloc(largest * sizeof **room);
    rc = room[0] && room[1] ? load_llmc_tensors(&f, b, room, err) : sgt_fail_memory(err, path);
out:
    free(room[0]);
    free(room[1]);
    if (f.fd >= 0) close(f.fd);
    return rc;
}

/* ---- any kind of model ---- */

/* Return 1 if `path` is a regular file, as an llm.c model is; otherwise return 0. All other models
 * are folders. */
static int is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

int sgt_checkpoint_shape(sgt_model *m, const char *path, sgt_error *err)
{
    return is_file(path) ? read_llmc_shape(m, path, err) : sgt_model_read_config(m, path, err);
}

int sgt_checkpoint_load_model(const char *dir, sgt_backend *b, const sgt_model *m, sgt_error *err)
{
    static const char *const prefixes[] = {"transformer.", "", NULL};
    char where[512];
    parts p = {.count = 0};
    if (b && is_file(dir)) return load_llmc(dir, b, m, err);
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
