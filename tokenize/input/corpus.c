/* corpus.c: turn INPUTs into a list of files, and write the files as JSON. The order of the files is
 * fixed here, and every byte of the output depends on it. */
#include "tokenize/input/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "loader/base/memory.h"
#include "tokenize/input/json_line.h"
#include "tokenize/input/source.h"
#include "tokenize/text/utf8.h"

/* number of files that are not text for which a notice names the file; one more notice counts the
 * rest */
#define SKIPPED_SAID 5

typedef struct walk {
    sgt_corpus *c;
    const sgt_tokenize_options *o;
    int out_exists;
    struct stat out_stat;
    char *out_real;  /* OUT with links resolved; NULL: unknown */
    int listed;      /* this INPUT is a line of a list */
    uint8_t *prefix; /* buffer for a file's first bytes; NULL: not needed yet */
    size_t prefix_room;
    size_t found[SGT_FORM_MORE];            /* number of files of each form that no name told */
    const char *first_found[SGT_FORM_MORE]; /* path of the first of them */
    sgt_error *err;
} walk;

static const sgt_magic array_of_json = {
    "a JSON array", "jq -c '.[]' makes lines of it, and --format text reads it as it is",
    SGT_MAGIC_OTHER};

/* ---- what a stream holds ----
 *
 * Files that begin like no text, bytes that no text has, and the first object or two of JSON
 * Lines, which are parsed in a copy of the bytes. */

/* Return whether p[n] has bytes that are not UTF-8. A character cut by the end of the prefix does
 * not count. */
static int is_ill_formed(const uint8_t *p, size_t n, int whole)
{
    size_t valid = sgt_utf8_valid(p, n);
    uint32_t cp;
    if (valid == n) return 0;
    if (whole || n - valid > 3) return 1;
    /* An ill-formed unit at the end of the prefix may be the beginning of a character that later
     * bytes complete. */
    return sgt_utf8_unit(p + valid, n - valid, &cp) < n - valid || p[valid] < 0xC2 ||
           p[valid] > 0xF4;
}

const sgt_magic *sgt_binary_of(const uint8_t *p, size_t n, int whole, int lines)
{
    static const sgt_magic other = {"binary data", "--binary keep takes its bytes",
                                    SGT_MAGIC_OTHER};
    const sgt_magic *known = sgt_magic_of(p, n);
    if (known || lines) return known;
    known = sgt_magic_wide(p, n, whole);
    return known ? known : memchr(p, 0, n) && is_ill_formed(p, n, whole) ? &other : NULL;
}

/* ---- JSON Lines ---- */

/* a parser that stops so near the end may lack the rest of an escape or a word */
#define CUT 8

typedef struct prefix {
    sgt_json_path path;
    uint8_t *text,
        *scratch; /* copy of the bytes, with SGT_JSON_PAD bytes after them; as much room */
    size_t n;
    int whole;
} prefix;

