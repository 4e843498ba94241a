/* vocab.h: internal structure of a vocabulary, for the files of tokenize/ (users include
 * sgt_tokenize.h).
 *
 * Internal ids are in merge order: 0 to 255 are the single bytes in GPT-2's order, and 256 + n is
 * the token that merge n produces. The id of a merged pair is thus also its rank: of two possible
 * merges, the merge with the lower id is done first. No merge produces the end of text.
 *
 * GPT-2's own ids are already in this order. A vocabulary from a file may number its tokens
 * differently, and may hold tokens that no merge produces. The file's numbers are called public
 * ids; they are used only when ids are returned to the user or read from the user. */
#ifndef SGT_VOCAB_H
#define SGT_VOCAB_H

#include <pthread.h>

#include "loader/base/ids.h"
#include "loader/base/memory.h"
#include "loader/base/error.h"
#include "tokenize/sgt_tokenize.h"
#include "tokenize/text/split.h"
#include "tokenize/text/utf8.h"

/* ---- the byte alphabet ----
 *
 * In files, merges and vocabularies are written in GPT-2's byte alphabet, which has one printable
 * character for each byte. Printable Latin-1 bytes stand for themselves, and the 68 other bytes are
 * U+0100 to U+0143, in order. */

/* Return the byte that the token `id`, which is below 256, stands for. Ids are in merge order, in
 * which the printable bytes come first. */
uint8_t sgt_alphabet_byte(uint32_t id);

/* Decode the n bytes at `text` from the byte alphabet to `out`, which must have room for n bytes.
 * Return the number of bytes, or 0 if a character is not in the alphabet. */
size_t sgt_alphabet_read(const char *text, size_t n, uint8_t *out);

/* Encode the n bytes at s in the byte alphabet, as UTF-8, to `out`, which must have room for 2n
 * bytes. Return the number of bytes written. */
size_t sgt_alphabet_write(const uint8_t *s, size_t n, char *out);

/* ---- pairs ----
 *
 * A perfect hash table of a vocabulary's merges. It finds the token that two tokens merge to in one
 * memory access:
 *
 *     uint32_t merged = sgt_pair(&v->pairs, left, right);      // SGT_NO_TOKEN: no merge
 *
 * A pair's hash selects a group; there is one group for every 16 slots. Each group has a factor,
 * and the hash times this factor selects the slot. When the table is built, the factors are chosen
 * so that no two pairs share a slot (Fredman, Komlós, Szemerédi 1984). Therefore a look-up reads
 * one slot even if the pair does not merge. Most pairs that are looked up do not merge, and in an
 * open-addressing table they would be the slowest case. */

#define SGT_NO_TOKEN UINT32_MAX
#define SGT_PAIR_GROUPS 8192 /* number of groups in GPT-2's table */

typedef struct sgt_pairs {
    /* memory that contains `slots` and `factors`, in huge pages if possible, because every look-up
     * is a random access */
    sgt_arena memory;
    /* a slot is left id << 44 | right id << 24 | merged id; in an empty slot, all bits are set */
    uint64_t *slots;
    uint16_t *factors; /* factor of each group, an odd number */
    unsigned shift;    /* 64 - log2(slots) */
} sgt_pairs;

static inline uint64_t sgt_pair_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 20 | right;
}

static inline uint64_t sgt_pair_hash(uint64_t key) { return key * 0x9E3779B97F4A7C15u; }

static inline uint32_t sgt_pair(const sgt_pairs *p, uint32_t left, uint32_t right)
{
    const uint64_t key = sgt_pair_key(left, right), hash = sgt_pair_hash(key),
                   at = p->slots[hash * p->factors[hash >> (p->shift + 4)] >> p->shift] ^ key << 24;
    /* If the slot holds this pair, `at` is the merged id. If the slot is empty or holds another
     * pair, `at` is at least 0xFFFFFF, and the OR gives SGT_NO_TOKEN. (An empty slot gives exactly
     * 0xFFFFFF if both ids are NO_ID of width.h.) An OR is used because a branch would be
     * mispredicted half of the time. */
    return (uint32_t)at | (0u - (at >= 0xFFFFFF));
}

/* Build the table of pairs: for i = first ... end - 1, the two ids halves[i] merge to id i. No pair
 * may occur twice. factors: factors (SGT_PAIR_GROUPS) known to cause no collision among 2^17 slots,
 * or NULL to search for them. The caller unmaps p->memory. Return 0 or SGT_ENOMEM. */
int sgt_pairs_make(sgt_pairs *p, const uint32_t (*halves)[2], uint32_t first, uint32_t end,
                   const uint16_t *factors, sgt_error *err);

