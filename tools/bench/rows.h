/* rows.h: sources of rows for measured steps: random tokens in memory, a loader as in training, or
 * text that is encoded when its row is asked for. One thread makes all calls of one source.
 *
 *     step_rows *rows;
 *     if (bench_rows_random(&rows, vocab, batch, seq, &err) < 0) ...;
 *     if (bench_rows_open(rows, backend, micro_steps, &err) == 0)
 *         while (...) bench_rows_next(rows, &tokens, &err);    // (batch, seq + 1)
 *     bench_rows_close(rows);                                  // before the backend is closed
 *     bench_rows_free(rows);                                   // accepts NULL */
#ifndef SGT_TOOLS_BENCH_ROWS_H
#define SGT_TOOLS_BENCH_ROWS_H

#include "loader/sgt_loader.h"
#include "train/backend.h"

typedef struct step_rows step_rows;

/* Cycle through eight batches of uniform tokens below `vocab`. */
int bench_rows_random(step_rows **out, uint32_t vocab, uint32_t batch, uint32_t seq,
                      sgt_error *err);

/* Take batches 0, 1, ... of the loader, which stays the caller's. A thread prepares them; if `now`
 * is set, each is made only when it is asked for. */
int bench_rows_loader(step_rows **out, const sgt_loader *l, int now, sgt_error *err);

/* Make the same rows from text. Opening decodes each of the loader's windows; asking for a row
 * encodes the text and cuts it to the row's length. Tokens at a row's beginning, and so those after
 * it, may differ from the loader's. SGT_EUNSUPPORTED: the loader's tokens are not GPT-2's. */
int bench_rows_text(step_rows **out, const sgt_loader *l, sgt_error *err);

/* Prepare rows for `count` micro-steps of this backend, as a run does before its first step. */
int bench_rows_open(step_rows *r, const sgt_backend *b, uint64_t count, sgt_error *err);
int bench_rows_next(step_rows *r, const uint16_t **tokens, sgt_error *err);
void bench_rows_close(step_rows *r);
void bench_rows_free(step_rows *r);

#endif
