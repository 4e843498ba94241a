/* norm.c: sums the squares of the gradients, for their norm. */
#include <math.h>

#include "train/cpu/cpu_backend.h"

double sgt_cpu_squares(sgt_cpu_backend *c, int all)
{
    const sgt_cpu_update *u = &c->update;
    double sum = 0;
#pragma omp parallel for num_threads(c->shape.o.threads) schedule(static)
    for (size_t i = 0; i < u->piece_count; i++) {
        const sgt_cpu_piece *p = u->pieces + i;
        c->buf.squares[i] =
            p->squared && !all ? 0 : c->shape.k->sum_squares(c->buf.grads + p->offset, p->count);
    }
    for (size_t i = 0; i < u->piece_count; i++) sum += c->buf.squares[i];
    return sum;
}

double sgt_cpu_squared_norm(sgt_cpu_backend *c)
{
    double sum = c->step.head_squares + c->step.token_squares + sgt_cpu_squares(c, 0);
    for (size_t i = 0; i < c->shape.o.model.layers; i++) sum += c->blocks[i].squares;
    return isfinite(sum) ? sum : sgt_cpu_squares(c, 1);
}
