/* gloss.c: short explanations of the kinds of memory on the page. */
#include <string.h>

#include "tools/report/figures.h"

static const struct {
    const char *name, *is;
} kinds[] = {
    {"weights", "the model's parameters, 4 bytes each"},
    {"16-bit copies", "the weights rounded to 16 bits, for matrix products"},
    {"rounded weights", "the weights rounded to the precision of the products"},
    {"moments", "the optimizer's running means: two for each parameter with AdamW, one "
                "for each with SGD, and for the matrices with Muon"},
    {"gradients", "the loss's derivative for each parameter"},
    {"activations", "what the forward pass computes and the backward pass needs again"},
    {"activation gradients", "derivatives on their way back through the layers"},
    {"attention", "working space of attention"},
    {"products", "working space of matrix products: packed operands"},
    {"Muon", "working space of the optimizer Muon: the matrix that it makes orthogonal"},
    {"workspace", "working space of the library that computes matrix products"},
    {"head",
     "the scores of the next token, one for each id of the vocabulary, and their gradients"},
    {"scratch", "working space that several kernels share"},
    {"data", "the batch: token ids"},
    {"page rest", "the rest of the last huge page of 2 MiB"},
    {"loader", "shards and batches that the loader keeps in memory"},
    {"checkpoint", "the copy that is written to disk while training goes on"},
    {"program", "the program itself and its libraries"},
};

static int has_kind(const report *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++) {
        const report_run *run = &r->runs[i];
        for (size_t k = 0; k < run->memory.kind_count; k++)
            if (strcmp(run->memory.kinds[k], name) == 0) return 1;
        for (size_t k = 0; k < run->estimate.count && run->estimated; k++)
            if (strcmp(run->estimate.kinds[k].name, name) == 0) return 1;
    }
    return 0;
}

void report_put_gloss(FILE *page, const report *r)
{
    fputs("<dl class=\"gloss\">\n", page);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (has_kind(r, kinds[i].name))
            fprintf(page, "<div><dt>%s</dt><dd>%s</dd></div>\n", kinds[i].name, kinds[i].is);
    fputs("<div><dt>peak of the run</dt><dd>the most memory that the process, or the GPU, had in "
          "use at any time</dd></div>\n</dl>\n",
          page);
}
