// Counter-based normals: Philox4x32-10 and Box-Muller, as written down in src/evergait/random.py.
// Loops run over independent blocks so that the compiler vectorises them; elementary functions are our own polynomials
// in double precision, so that the bits depend neither on libm nor on the instruction set.
#pragma once

#include <stdint.h>
#include <string.h>

#include "core/isa.h"
#include "kernels.h"

namespace evergait::EVERGAIT_ISA {

constexpr int kBlocks = 32;  // Philox blocks computed together

// x[w][i]: word w of block first + i.
inline void philox(const NoiseKey& key, uint32_t index, uint32_t first, uint32_t x[4][kBlocks]) {
  for (int i = 0; i < kBlocks; i++) {
    x[0][i] = first + uint32_t(i);
    x[1][i] = index;
    x[2][i] = key.generation;
    x[3][i] = key.purpose;
  }
  uint32_t k0 = uint32_t(key.seed), k1 = uint32_t(key.seed >> 32);
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < kBlocks; i++) {
      uint64_t a = uint64_t(0xD2511F53u) * x[0][i], b = uint64_t(0xCD9E8D57u) * x[2][i];
      uint32_t y0 = uint32_t(b >> 32) ^ x[1][i] ^ k0, y2 = uint32_t(a >> 32) ^ x[3][i] ^ k1;
      x[0][i] = y0;
      x[1][i] = uint32_t(b);
      x[2][i] = y2;
      x[3][i] = uint32_t(a);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

inline double bits_to_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

inline uint64_t double_to_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// A whole number below 2^52 as a double: put it into the low bits of 2^52 and subtract (vectorises without AVX-512).
inline double whole(uint64_t n) { return bits_to_double(0x4330000000000000u | n) - 0x1p52; }

// ln(x) for normal x > 0: x = m 2^e with m in [√½, √2), ln m = 2 artanh((m-1)/(m+1)).
inline double logarithm(double x) {
  const uint64_t root_half = 0x3FE6A09E667F3BCDu;
  uint64_t bits = double_to_bits(x) - root_half + 0x3FF0000000000000u;
  double e = whole(bits >> 52) - 1023.0;
  double m = bits_to_double((bits & 0x000FFFFFFFFFFFFFu) + root_half);
  double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 19;
  p = p * z + 1.0 / 17;
  p = p * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  p = p * z + 1.0;
  return e * 0.693147180559945309417 + 2.0 * s * p;
}

inline double square_root(double x) { return __builtin_sqrt(x); }

// Two normals from two words; see random.py for the formula.
inline void box_muller(uint32_t a, uint32_t b, float* first, float* second) {
  double u = (whole(a) + 1.0) * 0x1p-32;
  double r = square_root(-2.0 * logarithm(u));
  // The angle is a quadrant (top two bits of b) plus t in [-π/4, π/4).
  double t = (whole(b & 0x3FFFFFFFu) * 0x1p-30 - 0.5) * 1.57079632679489661923;
  double z = t * t;
  double s = -1.0 / 1307674368000.0;
  s = s * z + 1.0 / 6227020800.0;
  s = s * z - 1.0 / 39916800.0;
  s = s * z + 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  s = t + t * (s * z);
  double c = 1.0 / 20922789888000.0;
  c = c * z - 1.0 / 87178291200.0;
  c = c * z + 1.0 / 479001600.0;
  c = c * z - 1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  c = c * z - 0.5;
  c = 1.0 + c * z;
  // Turn by the quadrant: (c, s) → (-s, c) when odd, then negate both in the second half.
  uint64_t odd = 0 - uint64_t((b >> 30) & 1u), half = uint64_t(b >> 31) << 63;
  uint64_t cb = double_to_bits(c), sb = double_to_bits(s);
  double turned_c = bits_to_double(((cb & ~odd) | ((sb ^ 0x8000000000000000u) & odd)) ^ half);
  double turned_s = bits_to_double(((sb & ~odd) | (cb & odd)) ^ half);
  *first = float(r * turned_c);
  *second = float(r * turned_s);
}

// Calls use(j, n, z) for consecutive runs of normals z[0..n) that belong to parameters j..j+n, covering [begin, end).
template <class Use>
inline void for_normals(const NoiseKey& key, uint32_t index, int64_t begin, int64_t end, Use use) {
  alignas(64) uint32_t x[4][kBlocks];
  alignas(64) float even[2][kBlocks], odd[2][kBlocks], z[4 * kBlocks];
  for (int64_t block = begin / 4; 4 * block < end; block += kBlocks) {
    philox(key, index, uint32_t(block), x);
    for (int half = 0; half < 2; half++)
      for (int i = 0; i < kBlocks; i++) box_muller(x[2 * half][i], x[2 * half + 1][i], &even[half][i], &odd[half][i]);
    for (int i = 0; i < kBlocks; i++) {
      z[4 * i] = even[0][i];
      z[4 * i + 1] = odd[0][i];
      z[4 * i + 2] = even[1][i];
      z[4 * i + 3] = odd[1][i];
    }
    int64_t low = 4 * block < begin ? begin : 4 * block;
    int64_t high = 4 * (block + kBlocks) < end ? 4 * (block + kBlocks) : end;
    use(low, int(high - low), z + (low - 4 * block));
  }
}

// gradient[j] = Σ_p weight[p] ε_p[j] for j in [begin, end), pairs in order.
inline void accumulate_noise(const NoiseKey& key, const uint32_t* pairs, const double* weights, int64_t n_pairs,
                             int64_t begin, int64_t end, double* gradient) {
  for (int64_t p = 0; p < n_pairs; p++) {
    double weight = weights[p];
    for_normals(key, pairs[p], begin, end, [&](int64_t j, int n, const float* z) {
      for (int i = 0; i < n; i++) gradient[j + i] += weight * double(z[i]);
    });
  }
}

// NumPy's PCG64 (M. E. O'Neill's XSL-RR 128/64): the generator that Gymnasium's resets draw from. Seeds are NumPy's
// business; here is only the next number.
typedef unsigned __int128 Word128;

// `words` are the high and low half of the state, then those of the increment; the state moves on.
inline uint64_t pcg64_next(uint64_t* words) {
  const Word128 multiplier = Word128(0x2360ed051fc65da4u) << 64 | 0x4385df649fccf645u;
  const Word128 increment = Word128(words[2]) << 64 | words[3];
  const Word128 state = (Word128(words[0]) << 64 | words[1]) * multiplier + increment;
  words[0] = uint64_t(state >> 64), words[1] = uint64_t(state);
  const uint64_t mixed = words[0] ^ words[1];
  const unsigned turn = unsigned(words[0] >> 58);
  return mixed >> turn | mixed << (-turn & 63);
}

// Generator.uniform(low, high)
inline double pcg64_uniform(uint64_t* words, double low, double high) {
  return low + (high - low) * (double(pcg64_next(words) >> 11) * 0x1p-53);
}

// Generator.standard_normal() by the ziggurat's first branch, which serves 98 of 100; false if it is not this one's.
inline bool pcg64_normal(uint64_t* words, const double* width, const uint64_t* bound, double& z) {
  const uint64_t bits = pcg64_next(words), layer = bits & 0xff, steps = bits >> 9 & 0x000fffffffffffff;
  z = double(steps) * width[layer];
  if (bits >> 8 & 1) z = -z;
  return steps < bound[layer];
}

}  // namespace evergait::EVERGAIT_ISA
