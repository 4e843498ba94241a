/* paths_cache.c: reads and writes self-check.json, and converts verdicts to JSON for state.json. */
#include "train/paths_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "train/paths.h"
#include "loader/shards/json_dumps.h"

#define MOST_BYTES ((size_t)1 << 20)
#define MOST_KEYS 64 /* most keys; each build adds one, and a full file is emptied */

int sgt_paths_lock(const char *folder, const sgt_stop *stop, sgt_error *err)
{
    int rc = sgt_make_folders(folder, err), fd;
    if (rc < 0) return rc;
    char *path = sgt_join(folder, "self-check.lock");
    if (!path) return sgt_fail_memory(err, folder);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) rc = sgt_fail_errno(err, "%s", path);
    while (rc == SGT_OK && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) rc = sgt_fail_errno(err, "%s", path);
        else if (sgt_stopped(stop)) rc = SGT_ESTOPPED;
        else poll(NULL, 0, 50);
    }
    if (rc < 0 && fd >= 0) close(fd);
    free(path);
    return rc < 0 ? rc : fd;
}

/* Return the file's object, or an empty one if the file cannot be read. */
static json_t *read_file(const char *folder)
{
    char *path = sgt_join(folder, "self-check.json"), *text = NULL;
    size_t n;
    json_t *json = NULL;
    if (path && sgt_file_get(&text, &n, path, MOST_BYTES, NULL) == SGT_OK)
        json = json_loads(text, 0, NULL);
    free(text);
    free(path);
    if (json_is_object(json)) return json;
    json_decref(json);
    return json_object();
}

static int is_verdict(const char *word)
{
    static const char *const words[] = {"ok", "absent", "wrong", "failed", "crashed", "hung"};
    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word) == 0) return 1;
    return 0;
}

int sgt_paths_read(sgt_verdicts *v, const char *folder, const char *key)
{
    json_t *json = read_file(folder);
    const json_t *kept = json_object_get(json, key);
    int found = 1;
    for (size_t i = 0; i < v->count && found; i++) {
        const json_t *pair = json_object_get(kept, v->of[i].path);
        const char *word = json_string_value(json_array_get(pair, 0));
        const char *why = json_string_value(json_array_get(pair, 1));
        found = is_verdict(word) && why;
        if (!found) break;
        snprintf(v->of[i].verdict, sizeof v->of[i].verdict, "%s", word);
        snprintf(v->of[i].why, sizeof v->of[i].why, "%s", why);
    }
    json_decref(json);
    return found;
}

int sgt_paths_write(const sgt_verdicts *v, const char *folder, const char *key, sgt_error *err)
{
    json_t *json = read_file(folder), *mine = json_object();
    if (json_object_size(json) >= MOST_KEYS) json_object_clear(json);
    int bad = 0;
    for (size_t i = 0; i < v->count; i++)
        bad |= json_object_set_new(mine, v->of[i].path,
                                   json_pack("[s, s]", v->of[i].verdict, v->of[i].why));
    bad |= json_object_set_new(json, key, mine);
    char *path = sgt_join(folder, "self-check.json"),
         *text = bad ? NULL : sgt_json_dumps(json, JSON_INDENT(1));
    int rc =
        text && path ? sgt_file_put(path, text, strlen(text), err) : sgt_fail_memory(err, folder);
    free(text);
    free(path);
    json_decref(json);
    return rc;
}

char *sgt_paths_json(const sgt_verdicts *v)
{
    json_t *json = json_object();
    int bad = 0;
    for (size_t i = 0; i < v->count; i++)
        bad |= json_object_set_new(json, v->of[i].path, json_string(v->of[i].verdict));
    char *text = bad ? NULL : sgt_json_dumps(json, 0);
    json_decref(json);
    return text;
}

const sgt_checked *sgt_paths_differ(const sgt_verdicts *v, const char *text, char then[12])
{
    json_t *json = json_loads(text, 0, NULL);
    const sgt_checked *differs = NULL;
    for (size_t i = 0; i < v->count && !differs; i++) {
        const sgt_checked *c = &v->of[i];
        const char *word = json_string_value(json_object_get(json, c->path));
        snprintf(then, 12, "%s", word ? word : "ok");
        if (word ? strcmp(word, c->verdict) != 0 : !sgt_checked_good(c)) differs = c;
    }
    json_decref(json);
    return differs;
}
