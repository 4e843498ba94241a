/* cache.c: reads and writes the JSON files of the cache folder. */
#include "train/cache.h"

#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "loader/base/json.h"

#define MOST_BYTES ((size_t)1 << 20)
/* maximum number of keys in a file; each pair of a machine and a build of sgt has a key of its
 * own */
#define MOST_KEYS 64

json_t *sgt_cache_read(const char *folder, const char *name)
{
    char path[SGT_PATH], *text = NULL;
    size_t n;
    json_t *json = NULL;
    sgt_path(path, folder, "%s", name);
    if (sgt_file_get(&text, &n, path, MOST_BYTES, NULL) == SGT_OK) json = json_loads(text, 0, NULL);
    free(text);
    if (json_is_object(json)) return json;
    json_decref(json);
    return json_object();
}

int sgt_cache_write(const char *folder, const char *name, const char *key, json_t *value,
                    sgt_error *err)
{
    json_t *json = sgt_cache_read(folder, name);
    if (json_object_size(json) >= MOST_KEYS) json_object_clear(json);
    int bad = json_object_set_new(json, key, value);
    char path[SGT_PATH], *text = bad ? NULL : sgt_json_dumps(json, JSON_INDENT(1));
    sgt_path(path, folder, "%s", name);
    int rc = text ? sgt_file_put(path, text, strlen(text), err) : sgt_fail_memory(err, folder);
    free(text);
    json_decref(json);
    return rc;
}
