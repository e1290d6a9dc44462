/*
** conv_test.c: convolution and its gradients against the plain definition in double: random sizes,
** strides, paddings, dilations, groups, dtypes and layouts round every limit between the algorithms; the
** same bits for any number of threads; and the error of Winograd's algorithm.
*/
#include "conv.h"

#include "sweep.h"

typedef struct convolution {
  ampl_cpu_conv a;
  ampl_cpu_image x, y, dx, dy;
  ampl_cpu_filter w, dw;
  long nx, ny, nw;                 /* elements, gaps included */
  double *rx, *ry, *rw, *rb;       /* references */
  void *bias, *db;
  float *bias_back;
  bool wino, large;
} convolution;

/* Images with gaps between pixels, rows or images, one time in three */
static ampl_cpu_image make_image (int dtype, long n, long h, long w, long c, long *length) {
  const bool gaps = one_in(3);
  ampl_cpu_image x = {.dtype = dtype};
  x.pixel = c + (gaps ? below(3) : 0);
  x.row = x.pixel * w + (gaps ? below(5) : 0);
  x.image = x.row * h + (gaps ? below(5) : 0);
  *length = n * x.image;
  x.p = make(dtype, *length);
  return x;
}

/* PyTorch's order (k, c, r, s), channels last (k, r, s, c), or (r, s, c, k) */
static ampl_cpu_filter make_filter (int dtype, long k, long c, long r, long s, int order, long *length) {
  ampl_cpu_filter w = {.dtype = dtype};
  if (order == 0) w.s = 1, w.r = s, w.c = r * s, w.k = c * r * s;
  else if (order == 1) w.c = 1, w.s = c, w.r = c * s, w.k = c * r * s;
  else w.k = 1, w.c = k, w.s = k * c, w.r = k * c * s;
  *length = k * c * r * s;
  w.p = make(dtype, *length);
  return w;
}

static long pixel_at (const ampl_cpu_image *x, long n, long y, long z, long c) {
  return n * x->image + y * x->row + z * x->pixel + c;
}
static long filter_at (const ampl_cpu_filter *w, long k, long c, long r, long s) {
  return k * w->k + c * w->c + r * w->r + s * w->s;
}

/* The definition, scattering every product into all three results; w and dw lie alike, as do x and dx */
static void references (convolution *t) {
  const ampl_cpu_conv *a = &t->a;
  const long cg = a->c / a->groups, kg = a->k / a->groups;
  t->rx = calloc((size_t)t->nx + 1, 8), t->ry = calloc((size_t)t->ny + 1, 8), t->rw = calloc((size_t)t->nw + 1, 8);
  t->rb = calloc((size_t)a->k, 8);
  double *wd = malloc(8 * (size_t)t->nw), *xd = malloc(8 * (size_t)(t->nx + 1)), *dyd = malloc(8 * (size_t)(t->ny + 1));
  for (long i = 0; i < t->nw; i++) wd[i] = element(t->w.dtype, t->w.p, i);
  for (long i = 0; i < t->nx; i++) xd[i] = element(t->x.dtype, t->x.p, i);
  for (long i = 0; i < t->ny; i++) dyd[i] = element(t->dy.dtype, t->dy.p, i);
  for (long i = 0; i < a->n * a->oh * a->ow; i++)
    for (long k = 0; k < a->k; k++) {
      const long n = i / a->ow / a->oh, oy = i / a->ow % a->oh, ox = i % a->ow, to = pixel_at(&t->y, n, oy, ox, k);
      t->rb[k] += dyd[to];
      for (long u = 0; u < a->r * a->s; u++) {
        const long r = u / a->s, s = u % a->s;
        const long y = oy * a->stride[0] + r * a->dilation[0] - a->pad[0];
        const long z = ox * a->stride[1] + s * a->dilation[1] - a->pad[1];
        if (y < 0 || y >= a->h || z < 0 || z >= a->w) continue;
        const long from = pixel_at(&t->x, n, y, z, k / kg * cg), f = filter_at(&t->w, k, 0, r, s);
        for (long c = 0; c < cg; c++) {
          t->ry[to] += xd[from + c] * wd[f + c * t->w.c];
          t->rx[from + c] += dyd[to] * wd[f + c * t->w.c];
          t->rw[f + c * t->w.c] += xd[from + c] * dyd[to];
        }
      }
    }
  free(wd), free(xd), free(dyd);
}

