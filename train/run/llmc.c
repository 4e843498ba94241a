/* llmc.c: reads llm.c's model files. */
#include "train/run/llmc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"

#define MAGIC 20240326
#define HEADER 1024 /* bytes of the header */
/* rows and columns transposed at a time, so that both sides stay in the cache */
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

typedef struct file {
    int fd;
    const char *path;
    sgt_model model;
    uint64_t padded; /* rows of wte in the file */
    size_t width;    /* bytes per number: 4, or 2 for bfloat16 */
    uint64_t at;     /* byte offset of the next number to read */
} file;

/* ---- the header ---- */

/* Check that the file's size is that of the header, the parameters, and the padding rows of wte. */
static int check_size(const file *f, sgt_error *err)
{
    struct stat st;
    const sgt_model *m = &f->model;
    uint64_t numbers = sgt_model_parameters(m) + (f->padded - m->vocab) * m->channels;
    uint64_t want = HEADER + numbers * f->width;
    if (fstat(f->fd, &st) < 0) return sgt_fail_errno(err, "%s", f->path);
    if ((uint64_t)st.st_size == want) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT, "%s: %lld bytes, a model of %ux%ux%u has %llu%s", f->path,
                    (long long)st.st_size, m->layers, m->channels, m->heads,
                    (unsigned long long)want,
                    (uint64_t)st.st_size < want ? " (a file cut short?)" : "");
}

static int take_header(file *f, const int32_t *word, sgt_error *err)
{
    if (word[WORD_MAGIC] != MAGIC)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: its first number is %d, not %d: not a model of llm.c", f->path,
                        word[WORD_MAGIC], MAGIC);
    if (word[WORD_VERSION] != 3 && word[WORD_VERSION] != 5)
        return sgt_fail(err, SGT_EFORMAT, "%s: version %d, neither 3 (float32) nor 5 (bfloat16)",
                        f->path, word[WORD_VERSION]);
    for (int i = WORD_POSITIONS; i < WORDS; i++)
        if (word[i] < 1)
            return sgt_fail(err, SGT_EFORMAT, "%s: word %d of its header is %d", f->path, i,
                            word[i]);
    if (word[WORD_PADDED] < word[WORD_VOCAB])
        return sgt_fail(err, SGT_EFORMAT, "%s: a vocabulary of %d, padded to %d", f->path,
                        word[WORD_VOCAB], word[WORD_PADDED]);
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
        if (err) err->code = SGT_EFORMAT; /* the file is wrong, not the command line */
        return SGT_EFORMAT;
    }
    return check_size(f, err);
}

static int open_file(file *f, const char *path, sgt_error *err)
{
    uint8_t bytes[4 * WORDS];
    int32_t word[WORDS];
    struct stat st;
    *f = (file){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .path = path, .at = HEADER};
    if (f->fd < 0) return sgt_fail_errno(err, "%s", path);
    if (fstat(f->fd, &st) < 0) return sgt_fail_errno(err, "%s", path);
    if (!S_ISREG(st.st_mode) || st.st_size < HEADER)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: %lld bytes, and a model of llm.c's has a header of %d", path,
                        (long long)st.st_size, HEADER);
    int rc = sgt_pread_all(f->fd, bytes, sizeof bytes, 0, path, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < WORDS; i++)
        word[i] = (int32_t)((uint32_t)bytes[4 * i] | (uint32_t)bytes[4 * i + 1] << 8 |
                            (uint32_t)bytes[4 * i + 2] << 16 | (uint32_t)bytes[4 * i + 3] << 24);
    return take_header(f, word, err);
}

static void close_file(file *f)
{
    if (f->fd >= 0) close(f->fd);
}

int sgt_llmc_read_shape(sgt_model *m, const char *path, sgt_error *err)
{
    file f;
    int rc = open_file(&f, path, err);
    if (rc == SGT_OK) *m = f.model;
    close_file(&f);
    return rc;
}

/* ---- the parameters ---- */

/* Read the next numbers as float32. bfloat16 numbers are read to the second half of `to`, and
 * converted from the first on: writing number i overwrites only numbers that were already
 * converted. */
static int read_numbers(file *f, float *to, size_t count, sgt_error *err)
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

/* Transpose `from` (out, in) to `to` (in, out). */
static void turn(float *to, const float *from, size_t in, size_t out)
{
    for (size_t r = 0; r < out; r += BLOCK)
        for (size_t c = 0; c < in; c += BLOCK)
            for (size_t i = r; i < out && i < r + BLOCK; i++)
                for (size_t j = c; j < in && j < c + BLOCK; j++) to[j * out + i] = from[i * in + j];
}

/* Load the next tensor of the file as tensor `index` of the model. */
static int load_tensor(file *f, sgt_backend *b, size_t index, float *room[2], sgt_error *err)
{
    sgt_tensor t;
    sgt_model_tensor(&f->model, index, &t);
    int linear = t.dims == 2 && index > 1, rc = read_numbers(f, room[0], t.count, err);
    if (rc < 0) return rc;
    if (linear) turn(room[1], room[0], t.dim[0], t.dim[1]);
    if (index == 0) f->at += (f->padded - f->model.vocab) * f->model.channels * f->width;
    return b->put(b, SGT_PARAMETERS, index, 0, t.count, room[linear], err);
}

static int load_all(file *f, sgt_backend *b, float *room[2], sgt_error *err)
{
    size_t layers = f->model.layers, last = 2 + layers * SGT_BLOCK_TENSORS;
    int rc = load_tensor(f, b, 0, room, err);
    if (rc == SGT_OK) rc = load_tensor(f, b, 1, room, err);
    for (size_t kind = 0; kind < SGT_BLOCK_TENSORS; kind++)
        for (size_t l = 0; l < layers && rc == SGT_OK; l++)
            rc = load_tensor(f, b, 2 + l * SGT_BLOCK_TENSORS + kind, room, err);
    for (size_t i = last; i < last + 2 && rc == SGT_OK; i++) rc = load_tensor(f, b, i, room, err);
    return rc;
}

int sgt_llmc_load(const char *path, sgt_backend *b, const sgt_model *m, sgt_error *err)
{
    file f;
    float *room[2] = {NULL, NULL};
    size_t largest = 0;
    int rc = open_file(&f, path, err);
    if (rc == SGT_OK && (f.model.layers != m->layers || f.model.channels != m->channels ||
                         f.model.vocab != m->vocab))
        rc = sgt_fail(err, SGT_EIO, "%s: it has changed since it was opened", path);
    if (rc < 0) goto out;
    for (size_t i = 0; i < sgt_model_tensors(&f.model); i++) {
        sgt_tensor t;
        sgt_model_tensor(&f.model, i, &t);
        if (t.count > largest) largest = t.count;
    }
    for (int i = 0; i < 2; i++) room[i] = malloc(largest * sizeof **room);
    rc = room[0] && room[1] ? load_all(&f, b, room, err) : sgt_fail_memory(err, path);
out:
    free(room[0]);
    free(room[1]);
    close_file(&f);
    return rc;
}
