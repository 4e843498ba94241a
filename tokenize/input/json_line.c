/* json_line.c: parses lines of JSON, and turns them into documents. Each line is read once, from
 * left to right. The code does not check separately for the end of the line: every line ends in a
 * newline, and a newline is an error wherever the parser expects another byte. */
#include "tokenize/input/json_line.h"

#include <string.h>
#include <utf8proc.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "loader/base/file.h"
#include "tokenize/input/feed.h"
#include "tokenize/input/kept.h"
#include "tokenize/text/utf8.h"

int sgt_json_path_set(sgt_json_path *p, const char *field, sgt_error *err)
{
    const size_t all = strlen(field);
    *p = (sgt_json_path){.count = 0};
    if (sgt_utf8_valid((const uint8_t *)field, all) < all)
        return sgt_fail(err, SGT_EUSAGE, "field: \"%s\" is not UTF-8", field);
    for (const char *at = field;; at++) {
        size_t n = strcspn(at, ".");
        if (!n) return sgt_fail(err, SGT_EUSAGE, "field: \"%s\" contains an empty name", field);
        if (p->count == SGT_JSON_NAMES)
            return sgt_fail(err, SGT_EUSAGE, "field: \"%s\" has more than %d names", field,
                            SGT_JSON_NAMES);
        p->names[p->count] = at;
        p->lengths[p->count++] = n;
        at += n;
        if (!*at) return SGT_OK;
    }
}

/* ---- strings ---- */

/* Return a pointer to the first byte, from s on, that is a quote, a backslash or a control
 * character. */
static uint8_t *after_plain(uint8_t *s)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), back = _mm_set1_epi8('\\'),
                  control = _mm_set1_epi8(0x1F);
    for (;; s += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)s);
        __m128i odd = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, back)),
                                   _mm_cmpeq_epi8(_mm_min_epu8(v, control), v));
        int mask = _mm_movemask_epi8(odd);
        if (mask) return s + __builtin_ctz((unsigned)mask);
    }
#else
    while (*s != '"' && *s != '\\' && *s >= 0x20) s++;
    return s;
#endif
}

/* For each byte that is a hex digit, the value of this digit plus 1; for all other bytes, 0. */
static const uint8_t hex_digits[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16};

static int is_hex4(const uint8_t *s)
{
    return hex_digits[s[0]] && hex_digits[s[1]] && hex_digits[s[2]] && hex_digits[s[3]];
}

/* Return the value of the four hex digits at s. */
static unsigned hex4(const uint8_t *s)
{
    return (unsigned)(hex_digits[s[0]] << 12) + (unsigned)(hex_digits[s[1]] << 8) +
           (unsigned)(hex_digits[s[2]] << 4) + hex_digits[s[3]] - 0x1111;
}

/* Return the character that a backslash followed by c stands for in a JSON string. Return 0 if c is
 * u, because four digits follow in this case, or if JSON has no such escape. */
static uint8_t simple_escape(uint8_t c)
{
    static const uint8_t table[256] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                       ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};
    return table[c];
}

typedef struct scan {
    uint8_t *s; /* the next byte to read */
    uint8_t *scratch;
    const sgt_json_path *path;
    const char *why; /* reason why the line is bad; NULL if no error was found */
    size_t depth;    /* number of open objects and arrays */
    /* number of open objects, counted from the outermost inwards, that are on the path to the
     * requested field */
    size_t matched;
    /* The value of the requested field, of any type. value: beginning of the value, or NULL if it
     * has not been reached. value_end: end of the value, or NULL if it has not been read
     * completely. */
    uint8_t *value, *value_end;
    size_t value_depth;
    int escaped; /* 1 if the value is a string that contains a backslash */
    /* for each open object or array, from the outermost inwards: 1 if it is an object, 0 if it is
     * an array */
    uint8_t objects[SGT_JSON_DEPTH];
} scan;

static int wrong(scan *c, const char *why)
{
    c->why = why;
    return -1;
}

/* Read the string whose opening quote is at c->s. Set *text to the beginning and *end to the end of
 * the bytes between the quotes, and *escaped to 1 if they contain a backslash, otherwise to 0.
 * Return 0, or -1 if the string is invalid. */
static int read_string(scan *c, uint8_t **text, uint8_t **end, int *escaped)
{
    uint8_t *s = *text = c->s + 1;
    for (*escaped = 0;; *escaped = 1) {
        if (*s != '\\') s = after_plain(s);
        if (*s == '"') break;
        c->s = s;
        if (*s == '\n') return wrong(c, "the string has no end");
        if (*s != '\\') return wrong(c, "a control character in a string");
        if (s[1] != 'u') {
            if (!simple_escape(s[1])) return wrong(c, "unknown escape sequence");
            s += 2;
            continue;
        }
        if (!is_hex4(s + 2)) return wrong(c, "expected four hex digits after \\u");
        s += 6;
    }
    *end = s;
    c->s = s + 1;
    return 0;
}

