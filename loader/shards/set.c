/* set.c: turn a folder of shards, or one file, into a list of checked shards. A folder's shards are
 * found by their names: sgt's first, then those of other programs. If there are none, a manifest may
 * list files without a header. */
#include "loader/shards/set.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "loader/shards/manifest.h"
#include "loader/sample/sampler.h"
#include "loader/shards/megatron.h"

#define GPT2_VOCAB 50257
#define GPT2_EOT 50256
#define MANIFEST_MAX ((size_t)1 << 30)
/* bytes at each end of a shard that are hashed instead of the whole shard */
#define ENDS ((size_t)4096)

/* ---- the shards of a folder ---- */

/* The kinds of file names, in the order in which they are tried: "SPLIT_*.bin"; names that contain
 * SPLIT as a word; Megatron-LM's. */
typedef enum naming { OURS, NAMED, MEGATRON, NAMINGS } naming;

/* Return the position of "_WORD_" or "_WORD." in `name`, or NULL. */
static const char *find_word(const char *name, const char *word)
{
    size_t w = strlen(word);
    for (const char *at = strchr(name, '_'); at; at = strchr(at + 1, '_'))
        if (!strncmp(at + 1, word, w) && (at[w + 1] == '_' || at[w + 1] == '.')) return at;
    return NULL;
}

/* Return whether WORD is one of the words in the file name. */
static int has_word(const char *name, const char *word)
{
    size_t w = strlen(word);
    return (!strncmp(name, word, w) && (name[w] == '_' || name[w] == '.')) || find_word(name, word);
}

static int is_megatron(const char *folder, const char *name, const char *split, sgt_error *err)
{
    int val = has_word(name, "val") || has_word(name, "valid") || has_word(name, "validation");
    if (strcmp(split, "val") == 0 ? !val : strcmp(split, "train") || val || has_word(name, "test"))
        return 0;
    char path[SGT_PATH];
    return sgt_megatron_beside(sgt_path(path, folder, "%s", name), err);
}

/* Return 1 if the file is a shard of the split under this kind of name, 0 if not, or a negative
 * SGT_E*. */
static int is_shard(naming how, const char *folder, const char *name, const char *split,
                    sgt_error *err)
{
    size_t n = strlen(name), s = strlen(split);
    if (n < 5 || strcmp(name + n - 4, ".bin")) return 0;
    if (how == OURS) return n >= s + 5 && !strncmp(name, split, s) && name[s] == '_';
    if (how == NAMED) return find_word(name, split) != NULL;
    return is_megatron(folder, name, split, err);
}

/* Fail if the names differ before the split's word: they would belong to different sets. */
static int one_name(char *const *paths, size_t n, const char *folder, const char *split,
                    sgt_error *err)
{
    const char *first = n ? strrchr(paths[0], '/') + 1 : "";
    size_t before = n ? (size_t)(find_word(first, split) - first) : 0;
    for (size_t i = 1; i < n; i++) {
        const char *name = strrchr(paths[i], '/') + 1;
        if (strncmp(name, first, before + 1))
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: %s and %s belong to two sets (put each into a folder of its own)",
                            folder, first, name);
    }
    return SGT_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int collect(char ***paths, size_t *count, DIR *dir, naming how, const char *folder,
                   const char *split, sgt_error *err)
{
    size_t room = 0;
    for (int is;;) {
        errno = 0;
        struct dirent *e = readdir(dir);
        if (!e) return errno ? sgt_fail_errno(err, "%s", folder) : SGT_OK;
        if ((is = is_shard(how, folder, e->d_name, split, err)) < 0) return is;
        if (!is) continue;
        if ((is = sgt_reserve(paths, &room, *count + 1, sizeof **paths, folder, err)) < 0)
            return is;
        if (!((*paths)[*count] = sgt_join(folder, e->d_name))) return sgt_fail_memory(err, folder);
        ++*count;
    }
}

/* Collect the files without a header that a manifest lists. The caller that needs the manifest
 * reports what is wrong with it. */
static int collect_listed(char ***paths, size_t *count, const char *folder, const char *split,
                          sgt_error *err)
{
    sgt_manifest m = {0};
    char path[SGT_PATH];
    sgt_path(path, folder, "manifest.json");
    int rc = sgt_file_gone(path) ? SGT_OK : sgt_manifest_read(&m, folder, err);
    if (rc != SGT_ENOMEM) rc = SGT_OK;
    if (m.raw && !(*paths = calloc(m.count + 1, sizeof **paths))) rc = sgt_fail_memory(err, folder);
    for (size_t i = 0; m.raw && i < m.count && rc == SGT_OK; i++) {
        if (strcmp(m.shards[i].split, split)) continue;
        if (((*paths)[*count] = sgt_join(folder, m.shards[i].file))) ++*count;
        else rc = sgt_fail_memory(err, folder);
    }
    sgt_manifest_free(&m);
    return rc;
}

