// What is wrong with numbers that come from outside, so that no kernel reads or writes beyond what it was given.
#pragma once

#include "kernels.h"

namespace evergait {

// "part[index].field: is value; it must be from low to high", or what `right` says; no field: nothing is wrong.
struct Problem {
  const char* part;
  int index;  // -1: the part has one
  const char* field;
  double value, low, high;
  const char* right;
  explicit operator bool() const { return field != nullptr; }
};

// The first number out of its range.
class Checks {
 public:
  Problem problem = {};

  bool number(const char* part, int index, const char* field, double value, double low, double high,
              const char* right = nullptr) {
    if (problem || (value >= low && value <= high)) return !problem;  // NaN is in no range
    problem = {part, index, field, value, low, high, right};
    return false;
  }
};

// Widths that fit together, activations that exist, and layers inside a θ of `n_theta` numbers (-1: not known yet).
Problem check_layers(const Network& network, int64_t n_theta);

}  // namespace evergait
