/* vocab.c: builds the encoder's tables for a vocabulary from its list of merges. GPT-2's merges are
 * embedded in the library, together with precomputed factors for their hash table (sgt_pairs), so
 * that programs start quickly. */
#include "tokenize/vocab/vocab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

__asm__(".section .rodata\n"
        ".balign 64\n"
        "sgt_gpt2_tables: .incbin \"tokenize/vocab/gpt2.tables\"\n"
        ".previous\n");
/* The symbol is hidden so that code does not access it through the global offset table (GOT): on
 * aarch64, binutils 2.40 produces wrong GOT entries for symbols that are local to a file. */
#define HIDDEN __attribute__((visibility("hidden")))
/* GPT-2's tables: the ids of the two tokens of each merge, followed by the precomputed factors for
 * the hash table of merges (sgt_pairs) */
extern const uint16_t sgt_gpt2_tables[] HIDDEN;

#define GPT2_MERGES 50000
#define GPT2_BYTES 320827 /* total size in bytes of all of GPT-2's tokens */

/* ---- the byte alphabet ---- */

/* GPT-2's byte alphabet (vocab.h), as ranges. In each range, the ids of the single-byte tokens, the
 * bytes, and the characters that stand for the bytes are all consecutive. The ranges are in the
 * order of ids. */
static const struct alphabet_run {
    uint16_t id, byte, character, count;
} alphabet[] = {{0, 0x21, 0x21, 94}, {94, 0xA1, 0xA1, 12},   {106, 0xAE, 0xAE, 82},
                {188, 0, 0x100, 33}, {221, 0x7F, 0x121, 34}, {255, 0xAD, 0x143, 1}};
enum { RUNS = sizeof alphabet / sizeof *alphabet };

uint8_t sgt_alphabet_byte(uint32_t id)
{
    const struct alphabet_run *r = alphabet;
    while (id - r->id >= r->count) r++;
    return (uint8_t)(r->byte + id - r->id);
}

size_t sgt_alphabet_read(const char *text, size_t n, uint8_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < n; count++) {
        const struct alphabet_run *r = alphabet;
        unsigned cp = (uint8_t)text[i++];
        if (cp >= 0x80) {
            if (cp < 0xC2 || cp > 0xC5 || i == n || (text[i] & 0xC0) != 0x80) return 0;
            cp = (cp & 0x1F) << 6 | ((uint8_t)text[i++] & 0x3Fu);
        }
        while (r < alphabet + RUNS && cp - r->character >= r->count) r++;
        if (r == alphabet + RUNS) return 0;
        out[count] = (uint8_t)(r->byte + cp - r->character);
    }
    return count;
}

size_t sgt_alphabet_write(const uint8_t *s, size_t n, char *out)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const struct alphabet_run *r = alphabet;
        while ((unsigned)s[i] - r->byte >= r->count) r++;
        const unsigned cp = r->character + (unsigned)s[i] - r->byte;
        if (cp >= 0x80) out[count++] = (char)(0xC0 | cp >> 6);
        out[count++] = (char)(cp >= 0x80 ? 0x80 | (cp & 0x3F) : cp);
    }
    return count;
}

/* ---- the hash table of merges ----
 *
 * These functions build the hash table of merges, sgt_pairs (vocab.h). The hash of a pair of tokens
 * selects its group, and the hash times the group's factor selects its slot. The factor of a group
 * is the first odd number for which all of the group's pairs get free slots. The largest groups are
 * placed first, while most slots are free. At most half of the slots are in use in the end, so even
 * if a group of six pairs is placed last, it needs only about 2^6 tries on average. Few groups are
 * that large. */

#define SLOTS_LOG 17
/* Value of an empty slot. No merge has this value, because the lower 24 bits of a merge's value are
 * the merged id, which is below 2^24 - 1. */
#define NO_PAIR UINT64_MAX

/* Linked lists of the merges in each group of the hash table. Merges are identified by the ids of
 * the tokens that they produce. head[g] is the first merge of group g. next[id] is the merge after
 * merge `id` in the same list. The id 0 ends a list. */
