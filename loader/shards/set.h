/* set.h: find and check the shards of a set, including Megatron-LM's .idx files. A loader stops at
 * the first damaged shard. In a survey, sgt-inspect lists all damaged shards. documents.c finds
 * where the documents of a set begin. */
#ifndef SGT_SET_H
#define SGT_SET_H

#include <stdint.h>
#include <sys/stat.h>

#include "loader/base/file.h"
#include "loader/sample/sampler.h"
#include "loader/sgt_loader.h"
#include "loader/shards/manifest.h"
#include "loader/shards/shard.h"

#define SGT_NO_ID UINT32_MAX

typedef struct sgt_set_shard {
    char *path;
    sgt_shard_header head;
    /* number of documents that begin in the shard, according to the manifest or to an .idx file of
     * Megatron-LM; UINT64_MAX: unknown */
    uint64_t documents;
    /* end-of-text id, which separates documents, from the header or the manifest. If neither states
     * it: GPT-2's id if ids are 2 bytes wide, SGT_NO_ID if they are 4 bytes wide */
    uint32_t eot;
    /* status of the file when the set was opened, to detect later that it was replaced or
     * modified */
    struct stat file;
    /* index of the set to which the shard belongs, if the loader has several sets */
    uint32_t set;
    /* value to pass as the argument `raw` when the shard is reopened by sgt_shard_open */
    int raw;
    uint64_t index; /* hash of Megatron-LM's .idx */
    /* message about the shard's damage, stored in a survey (sgt_set.survey); NULL: no damage was
     * found */
    char *damage;
} sgt_set_shard;

typedef struct sgt_set {
    sgt_set_shard *shards; /* the shards used, in order */
    uint32_t count, skipped;
    uint32_t first; /* index in `shards` of the first shard of the set opened last */
    /* 1 (a survey): if a shard is damaged, store the message in the shard, and continue with the
     * next shard; 0: fail at the first damaged shard */
    int survey;
    uint32_t damaged; /* number of damaged shards */
    size_t room;      /* number of elements allocated in `shards` */
    uint64_t tokens;
    uint32_t vocab; /* every id must be below this */
    size_t width;   /* bytes of an id */
    /* hash that identifies the set opened last: the hash of the manifest's bytes. Without a
     * manifest, it is a hash of the shards' names, sizes and headers, and of the first and last
     * tokens of each shard whose header has no checksum */
    uint64_t hash;
} sgt_set;

/* Open a set and append its shards to s, which must be zeroed before the first call. o->seq must be
 * set. The caller must close s even after a failure.
 * - If `path` is a folder, the set has the folder's shards of split o->split. If there is a
 *   manifest, these are the shards that it lists.
 * - Otherwise the set has the one shard at `path`.
 *
 * Sets s->vocab to the smallest vocabulary size of all sets so far, and s->hash to the hash of this
 * set. Returns SGT_EFORMAT if the headers name different vocabularies, or if ids have different
 * widths.
 *
 * Shards that are too short for one window are skipped. For samplings `documents` and `packed`,
 * only empty shards are skipped, because a document may continue in a shard of any size. */
int sgt_set_open(sgt_set *s, const char *path, const sgt_loader_options *o, sgt_error *err);
void sgt_set_close(sgt_set *s);

/* The following functions are used by sgt_set_open and by sgt-inspect. Check the shards of one
 * split of a folder, regardless of their length, and append them to s. If the folder has a manifest
 * m (see sgt_manifest_find), its shards are used. Otherwise the shards are found by name, and
 * sorted by name. The first of these patterns that matches any file is used:
 *
 *   "SPLIT_*.bin"
 *   "NAME_SPLIT_*.bin" and "NAME_SPLIT.bin", with the same NAME in all files
 *   any *.bin that has an .idx of Megatron-LM
 *   "SPLIT.bin" of nanoGPT, which may have no header
 *   "SPLIT.npy", if `raw` is not 0
 *
 * A file of Megatron-LM belongs to a split by the words in its name: val, valid or validation means
 * "val", test means no split, and other names mean "train". It is no error if there are no
 * shards. */
int sgt_set_add_split(sgt_set *s, const char *folder, const char *split, int raw,
                      const sgt_manifest *m, sgt_error *err);
/* Append the shard at `path`. `raw` is as in sgt_shard_open. If `raw` is not 0, `path` may also be
 * PREFIX.idx or PREFIX (without .bin) of a Megatron-LM shard. */
int sgt_set_add(sgt_set *s, const char *path, int raw, sgt_error *err);
/* Check that all shards of the set opened last (from index s->first on) have the same vocabulary,
 * and that their ids have the same width as all other shards of s. In a survey (s->survey is 1), a
 * shard that differs does not end the check but is marked as damaged. Shards already marked are
 * skipped. */
