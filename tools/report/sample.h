/* sample.h: the sample of text on a page. It includes neither sgt_train.h nor sgt_tokenize.h,
 * because these cannot both be included in one file. */
#ifndef SGT_TOOLS_REPORT_SAMPLE_H
#define SGT_TOOLS_REPORT_SAMPLE_H

#include <stdint.h>

#include "loader/base/error.h"

/* The text that a checkpoint wrote, which may be any bytes but control characters, or the reason
 * why there is none; both malloc'd or NULL. */
typedef struct report_sample {
    char *text, *why_not;
} report_sample;

#define REPORT_SAMPLE_TOKENS 40

/* Let the checkpoint (NULL: there is none yet) generate REPORT_SAMPLE_TOKENS tokens after the
 * end-of-text token, with sgt-sample's defaults. Models of too many parameters are skipped. The
 * only error returned is SGT_ESTOPPED. */
int report_sample_write(report_sample *s, const char *checkpoint, uint64_t parameters,
                        const sgt_stop *stop, sgt_error *err);

#endif
