/* set.c: make a list of checked shards from a folder of shards, or from a single file. If the
 * folder has a manifest, its shards are those that the manifest lists. Otherwise shards are found
 * by their names: first by names that sgt gives, and then by names that other programs give. */
#include "loader/shards/set.h"

#include <dirent.h>
#include <inttypes.h>
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

#define GPT2_EOT (SGT_GPT2_IDS - 1)
/* number of bytes that are hashed at each end of a shard that has no checksum, because hashing all
 * its tokens would take too long */
#define ENDS ((size_t)4096)

/* ---- the names of shards ---- */

/* Naming schemes of shards, in the order in which they are tried. OURS: "SPLIT_*.bin"; NAMED: a
 * name that contains SPLIT as a word; MEGATRON: a .bin file that has an .idx file of Megatron-LM;
 * NANOGPT: "SPLIT.bin". */
typedef enum naming { OURS, NAMED, MEGATRON, NANOGPT, NAMINGS } naming;

/* Return the address in `name` of the first "_WORD_" or "_WORD.", where WORD stands for the string
 * `word`. Return NULL if there is none. */
static const char *find_word(const char *name, const char *word)
{
    size_t w = strlen(word);
    for (const char *at = strchr(name, '_'); at; at = strchr(at + 1, '_'))
        if (!strncmp(at + 1, word, w) && (at[w + 1] == '_' || at[w + 1] == '.')) return at;
    return NULL;
}

/* Return 1 if the file name contains `word` as a word, that is, at the beginning or after "_", and
 * followed by "_" or ".". Otherwise return 0. */
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

/* Return 1 if a file called `name` is a shard of the split `split` according to the naming scheme
 * `how`, 0 if it is not, or a negative SGT_E*. */
static int is_shard(naming how, const char *folder, const char *name, const char *split,
                    sgt_error *err)
{
    size_t s = strlen(split);
    if (how == OURS) return !strncmp(name, split, s) && name[s] == '_';
    if (how == NAMED) return find_word(name, split) != NULL;
    if (how == NANOGPT) return !strncmp(name, split, s) && !strcmp(name + s, ".bin");
    return is_megatron(folder, name, split, err);
}

/* ---- one shard ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Compare the header of a shard with the entry of the shard in the manifest. Values that
 * appear in both must be equal. The two were written together, so a difference means that the shard
 * has been replaced since then. */
static int compare_listed(sgt_set_shard *h, const sgt_manifest *m, const sgt_manifest_shard *listed,
                          sgt_error *err)
{
    const int folder = (int)(base_name(h->path) - h->path);
    sgt_shard_header *head = &h->head;
    if (head->tokens != listed->tokens)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: %" PRIu64 " tokens, but %.*smanifest.json says %" PRIu64, h->path,
                        head->tokens, folder, h->path, listed->tokens);
    if (m->foreign) { /* the shard has no header, so take these values from the manifest */
        head->vocab = m->vocab;
        head->eot = h->eot = m->eot;
        head->fingerprint = m->fingerprint;
        head->xxh3 = listed->xxh3;
    }
    const struct {
        const char *what;
        int byte;
        uint64_t got, want;
    } marks[] = {{"checksum", 32, head->xxh3, listed->xxh3},
                 {"vocabulary", 24, head->fingerprint, m->fingerprint}};
    for (size_t i = 0; i < 2 && head->revision; i++)
        if (marks[i].want && marks[i].got != marks[i].want)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: at byte %d: %s %016" PRIx64
                            ", but %.*smanifest.json says %016" PRIx64,
                            h->path, marks[i].byte, marks[i].what, marks[i].got, folder, h->path,
                            marks[i].want);
    if (!head->revision || !m->vocab || (head->vocab == m->vocab && head->eot == m->eot))
        return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: at byte 16: a vocabulary of %" PRIu32 " ids with end-of-text id %" PRIu32
                    ", but %.*smanifest.json says %" PRIu32 " and %" PRIu32,
                    h->path, head->vocab, head->eot, folder, h->path, m->vocab, m->eot);
}

static int record_file(sgt_set_shard *h, int fd, sgt_error *err)
{
    return fstat(fd, &h->file) < 0 ? sgt_fail_errno(err, "%s", h->path) : SGT_OK;
}

