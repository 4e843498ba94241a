/* dedup.c: finds duplicate documents by looking up their records (hash and length of the text) in a
 * hash table, and stores one bit per document. */
#include "tokenize/parts/dedup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tokenize/out/writer.h"
#include "tokenize/out/out.h"
#include "tokenize/out/record.h"

#define READ 2048       /* number of records per read */
#define LEAST_SLOTS 16  /* least number of slots of a table */
#define NONE UINT64_MAX /* number of no document */
#define FILE_IN_WORK SGT_OUT_SORTING "/left-out"

struct sgt_dedup {
    /* number of documents in the train split; in `words`, the val split's bits follow this many
     * bits */
    uint64_t train;
    size_t count;
    /* contents of the file sorting/left-out, `count` words of 64 bits:
     *   word 0          total number of duplicates in both splits
     *   word 1          number of tokens in the duplicates of the train split
     *   word 2          number of tokens in the duplicates of the val split
     *   word BITS ...   one bit per document, 1 if it is a duplicate: first all documents of the
     *                   train split, then all documents of the val split */
    uint64_t *words;
};
#define BITS (1 + SGT_SPLITS)

static sgt_dedup lay_out(const sgt_made *set)
{
    const uint64_t train = sgt_made_documents(set, 0), all = train + sgt_made_documents(set, 1);
    return (sgt_dedup){.train = train, .count = BITS + (size_t)(all / 64 + 1)};
}

/* Return the position of a document's bit in d->words, counted in bits from the beginning of word
 * 0. `number` is the index of the document in its split. */
static uint64_t bit_of(const sgt_dedup *d, int split, uint64_t number)
{
    return 64ull * BITS + (split ? d->train : 0) + number;
}

int sgt_dedup_is_duplicate(const sgt_dedup *d, int split, uint64_t number)
{
    const uint64_t bit = bit_of(d, split, number);
    return (int)(d->words[bit / 64] >> bit % 64 & 1);
}

/* ---- finding ---- */

typedef struct search {
    const sgt_dedup_request *r;
    sgt_dedup d;
    /* Hash table of document records. `slots` is the number of its slots, a power of two; `used` is
     * the number of slots in use. A slot is empty if its `length` is 0. The flag SGT_DEDUP_VAL is
     * set in the length of every record in the table, so that records of the same text are equal
     * even if their documents are in different splits. */
    sgt_dedup_record *table;
    size_t slots, used;
    /* Both are indices of documents in input order, counted over both splits. first: the first
     * document whose record this pass adds to the table. next: the first document whose record did
     * not fit into the table, with which the next pass begins; NONE if all records did fit. */
    uint64_t first, next;
    /* number: index of the document whose record this pass reads next, counted over both splits.
     * place: for each split, the number of its documents whose records this pass has read. */
    uint64_t number, place[SGT_SPLITS];
} search;

/* Return the slot that has the record of a document with the same text as r. If there is no such
 * slot, return the empty slot to which r can be written. */
static sgt_dedup_record *find_slot(const search *s, const sgt_dedup_record *r)
{
    size_t i = (size_t)r->hash[0] & (s->slots - 1);
    while (s->table[i].length && memcmp(&s->table[i], r, sizeof *r)) i = (i + 1) & (s->slots - 1);
    return &s->table[i];
}

/* Process the next record of this pass. If the table has a record of the same text, mark the
 * document as a duplicate. Otherwise, add the record to the table or, if the table is full, leave
 * it to the next pass. */
static int see_record(search *s, sgt_dedup_record r, sgt_error *err)
{
    const int split = r.length & SGT_DEDUP_VAL ? 1 : 0;
    const uint64_t number = s->number++, place = s->place[split]++;
    if (place >= sgt_made_documents(s->r->set, split))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: the parts hold %" PRIu64
                        " %s documents, but have more records (--force starts over)",
                        s->r->work, sgt_made_documents(s->r->set, split), sgt_split_names[split]);
    if (number < s->first || sgt_dedup_is_duplicate(&s->d, split, place)) return SGT_OK;
    r.length |= SGT_DEDUP_VAL;
    sgt_dedup_record *slot = find_slot(s, &r);
    if (slot->length) {
        const uint64_t bit = bit_of(&s->d, split, place);
        s->d.words[bit / 64] |= (uint64_t)1 << bit % 64;
        s->d.words[0]++;
    } else if (s->used < s->slots / 4 * 3) {
        *slot = r;
        s->used++;
    } else if (s->next == NONE) s->next = number;
    return SGT_OK;
}

