/* page.h: pages of HTML that programs write: one file that loads nothing from elsewhere, and whose
 * policy forbids it to, light or dark as the reader prefers.
 *
 *     sgt_page_begin(f, "AMD EPYC 9R14", "sgt-bench");
 *     fputs("<p class=\"about\">...</p>\n</header>\n", f);    // the header is the caller's to end
 *     ... sections ...
 *     sgt_page_end(f, "sgt-bench");
 *
 * What cannot be written is the caller's to notice (ferror). */
#ifndef SGT_PAGE_H
#define SGT_PAGE_H

#include <stdio.h>

extern const char sgt_page_style[];

/* to the title, within <header> */
void sgt_page_begin(FILE *page, const char *title, const char *program);
void sgt_page_text(FILE *page, const char *text); /* escaped for HTML */
/* says when the page was made, and by what */
void sgt_page_end(FILE *page, const char *program);

#endif
