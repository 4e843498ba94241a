/* kernels.inc.h: every kernel, written once in vectors of W floats and compiled once per level, and
 * for AVX-512 once more with attention's products in bfloat16 (ATTENTION_BF16). A level's file
 * defines the name of its table and includes this file. Everything but the table is static, so that
 * no level's code can be linked in place of another's. */
#ifndef ATTENTION_BF16
#define ATTENTION_BF16 0
#endif
#ifndef ATTENTION_AMX
#define ATTENTION_AMX 0
#endif
#include "kernels/kernels.h"
#include "kernels/cpu/levels.h"
#include "kernels/cpu/simd.h"

#include "kernels/cpu/adamw.h"
#if ATTENTION_AMX
#include "kernels/cpu/attention_amx.h"
#else
#include "kernels/cpu/attention.h"
#endif
#include "kernels/cpu/bias.h"
#include "kernels/cpu/cross_entropy.h"
#include "kernels/cpu/decode.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/embed.h"
#include "kernels/cpu/gelu.h"
#include "kernels/cpu/layernorm.h"
#include "kernels/cpu/normals.h"
#include "kernels/cpu/round.h"
#include "kernels/cpu/sgd.h"
#include "kernels/cpu/vector.h"

const sgt_kernels SGT_LEVEL_TABLE = {
    .level = SGT_LEVEL_NAME,
    .embed = embed,
    .embed_backward = embed_backward,
    .layernorm = layernorm,
    .residual_layernorm = residual_layernorm,
    .layernorm_backward = layernorm_backward,
    .gelu = gelu,
    .gelu_backward = gelu_backward,
    .dropout = dropout,
    .normals = normals,
    .attention = attention,
    .attention_backward = attention_backward,
    .attention_scratch = attention_scratch,
    .cross_entropy = cross_entropy,
    .dots = dots,
    .dots_bf16 = dots_bf16,
    .attend = attend,
    .bias_backward = bias_backward,
    .bias_backward_bf16 = bias_backward_bf16,
    .round_to = round_to,
    .to_bf16 = to_bf16,
    .add = add,
    .sum_squares = sum_squares,
    .add_squares = add_squares,
    .adamw = adamw,
    .adamw_bf16 = adamw_bf16,
    .sgd = sgd,
};
