/* batches.h: a folder of shards, loaders of it, and their batches held to what the shards' content
 * says, for the tests beside this file. */
#ifndef SGT_TEST_BATCHES_H
#define SGT_TEST_BATCHES_H

#include "loader/handle.h"
#include "tests/loader/shards.h"

/* Shards 0 ... 4 in folder d, of 5000, 17, 1234, 40 and 3000 tokens: shard 1 has one window of T =
 * 16. */
void put_folder(void);

/* What must succeed. */
sgt_loader *open_loader(const char *path, const sgt_loader_options *o,
                        const sgt_reader_fault *fault);
sgt_cursor *open_cursor(const sgt_loader *l);

/* Opens a loader and closes it again: what sgt_loader_open says. */
int open_only(const char *path, const sgt_loader_options *o, sgt_error *err);

/* Batch k in all three outputs against the tokens that sgt_loader_window points at. map: from used
 * shards to token_at's; NULL: they are the same. */
void check_batch(const sgt_loader *l, sgt_cursor *c, uint64_t k, const uint32_t *map);

/* Batches first ... first + n - 1, one after the other, so that a reader can expect them; in u16
 * alone. */
void check_run(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t n, const uint32_t *map);

/* Many batches of a loader that is opened for them. */
void check_loader(const char *path, const sgt_loader_options *o, const sgt_reader_fault *fault,
                  const uint32_t *map);

/* How many descriptors this process has, and one more for the counting. */
unsigned open_descriptors(void);

#endif