int sgt_set_check_alike(sgt_set *s, sgt_error *err);
/* Handle rc, the result of checking shard h. Outside a survey, return rc. In a survey (s->survey is
 * 1), damage (SGT_EFORMAT or SGT_EIO) does not end the operation: return SGT_OK, and store the
 * message in h->damage, unless h already has one. */
int sgt_set_keep_damage(sgt_set *s, sgt_set_shard *h, int rc, sgt_error *err);

/* Open a shard for reading, and check that it is still the same file, with the same size, header
 * and modification time as when the set was opened. Returns a file descriptor or a negative SGT_E*.
 * Any number of threads may call this. */
int sgt_set_open_shard(const sgt_set *s, uint32_t shard, sgt_error *err);

/* Return 1 and set *end to the file's size if the shard's file is shorter than when the set was
 * opened. Return 0 if it is not, or if a different file now has its path. */
int sgt_set_is_cut(const sgt_set_shard *h, uint64_t *end);

/* Return the error for a shard whose byte `at` cannot be read: SGT_EFORMAT if the file is shorter
 * than when the set was opened, else SGT_EIO. */
int sgt_set_fail_read(const sgt_set_shard *h, uint64_t at, sgt_error *err);

/* Return the first shard for which the header or the manifest states the vocabulary's fingerprint,
 * or NULL if there is none. */
const sgt_set_shard *sgt_set_marked(const sgt_set *s);

/* ---- documents ----
 *
 * Find where the documents of a set begin, for the samplings `documents` and `packed`. A document
 * extends to the start of the next document, perhaps across several shards. The last document of a
 * set ends with its last shard.
 *
 *     sgt_documents d = {0};
 *     if (sgt_documents_find(&d, &set, 1, &err) < 0) ...;
 *     // find the shard, and the index of the document within it
 *     sgt_window w = sgt_sampler_window(&sampler, NULL, row);
 *     // find the document's first token and its length
 *     w = sgt_documents_window(&d, &set, &w, T + 1);
 *     sgt_documents_free(&d);
 *
 * Each start takes four bytes of memory, which is 32 MB for the eight million documents of
 * OpenWebText. */

typedef struct sgt_documents {
    size_t count, room;
    /* array of `count` indices: each document's first token within its shard, in the order of the
     * shards */
    uint32_t *starts;
    /* array of shards + 1 counts: for each shard, number of documents that begin in earlier
     * shards */
    uint64_t *before;
    /* flag of each shard: 1 if it is unknown where the shard's documents start, because it has no
     * .idx file and its tokens were not searched */
    uint8_t *unlisted;
    uint32_t unlisted_count;
} sgt_documents;

/* Find the documents of all shards in `set`, which may hold several sets. *d must be zeroed, and
 * must be freed even after a failure. The starts are read from SHARD.idx. If a shard has no such
 * file and `look` is not 0, its tokens are searched for end-of-text ids. The message of SGT_EFORMAT
 * names the file and the offset of an invalid entry. */
int sgt_documents_find(sgt_documents *d, const sgt_set *set, int look, sgt_error *err);
void sgt_documents_free(sgt_documents *d); /* frees all but `count` */

/* Find the documents that begin within window *w of one shard. Store each one's position in the
 * window in `starts`, and return their number. `starts` has room for w->tokens elements. `tokens`
 * are the window's ids, of `width` bytes each. If *d does not know where the shard's documents
 * begin, they begin at the ids equal to `eot`. */
uint32_t sgt_documents_within(const sgt_documents *d, const sgt_window *w, const void *tokens,
                              size_t width, uint32_t eot, uint32_t *starts);

/* If `shard` is "x.bin", write "x.idx" to `path` and return `path`. Return NULL if the name does
 * not end in .bin. */
char *sgt_index_path(char path[SGT_PATH], const char *shard);
/* Read an .idx file into the malloc'd array *starts, and set *count to its length. It holds the
 * index of each document's first token, ascending and below `tokens`, the number of tokens in the
 * shard. The file must have `documents` entries, unless that is UINT64_MAX (unknown). */
int sgt_index_read(uint64_t **starts, size_t *count, const char *path, uint64_t tokens,
                   uint64_t documents, sgt_error *err);

/* Find a document and return it as a window: its shard, first token and length. The document is
 * number w->offset (from 0) among those that begin in shard w->shard. The length is limited to
 * `most` tokens. It includes tokens in later shards of the set if the document continues there. */
sgt_window sgt_documents_window(const sgt_documents *d, const sgt_set *set, const sgt_window *w,
                                uint32_t most);

#endif