/* Read and check the header of a shard. If the shard is one of Megatron-LM, also check its entire
 * .idx file, even if the sampling does not need it. */
static int check_shard(sgt_set_shard *h, const sgt_manifest *m, const sgt_manifest_shard *listed,
                       sgt_error *err)
{
    uint64_t *starts = NULL;
    size_t documents;
    if (listed) h->documents = listed->documents;
    if (listed && sgt_file_gone(h->path))
        return sgt_fail(err, SGT_EFORMAT, "%s: missing, but %.*smanifest.json lists it", h->path,
                        (int)(base_name(h->path) - h->path), h->path);
    int fd = sgt_shard_open(&h->head, h->path, h->raw, err);
    if (fd < 0) return fd;
    int rc = record_file(h, fd, err);
    close(fd);
    h->eot = h->head.revision ? h->head.eot : h->head.width == 2 ? GPT2_EOT : SGT_NO_ID;
    if (rc == SGT_OK && h->head.format == SGT_SHARD_MEGATRON) {
        rc = sgt_megatron_read(&starts, &documents, &h->index, h->path, h->head.tokens, err);
        if (rc == SGT_OK && !listed) h->documents = documents;
        free(starts);
    }
    if (rc < 0 || !listed) return rc;
    return sgt_fail_hint(err, compare_listed(h, m, listed, err), "make the folder again");
}

int sgt_set_keep_damage(sgt_set *s, sgt_set_shard *h, int rc, sgt_error *err)
{
    if (!s->survey || (rc != SGT_EFORMAT && rc != SGT_EIO)) return rc;
    if (h->damage) return SGT_OK;
    if (!(h->damage = strdup(err->text))) return sgt_fail_memory(err, h->path);
    s->damaged++;
    return SGT_OK;
}

/* ---- the shards of a set ---- */

/* Add a shard to s. `listed` is the entry of the shard in the manifest m, or NULL if the manifest
 * has none. */
static int add_shard(sgt_set *s, const char *path, int raw, const sgt_manifest *m,
                     const sgt_manifest_shard *listed, sgt_error *err)
{
    char *own = NULL;
    if (sgt_reserve(&s->shards, &s->room, s->count + 1, sizeof *s->shards, path, NULL) < 0 ||
        !(own = strdup(path)))
        return sgt_fail_memory(err, "a set of shards");
    sgt_set_shard *h = &s->shards[s->count++];
    *h = (sgt_set_shard){.path = own, .raw = raw, .documents = UINT64_MAX};
    return sgt_set_keep_damage(s, h, check_shard(h, m, listed, err), err);
}

int sgt_set_add(sgt_set *s, const char *path, int raw, sgt_error *err)
{
    char shard[SGT_PATH];
    const char *named = raw ? sgt_megatron_shard(shard, path) : NULL;
    return add_shard(s, named ? named : path, raw, NULL, NULL, err);
}

static int add_listed(sgt_set *s, const char *folder, const char *split, int raw,
                      const sgt_manifest *m, sgt_error *err)
{
    char path[SGT_PATH];
    int rc = SGT_OK;
    for (size_t i = 0; i < m->count && rc == SGT_OK; i++)
        if (strcmp(m->shards[i].split, split) == 0)
            rc = add_shard(s, sgt_path(path, folder, "%s", m->shards[i].file),
                           m->raw ? 8 * (int)sgt_id_width(m->vocab) + SGT_SHARD_SURE : raw, m,
                           &m->shards[i], err);
    return rc;
}

/* Check shards `first` and later, whose file names begin with NAME_SPLIT. Return an error unless
 * NAME is the same in all of them, because different NAMEs belong to different sets. */
static int one_name(const sgt_set *s, uint32_t first, const char *folder, const char *split,
                    sgt_error *err)
{
    const char *name = first < s->count ? base_name(s->shards[first].path) : "";
    for (uint32_t i = first + 1; i < s->count; i++) {
        const char *other = base_name(s->shards[i].path);
        if (strncmp(other, name, (size_t)(find_word(name, split) - name) + 1))
            return sgt_fail(
                err, SGT_EFORMAT,
                "%s: %s and %s belong to different sets (put each set into its own folder)", folder,
                name, other);
    }
    return SGT_OK;
}