int sgt_shard_list(char ***paths, size_t *count, const char *folder, const char *split,
                   sgt_error *err)
{
    char **found = NULL;
    size_t n = 0;
    int rc = SGT_OK;
    DIR *dir = opendir(folder);
    if (!dir) return sgt_fail_errno(err, "%s", folder);
    for (naming how = OURS; how < NAMINGS && !n && rc == SGT_OK; how++) {
        rewinddir(dir);
        rc = collect(&found, &n, dir, how, folder, split, err);
        if (n) qsort(found, n, sizeof *found, by_bytes);
        if (rc == SGT_OK && how == NAMED) rc = one_name(found, n, folder, split, err);
    }
    closedir(dir);
    if (rc == SGT_OK && !n) {
        rc = collect_listed(&found, &n, folder, split, err);
        if (n) qsort(found, n, sizeof *found, by_bytes);
    }
    if (rc < 0) {
        sgt_shard_list_free(found, n);
        return rc;
    }
    *paths = found;
    *count = n;
    return SGT_OK;
}

void sgt_shard_list_free(char **paths, size_t count)
{
    for (size_t i = 0; i < count; i++) free(paths[i]);
    free(paths);
}

/* ---- paths ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Add a shard with nothing but its path filled in. Takes ownership of the path, on failure too;
 * NULL: it could not be allocated. */
static int add_path(sgt_set *s, char *path, sgt_error *err)
{
    int rc =
        path ? sgt_reserve(&s->shards, &s->room, s->count + (size_t)1, sizeof *s->shards, path, err)
             : sgt_fail_memory(err, "the path of a shard");
    if (rc < 0) free(path);
    else
        s->shards[s->count++] =
            (sgt_set_shard){.path = path, .documents = UINT64_MAX, .raw = s->raw};
    return rc;
}

/* ---- a folder without a manifest ---- */

/* Fail if sgt-tokenize did not finish: it works in OUT/.work, and writes the manifest last. So
 * OUT/.work without a manifest means that shards are missing. */
static int check_finished(const char *folder, sgt_error *err)
{
    char work[SGT_PATH];
    if (sgt_file_gone(sgt_path(work, folder, ".work"))) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: unfinished (the same sgt-tokenize command again finishes it)", folder);
}

/* Open nanoGPT's SPLIT.bin (train.bin, val.bin) in a folder without other shards. */
static int one_raw(sgt_set *s, const char *folder, const sgt_loader_options *o, sgt_error *err)
{
    char path[SGT_PATH];
    if (sgt_file_gone(sgt_path(path, folder, "%s.bin", o->split))) return SGT_OK;
    if (o->raw) return add_path(s, strdup(path), err);
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: no %s shards in it, but a %s.bin (if that is nanoGPT's, without a header, "
                    "pass the file itself)",
                    folder, o->split, o->split);
}

static int list_folder(sgt_set *s, const char *folder, const sgt_loader_options *o, sgt_error *err)
{
    char **paths;
    size_t n;
    int rc = check_finished(folder, err);
    if (rc < 0 || (rc = sgt_shard_list(&paths, &n, folder, o->split, err)) < 0) return rc;
    for (size_t i = 0; i < n && rc == SGT_OK; i++) {
        rc = add_path(s, paths[i], err);
        paths[i] = NULL;
    }
    sgt_shard_list_free(paths, n);
    return rc < 0 || n ? rc : one_raw(s, folder, o, err);
}

/* ---- a folder with one ---- */

static int hash_manifest(sgt_set *s, const char *path, sgt_error *err)
{
    char *text;
    size_t n;
    int rc = sgt_file_get(&text, &n, path, MANIFEST_MAX, err);
    if (rc < 0) return rc;
    s->hash = XXH3_64bits(text, n);
    free(text);
    return SGT_OK;
}

static int add_listed(sgt_set *s, const sgt_manifest *m, const char *folder, const char *split,
                      sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < m->count && rc == SGT_OK; i++)
        if (strcmp(m->shards[i].split, split) == 0)
            rc = add_path(s, sgt_join(folder, m->shards[i].file), err);
    return rc;
}

