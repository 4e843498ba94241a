/* vocab.h: the parts of a vocabulary, for the files of tokenize/ (users have sgt_tokenize.h).
 *
 * Ids are in merge order. 0-255 are the single bytes in GPT-2's order, and 256 + n is the token
 * that merge n makes. The last id is the end of text, which no merge makes. So the id of a merged
 * pair is also its rank: of two merges, the one with the lower id goes first. GPT-2's public ids
 * are in this order already. A vocabulary from a file may number its tokens differently, and may
 * hold tokens that no merge makes. Its `file` maps between the two numberings, and is used only
 * when ids are returned or read. */
#ifndef SGT_VOCAB_H
#define SGT_VOCAB_H

#include <pthread.h>

#include "tokenize/vocab/pairs.h"
#include "tokenize/sgt_tokenize.h"
#include "tokenize/text/cuts.h"
#include "tokenize/text/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

/* fingerprint of GPT-2's vocabulary, by which any file with it is recognized; a test recomputes
 * it */
#define SGT_GPT2_FINGERPRINT 0xD7F9B057243F9BE1u
/* "no merge" as a 16-bit id: token 65,535 could only be the end of text, which no merge makes */
#define SGT_NO_PAIR UINT16_MAX

/* Open-addressing slot of a trie: key = node << 8 | byte, value = next node. No node is 0, so a
 * zeroed slot is empty. */
typedef struct sgt_vocab_slot {
    uint32_t key, value;
} sgt_vocab_slot;

/* The ids that files of tokens hold, and the split rule, of a vocabulary whose own ids are not in
 * merge order, or whose rule is not GPT-2's. */
typedef struct sgt_vocab_file {
    char name[64];
    uint32_t size, eot;
    uint16_t *ids;     /* public id by id in merge order; NULL: they are equal */
    uint32_t *offsets; /* (size + 1): like sgt_vocab's `offsets` below, but by public id */
    uint8_t *bytes;
    uint8_t *added; /* (size): 1: added token, written as it is; 0: written in the byte alphabet */
    char *rule;     /* PCRE2 pattern to split by; NULL: GPT-2's */
    int assumed;    /* 1: neither the file nor the caller says that the rule is GPT-2's */
    const sgt_rule *known; /* that rule, if it is one of rules.h */
    /* `rule` as Hugging Face's library reads it; NULL: not known (sgt_rule_to_regex) */
    const char *regex;
    const char *ignored; /* a list of the file's settings that sgt ignores; NULL: none */
} sgt_vocab_file;

struct sgt_vocab {
    const char *name;
    sgt_vocab_file *file; /* NULL: ids are in merge order and the rule is GPT-2's */
    /* normal form of text before encoding; applies to whole corpora, not to sgt_encode */
    sgt_normalize normalize;
    const char *eot_text; /* "<|endoftext|>", or the name in the file */
    /* setting of tokenizer.json that sgt does not apply to a literal end of text: "lstrip"; NULL:
     * none */
    const char *eot_setting;
    uint32_t size, eot; /* in merge order: 257 + number of merges; the last id */
    uint64_t fingerprint;
    uint32_t *offsets; /* (size + 1): token `id` is bytes[offsets[id] .. offsets[id + 1]) */
    uint8_t *bytes;
    uint16_t byte_id[256];
    /* (size - 1): the two tokens that merge to token `id`; for a byte, the byte twice */
    uint16_t (*halves)[2];
    sgt_pairs pairs; /* two ids -> merged id */
    /* (65536): first byte | second byte << 8 -> merged id or SGT_NO_PAIR */
    uint16_t *byte_pairs;
    /* (1024): bit `first byte << 8 | second byte`: some token holds the two side by side */
    uint64_t *joins;

    sgt_cuts cuts; /* `joins`, reduced to pairs whose second byte begins a non-ASCII character */

    /* Trie over all tokens, which only long pieces need. It is filled for the first such piece, in
     * memory that is reserved here. */
    pthread_mutex_t trie_lock;
    /* atomic: released by the thread that filled the trie under trie_lock, acquired by readers */
    int trie_ready;
    sgt_vocab_slot *trie;
    unsigned trie_shift;
    uint16_t *trie_token; /* (trie_nodes): id + 1 of the token that ends at a node, or 0 */
    size_t trie_nodes;    /* nodes that there is room for */
};

