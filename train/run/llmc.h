/* llmc.h: the model files of karpathy/llm.c (train_gpt2.py's write_model, train_gpt2.cu's
 * gpt2_write_to_checkpoint).
 *
 * 256 little-endian int32: magic 20240326, version (3: float32, 5: bfloat16), positions, vocabulary
 * V, layers L, heads, channels C, padded vocabulary Vp. Then the parameters, those of a kind of all
 * layers together:
 *     wte (Vp, C), wpe (positions, C), ln1w, ln1b (L, C), qkvw (L, 3C, C), qkvb (L, 3C), attprojw (L, C, C),
 *     attprojb (L, C), ln2w, ln2b (L, C), fcw (L, 4C, C), fcb (L, 4C), fcprojw (L, C, 4C), fcprojb (L, C),
 *     lnfw, lnfb (C)
 * Weights of linear layers are (out, in) there and (in, out) here. The head is tied, the activation
 * tanh's GELU. */
#ifndef SGT_LLMC_H
#define SGT_LLMC_H

#include "backend.h"

/* The shape that the file's header says. SGT_EFORMAT says what is no such file, of a version that
 * is read, or has not the size that follows from its shape. */
int sgt_llmc_read_shape(sgt_model *m, const char *path, sgt_error *err);

/* All parameters into b, whose model is m, as sgt_llmc_read_shape gave it. */
int sgt_llmc_load(const char *path, sgt_backend *b, const sgt_model *m, sgt_error *err);

#endif
