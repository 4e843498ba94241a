/* batches.h: a folder of shards, loaders that read it, and checks of their batches against the
 * shards' known content; for the tests beside this file. */
#ifndef SGT_TEST_BATCHES_H
#define SGT_TEST_BATCHES_H

#include "loader/handle.h"
#include "tests/loader/shards.h"

/* Write shards 0 .. 4 to folder d, of 5000, 17, 1234, 40 and 3000 tokens. Shard 1 has one window of
 * T = 16. */
void put_folder(void);

/* Open a loader; the test fails if that fails. */
sgt_loader *open_loader(const char *path, const sgt_loader_options *o,
                        const sgt_reader_fault *fault);
sgt_cursor *open_cursor(const sgt_loader *l);

/* Open a loader and close it again; return what sgt_loader_open returned. */
int open_only(const char *path, const sgt_loader_options *o, sgt_error *err);

/* Compare batch k, in all outputs, with the tokens that sgt_loader_window points at. map:
 * from used shards to the shard numbers of token_at; NULL: they are the same. */
void check_batch(const sgt_loader *l, sgt_cursor *c, uint64_t k, const uint32_t *map);

/* Check batches first .. first + n - 1 in order, so that a reader can fetch them ahead; only as
 * uint16. */
void check_run(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t n, const uint32_t *map);

/* Open a loader and check many of its batches. */
void check_loader(const char *path, const sgt_loader_options *o, const sgt_reader_fault *fault,
                  const uint32_t *map);

/* Return the number of descriptors of this process, plus one that the counting itself opens. */
unsigned open_descriptors(void);

#endif
