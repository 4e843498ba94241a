/* ref.c: the table of reference kernels. */
#include "kernels/ref/ref.h"

const sgt_kernels *sgt_kernels_ref(void)
{
    static const sgt_kernels table = {
        .level = "ref",
        .embed = sgt_ref_embed,
        .embed_backward = sgt_ref_embed_backward,
        .layernorm = sgt_ref_layernorm,
        .residual_layernorm = sgt_ref_residual_layernorm,
        .layernorm_backward = sgt_ref_layernorm_backward,
        .gelu = sgt_ref_gelu,
        .gelu_backward = sgt_ref_gelu_backward,
        .dropout = sgt_ref_dropout,
        .normals = sgt_ref_normals,
        .attention = sgt_ref_attention,
        .attention_backward = sgt_ref_attention_backward,
        .attention_scratch = sgt_ref_attention_scratch,
        .cross_entropy = sgt_ref_cross_entropy,
        .dots = sgt_ref_dots,
        .dots_bf16 = sgt_ref_dots_bf16,
        .attend = sgt_ref_attend,
        .bias_backward = sgt_ref_bias_backward,
        .bias_backward_bf16 = sgt_ref_bias_backward_bf16,
        .round_to = sgt_ref_round,
        .to_bf16 = sgt_ref_to_bf16,
        .add = sgt_ref_add,
        .sum_squares = sgt_ref_sum_squares,
        .add_squares = sgt_ref_add_squares,
        .adamw = sgt_ref_adamw,
        .adamw_bf16 = sgt_ref_adamw_bf16,
        .sgd = sgt_ref_sgd,
    };
    return &table;
}
