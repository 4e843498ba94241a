/* corpus.c: turns the INPUT arguments into a list of files, and writes the entries of this list as
 * JSON. It decides the order of the files, on which the bytes of the output depend. */
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
#include "tokenize/input/kept.h"
#include "tokenize/input/source.h"
#include "tokenize/text/utf8.h"

/* maximum number of skipped files for which a separate notice is printed; a final notice states how
 * many more files were skipped */
#define SKIPPED_SAID 5
/* maximum number of bytes of a stream that are examined to decide whether it is JSON Lines */
#define FORM_PREFIX ((size_t)16 << 20)

typedef struct walk {
    sgt_corpus *c;
    const sgt_tokenize_options *o;
    int out_exists;
    struct stat out_stat;
    char *out_real; /* path of the output folder with symbolic links resolved; NULL if unknown */
    int listed;     /* 1 while the paths in a list file (@LIST) are processed; otherwise 0 */
    /* number of skipped files for which no separate notice was printed. more[0] counts files that
     * are not text; more[1] counts truncated Parquet files. */
    uint64_t more[2];
    sgt_lookahead first; /* first bytes of the file that is being examined */
    /* found[form]: number of files whose first bytes have this form, a value of sgt_form */
    size_t found[SGT_FORM_MORE];
    /* first_found[form]: index, in c->files, of the first file whose first bytes have this form */
    size_t first_found[SGT_FORM_MORE];
    sgt_error *err;
} walk;

/* ---- what a stream holds ----
 *
 * This section determines from the first bytes of a file what the file holds. A file is not text if
 * it begins with the magic number of another format, or has bytes that text does not have. It is
 * JSON Lines if its first one or two lines can be parsed as JSON objects. A copy of the bytes is
 * parsed, because parsing may change them. */

/* Return 1 if the n bytes at p are not valid UTF-8; otherwise 0. whole: 1 if these bytes are the
 * entire file. If it is 0, the file may continue after them, so an incomplete character at the end
 * is accepted. */
static int is_ill_formed(const uint8_t *p, size_t n, int whole)
{
    size_t valid = sgt_utf8_valid(p, n);
    uint32_t cp;
    if (valid == n) return 0;
    if (whole || n - valid > 3) return 1;
    /* The file may continue after the n bytes at p, so accept an incomplete character at the end of
     * these bytes. */
    return sgt_utf8_unit(p + valid, n - valid, &cp) < n - valid || p[valid] < 0xC2 ||
           p[valid] > 0xF4;
}

const sgt_magic *sgt_binary_of(const uint8_t *p, size_t n, int whole, int lines)
{
    static const sgt_magic other = {"binary data", "--binary keep tokenizes its bytes",
                                    SGT_MAGIC_OTHER};
    const sgt_magic *known = sgt_magic_of(p, n);
    if (known || lines) return known;
    known = sgt_magic_wide(p, n, whole);
    return known ? known : memchr(p, 0, n) && is_ill_formed(p, n, whole) ? &other : NULL;
}

/* ---- JSON Lines ---- */

/* Return the index of the first of the bytes p[at] to p[n - 1] that is not white space, or n if all
 * of these bytes are white space. */
static size_t skip_space(const uint8_t *p, size_t at, size_t n)
{
    while (at < n && memchr(" \t\r\n", p[at], 4)) at++;
    return at;
}

/* A copy of the first bytes of a stream (the text of a file). They are copied, because the JSON
 * parser may change the text that it reads. 1 + SGT_JSON_PAD newlines follow the copied bytes,
 * because the parser requires that a line ends in a newline and that SGT_JSON_PAD bytes after this
 * newline can be read. */
typedef struct beginning {
    const sgt_json_path *path;
    uint8_t *text, *scratch; /* `scratch` has the same size as `text` */
    size_t n;
    int whole; /* 1: `text` is the whole stream */
    /* 1 if no more bytes can be examined, so that a form must be chosen now; 0 if SGT_FORM_MORE may
     * be returned to ask for more bytes */
    int last;
} beginning;

/* Return the form (a value of sgt_form) of the text b->text, whose first line begins with a brace
 * at index `at`. */
