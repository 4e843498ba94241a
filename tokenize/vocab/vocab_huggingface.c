/* vocab_huggingface.c: reads a tokenizer.json of a byte-level BPE with one pattern to split by. Any
 * other setting is refused with a message that names it. Post-processors and decoders are not read,
 * because they change no id of plain text. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tokenize/vocab/alphabet.h"
#include "loader/base/json.h"
#include "tokenize/text/rules.h"
#include "tokenize/vocab/vocab_file.h"

static int refuse(const sgt_vocab_parts *p, const char *what, const char *why, sgt_error *err)
{
    return sgt_fail(err, SGT_EFORMAT, "%s: %s%s", p->path, what, why);
}

static const char *type_of(const json_t *o)
{
    const char *type = json_string_value(json_object_get(o, "type"));
    return type ? type : "of no type";
}

/* ---- how text is split ---- */

/* Set p->rule to the pattern of a Split in PCRE2's syntax. It is the member "pcre2", which sgt
 * writes if Hugging Face's library reads the pattern differently. Without it, the file must be one
 * of ours (sgt_vocab_is_ours), or the pattern a known one. */
static int take_regex(sgt_vocab_parts *p, const json_t *o, const char *regex, int ours,
                      sgt_error *err)
{
    const char *pcre2 = json_string_value(json_object_get(o, "pcre2")),
               *rule = pcre2  ? pcre2
                       : ours ? regex
                              : sgt_rule_from_regex(regex);
    if (!rule)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: its pattern is not one that sgt knows (--pattern gives it, by a name "
                        "such as cl100k or in PCRE2's syntax)",
                        p->path);
    p->rule = p->own_rule = strdup(rule);
    return p->rule ? SGT_OK : sgt_fail_memory(err, p->path);
}

/* Read a Split by a regular expression whose matches are pieces of their own. */
static int read_split(sgt_vocab_parts *p, const json_t *o, int ours, sgt_error *err)
{
    const char *regex = json_string_value(json_object_get(json_object_get(o, "pattern"), "Regex"));
    const char *behavior = json_string_value(json_object_get(o, "behavior"));
    if (!regex || !behavior || strcmp(behavior, "Isolated") ||
        json_is_true(json_object_get(o, "invert")) || p->rule)
        return refuse(p, "pre_tokenizer: ",
                      "of Split, sgt supports only one Regex whose matches are Isolated (--pattern "
                      "replaces it)",
                      err);
    return take_regex(p, o, regex, ours, err);
}

/* Read a ByteLevel: it turns bytes into the byte alphabet, and splits by GPT-2's rule unless
 * another step splits. Set *found. */
static int read_byte_level(sgt_vocab_parts *p, const json_t *o, int *found, sgt_error *err)
{
    const json_t *regex = json_object_get(o, "use_regex");
    *found = 1;
    if (!json_is_false(json_object_get(o, "add_prefix_space")))
        return refuse(p, "pre_tokenizer: ",
                      "ByteLevel with add_prefix_space changes the text (--pattern leaves it)",
                      err);
    if (json_is_false(regex)) {
        /* the whole text is one piece; this literal is never freed */
        if (!p->rule) p->rule = "(?s).+";
        return SGT_OK;
    }
    if (p->rule)
        return refuse(p, "pre_tokenizer: ",
                      "Split, and then ByteLevel's own pattern (--pattern gives one instead)", err);
    return SGT_OK;
}

static int read_pre_tokenizer(sgt_vocab_parts *p, const json_t *o, int ours, int *found,
                              sgt_error *err)
{
    const char *type = type_of(o);
    size_t i;
    json_t *part;
    int rc = SGT_OK;
    if (!strcmp(type, "Split")) return read_split(p, o, ours, err);
    if (!strcmp(type, "ByteLevel")) return read_byte_level(p, o, found, err);
    if (strcmp(type, "Sequence"))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: pre_tokenizer: %s is not supported (--pattern REGEX replaces it)",
                        p->path, type);
    json_array_foreach(json_object_get(o, "pretokenizers"), i, part) if (!rc) rc =
        read_pre_tokenizer(p, part, ours, found, err);
    return rc;
}

