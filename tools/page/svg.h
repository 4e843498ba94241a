/* svg.h: writes shapes of an SVG, in a page or in a separate file. A shape with a class takes its
 * colour from the page's style.
 *
 *     sgt_svg_begin(f, "chart", 360, 250, "Loss over steps", 0);
 *     sgt_svg_path_begin(f, "line s0");
 *     sgt_svg_path_to(f, 'M', 46, 10);            // move; 'L': a line to there
 *     sgt_svg_path_to(f, 'L', 60.5, 20);
 *     sgt_svg_path_end(f);
 *     sgt_svg_text(f, "", 46, 240, "middle", "0");
 *     sgt_svg_end(f);
 *
 * Coordinates are pixels from the top left, written to a tenth. These functions escape texts and
 * drop their control characters. `title` is the tooltip of a shape; NULL: none. The caller checks
 * for write errors (ferror). */
#ifndef SGT_SVG_H
#define SGT_SVG_H

#include <stdio.h>

/* Begin an image. `says` describes it for screen readers. `alone`: the image is a file by itself,
 * shown at this size. */
void sgt_svg_begin(FILE *f, const char *class, int wide, int high, const char *says, int alone);
void sgt_svg_end(FILE *f);

/* Write a text. class "" means none; `anchor` is "start", "middle" or "end". */
void sgt_svg_text(FILE *f, const char *class, double x, double y, const char *anchor,
                  const char *text);
void sgt_svg_rect(FILE *f, const char *class, double x, double y, double wide, double high,
                  const char *title);
void sgt_svg_circle(FILE *f, const char *class, double x, double y, double r, const char *title);
void sgt_svg_line(FILE *f, const char *class, double x1, double y1, double x2, double y2);

void sgt_svg_path_begin(FILE *f, const char *class);
void sgt_svg_path_to(FILE *f, char pen, double x, double y);
void sgt_svg_path_end(FILE *f);

void sgt_svg_polygon(FILE *f, const char *class, const double (*points)[2], size_t n);

#endif