static sgt_form classify_lines(const beginning *b, size_t at)
{
    sgt_json_found found;
    for (int lines = 0; lines < 2; lines++) {
        const uint8_t *newline = memchr(b->text + at, '\n', b->n - at);
        if (!newline && !b->whole)
            return !b->last ? SGT_FORM_MORE : lines ? SGT_FORM_LINES : SGT_FORM_BRACE;
        if (sgt_json_line(b->path, b->text + at, b->scratch, 1, &found)) return SGT_FORM_BRACE;
        at = skip_space(b->text, newline ? (size_t)(newline - b->text) : b->n, b->n);
        if (at == b->n) return b->last || lines ? SGT_FORM_LINES : SGT_FORM_MORE;
    }
    return SGT_FORM_LINES;
}

/* Return the form (a value of sgt_form) of the text b->text, which begins with a bracket at index
 * `at`. */
static sgt_form classify_array(const beginning *b, size_t at)
{
    sgt_json_found found;
    for (size_t i = at; i < b->n; i++)
        /* replace newlines with spaces, because the parser reads a single line, and the first
         * element of an array may extend over several lines */
        if (b->text[i] == '\n') b->text[i] = ' ';
    at = skip_space(b->text, at + 1, b->n);
    if (at < b->n && b->text[at] != '{') return SGT_FORM_TEXT;
    if (!sgt_json_line(b->path, b->text + at, b->scratch, 0, &found)) return SGT_FORM_ARRAY;
    /* If the first element is a complete object that lacks the text field, the array holds no
     * documents and is read as text. Any other error may have occurred because the object continues
     * after the bytes read so far. In this case, ask for more bytes unless no more can be
     * examined. */
    return b->last || found.at == SGT_JSON_NOWHERE ? SGT_FORM_TEXT : SGT_FORM_MORE;
}

/* Return the form (a value of sgt_form) of a stream that begins with the bytes in *l, or
 * SGT_ENOMEM. whole: 1 if these bytes are the entire stream. last: 1 if no more bytes can be
 * examined. */
static int classify(const sgt_lookahead *l, const sgt_corpus *c, int whole, int last)
{
    const size_t at = skip_space(l->bytes, sgt_utf8_mark(l->bytes, l->n), l->n),
                 room = l->n + 1 + SGT_JSON_PAD;
    if (at == l->n || (l->bytes[at] != '{' && l->bytes[at] != '[')) return SGT_FORM_TEXT;
    uint8_t *text = malloc(2 * room);
    if (!text) return SGT_ENOMEM;
    memcpy(text, l->bytes, l->n);
    memset(text + l->n, '\n', room - l->n);
    const beginning b = {&c->path, text, text + room, l->n, whole, whole || last};
    const sgt_form form = text[at] == '{' ? classify_lines(&b, at) : classify_array(&b, at);
    free(text);
    return (int)form;
}

int sgt_lookahead_read(sgt_lookahead *l, sgt_source *s, size_t want, const char *path,
                       sgt_error *err)
{
    if (l->n >= want || l->end) return SGT_OK;
    const int rc = sgt_reserve(&l->bytes, &l->room, want, 1, path, err);
    return rc < 0 ? rc : sgt_source_read(s, l->bytes, &l->n, want, &l->end, err);
}

/* Return the error rc, but return SGT_OK instead if the file f is compressed and rc is not
 * SGT_ENOMEM. In this case, the caller examines the bytes read before the error, and the error is
 * reported later, when the file is tokenized. */
static int pardon(const sgt_corpus_file *f, int rc)
{
    return f->pack && rc != SGT_ENOMEM ? SGT_OK : rc;
}

