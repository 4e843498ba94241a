/* course.c: which batches a cursor will probably be asked for next. */
#include "loader/handle.h"

void sgt_cursor_set_course(sgt_cursor *c, uint64_t stride, uint64_t end)
{
    c->course = stride;
    c->end = end;
}

void sgt_cursor_steer(sgt_cursor *c, uint64_t index)
{
    uint64_t step = index - c->last;
    c->stride = c->course ? c->course : step == 1 || step == c->step ? step : 0;
    c->last = index;
    c->step = step;
}

int sgt_cursor_coming(const sgt_loader *l, const sgt_cursor *c, uint64_t next, uint32_t known,
                      uint64_t *index)
{
    uint64_t way;
    return c->stride && !__builtin_mul_overflow(known, c->stride, &way) &&
           !__builtin_add_overflow(next, way, index) && *index <= UINT64_MAX / l->o.batch - 1 &&
           !(c->end && *index >= c->end);
}
