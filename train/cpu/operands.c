/* operands.c: gives activations and weights in the type that the products take. */
#include "train/cpu/cpu_backend.h"

const void *sgt_cpu_operand(const sgt_cpu_backend *c, const float *x)
{
    const sgt_cpu_shape *s = &c->shape;
    if (!s->bf16) return x;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < s->tiles; t++) {
        size_t n, at = sgt_cpu_tile(s, t, &n) * s->C;
        s->k->to_bf16(c->buf.packed + at, x + at, n * s->C);
    }
    return c->buf.packed;
}

const void *sgt_cpu_weights(const sgt_cpu_backend *c, size_t offset)
{
    return (const char *)c->buf.weights +
           offset * (c->shape.bf16 ? sizeof(uint16_t) : sizeof(float));
}

void sgt_cpu_take_weights(const sgt_cpu_backend *c, size_t offset, size_t count)
{
    const sgt_cpu_shape *s = &c->shape;
    if (s->bf16) s->k->to_bf16((uint16_t *)c->buf.weights + offset, c->buf.params + offset, count);
    else if (s->rounding)
        s->k->round_to((float *)c->buf.weights + offset, c->buf.params + offset, count, s->format);
}