int sgt_stream_form(sgt_lookahead *l, sgt_source *s, const sgt_corpus *c, const sgt_corpus_file *f,
                    sgt_error *why)
{
    const sgt_magic *b = NULL;
    size_t want = SGT_BINARY_PREFIX;
    int rc = sgt_lookahead_read(l, s, want, f->path, why), form = SGT_FORM_TEXT;
    if (pardon(f, rc) < 0) return rc;
    if (c->skip_binary && !f->filter) b = sgt_binary_of(l->bytes, l->n, l->end, f->lines);
    if (!b && f->detect) form = SGT_FORM_MORE;
    for (; form == SGT_FORM_MORE; want *= 4) {
        rc = sgt_lookahead_read(l, s, want, f->path, why);
        form = classify(l, c, rc < 0 || l->end || l->n < want, want >= FORM_PREFIX);
    }
    if (form < 0) return sgt_fail_memory(why, f->path);
    if (pardon(f, rc) < 0) return rc;
    if (b)
        sgt_fail(why, SGT_EFORMAT, "%s, not UTF-8 text (%s)", b->what,
                 f->stream ? "pass it as a file, or --binary keep tokenizes its bytes" : b->hint);
    else if (form == SGT_FORM_ARRAY && c->skip_binary)
        sgt_fail(why, SGT_EFORMAT,
                 "a JSON array, not JSON Lines (jq -c '.[]' converts it, and --format text reads "
                 "it as text)");
    else return form;
    return SGT_FORM_OTHER;
}

void sgt_form_notice(const sgt_notice *to, const sgt_corpus *c, const sgt_corpus_file *f,
                     sgt_form form, size_t count)
{
    const char *name = sgt_corpus_shown(f);
    char such[48] = "";
    if (count) snprintf(such, sizeof such, "%zu such file%s; ", count, count == 1 ? "" : "s");
    if (form == SGT_FORM_LINES)
        sgt_say(to,
                "%s: read as JSONL, because its lines are JSON objects with the field \"%s\" "
                "(%s--format text reads them as text)",
                name, c->field, such);
    if (form == SGT_FORM_BRACE)
        sgt_say(to,
                "%s: read as text: it begins with a brace, but its first lines are not JSON "
                "objects with the field \"%s\" (%s--field NAME selects another field)",
                name, c->field, such);
    if (form == SGT_FORM_ARRAY)
        sgt_say(to,
                "%s: read as text, although it is a JSON array (%sjq -c '.[]' converts it to JSON "
                "Lines)",
                name, such);
}

/* Return 1 if the path that consists of the n bytes at `name` ends in `ending`, in upper or lower
 * case, with at least one more character before it in the last component of the path; otherwise
 * 0. */
static int ends_in(const char *name, size_t n, const char *ending)
{
    const size_t m = strlen(ending);
    return n > m && name[n - m - 1] != '/' && !strncasecmp(name + n - m, ending, m);
}

