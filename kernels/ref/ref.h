/* ref.h: declarations of the reference kernels, for the table in ref.c. Shapes and mathematics are
 * in kernels.h. */
#ifndef SGT_REF_H
#define SGT_REF_H

#include <string.h>

#include "kernels/kernels.h"

/* Return the value of a bfloat16, which is the upper half of a float. */
static inline double sgt_ref_widened(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void sgt_ref_embed(float *out, const int32_t *ids, const float *wte, const float *wpe, size_t row0,
                   size_t n, size_t T, size_t C);
double sgt_ref_embed_backward(float *dwte, float *dwpe, const int32_t *ids, const float *dout,
                              size_t n, size_t T, size_t C, size_t c0, size_t c1);
void sgt_ref_layernorm(float *out, float *mean, float *rstd, const float *x, const float *w,
                       const float *b, size_t n, size_t C, float eps);
void sgt_ref_residual_layernorm(float *sum, float *out, float *mean, float *rstd, const float *x,
                                const float *y, const float *w, const float *b, size_t n, size_t C,
                                float eps);
void sgt_ref_layernorm_backward(float *dx, float *dw, float *db, const float *dout, const float *x,
                                const float *mean, const float *rstd, const float *w, size_t n,
                                size_t C);
void sgt_ref_dropout(float *out, const float *x, size_t n, const sgt_dropout *d);
void sgt_ref_normals(float *out, size_t n, const sgt_normals *d);
void sgt_ref_gelu(float *out, const float *x, size_t n, sgt_gelu_kind kind);
void sgt_ref_gelu_backward(float *dx, const float *dout, const float *x, size_t n,
                           sgt_gelu_kind kind);
void sgt_ref_attention(float *out, size_t ld_out, float *lse, const float *q, const float *k,
                       const float *v, size_t ld, size_t T, size_t D, float scale,
                       const sgt_dropout *drop, const int32_t *start, float *scratch);
void sgt_ref_attention_backward(float *dq, float *dk, float *dv, size_t ld_d, const float *dout,
                                const float *out, size_t ld_out, const float *lse, const float *q,
                                const float *k, const float *v, size_t ld, size_t T, size_t D,
                                float scale, const sgt_dropout *drop, const int32_t *start,
                                float *scratch);
size_t sgt_ref_attention_scratch(size_t T, size_t D);
void sgt_ref_cross_entropy(float *logits, float *loss, const int32_t *targets, size_t n, size_t V,
                           size_t ld, float scale);
void sgt_ref_dots(float *out, size_t ld_out, const float *x, const float *w, const float *bias,
                  size_t n, size_t m, size_t k);
void sgt_ref_dots_bf16(float *out, size_t ld_out, const float *x, const uint16_t *w,
                       const float *bias, size_t n, size_t m, size_t k);
void sgt_ref_attend(float *out, const float *q, const float *k, const float *v, size_t T, size_t D,
                    float scale, float *scores);
void sgt_ref_bias_backward(float *db, const float *dout, size_t n, size_t C, size_t ld);
void sgt_ref_bias_backward_bf16(float *db, const uint16_t *dout, size_t n, size_t C, size_t ld);
void sgt_ref_round(float *out, const float *x, size_t n, sgt_rounding to);
void sgt_ref_to_bf16(uint16_t *out, const float *x, size_t n);
void sgt_ref_add(float *x, const float *y, size_t n);
double sgt_ref_sum_squares(const float *x, size_t n);
double sgt_ref_add_squares(float *x, const float *y, size_t n);
void sgt_ref_adamw(float *p, float *m, float *v, const float *g, size_t n, const sgt_adamw *a,
                   uint16_t *copy);
void sgt_ref_adamw_bf16(float *p, uint16_t *m, uint16_t *v, const float *g, size_t n,
                        const sgt_adamw *a, const sgt_random *r, uint16_t *copy);
void sgt_ref_sgd(float *p, float *m, const float *g, size_t n, const sgt_sgd *o);

#endif