/* Check that shards agree with the manifest. Both were written together, so a difference means that
 * a shard was replaced. */
static int agree(sgt_set *s, const sgt_manifest *m, const char *split, const char *manifest,
                 sgt_error *err)
{
    sgt_set_shard *next = s->shards + s->first;
    for (size_t i = 0; i < m->count; i++) {
        if (strcmp(m->shards[i].split, split)) continue;
        sgt_set_shard *h = next++;
        h->documents = m->shards[i].documents;
        if (h->head.tokens != m->shards[i].tokens)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: %" PRIu64 " tokens, but %s says %" PRIu64
                            " (make the folder again)",
                            h->path, h->head.tokens, manifest, m->shards[i].tokens);
        if (h->head.xxh3 && m->shards[i].xxh3 && h->head.xxh3 != m->shards[i].xxh3)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: checksum %016" PRIx64 ", but %s says %016" PRIx64
                            " (make the folder again)",
                            h->path, h->head.xxh3, manifest, m->shards[i].xxh3);
    }
    return SGT_OK;
}

/* ---- headers ---- */

static void hash_header(XXH3_state_t *hash, const sgt_set_shard *h)
{
    uint8_t bytes[SGT_SHARD_HEADER];
    uint64_t size = sgt_shard_bytes(&h->head);
    const char *name = base_name(h->path);
    sgt_shard_pack(bytes, &h->head);
    XXH3_64bits_update(hash, name, strlen(name) + 1);
    XXH3_64bits_update(hash, &size, sizeof size);
    XXH3_64bits_update(hash, bytes, sizeof bytes);
}

/* Hash the tokens at both ends of a shard whose header has no checksum. That tells sets with equal
 * names and sizes apart without reading them. */
static int hash_ends(XXH3_state_t *hash, const sgt_set_shard *h, int fd, sgt_error *err)
{
    uint8_t bytes[ENDS];
    uint64_t data = h->head.data, end = sgt_shard_bytes(&h->head);
    size_t n = end - data < ENDS ? (size_t)(end - data) : ENDS;
    if (h->head.xxh3) return SGT_OK;
    for (int last = 0; last < 2; last++) {
        int rc = sgt_pread_all(fd, bytes, n, last ? end - n : data, h->path, err);
        if (rc < 0) return rc;
        XXH3_64bits_update(hash, bytes, n);
    }
    return SGT_OK;
}

/* Read and check Megatron-LM's whole .idx, for every sampling, because it must agree with the
 * .bin. */
static int read_index(XXH3_state_t *hash, sgt_set_shard *h, sgt_error *err)
{
    sgt_megatron m;
    if (h->head.format != SGT_SHARD_MEGATRON) return SGT_OK;
    int rc = sgt_megatron_read(&m, h->path, h->head.tokens, NULL, NULL, err);
    if (rc < 0) return rc;
    h->documents = m.documents;
    XXH3_64bits_update(hash, &m.hash, sizeof m.hash);
    return SGT_OK;
}

static int record_file(sgt_set_shard *h, int fd, sgt_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0) return sgt_fail_errno(err, "%s", h->path);
    h->device = st.st_dev;
    h->inode = st.st_ino;
    h->written = st.st_mtim;
    return SGT_OK;
}

static int read_headers(sgt_set *s, const char *path, sgt_error *err)
{
    XXH3_state_t *hash = XXH3_createState();
    int rc = SGT_OK;
    if (!hash) return sgt_fail_memory(err, path);
    XXH3_64bits_reset(hash);
    for (uint32_t i = s->first; i < s->count; i++) {
        int fd = sgt_shard_open(&s->shards[i].head, s->shards[i].path, s->shards[i].raw, err);
        if (fd < 0) {
            rc = fd;
            break;
        }
        s->shards[i].eot = s->shards[i].head.revision ? s->shards[i].head.eot : GPT2_EOT;
        rc = record_file(&s->shards[i], fd, err);
        hash_header(hash, &s->shards[i]);
        if (rc == SGT_OK) rc = hash_ends(hash, &s->shards[i], fd, err);
        close(fd);
        if (rc < 0 || (rc = read_index(hash, &s->shards[i], err)) < 0) break;
    }
    s->hash = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    return rc;
}

/* Check that all shards have one vocabulary, and set the size that every id must be below: the headers'
 * or the caller's, whichever is smaller. */