static void describe (const convolution *t, const char *what, double got, double want) {
  const ampl_cpu_conv *a = &t->a;
  fault("%s: n %ld c %ld %ldx%ld k %ld %ldx%ld filter %ldx%ld stride %ld,%ld pad %ld,%ld dilation %ld,%ld groups %ld "
        "dtypes %d%d%d%s: %g, expected %g",
        what, (long)a->n, (long)a->c, (long)a->h, (long)a->w, (long)a->k, (long)a->oh, (long)a->ow, (long)a->r,
        (long)a->s, (long)a->stride[0], (long)a->stride[1], (long)a->pad[0], (long)a->pad[1], (long)a->dilation[0],
        (long)a->dilation[1], (long)a->groups, t->x.dtype, t->w.dtype, t->y.dtype, t->wino ? " winograd" : "", got,
        want);
}

static double largest (const double *v, long n) {
  double m = 0;
  for (long i = 0; i < n; i++) m = fmax(m, fabs(v[i]));
  return m;
}

/* f32 results within 5e-6 of the largest value, Winograd's too; 16-bit ones rounded to their dtype */
static void compare(const convolution *t, const char *what, int dtype, const void *got, long at, double want,
                    double size) {
  const double v = element(dtype, got, at);
  const double rounding = dtype == AMPL_BF16 ? fabs(want) / 250 : dtype == AMPL_F16 ? fabs(want) / 2000 + 1e-6 : 0;
  const double limit = dtype == AMPL_F64 ? 1e-12 * size : 5e-6 * size + rounding + 1e-6;
  if (!(fabs(v - want) <= limit)) describe(t, what, v, want);
}

static void compare_image (const convolution *t, const char *what, const ampl_cpu_image *x, const double *want, long n,
                           long h, long w, long c, long length, const void *bias) {
  const double size = largest(want, length) + (bias != NULL);
  for (long i = 0; i < n * h * w; i++)
    for (long j = 0; j < c; j++) {
      const long at = pixel_at(x, i / w / h, i / w % h, i % w, j);
      double v = want[at] + (bias ? element(t->a.bias_dtype, bias, j) : 0);
      if (bias && t->a.relu && v < 0) v = 0;
      compare(t, what, x->dtype, x->p, at, v, size);
    }
}

/* What lies between the pixels must be as before */
static void check_gaps(const convolution *t, const char *what, const ampl_cpu_image *x, const void *old, long n, long h,
                       long w, long c, long length) {
  char *inside = calloc(1, (size_t)length + 1);
  const size_t size = size_of(x->dtype);
  for (long i = 0; i < n * h * w; i++) memset(inside + pixel_at(x, i / w / h, i / w % h, i % w, 0), 1, (size_t)c);
  for (long i = 0; i < length; i++)
    if (!inside[i] && memcmp((char *)x->p + (size_t)i * size, (const char *)old + (size_t)i * size, size) != 0)
      describe(t, what, (double)i, 0);
  free(inside);
}

static void run_all (convolution *t) {
  ampl_cpu_conv back = t->a;
  back.bias = t->bias_back, back.bias_dtype = AMPL_F32;
  if (t->y.dtype == AMPL_F64) back.bias = NULL, back.relu = false;
  if (ampl_cpu_conv_forward(&t->a, &t->x, &t->w, &t->y) != AMPL_OK) describe(t, "forward: status", 0, 0);
  if (ampl_cpu_conv_backward_data(&back, &t->dy, &t->w, &t->dx) != AMPL_OK) describe(t, "data: status", 0, 0);
  if (ampl_cpu_conv_backward_weights(&t->a, &t->x, &t->dy, &t->dw) != AMPL_OK) describe(t, "weights: status", 0, 0);
  if (ampl_cpu_conv_backward_bias(&t->a, &t->dy, t->db, t->dw.dtype) != AMPL_OK) describe(t, "bias: status", 0, 0);
}