static int is_space(uint8_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* Return the first byte from `at` on that is not white space, or n. */
static size_t skip_space(const uint8_t *p, size_t at, size_t n)
{
    while (at < n && is_space(p[at])) at++;
    return at;
}

/* Return what the object at text[at ... end) is: LINES, a whole object with the field; MORE, one
 * that may be whole with more bytes; BRACE, anything else. text[end] is a newline. */
static sgt_form classify_object(prefix *l, size_t at, size_t end, int alone)
{
    sgt_json_text t = {.at = SGT_JSON_NOWHERE};
    const char *why = sgt_json_line(&l->path, l->text + at, l->scratch, alone, &t);
    if (!why) return SGT_FORM_LINES;
    return end == l->n && !l->whole && t.at != SGT_JSON_NOWHERE && at + t.at + CUT >= end
               ? SGT_FORM_MORE
               : SGT_FORM_BRACE;
}

static sgt_form classify_lines(prefix *l, size_t at)
{
    sgt_form form = SGT_FORM_MORE;
    for (int lines = 0; lines < 2 && at < l->n; lines++) {
        const size_t end =
            at + (size_t)((uint8_t *)memchr(l->text + at, '\n', l->n + 1 - at) - (l->text + at));
        form = classify_object(l, at, end, 1);
        /* a last line without a newline may go on */
        if (form == SGT_FORM_LINES && end == l->n && !l->whole) form = SGT_FORM_MORE;
        if (form == SGT_FORM_MORE && lines && l->n >= SGT_FORM_PREFIX) return SGT_FORM_LINES;
        if (form != SGT_FORM_LINES) return form;
        at = skip_space(l->text, end, l->n);
        if (at == l->n && !lines && !l->whole && l->n < SGT_FORM_PREFIX) return SGT_FORM_MORE;
    }
    return form;
}

static sgt_form classify_array(prefix *l, size_t at)
{
    for (size_t i = at; i < l->n; i++)
        if (l->text[i] == '\n') l->text[i] = ' '; /* an element may have several lines */
    at = skip_space(l->text, at + 1, l->n);
    if (at == l->n && !l->whole) return SGT_FORM_MORE;
    if (l->text[at] != '{') return SGT_FORM_TEXT;
    const sgt_form form = classify_object(l, at, l->n, 0);
    return form == SGT_FORM_LINES ? SGT_FORM_ARRAY : form == SGT_FORM_BRACE ? SGT_FORM_TEXT : form;
}

int sgt_form_of(sgt_form *form, const uint8_t *p, size_t n, int whole, const char *field,
                sgt_error *err)
{
    prefix l = {.n = n < SGT_FORM_PREFIX ? n : SGT_FORM_PREFIX, .whole = whole};
    const size_t at = skip_space(p, sgt_utf8_mark(p, l.n), l.n);
    *form = SGT_FORM_TEXT;
    if (at == l.n || (p[at] != '{' && p[at] != '[')) return SGT_OK;
    int rc = sgt_json_path_set(&l.path, field, err);
    if (rc < 0) return rc;
    l.text = malloc(l.n + 1 + SGT_JSON_PAD);
    l.scratch = malloc(l.n + 1 + SGT_JSON_PAD);
    if (!l.text || !l.scratch) rc = sgt_fail_memory(err, "the first bytes of an input");
    else {
        memcpy(l.text, p, l.n);
        memset(l.text + l.n, '\n', 1 + SGT_JSON_PAD);
        *form = p[at] == '{' ? classify_lines(&l, at) : classify_array(&l, at);
        /* no more bytes will be looked at */
        if (*form == SGT_FORM_MORE && (whole || n >= SGT_FORM_PREFIX))
            *form = p[at] == '{' ? SGT_FORM_BRACE : SGT_FORM_TEXT;
    }
    free(l.text);
    free(l.scratch);
    return rc;
}

void sgt_form_notice(const sgt_notice *to, sgt_form form, const char *name, size_t count,
                     const char *field, const char *text)
{
    char such[48] = "";
    if (count) snprintf(such, sizeof such, "%zu such file%s; ", count, count == 1 ? "" : "s");
    if (form == SGT_FORM_LINES)
        sgt_say(to,
                "%s: its lines are JSON objects with the field \"%s\": read as JSONL (%s%s reads "
                "them as text)",
                name, field, such, text);
    if (form == SGT_FORM_BRACE)
        sgt_say(to,
                "%s: begins with a brace, but its first lines are no objects with the field "
                "\"%s\": read as text (%s--field names the field of JSONL)",
                name, field, such);
    if (form == SGT_FORM_ARRAY)
        sgt_say(to, "%s: a JSON array, read as text (%sjq -c '.[]' makes lines of it)", name, such);
}

/* Return whether name[n] ends in `ending`, ignoring case. */
static int ends_in(const char *name, size_t n, const char *ending)
{
    size_t m = strlen(ending);
    return n > m && !strncasecmp(name + n - m, ending, m);
}

static void set_format_by_name(const sgt_corpus *c, sgt_corpus_file *f, sgt_format format)
{
    static const char *const packs[SGT_PACKS] = {[SGT_PACK_GZ] = ".gz", [SGT_PACK_ZST] = ".zst"};
    const int by_name = format == SGT_FORMAT_AUTO;
    size_t n = strlen(f->name);
    f->detect = by_name && f->stream;
    for (size_t i = 0; i < c->filter_count && !f->stream; i++) {
        if (!sgt_filter_ends(&c->filters[i], f->name)) continue;
        f->filter = &c->filters[i];
        f->lines = f->filter->lines;
        f->detect = by_name && !f->filter->told;
        return;
    }
    f->rows = by_name && !f->stream && ends_in(f->name, n, ".parquet");
    for (int p = SGT_PACK_NONE + 1; p < SGT_PACKS; p++)
        if (ends_in(f->name, n, packs[p])) f->pack = (sgt_pack)p;
    if (f->pack) n -= strlen(packs[f->pack]);
    f->lines = by_name ? ends_in(f->name, n, ".jsonl") || ends_in(f->name, n, ".ndjson")
                       : format == SGT_FORMAT_JSONL;
}

/* Read `want` bytes of the file's stream, from byte `at` of a file that is not packed, into
 * w->prefix. An error in a packed file is reported later, when the file is tokenized: here only the
 * bytes before the error are checked. */
static int read_some(walk *w, const sgt_corpus_file *f, uint64_t at, size_t want, size_t *n,
                     int *whole)
{
    sgt_source *source;
    int rc = sgt_reserve(&w->prefix, &w->prefix_room, want, 1, "list of inputs", w->err);
    *n = 0;
    *whole = 0;
    if (rc < 0 || (rc = sgt_source_open(&source, f, w->o->stop, NULL, w->err)) < 0) return rc;
    if (at) rc = sgt_source_seek(source, at, w->err);
    if (!rc) rc = sgt_source_read(source, w->prefix, n, want, whole, f->pack ? NULL : w->err);
    sgt_source_close(source);
    return f->pack ? SGT_OK : rc;
}

/* Leave out a file that is not text, with a notice. `named`: the file itself is an INPUT, so it is
 * an error. */
static int leave_out(walk *w, const sgt_corpus_file *f, const sgt_magic *b, int named)
{
    const char *lacks = b == &array_of_json ? "JSON Lines" : "UTF-8 text";
    if (named)
        return sgt_fail(w->err, SGT_EFORMAT, "%s: %s, not %s (%s)", f->path, b->what, lacks,
                        b->hint);
    if (w->c->skipped++ < SKIPPED_SAID)
        sgt_say(&w->o->notice, "%s: skipped: %s, not %s (%s)", f->path, b->what, lacks, b->hint);
    return 1;
}

/* Tell from the first bytes whether a text is JSON Lines. w->prefix holds n of them. Return 1 if
 * the file is a JSON array, which is left out. */
static int detect_lines(walk *w, sgt_corpus_file *f, size_t n, int whole, int named)
{
    sgt_form form = SGT_FORM_MORE;
    int rc = SGT_OK;
    for (size_t want = SGT_BINARY_PREFIX; !rc && form == SGT_FORM_MORE; want *= 4) {
        if (want > SGT_BINARY_PREFIX) rc = read_some(w, f, 0, want, &n, &whole);
        if (!rc) rc = sgt_form_of(&form, w->prefix, n, whole || n < want, w->c->field, w->err);
    }
    if (rc < 0) return rc;
    if (form == SGT_FORM_ARRAY && w->c->skip_binary) return leave_out(w, f, &array_of_json, named);
    f->lines = form == SGT_FORM_LINES ? 2 : 0;
    if (form != SGT_FORM_TEXT && !w->found[form]++) w->first_found[form] = f->path;
    return SGT_OK;
}

/* Check that a file can be read, because failing now is better than failing after an hour of work,
 * and find out what it holds. Return 1 if it is left out because it is not text. `named`: the file
 * itself is an INPUT. */
static int inspect_file(walk *w, sgt_corpus_file *f, int named)
{
    size_t n;
    const int open = w->o->format == SGT_FORMAT_AUTO, skip = w->c->skip_binary;
    int whole, rc;
    if (!(skip || open) || f->filter || f->rows || !f->size)
        return faccessat(AT_FDCWD, f->path, R_OK, AT_EACCESS) < 0
                   ? sgt_fail_errno(w->err, "%s", f->path)
                   : SGT_OK;
    if ((rc = read_some(w, f, 0, SGT_BINARY_PREFIX, &n, &whole)) < 0) return rc;
    const sgt_magic *m = open && !f->pack ? sgt_magic_of(w->prefix, n) : NULL;
    if (m && m->kind == SGT_MAGIC_GZIP) f->pack = SGT_PACK_GZ;
    if (m && m->kind == SGT_MAGIC_ZSTD) f->pack = SGT_PACK_ZST;
    if (m && f->pack && (rc = read_some(w, f, 0, SGT_BINARY_PREFIX, &n, &whole)) < 0) return rc;
    const sgt_magic *b = skip ? sgt_binary_of(w->prefix, n, whole, f->lines) : NULL;
    if (b && b->kind == SGT_MAGIC_PARQUET && open && !f->pack && f->size >= 8) {
        /* a file of Parquet also ends in its magic number */
        if ((rc = read_some(w, f, f->size - 4, 4, &n, &whole)) < 0) return rc;
        f->rows = n == 4 && !memcmp(w->prefix, "PAR1", 4);
    }
    if (f->rows) f->lines = 0;
    if (b && !f->rows) return leave_out(w, f, b, named);
    return open && !f->lines && !f->rows ? detect_lines(w, f, n, whole, named) : SGT_OK;
}

static int add_file(walk *w, const char *path, size_t base, const struct stat *st, int named)
{
    sgt_corpus *c = w->c;
    int rc =
        sgt_reserve(&c->files, &c->room, c->count + 1, sizeof *c->files, "list of inputs", w->err);
    if (rc < 0) return rc;
    sgt_corpus_file f = {.path = strdup(path)};
    if (!f.path) return sgt_fail_memory(w->err, "list of inputs");
    f.name = f.path + base;
    if (st) {
        f.size = (uint64_t)st->st_size;
        f.mtime = st->st_mtim.tv_sec;
        f.nanoseconds = st->st_mtim.tv_nsec;
        f.inode = st->st_ino;
    } else f.stream = c->stream = 1;
    set_format_by_name(c, &f, w->o->format);
    rc = st ? inspect_file(w, &f, named) : SGT_OK;
    if (rc) {
        free(f.path);
        return rc < 0 ? rc : SGT_OK;
    }
    c->bytes += f.size;
    c->line_files += f.lines || f.rows;
    c->row_files += f.rows != 0;
    c->unsized |= f.stream || !sgt_corpus_sought(&f);
    c->files[c->count++] = f;
    return SGT_OK;
}

/* ---- folders ---- */

/* Order for fts: by the bytes of whole paths. A folder's name counts with a slash after it, as in
 * the paths below it. */
static int in_order(const FTSENT **a, const FTSENT **b)
{
    const FTSENT *x = *a, *y = *b;
    size_t i = 0;
    while (x->fts_name[i] && x->fts_name[i] == y->fts_name[i]) i++;
    int p = (unsigned char)x->fts_name[i], q = (unsigned char)y->fts_name[i];
    if (!p && (x->fts_info == FTS_D || x->fts_info == FTS_DC)) p = '/';
    if (!q && (y->fts_info == FTS_D || y->fts_info == FTS_DC)) q = '/';
    return p - q;
}

/* Return whether a name below a folder is hidden: it begins with a dot, or it is what Hadoop's
 * programs write beside the Parquet files of a table, without rows of its own. */
static int is_hidden(const char *name)
{
    return name[0] == '.' || !strcmp(name, "_SUCCESS") || !strcmp(name, "_metadata") ||
           !strcmp(name, "_common_metadata");
}

/* Return whether `path` is OUT or, with `follow`, lies in OUT once links are resolved. */
static int is_out(const walk *w, const char *path, const struct stat *st, int follow)
{
    if (!w->out_exists) return 0;
    if (st->st_dev == w->out_stat.st_dev && st->st_ino == w->out_stat.st_ino) return 1;
    char *real = follow && w->out_real ? realpath(path, NULL) : NULL;
    size_t n = real ? strlen(w->out_real) : 0;
    int inside = real && !strncmp(real, w->out_real, n) && (n == 1 || real[n] == '/');
    free(real);
    return inside;
}

static int is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Entries below an INPUT that are left out, and the path of the first one. */
typedef struct left {
    uint64_t count;
    char *first;
} left;

static int count_entry(left *l, const char *path, sgt_error *err)
{
    if (l->count++ || (l->first = strdup(path))) return SGT_OK;
    return sgt_fail_memory(err, "list of inputs");
}

/* Add a file that fts has come to. base: offset in its path at which its name begins. */
static int list_entry(walk *w, FTS *tree, FTSENT *e, size_t base, left *hidden, left *odd)
{
    const char *path = e->fts_path;
    const int reached = e->fts_info == FTS_D || e->fts_info == FTS_F || e->fts_info == FTS_DEFAULT;
    if (e->fts_info == FTS_DP) return SGT_OK;
    if (e->fts_level > FTS_ROOTLEVEL && !w->o->hidden && is_hidden(e->fts_name)) {
        fts_set(tree, e, FTS_SKIP);
        return count_entry(hidden, path, w->err);
    }
    if (e->fts_info == FTS_DC)
        return sgt_fail(w->err, SGT_EFORMAT,
                        "%s: a symbolic link back to %.*s, without end (remove the link)", path,
                        (int)e->fts_cycle->fts_pathlen, path);
    errno = e->fts_errno;
    if (!reached && is_link(path) && access(path, F_OK) < 0)
        return sgt_fail_errno(w->err, "%s: a symbolic link that leads nowhere", path);
    if (!reached) return sgt_fail_errno(w->err, "%s", path);
    if (e->fts_level > FTS_ROOTLEVEL &&
        is_out(w, path, e->fts_statp, w->out_exists && is_link(path))) {
        sgt_say(&w->o->notice, "%s: skipped: it is OUT or inside OUT", path);
        fts_set(tree, e, FTS_SKIP);
        return SGT_OK;
    }
    if (e->fts_info == FTS_F) return add_file(w, path, base, e->fts_statp, 0);
    if (e->fts_info != FTS_D) return count_entry(odd, path, w->err);
    return sgt_stopped(w->o->stop) ? sgt_fail(w->err, SGT_ESTOPPED, "stopped") : SGT_OK;
}

static int list_folder(walk *w, char *path)
{
    const size_t before = w->c->count + w->c->skipped;
    size_t n = strlen(path);
    char *const roots[] = {path, NULL};
    left hidden = {0}, odd = {0};
    FTSENT *e = NULL;
    int rc = SGT_OK;
    while (n > 1 && path[n - 1] == '/') path[--n] = 0;
    FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, in_order);
    if (!tree) return sgt_fail_errno(w->err, "%s", path);
    while (!rc && (errno = 0, e = fts_read(tree)))
        rc = list_entry(w, tree, e, n + (path[n - 1] != '/'), &hidden, &odd);
    if (!rc && errno) rc = sgt_fail_errno(w->err, "%s", path);
    fts_close(tree);
    const int found = w->c->count + w->c->skipped > before;
    if (!rc && odd.count)
        sgt_say(&w->o->notice, "%s: neither file nor folder, skipped (%" PRIu64 " such below %s)",
                odd.first, odd.count, path);
    if (!rc && hidden.count && found)
        sgt_say(&w->o->notice,
                "%s: hidden, skipped (%" PRIu64 " such below %s; --hidden reads them)",
                hidden.first, hidden.count, path);
    if (!rc && !found)
        rc = sgt_fail(w->err, SGT_EFORMAT, "%s: no file in this folder%s", path,
                      hidden.count ? " but hidden ones (--hidden reads them)"
                                   : " (name one that has files, or files)");
    free(odd.first);
    free(hidden.first);
    return rc;
}

