/* corpus.c: turn INPUTs into a list of files, and write the files as JSON. The order of the files is
 * fixed here, and every byte of the output depends on it. */
#include "tokenize/input/corpus.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "loader/base/memory.h"
#include "tokenize/input/json_line.h"
#include "tokenize/input/source.h"
#include "tokenize/text/utf8.h"

/* number of files that are not text for which a notice names the file; one more notice counts the
 * rest */
#define SKIPPED_SAID 5

/* The chain of folders from the INPUT to the one being read. A link back to any of them is a
 * loop. */
typedef struct chain {
    const struct chain *up;
    const char *path;
    dev_t dev;
    ino_t ino;
} chain;

typedef struct walk {
    sgt_corpus *c;
    const sgt_corpus_request *r;
    int out_exists;
    struct stat out_stat;
    char *out_real; /* OUT with links resolved; NULL: unknown */
    size_t base;    /* offset in a path at which the name below this INPUT begins */
    uint64_t odd;   /* number of entries that are neither files nor folders */
    char *first_odd;
    uint64_t hidden; /* number of names below this INPUT that begin with a dot */
    char *first_hidden;
    int listed;      /* this INPUT is a line of a list */
    uint8_t *prefix; /* buffer for a file's first bytes; NULL: not needed yet */
    size_t prefix_room;
    size_t found[SGT_FORM_MORE];      /* number of files of each form that no name told */
    char *first_found[SGT_FORM_MORE]; /* path of the first of them */
    const char *field;                /* field of JSONL that holds the text */
    sgt_error *err;
} walk;

static const sgt_magic array_of_json = {
    "a JSON array", "jq -c '.[]' makes lines of it, and --format text reads it as it is",
    SGT_MAGIC_OTHER};

typedef struct entry {
    char *name;
    struct stat st;
    int link;
} entry;

typedef struct listing {
    entry *entries;
    size_t count, room;
} listing;

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
    const char *why =
        (alone ? sgt_json_line : sgt_json_first)(&l->path, l->text + at, l->scratch, &t);
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
    size_t n = strlen(f->name);
    f->detect = format == SGT_FORMAT_AUTO && f->stream;
    for (size_t i = 0; i < c->filter_count && !f->stream; i++) {
        if (!sgt_filter_ends(&c->filters[i], f->name)) continue;
        f->filter = &c->filters[i];
        f->lines = f->filter->lines;
        f->detect = format == SGT_FORMAT_AUTO && !f->filter->told;
        return;
    }
    for (int p = SGT_PACK_NONE + 1; p < SGT_PACKS; p++)
        if (ends_in(f->name, n, packs[p])) f->pack = (sgt_pack)p;
    f->rows = format == SGT_FORMAT_AUTO && !f->stream && ends_in(f->name, n, ".parquet");
    if (f->pack != SGT_PACK_NONE) n = (size_t)(strrchr(f->name, '.') - f->name);
    f->lines = format == SGT_FORMAT_JSONL ||
               (format == SGT_FORMAT_AUTO &&
                (ends_in(f->name, n, ".jsonl") || ends_in(f->name, n, ".ndjson")));
}

/* Read the first `want` bytes of the file's stream into w->prefix. An error in a packed file is
 * reported later, when the file is tokenized. Here only the bytes before the error are checked. */
static int read_prefix(walk *w, const sgt_corpus_file *f, size_t want, size_t *n, int *whole)
{
    sgt_source *source;
    ssize_t got = 1;
    *n = 0;
    *whole = 0;
    if (w->prefix_room < want) {
        free(w->prefix);
        w->prefix = malloc(want);
        w->prefix_room = w->prefix ? want : 0;
        if (!w->prefix) return sgt_fail_memory(w->err, "list of inputs");
    }
    if (f->pack != SGT_PACK_NONE) {
        int rc = sgt_source_open(&source, f, w->r->stop, NULL, w->err);
        if (rc < 0) return rc;
        sgt_source_read(source, w->prefix, n, want, whole, NULL);
        sgt_source_close(source);
        return SGT_OK;
    }
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc = SGT_OK;
    if (fd < 0) return sgt_fail_errno(w->err, "%s", f->path);
    while (!rc && got && *n < want) {
        got = pread(fd, w->prefix + *n, want - *n, (off_t)*n);
        if (got < 0 && errno != EINTR) rc = sgt_fail_errno(w->err, "%s: offset %zu", f->path, *n);
        if (got > 0) *n += (size_t)got;
        *whole = got == 0 || *n == f->size;
        if (*whole) break;
    }
    close(fd);
    return rc;
}