static int is_bin(const struct dirent *e) { return sgt_shard_is_bin(e->d_name); }

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Add the shards of the split to s, sorted by name. They are found in the folder by their names. */
static int add_found(sgt_set *s, const char *folder, const char *split, int raw, sgt_error *err)
{
    struct dirent **files = NULL;
    char path[SGT_PATH];
    const uint32_t first = s->count;
    const int n = scandir(folder, &files, is_bin, by_bytes);
    if (n < 0) return sgt_fail_errno(err, "%s", folder);
    int rc = SGT_OK;
    for (naming how = OURS; how < NAMINGS && s->count == first && rc == SGT_OK; how++) {
        for (int i = 0; i < n && rc == SGT_OK; i++)
            if ((rc = is_shard(how, folder, files[i]->d_name, split, err)) > 0)
                rc = sgt_set_add(s, sgt_path(path, folder, "%s", files[i]->d_name),
                                 !raw && how == NANOGPT ? -1 : raw, err);
        if (rc == SGT_OK && how == NAMED) rc = one_name(s, first, folder, split, err);
    }
    for (int i = 0; i < n; i++) free(files[i]);
    free(files);
    return rc;
}

int sgt_set_add_split(sgt_set *s, const char *folder, const char *split, int raw,
                      const sgt_manifest *m, sgt_error *err)
{
    char path[SGT_PATH];
    const uint32_t first = s->count;
    if (m->options) return add_listed(s, folder, split, raw, m, err);
    int rc = add_found(s, folder, split, raw, err);
    /* a folder of OLMo-core contains train.npy and val.npy */
    if (rc == SGT_OK && s->count == first && raw &&
        !sgt_file_gone(sgt_path(path, folder, "%s.npy", split)))
        rc = sgt_set_add(s, path, raw, err);
    return rc;
}

/* ---- the hash of a set ---- */

/* Add the name, the size and the header of a shard to `hash`. If the header has no checksum, also
 * add the tokens at both ends of the shard. These tokens distinguish sets of equal names and sizes,
 * without reading all tokens. */
static int hash_shard(XXH3_state_t *hash, const sgt_set *s, uint32_t shard, sgt_error *err)
{
    const sgt_set_shard *h = &s->shards[shard];
    const char *name = base_name(h->path);
    uint8_t bytes[ENDS];
    uint64_t data = h->head.data, end = sgt_shard_bytes(&h->head);
    size_t n = end - data < ENDS ? (size_t)(end - data) : ENDS;
    int rc = SGT_OK, fd = -1;
    sgt_shard_pack(bytes, &h->head);
    XXH3_64bits_update(hash, name, strlen(name) + 1);
    XXH3_64bits_update(hash, &end, sizeof end);
    XXH3_64bits_update(hash, bytes, SGT_SHARD_HEADER);
    if (!h->head.xxh3 && (fd = sgt_set_open_shard(s, shard, err)) < 0) return fd;
    for (int last = 0; fd >= 0 && last < 2 && rc == SGT_OK; last++) {
        rc = sgt_pread_all(fd, bytes, n, last ? end - n : data, h->path, err);
        if (rc == SGT_OK) XXH3_64bits_update(hash, bytes, n);
    }
    if (fd >= 0) close(fd);
    if (h->head.format == SGT_SHARD_MEGATRON) XXH3_64bits_update(hash, &h->index, sizeof h->index);
    return rc;
}

static int hash_shards(sgt_set *s, const char *path, sgt_error *err)
{
    XXH3_state_t *hash = XXH3_createState();
    int rc = SGT_OK;
    if (!hash) return sgt_fail_memory(err, path);
    XXH3_64bits_reset(hash);
    for (uint32_t i = s->first; i < s->count && rc == SGT_OK; i++) rc = hash_shard(hash, s, i, err);
    s->hash = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    return rc;
}

/* ---- opening a set for a loader ---- */

/* Read the manifest of a folder if the folder has one and `raw` is 0. Return an error if the folder
 * has .work but no manifest: sgt-tokenize works in OUT/.work and writes the manifest last, so its
 * work is unfinished. */