static int list_path(walk *w, const char *input)
{
    struct stat st;
    if (stat(input, &st) < 0) return sgt_fail_errno(w->err, "%s", *input ? input : "an empty name");
    if (is_out(w, input, &st, 1))
        return sgt_fail(w->err, SGT_EFORMAT, "%s: INPUT is OUT or inside OUT (name another OUT)",
                        input);
    if (S_ISREG(st.st_mode)) {
        const char *slash = strrchr(input, '/');
        return add_file(w, input, slash ? (size_t)(slash + 1 - input) : 0, &st, !w->listed);
    }
    if (!S_ISDIR(st.st_mode))
        return sgt_fail(w->err, SGT_EFORMAT,
                        "%s: neither a file nor a folder (streams are read from standard input: -)",
                        input);
    char *path = strdup(input);
    int rc = path ? list_folder(w, path) : sgt_fail_memory(w->err, "list of inputs");
    free(path);
    return rc;
}

/* ---- lists ---- */

/* List the paths in the file called `list`, read from f. */
static int list_lines(walk *w, const char *list, FILE *f)
{
    char line[PATH_MAX + 2]; /* room for a path, a newline and a NUL */
    size_t n, number = 0, found = 0;
    sgt_error *err = w->err, why;
    int rc = SGT_OK;
    w->err = &why;
    w->listed = 1;
    while (!rc && (n = sgt_file_line(line, sizeof line, f)) > 0) {
        number++;
        if (n < sizeof line && line[n - 1] == '\n') line[--n] = 0;
        if (!n) continue;
        found++;
        if (n == sizeof line)
            rc = sgt_fail(&why, SGT_EFORMAT, "more than the %d bytes that a path may have",
                          PATH_MAX);
        else if (strlen(line) < n) rc = sgt_fail(&why, SGT_EFORMAT, "a NUL byte is in the path");
        else rc = list_path(w, line);
    }
    w->err = err;
    w->listed = 0;
    if (rc < 0) sgt_fail(err, rc, "%s: line %zu: %s", list, number, why.text);
    else if (!feof(f)) /* the loop ended before the end of the file, so reading failed */
        rc = sgt_fail_errno(err, "%s", list);
    else if (!found) rc = sgt_fail(err, SGT_EFORMAT, "%s: no path in this list", list);
    return rc;
}

