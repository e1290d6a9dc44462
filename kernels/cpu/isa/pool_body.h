/* pool_body.h: the passes of pool.h for one type, REAL; NAME(x) names them. */

/* at[l]: the place, in elements, of the largest value of window (r, c) in lane l; the last NaN, where there is one. */
static void NAME(find)(const ampl_cpu_pool_image *p, const ampl_cpu_window *r, const ampl_cpu_window *c, int64_t *at) {
  const REAL *x = p->x;
  for (int64_t l = 0; l < p->lanes; l++) at[l] = r->first * p->xs[0] + c->first * p->xs[1] + l;
  for (int64_t i = r->first; i < r->stop; i += r->step)
    for (int64_t j = c->first; j < c->stop; j += c->step) {
      const int64_t from = i * p->xs[0] + j * p->xs[1];
      for (int64_t l = 0; l < p->lanes; l++) {
        const REAL v = x[from + l];
        if (v > x[at[l]] || v != v) at[l] = from + l;
      }
    }
}

static void NAME(max)(const ampl_cpu_pool_image *p) {
  const REAL *x = p->x;
  for (int64_t i = 0; i < p->oh; i++)
    for (int64_t j = 0; j < p->ow; j++) {
      const ampl_cpu_window *r = &p->rows[i], *c = &p->columns[j];
      REAL *y = (REAL *)p->to + i * p->ys[0] + j * p->ys[1];
      if (p->places) {
        int64_t *places = p->places + i * p->ps[0] + j * p->ps[1];
        NAME(find)(p, r, c, p->at);
        for (int64_t l = 0; l < p->lanes; l++) {
          y[l] = x[p->at[l]];
          const int64_t row = p->at[l] / p->xs[0];
          places[l] = row * p->w + (p->at[l] - row * p->xs[0]) / p->xs[1] + p->base;
        }
        continue;
      }
      const REAL *first = x + r->first * p->xs[0] + c->first * p->xs[1];
      for (int64_t l = 0; l < p->lanes; l++) y[l] = first[l];
      for (int64_t a = r->first; a < r->stop; a += r->step)
        for (int64_t b = c->first; b < c->stop; b += c->step) {
          const REAL *v = x + a * p->xs[0] + b * p->xs[1];
          for (int64_t l = 0; l < p->lanes; l++) y[l] = v[l] > y[l] || v[l] != v[l] ? v[l] : y[l];
        }
    }
}

static void NAME(scatter)(const ampl_cpu_pool_image *p) {
  REAL *to = p->to;
  for (int64_t i = 0; i < p->oh; i++)
    for (int64_t j = 0; j < p->ow; j++) {
      const REAL *dy = (const REAL *)p->y + i * p->ys[0] + j * p->ys[1];
      NAME(find)(p, &p->rows[i], &p->columns[j], p->at);
      for (int64_t l = 0; l < p->lanes; l++) to[p->at[l]] += dy[l];
    }
}

static void NAME(gather)(const ampl_cpu_pool_image *p) {
  const REAL *v = p->y;
  for (int64_t i = 0; i < p->oh; i++)
    for (int64_t j = 0; j < p->ow; j++) {
      REAL *to = (REAL *)p->to + i * p->ys[0] + j * p->ys[1];
      NAME(find)(p, &p->rows[i], &p->columns[j], p->at);
      for (int64_t l = 0; l < p->lanes; l++) to[l] = v[p->at[l]];
    }
}

/* What the sum of a window is divided by. */
static REAL NAME(divisor)(const ampl_cpu_pool_image *p, const ampl_cpu_window *r, const ampl_cpu_window *c) {
  if (p->divisor != 0) return (REAL)p->divisor;
  return p->include_pad ? (REAL)(r->span * c->span) : (REAL)((r->stop - r->first) * (c->stop - c->first));
}

static void NAME(mean)(const ampl_cpu_pool_image *p) {
  for (int64_t i = 0; i < p->oh; i++)
    for (int64_t j = 0; j < p->ow; j++) {
      const ampl_cpu_window *r = &p->rows[i], *c = &p->columns[j];
      REAL *y = (REAL *)p->to + i * p->ys[0] + j * p->ys[1];
      for (int64_t l = 0; l < p->lanes; l++) y[l] = 0;
      for (int64_t a = r->first; a < r->stop; a++)
        for (int64_t b = c->first; b < c->stop; b++) {
          const REAL *v = (const REAL *)p->x + a * p->xs[0] + b * p->xs[1];
          for (int64_t l = 0; l < p->lanes; l++) y[l] += v[l];
        }
      const REAL d = NAME(divisor)(p, r, c);
      for (int64_t l = 0; l < p->lanes; l++) y[l] /= d;
    }
}

static void NAME(mean_scatter)(const ampl_cpu_pool_image *p) {
  for (int64_t i = 0; i < p->oh; i++)
    for (int64_t j = 0; j < p->ow; j++) {
      const ampl_cpu_window *r = &p->rows[i], *c = &p->columns[j];
      const REAL *dy = (const REAL *)p->y + i * p->ys[0] + j * p->ys[1];
      const REAL d = NAME(divisor)(p, r, c);
      for (int64_t a = r->first; a < r->stop; a++)
        for (int64_t b = c->first; b < c->stop; b++) {
          REAL *to = (REAL *)p->to + a * p->xs[0] + b * p->xs[1];
          for (int64_t l = 0; l < p->lanes; l++) to[l] += dy[l] / d;
        }
    }
}

#undef REAL
#undef NAME