static void set_format_by_name(const sgt_corpus *c, sgt_corpus_file *f, sgt_format format)
{
    static const char *const packs[SGT_PACKS] = {[SGT_PACK_GZ] = ".gz", [SGT_PACK_ZST] = ".zst"};
    const int by_name = format == SGT_FORMAT_AUTO;
    size_t n = strlen(f->name);
    for (size_t i = 0; i < c->filter_count && !f->stream; i++) {
        if (!ends_in(f->name, n, c->filters[i].ending)) continue;
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
    f->detect = by_name && !f->lines && !f->rows;
}

/* Open the file f, set *s to the open source, and read the first bytes of the file into w->first.
 * If *s is a source that was opened before, close it first. */
static int read_beginning(walk *w, const sgt_corpus_file *f, sgt_source **s)
{
    sgt_source_close(*s);
    *s = NULL;
    w->first.n = 0;
    w->first.end = 0;
    int rc = sgt_source_open(s, f, w->o->stop, NULL, w->err);
    /* a source opens its file at the first seek or read: seek now, so that an error on opening the
     * file is returned even if the file is compressed (see pardon) */
    if (!rc) rc = sgt_source_seek(*s, 0, w->err);
    return rc < 0
               ? rc
               : pardon(f, sgt_lookahead_read(&w->first, *s, SGT_BINARY_PREFIX, f->path, w->err));
}

/* Set f->rows to 1 (Parquet) if the file ends in Parquet's magic number; otherwise to 0. A
 * truncated Parquet file has this number only at its beginning. Call this for a file that begins
 * with this number or is named .parquet. */
static int read_end(walk *w, sgt_corpus_file *f, sgt_source *s)
{
    uint8_t mark[4];
    size_t n = 0;
    int end = 0, rc = f->size < 8 ? 1 : sgt_source_seek(s, f->size - sizeof mark, w->err);
    if (!rc) rc = sgt_source_read(s, mark, &n, sizeof mark, &end, w->err);
    f->rows = !rc && n == sizeof mark && !memcmp(mark, "PAR1", sizeof mark);
    return rc < 0 ? rc : SGT_OK;
}

/* Skip the file f: print a notice that states the reason, which the caller has stored in *w->err,
 * and return 1. If `named` is 1, the user has named this file as an INPUT, and an error is returned
 * instead. cut: 1 if the file is truncated Parquet; 0 if it is not text. The two kinds of skipped
 * files are counted separately. */
static int leave_out(walk *w, const sgt_corpus_file *f, int named, int cut)
{
    const sgt_error why = *w->err;
    if (named) return sgt_fail(w->err, SGT_EFORMAT, "%s: %s", f->path, why.text);
    if (w->c->skipped++ < SKIPPED_SAID)
        sgt_say(&w->o->notice, "%s: skipped: %s", f->path, why.text);
    else w->more[cut]++;
    return 1;
}

/* Determine what the file f holds, and check that it can be read, so that a run fails now rather
 * than after an hour of work. Return 1 if the file is skipped, because it is not text or, with
 * --skip-bad, because it is truncated Parquet; return 0 if it is not skipped. named: 1 if the user
 * has named this file as an INPUT. Skipping such a file is an error. */
static int inspect_file(walk *w, sgt_corpus_file *f, int named)
{
    const int open = w->o->format == SGT_FORMAT_AUTO, skip = w->c->skip_binary,
              rows = f->rows && f->skip_bad;
    sgt_source *s = NULL;
    if (!rows && (!(skip || open) || f->filter || f->rows || !f->size))
        return faccessat(AT_FDCWD, f->path, R_OK, AT_EACCESS) < 0
                   ? sgt_fail_errno(w->err, "%s", f->path)
                   : SGT_OK;
    int rc = read_beginning(w, f, &s);
    const sgt_magic *m =
        !rc && open && !f->pack && !rows ? sgt_magic_of(w->first.bytes, w->first.n) : NULL;
    if (m && m->kind == SGT_MAGIC_GZIP) f->pack = SGT_PACK_GZ;
    if (m && m->kind == SGT_MAGIC_ZSTD) f->pack = SGT_PACK_ZST;
    if (m && f->pack) rc = read_beginning(w, f, &s);
    if (!rc && (rows || (m && m->kind == SGT_MAGIC_PARQUET && skip))) rc = read_end(w, f, s);
    if (f->rows) f->lines = 0;
    else if (!rc && rows)
        rc = sgt_fail(w->err, SGT_EFORMAT, "a truncated Parquet file (fetch the file again)");
    else if (!rc) rc = sgt_stream_form(&w->first, s, w->c, f, w->err);
    sgt_source_close(s);
    if (rc == SGT_FORM_OTHER || (rows && rc == SGT_EFORMAT)) return leave_out(w, f, named, rows);
    if (rc < 0) return rc;
    if (rc == SGT_FORM_LINES) f->lines = 2;
    if (!w->found[rc]++) w->first_found[rc] = w->c->count;
    return SGT_OK;
}

static int add_file(walk *w, const char *path, size_t base, const struct stat *st, int named)
{
    sgt_corpus *c = w->c;
    int rc =
        sgt_reserve(&c->files, &c->room, c->count + 1, sizeof *c->files, "list of inputs", w->err);
    if (rc < 0) return rc;
    sgt_corpus_file f = {.path = strdup(path), .skip_bad = w->o->skip_bad};
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
    f.detect &= f.stream || f.filter;
    c->bytes += f.size;
    c->line_files += f.lines || f.rows;
    c->row_files += f.rows != 0;
    c->unsized |= f.stream || !sgt_corpus_sought(&f);
    c->files[c->count++] = f;
    return SGT_OK;
}

/* ---- folders ---- */

/* Compare two entries of a folder, for fts, so that files are sorted by the bytes of their complete
 * paths. A folder's name is compared as if a slash followed it, because a slash follows it in the
 * paths of the files in the folder. */
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

/* Return 1 if a file or folder with this name, inside an INPUT folder, is hidden; otherwise 0.
 * These names are hidden: every name that begins with a dot, and the names of files that Hadoop
 * writes next to the Parquet files of a table and that contain no rows. */
static int is_hidden(const char *name)
{
    return name[0] == '.' || !strcmp(name, "_SUCCESS") || !strcmp(name, "_metadata") ||
           !strcmp(name, "_common_metadata");
}

/* Return 1 if `path`, whose status is *st, is the output folder. If `follow` is 1, also return 1 if
 * `path`, with symbolic links resolved, is inside the output folder. Otherwise return 0. */
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

/* Number of files and folders inside an INPUT folder that were skipped for the same reason, and the
 * path of the first of them, for a notice. */
typedef struct left {
    uint64_t count;
    char *first;
} left;

static int count_entry(left *l, const char *path, sgt_error *err)
{
    if (l->count++ || (l->first = strdup(path))) return SGT_OK;
    return sgt_fail_memory(err, "list of inputs");
}

/* Process the entry e, which fts has found inside an INPUT folder: add it to the corpus if it is a
 * file that is read. base: number of bytes at the start of the entry's path that do not belong to
 * the file's name in the output. *hidden counts entries that are skipped because they are hidden;
 * *odd counts entries that are neither files nor folders. */
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
        return sgt_fail(
            w->err, SGT_EFORMAT,
            "%s: this symbolic link leads back to %.*s, in an endless loop (remove the link)", path,
            (int)e->fts_cycle->fts_pathlen, path);
    errno = e->fts_errno;
    if (!reached && is_link(path) && access(path, F_OK) < 0)
        return sgt_fail_errno(w->err, "%s: a broken symbolic link", path);
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
        sgt_say(&w->o->notice,
                "%s: skipped: neither a file nor a folder (%" PRIu64 " in all below %s)", odd.first,
                odd.count, path);
    if (!rc && hidden.count && found)
        sgt_say(&w->o->notice,
                "%s: skipped: a hidden file or folder (%" PRIu64
                " in all below %s; --hidden reads them)",
                hidden.first, hidden.count, path);
    if (!rc && !found)
        rc = sgt_fail(w->err, SGT_EFORMAT, "%s: this folder has no files%s", path,
                      hidden.count ? " except hidden ones (--hidden reads them)"
                                   : " (name a folder that has files, or name files)");
    free(odd.first);
    free(hidden.first);
    return rc;
}