static int read_manifest(sgt_manifest *m, const char *folder, int raw, sgt_error *err)
{
    char path[SGT_PATH];
    int rc = raw ? SGT_OK : sgt_manifest_find(m, folder, err);
    if (rc < 0 || m->options || sgt_file_gone(sgt_path(path, folder, ".work"))) return rc;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: unfinished (run the same sgt-tokenize command again to finish it)",
                    folder);
}

int sgt_set_check_alike(sgt_set *s, sgt_error *err)
{
    const sgt_set_shard *sized = NULL, *marked = sgt_set_marked(s), *whole = s->shards;
    const sgt_set_shard *const own = s->shards + s->first, *const end = s->shards + s->count;
    int rc = SGT_OK;
    while (whole < end && whole->damage) whole++;
    for (sgt_set_shard *h = s->shards + s->first; h < end && rc >= 0; h++) {
        if (h->damage) continue;
        if (h->head.vocab && !sized) sized = h;
        if (h->head.width != whole->head.width)
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: %zu-bit ids, but %s has %zu-bit ones: shards that are read together "
                          "must share a vocabulary",
                          h->path, 8 * h->head.width, whole->path, 8 * whole->head.width);
        else if (h->head.vocab && h->head.vocab != sized->head.vocab)
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: a vocabulary of %" PRIu32 ", but %s has %" PRIu32
                          ": shards of one set must share a vocabulary",
                          h->path, h->head.vocab, sized->path, sized->head.vocab);
        else if (h->head.fingerprint && h->head.fingerprint != marked->head.fingerprint)
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: vocabulary %016" PRIx64 ", but %s has %016" PRIx64
                          ": %s must share a vocabulary",
                          h->path, h->head.fingerprint, marked->path, marked->head.fingerprint,
                          marked < own ? "sets that are mixed" : "shards of one set");
        if (rc < 0) rc = sgt_set_keep_damage(s, h, rc, err);
    }
    return rc;
}

/* Check that all shards are compatible, and lower s->vocab to the vocabulary size of the set that
 * was opened last, if that is lower. This is the exclusive upper bound of the set's ids: the
 * smaller of the vocabulary size in its shards' headers and `asked`, the option of the caller. If
 * neither is known, the bound follows from the width of ids. */
static int decide_vocabulary(sgt_set *s, uint32_t asked, sgt_error *err)
{
    const int rc = sgt_set_check_alike(s, err);
    const sgt_set_shard *sized = s->shards + s->first, *const end = s->shards + s->count;
    if (rc < 0) return rc;
    s->width = s->shards->head.width;
    while (sized < end && !sized->head.vocab) sized++;
    uint32_t vocab = sgt_ids_bound(s->width);
    if (asked) vocab = asked;
    if (sized < end) vocab = sized->head.vocab;
    if (asked && asked < vocab) vocab = asked;
    if (!s->vocab || vocab < s->vocab) s->vocab = vocab;
    return SGT_OK;
}

static int fail_short(const char *path, const sgt_set_shard *longest, uint64_t window,
                      sgt_error *err)
{
    if (window == 1)
        return sgt_fail(err, SGT_EFORMAT, "%s: its shards have no tokens (the first is %s)", path,
                        longest->path);
    if (longest->head.tokens < 2)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: every shard has fewer than two tokens, but a row and its targets need "
                        "two (tokenize more text)",
                        path);
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: rows of %" PRIu64 " tokens need a shard of at least %" PRIu64
                    ", but the longest, %s, has only %" PRIu64
                    " (use a sequence length of at most %" PRIu64 ", or more text)",
                    path, window - 1, window, longest->path, longest->head.tokens,
                    longest->head.tokens - 1);
}

/* Remove the shards that are too short for a window from the set that was opened last. Return an
 * error if no shard is left. */