/* Decode the escape \uXXXX at *s, and write its character to `out` as UTF-8. Advance *s past the
 * escape, or past two escapes if they form a surrogate pair. A lone surrogate is replaced with
 * U+FFFD and counted in *surrogates. Return the end of the bytes written. */
static uint8_t *put_escaped(uint8_t *out, const uint8_t **s, uint64_t *surrogates)
{
    unsigned cp = hex4(*s + 2);
    *s += 6;
    if (cp >= 0xD800 && cp <= 0xDFFF) {
        const int follows = cp < 0xDC00 && (*s)[0] == '\\' && (*s)[1] == 'u';
        const unsigned low = follows ? hex4(*s + 2) : 0;
        const int pair = low >= 0xDC00 && low <= 0xDFFF;
        cp = pair ? 0x10000 + ((cp & 0x3FF) << 10 | (low & 0x3FF)) : 0xFFFD;
        *s += pair ? 6 : 0;
        *surrogates += !pair;
    }
    return out + utf8proc_encode_char((utf8proc_int32_t)cp, out);
}

/* Copy the bytes from s up to `end` or up to the first backslash, whichever comes first, to `out`,
 * and return the number of these bytes. Up to 16 bytes after these bytes may also be read from s
 * and written to `out`, because 16 bytes are copied at a time. */
static size_t copy_plain(uint8_t *out, const uint8_t *s, const uint8_t *end)
{
    size_t n = (size_t)(end - s), i = 0;
#if defined(__SSE2__)
    for (; i < n; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(s + i));
        _mm_storeu_si128((__m128i *)(void *)(out + i), v);
        int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
        if (mask) {
            i += (size_t)__builtin_ctz((unsigned)mask);
            break;
        }
    }
    return i < n ? i : n;
#else
    for (; i < n && s[i] != '\\'; i++) out[i] = s[i];
    return i;
#endif
}

/* Decode the n bytes at `text`, the contents of a JSON string whose escapes are known to be valid,
 * to `scratch`. Return the length of the decoded string, which is at most n. Add the number of lone
 * surrogates to *surrogates. */
static size_t unescape(uint8_t *scratch, const uint8_t *text, size_t n, uint64_t *surrogates)
{
    const uint8_t *s = text, *end = text + n;
    uint8_t *out = scratch;
    while (s < end) {
        if (*s != '\\') {
            size_t k = copy_plain(out, s, end);
            out += k;
            s += k;
            continue;
        }
        if (s[1] == 'u') out = put_escaped(out, &s, surrogates);
        else {
            *out++ = simple_escape(s[1]);
            s += 2;
        }
    }
    return (size_t)(out - scratch);
}

/* ---- values and lines ---- */

/* Return a pointer to the first byte, from s on, that is not white space. A newline is not treated
 * as white space here. */
static uint8_t *after_space(uint8_t *s)
{
    while (*s == ' ' || *s == '\t' || *s == '\r') s++;
    return s;
}

static int is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

static int read_digits(scan *c)
{
    if (!is_digit(*c->s)) return wrong(c, "expected a digit");
    while (is_digit(*c->s)) c->s++;
    return 0;
}

static int read_word(scan *c, const char *word)
{
    for (; *word; word++, c->s++)
        if (*c->s != (uint8_t)*word) return wrong(c, "expected a value");
    return 0;
}

/* Read NaN or Infinity, which are not valid JSON, but which Python's json module writes. Inside the
 * value of the requested field, return an error, because --keep-fields may copy this value
 * unchanged to a JSON file. */
static int read_python_word(scan *c, const char *word)
{
    return c->value && !c->value_end ? wrong(c, "NaN or Infinity, which is not text")
                                     : read_word(c, word);
}

static int read_number(scan *c)
{
    if (*c->s == '-') c->s++;
    if (*c->s == 'I') return read_python_word(c, "Infinity");
    if (*c->s == '0') c->s++;
    else if (read_digits(c) < 0) return -1;
    if (*c->s == '.') {
        c->s++;
        if (read_digits(c) < 0) return -1;
    }
    if (*c->s != 'e' && *c->s != 'E') return 0;
    c->s++;
    if (*c->s == '+' || *c->s == '-') c->s++;
    return read_digits(c);
}

static int open_container(scan *c, int object)
{
    if (c->depth == SGT_JSON_DEPTH)
        return wrong(c, "objects and arrays are nested more than 65536 deep");
    c->objects[c->depth++] = (uint8_t)object;
    c->s++;
    return 0;
}

static void close_container(scan *c)
{
    if (c->matched == c->depth) c->matched--;
    c->depth--;
    c->s++;
}

