#include "tests/expect.h"
#include "tests/tokenize/common.h"

#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "loader/base/philox.h"
#include "tests/scratch.h"
#include "tokenize/bpe/words.h"
#include "tokenize/learn/merges.h"

sgt_vocab *gpt2(void)
{
    sgt_vocab *v = NULL;
    must(sgt_vocab_gpt2(&v, why));
    return v;
}

sgt_vocab *load_vocab(const char *path, const char *rule)
{
    sgt_vocab *v = NULL;
    must(sgt_vocab_load(&v, path, rule, why));
    return v;
}

/* Train on pairs of GPT-2's tokens, so that real text is merged in many steps. */
static void train_wide(sgt_vocab_parts *p)
{
    scoped(sgt_vocab) *v = gpt2();
    sgt_pieces pieces = {0};
    for (uint32_t id = 0; id < 50256; id++) {
        size_t n, m;
        const uint8_t *s = sgt_vocab_token(v, id, &n),
                      *t = sgt_vocab_token(v, id * 7919 % 50256, &m);
        uint8_t both[512];
        memcpy(mempcpy(both, s, n), t, m);
        must(sgt_pieces_add(&pieces, both, n + m, 1 + id % 3, why));
    }
    must(sgt_merges_train(p, &pieces, 100001, NULL, why));
    cr_assert_eq(p->size, 100001);
    sgt_pieces_free(&pieces);
}

sgt_vocab *wide_vocab(const char *rule, int eot_first)
{
    sgt_vocab_parts trained = {.path = "wide", .rule = rule},
                    parts = {.path = "wide", .rule = rule};
    sgt_vocab *v = NULL;
    train_wide(&trained);
    for (uint32_t id = 1; id < trained.size; id++)
        must(sgt_vocab_parts_token(&parts, id - 1, trained.tokens[id].s, trained.tokens[id].n, 0,
                                   why));
    for (size_t i = 0; i < trained.merge_count; i++) {
        const sgt_vocab_merge *m = &trained.merges[i];
        must(sgt_vocab_parts_merge(&parts, m->left - 1, m->right - 1, m->made - 1, why));
    }
    must(sgt_vocab_parts_token(&parts, parts.size, "<|endoftext|>", 13, 1, why));
    must(sgt_vocab_from_parts(&v, eot_first ? &trained : &parts, why));
    cr_assert_eq(sgt_vocab_width(v), 4);
    sgt_vocab_parts_free(&trained);
    sgt_vocab_parts_free(&parts);
    return v;
}

sgt_encoder *new_encoder(const sgt_vocab *v)
{
    sgt_encoder *e = NULL;
    must(sgt_encoder_new(&e, v, why));
    return e;
}

size_t encode(sgt_encoder *e, const void *text, size_t n, void *ids)
{
    size_t count = 0;
    must(sgt_encode(e, text, n, ids, n * e->words.v->width, &count, why));
    return count;
}

size_t bpe_scan(const sgt_vocab *v, const uint8_t *s, size_t n, void *ids)
{
    return (v->width == 4 ? sgt_bpe_scan_32 : sgt_bpe_scan_16)(v, s, n, ids);
}

size_t bpe_steps(sgt_encoder *e, const uint8_t *s, size_t n, void *ids)
{
    return e->by->steps(&e->words, s, n, ids);
}

int every_rule(sgt_vocab *vocabs[MOST_RULES], sgt_encoder *encoders[MOST_RULES])
{
    int count = 0;
    for (const sgt_rule *r = NULL; !count || r; r = sgt_rule_at((size_t)count++)) {
        cr_assert_lt(count, MOST_RULES);
        vocabs[count] = load_vocab("gpt2", r ? r->text : NULL);
        cr_assert(!r || vocabs[count]->rule.text == r->text);
        encoders[count] = new_encoder(vocabs[count]);
    }
    return count;
}

void free_rules(sgt_vocab **vocabs, sgt_encoder **encoders, int count)
{
    for (int i = 0; i < count; i++) {
        sgt_encoder_free(encoders[i]);
        sgt_vocab_free(vocabs[i]);
    }
}

void add_tokens(sgt_vocab_parts *p, const sgt_vocab *v)
{
    for (uint32_t id = 0; id < sgt_vocab_size(v); id++) {
        size_t n;
        const uint8_t *s = sgt_vocab_token(v, id, &n);
        must(sgt_vocab_parts_token(p, id, s, n, id == sgt_vocab_eot(v), why));
    }
}

size_t encode_by_ranks(const sgt_vocab_parts *p, const uint8_t *s, size_t n, uint32_t *ids)
{
    size_t from[513], count = n;
    for (size_t i = 0; i <= n; i++) from[i] = i;
    if (sgt_vocab_parts_find(p, s, n) != SGT_NO_TOKEN) from[count = 1] = n;
    for (;;) {
        uint32_t best = SGT_NO_TOKEN;
        size_t at = 0;
        for (size_t i = 0; i + 2 <= count; i++) {
            const uint32_t id = sgt_vocab_parts_find(p, s + from[i], from[i + 2] - from[i]);
            if (id < best) best = id, at = i;
        }
        if (best == SGT_NO_TOKEN) break;
        memmove(from + at + 1, from + at + 2, (count - at - 1) * sizeof *from);
        count--;
    }
    for (size_t i = 0; i < count; i++)
        ids[i] = sgt_vocab_parts_find(p, s + from[i], from[i + 1] - from[i]);
    return count;
}

uint64_t test_seed(void)
{
    const char *given = getenv("SEED");
    return given ? strtoull(given, NULL, 10) : 1;
}