static int leave_out_short(sgt_set *s, const char *path, const sgt_loader_options *o,
                           sgt_error *err)
{
    const uint64_t window = sgt_sampling_of_documents(o->sampling) ? 1 : (uint64_t)o->seq + 1;
    uint32_t all = s->count - s->first, kept = s->first;
    int rc = SGT_OK;
    for (uint32_t i = s->first; i < s->count; i++) {
        sgt_set_shard h = s->shards[i];
        if (h.head.tokens < window) continue;
        s->tokens += h.head.tokens;
        s->shards[i] = s->shards[kept];
        s->shards[kept++] = h;
    }
    /* find the longest of the removed shards, which the message names */
    const sgt_set_shard *longest = s->shards + kept;
    for (uint32_t i = kept; i < s->count; i++)
        if (s->shards[i].head.tokens > longest->head.tokens) longest = &s->shards[i];
    if (kept == s->first) rc = fail_short(path, longest, window, err);
    else if (kept < s->count)
        sgt_say(&o->notice,
                "%s: skipping %" PRIu32 " of %" PRIu32 " shards, which have fewer than the %" PRIu64
                " tokens of a window (the longest of these, %s, has %" PRIu64 ")",
                path, s->count - kept, all, window, longest->path, longest->head.tokens);
    s->skipped += s->count - kept;
    while (s->count > kept) free(s->shards[--s->count].path);
    return rc;
}

int sgt_set_open(sgt_set *s, const char *path, const sgt_loader_options *o, sgt_error *err)
{
    struct stat st;
    sgt_manifest m = {0};
    int rc = SGT_OK, folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    s->first = s->count;
    if (folder) rc = read_manifest(&m, path, o->raw, err);
    if (rc == SGT_OK)
        rc = folder ? sgt_set_add_split(s, path, o->split, o->raw, &m, err)
                    : sgt_set_add(s, path, o->raw ? o->raw : -1, err);
    if (rc == SGT_OK && s->count == s->first)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: no %s shards (%s_*.bin) in it: make them with sgt-tokenize%s", path,
                      o->split, o->split, strcmp(o->split, "val") ? "" : " --split 5%");
    /* Do not send this notice for validation shards. A run opens them after the training shards,
     * which have the same format and for which the notice has already been sent. */
    if (rc == SGT_OK && folder && s->shards[s->first].raw < 0 && strcmp(o->split, "val") != 0 &&
        s->shards[s->first].head.format == SGT_SHARD_RAW)
        sgt_say(&o->notice, "%s has no header: reading it as nanoGPT's 16-bit ids",
                s->shards[s->first].path);
    if (rc == SGT_OK) rc = decide_vocabulary(s, o->vocab, err);
    s->hash = m.hash;
    if (rc == SGT_OK && !m.options) rc = hash_shards(s, path, err);
    if (rc == SGT_OK) rc = leave_out_short(s, path, o, err);
    sgt_manifest_free(&m);
    return rc;
}

void sgt_set_close(sgt_set *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        free(s->shards[i].path);
        free(s->shards[i].damage);
    }
    free(s->shards);
    *s = (sgt_set){0};
}

const sgt_set_shard *sgt_set_marked(const sgt_set *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->shards[i].head.fingerprint) return &s->shards[i];
    return NULL;
}

static int same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int sgt_set_open_shard(const sgt_set *s, uint32_t shard, sgt_error *err)
{
    const sgt_set_shard *h = &s->shards[shard];
    sgt_set_shard now = {.path = h->path};
    int fd = sgt_shard_open(&now.head, h->path, h->raw, err);
    if (fd < 0) return fd;
    int rc = record_file(&now, fd, err);
    if (rc == SGT_OK && (now.head.tokens != h->head.tokens || !same_file(&now.file, &h->file)))
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: was written or replaced after the set was opened (open the set again)",
                      h->path);
    if (rc == SGT_OK) return fd;
    close(fd);
    return rc;
}

int sgt_set_is_cut(const sgt_set_shard *h, uint64_t *end)
{
    struct stat st;
    if (stat(h->path, &st) < 0 || st.st_dev != h->file.st_dev || st.st_ino != h->file.st_ino)
        return 0;
    *end = (uint64_t)st.st_size;
    return *end < sgt_shard_bytes(&h->head);
}

int sgt_set_fail_read(const sgt_set_shard *h, uint64_t at, sgt_error *err)
{
    uint64_t end;
    if (sgt_set_is_cut(h, &end))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: ends at byte %" PRIu64
                        ", in the middle of a window: cut short while in use",
                        h->path, end);
    return sgt_fail(err, SGT_EIO,
                    "%s: at byte %" PRIu64
                    ": cannot read: the disk failed, or the file was cut short while in use",
                    h->path, at);
}