/* Read the name of a member of an object, and the colon after the name. Return 1 if the value of
 * the member is on the path to the requested field, 0 if it is not, or -1 if the line is bad. */
static int read_name(scan *c)
{
    uint8_t *name, *end;
    int escaped;
    uint64_t surrogates = 0;
    if (*c->s != '"') return wrong(c, "expected a name in quotes");
    if (read_string(c, &name, &end, &escaped) < 0) return -1;
    c->s = after_space(c->s);
    if (*c->s != ':') return wrong(c, "expected a colon");
    c->s++;
    if (c->matched != c->depth) return 0;
    size_t n = (size_t)(end - name);
    if (escaped) {
        n = unescape(c->scratch, name, n, &surrogates);
        name = c->scratch;
    }
    return n == c->path->lengths[c->depth - 1] && !memcmp(name, c->path->names[c->depth - 1], n);
}

/* Read a value, and return 0, or -1 if the line is bad. If the value is an object or an array, read
 * only its opening bracket, and return 1. on_path: 1 if the value is on the path to the requested
 * field. If the path ends at this value, it is the value of the field: record where it begins and
 * ends. */
static int read_value(scan *c, int on_path)
{
    const int is_field = on_path && c->depth == c->path->count;
    uint8_t *text, *end;
    int rc, escaped = 0;
    if (on_path) {
        c->value = is_field ? c->s : NULL;
        c->value_end = NULL;
        c->value_depth = c->depth;
    }
    switch (*c->s) {
    case '{':
        if (open_container(c, 1) < 0) return -1;
        if (on_path && !is_field) c->matched = c->depth;
        return 1;
    case '[': return open_container(c, 0) < 0 ? -1 : 1;
    case '"': rc = read_string(c, &text, &end, &escaped); break;
    case 't': rc = read_word(c, "true"); break;
    case 'f': rc = read_word(c, "false"); break;
    case 'n': rc = read_word(c, "null"); break;
    case 'N': rc = read_python_word(c, "NaN"); break;
    case 'I': rc = read_python_word(c, "Infinity"); break;
    default: rc = *c->s == '-' || is_digit(*c->s) ? read_number(c) : wrong(c, "expected a value");
    }
    if (is_field) {
        c->value_end = c->s;
        c->escaped = escaped;
    }
    return rc;
}

static int read_object(scan *c)
{
    c->s = after_space(c->s);
    if (*c->s != '{') return wrong(c, "expected an object");
    int opened = open_container(c, 1) == 0;
    c->matched = 1;
    while (c->depth) {
        int object = c->objects[c->depth - 1], on_path = 0;
        c->s = after_space(c->s);
        if (*c->s == (object ? '}' : ']')) {
            close_container(c);
            if (c->value && !c->value_end && c->depth == c->value_depth) c->value_end = c->s;
            opened = 0;
            continue;
        }
        if (!opened) {
            if (*c->s != ',') return wrong(c, object ? "expected , or }" : "expected , or ]");
            c->s++;
            c->s = after_space(c->s);
        }
        if (object && (on_path = read_name(c)) < 0) return -1;
        c->s = after_space(c->s);
        if ((opened = read_value(c, on_path)) < 0) return -1;
    }
    return 0;
}

/* Error message for a byte order mark inside a file. The sed command in the message removes such
 * marks, and moves an object that follows a mark to a new line. */
static const char marked[] = "a byte order mark where files were joined: sed -E "
                             "'s/^\\s*\\xEF\\xBB\\xBF//; "
                             "s/}\\s*\\xEF\\xBB\\xBF\\s*(\\{|$)/}\\n\\1/g' removes it";

const char *sgt_json_mend(char *line, size_t n)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    const char *why = NULL;
    int quoted = 0;
    for (char *c = line; c < line + n; c++) {
        if (quoted && *c == '\\') c++;
        else if (*c == '"') quoted = !quoted;
        if (quoted) continue;
        for (int i = 0; i < 3; i++)
            if (!strncmp(c, words[i], strlen(words[i])))
                memcpy(memset(c, ' ', strlen(words[i])), "[]", 2);
        if (sgt_utf8_mark(c, (size_t)(line + n - c))) why = marked;
    }
    return why;
}

/* Read the JSON object that begins at `line`, and store in *c where the value at the path *p is. If
 * `whole` is 1, only white space may follow the object in the line. Return NULL, or the reason why
 * the line is bad. */
static const char *scan_line(scan *c, const sgt_json_path *p, uint8_t *line, uint8_t *scratch,
                             int whole)
{
    c->s = line;
    c->scratch = scratch;
    c->path = p;
    c->why = NULL;
    c->depth = c->matched = 0;
    c->value = c->value_end = NULL;
    if (read_object(c) == 0) c->s = after_space(c->s);
    if (!c->why && whole && *c->s != '\n') wrong(c, "unexpected text after the object");
    return c->why && sgt_utf8_mark(c->s, 3) ? marked : c->why;
}

