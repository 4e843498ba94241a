/* list.c: find the files of a folder that are shards of a split, by their names: sgt's names first,
 * then those of other programs. If there are none, a manifest may list files without a header. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "loader/shards/manifest.h"
#include "loader/shards/megatron.h"
#include "loader/shards/shard.h"

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
static int says(const char *name, const char *word)
{
    size_t w = strlen(word);
    return (!strncmp(name, word, w) && (name[w] == '_' || name[w] == '.')) || find_word(name, word);
}

static int is_megatron(const char *folder, const char *name, const char *split, sgt_error *err)
{
    int val = says(name, "val") || says(name, "valid") || says(name, "validation");
    if (strcmp(split, "val") == 0 ? !val : strcmp(split, "train") || val || says(name, "test"))
        return 0;
    char *path = sgt_join(folder, name);
    int rc = path ? sgt_megatron_beside(path, err) : sgt_fail_memory(err, folder);
    free(path);
    return rc;
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
        if (*count == room) {
            room = room ? 2 * room : 64;
            char **more = realloc(*paths, room * sizeof **paths);
            if (!more) return sgt_fail_memory(err, folder);
            *paths = more;
        }
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
    char *path = sgt_join(folder, "manifest.json");
    int rc = path ? SGT_OK : sgt_fail_memory(err, folder);
    if (!rc && !sgt_file_gone(path) && sgt_manifest_read(&m, folder, err) == SGT_ENOMEM)
        rc = SGT_ENOMEM;
    free(path);
    if (!rc && m.raw && !(*paths = calloc(m.count + 1, sizeof **paths)))
        rc = sgt_fail_memory(err, folder);
    for (size_t i = 0; i < m.count && m.raw && !rc; i++) {
        if (strcmp(m.shards[i].split, split)) continue;
        if (!((*paths)[*count] = sgt_join(folder, m.shards[i].file)))
            rc = sgt_fail_memory(err, folder);
        else ++*count;
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
