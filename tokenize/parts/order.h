/* order.h: deliver the documents of one split, from all parts, in the order of the output.
 *
 *     sgt_order *o;
 *     sgt_order_request r = {.set = set, .split = 0, .ranks = 1};
 *     if (sgt_order_scatter(&r, &err) < 0) ...; // if it is shuffled
 *     if (sgt_order_open(&o, &r, &err) < 0) ...;
 *     for (at = 0; at < sgt_order_tokens(o); at += ids.count)
 *         if (sgt_order_read(o, at, UINT64_MAX, &ids, &err) < 0) ...;
 *     sgt_order_close(o);
 *
 * The order is that of the input, part after part, or shuffled. Duplicates are left out (dedup.h).
 * Only one thread at a time may use an order.
 *
 * Shuffled, document n of a split (in input order, duplicates counted) has the key XXH3-64(n as 8
 * bytes, little endian; seed); the order is that of (key, n). It is a list of batches, each of which
 * is sorted when it begins. There are two ways:
 *
 * - One batch, whose documents are read from the parts. One rank, or all ranks of one machine, do
 *   this if the tokens of the split fit in half of the memory that is free. The parts were just
 *   written, so they are in the page cache, and random reads of them cost less than to write and
 *   read all tokens once more. The list of documents takes at most 192 MiB in all ranks. The shards
 *   of the parts stay open.
 *
 * - Buckets. Documents are copied once into the files of buckets, by the leading bits of their
 *   keys. Each rank copies its share of the documents into files of its own, in
 *   WORK/sorting/SPLIT/RANK-of-RANKS. A bucket, which is one file of each rank, has about 64 MiB
 *   (more above 32 GiB of tokens, or with a very long document). Any rank can then read the buckets
 *   in the order of the keys. It loads one bucket at a time. Memory of a rank, besides: 64 KiB per
 *   file while files are written, and 8 bytes for each document of one shard of a part. The file
 *   "counts" in a rank's folder appears when all its files are on disk, and a later run then does
 *   not write them again.
 *
 * A batch takes 48 bytes of memory for each of its documents, half of them to sort. */
#ifndef SGT_ORDER_H
#define SGT_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/parts/dedup.h"
#include "tokenize/out/made.h"

typedef struct sgt_order_request {
    sgt_made *set; /* the parts, in the order of the input; only one order at a time may use it */
    int split;
    /* tells which documents are duplicates, which are left out; NULL: keep all */
    const sgt_dedup *dedup;
    int shuffle;
    uint64_t seed;
    const char *work;     /* folder for shuffled documents */
    uint32_t rank, ranks; /* of those that make shards side by side */
    /* bytes of memory for documents that are read from the parts in any order; 0: none, because the
     * ranks run on several machines */
    uint64_t memory;
    const sgt_stop *stop;
    /* called with the number of tokens that have been scattered since the last call; NULL: no
     * reports */
    void (*advance)(void *ctx, uint64_t tokens);
    void *ctx;
} sgt_order_request;

typedef struct sgt_order sgt_order;

/* Return whether sgt_order_scatter copies the documents into files. */
int sgt_order_copies(const sgt_order_request *r);

/* Prepare an order that is shuffled: scatter our share of the documents, if they are copied. After
 * this, and when all ranks have done so, each rank can open the order. */
int sgt_order_scatter(const sgt_order_request *r, sgt_error *err);

/* Open an order. */
int sgt_order_open(sgt_order **out, const sgt_order_request *r, sgt_error *err);
void sgt_order_close(sgt_order *o); /* NULL is allowed */

uint64_t sgt_order_tokens(const sgt_order *o); /* tokens of all documents */

/* Tokens of one document, in the order. */
typedef struct sgt_order_ids {
    const void *ids; /* of the set's width; valid until the next read */
    size_t count;
    int begins; /* 1: the first one begins the document */
} sgt_order_ids;

/* Read some tokens of one document, at most `most` and at least one, from token `at` of the whole
 * order on, which must exist. Reads that follow each other are fast. */
int sgt_order_read(sgt_order *o, uint64_t at, uint64_t most, sgt_order_ids *out, sgt_error *err);

#endif
