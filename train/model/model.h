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
 * Parameters, gradients and both moments use the same offsets. Linear weights are stored row-major
 * with shape (in, out), as in Hugging Face's GPT-2, so checkpoints need no conversion. The head
 * either uses the weight of wte (tied), or has its own weight of the same shape. No function here
 * has side effects. */
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
    uint32_t untied; /* 1: the head has its own weight; 0: it uses the weight of wte */
} sgt_model;

/* Indexes of a block's tensors within the block. In the model, tensor 0 is wte, tensor 1 is wpe,
 * and tensor SGT_X of layer l has the index 2 + SGT_BLOCK_TENSORS * l + SGT_X. The two tensors of
 * ln_f come after the last block. If the head is untied, lm_head.weight is the last tensor. */
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
    /* name as in Hugging Face's GPT-2, without "transformer.": for example
     * "h.3.attn.c_attn.weight" */
    char name[48];
    uint32_t dims;   /* 1 or 2 */
    uint32_t dim[2]; /* dim[1] is 1 if dims is 1 */
    size_t count;    /* floats */
    /* index of the tensor's first float in the array of all floats; a multiple of 16 */
    size_t offset;
} sgt_tensor;

/* Set *m to the model with this name: "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", or LxCxH for
 * L layers, C channels and H heads. The model has GPT-2's 1,024 positions, 50,257 ids and tanh
 * GELU. Return SGT_EUSAGE for any other name. */
int sgt_model_named(sgt_model *m, const char *name, sgt_error *err);

/* Check that every size of the model is in its range and that `heads` divides `channels`. The
 * message of an error begins with `what`. */
int sgt_model_check(const sgt_model *m, const char *what, sgt_error *err);

size_t sgt_model_tensors(const sgt_model *m);
void sgt_model_tensor(const sgt_model *m, size_t index, sgt_tensor *t);
/* Describe tensor `index` in *t, and check that it contains floats first .. first + count - 1.
 * Return SGT_EUSAGE if there is no such tensor, or if the tensor is too short. */
int sgt_model_part(const sgt_model *m, size_t index, size_t first, size_t count, sgt_tensor *t,
                   sgt_error *err);
/* Return the length of an array that holds all tensors, in floats. It includes the gaps that align
 * the tensors, whose floats are always 0. */
size_t sgt_model_floats(const sgt_model *m);
/* Return the number of parameters, without the gaps between tensors. */
uint64_t sgt_model_parameters(const sgt_model *m);

/* The following functions are in config_json.c. They use config.json files in the format of Hugging
 * Face's GPT-2. */

/* Read DIR/config.json. Return SGT_EFORMAT if the file requests a feature that is not supported,
 * for example another activation function or cross-attention. The message names the field. */
int sgt_model_read_config(sgt_model *m, const char *dir, sgt_error *err);

/* Write DIR/config.json and DIR/generation_config.json. eot: id of the end-of-text token, which
 * also begins each document; -1: unknown. */
int sgt_model_write_config(const sgt_model *m, const char *dir, int64_t eot, sgt_error *err);

#endif