static int list_path(walk *w, const char *input)
{
    struct stat st;
    if (stat(input, &st) < 0)
        return sgt_fail_errno(w->err, "%s", *input ? input : "an INPUT with an empty name");
    if (is_out(w, input, &st, 1))
        return sgt_fail(w->err, SGT_EFORMAT, "%s: INPUT is OUT or inside OUT (name another OUT)",
                        input);
    if (S_ISREG(st.st_mode)) {
        const char *slash = strrchr(input, '/');
        return add_file(w, input, slash ? (size_t)(slash + 1 - input) : 0, &st, !w->listed);
    }
    if (!S_ISDIR(st.st_mode))
        return sgt_fail(w->err, SGT_EFORMAT,
                        "%s: neither a file nor a folder (to read a stream, redirect it to "
                        "standard input and name -)",
                        input);
    char *path = strdup(input);
    int rc = path ? list_folder(w, path) : sgt_fail_memory(w->err, "list of inputs");
    free(path);
    return rc;
}

/* ---- lists ---- */

/* Read a list of paths from the stream f, and process each path as an INPUT. Messages name the list
 * by `list`. Each path ends in a newline or, if the first block read from the list contains a NUL,
 * in a NUL. (The first block contains the end of the first path, because a path has at most
 * PATH_MAX bytes.) A list in UTF-16 contains NULs as well. Such a list fails, because the paths
 * read from it do not exist, and the error message then says that the list is UTF-16. */