static int read_rule(sgt_vocab_parts *p, const json_t *root, int ours, sgt_error *err)
{
    const json_t *o = json_object_get(root, "pre_tokenizer");
    int found = 0, rc;
    if (p->rule) return SGT_OK; /* the caller's rule overrides the file's */
    if (!json_is_object(o))
        return refuse(p, "is not byte-level: ", "has no pre_tokenizer (--pattern gives one)", err);
    if ((rc = read_pre_tokenizer(p, o, ours, &found, err)) < 0) return rc;
    return found ? SGT_OK
                 : refuse(p, "is not byte-level: ", "its pre_tokenizer holds no ByteLevel", err);
}

/* Add truncation and padding to the ignored settings: documents of training data may have any
 * length. */
static void note_ignored(sgt_vocab_parts *p, const json_t *root)
{
    const json_t *truncation = json_object_get(root, "truncation"),
                 *padding = json_object_get(root, "padding");
    const int cut = truncation && !json_is_null(truncation),
              pad = padding && !json_is_null(padding);
    p->ignored = cut && pad ? "truncation and padding are"
                 : cut      ? "truncation is"
                 : pad      ? "padding is"
                            : NULL;
}

static int read_normalizer(sgt_vocab_parts *p, const json_t *root, sgt_error *err)
{
    const json_t *o = json_object_get(root, "normalizer"),
                 *list = json_object_get(o, "normalizers");
    if (!o || json_is_null(o)) return SGT_OK;
    if (!strcmp(type_of(o), "Sequence") && json_array_size(list) < 2) {
        if (json_array_size(list) == 0) return SGT_OK;
        o = json_array_get(list, 0);
    }
    if (!strcmp(type_of(o), "NFC")) p->normalize = SGT_NORMALIZE_NFC;
    else if (!strcmp(type_of(o), "NFKC")) p->normalize = SGT_NORMALIZE_NFKC;
    else
        return sgt_fail(err, SGT_EFORMAT, "%s: normalizer: %s is not supported (NFC, NFKC)",
                        p->path, type_of(o));
    return SGT_OK;
}

/* ---- tokens ---- */

/* Return the settings SGT_ADDED_* of an added token. */
static int settings_of(const json_t *o)
{
    return (json_is_true(json_object_get(o, "lstrip")) ? SGT_ADDED_LSTRIP : 0) |
           (json_is_true(json_object_get(o, "rstrip")) ? SGT_ADDED_RSTRIP : 0) |
           (json_is_true(json_object_get(o, "single_word")) ? SGT_ADDED_SINGLE_WORD : 0);
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
            return sgt_fail(err, SGT_EFORMAT, "%s: added_tokens: number %zu lacks content or id",
                            p->path, i + 1);
        if (!json_is_true(json_object_get(o, "special")))
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: added_tokens: %lld (%s) is not special: it would have to be found "
                            "in text before merging, which sgt does not do",
                            p->path, (long long)json_integer_value(id), text);
        int rc = sgt_vocab_parts_token(p, (uint64_t)json_integer_value(id), text, strlen(text),
                                       1 | settings_of(o), err);
        if (rc < 0) return rc;
        if (json_object_set(names, text, (json_t *)id) < 0)
            return refuse(p, "out of ", "memory", err);
    }
    return SGT_OK;
}

static int read_vocab(sgt_vocab_parts *p, json_t *vocab, const json_t *names, sgt_error *err)
{
    sgt_alphabet a;
    const char *text;
    json_t *id;
    int rc = SGT_OK;
    sgt_alphabet_fill(&a);
    json_object_foreach(vocab, text, id)
    {
        size_t n = strlen(text), count;
        const json_t *added = json_object_get(names, text);
        uint8_t *bytes;
        if (!json_is_integer(id) || json_integer_value(id) < 0)
            return sgt_fail(err, SGT_EFORMAT, "%s: token %s: its id is not a whole number", p->path,
                            text);
        if (added && !json_equal(added, id))
            return sgt_fail(err, SGT_EFORMAT, "%s: token %s has two ids, %lld and %lld", p->path,
                            text, (long long)json_integer_value(id),
                            (long long)json_integer_value(added));
        if (added) continue;
        if (!(bytes = malloc(n + 1))) return sgt_fail_memory(err, p->path);
        count = sgt_alphabet_read(&a, (const uint8_t *)text, n, bytes);
        if (count || !n)
            rc = sgt_vocab_parts_token(p, (uint64_t)json_integer_value(id), bytes, count, 0, err);
        else
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: is not byte-level: token %lld (%s) is not in GPT-2's byte alphabet",
                          p->path, (long long)json_integer_value(id), text);
        free(bytes);
        if (rc < 0) return rc;
    }
    return rc;
}

