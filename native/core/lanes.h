// Lanes<W>: W doubles that move together, one simulated robot per lane.
//
// Only IEEE + - * / and square root are used, each rounded once, so a lane's value is the same for every W and on every
// instruction set (the build forbids contraction into fused multiply-adds). GCC's vector extension supplies the rest.
#pragma once

#include <stdint.h>

#include "core/isa.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define EVERGAIT_INLINE inline __attribute__((always_inline))
#define EVERGAIT_LAMBDA __attribute__((always_inline))

namespace evergait::EVERGAIT_ISA {

template <int W>
struct LaneTypes {
  typedef double Value __attribute__((vector_size(8 * W)));
  typedef int64_t Mask __attribute__((vector_size(8 * W)));  // all bits set, or none
};

template <int W>
using Lanes = typename LaneTypes<W>::Value;
template <int W>
using LaneMask = typename LaneTypes<W>::Mask;

template <int W>
EVERGAIT_INLINE Lanes<W> broadcast(double x) {
  return Lanes<W>{} + x;
}

template <class V>
EVERGAIT_INLINE V absolute(V x) {
  return x < 0.0 ? -x : x;
}

template <class V>
EVERGAIT_INLINE V smaller(V a, V b) {
  return a < b ? a : b;
}

template <class V>
EVERGAIT_INLINE V larger(V a, V b) {
  return a > b ? a : b;
}

template <int W>
EVERGAIT_INLINE Lanes<W> square_root(Lanes<W> x) {
  Lanes<W> r;
  for (int lane = 0; lane < W; ++lane) r[lane] = __builtin_sqrt(x[lane]);
  return r;
}

// x where the mask is set, exactly zero elsewhere (0 * inf would be NaN, a bitwise and is not).
template <int W>
EVERGAIT_INLINE Lanes<W> keep(LaneMask<W> mask, Lanes<W> x) {
  return (Lanes<W>)(mask & (LaneMask<W>)x);
}

template <int W>
EVERGAIT_INLINE bool any(LaneMask<W> mask) {
#if defined(__AVX512F__)
  if constexpr (W == 8) return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#endif
#if defined(__AVX__)
  if constexpr (W == 4) return _mm256_movemask_pd((__m256d)mask) != 0;
#endif
#if defined(__SSE2__)
  if constexpr (W == 2) return _mm_movemask_pd((__m128d)mask) != 0;
#endif
  int64_t bits = 0;
  for (int lane = 0; lane < W; ++lane) bits |= mask[lane];
#if defined(__GNUC__) && !defined(__clang__)
  if constexpr (W == 1) __asm__("" : "+r"(bits));  // GCC 12 takes `mask & ~other` of one element for zero otherwise
#endif
  return bits != 0;
}

// Sine and cosine to about one unit in the last place for |x| < 2^20; MuJoCo uses libm, whose bits differ between
// systems. Reduction: x - n*pi/2 with pi/2 in three parts, the first two short enough for n*part to be exact.
// Polynomials: interpolation at Chebyshev nodes on [0, (pi/4)^2], computed in 60 digits.
template <int W>
EVERGAIT_INLINE void sine_cosine(Lanes<W> x, Lanes<W>& sine, Lanes<W>& cosine) {
  using V = Lanes<W>;
  using M = LaneMask<W>;
  const double to_nearest = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves the integer in the low bits
  const V shifted = x * 0x1.45f306dc9c883p-1 + to_nearest;
  const M quadrant = (M)shifted;
  const V n = shifted - to_nearest;
  const V r1 = x - n * 0x1.921fb54400000p+0;
  const V n_part2 = n * 0x1.0b4611a600000p-34;
  const V r2 = r1 - n_part2;
  const V tail = n * 0x1.3198a2e037073p-69 - ((r1 - r2) - n_part2);
  const V y = r2 - tail;  // y + y_low is the reduced angle
  const V y_low = (r2 - y) - tail;
  const V z = y * y;

  const V s = 0x1.1111111110bb2p-7 +
              z * (-0x1.a01a019e83816p-13 +
                   z * (0x1.71de379654304p-19 + z * (-0x1.ae600aca92c64p-26 + z * 0x1.5e0b05bff20f2p-33)));
  const V cube = z * y;
  const V sin_y = y - ((z * (0.5 * y_low - cube * s) - y_low) - cube * -0x1.5555555555555p-3);

  const V c = z * (0x1.5555555555555p-5 +
                   z * (-0x1.6c16c16c16967p-10 +
                        z * (0x1.a01a019f4e9b4p-16 +
                             z * (-0x1.27e4fa17bf139p-22 + z * (0x1.1eeb68cd22f56p-29 + z * -0x1.907d8f29fe831p-37)))));
  const V half = 0.5 * z;
  const V top = 1.0 - half;
  const V cos_y = top + (((1.0 - top) - half) + (z * c - y * y_low));

  const M odd = -(quadrant & 1);
  const M sin_sign = (quadrant & 2) << 62;
  const M cos_sign = ((quadrant + 1) & 2) << 62;
  sine = (V)((M)(odd ? cos_y : sin_y) ^ sin_sign);
  cosine = (V)((M)(odd ? sin_y : cos_y) ^ cos_sign);
}

}  // namespace evergait::EVERGAIT_ISA