/* All results again with more threads: the same bits */
static void run_threads (const convolution *t, int threads, void *old_y, void *old_x) {
  convolution u = *t;
  const size_t by = size_of(t->y.dtype) * (size_t)t->ny, bx = size_of(t->dx.dtype) * (size_t)t->nx;
  const size_t bw = size_of(t->dw.dtype) * (size_t)t->nw, bb = size_of(t->dw.dtype) * (size_t)t->a.k;
  u.a.threads = threads;
  u.y.p = copy_of(old_y, by), u.dx.p = copy_of(old_x, bx), u.dw.p = malloc(bw), u.db = malloc(bb);
  run_all(&u);
  if (memcmp(u.y.p, t->y.p, by) != 0) describe(t, "forward: bits differ with threads", threads, 1);
  if (memcmp(u.dx.p, t->dx.p, bx) != 0) describe(t, "data: bits differ with threads", threads, 1);
  if (memcmp(u.dw.p, t->dw.p, bw) != 0) describe(t, "weights: bits differ with threads", threads, 1);
  if (memcmp(u.db, t->db, bb) != 0) describe(t, "bias: bits differ with threads", threads, 1);
  free(u.y.p), free(u.dx.p), free(u.dw.p), free(u.db);
}

static void check (convolution *t) {
  ampl_cpu_conv *a = &t->a;
  static const int floats[] = {AMPL_F32, AMPL_F16, AMPL_BF16};
  int type = PICK(floats), wt = one_in(4) ? PICK(floats) : type, yt = one_in(4) ? PICK(floats) : type;
  if (one_in(10) && !t->wino) type = wt = yt = AMPL_F64;
  const long cg = a->c / a->groups;
  const int order = (int)below(3);
  long ignored;
  t->x = make_image(type, a->n, a->h, a->w, a->c, &t->nx), t->y = make_image(yt, a->n, a->oh, a->ow, a->k, &t->ny);
  t->w = make_filter(wt, a->k, cg, a->r, a->s, order, &t->nw);
  t->dw = make_filter(one_in(2) || type == AMPL_F64 ? wt : AMPL_F32, a->k, cg, a->r, a->s, order, &ignored);
  t->dy = t->y, t->dy.p = make(yt, t->ny);
  t->dx = t->x, t->dx.p = make(type, t->nx);
  t->bias_back = make(AMPL_F32, a->c);
  t->db = make(t->dw.dtype, a->k);
  a->bias_dtype = type == AMPL_F64 ? AMPL_F64 : PICK(floats);
  if (one_in(2)) a->bias = t->bias = make(a->bias_dtype, a->k), a->relu = one_in(2);
  a->threads = 1;
  void *old_y = copy_of(t->y.p, size_of(yt) * (size_t)t->ny), *old_x = copy_of(t->dx.p, size_of(type) * (size_t)t->nx);
  references(t);
  run_all(t);
  compare_image(t, "forward", &t->y, t->ry, a->n, a->oh, a->ow, a->k, t->ny, t->bias);
  check_gaps(t, "forward: gap", &t->y, old_y, a->n, a->oh, a->ow, a->k, t->ny);
  const int bias_dtype = a->bias_dtype;
  a->bias_dtype = AMPL_F32;
  compare_image(t, "data", &t->dx, t->rx, a->n, a->h, a->w, a->c, t->nx, type == AMPL_F64 ? NULL : t->bias_back);
  check_gaps(t, "data: gap", &t->dx, old_x, a->n, a->h, a->w, a->c, t->nx);
  a->bias_dtype = bias_dtype;
  const double size = largest(t->rw, t->nw) + 0.01, size_b = largest(t->rb, a->k) + 1;
  for (long i = 0; i < t->nw; i++) compare(t, "weights", t->dw.dtype, t->dw.p, i, t->rw[i], size);
  for (long k = 0; k < a->k; k++) compare(t, "bias", t->dw.dtype, t->db, k, t->rb[k], size_b);
  run_threads(t, 2, old_y, old_x);
  if (t->large) run_threads(t, 3, old_y, old_x);
  end_case();
  free(t->x.p), free(t->y.p), free(t->w.p), free(t->dw.p), free(t->dx.p), free(t->dy.p), free(t->bias), free(t->db);
  free(t->bias_back), free(t->rx), free(t->ry), free(t->rw), free(t->rb), free(old_y), free(old_x);
}

static long output_size (const ampl_cpu_conv *a, int d) {
  const long size = d ? a->w : a->h, filter = d ? a->s : a->r;
  return (size + 2 * a->pad[d] - a->dilation[d] * (filter - 1) - 1) / a->stride[d] + 1;
}