typedef struct groups {
    const uint32_t (*halves)[2];
    const uint16_t *factors; /* factor to try first for each group; NULL to begin with 1 */
    /* sizes: number of merges in each group. head, next: linked lists of each group's merges. */
    uint32_t *sizes, *head, *next;
    uint32_t count, largest;
} groups;

/* Return the hash of a pair of tokens. The upper bits of the hash select the pair's group. */
static inline uint64_t hash_of(const uint32_t halves[2])
{
    return sgt_pair_hash(sgt_pair_key(halves[0], halves[1]));
}

/* Return the slot of the hash table that a pair of tokens gets if the factor of its group is
 * `factor`. */
static inline uint64_t *slot_of(const sgt_pairs *p, const uint32_t halves[2], uint32_t factor)
{
    return &p->slots[hash_of(halves) * factor >> p->shift];
}

/* Put all pairs of a group into the slots that this factor selects, and return 1. If one of these
 * slots is already in use, remove the group's pairs from the table and return 0. */
static int assign_slots(sgt_pairs *p, const groups *g, uint32_t group, uint32_t factor)
{
    for (uint32_t id = g->head[group]; id; id = g->next[id]) {
        uint64_t *at = slot_of(p, g->halves[id], factor);
        if (*at == NO_PAIR) {
            *at = sgt_pair_key(g->halves[id][0], g->halves[id][1]) << 24 | id;
            continue;
        }
        for (uint32_t put = g->head[group]; put != id; put = g->next[put])
            *slot_of(p, g->halves[put], factor) = NO_PAIR;
        return 0;
    }
    return 1;
}

static int assign_all_slots(sgt_pairs *p, const groups *g)
{
    for (uint32_t size = g->largest; size > 0; size--)
        for (uint32_t i = 0; i < g->count; i++) {
            uint32_t factor = g->factors ? g->factors[i] : 1;
            if (g->sizes[i] != size) continue;
            while (factor < 65536 && !assign_slots(p, g, i, factor)) factor += 2;
            if (factor > 65535) return 0;
            p->factors[i] = (uint16_t)factor;
        }
    return 1;
}

/* Allocate a hash table of 2^log slots for the merges that produce the ids from `first` to `end -
 * 1`, and search for a factor for each group, so that no two merges share a slot. Return 1 if a
 * factor was found for every group, 0 if not, or a negative SGT_E* on error. */
static int try_factors(sgt_pairs *p, const uint32_t (*halves)[2], uint32_t first, uint32_t end,
                       const uint16_t *factors, unsigned log, sgt_error *err)
{
    groups g = {.halves = halves, .factors = factors, .count = 1u << (log - 4)};
    const size_t slots = sizeof *p->slots << log;
    sgt_arena_unmap(&p->memory);
    int rc = sgt_arena_map(&p->memory, slots + g.count * sizeof *p->factors, 0, err);
    if (rc < 0) return rc;
    if (!(g.sizes = calloc((size_t)2 * g.count + end, sizeof *g.sizes)))
        return sgt_fail_memory(err, "vocabulary");
    g.head = g.sizes + g.count;
    g.next = g.head + g.count;
    p->slots = sgt_arena_take(&p->memory, slots, 1);
    p->factors = sgt_arena_take(&p->memory, g.count, sizeof *p->factors);
    p->shift = 64 - log;
    memset(p->slots, 0xFF, slots);
    for (size_t i = 0; i < g.count; i++) p->factors[i] = 1;
    for (uint32_t id = first; id < end; id++) {
        const uint32_t group = (uint32_t)(hash_of(halves[id]) >> (p->shift + 4));
        g.next[id] = g.head[group];
        g.head[group] = id;
        if (++g.sizes[group] > g.largest) g.largest = g.sizes[group];
    }
    rc = assign_all_slots(p, &g);
    free(g.sizes);
    return rc;
}

