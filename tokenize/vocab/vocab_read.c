/* vocab_read.c: implements sgt_vocab_load, which determines the format of a file, reads the file
 * into an sgt_vocab_parts, and builds a vocabulary from that. The formats are merges.txt (with or
 * without vocab.json), .tiktoken, tekken.json, and the tokenizer.json of a byte-level BPE that
 * splits text by one pattern. A tokenizer.json with a setting that sgt does not support is refused,
 * and the message names the setting. The post-processor and the decoder in a tokenizer.json are
 * ignored, because they do not affect the ids of plain text. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "tokenize/text/pattern.h"
#include "tokenize/vocab/vocab_file.h"

/* Maximum number of JSON values in a file: five for each possible id, which is enough, because a
 * token takes one value, and its merge at most three (an array and two strings). */
#define MAX_VALUES ((size_t)5 * SGT_MOST_IDS)

typedef struct text_file {
    /* bytes: contents of the file; NULL if the file does not exist or has not been read */
    char path[SGT_PATH], *bytes;
    size_t n;
} text_file;

/* the files of a vocabulary, and the tokens and merges that have been read from them so far */
typedef struct source {
    sgt_vocab_parts parts;
    /* merges: contents of merges.txt; vocab: contents of vocab.json, .tiktoken, tekken.json or
     * tokenizer.json */
    text_file merges, vocab;
    json_t *root;       /* parsed JSON of `vocab`; NULL if that file is not JSON */
    uint8_t *room;      /* scratch buffer for the bytes of a token or a merge */
    int8_t base64[256]; /* value of each base64 digit, indexed by character; -1 if not a digit */
} source;

/* ---- lines ---- */

/* Read the line of t that begins at offset *at. Set *line to its address and *len to its length
 * without the line end (\n or \r\n), and advance *at to the next line. Return 1, or 0 if *at is at
 * the end of the file. */
static int next_line(const text_file *t, size_t *at, const char **line, size_t *len)
{
    if (*at >= t->n) return 0;
    const char *stop = memchr(t->bytes + *at, '\n', t->n - *at);
    *line = t->bytes + *at;
    *len = (size_t)((stop ? stop : t->bytes + t->n) - *line);
    *at += *len + 1;
    if (*len && (*line)[*len - 1] == '\r') --*len;
    return 1;
}

/* ---- tokens and merges ---- */

/* Append a merge to s->parts. The first n bytes at s->room are the bytes of both tokens: the left
 * token is the first l bytes, and the right token is the remaining n - l bytes. */
static int append_merge(source *s, size_t l, size_t n, sgt_error *err)
{
    const uint8_t *bytes = s->room;
    sgt_vocab_parts *p = &s->parts;
    const uint32_t left = sgt_vocab_parts_find(p, bytes, l),
                   right = sgt_vocab_parts_find(p, bytes + l, n - l),
                   made = sgt_vocab_parts_find(p, bytes, n);
    const int known = left != SGT_NO_TOKEN && right != SGT_NO_TOKEN;
    if (known && !s->vocab.bytes) return sgt_vocab_parts_join(p, left, right, err);
    if (known && made != SGT_NO_TOKEN) return sgt_vocab_parts_merge(p, left, right, made, err);
    return sgt_fail(err, SGT_EFORMAT, "%s: merge %zu: %s is not in the vocabulary", p->path,
                    p->merge_count + 1,
                    left == SGT_NO_TOKEN    ? "its left token"
                    : right == SGT_NO_TOKEN ? "its right token"
                                            : "its result");
}

/* Append a merge to s->parts. The left token is written as the left_n bytes at `left`, and the
 * right token as the right_n bytes at `right`, both in GPT-2's byte alphabet. Return 0, 1 if a
 * token is empty or not in this alphabet, or a negative SGT_E* on error. */
static int add_merge(source *s, const char *left, size_t left_n, const char *right, size_t right_n,
                     sgt_error *err)
{
    const size_t l = sgt_alphabet_read(left, left_n, s->room),
                 r = l ? sgt_alphabet_read(right, right_n, s->room + l) : 0;
    return r ? append_merge(s, l, l + r, err) : 1;
}

/* Append the merge in a line of n bytes to s->parts. The line has the form "left right", in GPT-2's
 * byte alphabet. Return 0, 1 if the line does not have this form, or a negative SGT_E* on error. */
static int add_merge_line(source *s, const char *line, size_t n, sgt_error *err)
{
    const char *space = memchr(line, ' ', n);
    return space ? add_merge(s, line, (size_t)(space - line), space + 1,
                             n - (size_t)(space + 1 - line), err)
                 : 1;
}

static int read_merges(source *s, sgt_error *err)
{
    const char *line;
    size_t at = 0, len, number = 0;
    int rc = SGT_OK;
    while (!rc && next_line(&s->merges, &at, &line, &len)) {
        number++;
        if (number == 1 && len >= 8 && !memcmp(line, "#version", 8)) continue;
        if ((rc = add_merge_line(s, line, len, err)) == 1)
            return sgt_fail(
                err, SGT_EFORMAT,
                "%s: line %zu: expected two tokens in GPT-2's byte alphabet, separated by a space",
                s->merges.path, number);
    }
    return rc;
}