/* ---- vocabularies ---- */

/* fingerprint that identifies GPT-2's vocabulary, even when it is loaded from a file; a test
 * recomputes it */
#define SGT_GPT2_FINGERPRINT 0xD7F9B057243F9BE1u
/* end-of-text token of GPT-2 and of the vocabularies that sgt trains */
#define SGT_EOT_TEXT "<|endoftext|>"

/* Slot of an open-addressing hash table. A slot with value 0 is empty, so no stored value may be
 * 0. */
typedef struct sgt_vocab_slot {
    uint32_t key, value;
} sgt_vocab_slot;

/* Return the slot that contains `key` in a hash table of 2^(64 - shift) slots, or, if there is
 * none, the empty slot to which the key can be written. */
static inline sgt_vocab_slot *sgt_vocab_slot_of(sgt_vocab_slot *slots, unsigned shift, uint32_t key)
{
    const size_t mask = ((size_t)1 << (64 - shift)) - 1;
    size_t i = (size_t)((uint64_t)key * 0x9E3779B97F4A7C15u >> shift);
    while (slots[i].value && slots[i].key != key) i = (i + 1) & mask;
    return &slots[i];
}

/* A two- or three-byte character that is itself a token. Merging may start with this token instead
 * of with the character's bytes, which saves merges, unless a neighbouring byte is in one of the
 * masks below. Without such a neighbour, merging always completes this token before it joins any
 * part of the character with bytes outside it. The proof: a merged token has a higher id than its
 * two halves, so merges happen in the order of ids. The merges inside the character come before
 * every merge that crosses one of its ends, and they do not affect the merges outside it. */
typedef struct sgt_character {
    uint32_t id; /* id in merge order; 0 if the character is not a token */
    /* Bit masks of neighbouring bytes. Next to these bytes, merging must not start with this token,
     * because a merge could join the byte with a part of the character first.
     *
     * before: the byte directly before the character; bit b & 63 stands for a continuation byte b
     *         (after any other byte, sgt_vocab_character never returns the token)
     * after:  the byte b directly after the character; its bit is sgt_character_after(b) */
    uint64_t before, after;
} sgt_character;

/* Return the bit of sgt_character.after that stands for byte b. b must be directly after a
 * character, so it is an ASCII byte or a first byte (C0 to FF). Bits 0 to 63 stand for C0 to FF.
 * All ASCII bytes share the bit of C0, because C0 never begins a character. */
static inline uint64_t sgt_character_after(uint8_t b)
{
    return (uint64_t)1 << (b < 0x80 ? 0 : b & 63);
}

struct sgt_vocab {
    char name[64];
    /* Tokens by public id. */
    uint32_t size, eot;
    size_t width; /* bytes of an id: 2 or 4 */
    /* array of size + 1 offsets into `bytes`: the bytes of token `id` are bytes[offsets[id]] up to,
     * but not including, bytes[offsets[id + 1]] */
    uint32_t *offsets;
    uint8_t *bytes;
    /* array of `size` flags: 1 if the token is an added token, which vocabulary files contain as
     * plain text; 0 if files contain it in the byte alphabet */
    uint8_t *added;

    /* Tokens in merge order: the single bytes, and the tokens that merges produce. */
    uint32_t made; /* number of tokens in merge order */
    /* array of `made` ids: the public id of each token in merge order; NULL if public ids equal the
     * ids in merge order */
    uint32_t *ids;
    /* array of `made` pairs: halves[id] holds the ids of the left and the right token that were
     * merged into token `id`; for a single byte, both are `id` */
    uint32_t (*halves)[2];

    sgt_rule rule; /* rule by which text is split */
    char *pattern; /* allocated copy of rule.text; NULL if rule.text is static */
    /* 1 if GPT-2's split rule was assumed, because neither the vocabulary's file nor the caller
     * names a rule; otherwise 0 */
    int assumed;
    int ignored;     /* 1 if the file has truncation or padding settings, which sgt ignores */
    uint64_t marker; /* as sgt_vocab_parts.marker */
    /* Unicode form that text is converted to before it is encoded. It is applied when a corpus is
     * tokenized; sgt_encode ignores it. */
    sgt_normalize normalize;
    const char *eot_text; /* name of the end-of-text token, such as "<|endoftext|>" */
    /* name of the first setting, such as "lstrip", that tokenizer.json gives the end-of-text token
     * and that sgt does not apply; NULL if there is none */
    const char *eot_setting;
    uint64_t fingerprint;

