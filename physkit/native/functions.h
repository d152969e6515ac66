// Functions of numbers that the C library has not for vector registers.

#include <math.h>
#include <stdint.h>
#include <string.h>

// e^x = 2^m e^r, |r| <= log(2) / 2. Relative error: below 2^-52, and 2^-23 in single precision; 0 below e^-707 and
// e^-86, where the result is hardly a normal number.
// Without branches, so that a loop around it is made of vector instructions.
static inline double exp_f64(double x) {
  const double shift = 0x1.8p52, clamped = x < -707.0 ? -707.0 : (x > 710.0 ? 710.0 : x);
  const double shifted = clamped * 0x1.71547652b82fep0 + shift, m = shifted - shift;
  const double r = clamped - m * 0x1.62e42fefa3800p-1 - m * 0x1.ef35793c76730p-45;
  double s = 1.0 / 6227020800;
  s = s * r + 1.0 / 479001600, s = s * r + 1.0 / 39916800, s = s * r + 1.0 / 3628800;
  s = s * r + 1.0 / 362880, s = s * r + 1.0 / 40320, s = s * r + 1.0 / 5040, s = s * r + 1.0 / 720;
  s = s * r + 1.0 / 120, s = s * r + 1.0 / 24, s = s * r + 1.0 / 6, s = s * r + 0.5;
  s = s * r + 1, s = s * r + 1;
  uint64_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 52) + ((uint64_t)1022 << 52);
  double half_power;
  memcpy(&half_power, &bits, sizeof bits);
  return x < -707.0 ? 0.0 : 2 * (s * half_power);
}

static inline float exp_f32(float x) {
  const float shift = 0x1.8p23f, clamped = x < -86.0f ? -86.0f : (x > 89.0f ? 89.0f : x);
  const float shifted = clamped * 0x1.715476p0f + shift, m = shifted - shift;
  const float r = clamped - m * 0x1.62e400p-1f - m * 0x1.7f7d1cp-20f;
  float s = 1.0f / 5040;
  s = s * r + 1.0f / 720, s = s * r + 1.0f / 120, s = s * r + 1.0f / 24, s = s * r + 1.0f / 6;
  s = s * r + 0.5f, s = s * r + 1, s = s * r + 1;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 23) + ((uint32_t)126 << 23);
  float half_power;
  memcpy(&half_power, &bits, sizeof bits);
  return x < -86.0f ? 0.0f : 2 * (s * half_power);
}

// erfc(x) = e^(-x^2) t g(t), t = 2 / (2 + x): Chebyshev's fit of g, made by mpmath from erfc with 50 digits. Relative
// error: below (4 + x^2 / 2) 2^-52, and 2^-23 in single precision; that of the rounded x^2 is most of it. So it is
// 1e-15 and 5e-7 up to x = 2, and 6e-14 and 4e-6 at the end, where the result is hardly a normal number.
static inline double erfc_f64(double x) {
  static const double g[] = {
    0x1.058671b52c776p-1, 0x1.5fd386754f00dp-2, 0x1.1e2deea6b100ep-3, 0x1.2a88e610754a2p-6,
    -0x1.606e4154da554p-7, -0x1.a89eaff0ce043p-9, 0x1.9517bb3910df4p-10, 0x1.b6fbf64643a75p-12,
    -0x1.5ba42e428f197p-12, -0x1.205273fe72375p-16, 0x1.2ef91549515adp-14, -0x1.1e7e0f8d6cbc3p-16,
    -0x1.6bdb49e8854f2p-17, 0x1.0ea7318d182cap-17, -0x1.350745999bf5ap-21, -0x1.ec18cc35aea29p-20,
    0x1.13b477a6421cep-20, 0x1.cee15f881760ap-27, -0x1.5a1276867ab55p-22, 0x1.45225bc1f8f95p-23,
    0x1.1d13f7e34e39bp-25, -0x1.c030b8c3a15a8p-25, 0x1.078c2e0b0d7e0p-27, 0x1.ce83839f0d1d6p-28,
    -0x1.22d639dff6ec5p-29};
  const double z = x < 0 ? -x : x, t = 2 / (2 + z), s = 2 * t - 1;
  double p = g[24];
#pragma GCC unroll 24
  for (int k = 23; k >= 0; k--) p = p * s + g[k];
  const double e = exp_f64(-(z * z)) * t * p;
  return x < 0 ? 2 - e : e;
}

static inline float erfc_f32(float x) {
  static const float g[] = {
    0.510791357f, 0.343580319f, 0.139735734f, 0.0182216694f, -0.0107516262f, -0.00324345192f, 0.00152915716f,
    0.000430670488f, -0.000299382712f, -3.66018769e-05f, 4.21611972e-05f};
  const float z = x < 0 ? -x : x, t = 2 / (2 + z), s = 2 * t - 1;
  float p = g[10];
#pragma GCC unroll 10
  for (int k = 9; k >= 0; k--) p = p * s + g[k];
  const float e = exp_f32(-(z * z)) * t * p;
  return x < 0 ? 2 - e : e;
}
