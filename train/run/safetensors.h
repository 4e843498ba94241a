/* safetensors.h: reads and writes Hugging Face's tensor files. A file is 8 bytes of little-endian
 * header length, a JSON header {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
 * ...}, then the numbers.
 *
 *     sgt_safetensors *s;
 *     if (sgt_safetensors_open(&s, "model.safetensors", &err) < 0) ...;
 *     const sgt_safetensor *t = sgt_safetensors_find(s, "wte.weight");
 *     if (t) sgt_safetensors_read(s, t, 0, n, floats, &err);
 *     sgt_safetensors_close(s);
 *
 * Headers are not trusted: every range must fit its shape and the file, and the ranges must cover
 * the data without gap or overlap, as the format requires. */
#ifndef SGT_SAFETENSORS_H
#define SGT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

/* largest size of a header in bytes, which limits the cost of a bad file; GPT-2 XL's header has
 * 60 kB */
#define SGT_SAFETENSORS_MAX_HEADER ((uint64_t)16 << 20)
/* most JSON values in a header, for the same reason; a tensor takes eight */
#define SGT_SAFETENSORS_MAX_VALUES ((size_t)1 << 18)
#define SGT_SAFETENSORS_MAX_DIMS 8
/* bytes that a writer buffers and writes at a time */
#define SGT_SAFETENSORS_ROOM ((size_t)4 << 20)

typedef struct sgt_safetensor {
    const char *name;  /* valid while the file is open */
    const char *dtype; /* type of the numbers: "F32", ... */
    uint32_t dims;
    uint64_t dim[SGT_SAFETENSORS_MAX_DIMS];
    uint64_t count; /* number of elements */
    /* byte offsets of the tensor's first byte and of its end, from the start of the data */
    uint64_t begin, end;
} sgt_safetensor;

typedef struct sgt_safetensors sgt_safetensors;

int sgt_safetensors_open(sgt_safetensors **out, const char *path, sgt_error *err);
void sgt_safetensors_close(sgt_safetensors *s); /* NULL is fine */
size_t sgt_safetensors_count(const sgt_safetensors *s);
/* Return tensor i, in the order of the data in the file. */
const sgt_safetensor *sgt_safetensors_at(const sgt_safetensors *s, size_t i);
/* Return the tensor with this name, or NULL. */
const sgt_safetensor *sgt_safetensors_find(const sgt_safetensors *s, const char *name);

/* Read numbers first .. first + count - 1 as float32, from F64, F32, F16 or BF16. Returns
 * SGT_EUNSUPPORTED for another type. */
int sgt_safetensors_read(const sgt_safetensors *s, const sgt_safetensor *t, uint64_t first,
                         size_t count, float *out, sgt_error *err);

/* Writes a new file of float32 tensors. Call begin; declare for each tensor; write for all numbers,
 * in the same order and in portions of any size; and commit, which gives the file its name. */
typedef struct sgt_safetensors_writer sgt_safetensors_writer;
int sgt_safetensors_begin(sgt_safetensors_writer **out, const char *path, sgt_error *err);
int sgt_safetensors_declare(sgt_safetensors_writer *w, const char *name, const uint32_t *dim,
                            uint32_t dims, sgt_error *err);
int sgt_safetensors_write(sgt_safetensors_writer *w, const float *x, size_t count, sgt_error *err);
/* Finish the file and give it its name. Sets *bytes to its size and *xxh3 to its XXH3-64. Frees w,
 * also on failure. */
int sgt_safetensors_commit(sgt_safetensors_writer *w, uint64_t *bytes, uint64_t *xxh3,
                           sgt_error *err);
/* Remove the unfinished file and free w; NULL is fine. */
void sgt_safetensors_abandon(sgt_safetensors_writer *w);

#endif