/* Append the merge `o` of a tokenizer.json to s->parts. It has the form "left right" or ["left",
 * "right"]. number: number of the merge, counted from 1, for error messages. */
static int read_json_merge(source *s, const json_t *o, size_t number, sgt_error *err)
{
    const char *line = json_string_value(o), *l = json_string_value(json_array_get(o, 0)),
               *r = json_string_value(json_array_get(o, 1));
    const int rc = line     ? add_merge_line(s, line, strlen(line), err)
                   : l && r ? add_merge(s, l, strlen(l), r, strlen(r), err)
                            : 1;
    return rc < 1 ? rc
                  : sgt_fail(err, SGT_EFORMAT,
                             "%s: merge %zu: expected two tokens in GPT-2's byte alphabet",
                             s->parts.path, number);
}

static int is_eot(const char *name)
{
    for (const char *const *eot = sgt_vocab_eot_names; *eot; eot++)
        if (!strcmp(*eot, name)) return 1;
    return 0;
}

static int add_token(source *s, const char *path, const char *name, int64_t id, sgt_error *err)
{
    const size_t n = strlen(name), count = sgt_alphabet_read(name, n, s->room);
    if (!n || count) return sgt_vocab_parts_token(&s->parts, (uint64_t)id, s->room, count, 0, err);
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: is not byte-level: token %lld (%s) is not in GPT-2's byte alphabet", path,
                    (long long)id, name);
}

/* Add the tokens in the JSON object `vocab`, which maps tokens to ids, to s->parts. added: a JSON
 * object that maps added tokens, which are already in s->parts, to their ids, or NULL if the file
 * has no list of added tokens. Skip the tokens in `added`. If `added` is NULL, the end-of-text
 * token becomes an added token. */
static int read_tokens(source *s, const char *path, json_t *vocab, const json_t *added,
                       sgt_error *err)
{
    const char *name;
    json_t *id;
    int rc = SGT_OK;
    json_object_foreach(vocab, name, id)
    {
        const json_t *known = json_object_get(added, name);
        const int64_t number = json_integer_value(id);
        if (!json_is_integer(id) || number < 0)
            return sgt_fail(err, SGT_EFORMAT, "%s: token %s: its id is not a whole number", path,
                            name);
        if (known && !json_equal(known, id))
            return sgt_fail(err, SGT_EFORMAT, "%s: token %s has two ids, %lld and %lld", path, name,
                            (long long)number, (long long)json_integer_value(known));
        if (known) continue;
        rc = !added && is_eot(name)
                 ? sgt_vocab_parts_token(&s->parts, (uint64_t)number, name, strlen(name), 1, err)
                 : add_token(s, path, name, number, err);
        if (rc < 0) break;
    }
    return rc;
}

static int parse_json(source *s, sgt_error *err)
{
    const text_file *t = &s->vocab;
    json_error_t why;
    int rc = sgt_json_fits(t->bytes, t->n, MAX_VALUES, t->path, err);
    if (rc < 0) return rc;
    /* Allow NUL characters in strings if the file looks like a tekken.json, because such a file
     * contains a NUL in the text of the token for byte 0x00. sgt reads only the base64 form of a
     * token. */
    const size_t nul = strstr(t->bytes, "\"token_bytes\"") ? JSON_ALLOW_NUL : 0;
    if ((s->root = json_loadb(t->bytes, t->n, JSON_REJECT_DUPLICATES | nul, &why))) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT, "%s: line %d: %s", t->path, why.line, why.text);
}

/* For each unused id that is below `size` and above the ids of all ordinary tokens, add an added
 * token named "<|unused_ID|>", in which ID is the id. */
static int fill_ids(sgt_vocab_parts *p, uint32_t size, sgt_error *err)
{
    int rc = SGT_OK;
    for (uint32_t id = size; id-- > 0 && !rc && (!p->tokens[id].n || p->tokens[id].added);) {
        char name[32];
        if (p->tokens[id].n) continue;
        snprintf(name, sizeof name, "<|unused_%u|>", id);
        rc = sgt_vocab_parts_token(p, id, name, strlen(name), 1, err);
    }
    return rc;
}

/* ---- merges.txt without vocab.json ---- */

static int add_eot(source *s, uint64_t id, sgt_error *err)
{
    return sgt_vocab_parts_token(&s->parts, id, SGT_EOT_TEXT, strlen(SGT_EOT_TEXT), 1, err);
}

static int read_merges_alone(source *s, sgt_error *err)
{
    int rc = SGT_OK;
    for (uint32_t i = 0; i < 256 && !rc; i++) {
        const uint8_t byte = sgt_alphabet_byte(i);
        rc = sgt_vocab_parts_token(&s->parts, i, &byte, 1, 0, err);
    }
    if (!rc) rc = read_merges(s, err);
    return rc < 0 ? rc : add_eot(s, s->parts.size, err);
}

