/* muon.c: Muon for the four matrices of each block (kernels/muon.h); update.c has AdamW for the
 * rest. On several ranks each matrix belongs to one of them, which alone updates it from the summed
 * gradients (ranks.c). */
#include "train/cpu/cpu_backend.h"

int sgt_cpu_by_muon(const sgt_cpu_shape *s, size_t tensor)
{
    static const int linear[SGT_BLOCK_TENSORS] = {[SGT_QKV_W] = SGT_LINEAR_QKV + 1,
                                                  [SGT_PROJ_W] = SGT_LINEAR_PROJ + 1,
                                                  [SGT_FC_W] = SGT_LINEAR_FC + 1,
                                                  [SGT_FCPROJ_W] = SGT_LINEAR_FCPROJ + 1};
    size_t in_blocks = (size_t)s->o.model.layers * SGT_BLOCK_TENSORS;
    if (s->o.optim.kind != SGT_MUON || tensor < 2 || tensor >= 2 + in_blocks) return -1;
    return linear[(tensor - 2) % SGT_BLOCK_TENSORS] - 1;
}

size_t sgt_cpu_second(const sgt_cpu_shape *s, size_t tensor)
{
    size_t tensors = sgt_model_tensors(&s->o.model), flat = sgt_model_floats(&s->o.model),
           without = 0;
    sgt_tensor t, next;
    for (size_t i = 0; i < tensor && i < tensors; i++) {
        if (sgt_cpu_by_muon(s, i) < 0) continue;
        sgt_model_tensor(&s->o.model, i, &t);
        sgt_model_tensor(&s->o.model, i + 1, &next); /* its bias */
        without += next.offset - t.offset;
    }
    if (tensor >= tensors) return flat - without;
    sgt_model_tensor(&s->o.model, tensor, &t);
    return t.offset - without;
}

/* Return the shape of a block's matrix. */
static sgt_muon_shape shape_of(const sgt_cpu_shape *s, int linear)
{
    static const size_t rows[] =
        {[SGT_LINEAR_QKV] = 1, [SGT_LINEAR_PROJ] = 1, [SGT_LINEAR_FC] = 1, [SGT_LINEAR_FCPROJ] = 4},
                        columns[] = {[SGT_LINEAR_QKV] = 3,
                                     [SGT_LINEAR_PROJ] = 1,
                                     [SGT_LINEAR_FC] = 4,
                                     [SGT_LINEAR_FCPROJ] = 1};
    return (sgt_muon_shape){.rows = rows[linear] * s->C,
                            .columns = columns[linear] * s->C,
                            .rounding = s->rounding,
                            .format = s->format,
                            .bf16 = s->bf16};
}

size_t sgt_cpu_muon_memory(const sgt_cpu_shape *s)
{
    size_t most = 0;
    for (int i = 0; i < SGT_LINEAR_BLOCK; i++) {
        sgt_muon_shape m = shape_of(s, i);
        size_t bytes = sgt_muon_memory(&m);
        if (bytes > most) most = bytes;
    }
    return most;
}

int sgt_cpu_muon_plan(sgt_cpu_backend *c, sgt_error *err)
{
    int rc = SGT_OK;
    for (int i = 0; i < SGT_LINEAR_BLOCK && c->buf.muon && rc == SGT_OK; i++) {
        sgt_muon_shape m = shape_of(&c->shape, i);
        m.memory = c->buf.muon;
        m.scratch = c->buf.products;
        rc = sgt_muon_plan(&c->muon[i], &m, c->shape.o.threads, err);
    }
    return rc;
}

void sgt_cpu_muon_update(sgt_cpu_backend *c, double lr, double scale)
{
    const sgt_cpu_buffers *b = &c->buf;
    const sgt_cpu_update *u = &c->update;
    const sgt_muon_update o = sgt_optim_muon(&c->shape.o.optim, lr, scale);
    if (!b->muon) return;
    for (size_t i = 0; i < u->piece_count; i++) {
        const sgt_cpu_piece *p = u->pieces + i;
        if (!p->muon || !p->first) continue;
        sgt_muon_run(c->muon[p->linear], b->params + p->offset, (float *)b->m + p->offset,
                     b->grads + p->offset, &o);
    }
#pragma omp parallel for num_threads(c->shape.o.threads) schedule(static)
    for (size_t i = 0; i < u->piece_count; i++)
        if (u->pieces[i].muon) sgt_cpu_take_weights(c, u->pieces[i].offset, u->pieces[i].count);
}