static int list_input(walk *w, const char *input)
{
    if (!strcmp(input, "-")) return add_file(w, input, 0, NULL, 1);
    if (*input != '@') return list_path(w, input);
    if (!strcmp(input, "@-")) return list_lines(w, input, stdin);
    FILE *f = fopen(++input, "re");
    if (!f) return sgt_fail_errno(w->err, "%s", *input ? input : "a list without a name");
    int rc = list_lines(w, input, f);
    fclose(f);
    return rc;
}

/* ---- the corpus ---- */

static int set_filters(sgt_corpus *c, const sgt_tokenize_options *o, sgt_error *err)
{
    int rc = SGT_OK;
    if (!o->filter_count) return SGT_OK;
    if (!(c->filters = calloc(o->filter_count, sizeof *c->filters)))
        return sgt_fail_memory(err, "list of inputs");
    while (!rc && c->filter_count < o->filter_count) {
        rc = sgt_filter_set(&c->filters[c->filter_count], o->filters[c->filter_count],
                            o->format == SGT_FORMAT_JSONL, err);
        c->filter_count += !rc;
    }
    return rc;
}

/* After the last INPUT, report the skipped files that had no notice of their own. Fail if no file
 * is left. */
static int sum_up_skipped(const walk *w)
{
    const uint64_t n = w->c->skipped, more = n > SKIPPED_SAID ? n - SKIPPED_SAID : 0;
    if (more)
        sgt_say(&w->o->notice,
                "%" PRIu64 " more file%s skipped: not plain text (--binary keep takes %s bytes)",
                more, more == 1 ? "" : "s", more == 1 ? "its" : "their");
    if (w->c->count || !n) return SGT_OK;
    return sgt_fail(w->err, SGT_EFORMAT,
                    "%s: nothing is left to tokenize: no file is plain text, %" PRIu64
                    " skipped (--filter names a program that makes text of a format)",
                    w->o->inputs[0], n);
}

