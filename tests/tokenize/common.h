/* common.h: what the suites of tests/tokenize share. Programs run from the project's root: paths
 * are relative to it. */
#ifndef SGT_TESTS_TOKENIZE_H
#define SGT_TESTS_TOKENIZE_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>

#include "tokenize/sgt_tokenize.h"

#define VECTORS "tests/data/tokenize/"

/* GPT-2 and one encoder for it; a test that asks for them frees them. */
sgt_vocab *gpt2(void);
sgt_encoder *new_encoder(const sgt_vocab *v);

/* Fill in GPT-2's vocabulary by its own rule and by each rule of rules.h, with an encoder of each.
 * Returns how many there are; free_rules frees them. */
enum { MOST_RULES = 16 };
int every_rule(sgt_vocab *vocabs[MOST_RULES], sgt_encoder *encoders[MOST_RULES]);
void free_rules(sgt_vocab **vocabs, sgt_encoder **encoders, int count);

/* Return the environment's SEED, or 1; make torture sets many. Put it in every message of a random
 * test. */
uint64_t test_seed(void);

typedef struct rng {
    uint64_t key, at;
} rng;
uint32_t below(rng *r, uint32_t n); /* 0 .. n-1 */

/* zlib's, of what Python's zlib.crc32(p, crc) gives */
uint32_t crc32_of(uint32_t crc, const void *p, size_t n);
/* up to the first character that is no digit */
size_t from_hex(const char *hex, uint8_t *out);
char *whole_file(const char *path, size_t *n); /* malloc'd, NUL behind it */
void sha256_hex(const void *p, size_t n, char hex[65]);
/* surrogates too, as if they were characters */
size_t put_utf8(uint8_t *out, uint32_t cp);

/* A random text of at most `max` bytes at out, of what makes splitting hard: white space of every
 * kind, contractions, scripts, marks, and, where ill_formed, broken bytes. Returns its length. */
size_t hard_text(rng *r, uint8_t *out, size_t max, int ill_formed);

#endif