/* Read a merge: "left right", or ["left", "right"]. */
static int read_merge(sgt_vocab_parts *p, const sgt_alphabet *a, const json_t *o, size_t number,
                      sgt_error *err)
{
    const char *text = json_string_value(o),
               *l = text ? text : json_string_value(json_array_get(o, 0));
    const char *space = text ? strchr(text, ' ') : NULL;
    const char *r = text ? space ? space + 1 : NULL : json_string_value(json_array_get(o, 1));
    size_t left_n = !l ? 0 : space ? (size_t)(space - l) : strlen(l), right_n = r ? strlen(r) : 0;
    uint8_t *bytes = malloc(left_n + right_n + 1);
    if (!bytes) return sgt_fail_memory(err, p->path);
    size_t left = l ? sgt_alphabet_read(a, (const uint8_t *)l, left_n, bytes) : 0;
    size_t right = r && left ? sgt_alphabet_read(a, (const uint8_t *)r, right_n, bytes + left) : 0;
    int rc = right ? sgt_vocab_parts_merge(p, bytes, left, bytes + left, right, err)
                   : sgt_fail(err, SGT_EFORMAT,
                              "%s: merge %zu: expected two tokens in GPT-2's byte alphabet",
                              p->path, number);
    free(bytes);
    return rc;
}

static int read_model(sgt_vocab_parts *p, const json_t *model, const json_t *names, sgt_error *err)
{
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const json_t *dropout = json_object_get(model, "dropout");
    sgt_alphabet a;
    size_t i;
    json_t *merge, *vocab = json_object_get(model, "vocab");
    int rc;
    if (json_object_get(model, "type") && strcmp(type_of(model), "BPE"))
        return sgt_fail(err, SGT_EFORMAT, "%s: its model is %s, not BPE", p->path, type_of(model));
    if (!json_is_object(vocab) || !json_is_array(json_object_get(model, "merges")))
        return refuse(p, "its model", " has no vocab or no merges", err);
    for (i = 0; i < 2; i++) {
        const char *affix = json_string_value(json_object_get(model, affixes[i]));
        if (affix && *affix) return refuse(p, "is not byte-level: ", affixes[i], err);
    }
    if (json_is_true(json_object_get(model, "byte_fallback")))
        return refuse(p, "is not byte-level: ", "byte_fallback", err);
    if (json_is_number(dropout) && json_number_value(dropout) > 0)
        return refuse(p, "its model", " has dropout", err);
    p->whole = json_is_true(json_object_get(model, "ignore_merges"));
    if ((rc = read_vocab(p, vocab, names, err)) < 0) return rc;
    sgt_alphabet_fill(&a);
    json_array_foreach(json_object_get(model, "merges"), i,
                       merge) if ((rc = read_merge(p, &a, merge, i + 1, err)) < 0) return rc;
    return SGT_OK;
}

int sgt_vocab_read_huggingface(sgt_vocab_parts *p, const char *text, size_t n, sgt_error *err)
{
    json_error_t why;
    int rc = sgt_json_fits(text, n, SGT_VOCAB_MAX_VALUES, p->path, err);
    if (rc < 0) return rc;
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why), *names = json_object();
    note_ignored(p, root);
    if (!root) rc = sgt_fail(err, SGT_EFORMAT, "%s: line %d: %s", p->path, why.line, why.text);
    else if (!names) rc = sgt_fail_memory(err, p->path);
    else if ((rc = read_normalizer(p, root, err)) == 0 &&
             (rc = read_rule(p, root, sgt_vocab_is_ours(text, n), err)) == 0 &&
             (rc = read_added(p, root, names, err)) == 0)
        rc = read_model(p, json_object_get(root, "model"), names, err);
    json_decref(names);
    json_decref(root);
    return rc;
}