/* ---- .tiktoken ---- */

/* Decode the n bytes at `text`, which are in base64, and write the result to `out`, which must have
 * room for n bytes. Return the number of decoded bytes, or -1 if the text is not in base64. */
static ptrdiff_t read_base64(const source *s, const char *text, size_t n, uint8_t *out)
{
    uint32_t bits = 0;
    int bad = 0;
    size_t padding = 0;
    if (!n || n % 4) return -1;
    while (padding < 2 && text[n - 1 - padding] == '=') padding++;
    for (size_t i = 0; i < n; i++) {
        const int digit = i < n - padding ? s->base64[(uint8_t)text[i]] : 0;
        bad |= digit;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 == 3)
            for (int shift = 16; shift >= 0; shift -= 8) *out++ = (uint8_t)(bits >> shift);
    }
    return bad < 0 ? -1 : (ptrdiff_t)(n / 4 * 3 - padding);
}

/* Add the token in a line of a .tiktoken file to s->parts. The line has n bytes: the token in
 * base64, a space, and the token's rank, which is its id. The byte after the line must not be a
 * digit. number: the line's number, for error messages. */
static int read_ranked(source *s, size_t number, const char *line, size_t n, sgt_error *err)
{
    const char *space = memchr(line, ' ', n);
    char *end = NULL;
    const ptrdiff_t got = space ? read_base64(s, line, (size_t)(space - line), s->room) : -1;
    const uint64_t id =
        space && space[1] >= '0' && space[1] <= '9' ? strtoull(space + 1, &end, 10) : 0;
    if (got > 0 && end == line + n)
        return sgt_vocab_parts_token(&s->parts, id, s->room, (size_t)got, 0, err);
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: line %zu: expected a token in base64, a space, and its rank",
                    s->vocab.path, number);
}

#define LLAMA_BEGIN "<|begin_of_text|>"
#define LLAMA_END "<|end_of_text|>"

enum { SPECIAL = 8, BEGINNING = 300 };
/* Split rules and special tokens of known vocabularies, because .tiktoken files contain neither. A
 * vocabulary is recognized by a hash of its tokens. */
static const struct known {
    /* Two hashes that identify the vocabulary (find_known): ranks[0] is the hash of all its
     * ordinary tokens in the order of ids, and ranks[1] is the hash of the first BEGINNING
     * tokens. */
    uint64_t ranks[2];
    /* name: for messages, name of the vocabulary, and of larger vocabularies that begin with the
     * same tokens. rule: name of the split rule. */
    const char *name, *rule;
    uint32_t size; /* number of ids, including those of special tokens */
    sgt_normalize normalize;
    struct {
        uint32_t id;
        const char *name;
        /* Names of the special tokens that are the same in all versions of the vocabulary. The
         * other ids above the ordinary tokens count as unused. */
    } special[SPECIAL];
} known[] = {
    {.ranks = {0xD22AC95E30426420, 0x506E4A633F7CF7FA},
     .name = "cl100k, Llama 3 or Qwen",
     .rule = "cl100k",
     .size = 100277,
     .special = {{100257, SGT_EOT_TEXT},
                 {100258, "<|fim_prefix|>"},
                 {100259, "<|fim_middle|>"},
                 {100260, "<|fim_suffix|>"},
                 {100276, "<|endofprompt|>"}}},
    {.ranks = {0x42DF77718E1D6577, 0x546554BF812AFFB5},
     .name = "o200k",
     .rule = "o200k",
     .size = 200019,
     .special = {{199999, SGT_EOT_TEXT}, {200018, "<|endofprompt|>"}}},
    {.ranks = {0x87198E362E55D2BC, 0x506E4A633F7CF7FA},
     .name = "Llama 3 or Qwen",
     .rule = "llama3",
     .size = 128256,
     .special = {{128000, LLAMA_BEGIN},
                 {128001, LLAMA_END},
                 {128006, "<|start_header_id|>"},
                 {128007, "<|end_header_id|>"},
                 {128009, "<|eot_id|>"}}},
    {.ranks = {0xFCA0F5786EA433D5, 0xF90186BBD6FEE714},
     .name = "Llama 4",
     .rule = "o200k",
     .size = 202048,
     .special = {{200000, LLAMA_BEGIN},
                 {200001, LLAMA_END},
                 {200002, "<|fim_prefix|>"},
                 {200003, "<|fim_middle|>"},
                 {200004, "<|fim_suffix|>"},
                 {200005, "<|header_start|>"},
                 {200006, "<|header_end|>"},
                 {200008, "<|eot|>"}}},
    {.ranks = {0x9720B1CDD736D5FA, 0x506E4A633F7CF7FA},
     .name = "Qwen",
     .rule = "qwen2",
     /* special tokens with ids from `size` on are not listed, because they differ between versions
      * of Qwen */
     .size = 151646,
     .special = {{151643, SGT_EOT_TEXT}, {151644, "<|im_start|>"}, {151645, "<|im_end|>"}},
     .normalize = SGT_NORMALIZE_NFC},
    {.ranks = {0x94228A781FC58862, 0xBB01BB3D22DBF339},
     .name = "GPT-2",
     .rule = "gpt2",
     .size = SGT_GPT2_IDS,
     .special = {{SGT_GPT2_IDS - 1, SGT_EOT_TEXT}}},
};

