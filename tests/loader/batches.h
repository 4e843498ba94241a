/* batches.h: a folder of shards, loaders that read it, and checks of their batches against the
 * shards' known content. For the tests in this folder. */
#ifndef SGT_TEST_BATCHES_H
#define SGT_TEST_BATCHES_H

#include "loader/handle.h"
#include "tests/loader/faults.h"
#include "tests/loader/shards.h"

/* Write folder d with shards 0 to 4, of 5000, 17, 1234, 40 and 3000 tokens. With T = 16, shard 1
 * has exactly one window. */
void put_folder(void);

/* 1: loaders opened by open_loader copy rows one token at a time, in plain C. */
extern int scalar;

/* Open a loader of the data at `path`, or, if that is NULL, of the data that the options name.
 * Inject `fault` (NULL: none). If opening fails, the test fails. */
sgt_loader *open_loader(const char *path, const sgt_loader_options *o, const reader_fault *fault);
sgt_cursor *open_cursor(const sgt_loader *l);
sgt_loader_info loader_info(const sgt_loader *l);

/* Open a loader as open_loader does, close it again, and return what sgt_loader_open returned. A
 * failure does not fail the test. */
int open_only(const char *path, const sgt_loader_options *o, sgt_error *err);

/* Compare the ids of batch k with the tokens that sgt_loader_window points at. `map` is as for
 * check_batch. */
void check_ids(const sgt_loader *l, const sgt_loader_batch *b, uint64_t k, const uint32_t *map);

/* Compare batch k, in every output format, with the tokens that sgt_loader_window points at. map
 * gives the shard number for token_at of each used shard; NULL: the same number. */
void check_batch(const sgt_loader *l, sgt_cursor *c, uint64_t k, const uint32_t *map);

/* Return the output format that has the loader's rows as they are stored: u16, or i32 for 4-byte
 * ids. */
sgt_output output_of_rows(const sgt_loader *l);

/* Check the rows of batches first .. first + n - 1 in the format of output_of_rows. They are drawn
 * in order, so that a reader can fetch them ahead. */
void check_run(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t n, const uint32_t *map);

/* Check that a stream delivers the same ids, lengths and document starts as a cursor. */
void check_stream(const sgt_loader *l, sgt_output output, uint32_t threads, uint32_t slots);
/* Check streams from folder d like that, in every output format. */
void check_streams(sgt_sampling sampling);

/* Open a loader and check many of its batches. */
void check_loader(const char *path, const sgt_loader_options *o, const reader_fault *fault,
                  const uint32_t *map);

/* Return the number of open file descriptors of this process, plus the one that the counting
 * opens. */
unsigned open_descriptors(void);

#endif