const char *sgt_json_value(const sgt_json_path *p, uint8_t *line, uint8_t *scratch, size_t *at,
                           size_t *n)
{
    scan c;
    const char *why = scan_line(&c, p, line, scratch, 1);
    *at = *n = 0;
    if (why || !c.value) return why;
    *at = (size_t)(c.value - line);
    *n = (size_t)(c.value_end - c.value);
    return NULL;
}

const char *sgt_json_line(const sgt_json_path *p, uint8_t *line, uint8_t *scratch, int whole,
                          sgt_json_found *t)
{
    /* `c` is not initialized, because clearing the 64 KiB of its last member for each line would
     * take long; only elements that have been written are read */
    scan c;
    const char *why = scan_line(&c, p, line, scratch, whole);
    *t = (sgt_json_found){.at = why ? (size_t)(c.s - line) : SGT_JSON_NOWHERE};
    if (why) return why;
    if (!c.value) return "the field is missing";
    if (*c.value != '"') return "the field is not a string";
    uint8_t *text = c.value + 1;
    t->at = (size_t)(text - line);
    t->length = (size_t)(c.value_end - 1 - text);
    /* decode to `scratch` first: the decoder writes 16 bytes at a time, so decoding in place would
     * overwrite input that has not been read yet */
    if (c.escaped) {
        t->length = unescape(scratch, text, t->length, &t->surrogates);
        memcpy(text, scratch, t->length);
    }
    return NULL;
}

/* ---- lines to documents ---- */

/* Find the document in the JSONL line of n bytes at `line`, and store the offset and the length of
 * its text in *t. Return NULL, or the reason why the line is bad. If the line is bad, t->at is the
 * offset of the error (see sgt_json_found). valid: 1 if the line is known to be valid UTF-8; 0 if
 * it must be checked. */
static const char *read_document(sgt_unit *u, uint8_t *line, size_t n, int valid, sgt_json_found *t)
{
    size_t good = valid ? n : sgt_utf8_valid(line, n);
    if (good == n) return sgt_json_line(&u->reading->corpus->path, line, u->scratch, 1, t);
    t->at = good;
    return "not UTF-8";
}

/* Add the document in the JSONL line of n bytes at `text` to the unit u (sgt_unit_add_record). The
 * line begins at offset `position` of the file's stream, and ends before offset `end`. valid: 1 if
 * the line is known to be valid UTF-8. Return 1 if the run fails at this line because it is bad, 0
 * if not, or a negative SGT_E*. */
static int add_line(sgt_unit *u, sgt_part *next, uint8_t *text, size_t n, int valid,
                    uint64_t position, uint64_t end, sgt_error *err)
{
    const sgt_kept_names *names = &u->reading->corpus->kept;
    const size_t bom = position == 0 ? sgt_utf8_mark(text, n) : 0, kept = u->kept_used;
    uint8_t *line = text + bom;
    sgt_json_found t;
    int rc = SGT_OK;
    if (*after_space(line) == '\n') {
        next->end = end;
        next->records++;
        return SGT_OK;
    }
    /* copy the fields of --keep-fields now, because decoding the text changes the line */
    if (names->count && (rc = sgt_kept_line(names, line, u, next, err)) < 0) return rc;
    const char *why = read_document(u, line, n - bom, valid, &t);
    if (why) {
        u->kept_used = kept;
        next->line.kept_length = 0;
        return sgt_unit_add_record(u, next, position, end, why,
                                   t.at == SGT_JSON_NOWHERE ? 0 : bom + t.at + 1, err);
    }
    next->at = (size_t)(line - u->text) + t.at;
    next->length = t.length;
    next->line.surrogates = t.surrogates;
    return sgt_unit_add_record(u, next, position, end, NULL, 0, err);
}

int sgt_json_records(sgt_unit *u, const sgt_part *p, sgt_part *next, sgt_error *err)
{
    uint8_t *text = u->text + p->at;
    const int valid = sgt_utf8_valid(text, p->length) == p->length;
    int rc = sgt_unit_reserve_scratch(u, p->length + 1, err);
    for (size_t at = 0; at < p->length && !rc;) {
        /* a newline is always found: add_part (feed.c) appends one if the last line of the file has
         * none */
        const uint8_t *newline = memchr(text + at, '\n', p->length + 1 - at);
        const size_t n = (size_t)(newline - (text + at)),
                     after = at + n < p->length ? at + n + 1 : p->length;
        rc = add_line(u, next, text + at, n, valid, p->offset + at, p->offset + after, err);
        at = after;
    }
    return rc;
}