static int decide_vocabulary(sgt_set *s, uint32_t asked, sgt_error *err)
{
    const sgt_set_shard *sized = NULL, *marked = NULL;
    for (uint32_t i = s->first; i < s->count; i++) {
        const sgt_set_shard *h = &s->shards[i];
        if (h->head.vocab && !sized) sized = h;
        if (h->head.fingerprint && !marked) marked = h;
        if (h->head.vocab && h->head.vocab != sized->head.vocab)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: a vocabulary of %" PRIu32 ", but %s has %" PRIu32
                            ": shards of one set share one",
                            h->path, h->head.vocab, sized->path, sized->head.vocab);
        if (h->head.fingerprint && h->head.fingerprint != marked->head.fingerprint)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: vocabulary %016" PRIx64 ", but %s has %016" PRIx64
                            ": shards of one set share one",
                            h->path, h->head.fingerprint, marked->path, marked->head.fingerprint);
    }
    s->vocab = sized ? sized->head.vocab : asked ? asked : GPT2_VOCAB;
    if (asked && asked < s->vocab) s->vocab = asked;
    return SGT_OK;
}

static int leave_out_short(sgt_set *s, const char *path, const sgt_loader_options *o,
                           sgt_error *err)
{
    uint32_t all = s->count - s->first, skipped,
             most = sgt_sampling_of_documents(o->sampling) ? 0 : o->seq;
    sgt_set_shard longest = {0}; /* longest of the shards that are too short for a window */
    s->count = s->first;
    for (uint32_t i = s->first; i < s->first + all; i++) {
        if (s->shards[i].head.tokens > most) {
            s->tokens += s->shards[i].head.tokens;
            s->shards[s->count++] = s->shards[i];
        } else {
            int longer = !longest.path || s->shards[i].head.tokens > longest.head.tokens;
            free(longer ? longest.path : s->shards[i].path);
            if (longer) longest = s->shards[i];
        }
    }
    const int none = s->count == s->first;
    skipped = s->first + all - s->count;
    s->skipped += skipped;
    int rc = SGT_OK;
    uint64_t window = (uint64_t)most + 1;
    if (none && most == 0)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: no shard has a token (%s has none)", path,
                      longest.path);
    else if (none && longest.head.tokens < 2)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: no shard has two tokens (a row and its targets take more text)", path);
    else if (none)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: rows of %" PRIu32 " tokens need a shard of %" PRIu64
                      " or more, and the longest, %s, has %" PRIu64
                      " (take a sequence length of at most %" PRIu64 ", or more text)",
                      path, most, window, longest.path, longest.head.tokens,
                      longest.head.tokens - 1);
    else if (skipped)
        sgt_say(&o->notice,
                "%s: left out %" PRIu32 " of %" PRIu32 " shards with fewer than the %" PRIu64
                " tokens of a window (%s has %" PRIu64 ")",
                path, skipped, all, window, longest.path, longest.head.tokens);
    free(longest.path);
    return rc;
}

static int check_shards(sgt_set *s, const char *path, const sgt_loader_options *o, sgt_error *err)
{
    if (s->count == s->first)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: no %s shards in it, %s_*.bin (sgt-tokenize%s makes them)", path,
                        o->split, o->split, strcmp(o->split, "val") ? "" : " --split 5%");
    int rc = read_headers(s, path, err);
    return rc < 0 ? rc : decide_vocabulary(s, o->vocab, err);
}

/* Files without a header cannot name their vocabulary; their manifest does. */
static void adopt_vocabulary(sgt_set *s, const sgt_manifest *m, uint32_t asked)
{
    if (!m->foreign || !m->vocab) return;
    s->vocab = asked && asked < m->vocab ? asked : m->vocab;
    for (uint32_t i = s->first; i < s->count; i++) {
        s->shards[i].eot = m->eot;
        s->shards[i].head.fingerprint = m->fingerprint;
    }
}

static int open_folder(sgt_set *s, const char *folder, const sgt_loader_options *o, sgt_error *err)
{
    int rc;
    char path[SGT_PATH];
    sgt_path(path, folder, "manifest.json");
    if (s->raw || sgt_file_gone(path)) {
        if ((rc = list_folder(s, folder, o, err)) == 0) rc = check_shards(s, folder, o, err);
    } else {
        sgt_manifest m = {0};
        if ((rc = sgt_manifest_read(&m, folder, err)) == 0) s->raw = m.raw ? SGT_SHARD_RAW16 : 0;
        if (rc == 0 && (rc = add_listed(s, &m, folder, o->split, err)) == 0 &&
            (rc = check_shards(s, folder, o, err)) == 0 &&
            (rc = agree(s, &m, o->split, path, err)) == 0)
            rc = hash_manifest(s, path, err);
        adopt_vocabulary(s, &m, o->vocab);
        sgt_manifest_free(&m);
    }
    return rc;
}

