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
inline Problem check_layers(const Network& network, int64_t n_theta) {
  Checks check;
  check.number("layers", -1, "length", network.n_layers, 1, 1 << 20);
  for (int l = 0; l < network.n_layers && !check.problem; l++) {
    const Layer& layer = network.layers[l];
    const double before = l ? double(network.layers[l - 1].n_out) : 0.0;
    check.number("layers", l, "n_in", double(layer.n_in), l ? before : 1, l ? before : double(kMaxWidth),
                 l ? "n_out of the layer before" : nullptr);
    check.number("layers", l, "n_out", double(layer.n_out), 1, double(kMaxWidth));
    check.number("layers", l, "activation", layer.activation, kLinear, kTanh);
    if (n_theta < 0 || check.problem) continue;
    check.number("layers", l, "weight", double(layer.weight), 0, double(n_theta - layer.n_in * layer.n_out),
                 "an offset with room for the weight in theta");
    check.number("layers", l, "bias", double(layer.bias), 0, double(n_theta - layer.n_out),
                 "an offset with room for the bias in theta");
  }
  return check.problem;
}

}  // namespace evergait
