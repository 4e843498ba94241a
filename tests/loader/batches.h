/* batches.h: a folder of shards, loaders that read it, and checks of their batches against the
 * shards' known content; for the tests beside this file. */
#ifndef SGT_TEST_BATCHES_H
#define SGT_TEST_BATCHES_H

#include "loader/handle.h"
#include "tests/loader/faults.h"
#include "tests/loader/shards.h"

/* Write folder d with shards 0 to 4, of 5000, 17, 1234, 40 and 3000 tokens. With T = 16, shard 1
 * has exactly one window. */
void put_folder(void);

/* 1: the loaders that open_loader opens copy one token at a time. */
extern int scalar;

/* Open a loader of the data at `path`, or that the options name if it is NULL; a failure fails the
 * test. */
sgt_loader *open_loader(const char *path, const sgt_loader_options *o, const reader_fault *fault);
sgt_cursor *open_cursor(const sgt_loader *l);
sgt_loader_info loader_info(const sgt_loader *l);

/* Open it likewise, close it if that worked, and return what sgt_loader_open returned. */
int open_only(const char *path, const sgt_loader_options *o, sgt_error *err);

/* Compare the ids of batch k with the tokens that sgt_loader_window points at. map is check_batch's. */
void check_ids(const sgt_loader *l, const sgt_loader_batch *b, uint64_t k, const uint32_t *map);

/* Compare batch k, in every output format, with the tokens that sgt_loader_window points at. map
 * gives the shard number for token_at of each used shard; NULL: the same number. */
void check_batch(const sgt_loader *l, sgt_cursor *c, uint64_t k, const uint32_t *map);

/* Return the output in which rows of a loader are the tokens that it reads: u16, or i32. */
sgt_output output_of_rows(const sgt_loader *l);

/* Check the rows of batches first .. first + n - 1 in that output. They are drawn in order, so that a
 * reader can fetch them ahead. */
void check_run(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t n, const uint32_t *map);

/* Check that a stream of an output delivers the ids, lengths and starts that a cursor reads. */
void check_stream(const sgt_loader *l, sgt_output output);

/* Open a loader and check many of its batches. */
void check_loader(const char *path, const sgt_loader_options *o, const reader_fault *fault,
                  const uint32_t *map);

/* Return the number of descriptors of this process, plus one that the counting itself opens. */
unsigned open_descriptors(void);

#endif
