/* handle.h: the definitions of sgt_loader and sgt_cursor, for the .c files of this folder and for
 * tests. */
#ifndef SGT_HANDLE_H
#define SGT_HANDLE_H

#include "loader/shards/documents.h"
#include "loader/read/reader.h"
#include "loader/rows/rows.h"
#include "loader/sample/mix.h"
#include "loader/sample/pack.h"
#include "loader/shards/set.h"
#include "loader/sgt_loader.h"

/* One of the sets that a loader draws from. l->set lists the shards of all sets, one set after the
 * other. */
typedef struct sgt_loader_part {
    char *path;
    double weight;
    uint64_t tokens, hash;
    uint32_t first, shards, skipped; /* its shards are first ... first + shards - 1 */
} sgt_loader_part;

struct sgt_loader {
    sgt_loader_options o; /* with defaults filled in; split and sets are NULL once it is open */
    sgt_set set;          /* the shards of all sets, in the order of the sets */
    sgt_loader_part *parts;
    uint32_t part_count;
    /* filled in for the sampling or the option of that name; for packed, only its count */
    sgt_documents documents;
    sgt_pack *packs; /* (part_count): for sampling packed; else NULL */
    sgt_mix mix;
    const sgt_reader_ops *ops;
    void *reader;
    const sgt_rows *rows;
};

struct sgt_cursor {
    const sgt_loader *l;
    void *reader_cursor;
    sgt_mix_memo memo;
    sgt_window *windows;     /* (local_batch): windows of the current batch, inside `drawn` */
    const uint16_t **tokens; /* (local_batch): first token of each window */

    /* The reader has been told to expect `known` batches: next, next + stride, ... Their windows
     * and those of the current batch are in `drawn`, a ring of (1 + ahead) * local_batch
     * windows. */
    sgt_window *drawn;
    uint32_t ahead, at, known;
    uint64_t next, stride; /* stride 0: unknown */
    /* index of the last batch; its distance from the batch before it; the stride that
     * sgt_cursor_set_course announced, or 0 */
    uint64_t last, step, course;
    uint64_t end; /* first batch that will not be drawn; 0: none */

    int past; /* use non-temporal stores for the output rows */

    /* for sampling documents, (local_batch) each; else NULL */
    uint32_t *lengths, *left; /* real tokens of each row; those not fetched yet */
    sgt_window *pieces;       /* pieces of rows that one call of the reader fetches */
    /* (local_batch, T+1): the rows, for sampling documents and packed */
    uint16_t *gathered;
    struct sgt_packed *packed; /* for sampling packed */

    /* with options.documents; else NULL. (local_batch + 1); and room for local_batch*(T+1) */
    uint32_t *starts_first, *starts; /* (local_batch + 1), and room for local_batch*(T+1) */
    sgt_row_documents begun;
};

/* packed.c: make the plan of each set, from l->documents, which it frees (after a failure too); set
 * the plans' seeds, once the mix is open; return where row `row` of the run begins. */
int sgt_loader_open_packs(sgt_loader *l, sgt_error *err);
void sgt_loader_seed_packs(sgt_loader *l);
void sgt_loader_close_packs(sgt_loader *l);
sgt_window sgt_loader_draw_packed(const sgt_loader *l, uint64_t row);

/* packed.c: allocate what sampling packed needs for n rows (returns 0 if out of memory), free it,
 * and fetch the rows of batch `index` into c->gathered. */
int sgt_cursor_open_packed(sgt_cursor *c, const sgt_loader *l, uint32_t n);
void sgt_cursor_close_packed(sgt_cursor *c);
int sgt_cursor_fetch_packed(const sgt_loader *l, sgt_cursor *c, uint64_t index, sgt_error *err);

/* course.c: guess, from the batches asked for until now, how far apart they are. Then return
 * whether there is a `known`-th batch after the next one, and its index. */
void sgt_cursor_steer(sgt_cursor *c, uint64_t index);
int sgt_cursor_coming(const sgt_loader *l, const sgt_cursor *c, uint64_t next, uint32_t known,
                      uint64_t *index);

/* Called before row i of n is made. At the first row of a group, prefetch the windows of the next
 * group, so that they arrive while this group is copied. At row 0, prefetch the first two
 * groups. */
static inline void sgt_cursor_ask_ahead(const sgt_cursor *c, const sgt_window *windows, uint32_t i,
                                        uint32_t n)
{
    uint32_t group = sgt_rows_group((size_t)c->l->o.seq + 1);
    if (i % group) return;
    uint32_t from = i ? i + group : 0, to = n - i > 2 * group ? i + 2 * group : n;
    for (uint32_t k = from; k < to; k++) sgt_rows_expect(c->tokens[k], windows[k].tokens);
}

/* Implemented in starts.c. Allocate starts_first, starts and begun for n rows (return 0 if out of
 * memory), free them, and fill them in for the current batch. */
int sgt_cursor_open_starts(sgt_cursor *c, const sgt_loader *l, size_t n);
void sgt_cursor_close_starts(sgt_cursor *c);
void sgt_cursor_find_starts(const sgt_loader *l, sgt_cursor *c);

/* Announce, before the first batch, that c will draw batches `stride` apart and none from `end` on
 * (0: endless). Without this call a cursor guesses from the batches that it was asked for. A wrong
 * guess only costs time. */
void sgt_cursor_set_course(sgt_cursor *c, uint64_t stride, uint64_t end);

/* The arrays that a batch is written to: the caller's memory, in the format `output`. */
typedef struct sgt_batch_arrays {
    sgt_output output;
    void *first;  /* rows, or inputs */
    void *second; /* targets, or NULL */
} sgt_batch_arrays;

/* Write batch `index` as sgt_loader_batch and sgt_loader_batch_i32 do. */
int sgt_loader_write(const sgt_loader *l, sgt_cursor *c, uint64_t index, const sgt_batch_arrays *to,
                     sgt_error *err);

/* Implemented in sets.c. Fill in l->set and l->parts from `path` or l->o.sets. */
int sgt_loader_open_sets(sgt_loader *l, const char *path, sgt_error *err);
void sgt_loader_close_sets(sgt_loader *l);

/* Fill in `windows` with where this rank's rows of batch `index` start; for sampling
 * documents, also how many tokens each has. memo must not be NULL. Not for sampling packed. */
void sgt_loader_draw_batch(const sgt_loader *l, sgt_mix_memo *memo, uint64_t index,
                           sgt_window *windows);

/* Set whether rows are written with non-temporal stores: useful if they go into a ring too large to
 * stay in the caches. */
void sgt_cursor_set_past(sgt_cursor *c, int past);

#endif
