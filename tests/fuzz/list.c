/* list.c: an @LIST of paths is refused with a message of one line, or gives the files that it
 * names, each once, in the order of the list. */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"
#include "tokenize/input/corpus.h"

/* Create folder in/ with some files, and in/d/. No path of the list leads out of in/, even with
 * "..". */
static void make_files(void)
{
    static int made;
    if (made++) return;
    must(mkdir(path_of("in"), 0700) == 0 && mkdir(path_of("in/d"), 0700) == 0,
         "folders can be made");
    put_file("in/a", "a", 1);
    put_file("in/b.jsonl", "{}", 2);
    put_file("in/d/c.gz", "", 0);
    must(symlink("..", path_of("in/d/up")) == 0, "links can be made");
}

static void check_files(const sgt_corpus *c)
{
    uint64_t bytes = 0;
    must(c->count > 0, "a list that is taken names a file");
    for (size_t i = 0; i < c->count; i++) {
        struct stat st;
        must(stat(c->files[i].path, &st) == 0 && S_ISREG(st.st_mode), "what is listed is a file");
        must(c->files[i].size == (uint64_t)st.st_size, "of the size that it has");
        char *name = sgt_corpus_line(c, i, 0, 0, NULL);
        must(name && !strpbrk(name, "\n\033"), "its name can be written in JSON");
        free(name);
        bytes += c->files[i].size;
    }
    must(bytes == c->bytes, "the sizes add up");
}

void fuzz_list(const uint8_t *data, size_t size)
{
    sgt_corpus *c;
    sgt_error err;
    char *text = malloc(size + 1);
    make_files();
    must(text != NULL, "there is memory");
    for (size_t i = 0; i < size; i++)
        text[i] = data[i] == '/' && !(i && data[i - 1] == 'd') ? '_' : (char)data[i];
    char at[256];
    snprintf(at, sizeof at, "@%s", put_file("list", text, size));
    free(text);
    const char *inputs[] = {at};
    int before = open(".", O_PATH | O_CLOEXEC);
    must(before >= 0 && chdir(path_of("in")) == 0, "we can be there");
    const sgt_tokenize_options o = {.inputs = inputs, .input_count = 1, .out = "out"};
    int rc = sgt_corpus_list(&c, &o, &err);
    if (rc < 0) must_say(rc, &err);
    else check_files(c);
    must(fchdir(before) == 0 && close(before) == 0, "and back");
    if (rc == 0) sgt_corpus_free(c);
}
