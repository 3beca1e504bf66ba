// The policy: candidates, actions and derivatives; the random numbers of candidates, and sums of them.
#include <cstring>

#include "bindings/objects.h"

namespace evergait {

namespace {

const char* const kActivations[] = {"linear", "relu", "tanh"};  // in the order of enum Activation

int activation_code(const Members& layer) {
  const std::string name = layer.text("activation");
  for (int code = kLinear; code <= kTanh; code++)
    if (name == kActivations[code]) return code;
  refuse(layer.path("activation"), "'" + name + "'", "linear, relu or tanh");
}

}  // namespace

NetworkHandle::NetworkHandle(nb::handle network) {
  const Members from(network, "network");
  const nb::object rows = from.get("layers");
  for (const nb::handle row : rows) {
    const Members layer(row, from.path("layers") + "[" + std::to_string(layers_.size()) + "]");
    auto offset = [&](const char* name) { return layer.integer(name, 0, INT64_MAX / 2); };
    layers_.push_back({offset("weight"), offset("bias"), layer.integer("n_in", 1, kMaxWidth),
                       layer.integer("n_out", 1, kMaxWidth), activation_code(layer)});
  }
  middle_ = from.in<float, 1>("action_middle"), half_range_ = from.in<float, 1>("action_half_range");
  mean_ = from.maybe_in<double, 1>("mean"), scale_ = from.maybe_in<double, 1>("scale");
  raise_if(check_layers(view(), -1), "network");
  require_shape("network.action_middle", middle_, {n_out()});
  require_shape("network.action_half_range", half_range_, {n_out()});
  if (mean_.has_value() != scale_.has_value())
    refuse("network.scale", mean_ ? "None" : "an array", "as network.mean is");
  if (mean_) require_shape("network.mean", *mean_, {n_in()}), require_shape("network.scale", *scale_, {n_in()});
}

Network NetworkHandle::view() const {
  return {layers_.data(), int(layers_.size()), mean_ ? mean_->data() : nullptr, scale_ ? scale_->data() : nullptr,
          middle_.data(), half_range_.data()};
}

void NetworkHandle::require_theta(const char* name, size_t n) const {
  raise_if(check_layers(view(), int64_t(n)),
           std::string("network (with ") + std::to_string(n) + " numbers in " + name + ")");
}

Candidates::Candidates(const Members& from)
    : owner(from.members("network").get("native")),
      network(nb::cast<const NetworkHandle&>(owner)),
      theta(from.in<float, 1>("theta")),
      sigma(float(from.number("sigma"))),
      noise(read_noise(from.members("noise"))),
      pair(from.in<uint32_t, 1>("pair")),
      sign(from.in<float, 1>("sign")) {
  network.require_theta(from.path("theta").c_str(), theta.size());
  require_shape(from.path("sign"), sign, {size()});
}

void bind_policy(nb::module_& m, const Kernels* kernels) {
  m.attr("MAX_WIDTH") = kMaxWidth;
  m.attr("MAX_PARAMETERS") = kMaxParameters;

  nb::class_<NetworkHandle>(m, "Network")
      .def(nb::init<nb::handle>(), nb::arg("network"))
      .def_prop_ro("packed_size", [kernels](const NetworkHandle& self) { return kernels->packed_size(self.view()); });

  m.def(
      "pack_candidates",
      [kernels](nb::handle candidates, Out<float, 2> packed, int n_threads) {
        const Candidates rows{Members(candidates, "candidates")};
        const Network network = rows.network.view();
        const int64_t n_packed = kernels->packed_size(network);
        require_shape("packed", packed, {rows.size(), n_packed});
        require_threads(n_threads);
        nb::gil_scoped_release release;
        parallel(rows.size(), 1, n_threads, [&](int64_t low, int64_t high) {
          for (int64_t row = low; row < high; row++)
            kernels->pack(network, rows.theta.data(), rows.sigma * rows.sign.data()[row], rows.noise,
                          rows.pair.data()[row], packed.data() + row * n_packed);
          return kDone;
        });
      },
      nb::arg("candidates"), nb::arg("packed").noconvert(), nb::arg("n_threads"));

  m.def(
      "act",
      [kernels](const NetworkHandle& handle, In<float, 2> packed, In<double, 2> observations, Out<float, 2> actions,
                int n_threads) {
        const Network network = handle.view();
        const int64_t n = int64_t(packed.shape(0)), n_packed = kernels->packed_size(network);
        require_shape("packed", packed, {n, n_packed});
        require_shape("observations", observations, {n, handle.n_in()});
        require_shape("actions", actions, {n, handle.n_out()});
        require_threads(n_threads);
        Status status;
        {
          nb::gil_scoped_release release;
          status = parallel(n, 1, n_threads, [&](int64_t low, int64_t high) {
            return kernels->act(network, packed.data() + low * n_packed, observations.data() + low * handle.n_in(),
                                high - low, actions.data() + low * handle.n_out());
          });
        }
        raise_status(status);
      },
      nb::arg("network"), nb::arg("packed").noconvert(), nb::arg("observations").noconvert(),
      nb::arg("actions").noconvert(), nb::arg("n_threads"));

  m.def(
      "outputs",
      [kernels](const NetworkHandle& handle, In<double, 1> theta, In<double, 2> observations, Out<double, 2> outputs) {
        const int64_t n = int64_t(observations.shape(0));
        handle.require_theta("theta", theta.size());
        require_shape("observations", observations, {n, handle.n_in()});
        require_shape("outputs", outputs, {n, handle.n_out()});
        Status status;
        {
          nb::gil_scoped_release release;
          status = kernels->outputs(handle.view(), theta.data(), observations.data(), n, outputs.data());
        }
        raise_status(status);
      },
      nb::arg("network"), nb::arg("theta").noconvert(), nb::arg("observations").noconvert(),
      nb::arg("outputs").noconvert());

  m.def(
      "pull_back",
      [kernels](const NetworkHandle& handle, In<double, 1> theta, In<double, 2> observations, In<double, 2> cotangents,
                bool squared, Out<double, 1> gradient) {
        const int64_t n = int64_t(observations.shape(0));
        handle.require_theta("theta", theta.size());
        require_shape("observations", observations, {n, handle.n_in()});
        require_shape("cotangents", cotangents, {n, handle.n_out()});
        require_shape("gradient", gradient, {int64_t(theta.size())});
        Status status;
        {
          nb::gil_scoped_release release;
          status = kernels->pull_back(handle.view(), theta.data(), observations.data(), cotangents.data(), n, squared,
                                      gradient.data());
        }
        raise_status(status);
      },
      nb::arg("network"), nb::arg("theta").noconvert(), nb::arg("observations").noconvert(),
      nb::arg("cotangents").noconvert(), nb::arg("squared"), nb::arg("gradient").noconvert());

  m.def(
      "approach",
      [kernels](const NetworkHandle& handle, In<double, 1> theta, In<float, 2> observations, In<float, 2> targets,
                In<uint32_t, 1> rows, double least, Out<double, 1> gradient) {
        const int64_t n = int64_t(observations.shape(0)), n_theta = int64_t(theta.size());
        handle.require_theta("theta", theta.size());
        require_shape("observations", observations, {n, handle.n_in()});
        require_shape("targets", targets, {n, handle.n_out()});
        require_shape("gradient", gradient, {n_theta});
        for (size_t i = 0; i < rows.size(); i++) require_range("rows", rows.data()[i], 0, n - 1);
        Status status;
        {
          nb::gil_scoped_release release;
          status = kernels->approach(handle.view(), theta.data(), n_theta, observations.data(), targets.data(),
                                     rows.data(), int64_t(rows.size()), least, gradient.data());
        }
        raise_status(status);
      },
      nb::arg("network"), nb::arg("theta").noconvert(), nb::arg("observations").noconvert(),
      nb::arg("targets").noconvert(), nb::arg("rows").noconvert(), nb::arg("least"), nb::arg("gradient").noconvert());
}

constexpr int64_t kMaxDraws = int64_t(1) << 34;  // a counter's 32 bits, of four words each

void bind_noise(nb::module_& m, const Kernels* kernels) {
  m.def(
      "words",
      [kernels](nb::handle noise, uint32_t index, int64_t n) {
        require_range("n", n, 0, kMaxDraws);
        const NoiseKey key = read_noise({noise, "noise"});
        auto out = make_array<uint32_t>(n);
        kernels->words(key, index, n, out.data());
        return out;
      },
      nb::arg("noise"), nb::arg("index"), nb::arg("n"));

  m.def(
      "normals",
      [kernels](nb::handle noise, uint32_t index, int64_t begin, int64_t end) {
        require_range("begin", begin, 0, kMaxDraws);
        require_range("end", end, begin, kMaxDraws);
        const NoiseKey key = read_noise({noise, "noise"});
        auto out = make_array<float>(end - begin);
        kernels->normals(key, index, begin, end, out.data());
        return out;
      },
      nb::arg("noise"), nb::arg("index"), nb::arg("begin"), nb::arg("end"));

  m.def(
      "accumulate_noise",
      [kernels](nb::handle noise, In<uint32_t, 1> pairs, In<double, 1> weights, int64_t begin, int64_t end,
                Out<double, 1> gradient, int n_threads) {
        const int64_t n_pairs = int64_t(pairs.size());
        require_shape("weights", weights, {n_pairs});
        require_range("begin", begin, 0, int64_t(gradient.size()));
        require_range("end", end, begin, int64_t(gradient.size()));
        require_threads(n_threads);
        const NoiseKey key = read_noise({noise, "noise"});
        nb::gil_scoped_release release;
        parallel(end - begin, 128, n_threads, [&](int64_t low, int64_t high) {
          kernels->accumulate(key, pairs.data(), weights.data(), n_pairs, begin + low, begin + high, gradient.data());
          return kDone;
        });
      },
      nb::arg("noise"), nb::arg("pairs").noconvert(), nb::arg("weights").noconvert(), nb::arg("begin"), nb::arg("end"),
      nb::arg("gradient").noconvert(), nb::arg("n_threads"));
}

}  // namespace evergait
