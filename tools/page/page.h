/* page.h: writes HTML pages. A page is a single file; its content-security policy forbids it to
 * load anything. It is light or dark as the reader prefers.
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

/* Write the beginning of a page up to its title, within <header>. */
void sgt_page_begin(FILE *page, const char *title, const char *program);
void sgt_page_text(FILE *page, const char *text); /* write text, escaped for HTML */
/* Write the end of a page, with the date and the program's name. */
void sgt_page_end(FILE *page, const char *program);

#endif