/* Set *found to the known vocabulary that has exactly the tokens of *p, or to NULL if there is
 * none. Return 0 or SGT_EFORMAT. If *p begins with the same tokens as a known vocabulary, but has
 * fewer tokens, fail, because the file is probably truncated. But if the caller gave a split rule,
 * accept the file as a different vocabulary. */
static int find_known(const struct known **found, const sgt_vocab_parts *p, sgt_error *err)
{
    const struct known *const end = known + sizeof known / sizeof *known;
    uint64_t hash = 0, begins = 0;
    for (uint32_t id = 0; id < p->size; id++) {
        hash = XXH3_64bits_withSeed(p->tokens[id].s, p->tokens[id].n, hash);
        if (id + 1 == BEGINNING) begins = hash;
    }
    *found = NULL;
    for (const struct known *k = known; k < end; k++)
        if (k->ranks[0] == hash) *found = k;
    for (const struct known *k = known; k < end && !*found && !p->rule; k++)
        if (k->ranks[1] == begins && p->size < k->size)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: begins like the ranks of %s, but ends after %u of them: is it "
                            "truncated? (--pattern accepts it as a separate vocabulary)",
                            p->path, k->name, p->size);
    return SGT_OK;
}

static int add_known(source *s, const struct known *k, sgt_error *err)
{
    sgt_vocab_parts *p = &s->parts;
    int rc = SGT_OK;
    p->assumed = 0;
    p->normalize = k->normalize;
    if (!p->rule) p->rule = k->rule;
    for (int i = 0; i < SPECIAL && k->special[i].name && !rc; i++) {
        const char *name = k->special[i].name;
        rc = sgt_vocab_parts_token(p, k->special[i].id, name, strlen(name), 1, err);
    }
    return rc < 0 ? rc : fill_ids(p, k->size, err);
}

/* Return an id for the end-of-text token, because a .tiktoken file does not contain this token: the
 * unused id below the largest id if there is exactly one, otherwise the largest id plus 1. */
static uint32_t free_id(const sgt_vocab_parts *p)
{
    uint32_t id = 0;
    if (p->count + 1 != p->size) return p->size;
    while (p->tokens[id].n) id++;
    return id;
}

static int read_tiktoken(source *s, sgt_error *err)
{
    const char *line;
    size_t at = 0, len, number = 0;
    int rc = SGT_OK;
    while (!rc && next_line(&s->vocab, &at, &line, &len)) {
        number++;
        if (len) rc = read_ranked(s, number, line, len, err);
    }
    if (!rc && !s->parts.count)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: holds no tokens", s->vocab.path);
    const struct known *k;
    if (rc < 0 || (rc = find_known(&k, &s->parts, err)) < 0) return rc;
    return k ? add_known(s, k, err) : add_eot(s, free_id(&s->parts), err);
}

/* ---- tokenizer.json ---- */

static int refuse(const sgt_vocab_parts *p, const char *what, const char *why, sgt_error *err)
{
    return sgt_fail(err, SGT_EFORMAT, "%s: %s%s", p->path, what, why);
}

static const char *type_of(const json_t *o)
{
    const char *type = json_string_value(json_object_get(o, "type"));
    return type ? type : "an unknown type";
}

/* Set p->rule to the pattern, in PCRE2's syntax, by which the JSON object `o` of a tokenizer.json
 * or tekken.json splits text. If `o` has a member "pcre2", this is the pattern. (sgt writes this
 * member if Hugging Face's library needs a different pattern for the same result.) Otherwise, the
 * regular expression `regex` must be one that sgt knows. If an earlier Split has set p->rule, the
 * new pattern must stand for both Splits. */
static int read_regex(sgt_vocab_parts *p, const json_t *o, const char *regex, sgt_error *err)
{
    const char *pcre2 = p->rule ? NULL : json_string_value(json_object_get(o, "pcre2"));
    if ((p->rule = pcre2 ? pcre2 : sgt_rule_from_regex(p->rule, regex))) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: its pattern is unknown to sgt (pass it with --pattern, by a name such as "
                    "cl100k or in PCRE2 syntax)",
                    p->path);
}

/* Read a step "Split" of a tokenizer.json, and set p->rule. The Split must have a regular
 * expression whose matches become pre-tokens ("Isolated"). It can also remove the text between
 * matches ("Removed"), but only if sgt has its own code for the rule, because the matches of such a
 * rule leave no text between them. */
