/* header_cxx_test.cpp: the public headers stand alone as C++11, and link from it. */
#pragma GCC diagnostic error "-Wpedantic"
#include "ampl.h"
#include "ampl_backend.h"
#include "archive.h"

#include <cstdio>
#include <cstring>

int main() {
  int failed = 0;
  ampl_ctx_options options = AMPL_CTX_OPTIONS_INIT;
  ampl_csv_options csv = AMPL_CSV_OPTIONS_INIT;
  ampl_ctx *ctx = nullptr;
  ampl_tensor *x = nullptr, *y = nullptr;
  ampl_csv *table = nullptr;
  const int64_t shape[] = {4};
  ampl_value v;
  double sum = 0;
  failed += ampl_ctx_new(&options, &ctx) != AMPL_OK;
  failed += ampl_full(ctx, AMPL_F64, 1, shape, 2.5, &x) != AMPL_OK;
  v.t = x;
  failed += ampl_run(ctx, "sum", &v, 1, &y, 1) != AMPL_OK;
  failed += y == nullptr || ampl_item(y, &sum) != AMPL_OK || sum != 10;
  failed += ampl_csv_load(ctx, "/nowhere", &csv, &table) != AMPL_EIO || table != nullptr;
  failed += std::strcmp(ampl_version(), "") == 0;
  ampl_tensor_release(y);
  ampl_tensor_release(x);
  ampl_ctx_release(ctx);
  std::printf("%d passed, %d failed, 0 skipped\n", 6 - failed, failed);
  return failed > 0;
}