int sgt_corpus_list(sgt_corpus **out, const sgt_tokenize_options *o, sgt_error *err)
{
    const char *folder = o->out ? o->out : "";
    walk w = {.c = calloc(1, sizeof *w.c), .o = o, .err = err};
    if (!w.c) return sgt_fail_memory(err, "list of inputs");
    w.c->field = o->field ? o->field : "text";
    int streams = 0, rc = set_filters(w.c, o, err);
    w.c->skip_binary = o->binary != SGT_BINARY_KEEP;
    w.out_exists = stat(folder, &w.out_stat) == 0 && S_ISDIR(w.out_stat.st_mode);
    w.out_real = realpath(folder, NULL);
    for (size_t i = 0; i < o->input_count && !rc; i++) {
        if ((!strcmp(o->inputs[i], "-") || !strcmp(o->inputs[i], "@-")) && streams++)
            rc = sgt_fail(err, SGT_EUSAGE,
                          "standard input (-) can be read only once (name it once)");
        else rc = list_input(&w, o->inputs[i]);
    }
    for (int form = 0; form < SGT_FORM_MORE && !rc; form++)
        if (w.found[form])
            sgt_form_notice(&o->notice, (sgt_form)form, w.first_found[form], w.found[form],
                            w.c->field, "--format text");
    if (!rc) rc = sum_up_skipped(&w);
    free(w.out_real);
    free(w.prefix);
    if (rc < 0) sgt_corpus_free(w.c);
    else *out = w.c;
    return rc;
}