static int list_paths(walk *w, const char *list, FILE *f)
{
    /* bytes that were read from the list but not yet processed; there is room for a path of
     * PATH_MAX bytes and a CR and newline */
    char text[PATH_MAX + 2];
    size_t n = 0, number = 0, found = 0;
    int ends = '\n', rc = SGT_OK;
    const sgt_magic *wide = NULL;
    sgt_error *err = w->err, why;
    w->err = &why;
    w->listed = 1;
    while (!rc && (n += fread(text + n, 1, sizeof text - n, f)) > 0) {
        if (!number) wide = sgt_magic_wide((const uint8_t *)text, n, feof(f));
        if (!number && memchr(text, 0, n)) ends = 0;
        char *path = text + (number++ ? 0 : sgt_utf8_mark(text, n)),
             *end = memchr(path, ends, (size_t)(text + n - path));
        if (!end && n == sizeof text)
            rc = sgt_fail(&why, SGT_EFORMAT, "a path is longer than %d bytes", PATH_MAX);
        char *after = end ? end + 1 : text + n;
        if (!end) end = after;
        if (ends && end > path && end[-1] == '\r') end--;
        if (!rc && memchr(path, 0, (size_t)(end - path)))
            rc = sgt_fail(&why, SGT_EFORMAT, "the path contains a NUL byte");
        if (!rc && end > path) {
            *end = 0;
            found++;
            rc = list_path(w, path);
        }
        n -= (size_t)(after - text);
        memmove(text, after, n);
    }
    w->err = err;
    w->listed = 0;
    if (rc < 0 && wide && wide->kind == SGT_MAGIC_WIDE)
        sgt_fail(err, rc, "%s: %s, not UTF-8 text (%s)", list, wide->what, wide->hint);
    else if (rc < 0)
        sgt_fail(err, rc, "%s: %s %zu: %s", list, ends ? "line" : "path", number, why.text);
    else if (!feof(f)) /* the loop ended before the end of the list, so reading the list failed */
        rc = sgt_fail_errno(err, "%s", list);
    else if (!found) rc = sgt_fail(err, SGT_EFORMAT, "%s: this list contains no paths", list);
    return rc;
}