static int read_split(sgt_vocab_parts *p, const json_t *o, sgt_error *err)
{
    const char *regex = json_string_value(json_object_get(json_object_get(o, "pattern"), "Regex"));
    const char *behavior = json_string_value(json_object_get(o, "behavior"));
    const int inverted = json_is_true(json_object_get(o, "invert"));
    if (regex && behavior && !strcmp(behavior, inverted ? "Removed" : "Isolated")) {
        const int rc = read_regex(p, o, regex, err);
        if (rc || !inverted || sgt_rule_of(p->rule).by != SGT_RULE_PCRE2) return rc;
    }
    return refuse(
        p, "pre_tokenizer: ",
        "Split is supported only with a Regex whose matches are Isolated (--pattern replaces it)",
        err);
}

/* Read a step "ByteLevel" of a tokenizer.json, which converts bytes to the byte alphabet and also
 * splits text by GPT-2's rule, unless its member "use_regex" is false. Set *found to 1. */
static int read_byte_level(sgt_vocab_parts *p, const json_t *o, int *found, sgt_error *err)
{
    const json_t *regex = json_object_get(o, "use_regex");
    *found = 1;
    if (!json_is_false(json_object_get(o, "add_prefix_space")))
        return refuse(p, "pre_tokenizer: ",
                      "ByteLevel with add_prefix_space changes the text (--pattern replaces it)",
                      err);
    if (json_is_false(regex)) {
        /* If no step splits the text, all of the text is one pre-token. */
        if (!p->rule) p->rule = "(?s).+";
        return SGT_OK;
    }
    if (p->rule)
        return refuse(
            p, "pre_tokenizer: ",
            "Split followed by ByteLevel's own pattern is not supported (--pattern replaces both)",
            err);
    return SGT_OK;
}

static int read_pre_tokenizer(sgt_vocab_parts *p, const json_t *o, int *found, sgt_error *err)
{
    const char *type = type_of(o);
    size_t i;
    json_t *part;
    int rc = SGT_OK;
    if (!strcmp(type, "Split")) return read_split(p, o, err);
    if (!strcmp(type, "ByteLevel")) return read_byte_level(p, o, found, err);
    if (strcmp(type, "Sequence"))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: pre_tokenizer: %s is not supported (--pattern REGEX replaces it)",
                        p->path, type);
    json_array_foreach(json_object_get(o, "pretokenizers"), i, part) if (!rc) rc =
        read_pre_tokenizer(p, part, found, err);
    return rc;
}

static int read_rule(sgt_vocab_parts *p, const json_t *root, sgt_error *err)
{
    const json_t *o = json_object_get(root, "pre_tokenizer");
    int found = 0, rc;
    if (p->rule) return SGT_OK; /* the caller's split rule replaces the rule in the file */
    if (!json_is_object(o))
        return refuse(p, "is not byte-level: ", "it has no pre_tokenizer (use --pattern)", err);
    if ((rc = read_pre_tokenizer(p, o, &found, err)) < 0) return rc;
    return found ? SGT_OK
                 : refuse(p, "is not byte-level: ", "its pre_tokenizer contains no ByteLevel", err);
}

static int is_set(const json_t *o) { return o && !json_is_null(o); }

static int read_normalizer(sgt_vocab_parts *p, const json_t *root, sgt_error *err)
{
    const json_t *o = json_object_get(root, "normalizer"),
                 *list = json_object_get(o, "normalizers");
    if (!is_set(o)) return SGT_OK;
    if (!strcmp(type_of(o), "Sequence") && json_array_size(list) < 2) {
        if (json_array_size(list) == 0) return SGT_OK;
        o = json_array_get(list, 0);
    }
    if (!strcmp(type_of(o), "NFC")) p->normalize = SGT_NORMALIZE_NFC;
    else if (!strcmp(type_of(o), "NFKC")) p->normalize = SGT_NORMALIZE_NFKC;
    else
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: normalizer: %s is not supported (only NFC and NFKC are)", p->path,
                        type_of(o));
    return SGT_OK;
}

/* Return the name of the first setting that is true in the added token `o` but that sgt does not
 * apply, or NULL if there is no such setting. "normalized", by which text is normalized before the
 * token is searched for, changes nothing unless there is a normalizer. */
static const char *setting_of(const sgt_vocab_parts *p, const json_t *o)
{
    static const char *const names[] = {"lstrip", "rstrip", "single_word", "normalized"};
    for (size_t i = 0; i < (p->normalize > SGT_NORMALIZE_NONE ? 4u : 3u); i++)
        if (json_is_true(json_object_get(o, names[i]))) return names[i];
    return NULL;
}

/* Return 1 if the text of an added token looks like a special token, such as <tool_call>, <dsml: or
 * ｜DSML｜; otherwise 0. sgt treats such added tokens as special even if the file does not mark them
 * as special, because Qwen's file does not mark all of them. */