uint32_t below(rng *r, uint32_t n) { return (uint32_t)(sgt_philox_u64(r->key, r->at++, 0) % n); }

uint32_t crc32_of(uint32_t crc, const void *p, size_t n)
{
    const uint8_t *s = p;
    crc = ~crc;
    while (n-- > 0) {
        crc ^= *s++;
        for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (0xEDB88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

size_t from_hex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    unsigned byte;
    for (; sscanf(hex, "%2x", &byte) == 1 && hex[0] > ' ' && hex[1] > ' '; hex += 2)
        out[n++] = (uint8_t)byte;
    return n;
}

char *whole_file(const char *path, size_t *n)
{
    char *text = NULL;
    must(sgt_file_get(&text, n, path, (size_t)1 << 30, why));
    return text;
}

sgt_vocab *vocab_of_merges(const char *text, sgt_error *err)
{
    char folder[SCRATCH_SIZE], path[SCRATCH_SIZE + 16];
    sgt_error ignored;
    sgt_vocab *v = NULL;
    cr_assert(scratch_folder(folder, "/tmp", "vocab"), "%s", folder);
    snprintf(path, sizeof path, "%s/m", folder);
    cr_assert_eq(sgt_file_put(path, text, strlen(text), err), SGT_OK, "%s", err->text);
    const int rc = sgt_vocab_load(&v, path, NULL, err);
    cr_assert_eq(rc, v ? SGT_OK : SGT_EFORMAT);
    sgt_remove_tree(folder, &ignored);
    return v;
}

size_t strings_of(char **list, size_t room, char *text, const char *between)
{
    size_t n = 0;
    for (char *next; (next = strsep(&text, between)); list[n++] = next) cr_assert_lt(n, room);
    return n;
}

size_t put_utf8(uint8_t *out, uint32_t cp)
{
    if (cp < 0x80) return out[0] = (uint8_t)cp, 1;
    size_t more = cp < 0x800 ? 1 : cp < 0x10000 ? 2 : 3;
    out[0] = (uint8_t)((0xF0u << (3 - more)) | cp >> 6 * more);
    for (size_t i = 1; i <= more; i++) out[i] = (uint8_t)(0x80 | (cp >> 6 * (more - i) & 0x3F));
    return more + 1;
}

size_t put_context(uint8_t *out, const char *context, uint32_t cp)
{
    size_t n = 0;
    for (; *context; context++)
        if (*context == '@') n += put_utf8(out + n, cp);
        else out[n++] = (uint8_t)*context;
    return n;
}

/* Strings that the splitters look at: white space, quotes, case, marks, numbers, slashes. */
static char hard[] =
    " ~ ~  ~\n~\n\n~\t~\r\n~\xC2\x85~\xC2\xA0~\xE2\x80\x83~\xE3\x80\x80~\xE1\xA0\x8E~"
    "\xE2\x80\x8B~'~'~'s~'t~'m~'d~'l~'ll~'ve~'re~'S~'LL~\xE2\x80\x99s~a~b~the~ing~l~e~v~r~S~0~7~"
    "2024~!~-~==~...~<|endoftext|>~\xC3\xA9~\xCC\x81~\xE4\xB8\xAD~\xE6\x97\xA5\xE6\x9C\xAC~"
    "\xE0\xB8\x81~\xE0\xB8\xB2~\xD9\xA3~\xC2\xBD~\xF0\x9F\x98\x80~\xE2\x80\x8D~\xEF\xBF\xBD~"
    "\xD0\xB6~\xD0\xBE~'\xC5\xBF~'rE~'vE~'Ve~'v~The~THE~x~A~ZZ~abcdefgh~ABCDEFGH~\xC3\x89~"
    "\xC7\x85~\xCA\xB0~\xC2\xAA~\xC5\xBF~\xE6\x96\x87~\xCC\x80~\xE0\xB8\xB1~1~23~456~7890~/~//~"
    "/\n~\n/~ \n~\n ~.~(~\xF0\x9D\x90\x80~\xF0\x9D\x90\x9A~\xE1\xBE\x88";

size_t hard_text(rng *r, uint8_t *out, size_t max, int ill_formed)
{
    static char *pieces[100];
    static uint32_t all;
    if (!all) all = (uint32_t)strings_of(pieces, 100, hard, "~");
    const uint32_t few = 1 + below(r, 5);
    const int mixed = below(r, 2) == 0; /* 1: choose from all strings; 0: from a few */
    const char *chosen[5];
    size_t n = 0, want = below(r, (uint32_t)max + 1);
    uint8_t some[8];
    for (int i = 0; i < 5; i++) chosen[i] = pieces[below(r, all)];
    while (n < want) {
        uint32_t what = below(r, 16);
        size_t len;
        if (ill_formed && what == 0) {
            some[0] = (uint8_t)(0x80 + below(r, 128));
            len = 1;
        } else if (what == 1) {
            uint32_t cp = below(r, below(r, 2) ? 0x110000 : 0x3000);
            if (cp >= 0xD800 && cp < 0xE000 && !ill_formed) cp = 0x20;
            len = put_utf8(some, cp);
        } else {
            const char *p = mixed ? pieces[below(r, all)] : chosen[below(r, few)];
            len = strlen(p);
            if (len > want - n) break;
            memcpy(out + n, p, len);
            n += len;
            continue;
        }
        if (len > want - n && !ill_formed) break;
        if (len > want - n) len = want - n; /* cut the last character off at the end of the text */
        memcpy(out + n, some, len);
        n += len;
    }
    return n;
}