static int list_input(walk *w, const char *input)
{
    if (!strcmp(input, "-")) return add_file(w, input, 0, NULL, 1);
    if (*input != '@') return list_path(w, input);
    if (!strcmp(input, "@-")) return list_paths(w, input, stdin);
    FILE *f = fopen(++input, "re");
    if (!f) return sgt_fail_errno(w->err, "%s", *input ? input : "a list without a name");
    int rc = list_paths(w, input, f);
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

/* Print how many files were skipped without a separate notice. Return an error if files were
 * skipped and no file is left to read. Call this after all INPUTs have been listed. */
static int sum_up_skipped(const walk *w)
{
    static const char *const why[][2] = {
        {"s skipped: not plain text (--binary keep tokenizes their bytes)",
         " skipped: not plain text (--binary keep tokenizes its bytes)"},
        {"s skipped: truncated Parquet files (fetch them again)",
         " skipped: a truncated Parquet file (fetch the file again)"}};
    for (int i = 0; i < 2; i++)
        if (w->more[i])
            sgt_say(&w->o->notice, "%" PRIu64 " more file%s", w->more[i], why[i][w->more[i] == 1]);
    if (w->c->count || !w->c->skipped) return SGT_OK;
    return sgt_fail(w->err, SGT_EFORMAT,
                    "%s: nothing to tokenize: no file is plain text%s (%" PRIu64
                    " skipped; --filter converts files to text with a command)",
                    w->o->inputs[0], w->o->skip_bad ? " or complete Parquet" : "", w->c->skipped);
}

int sgt_corpus_list(sgt_corpus **out, const sgt_tokenize_options *o, sgt_error *err)
{
    const char *folder = o->out ? o->out : "";
    sgt_error own = {0};
    walk w = {.c = calloc(1, sizeof *w.c), .o = o, .err = err ? err : &own};
    if (!w.c) return sgt_fail_memory(err, "list of inputs");
    w.c->field = o->field ? o->field : "text";
    int streams = 0, rc = sgt_json_path_set(&w.c->path, w.c->field, err);
    if (!rc) rc = sgt_kept_names_set(&w.c->kept, o->keep_fields, err);
    if (!rc) rc = set_filters(w.c, o, err);
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
            sgt_form_notice(&o->notice, w.c, &w.c->files[w.first_found[form]], (sgt_form)form,
                            w.found[form]);
    if (!rc) rc = sum_up_skipped(&w);
    free(w.out_real);
    free(w.first.bytes);
    if (rc < 0) sgt_corpus_free(w.c);
    else *out = w.c;
    return rc;
}

void sgt_corpus_free(sgt_corpus *c)
{
    if (!c) return;
    for (size_t i = 0; i < c->count; i++) free(c->files[i].path);
    for (size_t i = 0; i < c->filter_count; i++) sgt_filter_free(&c->filters[i]);
    free(c->kept.text);
    free(c->filters);
    free(c->files);
    free(c);
}

/* ---- the files as JSON ---- */

json_t *sgt_corpus_json_name(const sgt_corpus *c, size_t i)
{
    const char *name = c->files[i].name;
    /* each byte of the name is written as at most four characters (\xNN) */
    const size_t n = strlen(name), room = 4 * n + 1;
    const int valid = sgt_utf8_valid((const uint8_t *)name, n) == n;
    char *shown = malloc(room);
    json_t *o =
        shown ? json_pack("{s:s}", "path", valid ? name : sgt_printable(shown, room, name)) : NULL;
    for (size_t k = 0; o && k < n; k++) snprintf(shown + 2 * k, 3, "%02x", (unsigned char)name[k]);
    if (o && !valid && json_object_set_new(o, "path_bytes", json_string(shown))) {
        json_decref(o);
        o = NULL;
    }
    free(shown);
    return o;
}

char *sgt_corpus_line(const sgt_corpus *c, size_t i, uint64_t size, int stamped,
                      const sgt_corpus_counts *counts)
{
    const sgt_corpus_file *f = &c->files[i];
    /* The device number is not part of the hash, because on NFS and some other file systems, it
     * differs between machines and may change when the machine is rebooted. */
    const uint64_t id[] = {f->inode, (uint64_t)f->mtime, (uint64_t)f->nanoseconds};
    char *text = NULL, *line = NULL;
    json_t *o = sgt_corpus_json_name(c, i);
    int bad = !o || json_object_set_new(o, "size", json_integer((json_int_t)size));
    if (f->lines == 2) bad |= json_object_set_new(o, "format", json_string("jsonl"));
    if (f->from || f->end)
        bad |= json_object_set_new(o, "range",
                                   json_pack("[I,I]", (json_int_t)f->from, (json_int_t)f->end));
    if (stamped || counts) {
        bad |= json_object_set_new(o, "mtime", json_integer(f->mtime));
        bad |= json_object_set_new(o, "stat", sgt_json_hex(XXH3_64bits(id, sizeof id)));
    }
    if (counts) {
        bad |= json_object_set_new(o, "documents", json_integer((json_int_t)counts->documents));
        bad |= json_object_set_new(o, "bytes", json_integer((json_int_t)counts->bytes));
        bad |= json_object_set_new(o, "tokens", json_integer((json_int_t)counts->tokens));
        bad |= json_object_set_new(o, "xxh3", sgt_json_hex(counts->hash));
    }
    if (!bad && (text = sgt_json_dumps(o, 0)) &&
        asprintf(&line, "%.*s%s", (int)strlen(text) - 1, text,
                 counts    ? "}\n"
                 : stamped ? ""
                           : ",") < 0)
        line = NULL;
    free(text);
    json_decref(o);
    return line;
}

int sgt_corpus_is_document(const char *line)
{
    static const char begin[] = "{\"document\": ";
    return !strncmp(line, begin, sizeof begin - 1);
}
