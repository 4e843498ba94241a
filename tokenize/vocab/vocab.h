/* vocab.h: what a vocabulary is made of, for the files of tokenize/ (users have sgt_tokenize.h).
 *
 * Ids are in merge order: 0-255 the single bytes in GPT-2's order, 256 + n what merge n makes, and
 * the last one is the end of text, which nothing merges to. So the id of a merged pair is its rank
 * as well: of two merges the lower id goes first. GPT-2's ids are in that order as they are given
 * out. A vocabulary from a file may number its tokens otherwise, and hold some that no merge makes:
 * its `file` says how, and is asked last of all, when ids go out or come in. */
#ifndef SGT_VOCAB_H
#define SGT_VOCAB_H

#include <pthread.h>

#include "pairs.h"
#include "sgt_tokenize.h"
#include "text/cuts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* what makes of any file GPT-2's vocabulary; a test takes it anew */
#define SGT_GPT2_FINGERPRINT 0xD7F9B057243F9BE1u
/* as 16 bits: the last token of 65,536 is the end of text, nothing merges to it */
#define SGT_NO_PAIR UINT16_MAX

/* An open-addressing slot of a trie: node << 8 | byte -> node. 0 is no node, so a zeroed slot is an
 * empty one. */
typedef struct sgt_vocab_slot {
    uint32_t key, value;
} sgt_vocab_slot;

/* A vocabulary as its users see it, where that is not merge order and GPT-2's rule. */
typedef struct sgt_vocab_file {
    char name[64];
    uint32_t size, eot;
    uint16_t *ids;     /* by id in merge order: the id given out; NULL: the same */
    uint32_t *offsets; /* (size + 1), by the id given out, as those below */
    uint8_t *bytes;
    uint8_t *added; /* (size): 1: stands for itself alone, 0: is written in the byte alphabet */
    char *rule;     /* a PCRE2 pattern; NULL: GPT-2's */
    /* `rule` as Hugging Face's library reads it; NULL: it cannot be said there (oniguruma.h) */
    char *regex;
    const char *ignored; /* what the file asks for and sgt leaves out, in words; NULL: nothing */
} sgt_vocab_file;

struct sgt_vocab {
    const char *name;
    sgt_vocab_file *file; /* NULL: all as GPT-2's */
    /* what text goes through before it is encoded; for whole corpora, not for sgt_encode */
    sgt_normalize normalize;
    const char *eot_text; /* "<|endoftext|>", or what a file calls it */
    uint32_t size, eot;   /* in merge order: 257 + merges, and the last of them */
    uint64_t fingerprint;
    /* the fingerprint by the formula of older releases, which left the merges out */
    uint64_t older;
    uint32_t *offsets; /* (size + 1): token id is bytes[offsets[id] .. offsets[id + 1]) */
    uint8_t *bytes;
    uint16_t byte_id[256];
    uint16_t (*halves)[2]; /* (size - 1): what a token was merged from; a byte: itself, twice */
    sgt_pairs pairs;       /* two ids -> merged id */
    /* (65536): first byte | second byte << 8 -> merged id or SGT_NO_PAIR */
    uint16_t *byte_pairs;
    /* (1024): bit first byte << 8 | second byte: some token holds the two side by side */
    uint64_t *joins;

    sgt_cuts cuts; /* of those pairs that a character past ASCII begins in */

    /* The trie over all tokens, which only long pieces need: made at the first of them, in memory
     * reserved here. */
    pthread_mutex_t trie_lock;
    /* atomic: released by the maker under trie_lock, acquired by readers */
    int trie_ready;
    sgt_vocab_slot *trie;
    unsigned trie_shift;
    uint16_t *trie_token; /* by node: the token that ends there + 1, or 0 */
    size_t trie_nodes;    /* room */
};

static inline size_t sgt_vocab_hash(uint32_t key, unsigned shift)
{
    return (size_t)((uint64_t)key * 0x9E3779B97F4A7C15u >> shift);
}

static inline size_t sgt_vocab_length(const sgt_vocab *v, uint32_t id)
{
    return v->offsets[id + 1] - v->offsets[id];
}

/* Whether some token holds p[-1] and p[0] side by side. */
static inline int sgt_vocab_joins_at(const sgt_vocab *v, const uint8_t *p)
{
    unsigned pair = (unsigned)p[-1] << 8 | p[0];
    return v->joins[pair >> 6] >> (pair & 63) & 1;
}

/* The byte pairs inside tokens, for sgt_split_cut. Lives as long as v. */
const uint64_t *sgt_vocab_joins(const sgt_vocab *v);

/* The longest token that s[0..n) starts with, n >= 1, of those that the merges make of their own
 * bytes (others are in no text's ids): its id, and its length in *len. sgt_vocab_need_trie comes
 * first, from any thread, any number of times. */
uint32_t sgt_vocab_longest(const sgt_vocab *v, const uint8_t *s, size_t n, size_t *len);
void sgt_vocab_need_trie(const sgt_vocab *v);

/* Whether the merges of ids below `limit` (SGT_NO_TOKEN: all merges) leave two tokens side by side
 * as they are: none goes across the border. Both must be what those merges make of their own
 * bytes. */
int sgt_vocab_may_follow(const sgt_vocab *v, uint32_t left, uint32_t right, uint32_t limit);

/* A vocabulary from a list of merges: a first line "#version: ...", then one merge a line. `name`
 * must outlive it. */
int sgt_vocab_from_merges(sgt_vocab **out, const char *name, const uint8_t *text, size_t n,
                          sgt_error *err);

/* The vocabulary that these options ask for, with their normal form if they name one. */
int sgt_vocab_of(sgt_vocab **out, const sgt_tokenize_options *o, sgt_error *err);

/* The pattern to split by as it was given, or SGT_PIECE_RULE. */
const char *sgt_vocab_rule(const sgt_vocab *v);

/* Whether text is normalized at all. */
static inline int sgt_vocab_normalizes(const sgt_vocab *v)
{
    return v->normalize > SGT_NORMALIZE_NONE;
}

/* Compute v's fingerprints: of the tokens by the ids given out, of the rule, and of the merges if
 * the ids do not say them. Ids that are in the order of the merges do: of all ways to cut a token
 * in two, only one is what tokens of lower ids leave standing (vocab_file.h). So GPT-2's
 * fingerprint, and that of most vocabularies, is the one that older releases wrote, and their sets
 * go on being resumed, completed and merged. */
int sgt_vocab_take_fingerprint(sgt_vocab *v, sgt_error *err);

/* Whether ids of a set whose fingerprint is this stand for v's tokens: enough to read it. A set of
 * an older release may have been made with other merges; sgt_vocab_same_merges tells, by the
 * tokenizer.json in the set. */
static inline int sgt_vocab_reads(const sgt_vocab *v, uint64_t fingerprint)
{
    return fingerprint == v->fingerprint || fingerprint == v->older;
}

/* Whether two vocabularies make the same ids of the same pieces: the same tokens, end of text and
 * merges. */
int sgt_vocab_same_merges(const sgt_vocab *a, const sgt_vocab *b);

/* Say what the vocabulary's file asks for and sgt does not do, and what Hugging Face's library
 * cannot do with what sgt writes of it. */
void sgt_vocab_say(const sgt_vocab *v, const sgt_notice *n);

/* GPT-2's merges as embedded, for whoever checks them: *n bytes. */
const uint8_t *sgt_vocab_gpt2_file(size_t *n);

#ifdef __cplusplus
}
#endif
#endif
