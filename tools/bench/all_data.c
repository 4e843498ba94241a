/* all_data.c: text and shards that sgt-bench all makes for itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/philox.h"
#include "sgt_tokenize.h"
#include "shards/shard.h"
#include "tools/bench/all.h"

enum { FILE_BYTES = 1 << 20, WORD = 40, VOCAB = 50257 };

/* The words of the vocabulary (a space and small letters), and how often each is drawn: in a vocabulary of merges the
 * more frequent come first, and Zipf's law says how much more. */
typedef struct words {
    sgt_vocab *vocab;
    uint32_t *ids;
    double *sums; /* of weights, up to and with each */
    size_t count;
} words;

static int is_word(const uint8_t *text, size_t n)
{
    if (n < 2 || n >= WORD || text[0] != ' ') return 0;
    for (size_t i = 1; i < n; i++)
        if (text[i] < 'a' || text[i] > 'z') return 0;
    return 1;
}

static int find_words(words *w, sgt_error *err)
{
    size_t n;
    double sum = 0;
    int rc = sgt_vocab_gpt2(&w->vocab, err);
    if (rc < 0) return rc;
    w->ids = malloc(VOCAB * sizeof *w->ids);
    w->sums = malloc(VOCAB * sizeof *w->sums);
    if (!w->ids || !w->sums) return sgt_fail(err, SGT_ENOMEM, "out of memory");
    for (uint32_t id = 0; id < sgt_vocab_size(w->vocab); id++) {
        const uint8_t *text = sgt_vocab_token(w->vocab, id, &n);
        if (!is_word(text, n)) continue;
        sum += 1 / ((double)w->count + 2.7);
        w->ids[w->count] = id;
        w->sums[w->count++] = sum;
    }
    return SGT_OK;
}

static void free_words(words *w)
{
    free(w->ids);
    free(w->sums);
    sgt_vocab_free(w->vocab);
}

static const uint8_t *draw(const words *w, uint64_t random, size_t *n)
{
    double at = (double)(random >> 11) * 0x1p-53 * w->sums[w->count - 1];
    size_t low = 0, high = w->count - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (w->sums[middle] > at) high = middle;
        else low = middle + 1;
    }
    return sgt_vocab_token(w->vocab, w->ids[low], n);
}

/* Sentences of a dozen words or so, ten to a paragraph. */
static size_t fill(char *text, size_t size, const words *w, uint64_t file)
{
    size_t at = 0, n;
    int begins = 1;
    for (uint64_t k = 0; at + WORD + 2 < size; k++) {
        uint64_t random = sgt_philox_u64(1, file, k);
        const uint8_t *word = draw(w, random, &n);
        if (begins && at && text[at - 1] == '\n') memcpy(text + at, word + 1, --n);
        else memcpy(text + at, word, n);
        if (begins) text[at + (text[at] == ' ')] -= 'a' - 'A';
        at += n;
        begins = random % 12 == 0;
        if (begins) text[at++] = '.';
        else if (random % 11 == 0) text[at++] = ',';
        if (random % 120 == 0) text[at++] = '\n';
    }
    return at;
}

/* "FOLDER/NAME_NNNNNN.EXT" */
static int put(const char *folder, const char *format, unsigned k, const void *bytes, size_t n, sgt_error *err)
{
    char name[32];
    snprintf(name, sizeof name, format, k);
    char *path = sgt_join(folder, name);
    int rc = path ? sgt_file_put(path, bytes, n, err) : sgt_fail(err, SGT_ENOMEM, "out of memory");
    free(path);
    return rc;
}

int all_make_text(const char *folder, uint64_t bytes, const sgt_stop *stop, sgt_error *err)
{
    words w = {0};
    char *text = malloc(FILE_BYTES);
    int rc = text ? find_words(&w, err) : sgt_fail(err, SGT_ENOMEM, "out of memory");
    if (rc == SGT_OK) rc = sgt_make_folders(folder, err);
    for (unsigned k = 0; k * (uint64_t)FILE_BYTES < bytes && rc == SGT_OK; k++) {
        if (sgt_stopped(stop)) rc = sgt_fail(err, SGT_ESTOPPED, "interrupted");
        else rc = put(folder, "%06u.txt", k, text, fill(text, FILE_BYTES, &w, k), err);
    }
    free_words(&w);
    free(text);
    return rc;
}

/* Two shards, so that what lies between them is met. */
int all_make_set(const char *folder, uint64_t bytes, const sgt_stop *stop, sgt_error *err)
{
    uint64_t tokens = bytes / 4, random = 1;
    uint8_t *shard = malloc(SGT_SHARD_HEADER + 2 * tokens);
    int rc = shard ? sgt_make_folders(folder, err) : sgt_fail(err, SGT_ENOMEM, "out of memory");
    for (unsigned k = 0; k < 2 && rc == SGT_OK; k++) {
        uint8_t *at = shard + SGT_SHARD_HEADER;
        sgt_shard_pack(shard, &(sgt_shard_header){.tokens = tokens, .vocab = VOCAB, .eot = VOCAB - 1});
        for (uint64_t i = 0; i < tokens; i++, at += 2) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint32_t id = (uint32_t)((random >> 32) * (VOCAB - 1) >> 32);
            at[0] = (uint8_t)id;
            at[1] = (uint8_t)(id >> 8);
        }
        if (sgt_stopped(stop)) rc = sgt_fail(err, SGT_ESTOPPED, "interrupted");
        else rc = put(folder, "train_%06u.bin", k, shard, SGT_SHARD_HEADER + 2 * tokens, err);
    }
    free(shard);
    return rc;
}