/* Return whether a file that begins like Parquet also ends so. */
static int is_parquet(const walk *w, const sgt_corpus_file *f)
{
    char end[4] = "";
    if (w->r->format != SGT_FORMAT_AUTO || f->pack != SGT_PACK_NONE || f->size < 8) return 0;
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const ssize_t got = fd < 0 ? -1 : pread(fd, end, sizeof end, (off_t)f->size - 4);
    if (fd >= 0) close(fd);
    return got == 4 && !memcmp(end, "PAR1", 4);
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
        sgt_say(&w->r->notice, "%s: skipped: %s, not %s (%s)", f->path, b->what, lacks, b->hint);
    return 1;
}

/* Tell from the first bytes whether a text is JSON Lines. w->prefix holds n of them. Return 1 if
 * the file is a JSON array, which is left out. */
static int detect_lines(walk *w, sgt_corpus_file *f, size_t n, int whole, int named)
{
    sgt_form form = SGT_FORM_MORE;
    int rc = SGT_OK;
    for (size_t want = SGT_BINARY_PREFIX; !rc && form == SGT_FORM_MORE; want *= 4) {
        if (want > SGT_BINARY_PREFIX) rc = read_prefix(w, f, want, &n, &whole);
        if (!rc) rc = sgt_form_of(&form, w->prefix, n, whole || n < want, w->field, w->err);
    }
    if (rc < 0) return rc;
    if (form == SGT_FORM_ARRAY && w->r->skip_binary) return leave_out(w, f, &array_of_json, named);
    f->lines = form == SGT_FORM_LINES ? 2 : 0;
    if (form != SGT_FORM_TEXT && !w->found[form]++ && !(w->first_found[form] = strdup(f->path)))
        return sgt_fail_memory(w->err, "list of inputs");
    return SGT_OK;
}

/* Return the compression that the first bytes of a file tell. */
static sgt_pack pack_of(const uint8_t *p, size_t n)
{
    const sgt_magic *m = sgt_magic_of(p, n);
    return !m                          ? SGT_PACK_NONE
           : m->kind == SGT_MAGIC_GZIP ? SGT_PACK_GZ
           : m->kind == SGT_MAGIC_ZSTD ? SGT_PACK_ZST
                                       : SGT_PACK_NONE;
}

/* Check that a file can be read, because failing now is better than failing after an hour of work,
 * and find out what it holds. Return 1 if it is left out because it is not text. `named`: the file
 * itself is an INPUT. */
static int inspect_file(walk *w, sgt_corpus_file *f, int named)
{
    size_t n;
    const int open = w->r->format == SGT_FORMAT_AUTO;
    int whole, rc;
    if (!(w->r->skip_binary || open) || f->filter || f->rows || !f->size)
        return faccessat(AT_FDCWD, f->path, R_OK, AT_EACCESS) < 0
                   ? sgt_fail_errno(w->err, "%s", f->path)
                   : SGT_OK;
    rc = read_prefix(w, f, SGT_BINARY_PREFIX, &n, &whole);
    if (!rc && open && f->pack == SGT_PACK_NONE && (f->pack = pack_of(w->prefix, n)))
        rc = read_prefix(w, f, SGT_BINARY_PREFIX, &n, &whole);
    if (rc < 0) return rc;
    const sgt_magic *b = w->r->skip_binary ? sgt_binary_of(w->prefix, n, whole, f->lines) : NULL;
    if (b && b->kind == SGT_MAGIC_PARQUET) f->rows = is_parquet(w, f);
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
        f.device = st->st_dev;
        f.inode = st->st_ino;
    } else f.stream = c->stream = 1;
    set_format_by_name(c, &f, w->r->format);
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

/* Order for qsort: by the bytes of whole paths. A folder's name counts with a slash after it, as in
 * the paths below it. */
static int in_order(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    size_t i = 0;
    while (x->name[i] && x->name[i] == y->name[i]) i++;
    int p = x->name[i] ? (unsigned char)x->name[i] : S_ISDIR(x->st.st_mode) ? '/' : 0;
    int q = y->name[i] ? (unsigned char)y->name[i] : S_ISDIR(y->st.st_mode) ? '/' : 0;
    return p - q;
}