static int is_marker(const char *text)
{
    return strlen(text) > 2 && (text[0] == '<' || !strncmp(text, "｜", 3));
}

static int read_added(sgt_vocab_parts *p, const json_t *root, json_t *names, sgt_error *err)
{
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(root, "added_tokens"), i, o)
    {
        const char *text = json_string_value(json_object_get(o, "content"));
        const json_t *id = json_object_get(o, "id");
        if (!text || !json_is_integer(id) || json_integer_value(id) < 0)
            return sgt_fail(err, SGT_EFORMAT, "%s: added_tokens: entry %zu lacks content or id",
                            p->path, i + 1);
        const int special = json_is_true(json_object_get(o, "special"));
        if (!special && !is_marker(text))
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: added_tokens: token %lld (%s) is not special, and sgt does not "
                            "search text for such tokens before merging",
                            p->path, (long long)json_integer_value(id), text);
        const uint64_t number = (uint64_t)json_integer_value(id);
        if (!special && !p->marker) p->marker = number + 1;
        const int rc = sgt_vocab_parts_token(p, number, text, strlen(text), 1, err);
        if (rc < 0) return rc;
        p->tokens[number].setting = setting_of(p, o);
        if (json_object_set(names, text, (json_t *)id) < 0)
            return refuse(p, "out of ", "memory", err);
    }
    return SGT_OK;
}

static int read_model(source *s, const json_t *model, const json_t *names, sgt_error *err)
{
    sgt_vocab_parts *p = &s->parts;
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const json_t *dropout = json_object_get(model, "dropout");
    size_t i;
    json_t *merge, *vocab = json_object_get(model, "vocab");
    int rc;
    if (json_object_get(model, "type") && strcmp(type_of(model), "BPE"))
        return sgt_fail(err, SGT_EFORMAT, "%s: its model is %s, not BPE", p->path, type_of(model));
    if (!json_is_object(vocab) || !json_is_array(json_object_get(model, "merges")))
        return refuse(p, "its model", " has no vocab or no merges", err);
    for (i = 0; i < 2; i++) {
        const char *affix = json_string_value(json_object_get(model, affixes[i]));
        if (affix && *affix) return refuse(p, "is not byte-level: it sets ", affixes[i], err);
    }
    if (json_is_true(json_object_get(model, "byte_fallback")))
        return refuse(p, "is not byte-level: it sets ", "byte_fallback", err);
    if (json_is_number(dropout) && json_number_value(dropout) > 0)
        return refuse(p, "its model", " uses dropout", err);
    p->whole = json_is_true(json_object_get(model, "ignore_merges"));
    if ((rc = read_tokens(s, p->path, vocab, names, err)) < 0) return rc;
    json_array_foreach(json_object_get(model, "merges"), i, merge)
    {
        if ((rc = read_json_merge(s, merge, i + 1, err)) < 0) return rc;
    }
    return fill_ids(p, p->size, err);
}

static int read_huggingface(source *s, sgt_error *err)
{
    sgt_vocab_parts *p = &s->parts;
    json_t *names = json_object();
    int rc = names ? SGT_OK : sgt_fail_memory(err, p->path);
    /* Ignore truncation and padding, because sgt never truncates or pads the documents of training
     * data. */
    p->ignored = is_set(json_object_get(s->root, "truncation")) ||
                 is_set(json_object_get(s->root, "padding"));
    if (!rc && (rc = read_normalizer(p, s->root, err)) == 0 &&
        (rc = read_rule(p, s->root, err)) == 0 && (rc = read_added(p, s->root, names, err)) == 0)
        rc = read_model(s, json_object_get(s->root, "model"), names, err);
    json_decref(names);
    return rc;
}

/* ---- tekken.json ----
 *
 * Mistral's format: ids are ranks, plus the number of special tokens, which have the lowest ids. */