int sgt_pairs_make(sgt_pairs *p, const uint32_t (*halves)[2], uint32_t first, uint32_t end,
                   const uint16_t *factors, sgt_error *err)
{
    unsigned log = SLOTS_LOG;
    /* If no factor is found for some group, try again with twice as many slots. No real vocabulary
     * is known to need a second try. */
    while (end > 1u << (log - 1)) log++;
    for (int tries = 0; tries < 6; tries++) {
        const int rc = try_factors(p, halves, first, end, factors, log++, err);
        if (rc) return rc < 0 ? rc : SGT_OK;
    }
    return sgt_fail(err, SGT_ENOMEM, "vocabulary: cannot build the table of its %u merges",
                    end - first);
}

/* ---- the trie ----
 *
 * The trie of all tokens is filled only when a thread first needs it. The reasons are that few
 * texts need it, and that filling it takes longer than building the rest of a vocabulary. */

#define ROOT 1u

static void fill_trie(sgt_vocab *v)
{
    uint32_t nodes = ROOT + 1;
    for (uint32_t id = 0; id < v->made; id++) {
        /* begin at the node where the token's left half ends, because it is already in the trie */
        const uint32_t *left = id < 256 ? NULL : v->halves[id];
        const uint8_t *s = sgt_vocab_bytes(v, id), *const end = s + sgt_vocab_length(v, id);
        uint32_t node = left ? v->trie_end[*left] : ROOT;
        if (left) s += sgt_vocab_length(v, *left);
        for (; s < end; s++) {
            uint32_t key = node << 8 | *s;
            sgt_vocab_slot *slot = sgt_vocab_slot_of(v->trie, v->trie_shift, key);
            if (!slot->value) *slot = (sgt_vocab_slot){key, nodes++};
            node = slot->value;
        }
        v->trie_token[node] = id + 1;
        v->trie_end[id] = node;
    }
}