static int read_entry(listing *l, const char *folder, const char *name, sgt_error *err)
{
    int rc =
        sgt_reserve(&l->entries, &l->room, l->count + 1, sizeof *l->entries, "list of inputs", err);
    if (rc < 0) return rc;
    entry e = {.name = strdup(name)};
    char *path = sgt_join(folder, name);
    rc = e.name && path ? SGT_OK : sgt_fail_memory(err, "list of inputs");
    if (!rc && lstat(path, &e.st) < 0) rc = sgt_fail_errno(err, "%s", path);
    if (!rc && (e.link = S_ISLNK(e.st.st_mode)) && stat(path, &e.st) < 0)
        rc = sgt_fail_errno(err, "%s: a symbolic link that leads nowhere", path);
    free(path);
    if (rc < 0) free(e.name);
    else l->entries[l->count++] = e;
    return rc;
}

static void free_listing(listing *l)
{
    for (size_t i = 0; i < l->count; i++) free(l->entries[i].name);
    free(l->entries);
}

/* Return whether a name below a folder is hidden: it begins with a dot, or it is what Hadoop's
 * programs write beside the Parquet files of a table, without rows of its own. */
static int is_hidden(const char *name)
{
    return name[0] == '.' || !strcmp(name, "_SUCCESS") || !strcmp(name, "_metadata") ||
           !strcmp(name, "_common_metadata");
}

/* Count the name, and keep the first one in byte order for the notice, because a folder's entries
 * come in any order. */
static int pass_hidden(walk *w, const char *folder, const char *name)
{
    char *path = sgt_join(folder, name);
    if (!path) return sgt_fail_memory(w->err, "list of inputs");
    w->hidden++;
    if (w->first_hidden && strcmp(w->first_hidden, path) <= 0) {
        free(path);
        return SGT_OK;
    }
    free(w->first_hidden);
    w->first_hidden = path;
    return SGT_OK;
}

/* Read the entries of a folder in order. The folder is closed at once, so nested folders take no
 * descriptors. */
static int read_folder(walk *w, listing *l, const char *path)
{
    sgt_error *err = w->err;
    int rc = SGT_OK;
    DIR *d = opendir(path);
    if (!d) return sgt_fail_errno(err, "%s", path);
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e) break;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (w->r->skip_hidden && is_hidden(e->d_name)) rc = pass_hidden(w, path, e->d_name);
        else rc = read_entry(l, path, e->d_name, err);
        if (rc < 0) goto done;
    }
    if (errno) rc = sgt_fail_errno(err, "%s", path);
    if (!rc && l->count) qsort(l->entries, l->count, sizeof *l->entries, in_order);
done:
    closedir(d);
    return rc;
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

static int walk_folder(walk *w, const char *path, const struct stat *st, const chain *up);

static int walk_entry(walk *w, const char *path, const entry *e, const chain *here)
{
    if (is_out(w, path, &e->st, e->link)) {
        sgt_say(&w->r->notice, "%s: skipped: it is OUT or inside OUT", path);
        return SGT_OK;
    }
    if (S_ISREG(e->st.st_mode)) return add_file(w, path, w->base, &e->st, 0);
    if (S_ISDIR(e->st.st_mode)) return walk_folder(w, path, &e->st, here);
    if (!w->odd++ && !(w->first_odd = strdup(path)))
        return sgt_fail_memory(w->err, "list of inputs");
    return SGT_OK;
}

static int walk_folder(walk *w, const char *path, const struct stat *st, const chain *up)
{
    chain here = {up, path, st->st_dev, st->st_ino};
    listing l = {0};
    int rc = SGT_OK;
    if (sgt_stopped(w->r->stop)) return sgt_fail(w->err, SGT_ESTOPPED, "stopped");
    for (; up; up = up->up)
        if (up->dev == here.dev && up->ino == here.ino)
            return sgt_fail(w->err, SGT_EFORMAT,
                            "%s: a symbolic link back to %s, without end (remove the link)", path,
                            up->path);
    if ((rc = read_folder(w, &l, path)) < 0) goto done;
    for (size_t i = 0; i < l.count && !rc; i++) {
        char *below = sgt_join(path, l.entries[i].name);
        rc = below ? walk_entry(w, below, &l.entries[i], &here)
                   : sgt_fail_memory(w->err, "list of inputs");
        free(below);
    }
done:
    free_listing(&l);
    return rc;
}