/* Ids must be below the vocabulary sizes of all sets, of which `before` is that of earlier ones, and
 * stand for the same tokens. */
static int join_vocabulary(sgt_set *s, uint32_t before, sgt_error *err)
{
    const sgt_set_shard *a = sgt_set_marked(s), *b = a;
    if (before && before < s->vocab) s->vocab = before;
    for (uint32_t i = s->count; i > s->first; i--)
        if (s->shards[i - 1].head.fingerprint) b = &s->shards[i - 1];
    if (!a || a->head.fingerprint == b->head.fingerprint) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: vocabulary %016" PRIx64 ", but %s has %016" PRIx64
                    ": sets that are mixed share one",
                    b->path, b->head.fingerprint, a->path, a->head.fingerprint);
}

int sgt_set_open(sgt_set *s, const char *path, const sgt_loader_options *o, sgt_error *err)
{
    struct stat st;
    uint32_t vocab = s->vocab;
    /* the .bin file, if `path` is Megatron-LM's PREFIX (which is not a file) or PREFIX.idx */
    char *shard = NULL;
    int rc, folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (!folder) shard = sgt_megatron_shard(path);
    if (!folder && !shard && access(path, F_OK) < 0)
        return sgt_fail_path(err, path, "sgt-tokenize makes a folder of shards");
    s->first = s->count;
    s->raw = o->raw ? 1 : folder ? 0 : -1;
    if (folder) rc = open_folder(s, path, o, err);
    else if ((rc = add_path(s, strdup(shard ? shard : path), err)) == 0)
        rc = check_shards(s, path, o, err);
    free(shard);
    if (rc == 0) rc = leave_out_short(s, path, o, err);
    return rc < 0 ? rc : join_vocabulary(s, vocab, err);
}

void sgt_set_close(sgt_set *s)
{
    for (uint32_t i = 0; i < s->count; i++) free(s->shards[i].path);
    free(s->shards);
    *s = (sgt_set){0};
}

const sgt_set_shard *sgt_set_marked(const sgt_set *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->shards[i].head.fingerprint) return &s->shards[i];
    return NULL;
}

static int same_header(const sgt_shard_header *a, const sgt_shard_header *b)
{
    return a->tokens == b->tokens && a->data == b->data && a->xxh3 == b->xxh3 &&
           a->vocab == b->vocab && a->format == b->format;
}

static int same_file(const sgt_set_shard *a, const sgt_set_shard *b)
{
    return a->device == b->device && a->inode == b->inode &&
           a->written.tv_sec == b->written.tv_sec && a->written.tv_nsec == b->written.tv_nsec;
}

int sgt_set_open_shard(const sgt_set *s, uint32_t shard, sgt_error *err)
{
    const sgt_set_shard *h = &s->shards[shard];
    sgt_set_shard now = {.path = h->path};
    int fd = sgt_shard_open(&now.head, h->path, h->raw, err);
    if (fd < 0) return fd;
    int rc = record_file(&now, fd, err);
    if (rc == SGT_OK && (!same_header(&now.head, &h->head) || !same_file(&now, h)))
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: written or replaced since the set was opened (open it again)", h->path);
    if (rc == SGT_OK) return fd;
    close(fd);
    return rc;
}

int sgt_set_is_cut(const sgt_set_shard *h, uint64_t *end)
{
    struct stat st;
    if (stat(h->path, &st) < 0 || st.st_dev != h->device || st.st_ino != h->inode) return 0;
    *end = (uint64_t)st.st_size;
    return *end < sgt_shard_bytes(&h->head);
}

uint32_t sgt_set_eot(const sgt_set *s, uint32_t shard) { return s->shards[shard].eot; }

int sgt_set_bad_id(const sgt_set *s, uint32_t shard, uint64_t token, uint16_t id, sgt_error *err)
{
    const sgt_set_shard *h = &s->shards[shard];
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: token %" PRIu64 " (byte %" PRIu64 "): id %u, expected below %" PRIu32,
                    h->path, token, h->head.data + 2 * token, id, s->vocab);
}