    /* Tables for the encoder. All ids in them are in merge order. */
    uint16_t byte_id[256];
    sgt_pairs pairs; /* two ids -> merged id */
    /* 65,536 ids of `width` bytes each. The id at first byte | second byte << 8 is the token that
     * these two bytes merge to. All its bits are set if they do not merge. */
    void *byte_pairs;
    /* table of 65,536 bits, in 1,024 words: the bit with index `first byte << 8 | second byte` is 1
     * if some token contains these two bytes in this order */
    uint64_t *joins;

    /* Tokens that no merges produce. A piece becomes such a token only if it has exactly the
     * token's bytes. Therefore a vocabulary with such tokens must not cut inside pieces. */
    /* hash table of the public ids, plus 1, of the tokens that no merges produce; it has
     * `whole_slots` slots, a power of two; NULL if there are no such tokens */
    uint32_t *wholes;
    size_t whole_slots;

    /* array of 65536 elements, indexed by code point: the characters that are tokens and can
     * replace their bytes before merging starts. NULL if ids are 2 bytes wide: in such a small
     * vocabulary, cuts leave only short words, and starting with characters gains nothing. */
    sgt_character *characters;

    /* smaller tables made from `joins`, which say where a piece may be cut before a non-ASCII
     * character (split.h) */
    sgt_cuts cuts;

    /* Trie of the tokens in merge order, used only to encode long pieces. Its memory is reserved
     * when the vocabulary is built, but it is filled only when the first long piece is encoded. */
    pthread_mutex_t trie_lock;
    /* 1 if the trie has been filled, otherwise 0. It is atomic: the thread that fills the trie
     * stores 1 with release semantics, and readers load it with acquire semantics. */
    int trie_ready;
    sgt_vocab_slot *trie; /* hash table: maps node << 8 | byte to the next node */
    unsigned trie_shift;
    /* array with one entry per node: the id of the token that ends at the node plus 1, or 0 if no
     * token ends there */
    uint32_t *trie_token;
    uint32_t *trie_end; /* for each token, the node at which it ends */
    sgt_arena trie_memory;
};

/* Convert an id in merge order to the token's public id. */
static inline uint32_t sgt_vocab_public_id(const sgt_vocab *v, uint32_t id)
{
    return v->ids ? v->ids[id] : id;
}

/* Return the bytes of the token that has this id in merge order. */
static inline const uint8_t *sgt_vocab_bytes(const sgt_vocab *v, uint32_t id)
{
    return v->bytes + v->offsets[sgt_vocab_public_id(v, id)];
}

static inline size_t sgt_vocab_length(const sgt_vocab *v, uint32_t id)
{
    const uint32_t *at = v->offsets + sgt_vocab_public_id(v, id);
    return at[1] - at[0];
}

/* Return 1 if some token contains the bytes p[-1] and p[0] in this order, else 0. */
static inline int sgt_vocab_joins_at(const sgt_vocab *v, const uint8_t *p)
{
    unsigned pair = (unsigned)p[-1] << 8 | p[0];
    return v->joins[pair >> 6] >> (pair & 63) & 1;
}

/* Return the id (in merge order) of the character at s[i], in the piece of n bytes at s, if merging
 * can start with the character's token. Set *len to the token's length in bytes. If the character
 * is not a token, or if a neighbour may join a part of it first (sgt_character), return 0 and set
 * *len to 1. */
static inline uint32_t sgt_vocab_character(const sgt_vocab *v, const uint8_t *s, size_t i, size_t n,
                                           size_t *len)
{
    const uint8_t *p = s + i;
    const size_t bytes = p[0] < 0xE0 ? 2 : 3;
    *len = 1;
    if (p[0] < 0xC2 || p[0] >= 0xF0 || n - i < bytes) return 0;
    const unsigned b = p[1] ^ 0x80u, c = p[bytes - 1] ^ 0x80u;
    const uint32_t cp = bytes == 2 ? (p[0] & 0x1Fu) << 6 | b : (p[0] & 0xFu) << 12 | b << 6 | c;
    if ((b | c) > 0x3F || (bytes == 3 && cp < 0x800)) return 0;
    const sgt_character *known = &v->characters[cp];
    if (i && ((p[-1] & 0xC0) != 0x80 || known->before >> (p[-1] & 63) & 1)) return 0;
    if (bytes < n - i &&
        ((p[bytes] & 0xC0) == 0x80 || (known->after & sgt_character_after(p[bytes]))))
        return 0;
    if (known->id) *len = bytes;
    return known->id;
}

/* Return the public id of the token that has exactly the n bytes at s and that no merges produce
 * (v->wholes), or SGT_NO_TOKEN if there is no such token. */