static int list_folder(walk *w, char *path, const struct stat *st)
{
    size_t before = w->c->count, n = strlen(path);
    const uint64_t skipped = w->c->skipped;
    while (n > 1 && path[n - 1] == '/') path[--n] = 0;
    w->base = n + (path[n - 1] != '/');
    int rc = walk_folder(w, path, st, NULL);
    if (rc < 0) return rc;
    if (w->odd)
        sgt_say(&w->r->notice, "%s: neither file nor folder, skipped (%" PRIu64 " such below %s)",
                w->first_odd, w->odd, path);
    const uint64_t hidden = w->hidden;
    if (hidden && (w->c->count > before || w->c->skipped > skipped))
        sgt_say(&w->r->notice,
                "%s: hidden, skipped (%" PRIu64 " such below %s; --hidden reads them)",
                w->first_hidden, hidden, path);
    free(w->first_odd);
    free(w->first_hidden);
    w->first_odd = w->first_hidden = NULL;
    w->odd = w->hidden = 0;
    if (w->c->count > before || w->c->skipped > skipped) return SGT_OK;
    return sgt_fail(w->err, SGT_EFORMAT, "%s: no file in this folder%s", path,
                    hidden ? " but hidden ones (--hidden reads them)"
                           : " (name one that has files, or files)");
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
    int rc = path ? list_folder(w, path, &st) : sgt_fail_memory(w->err, "list of inputs");
    free(path);
    return rc;
}

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

static int list_list(walk *w, const char *list)
{
    if (!strcmp(list, "-")) return list_lines(w, "@-", stdin);
    FILE *f = fopen(list, "re");
    if (!f) return sgt_fail_errno(w->err, "%s", *list ? list : "a list without a name");
    int rc = list_lines(w, list, f);
    fclose(f);
    return rc;
}

static int list_input(walk *w, const char *input)
{
    if (!strcmp(input, "-")) return add_file(w, input, 0, NULL, 1);
    return *input == '@' ? list_list(w, input + 1) : list_path(w, input);
}

static int set_filters(sgt_corpus *c, const sgt_corpus_request *r, sgt_error *err)
{
    if (!r->filter_count) return SGT_OK;
    if (!(c->filters = calloc(r->filter_count, sizeof *c->filters)))
        return sgt_fail_memory(err, "list of inputs");
    for (; c->filter_count < r->filter_count; c->filter_count++) {
        int rc = sgt_filter_set(&c->filters[c->filter_count], r->filters[c->filter_count],
                                r->format == SGT_FORMAT_JSONL, err);
        if (rc < 0) return rc;
    }
    return SGT_OK;
}

/* After the last INPUT, report the skipped files that had no notice of their own. Fail if no file
 * is left. */
static int sum_up_skipped(const walk *w)
{
    const uint64_t n = w->c->skipped, more = n > SKIPPED_SAID ? n - SKIPPED_SAID : 0;
    if (more)
        sgt_say(&w->r->notice,
                "%" PRIu64 " more file%s skipped: not plain text (--binary keep takes %s bytes)",
                more, more == 1 ? "" : "s", more == 1 ? "its" : "their");
    if (w->c->count || !n) return SGT_OK;
    return sgt_fail(w->err, SGT_EFORMAT,
                    "%s: nothing is left to tokenize: no file is plain text, %" PRIu64
                    " skipped (--filter names a program that makes text of a format)",
                    w->r->inputs[0], n);
}

