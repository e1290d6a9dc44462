/* formula.h: what formulas in unary.def and binary.def share, the same for every kind of value. */
#ifndef AMPL_FORMULA_H
#define AMPL_FORMULA_H

#define SQRT_HALF    0.70710678118654752440     /* sqrt(1/2) */
#define INV_SQRT_2PI 0.39894228040143267794     /* 1 / sqrt(2 pi) */
#define GELU_K       0.79788456080286535588     /* sqrt(2 / pi) */
#define GELU_C       0.044715
#define SIXTH        0x1.555556p-3             /* 1/6 in f32, in PyTorch's f64, too */
#define TWO_PI       6.28318530717958647693
#define HALF_LOG_TWO_PI 0.91893853320467274178  /* log(2 pi) / 2 */
#define SELU_ALPHA   1.6732632423543772848170429916717
#define SELU_SCALE   1.0507009873554804934193349852946

/* g / (a^2 + b^2); 0 where both are 0 */
#define OVER_SQUARES(g, a, b)                                                                                          \
  LET(s_, ADD(MUL(a, a), MUL(b, b)), DIV(g, SELECT(EQ(s_, C(0)), C(INFINITY), s_)))

/* tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2) */
#define TANH_SOFTPLUS(x)                                                                                               \
  LET(e_x, EXP(MIN(x, C(20))), LET(n_, MUL(e_x, ADD(e_x, C(2))), DIV(n_, ADD(n_, C(2)))))

#endif
