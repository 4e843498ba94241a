/* fuzz.c: runs the target that the environment's FUZZ_TARGET names, for libFuzzer or for replay.c's
 * main function. */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>

#include "loader/base/cpu.h"

/* Table of targets, which tests/rules.mk and run.sh read as text. LEVELS: the target has code for
 * several CPU levels. */
enum { LEVELS = 1 };
static const struct target {
    const char *name;
    fuzz_check *check;
    int levels;
} targets[] = {
    {"config", fuzz_config, 0},
    {"encode", fuzz_encode, LEVELS},
    {"journal", fuzz_journal, 0},
    {"json", fuzz_json, LEVELS},
    {"llmc", fuzz_llmc, 0},
    {"manifest", fuzz_manifest, 0},
    {"packed", fuzz_packed, 0},
    {"parquet", fuzz_parquet, 0},
    {"printable", fuzz_printable, 0},
    {"rules", fuzz_rules, LEVELS},
    {"safetensors", fuzz_safetensors, 0},
    {"shard", fuzz_shard, LEVELS},
    {"state", fuzz_state, 0},
    {"vocab", fuzz_vocab, LEVELS},
};

void must(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "it does not hold that %s\n", what);
    abort();
}

void must_say(int code, const sgt_error *err)
{
    must(code < 0 && err->code == code, "the code that is returned is the error's");
    must(*err->text && strlen(err->text) < sizeof err->text, "an error says something");
    for (const char *s = err->text; *s; s++)
        must((unsigned char)*s >= 0x20 && *s != 0x7f, "it is one line of text");
}

int refused(int code, const sgt_error *err)
{
    if (code < 0) must_say(code, err);
    return code < 0;
}

/* ---- files ---- */

char own_folder[128];

static void remove_own_folder(void) { (void)sgt_remove_tree(own_folder, NULL); }

const char *path_of(const char *name)
{
    static char paths[4][sizeof own_folder + 64];
    static int at;
    if (!*own_folder) {
        const char *above = getenv("TMPDIR");
        if (!above) above = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(own_folder, sizeof own_folder, "%s/sgt-fuzz.XXXXXX", above);
        must(mkdtemp(own_folder) != NULL && atexit(remove_own_folder) == 0,
             "there is a place for files");
    }
    char *path = paths[at++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", own_folder, name);
    return path;
}

const char *put_file(const char *name, const void *data, size_t n)
{
    const char *path = path_of(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, data, n) == (ssize_t)n && close(fd) == 0, "a file can be written");
    return path;
}

/* ---- one input ---- */

/* Return the target that FUZZ_TARGET names. The first call limits the CPU level to FUZZ_CPU, if the
 * machine has it, before any other function of sgt is called. */
static const struct target *chosen(void)
{
    static const struct target *found;
    const char *name = getenv("FUZZ_TARGET"), *level = getenv("FUZZ_CPU");
    if (found) return found;
    for (size_t i = 0; name && i < sizeof targets / sizeof *targets; i++)
        if (strcmp(targets[i].name, name) == 0) found = &targets[i];
    must(found != NULL, "FUZZ_TARGET names a target");
    int rc = level ? sgt_cpu_limit(level, NULL) : SGT_OK;
    must(rc == SGT_OK || rc == SGT_EUNSUPPORTED, "FUZZ_CPU is a level");
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    chosen()->check(data, size);
    return 0;
}