void sgt_corpus_free(sgt_corpus *c)
{
    if (!c) return;
    for (size_t i = 0; i < c->count; i++) free(c->files[i].path);
    for (size_t i = 0; i < c->filter_count; i++) sgt_filter_free(&c->filters[i]);
    free(c->filters);
    free(c->files);
    free(c);
}

/* ---- the files as JSON ---- */

char *sgt_corpus_json_name(const sgt_corpus *c, size_t i)
{
    const char *name = c->files[i].name;
    /* each byte takes at most the four characters of \xNN */
    const size_t n = strlen(name), room = 4 * n + 1;
    const int valid = sgt_utf8_valid((const uint8_t *)name, n) == n;
    char *shown = malloc(room), *field = NULL, *path = NULL;
    size_t size;
    json_t *text = shown ? json_string(valid ? name : sgt_printable(shown, room, name)) : NULL;
    FILE *to = text ? open_memstream(&field, &size) : NULL;
    if (to && (path = sgt_json_dumps(text, JSON_ENCODE_ANY))) {
        fprintf(to, "\"path\": %s", path);
        if (!valid) fputs(", \"path_bytes\": \"", to);
        for (size_t k = 0; k < n && !valid; k++) fprintf(to, "%02x", (unsigned char)name[k]);
        if (!valid) fputc('"', to);
    }
    if (to && ((fclose(to) != 0) | !path)) {
        free(field);
        field = NULL;
    }
    json_decref(text);
    free(path);
    free(shown);
    return field;
}

