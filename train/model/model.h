/* model.h: the shape of a GPT-2 model, and the names, shapes and offsets of its tensors in one
 * array of floats.
 *
 *     sgt_model m;
 *     if (sgt_model_named(&m, "12x768x12", &err) < 0) ...;       // layers x channels x heads
 *     m.vocab = 50257;
 *     float *p = calloc(sgt_model_floats(&m), sizeof *p);
 *     sgt_tensor t;
 *     for (size_t i = 0; i < sgt_model_tensors(&m); i++) {
 *         sgt_model_tensor(&m, i, &t);
 *         use(p + t.offset);
 *     }
 *
 * The arrays of parameters, gradients, first moments and second moments all use these offsets.
 * Linear weights are stored row-major with shape (in, out), as in Hugging Face's GPT-2, so
 * checkpoints need no conversion. The head (output layer) uses the weight of wte if it is tied;
 * otherwise it has a separate weight of the same shape. */
#ifndef SGT_MODEL_H
#define SGT_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/base/ids.h"
#include "kernels/kernels.h"

typedef struct sgt_model {
    uint32_t layers, channels, heads;
    uint32_t vocab;     /* rows of wte; ids are below this */
    uint32_t positions; /* rows of wpe: the longest sequence */
    sgt_gelu_kind gelu;
    float eps;       /* epsilon of LayerNorm */
    uint32_t untied; /* 1: the head has its own weight; 0: the head shares the weight of wte */
} sgt_model;

/* Indexes of a transformer block's tensors within the block. Among all tensors of the model, wte is
 * 0, wpe is 1, and tensor SGT_X of block l is 2 + SGT_BLOCK_TENSORS * l + SGT_X. After the last
 * block come the weight and bias of ln_f and, if the head is untied, lm_head.weight. */
enum {
    SGT_LN1_W,
    SGT_LN1_B,
    SGT_QKV_W,
    SGT_QKV_B,
    SGT_PROJ_W,
    SGT_PROJ_B,
    SGT_LN2_W,
    SGT_LN2_B,
    SGT_FC_W,
    SGT_FC_B,
    SGT_FCPROJ_W,
    SGT_FCPROJ_B,
    SGT_BLOCK_TENSORS
};

typedef struct sgt_tensor {
    /* tensor name as in Hugging Face's GPT-2, but without the prefix "transformer.", for example
     * "h.3.attn.c_attn.weight" */
    char name[48];
    uint32_t dims;   /* 1 or 2 */
    uint32_t dim[2]; /* dim[1] is 1 if dims is 1 */
    size_t count;    /* floats */
    /* index of the tensor's first float in the array that contains all tensors; a multiple of 16 */
    size_t offset;
} sgt_tensor;

/* Set *m to the model with the given name: "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", or
 * LxCxH, which means L layers, C channels and H heads. Every such model has 1,024 positions, 50,257
 * ids and tanh GELU, as GPT-2 has. Return SGT_EUSAGE if the name is invalid. */
int sgt_model_named(sgt_model *m, const char *name, sgt_error *err);

/* Return SGT_EUSAGE if a dimension of the model is out of range, or if `heads` does not divide
 * `channels`. The error message begins with `what`. */
int sgt_model_check(const sgt_model *m, const char *what, sgt_error *err);

size_t sgt_model_tensors(const sgt_model *m);
void sgt_model_tensor(const sgt_model *m, size_t index, sgt_tensor *t);
/* Describe the tensor with index `index` in *t. Return SGT_EUSAGE if there is no such tensor, or if
 * it does not contain all of the floats first .. first + count - 1. */
int sgt_model_part(const sgt_model *m, size_t index, size_t first, size_t count, sgt_tensor *t,
                   sgt_error *err);
/* Return how many floats an array that holds all tensors has. This includes the gaps between
 * tensors, which align them and contain zeros. */
size_t sgt_model_floats(const sgt_model *m);
/* Return the number of parameters of the model, not counting the gaps that align tensors. */
uint64_t sgt_model_parameters(const sgt_model *m);

/* The following two functions, defined in config_json.c, read and write a config.json in the format
 * of Hugging Face's GPT-2. */

/* Set *m from DIR/config.json. Return SGT_EFORMAT if the file requests an unsupported feature, for
 * example a different activation function or cross-attention. The error message names the field. */
int sgt_model_read_config(sgt_model *m, const char *dir, sgt_error *err);

/* Write DIR/config.json and DIR/generation_config.json. eot: id of the end-of-text token, which is
 * also the first token of each document; -1 if unknown. */
int sgt_model_write_config(const sgt_model *m, const char *dir, int64_t eot, sgt_error *err);

#endif