int sgt_corpus_list(sgt_corpus **out, const sgt_corpus_request *r, sgt_error *err)
{
    int rc, streams = 0;
    walk w = {
        .c = calloc(1, sizeof *w.c), .r = r, .field = r->field ? r->field : "text", .err = err};
    if (!w.c) return sgt_fail_memory(err, "list of inputs");
    rc = set_filters(w.c, r, err);
    w.c->skip_binary = r->skip_binary;
    w.out_exists = stat(r->out, &w.out_stat) == 0 && S_ISDIR(w.out_stat.st_mode);
    w.out_real = realpath(r->out, NULL);
    for (size_t i = 0; i < r->count && !rc; i++) {
        if ((!strcmp(r->inputs[i], "-") || !strcmp(r->inputs[i], "@-")) && streams++)
            rc = sgt_fail(err, SGT_EUSAGE,
                          "standard input (-) can be read only once (name it once)");
        else rc = list_input(&w, r->inputs[i]);
    }
    for (int form = 0; form < SGT_FORM_MORE && !rc; form++)
        if (w.found[form])
            sgt_form_notice(&r->notice, (sgt_form)form, w.first_found[form], w.found[form], w.field,
                            "--format text");
    if (!rc) rc = sum_up_skipped(&w);
    free(w.out_real);
    for (int form = 0; form < SGT_FORM_MORE; form++) free(w.first_found[form]);
    free(w.first_odd);
    free(w.first_hidden);
    free(w.prefix);
    if (rc < 0) sgt_corpus_free(w.c);
    else *out = w.c;
    return rc;
}

int sgt_corpus_of(sgt_corpus **out, const sgt_tokenize_options *o, sgt_error *err)
{
    sgt_corpus_request r = {.inputs = o->inputs,
                            .count = o->input_count,
                            .out = o->out ? o->out : "",
                            .format = o->format,
                            .field = o->field,
                            .filters = o->filters,
                            .filter_count = o->filter_count,
                            .skip_binary = o->binary != SGT_BINARY_KEEP,
                            .skip_hidden = !o->hidden,
                            .notice = o->notice,
                            .stop = o->stop};
    return sgt_corpus_list(out, &r, err);
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

/* Return `text` as a malloc'd JSON string. */
static char *json_text(const char *text)
{
    json_t *s = json_string(text);
    char *json = s ? sgt_json_dumps(s, JSON_ENCODE_ANY) : NULL;
    json_decref(s);
    return json;
}

static char *hex(const char *s, size_t n)
{
    char *text = malloc(2 * n + 1);
    for (size_t i = 0; text && i < n; i++) sprintf(text + 2 * i, "%02x", (unsigned char)s[i]);
    return text;
}

char *sgt_corpus_json_name(const sgt_corpus *c, size_t i)
{
    const char *name = c->files[i].name;
    char *field = NULL, *path = NULL, *bytes = NULL, *shown = NULL;
    /* each byte takes at most the four characters of \xNN */
    size_t n = strlen(name), room = 4 * n + 1;
    int valid = sgt_utf8_valid((const uint8_t *)name, n) == n;
    if (!valid && (!(shown = malloc(room)) || !(bytes = hex(name, n)))) goto done;
    if (!(path = json_text(valid ? name : sgt_printable(shown, room, name)))) goto done;
    int rc = valid ? asprintf(&field, "\"path\": %s", path)
                   : asprintf(&field, "\"path\": %s, \"path_bytes\": \"%s\"", path, bytes);
    if (rc < 0) field = NULL;
done:
    free(path);
    free(bytes);
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

char *sgt_corpus_input(const sgt_corpus *c, size_t i)
{
    const sgt_corpus_file *f = &c->files[i];
    char *line = NULL, *begin = sgt_corpus_describe(c, i, f->size);
    if (begin && asprintf(&line,
                          "%s \"mtime\": %" PRId64 ", \"nanoseconds\": %" PRId64
                          ", \"device\": %" PRIu64 ", \"inode\": %" PRIu64 "}\n",
                          begin, f->mtime, f->nanoseconds, f->device, f->inode) < 0)
        line = NULL;
    free(begin);
    return line;
}

char *sgt_corpus_source(const sgt_corpus *c, size_t i, uint64_t size, const sgt_corpus_counts *n)
{
    char *line = NULL, *begin = sgt_corpus_describe(c, i, size);
    if (begin &&
        asprintf(&line,
                 "%s \"mtime\": %" PRId64 ", \"documents\": %" PRIu64 ", \"bytes\": %" PRIu64
                 ", \"tokens\": %" PRIu64 ", \"xxh3\": \"%016" PRIx64 "\"}\n",
                 begin, n->mtime, n->documents, n->bytes, n->tokens, n->hash) < 0)
        line = NULL;
    free(begin);
    return line;
}

int sgt_corpus_is_document(const char *line)
{
    static const char begin[] = "{\"document\": ";
    return !strncmp(line, begin, sizeof begin - 1);
}
