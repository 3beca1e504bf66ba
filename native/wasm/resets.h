// NumPy's uniform numbers: Generator(PCG64(SeedSequence(seed))).uniform(low, high), which is what Gymnasium's resets
// draw from. SeedSequence is M. E. O'Neill's seed_seq_fe128, PCG64 her pcg64 (XSL-RR 128/64).
#pragma once

#include <stdint.h>

namespace evergait {

class Pcg64 {
 public:
  explicit Pcg64(uint32_t seed) {
    uint32_t pool[4], constant = 0x43b0d7e5u;
    auto hash = [&](uint32_t value) {
      value ^= constant;
      constant *= 0x931e8875u;
      value *= constant;
      return value ^ (value >> 16);
    };
    for (int i = 0; i < 4; i++) pool[i] = hash(i ? 0 : seed);
    for (int from = 0; from < 4; from++)
      for (int to = 0; to < 4; to++)
        if (from != to) {
          const uint32_t mixed = 0xca01f9ddu * pool[to] - 0x4973f715u * hash(pool[from]);
          pool[to] = mixed ^ (mixed >> 16);
        }
    uint64_t words[4] = {};
    constant = 0x8b51f9ddu;
    for (int i = 0; i < 8; i++) {
      uint32_t value = pool[i % 4] ^ constant;
      constant *= 0x58f38dedu;
      value *= constant;
      words[i / 2] |= uint64_t(value ^ (value >> 16)) << (32 * (i % 2));
    }
    increment_ = {words[2] << 1 | words[3] >> 63, words[3] << 1 | 1};
    step();
    state_ = add(state_, {words[0], words[1]});
    step();
  }

  double uniform(double low, double high) {
    step();
    const uint64_t mixed = state_.high ^ state_.low;
    const unsigned turn = unsigned(state_.high >> 58);
    const uint64_t bits = (mixed >> turn) | (mixed << (-turn & 63));
    return low + (high - low) * (double(bits >> 11) * 0x1p-53);
  }

 private:
  struct Word {  // 128 bits; the compiler's own need a library that the module does without
    uint64_t high, low;
  };
  Word state_ = {0, 0}, increment_;

  static Word add(Word a, Word b) {
    const uint64_t low = a.low + b.low;
    return {a.high + b.high + (low < a.low), low};
  }

  static Word multiply(uint64_t a, uint64_t b) {
    const uint64_t mask = 0xffffffffu, a0 = a & mask, a1 = a >> 32, b0 = b & mask, b1 = b >> 32;
    const uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (middle & mask);
    return {a1 * b1 + (middle >> 32) + (other >> 32), other << 32 | (low & mask)};
  }

  void step() {
    const uint64_t high = 0x2360ed051fc65da4u, low = 0x4385df649fccf645u;
    Word product = multiply(state_.low, low);
    product.high += state_.high * low + state_.low * high;
    state_ = add(product, increment_);
  }
};

}  // namespace evergait
