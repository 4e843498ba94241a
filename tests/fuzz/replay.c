/* replay.c: a main function for the fuzz targets, which runs a target on every file of the given
 * folders. The last line of output is a summary. */
#include <dirent.h>

#include "tests/fuzz/fuzz.h"

static int try_file(const char *folder, const char *name)
{
    sgt_error err;
    size_t n;
    char *data, *path = sgt_join(folder, name);
    must(path != NULL, "there is memory");
    int rc = sgt_file_get(&data, &n, path, (size_t)1 << 24, &err);
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    else LLVMFuzzerTestOneInput((const uint8_t *)data, n);
    if (rc == 0) printf("ok    %s\n", path), free(data);
    free(path);
    return rc;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        if (!d) failed++;
        for (const struct dirent *e; d && (e = readdir(d));) {
            if (e->d_name[0] == '.') continue;
            if (try_file(argv[i], e->d_name) < 0) failed++;
            else passed++;
        }
        if (d) closedir(d);
    }
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed || !passed;
}