void sgt_vocab_need_trie(const sgt_vocab *shared)
{
    /* Casting away const is safe, because a thread fills the trie only while it holds trie_lock.
     * Nothing else in a shared vocabulary ever changes. */
    sgt_vocab *v = (sgt_vocab *)shared;
    /* pairs with the release store below */
    if (__atomic_load_n(&v->trie_ready, __ATOMIC_ACQUIRE)) return;
    pthread_mutex_lock(&v->trie_lock);
    if (!v->trie_ready) {
        fill_trie(v);
        __atomic_store_n(&v->trie_ready, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&v->trie_lock);
}

uint32_t sgt_vocab_longest(const sgt_vocab *v, const uint8_t *s, size_t n, size_t *len)
{
    uint32_t node = ROOT, best = SGT_NO_TOKEN;
    for (size_t i = 0; i < n; i++) {
        node = sgt_vocab_slot_of(v->trie, v->trie_shift, node << 8 | s[i])->value;
        if (!node) break;
        if (v->trie_token[node]) {
            best = v->trie_token[node] - 1;
            *len = i + 1;
        }
    }
    return best;
}

/* ---- building a vocabulary ---- */

/* Fill in GPT-2's tokens: the single bytes, the merged tokens, and the end-of-text token. A merged
 * token has the bytes of the two tokens that it is merged from. Return 0, or -1 if out of
 * memory. */
static int add_gpt2_tokens(sgt_vocab *v)
{
    v->made = v->eot = 256 + GPT2_MERGES;
    v->size = v->eot + 1;
    v->offsets = calloc((size_t)v->size + 1, sizeof *v->offsets);
    v->halves = calloc(v->size, sizeof *v->halves);
    v->added = calloc(v->size, 1);
    v->bytes = malloc(GPT2_BYTES);
    if (!v->offsets || !v->halves || !v->added || !v->bytes) return -1;
    uint8_t *to = v->bytes;
    for (uint32_t id = 0; id < v->size; id++) {
        v->offsets[id] = (uint32_t)(to - v->bytes);
        if (id < 256) *to++ = sgt_alphabet_byte(id);
        if (id == v->eot) to = mempcpy(to, SGT_EOT_TEXT, strlen(SGT_EOT_TEXT));
        for (uint32_t i = 0; i < 2 && id < v->made; i++) {
            const uint32_t half = id < 256 ? id : sgt_gpt2_tables[2 * (id - 256) + i];
            v->halves[id][i] = half;
            if (id >= 256) to = mempcpy(to, v->bytes + v->offsets[half], sgt_vocab_length(v, half));
        }
    }
    v->offsets[v->size] = (uint32_t)(to - v->bytes);
    v->added[v->eot] = 1;
    return 0;
}

/* Allocate the trie, v->byte_pairs and v->joins. Return 0 or SGT_ENOMEM. */
static int reserve_tables(sgt_vocab *v, sgt_error *err)
{
    unsigned log_trie = 1;
    /* maximum number of nodes in the trie: one for each byte of each token, the root (node 1), and
     * the unused node 0 */
    const size_t nodes = (size_t)v->offsets[v->size] + 2;
    while ((size_t)1 << log_trie < 2 * nodes) log_trie++;
    v->trie_shift = 64 - log_trie;
    v->byte_pairs = malloc(65536 * v->width);
    v->joins = calloc(1024, sizeof *v->joins);
    if (!v->byte_pairs || !v->joins) return sgt_fail_memory(err, v->name);
    const size_t slots = sizeof *v->trie << log_trie, tokens = nodes * sizeof *v->trie_token,
                 ends = v->made * sizeof *v->trie_end;
    const int rc = sgt_arena_map(&v->trie_memory, slots + tokens + ends + SGT_ARENA_ALIGN, 0, err);
    if (rc < 0) return rc;
    v->trie = sgt_arena_take(&v->trie_memory, slots, 1);
    v->trie_token = sgt_arena_take(&v->trie_memory, tokens, 1);
    v->trie_end = sgt_arena_take(&v->trie_memory, ends, 1);
    return SGT_OK;
}

static uint32_t *whole_slot(const sgt_vocab *v, const uint8_t *s, size_t n)
{
    size_t i = XXH3_64bits(s, n) & (v->whole_slots - 1), length = 0;
    for (; v->wholes[i]; i = (i + 1) & (v->whole_slots - 1)) {
        const uint8_t *t = sgt_vocab_token(v, v->wholes[i] - 1, &length);
        if (length == n && !memcmp(s, t, n)) break;
    }
    return &v->wholes[i];
}

uint32_t sgt_vocab_whole(const sgt_vocab *v, const uint8_t *s, size_t n)
{
    return v->wholes ? *whole_slot(v, s, n) - 1 : SGT_NO_TOKEN;
}

int sgt_vocab_add_wholes(sgt_vocab *v, const uint32_t *ids, size_t count, sgt_error *err)
{
    for (v->whole_slots = 2; v->whole_slots < 2 * count;) v->whole_slots *= 2;
    v->wholes = calloc(v->whole_slots, sizeof *v->wholes);
    if (!v->wholes) return sgt_fail_memory(err, v->name);
    for (size_t i = 0; i < count; i++) {
        size_t n = 0;
        const uint8_t *s = sgt_vocab_token(v, ids[i], &n);
        *whole_slot(v, s, n) = ids[i] + 1;
    }
    return SGT_OK;
}

/* Fill in v->byte_id, v->byte_pairs, v->joins and v->cuts from the tokens and merges. For each
 * merged token, only one pair of bytes is added to v->joins: the bytes on both sides of the border
 * between the token's two halves. Its other pairs of bytes are inside one of the halves, which is a
 * token, so they were added before. */
static void fill_tables(sgt_vocab *v)
{
    memset(v->byte_pairs, 0xFF, 65536 * v->width);
    for (uint32_t id = 0; id < 256; id++) v->byte_id[*sgt_vocab_bytes(v, id)] = (uint16_t)id;
    for (uint32_t id = 256; id < v->made; id++) {
        const uint8_t *s = sgt_vocab_bytes(v, id);
        const uint32_t *h = v->halves[id];
        char *two = (char *)v->byte_pairs + v->width * (s[0] | (size_t)s[1] << 8);
        /* Copy the lower `width` bytes of `id`, which come first in memory because all supported
         * CPUs are little-endian. */
        if (h[0] < 256 && h[1] < 256) memcpy(two, &id, v->width);
        const uint8_t *border = s + sgt_vocab_length(v, h[0]);
        unsigned pair = (unsigned)border[-1] << 8 | border[0];
        v->joins[pair >> 6] |= (uint64_t)1 << (pair & 63);
    }
    sgt_cuts_make(&v->cuts, v->joins);
}

/* Linked lists of the merges that use each token, in merge order. Merges are identified by the ids
 * of the tokens that they produce. Each token t has two lists: list 0 contains the merges of t with
 * a token on its left, and list 1 the merges of t with a token on its right. head[i][t] is the
 * first merge in list i of token t. next[i][m] is the merge after merge m in the same list. The id
 * 0 ends a list. */
typedef struct crossing {
    uint32_t *head[2], *next[2]; /* arrays of v->made elements each */
} crossing;

/* Fill in *to for the character whose token is `id`: the masks of neighbouring bytes next to which
 * encoding must not begin with this token (sgt_character). While merges build the character from
 * its bytes, the tokens at its two ends grow. The token at an end can merge with a token outside
 * the character first, if this merge produces an id that is not higher than that of the end token's
 * next merge inside the character. For each such merge, add the byte of the outside token that
 * touches the character to the mask for that side. */
static void find_crossings(const sgt_vocab *v, const crossing *c, uint32_t id, sgt_character *to)
{
    to->id = id;
    for (int half = 0; half < 2; half++)
        for (uint32_t whole = id, t; whole >= 256; whole = t) {
            t = v->halves[whole][half];
            for (uint32_t m = c->head[half][t]; m && m <= whole; m = c->next[half][m]) {
                const uint8_t *border =
                    sgt_vocab_bytes(v, m) + sgt_vocab_length(v, v->halves[m][0]);
                const int continues = (border[half - 1] & 0xC0) == 0x80;
                if (half && !continues) to->after |= sgt_character_after(border[0]);
                if (!half && continues) to->before |= (uint64_t)1 << (border[-1] & 63);
            }
        }
}

/* Allocate and fill in v->characters. Return 0, or -1 if out of memory. */
static int find_characters(sgt_vocab *v)
{
    const size_t made = v->made;
    uint32_t *all = calloc(4 * made, sizeof *all), cp;
    const crossing c = {{all, all + made}, {all + 2 * made, all + 3 * made}};
    v->characters = calloc(65536, sizeof *v->characters);
    if (!all || !v->characters) {
        free(all);
        return -1;
    }
    for (uint32_t id = v->made - 1; id >= 256; id--)
        for (int half = 0; half < 2; half++) {
            const uint32_t t = v->halves[id][!half];
            c.next[half][id] = c.head[half][t];
            c.head[half][t] = id;
        }
    for (uint32_t id = 256; id < v->made; id++) {
        const uint8_t *s = sgt_vocab_bytes(v, id);
        const size_t n = sgt_vocab_length(v, id);
        if (n < 4 && s[0] >= 0xC2 && sgt_utf8_unit(s, n, &cp) == n && cp <= 0xFFFF)
            find_crossings(v, &c, id, &v->characters[cp]);
    }
    free(all);
    return 0;
}

static void set_name(sgt_vocab *v, const char *path)
{
    const char *end = path + strlen(path), *from;
    /* a quarter of the size of v->name, because sgt_printable writes an unprintable byte as four
     * characters */
    char name[sizeof v->name / 4];
    while (end > path && end[-1] == '/') end--;
    for (from = end; from > path && from[-1] != '/';) from--;
    snprintf(name, sizeof name, "%.*s", (int)(end - from), from);
    sgt_printable(v->name, sizeof v->name, name);
}

sgt_vocab *sgt_vocab_new(const char *path)
{
    sgt_vocab *v = calloc(1, sizeof *v);
    if (!v) return NULL;
    set_name(v, path);
    v->eot_text = SGT_EOT_TEXT;
    v->rule = sgt_rule_of(NULL);
    pthread_mutex_init(&v->trie_lock, NULL);
    return v;
}

int sgt_vocab_make_tables(sgt_vocab *v, const uint16_t *factors, sgt_error *err)
{
    v->width = sgt_id_width(v->size);
    const int rc = reserve_tables(v, err);
    if (rc < 0) return rc;
    fill_tables(v);
    if (v->width == 4 && find_characters(v) < 0) return sgt_fail_memory(err, v->name);
    return sgt_pairs_make(&v->pairs, (const uint32_t(*)[2])v->halves, 256, v->made, factors, err);
}

int sgt_vocab_split_by(sgt_vocab *v, const char *rule, sgt_error *err)
{
    v->rule = sgt_rule_of(rule);
    /* a rule with a `regex` is from the built-in table, whose strings are static, so it needs no
     * copy */
    if (v->rule.regex) return SGT_OK;
    v->rule.text = v->pattern = strdup(rule);
    return v->pattern ? SGT_OK : sgt_fail_memory(err, v->name);
}

int sgt_vocab_gpt2(sgt_vocab **out, sgt_error *err)
{
    sgt_vocab *v = sgt_vocab_new("gpt2");
    const int rc = v && add_gpt2_tokens(v) == 0
                       ? sgt_vocab_make_tables(v, sgt_gpt2_tables + (size_t)2 * GPT2_MERGES, err)
                       : sgt_fail_memory(err, "gpt2");
    if (rc < 0) {
        sgt_vocab_free(v);
        return rc;
    }
    v->fingerprint = SGT_GPT2_FINGERPRINT;
    *out = v;
    return SGT_OK;
}

void sgt_vocab_free(sgt_vocab *v)
{
    if (!v) return;
    pthread_mutex_destroy(&v->trie_lock);
    free(v->offsets);
    free(v->bytes);
    free(v->added);
    free(v->ids);
    free(v->halves);
    sgt_arena_unmap(&v->pairs.memory);
    free(v->byte_pairs);
    free(v->joins);
    free(v->characters);
    free(v->wholes);
    sgt_arena_unmap(&v->trie_memory);
    free(v->pattern);
    free(v);
}

/* ---- the fingerprint ---- */

/* Return 1 if the merges can be derived from the public ids (sgt_vocab_set_fingerprint), otherwise
 * 0. They can if the ids of the merged tokens are in the order of the merges, and all tokens except
 * the single bytes and the added tokens are merged tokens. */
static int ids_imply_merges(const sgt_vocab *v)
{
    uint32_t plain = 0;
    for (uint32_t id = 257; id < v->made; id++)
        if (sgt_vocab_public_id(v, id) < sgt_vocab_public_id(v, id - 1)) return 0;
    for (uint32_t id = 0; id < v->size; id++) plain += !v->added[id];
    return plain == v->made;
}

/* Set v->fingerprint to the XXH3-64 hash of these bytes:
 * - for each token in the order of public ids, its length and its bytes;
 * - the text of the split rule;
 * - if the merges cannot be derived from the ids, the number of merges, and the two public ids of
 *   each merge.
 *
 * Numbers are 32-bit and little-endian. The seed of the hash is 1 if merges are hashed and
 * v->wholes is not NULL, otherwise 0. */
int sgt_vocab_set_fingerprint(sgt_vocab *v, sgt_error *err)
{
    const uint32_t count = v->made - 256;
    const char *rule = v->rule.text;
    const uint32_t size = v->size, *offsets = v->offsets;
    size_t total = offsets[size] + (size_t)size * sizeof(uint32_t) + strlen(rule);
    size_t merges = ((size_t)2 * count + 1) * sizeof(uint32_t);
    uint8_t *all = malloc(total + merges), *p = all;
    if (!all) return sgt_fail_memory(err, v->name);
    for (uint32_t id = 0; id < size; id++) {
        uint32_t n = offsets[id + 1] - offsets[id];
        memcpy(p, &n, sizeof n);
        memcpy(p + sizeof n, v->bytes + offsets[id], n);
        p += sizeof n + n;
    }
    memcpy(p, rule, strlen(rule));
    v->fingerprint = XXH3_64bits(all, total);
    if (!ids_imply_merges(v)) {
        p = memcpy(all + total, &count, sizeof count);
        for (uint32_t id = 256; id < v->made; id++)
            for (int half = 0; half < 2; half++) {
                uint32_t part = sgt_vocab_public_id(v, v->halves[id][half]);
                memcpy(p += sizeof part, &part, sizeof part);
            }
        v->fingerprint = XXH3_64bits_withSeed(all, total + merges, v->wholes != NULL);
    }
    free(all);
    return SGT_OK;
}

/* ---- look-ups ---- */

uint32_t sgt_vocab_size(const sgt_vocab *v) { return v->size; }
size_t sgt_vocab_width(const sgt_vocab *v) { return v->width; }
uint32_t sgt_vocab_eot(const sgt_vocab *v) { return v->eot; }
uint64_t sgt_vocab_fingerprint(const sgt_vocab *v) { return v->fingerprint; }
const char *sgt_vocab_name(const sgt_vocab *v) { return v->name; }

void sgt_vocab_text_bytes(const sgt_vocab *v, uint32_t *bytes, uint32_t n)
{
    for (uint32_t id = 0; id < n; id++) {
        size_t length = 0;
        if (id != v->eot) sgt_vocab_token(v, id, &length);
        bytes[id] = (uint32_t)length;
    }
}

void sgt_vocab_say(const sgt_vocab *v, const sgt_notice *n)
{
    size_t length = 0;
    const uint8_t *marker =
        v->marker ? sgt_vocab_token(v, (uint32_t)(v->marker - 1), &length) : NULL;
    if (marker)
        sgt_say(n,
                "%s: %.*s in text is tokenized as ordinary text, not as the token of that name "
                "(the file does not mark it as special)",
                v->name, (int)length, (const char *)marker);
    if (v->ignored)
        sgt_say(n,
                "%s: its truncation and padding settings are ignored: documents are neither cut "
                "nor padded",
                v->name);
    if (v->assumed && v->fingerprint != SGT_GPT2_FINGERPRINT)
        sgt_say(n,
                "%s: has no pattern that splits text before merging, so GPT-2's is used (--pattern "
                "selects another, such as cl100k or o200k)",
                v->name);
    if (!v->rule.regex)
        sgt_say(n, "pattern: with OUT's tokenizer.json, transformers may split text differently "
                   "(its library reads some patterns differently)");
}

const uint8_t *sgt_vocab_token(const sgt_vocab *v, uint32_t id, size_t *n)
{
    if (id >= v->size) return NULL;
    *n = v->offsets[id + 1] - v->offsets[id];
    return v->bytes + v->offsets[id];
}

/* ---- from ids back to bytes ---- */

int sgt_decode(const sgt_vocab *v, const void *ids, size_t count, char **text, size_t *n,
               sgt_error *err)
{
    const uint32_t *offsets = v->offsets;
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t id = sgt_id_at(ids, v->width, i);
        if (id >= v->size)
            return sgt_fail(err, SGT_EFORMAT,
                            "token %zu: id %" PRIu32
                            " is not in the vocabulary %s (its ids are below %" PRIu32 ")",
                            i, id, v->name, v->size);
        /* The sum cannot overflow 64 bits: a token has fewer than 2^24 bytes, and an array of 2^40
         * ids does not fit in memory. */
        total += offsets[id + 1] - offsets[id];
    }
    char *out = malloc(total + 1);
    if (!out) return sgt_fail(err, SGT_ENOMEM, "text of %zu tokens: out of memory", count);
    *text = out;
    *n = total;
    for (size_t i = 0; i < count; i++) {
        const uint32_t id = sgt_id_at(ids, v->width, i);
        out = mempcpy(out, v->bytes + offsets[id], offsets[id + 1] - offsets[id]);
    }
    *out = 0;
    return SGT_OK;
}
