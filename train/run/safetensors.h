/* safetensors.h: reads and writes Hugging Face's tensor files. A file begins with the size of the
 * header, a little-endian 8-byte number. The JSON header {"name": {"dtype": "F32", "shape": [2, 3],
 * "data_offsets": [0, 24]}, ...} and the data follow.
 *
 *     sgt_safetensors *s;
 *     if (sgt_safetensors_open(&s, "model.safetensors", &err) < 0) ...;
 *     const sgt_safetensor *t = sgt_safetensors_find(s, "wte.weight");
 *     if (t) sgt_safetensors_read(s, t, 0, n, floats, &err);
 *     sgt_safetensors_close(s);
 *
 * Headers are not trusted. Each tensor's data range must match its shape and lie in the file.
 * Together the ranges must cover the data without gaps or overlaps, as the format requires. */
#ifndef SGT_SAFETENSORS_H
#define SGT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

/* maximum size of a header in bytes, so that a damaged file cannot make us allocate much memory;
 * the header of GPT-2 XL has 60 kB */
#define SGT_SAFETENSORS_MAX_HEADER ((uint64_t)16 << 20)
/* maximum number of JSON values in a header, so that a damaged file cannot keep us busy for long;
 * each tensor takes eight values */
#define SGT_SAFETENSORS_MAX_VALUES ((size_t)1 << 18)
#define SGT_SAFETENSORS_MAX_DIMS 8
/* size in bytes of the buffer through which a writer writes a file */
#define SGT_SAFETENSORS_ROOM ((size_t)4 << 20)

typedef struct sgt_safetensor {
    const char *name;  /* valid while the file is open */
    const char *dtype; /* type of the numbers: "F32", ... */
    uint32_t dims;
    uint64_t dim[SGT_SAFETENSORS_MAX_DIMS];
    uint64_t count; /* number of elements */
    /* byte offsets, from the start of the data, at which the tensor begins and ends */
    uint64_t begin, end;
} sgt_safetensor;

typedef struct sgt_safetensors sgt_safetensors;

int sgt_safetensors_open(sgt_safetensors **out, const char *path, sgt_error *err);
void sgt_safetensors_close(sgt_safetensors *s); /* NULL is fine */
size_t sgt_safetensors_count(const sgt_safetensors *s);
/* Return the i-th tensor in the order in which the tensors' data is stored in the file. */
const sgt_safetensor *sgt_safetensors_at(const sgt_safetensors *s, size_t i);
/* Return the tensor with this name, or NULL if there is none. */
const sgt_safetensor *sgt_safetensors_find(const sgt_safetensors *s, const char *name);

/* Read elements first .. first + count - 1 of tensor `t`, and convert them to float32. The type in
 * the file may be F64, F32, F16 or BF16. Return SGT_EUNSUPPORTED for any other type. */
int sgt_safetensors_read(const sgt_safetensors *s, const sgt_safetensor *t, uint64_t first,
                         size_t count, float *out, sgt_error *err);

/* Writer for a new file of float32 tensors. Call `begin`, then `declare` for each tensor. Then call
 * `write` with the elements of all tensors, in the order of the declarations; one call may pass
 * part of a tensor or several tensors. Finally call `commit`, which renames the file to its final
 * name. */
typedef struct sgt_safetensors_writer sgt_safetensors_writer;
int sgt_safetensors_begin(sgt_safetensors_writer **out, const char *path, sgt_error *err);
int sgt_safetensors_declare(sgt_safetensors_writer *w, const char *name, const uint32_t *dim,
                            uint32_t dims, sgt_error *err);
int sgt_safetensors_write(sgt_safetensors_writer *w, const float *x, size_t count, sgt_error *err);
/* Complete the file, and rename it to its final name. Set *bytes to the file's size, and *xxh3 to
 * its XXH3-64. Free w, even if the function fails. */
int sgt_safetensors_commit(sgt_safetensors_writer *w, uint64_t *bytes, uint64_t *xxh3,
                           sgt_error *err);
/* Delete the incomplete file, and free w. NULL is allowed. */
void sgt_safetensors_abandon(sgt_safetensors_writer *w);

#endif