static int read_records(search *s, size_t part, sgt_error *err)
{
    sgt_dedup_record r[READ];
    char path[SGT_PATH];
    struct stat st;
    const uint64_t count = sgt_made_manifest(s->r->set, part)->documents;
    int rc = SGT_OK;
    const int fd = sgt_file_open(sgt_path(path, sgt_made_path(s->r->set, part), SGT_DEDUP_FILE),
                                 O_RDONLY, err);
    if (fd < 0) return fd;
    if (fstat(fd, &st) < 0) rc = sgt_fail_errno(err, "%s", path);
    else if ((uint64_t)st.st_size != count * sizeof *r)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: has %lld bytes, expected %" PRIu64 " for %" PRIu64
                      " documents (remove its folder, and run the command of its rank again)",
                      path, (long long)st.st_size, count * sizeof *r, count);
    for (uint64_t at = 0; at < count && !rc; at += READ) {
        const size_t n = count - at < READ ? (size_t)(count - at) : READ;
        if (sgt_stopped(s->r->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        if (!rc) rc = sgt_pread_all(fd, r, n * sizeof *r, at * sizeof *r, path, err);
        for (size_t i = 0; i < n && !rc; i++) rc = see_record(s, r[i], err);
    }
    close(fd);
    return rc;
}

/* Mark all duplicates. */
static int mark(search *s, sgt_error *err)
{
    int rc = SGT_OK;
    for (s->first = 0; s->first != NONE && !rc; s->first = s->next) {
        memset(s->table, 0, s->slots * sizeof *s->table);
        s->used = 0;
        s->next = NONE;
        s->number = s->place[0] = s->place[1] = 0;
        for (size_t i = 0; i < sgt_made_folders(s->r->set) && !rc; i++)
            rc = read_records(s, i, err);
    }
    return rc;
}

/* Add the number of tokens in a split's duplicates to the word of s->d.words that is for this
 * split. */
static int count_tokens(search *s, int split, sgt_error *err)
{
    int rc = SGT_OK;
    for (uint64_t k = 0; k < sgt_made_documents(s->r->set, split) && !rc; k++) {
        uint64_t start, tokens = 0;
        if (sgt_dedup_is_duplicate(&s->d, split, k))
            rc = sgt_made_document(s->r->set, split, k, &start, &tokens, err);
        s->d.words[1 + split] += tokens;
    }
    return rc;
}

int sgt_dedup_find(const sgt_dedup_request *r, sgt_error *err)
{
    char path[SGT_PATH];
    search s = {.r = r, .d = lay_out(r->set), .slots = LEAST_SLOTS};
    const uint64_t documents = sgt_made_documents(r->set, 0) + sgt_made_documents(r->set, 1);
    while (s.slots / 4 * 3 < documents && 2 * s.slots * sizeof *s.table <= r->memory) s.slots *= 2;
    s.d.words = calloc(s.d.count, sizeof *s.d.words);
    s.table = malloc(s.slots * sizeof *s.table);
    int rc = s.d.words && s.table ? mark(&s, err) : sgt_fail_memory(err, r->work);
    for (int k = 0; k < SGT_SPLITS && !rc; k++) rc = count_tokens(&s, k, err);
    if (!rc) rc = sgt_make_folders(sgt_path(path, r->work, SGT_OUT_SORTING), err);
    if (!rc)
        rc = sgt_file_put(sgt_path(path, r->work, FILE_IN_WORK), s.d.words,
                          s.d.count * sizeof *s.d.words, err);
    free(s.d.words);
    free(s.table);
    return rc;
}

/* ---- look-ups ---- */

int sgt_dedup_open(sgt_dedup **out, const sgt_dedup_request *r, sgt_error *err)
{
    char path[SGT_PATH], *text = NULL;
    size_t n;
    sgt_dedup *d = calloc(1, sizeof *d);
    if (!d) return sgt_fail_memory(err, r->work);
    *d = lay_out(r->set);
    const size_t want = d->count * sizeof *d->words;
    int rc = sgt_file_get(&text, &n, sgt_path(path, r->work, FILE_IN_WORK), want, err);
    d->words = (uint64_t *)(void *)text;
    if (!rc && n != want)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: has %zu bytes, expected %zu (--force starts over)",
                      path, n, want);
    if (rc < 0) sgt_dedup_close(d);
    else *out = d;
    return rc;
}

void sgt_dedup_close(sgt_dedup *d)
{
    if (!d) return;
    free(d->words);
    free(d);
}

uint64_t sgt_dedup_count(const sgt_dedup *d) { return d->words[0]; }
uint64_t sgt_dedup_left_out(const sgt_dedup *d, int split) { return d->words[1 + split]; }
