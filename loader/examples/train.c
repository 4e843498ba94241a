/* train.c: an example of a training loop that reads its batches with libsgt-loader. A thread
 * prefetches batches, and the loop consumes them. To resume, only the index of the next batch is
 * needed, which is given as FIRST.
 *
 *     cc train.c $(pkg-config --cflags --libs sgt-loader) -lm -o train && ./train out 200 [FIRST]
 *
 * The model is tiny. It assigns each id to one of 128 classes, and counts how often an id of one
 * class is followed by an id of another. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <sgt_loader.h>

enum { BATCH = 16, SEQ = 128, CLASSES = 128 };

static float follows[CLASSES][CLASSES], rows[CLASSES];

/* Compute the mean loss per token of a batch in nats, update the model with this batch, and return
 * the loss. */
static double step(const int32_t *inputs, const int32_t *targets)
{
    double loss = 0;
    for (size_t i = 0; i < (size_t)BATCH * SEQ; i++) {
        int from = inputs[i] % CLASSES, to = targets[i] % CLASSES;
        loss -= log((follows[from][to] + 1) / (rows[from] + (float)CLASSES));
    }
    for (size_t i = 0; i < (size_t)BATCH * SEQ; i++) {
        int from = inputs[i] % CLASSES, to = targets[i] % CLASSES;
        follows[from][to] += 1;
        rows[from] += 1;
    }
    return loss / (BATCH * SEQ);
}

static int fail(const sgt_error *err)
{
    fprintf(stderr, "train: %s\n", err->text);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    sgt_error err;
    sgt_loader *loader = NULL;
    sgt_stream *stream = NULL;
    const sgt_loader_batch *batch;
    sgt_loader_options options = {.size = sizeof options, .seed = 1, .batch = BATCH, .seq = SEQ};
    sgt_stream_options order = {.size = sizeof order, .output = SGT_OUTPUT_I32};
    int rc;

    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: train OUT/ STEPS [FIRST]\n");
        return 2;
    }
    options.data = argv[1];
    order.count = strtoull(argv[2], NULL, 10);
    /* index of the first batch to read; a real program would read this index from its checkpoint */
    order.first = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;

    if (sgt_loader_open(&loader, &options, &err) < 0 ||
        sgt_stream_open(&stream, loader, &order, &err) < 0) {
        sgt_loader_close(loader);
        return fail(&err);
    }
    while ((rc = sgt_stream_next(stream, &batch, &err)) == 0) {
        double loss = step((const int32_t *)batch->inputs, (const int32_t *)batch->targets);
        printf("batch %" PRIu64 " loss %.4f\n", batch->index, loss);
        /* give the buffer back to the prefetch thread */
        sgt_stream_release(stream, batch, NULL);
    }
    sgt_stream_close(stream); /* a stream must be closed before its loader */
    sgt_loader_close(loader);
    return rc < 0 ? fail(&err) : EXIT_SUCCESS;
}