static inline size_t sgt_vocab_hash(uint32_t key, unsigned shift)
{
    return (size_t)((uint64_t)key * 0x9E3779B97F4A7C15u >> shift);
}

static inline size_t sgt_vocab_length(const sgt_vocab *v, uint32_t id)
{
    return v->offsets[id + 1] - v->offsets[id];
}

/* Return whether some token holds p[-1] and p[0] side by side. */
static inline int sgt_vocab_joins_at(const sgt_vocab *v, const uint8_t *p)
{
    unsigned pair = (unsigned)p[-1] << 8 | p[0];
    return v->joins[pair >> 6] >> (pair & 63) & 1;
}

/* Return the byte pairs that occur inside tokens, for sgt_split_cut. v owns the table. */
const uint64_t *sgt_vocab_joins(const sgt_vocab *v);

/* Return the longest token that s[0..n), n >= 1, starts with, and its length in *len. Considers
 * only tokens that the merges make from their own bytes; no text encodes to any other. Call
 * sgt_vocab_need_trie first; it may be called by any thread, any number of times. */
uint32_t sgt_vocab_longest(const sgt_vocab *v, const uint8_t *s, size_t n, size_t *len);
void sgt_vocab_need_trie(const sgt_vocab *v);

/* Return whether two adjacent tokens stay as they are under the merges with ids below `limit`
 * (SGT_NO_TOKEN: all): no merge crosses the border between them. Those merges must make each token
 * from its own bytes. */
int sgt_vocab_may_follow(const sgt_vocab *v, uint32_t left, uint32_t right, uint32_t limit);

/* Make a vocabulary from a list of merges: a first line "#version: ...", then one merge a line.
 * *out borrows `name`, which must outlive it. */
int sgt_vocab_from_merges(sgt_vocab **out, const char *name, const uint8_t *text, size_t n,
                          sgt_error *err);

/* Load the vocabulary and the normal form that these options name. The caller frees *out. Return
 * SGT_EFORMAT if special_eot would find other literals than the file's settings say. */
int sgt_vocab_of(sgt_vocab **out, const sgt_tokenize_options *o, sgt_error *err);

/* Return the pattern to split by as it was given, or SGT_PIECE_RULE. v owns it. */
const char *sgt_vocab_rule(const sgt_vocab *v);

/* Return the rule of rules.h that v splits by; NULL: GPT-2's, or a pattern (below). */
static inline const sgt_rule *sgt_vocab_known_rule(const sgt_vocab *v)
{
    return v->file ? v->file->known : NULL;
}

/* Return the pattern that only PCRE2 can split by, or NULL. */
static inline const char *sgt_vocab_pattern(const sgt_vocab *v)
{
    return v->file && !v->file->known ? v->file->rule : NULL;
}

/* Return whether text is normalized at all. */
static inline int sgt_vocab_normalizes(const sgt_vocab *v)
{
    return v->normalize > SGT_NORMALIZE_NONE;
}

/* Compute v's fingerprint. It covers the tokens in the order of the ids that files of tokens hold,
 * and the split rule; also the merges, unless the ids imply them. Ids in merge order do: a token's
 * bytes, encoded with lower ids alone, become exactly two tokens, which are its merge
 * (vocab_file.h). */
int sgt_vocab_take_fingerprint(sgt_vocab *v, sgt_error *err);

/* Report settings of the vocabulary's file that sgt ignores, a split rule that is only assumed, and
 * constructs that Hugging Face's library cannot express in the files sgt writes. */
void sgt_vocab_say(const sgt_vocab *v, const sgt_notice *n);

/* Return GPT-2's embedded merges, *n bytes, for tests that check them. */
const uint8_t *sgt_vocab_gpt2_file(size_t *n);

/* Fill in bytes[n]: the number of bytes of each id's text. It is 0 for the end of text, which has
 * none, and for ids that the vocabulary lacks. */
void sgt_vocab_text_bytes(const sgt_vocab *v, uint32_t *bytes, uint32_t n);

#ifdef __cplusplus
}
#endif
#endif
