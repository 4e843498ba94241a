/* model.h: the shape of a GPT-2, and the names, shapes and offsets of its tensors in one flat
 * array.
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
 * Parameters, gradients and both moments share this layout. Linear weights are (in, out) row-major,
 * as Hugging Face's GPT-2 stores them, so checkpoints are written and read without conversion. The
 * head is tied to wte, or has its own weight of the same shape. No function has side effects. */
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
    uint32_t untied; /* 1: the head has its own weight tensor */
} sgt_model;

/* The tensors of a block, in their order. In the model, tensor 0 is wte and tensor 1 is wpe. Tensor
 * 2 + SGT_BLOCK_TENSORS*layer + SGT_... belongs to a block. After the blocks come the two tensors
 * of ln_f, and lm_head.weight if the head is untied. */
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
    /* "h.3.attn.c_attn.weight": the name in Hugging Face's GPT-2, without "transformer." */
    char name[48];
    uint32_t dims;   /* 1 or 2 */
    uint32_t dim[2]; /* dim[1] is 1 if dims is 1 */
    size_t count;    /* floats */
    size_t offset;   /* index of the first float in the flat array; a multiple of 16 */
} sgt_tensor;

/* Set *m by name: "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl" or LxCxH (layers, channels,
 * heads), with GPT-2's 1024 positions, 50,257 ids and tanh GELU. Returns SGT_EUSAGE for any other
 * name. */
int sgt_model_named(sgt_model *m, const char *name, sgt_error *err);

/* Check that the model is valid: `heads` divides `channels`, `vocab` is at most SGT_MOST_IDS, and
 * no size overflows. An error message begins with `what`. */
int sgt_model_check(const sgt_model *m, const char *what, sgt_error *err);

size_t sgt_model_tensors(const sgt_model *m);
void sgt_model_tensor(const sgt_model *m, size_t index, sgt_tensor *t);
/* Describe tensor `index` in *t, and check that floats first .. first + count - 1 are in it.
 * Returns SGT_EUSAGE if there is no such tensor, or if it does not have all these floats. */
int sgt_model_part(const sgt_model *m, size_t index, size_t first, size_t count, sgt_tensor *t,
                   sgt_error *err);
/* Return the number of floats in the flat array. This includes the gaps between tensors, which are
 * there for alignment and stay 0. */
size_t sgt_model_floats(const sgt_model *m);
uint64_t sgt_model_parameters(const sgt_model *m); /* number of parameters, without the gaps */

/* The following are in config_json.c; config.json has the form of Hugging Face's GPT-2. */

/* Read DIR/config.json. Returns SGT_EFORMAT if the file asks for an unsupported feature (such as
 * another activation, or cross-attention); the message names the field. */
int sgt_model_read_config(sgt_model *m, const char *dir, sgt_error *err);

/* Write DIR/config.json and DIR/generation_config.json. eot: the end-of-text id, which begins
 * documents; -1 if unknown. */
int sgt_model_write_config(const sgt_model *m, const char *dir, int64_t eot, sgt_error *err);

#endif
