/* safetensors.h: reads and writes safetensors files, Hugging Face's format for tensors. A file
 * consists of the header's size (a little-endian 8-byte number), the JSON header {"name": {"dtype":
 * "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}, and the data.
 *
 *     sgt_safetensors *s;
 *     if (sgt_safetensors_open(&s, "model.safetensors", &err) < 0) ...;
 *     const sgt_safetensor *t = sgt_safetensors_find(s, "wte.weight");
 *     if (t) sgt_safetensors_read(s, t, 0, n, floats, &err);
 *     sgt_safetensors_close(s);
 *
 * Headers are not trusted. Each tensor's range of data must match the tensor's shape and lie within
 * the file. Together, the ranges must cover the data without gaps or overlaps, as the format
 * requires. */
#ifndef SGT_SAFETENSORS_H
#define SGT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

/* maximum size of a header in bytes, so that a damaged file cannot cause a huge allocation; the
 * header of GPT-2 XL has 60 kB */
#define SGT_SAFETENSORS_MAX_HEADER ((uint64_t)16 << 20)
/* maximum number of JSON values in a header, so that a damaged file cannot take long to parse; each
 * tensor needs eight values */
#define SGT_SAFETENSORS_MAX_VALUES ((size_t)1 << 18)
#define SGT_SAFETENSORS_MAX_DIMS 8
/* size in bytes of the buffer in which a writer collects data for the file */
#define SGT_SAFETENSORS_ROOM ((size_t)4 << 20)

typedef struct sgt_safetensor {
    const char *name;  /* valid while the file is open */
    const char *dtype; /* type of the numbers: "F32", ... */
    uint32_t dims;
    uint64_t dim[SGT_SAFETENSORS_MAX_DIMS];
    uint64_t count; /* number of elements */
    /* byte offsets of the tensor's first byte and of the byte after its last, from the start of the
     * data */
    uint64_t begin, end;
} sgt_safetensor;

typedef struct sgt_safetensors sgt_safetensors;

int sgt_safetensors_open(sgt_safetensors **out, const char *path, sgt_error *err);
void sgt_safetensors_close(sgt_safetensors *s); /* NULL is fine */
size_t sgt_safetensors_count(const sgt_safetensors *s);
/* Return the tensor with index i, counted in the order in which the data of the tensors is
 * stored. */
const sgt_safetensor *sgt_safetensors_at(const sgt_safetensors *s, size_t i);
/* Return the tensor with the name `name`, or NULL if the file has no such tensor. */
const sgt_safetensor *sgt_safetensors_find(const sgt_safetensors *s, const char *name);

/* Read elements first .. first + count - 1 of tensor `t` to `out`, converted to float32. Return
 * SGT_EUNSUPPORTED unless the tensor's type is F64, F32, F16 or BF16. */
int sgt_safetensors_read(const sgt_safetensors *s, const sgt_safetensor *t, uint64_t first,
                         size_t count, float *out, sgt_error *err);

/* A writer creates a file of float32 tensors. First call sgt_safetensors_begin, then
 * sgt_safetensors_declare for each tensor. Pass the elements of all tensors, in the order of the
 * declarations, to sgt_safetensors_write; a call may pass any number of elements. Finally call
 * sgt_safetensors_commit, which renames the file to its final name. */
typedef struct sgt_safetensors_writer sgt_safetensors_writer;
int sgt_safetensors_begin(sgt_safetensors_writer **out, const char *path, sgt_error *err);
int sgt_safetensors_declare(sgt_safetensors_writer *w, const char *name, const uint32_t *dim,
                            uint32_t dims, sgt_error *err);
int sgt_safetensors_write(sgt_safetensors_writer *w, const float *x, size_t count, sgt_error *err);
/* Complete the file, and rename it to its final name. Set *bytes to the size of the file, and *xxh3
 * to its XXH3-64 checksum. Free w, even on error. */
int sgt_safetensors_commit(sgt_safetensors_writer *w, uint64_t *bytes, uint64_t *xxh3,
                           sgt_error *err);
/* Delete the incomplete file, and free w. `w` may be NULL. */
void sgt_safetensors_abandon(sgt_safetensors_writer *w);

#endif