uint32_t sgt_vocab_whole(const sgt_vocab *v, const uint8_t *s, size_t n);

/* Return the id of the longest token that is a prefix of the n >= 1 bytes at s, and set *len to its
 * length in bytes. sgt_vocab_need_trie must have been called before; any thread can call it, any
 * number of times. */
uint32_t sgt_vocab_longest(const sgt_vocab *v, const uint8_t *s, size_t n, size_t *len);
void sgt_vocab_need_trie(const sgt_vocab *v);

/* Return 1 if no merge crosses the border between two adjacent tokens, so that encoding their
 * joined bytes gives the same two tokens; else 0. merged(pairs, left, right) returns the id that
 * two tokens merge to, or SGT_NO_TOKEN if they do not merge.
 *
 * The function undoes the merges that built the two tokens, one at a time, the last one first: the
 * one with the higher id, or the right one if both ids are equal. After each step, it looks at the
 * two tokens that now touch at the border. If these merge to a lower id than the merge just undone,
 * their merge would have happened first and would cross the border, so the result is 0. */
static inline int sgt_stay_apart(const uint32_t (*halves)[2],
                                 uint32_t (*merged)(const void *pairs, uint32_t l, uint32_t r),
                                 const void *pairs, uint32_t left, uint32_t right)
{
    for (uint32_t limit = SGT_NO_TOKEN;;) {
        if (merged(pairs, left, right) < limit) return 0;
        if (left > right) {
            /* both tokens are single bytes, so no merge is left to undo */
            if (left < 256) return 1;
            limit = left;
            left = halves[left][1];
        } else {
            if (right < 256) return 1;
            /* + 1, because the border pair also wins if it merges to the id `right`: of equal
             * merges, the leftmost happens first, and the border pair is further left */
            limit = right + 1;
            right = halves[right][0];
        }
    }
}

/* Create a vocabulary whose name is the last component of `path`, and which has no tokens yet.
 * Return NULL if out of memory. */
sgt_vocab *sgt_vocab_new(const char *path);

/* Build the encoder's tables of a vocabulary that has all its tokens. Return 0 or SGT_ENOMEM. The
 * merges must produce each token from its own bytes. That is, merges produce both halves, and no
 * earlier merge crosses the border between the halves (sgt_vocab_from_parts checks this). factors:
 * see sgt_pairs_make. */
int sgt_vocab_make_tables(sgt_vocab *v, const uint16_t *factors, sgt_error *err);

/* Register tokens that no merges produce. `ids` contains their public ids. A piece that has exactly
 * the bytes of such a token becomes the token. Return 0 or SGT_ENOMEM. */
int sgt_vocab_add_wholes(sgt_vocab *v, const uint32_t *ids, size_t count, sgt_error *err);

/* Set the rule by which v splits text. `rule` is the name of a rule, a pattern, or NULL for GPT-2's
 * rule. Return 0 or SGT_ENOMEM. */
int sgt_vocab_split_by(sgt_vocab *v, const char *rule, sgt_error *err);

/* Create GPT-2's vocabulary from tables that are embedded in the library. The caller frees *out.
 * Return 0 or SGT_ENOMEM. */
int sgt_vocab_gpt2(sgt_vocab **out, sgt_error *err);

/* Load the vocabulary that the options name, and set its normal form. The caller frees *out. Return
 * SGT_EFORMAT if special_eot is set and the file gives the end-of-text token a setting that sgt
 * does not apply: sgt would find other occurrences of the token than the file asks for. */
int sgt_vocab_of(sgt_vocab **out, const sgt_tokenize_options *o, sgt_error *err);

/* Compute v->fingerprint: a hash of the tokens in the order of public ids, of the split rule and,
 * unless the ids imply them, of the merges. Ids in merge order imply the merges: if a token's bytes
 * are encoded with only the tokens of lower ids, exactly two tokens remain, and these two merge to
 * the token (vocab_file.h). */
int sgt_vocab_set_fingerprint(sgt_vocab *v, sgt_error *err);

/* Notify the user of each of these cases: sgt ignores settings in the vocabulary's file; the split
 * rule is only assumed; Hugging Face's library may split text differently with the files that sgt
 * writes. */
void sgt_vocab_say(const sgt_vocab *v, const sgt_notice *n);

/* For each id below n, set bytes[id] to the length of the id's text in bytes: 0 for the end of
 * text, which has no text, and for ids that the vocabulary lacks. */
void sgt_vocab_text_bytes(const sgt_vocab *v, uint32_t *bytes, uint32_t n);

#endif