static void random_case (void) {
  convolution t = {0};
  ampl_cpu_conv *a = &t.a;
  a->n = 1 + below(3), a->h = 1 + below(14), a->w = 1 + below(14), a->r = 1 + below(4), a->s = 1 + below(4);
  long cg = 1 + below(40), kg = 1 + below(70);
  a->groups = one_in(3) ? 1 + below(4) : 1;
  if (one_in(4)) a->groups = 1 + below(40), cg = 1, kg = one_in(3) ? 2 : 1;
  for (int d = 0; d < 2; d++) a->stride[d] = 1 + below(3), a->pad[d] = below(3), a->dilation[d] = 1 + below(2);
  if (one_in(5)) a->r = a->s = a->stride[0] = a->stride[1] = 1, a->pad[0] = a->pad[1] = 0;
  if (one_in(8)) a->h = a->r = 1, a->pad[0] = 0, a->w = 1 + below(80), a->s = 1 + below(9); /* one-dimensional */
  if (one_in(8)) a->w = 24 + below(30);
  if (one_in(8)) a->stride[0] = a->stride[1] = 1, a->w = 4 * (1 + below(7)), a->pad[1] = a->s / 2;
  a->c = cg * a->groups, a->k = kg * a->groups;
  if (a->h + 2 * a->pad[0] < a->dilation[0] * (a->r - 1) + 1 || a->w + 2 * a->pad[1] < a->dilation[1] * (a->s - 1) + 1)
    return;
  a->oh = output_size(a, 0), a->ow = output_size(a, 1);
  if (one_in(6)) a->oh += below(2), a->ow += below(2); /* more padding on the far side */
  check(&t);
}

/* Enough arithmetic for threads */
static void large_case (void) {
  convolution t = {.large = true};
  ampl_cpu_conv *a = &t.a;
  a->n = 1 + below(5), a->h = 6 + below(12), a->w = 6 + below(12), a->r = 1 + below(3), a->s = 2 + below(2);
  a->groups = one_in(3) ? 2 : 1, a->c = (12 + below(20)) * a->groups, a->k = (20 + below(50)) * a->groups;
  if (one_in(4)) a->groups = a->c = a->k = 100 + below(60), a->n = 6, a->h = a->w = 20, a->r = a->s = 3;
  for (int d = 0; d < 2; d++) a->stride[d] = 1 + below(2), a->pad[d] = below(2), a->dilation[d] = 1;
  a->oh = output_size(a, 0), a->ow = output_size(a, 1);
  check(&t);
}

/* So many pixels that the sum of the filter's gradient is cut into chunks */
static void wide_case (void) {
  convolution t = {.large = true};
  ampl_cpu_conv *a = &t.a;
  a->n = 3 + below(6), a->h = 30 + below(16), a->w = 30 + below(16), a->r = a->s = 3;
  a->groups = one_in(3) ? 2 : 1, a->c = (1 + below(4)) * a->groups, a->k = (4 + below(20)) * a->groups;
  for (int d = 0; d < 2; d++) a->stride[d] = 1, a->pad[d] = below(2), a->dilation[d] = 1;
  a->oh = output_size(a, 0), a->ow = output_size(a, 1);
  check(&t);
}

static void winograd_case (void) {
  convolution t = {.wino = true};
  ampl_cpu_conv *a = &t.a;
  a->c = 16 * (1 + below(4)), a->k = 16 * (1 + below(5)); /* 16: below the limit */
  a->r = a->s = 3, a->groups = a->stride[0] = a->stride[1] = a->dilation[0] = a->dilation[1] = 1;
  a->pad[0] = below(3), a->pad[1] = below(4);
  a->h = 5 + below(12), a->w = 5 + below(12);
  a->oh = output_size(a, 0), a->ow = output_size(a, 1);
  const long tiles = ((a->oh + 3) / 4) * ((a->ow + 3) / 4);
  a->n = 64 / tiles + below(3); /* about the limit */
  if (a->n == 0) a->n = 1;
  check(&t);
}

static void sweep (void) {
  for (int dot = 0; dot < 2; dot++) {
    if (ampl_cpu_set_bf16_dot(dot) != dot) continue;
    for (int i = 0; i < 220; i++) random_case();
    for (int i = 0; i < 12; i++) large_case();
    for (int i = 0; i < 6; i++) wide_case();
    for (int i = 0; i < 15; i++) winograd_case();
    ampl_cpu_set_winograd(false);
    for (int i = 0; i < 3; i++) winograd_case();
    ampl_cpu_set_winograd(true);
  }
}

int main (void) { return run_sweeps(sweep); }