char *sgt_corpus_describe(const sgt_corpus *c, size_t i, uint64_t size)
{
    const sgt_corpus_file *f = &c->files[i];
    char *line = NULL, *name = sgt_corpus_json_name(c, i), rows[80] = "";
    const char *format = f->lines == 2 ? " \"format\": \"jsonl\"," : "";
    if (f->from_row || f->end_row)
        snprintf(rows, sizeof rows, " \"rows\": [%" PRIu64 ", %" PRIu64 "],", f->from_row,
                 f->end_row);
    if (name && asprintf(&line, "{%s, \"size\": %" PRIu64 ",%s%s", name, size, format, rows) < 0)
        line = NULL;
    free(name);
    return line;
}

char *sgt_corpus_input(const sgt_corpus *c, size_t i, uint64_t size)
{
    const sgt_corpus_file *f = &c->files[i];
    /* not of the device: on NFS and others, its number differs between machines and after a restart */
    const uint64_t id[] = {f->inode, (uint64_t)f->mtime, (uint64_t)f->nanoseconds};
    char *line = NULL, *begin = sgt_corpus_describe(c, i, size);
    if (begin && asprintf(&line, "%s \"mtime\": %" PRId64 ", \"stat\": \"%016" PRIx64 "\"", begin,
                          f->mtime, (uint64_t)XXH3_64bits(id, sizeof id)) < 0)
        line = NULL;
    free(begin);
    return line;
}

char *sgt_corpus_source(const sgt_corpus *c, size_t i, uint64_t size, const sgt_corpus_counts *n)
{
    char *line = NULL, *begin = sgt_corpus_input(c, i, size);
    if (begin && asprintf(&line,
                          "%s, \"documents\": %" PRIu64 ", \"bytes\": %" PRIu64
                          ", \"tokens\": %" PRIu64 ", \"xxh3\": \"%016" PRIx64 "\"}\n",
                          begin, n->documents, n->bytes, n->tokens, n->hash) < 0)
        line = NULL;
    free(begin);
    return line;
}

int sgt_corpus_is_document(const char *line)
{
    static const char begin[] = "{\"document\": ";
    return !strncmp(line, begin, sizeof begin - 1);
}
