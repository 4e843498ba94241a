/* order.h: reads the documents of one split from all parts, in the order in which they are to be
 * written. (A part is the set of shards that one rank has written.) Only one thread at a time may
 * use an order.
 *
 *     sgt_order *o;
 *     sgt_order_request r = {.set = set, .split = 0, .ranks = 1};
 *     if (sgt_order_scatter(&r, &err) < 0) ...; // if it is shuffled
 *     if (sgt_order_open(&o, &r, &err) < 0) ...;
 *     for (at = 0; at < sgt_order_tokens(o); at += ids.count)
 *         if (sgt_order_read(o, at, UINT64_MAX, &ids, &err) < 0) ...;
 *     sgt_order_close(o);
 *
 * This order is either the order of the input (all documents of one part, then those of the next)
 * or a shuffled order. Duplicates are skipped (dedup.h).
 *
 * In a shuffled order, document n of a split (in input order, counting duplicates) has the key
 * XXH3-64(n as 8 bytes, little endian; seed), and documents are sorted by (key, n). The documents
 * are divided into batches, and a batch is sorted when its first document is read. For each
 * document of the current batch, 48 bytes of memory are needed, half of them for sorting. There are
 * two cases:
 *
 * 1. There is one batch, and its documents are read directly from the parts. This case applies if
 * all ranks run on one machine, the tokens of the split fit in half of its free memory, the split
 * has at most SGT_MADE_OPEN shards, and the lists of documents of all ranks take at most 192 MiB.
 * Because the parts were just written, they are in the page cache, and reading them in random order
 * is faster than writing and reading all tokens once more. The shard files stay open.
 *
 * 2. Each batch is a bucket. Each document is first copied into a bucket, which is selected by the
 * leading bits of the document's key. A bucket consists of one file per rank, because each rank
 * copies its share of the documents into its own files, in the folder sorting/SPLIT/RANK-of-RANKS
 * of the work folder. A bucket is about 64 MiB (more if there are over 32 GiB of tokens, or if a
 * document is very long). After that, any rank can read the documents in the order of their keys by
 * loading one bucket at a time. While a rank copies documents, it also needs 64 KiB of memory for
 * each of its files, and 8 bytes for each document of one shard. When all files in a rank's folder
 * are on disk, the file "counts" is written there; if it exists, a later run does not write the
 * files again. */
#ifndef SGT_ORDER_H
#define SGT_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/parts/dedup.h"
#include "tokenize/out/made.h"

typedef struct sgt_order_request {
    /* all parts (the sets of shards that the ranks have written), in the order of the input; only
     * one sgt_order at a time may use this sgt_made */
    sgt_made *set;
    int split;
    /* the duplicates, which are skipped; NULL if all documents are kept */
    const sgt_dedup *dedup;
    int shuffle;
    uint64_t seed;
    const char *work; /* folder for the files of buckets */
    /* rank: index of this rank among the ranks that take part in writing shards. ranks: number of
     * the ranks that take part. */
    uint32_t rank, ranks;
    /* Maximum number of bytes that reading documents directly from the parts may need: the tokens
     * of the split, so that they stay in the page cache, and the lists of documents. If more is
     * needed, the documents are copied into buckets. 0: always copy, because the ranks run on
     * several machines, which share no page cache. */
    uint64_t memory;
    const sgt_stop *stop;
    /* called with the number of tokens that were copied into buckets since the last call; may be
     * NULL */
    void (*advance)(void *ctx, uint64_t tokens);
    void *ctx;
} sgt_order_request;

typedef struct sgt_order sgt_order;

/* Return 1 if sgt_order_scatter copies the documents into buckets for this request, or 0 if it does
 * nothing. */
int sgt_order_copies(const sgt_order_request *r);

/* Prepare reading documents in shuffled order: copy this rank's share of the documents into buckets
 * (files of documents with similar keys), unless documents can be read directly from the parts.
 * After this call has returned in all ranks, any rank can open the order. */
int sgt_order_scatter(const sgt_order_request *r, sgt_error *err);

/* Open an order of documents, from which sgt_order_read reads. The caller closes *out with
 * sgt_order_close. */
int sgt_order_open(sgt_order **out, const sgt_order_request *r, sgt_error *err);
void sgt_order_close(sgt_order *o); /* NULL is allowed */

uint64_t sgt_order_tokens(const sgt_order *o); /* Return the number of tokens in the order. */

/* Some tokens of one document. */
typedef struct sgt_order_ids {
    /* token ids, as wide as in the shards of the parts; valid until the next call of
     * sgt_order_read */
    const void *ids;
    size_t count;
    int begins; /* 1 if the first of these tokens is the first token of its document, else 0 */
} sgt_order_ids;

/* Read at least 1 and at most `most` tokens of one document. The first of them is token `at` of the
 * order, which must exist. Sequential reads are fast; other reads may have to load a batch
 * first. */
int sgt_order_read(sgt_order *o, uint64_t at, uint64_t most, sgt_order_ids *out, sgt_error *err);

#endif