static json_int_t number_of(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

/* Add the special token with this id to s->parts. If the file does not contain its name, use the
 * standard name. */
static int add_special(source *s, size_t id, sgt_error *err)
{
    const json_t *o = json_array_get(json_object_get(s->root, "special_tokens"), id);
    const char *name = json_string_value(json_object_get(o, "token_str"));
    char filler[40];
    snprintf(filler, sizeof filler, id == 2 ? "</s>" : "<SPECIAL_%zu>", id);
    if (!name) name = filler;
    return sgt_vocab_parts_token(&s->parts, id, name, strlen(name), 1, err);
}

static int read_tekken(source *s, sgt_error *err)
{
    const json_t *config = json_object_get(s->root, "config");
    const char *pattern = json_string_value(json_object_get(config, "pattern"));
    const json_int_t special = number_of(config, "default_num_special_tokens"),
                     all = number_of(config, "default_vocab_size");
    sgt_vocab_parts *p = &s->parts;
    if (special < 0 || all < special)
        return sgt_fail(
            err, SGT_EFORMAT,
            "%s: config: default_num_special_tokens or default_vocab_size is missing or invalid",
            p->path);
    int rc = pattern && !p->rule ? read_regex(p, config, pattern, err) : SGT_OK;
    p->assumed = !pattern;
    p->ranks = 1; /* even if there is a merges.txt */
    for (json_int_t id = 0; id < special && !rc; id++) rc = add_special(s, (size_t)id, err);
    for (json_int_t rank = 0; rank < all - special && !rc; rank++) {
        const json_t *o = json_array_get(json_object_get(s->root, "vocab"), (size_t)rank);
        const char *text = json_string_value(json_object_get(o, "token_bytes"));
        const ptrdiff_t n = text ? read_base64(s, text, strlen(text), s->room) : -1;
        rc = n > 0 && number_of(o, "rank") == rank
                 ? sgt_vocab_parts_token(p, p->size, s->room, (size_t)n, 0, err)
                 : sgt_fail(err, SGT_EFORMAT, "%s: vocab: rank %lld is missing, or not in base64",
                            p->path, (long long)rank);
    }
    return rc;
}

/* ---- which file is what ---- */

static int is_json(const text_file *t)
{
    size_t i = strspn(t->bytes, " \t\r\n");
    return i < t->n && t->bytes[i] == '{';
}

static int is_merges(const text_file *t)
{
    const size_t len = strlen(t->path);
    return (t->n >= 8 && !memcmp(t->bytes, "#version", 8)) ||
           (len >= 4 && !strcmp(t->path + len - 4, ".bpe")) ||
           (len >= 10 && !strcmp(t->path + len - 10, "merges.txt"));
}

/* Names of the files that are looked for in a folder: first the files that contain tokens; from
 * index MERGES on, the files that contain merges. Each list ends with NULL. */
static const char *const file_names[] = {
    "tokenizer.json", "vocab.json", "encoder.json", NULL, "merges.txt", "vocab.bpe", NULL};
enum { MERGES = 4 };

/* Read the first file that exists in the folder into *t. name: names of the files to try, followed
 * by NULL. If none of them exists, leave t->bytes NULL and return 0. */
static int read_first(text_file *t, const char *folder, const char *const *name, sgt_error *err)
{
    for (; *name; name++)
        if (access(sgt_path(t->path, folder, "%s", *name), F_OK) == 0)
            return sgt_file_get(&t->bytes, &t->n, t->path, SGT_VOCAB_FILE_MOST, err);
    return SGT_OK;
}

/* Read the vocabulary's file `path` into s->vocab. If `path` is a folder, read the first file in it
 * that has a known name instead. Write the path of the folder that contains the file to
 * `folder`. */
static int read_named(source *s, const char *path, char folder[SGT_PATH], sgt_error *err)
{
    const char *slash = strrchr(path, '/');
    text_file *t = &s->vocab;
    struct stat st;
    if (stat(path, &st) < 0)
        return sgt_fail_path(
            err, path,
            "pass gpt2, a model's tokenizer.json, or a tiktoken file such as o200k_base.tiktoken");
    if (!S_ISDIR(st.st_mode)) {
        snprintf(folder, SGT_PATH, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
        snprintf(t->path, SGT_PATH, "%s", path);
        return sgt_file_get(&t->bytes, &t->n, path, SGT_VOCAB_FILE_MOST, err);
    }
    snprintf(folder, SGT_PATH, "%s", path);
    int rc = read_first(t, folder, file_names, err);
    if (!rc && !t->bytes) rc = read_first(t, folder, file_names + MERGES, err);
    return rc < 0 || t->bytes
               ? rc
               : sgt_fail(err, SGT_EFORMAT, "%s: holds no tokenizer.json, vocab.json or merges.txt",
                          folder);
}

/* Return 1 if the vocabulary's file is a tokenizer.json, otherwise 0. */
static int is_huggingface(const source *s)
{
    return json_is_object(json_object_get(s->root, "model"));
}

/* Read the vocabulary's file or folder `path`. If its format has two files, such as vocab.json and
 * merges.txt, also read the second file if it exists in the same folder. */
static int read_texts(source *s, const char *path, sgt_error *err)
{
    char folder[SGT_PATH];
    int rc = read_named(s, path, folder, err);
    if (!rc && is_merges(&s->vocab)) {
        s->merges = s->vocab;
        s->vocab = (text_file){0};
        rc = read_first(&s->vocab, folder, file_names + 1, err);
    }
    if (!rc && s->vocab.bytes && (s->merges.bytes || is_json(&s->vocab))) rc = parse_json(s, err);
    if (!rc && s->root && !s->merges.bytes && !is_huggingface(s))
        rc = read_first(&s->merges, folder, file_names + MERGES, err);
    return rc;
}

/* Add the tokens and merges in the files that read_texts has read to s->parts. */
static int read_parts(source *s, sgt_error *err)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    memset(s->base64, -1, sizeof s->base64);
    for (int i = 0; i < 64; i++) s->base64[(uint8_t)digits[i]] = (int8_t)i;
    /* scratch buffer that is large enough for any token or merge, because neither is larger than
     * its file */
    if (!(s->room = malloc(s->merges.n + s->vocab.n + 4)))
        return sgt_fail_memory(err, s->parts.path);
    s->parts.assumed = 1;
    if (!s->vocab.bytes) return read_merges_alone(s, err);
    s->parts.ranks = !s->merges.bytes;
    if (!s->root) return read_tiktoken(s, err);
    if (!s->merges.bytes && is_huggingface(s)) {
        s->parts.ranks = s->parts.assumed = 0;
        return read_huggingface(s, err);
    }
    if (json_is_array(json_object_get(s->root, "vocab"))) return read_tekken(s, err);
    if (!json_is_object(s->root))
        return sgt_fail(err, SGT_EFORMAT, "%s: is not a JSON object of tokens", s->vocab.path);
    const int rc = read_tokens(s, s->vocab.path, s->root, NULL, err);
    return rc < 0 || !s->merges.bytes ? rc : read_merges(s, err);
}

/* Check that PCRE2 can compile the split rule `rule`, unless sgt has its own code for it. given:
 * the rule that the caller gave; NULL if the rule is from the file `path`. If PCRE2 cannot compile
 * it, return SGT_EUSAGE if the caller gave the rule, otherwise SGT_EFORMAT. */
static int check_rule(const char *path, const char *rule, const char *given, sgt_error *err)
{
    sgt_pattern *p = NULL;
    sgt_error why;
    int rc = sgt_rule_of(rule).by != SGT_RULE_PCRE2 ? SGT_OK : sgt_pattern_new(&p, rule, &why);
    sgt_pattern_free(p);
    if (!rc || rc == SGT_ENOMEM || given) {
        if (rc && err) *err = why;
        return rc;
    }
    return sgt_fail(err, SGT_EFORMAT, "%s: its %s (--pattern replaces it)", path, why.text);
}

/* Create GPT-2's vocabulary from the built-in tables. rule: split rule that replaces GPT-2's rule,
 * or NULL. */
static int load_gpt2(sgt_vocab **out, const char *rule, sgt_error *err)
{
    sgt_vocab *v = NULL;
    int rc = check_rule("gpt2", rule, rule, err);
    if (!rc) rc = sgt_vocab_gpt2(&v, err);
    if (!rc && rule) rc = sgt_vocab_split_by(v, rule, err);
    if (!rc && rule) rc = sgt_vocab_set_fingerprint(v, err);
    if (rc) sgt_vocab_free(v);
    else *out = v;
    return rc;
}

static int load_file(sgt_vocab **out, const char *path, const char *rule, sgt_error *err)
{
    source s = {.parts = {.path = path, .rule = rule}};
    int rc = read_texts(&s, path, err);
    if (!rc) rc = read_parts(&s, err);
    if (rule) s.parts.assumed = 0;
    if (!rc) rc = check_rule(path, s.parts.rule, rule, err);
    if (!rc) rc = sgt_vocab_from_parts(out, &s.parts, err);
    /* name GPT-2's vocabulary gpt2 even if its file has a different name */
    if (!rc && sgt_vocab_fingerprint(*out) == SGT_GPT2_FINGERPRINT)
        snprintf((*out)->name, sizeof(*out)->name, "gpt2");
    sgt_vocab_parts_free(&s.parts);
    json_decref(s.root);
    free(s.merges.bytes);
    free(s.vocab.bytes);
    free(s.room);
    return rc;
}

int sgt_vocab_load(sgt_vocab **out, const char *path, const char *rule, sgt_error *err)
{
    if (!path) return sgt_fail(err, SGT_EUSAGE, "expected the path of a vocabulary, or gpt2");
    const int rc =
        !strcmp(path, "gpt2") ? load_gpt2(out, rule, err) : load_file(out, path, rule, err);
    if (rc < 0)
        sgt_fail_hint(err, rc,
                      "expected a complete byte-level BPE vocabulary: tokenizer.json, merges.txt, "
                      "vocab.json or .tiktoken");
    return rc;
}

int sgt_vocab_of(sgt_vocab **out, const sgt_tokenize_options *o, sgt_error *err)
{
    int rc = sgt_vocab_load(out, o->vocab ? o->vocab : "gpt2", o->pattern, err);
    if (rc) return rc;
    sgt_vocab *v = *out;
    if (o->normalize != SGT_NORMALIZE_AS_VOCAB) v->normalize = o->normalize;
    if (!o->special_eot || !v->eot_setting) return SGT_OK;
    rc = sgt_fail(err, SGT_EFORMAT,
                  "%s: added_tokens: %s has %s: true, which --special eot does not support (set it "
                  "to false, or omit --special eot)",
                  o->vocab, v->eot_text, v->eot_setting);
    sgt_vocab_free(v);
    *out = NULL;
    return rc;
}
