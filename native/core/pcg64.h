// NumPy's PCG64 (M. E. O'Neill's XSL-RR 128/64): the generator that Gymnasium's resets draw from. Seeds are NumPy's
// business; here is only the next number.
#pragma once

#include <stdint.h>

#include "core/isa.h"

namespace evergait::EVERGAIT_ISA {

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
