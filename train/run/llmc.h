/* llmc.h: reads model files of karpathy/llm.c (written by write_model in train_gpt2.py, or
 * gpt2_write_to_checkpoint in train_gpt2.cu).
 *
 * A file begins with 256 little-endian int32: magic 20240326, version (3: float32, 5: bfloat16),
 * positions, vocabulary V, layers L, heads, channels C, padded vocabulary Vp. Then follow the
 * parameters, each kind for all layers together:
 *     wte (Vp, C), wpe (positions, C), ln1w, ln1b (L, C), qkvw (L, 3C, C), qkvb (L, 3C),
 *     attprojw (L, C, C), attprojb (L, C), ln2w, ln2b (L, C), fcw (L, 4C, C), fcb (L, 4C),
 *     fcprojw (L, C, 4C), fcprojb (L, C), lnfw, lnfb (C)
 * Weights of linear layers are (out, in) in the file and (in, out) in sgt. The head is tied to wte,
 * and the activation is GELU with tanh. */
#ifndef SGT_LLMC_H
#define SGT_LLMC_H

#include "train/backend.h"

/* Read the shape from the file's header. Returns SGT_EFORMAT if this is no such file, if its
 * version is not supported, or if its size does not fit the shape. */
int sgt_llmc_read_shape(sgt_model *m, const char *path, sgt_error *err);

/* Load all parameters to b, whose model m came from sgt_llmc_read_shape. */
int sgt_llmc_load(const char *path, sgt_backend *b, const sgt_model *m, sgt_error *err);

#endif
