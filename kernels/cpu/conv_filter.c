/*
** conv_filter.c: filters into the panels that the micro-kernel reads, and gradients out of them.
*/
#include <string.h>

#include "conv_parts.h"

enum { CHUNK = 256 }; /* rows of a panel that are transposed at once: 32 KiB at 32 columns, L1 */

filter_view ampl_cpu_filter_view (const ampl_cpu_conv *a, const ampl_cpu_filter *w, bool backward, long group) {
  filter_view v = {.dtype = w->dtype, .r = w->r, .s = w->s, .rows_r = a->r, .cols_s = a->s};
  v.p = (const char *)w->p + group * (a->k / a->groups) * w->k * element_size(w->dtype);
  v.col = backward ? w->c : w->k;
  v.row = backward ? w->k : w->c;
  return v;
}

long ampl_cpu_filter_tmp (const ampl_cpu_conv *a, long nr) { return most(CHUNK, a->r * a->s) * nr; }

/* ---------------------------------------------------------------- packing */

/* All taps of a channel pair lie side by side (PyTorch's order): `rows` channels times taps are transposed
   together, then the rows are put where they belong. */
static void pack_side_by_side (const ampl_cpu_matrix *K, const filter_view *w, float *dst, long tap_step, long nr,
                               long ny, const long *fy, long nx, const long *fx, const char *src, long rows,
                               long cols, float *tmp) {
  const long taps = w->rows_r * w->cols_s, size = element_size(w->dtype);
  const long at_once = w->row == taps ? most(1, CHUNK / taps) : 1;
  for (long i = 0; i < rows; i += at_once) {
    const long n = least(at_once, rows - i);
    K->transpose[w->dtype](tmp, nr, src + i * w->row * size, w->col, cols, n * taps, nr);
    for (long t = 0; t < ny * nx; t++)
      for (long q = 0; q < n; q++)
        memcpy(dst + t * tap_step + (i + q) * nr, tmp + (q * taps + fy[t / nx] * w->cols_s + fx[t % nx]) * nr,
               sizeof(float) * (size_t)nr);
  }
}

void ampl_cpu_pack_filter (const ampl_cpu_matrix *K, const filter_view *w, float *dst, long tap_step, long nr,
                           long ny, const long *fy, long nx, const long *fx, long r0, long rows, long j0, long cols,
                           float *tmp) {
  const long size = element_size(w->dtype), taps = w->rows_r * w->cols_s;
  const char *src = w->p + (r0 * w->row + j0 * w->col) * size;
  if (w->col != 1 && w->row != 1 && taps > 1 && (w->s == 1 || w->cols_s == 1) &&
      (w->r == w->cols_s || w->rows_r == 1)) {
    pack_side_by_side(K, w, dst, tap_step, nr, ny, fy, nx, fx, src, rows, cols, tmp);
    return;
  }
  for (long t = 0; t < ny * nx; t++) {
    const char *from = src + (fy[t / nx] * w->r + fx[t % nx] * w->s) * size;
    float *to = dst + t * tap_step;
    if (w->col == 1 || cols == 1) K->copy[w->dtype](to, nr, from, w->row, rows, cols, nr);
    else if (w->row == 1 || rows == 1) K->transpose[w->dtype](to, nr, from, w->col, cols, rows, nr);
    else K->gather[w->dtype](to, nr, from, w->row, w->col, rows, cols, nr);
  }
}

/* ---------------------------------------------------------------- unpacking */

long ampl_cpu_unpack_tmp (const ampl_cpu_conv *a, long nr) {
  const long run = most(CHUNK, a->r * a->s);
  return run * nr + run * round_up(nr, 16);
}

/* n rows of nr columns, collected at tmp, are transposed and stored: column j as n elements side by side at
   dst + j*step elements */
static void store_columns (const ampl_cpu_matrix *K, const float *rows, long nr, long n, float *turned, void *dst,
                           int dtype, long step, long cols) {
  const long ld = round_up(n, 16);
  K->transpose[AMPL_F32](turned, ld, rows, nr, n, cols, ld);
  for (long j = 0; j < cols; j++)
    K->store[dtype]((char *)dst + j * step * element_size(dtype), turned + j * ld, n);
}

void ampl_cpu_unpack_filter (const ampl_cpu_matrix *K, const ampl_cpu_conv *a, const ampl_cpu_filter *dw,
                             const float *src, long nr, long j0, long cols, float *tmp) {
  const long taps = a->r * a->s, channels = a->c / a->groups, size = element_size(dw->dtype);
  const long run = most(CHUNK, taps);
  float *rows = tmp, *turned = tmp + run * nr;
  char *dst = (char *)dw->p + j0 * dw->k * size;
  const bool side_by_side = (dw->s == 1 || a->s == 1) && (dw->r == a->s || a->r == 1) && dw->c == taps;
  if (side_by_side) {
    const long at_once = run / taps;
    for (long c = 0; c < channels; c += at_once) {
      const long n = least(at_once, channels - c);
      for (long i = 0; i < n; i++)
        for (long t = 0; t < taps; t++)
          memcpy(rows + (i * taps + t) * nr, src + (t * channels + c + i) * nr, sizeof(float) * (size_t)nr);
      store_columns(K, rows, nr, n * taps, turned, dst + c * taps * size, dw->dtype, dw->k, cols);
    }
    return;
  }
  for (long t = 0; t < taps; t++) {
    char *to = dst + (t / a->s * dw->r + t % a->s * dw->s) * size;
    for (long c = 0; c < channels; c += CHUNK) {
      const long n = least(CHUNK, channels - c);
      const float *from = src + (t * channels + c) * nr;
      if (dw->c == 1) store_columns(K, from, nr, n, turned, to + c * size, dw->dtype, dw->k, cols);
      else
        for (long i = 0; i < n; i++)
          for (long j = 0; j < cols; j++)
            K->store[dw->dtype](to + ((c + i) * dw->c + j * dw->k) * size, from + i * nr + j, 1);
    }
  }
}
