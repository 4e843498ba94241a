/* page.h: HTML pages that programs write: a single file whose content-security policy forbids
 * it to load anything, light or dark as the reader prefers.
 *
 *     sgt_page_begin(f, "AMD EPYC 9R14", "sgt-bench");
 *     fputs("<p class=\"about\">...</p>\n</header>\n", f);    // the caller ends the header
 *     ... sections ...
 *     sgt_page_end(f, "sgt-bench");
 *
 * The caller checks for write errors (ferror). */
#ifndef SGT_PAGE_H
#define SGT_PAGE_H

#include <stdio.h>

extern const char sgt_page_style[];

/* Write the page up to the title, within <header>. */
void sgt_page_begin(FILE *page, const char *title, const char *program);
void sgt_page_text(FILE *page, const char *text); /* escaped for HTML */
/* End the page with its date and the program's name. */
void sgt_page_end(FILE *page, const char *program);

#endif
