/* rows.h: where the rows of measured steps come from: random tokens that lie in memory, a loader as
 * training has it, or text that is encoded when its row is asked for. The calls of one come from
 * one thread.
 *
 *     step_rows *rows;
 *     if (bench_rows_random(&rows, vocab, batch, seq, &err) < 0) ...;
 *     if (rows->open(rows, backend, micro_steps, &err) == 0)
 *         while (...) rows->next(rows, &tokens, &err);         // (batch, seq + 1), the rows'
 *     rows->close(rows);                                       // while the backend stands
 *     rows->free(rows);                                        // NULL is fine for bench_rows_free */
#ifndef SGT_TOOLS_BENCH_ROWS_H
#define SGT_TOOLS_BENCH_ROWS_H

#include "backend.h"
#include "sgt_loader.h"

typedef struct step_rows step_rows;
struct step_rows {
    /* Makes ready for `count` micro-steps of this backend; what a run does before its first
     * step. */
    int (*open)(step_rows *r, const sgt_backend *b, uint64_t count, sgt_error *err);
    int (*next)(step_rows *r, const uint16_t **tokens, sgt_error *err);
    void (*close)(step_rows *r);
    void (*free)(step_rows *r);
};

/* Eight batches of uniform tokens below `vocab`, in turn. */
int bench_rows_random(step_rows **out, uint32_t vocab, uint32_t batch, uint32_t seq,
                      sgt_error *err);

/* Batches 0, 1, ... of the loader, which stays the caller's: made ahead by a thread, or, with
 * `now`, when asked for. */
int bench_rows_loader(step_rows **out, const sgt_loader *l, int now, sgt_error *err);

/* The same rows out of text: each window of the loader's, as the text it stands for, which was
 * decoded when the rows were opened, is encoded when asked for and cut to the row's length. Tokens
 * at a row's beginning may differ from the loader's, and so may what follows them. SGT_EUNSUPPORTED
 * where the loader's tokens are not GPT-2's. */
int bench_rows_text(step_rows **out, const sgt_loader *l, sgt_error *err);

static inline void bench_rows_free(step_rows *r)
{
    if (r) r->free(r);
}

#endif
