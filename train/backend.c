/* backend.c: option words of the enumerations of backend.h, and sets of variants as text. */
#include "train/backend.h"

#include <stdio.h>
#include <string.h>

const char *const sgt_precision_words[] = {"fp32", "tf32", "bf16", "fp16", NULL};
const char *const sgt_recompute_words[] = {"none", "gelu", "block", NULL};
const char *const sgt_attention_words[] = {"auto", "own", "cudnn", "naive", NULL};

const sgt_variant sgt_variants[SGT_VARIANTS] = {
    {"layernorm-rows",
     "LayerNorm keeps rows in registers; backward, it adds up proj's and fcproj's bias gradients"},
    {"gemm-tune", "products have 256 MiB of workspace and 64 candidates; the best four are timed "
                  "once more, on end"},
    {"cross-entropy-bulk", "logits reach the loss by bulk copies of whole rows (sm_90)"},
    {"residual-in-gemm",
     "proj and fcproj add the residual stream themselves, where nothing is dropped"},
    {"qkv-bias-in-dw",
     "qkv's bias gradient is a by-product of its weight's, where that is timed and faster"},
    {"bias-branches",
     "bias gradients that nothing waits for run beside the products, as branches of the graph"},
    {"attention-hopper",
     "our attention is that for sm_90, by TMA and wgmma, with heads of 64 or 128"},
    {"gradients-written",
     "with one micro-step a step, weight gradients are written, not zeroed and added to"},
    {"dq-uncleared",
     "cuDNN's attention clears its sums of dQ itself, where a trial shows that it does"},
};

/* Return the set that one word of n bytes stands for; -1 if the word is unknown. */
static int64_t word_set(const char *word, size_t n)
{
    static const struct {
        const char *word;
        uint32_t set;
    } sets[] = {{"none", 0}, {"default", SGT_VARIANTS_DEFAULT}, {"all", (1u << SGT_VARIANTS) - 1}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strlen(sets[i].word) == n && memcmp(sets[i].word, word, n) == 0) return sets[i].set;
    for (int i = 0; i < SGT_VARIANTS; i++)
        if (strlen(sgt_variants[i].name) == n && memcmp(sgt_variants[i].name, word, n) == 0)
            return 1u << i;
    return -1;
}

int sgt_variants_parse(uint32_t *set, const char *words, sgt_error *err)
{
    char known[SGT_VARIANTS_TEXT];
    *set = 0;
    for (const char *at = words;; at++) {
        size_t n = strcspn(at, ",");
        int64_t one = word_set(at, n);
        if (one < 0)
            return sgt_fail(err, SGT_EUSAGE,
                            "--variant %s: unknown variant '%.*s' (all, none, default, %s)", words,
                            (int)(n < 64 ? n : 64), at,
                            sgt_variants_words(known, (1u << SGT_VARIANTS) - 1));
        *set |= (uint32_t)one;
        at += n;
        if (!*at) return SGT_OK;
    }
}

char *sgt_variants_words(char out[SGT_VARIANTS_TEXT], uint32_t set)
{
    int n = snprintf(out, SGT_VARIANTS_TEXT, "%s", set ? "" : "none");
    for (int i = 0; i < SGT_VARIANTS; i++)
        if (set & 1u << i)
            n += snprintf(out + n, SGT_VARIANTS_TEXT - (size_t)n, "%s%s", n ? "," : "",
                          sgt_variants[i].name);
    return out;
}
