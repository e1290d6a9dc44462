/*
** conv_plane.c: zero-padded copies of images, and how images are cut into jobs.
*/
#include <string.h>

#include "conv_parts.h"

plane ampl_cpu_plane (const ampl_cpu_image *src, long h, long w, long c, bool pairs, long gh, long gw,
                      const long step[2], long ny, const long *ty, long nx, const long *tx) {
  plane p = {.src = *src, .h = h, .w = w, .c = c, .size = pairs ? 2 : 4};
  p.channels = pairs ? round_up(c, 2) : c;
  p.ylo = ty[0], p.yhi = (gh - 1) * step[0] + ty[ny - 1] + 1;
  p.xlo = tx[0], p.xhi = (gw - 1) * step[1] + tx[nx - 1] + 1;
  p.in_place = src->dtype == (pairs ? AMPL_BF16 : AMPL_F32) && p.channels == c && p.ylo >= 0 && p.xlo >= 0 &&
               p.yhi <= h && p.xhi <= w;
  p.pixel = (p.in_place ? src->pixel : p.channels) * p.size;
  p.row = p.in_place ? src->row * p.size : (p.xhi - p.xlo) * p.pixel;
  return p;
}

/* Pixels side by side: n of them from src to dst */
static void load_pixels (const ampl_cpu_matrix *K, const plane *p, char *dst, const char *src, long n) {
  const long step = p->src.pixel;
  const bool dense = step == p->c && p->channels == p->c;
  if (p->size == 4) {
    if (dense) K->copy[p->src.dtype]((float *)dst, n * p->c, src, n * p->c, 1, n * p->c, n * p->c);
    else K->copy[p->src.dtype]((float *)dst, p->c, src, step, n, p->c, p->c);
    return;
  }
  if (dense) {
    memcpy(dst, src, 2 * (size_t)(n * p->c));
    return;
  }
  for (long i = 0; i < n; i++, dst += p->pixel, src += 2 * step) {
    memcpy(dst, src, 2 * (size_t)p->c);
    memset(dst + 2 * p->c, 0, 2 * (size_t)(p->channels - p->c));
  }
}

const char *ampl_cpu_plane_load (const ampl_cpu_matrix *K, const plane *p, char *buf, long n0, long n1, long y0,
                                 long y1, long *image) {
  const long size = element_size(p->src.dtype);
  const char *src = p->src.p;
  if (p->in_place) {
    *image = p->src.image * size;
    return src + (n0 * p->src.image + y0 * p->src.row + p->xlo * p->src.pixel) * size;
  }
  *image = (y1 - y0) * p->row;
  const long x0 = most(p->xlo, 0), x1 = most(x0, least(p->xhi, p->w));
  const long left = least(x0 - p->xlo, p->xhi - p->xlo) * p->pixel, middle = (x1 - x0) * p->pixel;
  char *dst = buf;
  for (long n = n0; n < n1; n++)
    for (long y = y0; y < y1; y++, dst += p->row) {
      if (y < 0 || y >= p->h) {
        memset(dst, 0, (size_t)p->row);
        continue;
      }
      memset(dst, 0, (size_t)left);
      load_pixels(K, p, dst + left, src + (n * p->src.image + y * p->src.row + x0 * p->src.pixel) * size, x1 - x0);
      memset(dst + left + middle, 0, (size_t)(p->row - left - middle));
    }
  return buf;
}

cut ampl_cpu_cut (long n, long rows, long image_bytes, long most_bytes, int threads) {
  cut c = {.n = n, .rows = rows, .images = 1, .band = rows, .bands = 1};
  if (image_bytes > most_bytes || n < 2 * threads) {
    const long for_memory = ceil_div(image_bytes, most_bytes), for_threads = threads > 1 ? ceil_div(2 * threads, n) : 1;
    c.band = ceil_div(rows, least(rows, most(for_memory, for_threads)));
    c.bands = ceil_div(rows, c.band);
  } else {
    c.images = most(1, least(ceil_div(n, threads > 1 ? 2 * threads : 1), most_bytes / most(1, image_bytes)));
  }
  c.jobs = ceil_div(n, c.images) * c.bands;
  return c;
}

const float *ampl_cpu_conv_bias (const ampl_cpu_matrix *K, const ampl_cpu_conv *a, long channels, arena *m) {
  if (!a->bias || a->bias_dtype == AMPL_F32) return a->bias;
  float *p = arena_take(m, 4 * channels);
  if (p) K->copy[a->bias_dtype](p, channels, a->bias, channels, 1, channels, channels);
  return p;
}
