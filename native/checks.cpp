#include "checks.h"

namespace evergait {

Problem check_layers(const Network& network, int64_t n_theta) {
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
