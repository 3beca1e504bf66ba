// The planar engine: steps, and whole episodes.
#include "planar.h"

#include <cstring>

#include "bindings/objects.h"
#include "planar/description.h"

namespace evergait {

namespace {

// Names of a part's fields in the order of a description, those of parts within it behind a dot.
struct Names {
  nb::list names;
  std::string prefix;

  void add(const std::string& name) { names.append(nb::str((prefix + name).c_str())); }
  template <class T>
  void operator()(const char* name, T&) {
    add(name);
  }
  void operator()(const char* name, double (&)[2]) { add(std::string(name) + ".0"), add(std::string(name) + ".1"); }
  void operator()(const char* name, Softness& s) { inside(name, s); }
  void operator()(const char* name, Capsule& c) { inside(name, c); }
  template <class T>
  void inside(const char* name, T& part) {
    const std::string kept = prefix;
    prefix += std::string(name) + ".";
    each_field(part, *this);
    prefix = kept;
  }
};

template <class T>
nb::tuple names_of() {
  T part = {};
  Names names;
  each_field(part, names);
  return nb::tuple(names.names);
}

nb::dict all_names() {
  nb::dict names;
  names["model"] = names_of<PlanarModel>();
  names["dof"] = names_of<Dof>();
  names["point"] = names_of<Point>();
  names["pair"] = names_of<Pair>();
  names["actuator"] = names_of<Actuator>();
  names["rules"] = names_of<TaskRules>();
  return names;
}

PlanarModel model_of(const In<double, 1>& description) {
  PlanarModel model;
  raise_if(read_model(description.data(), int64_t(description.size()), model), "description");
  return model;
}

void require_lanes(const PlanarKernels* kernels, int n_lanes) {
  if (n_lanes != 0 && n_lanes != kernels->fewest_lanes && n_lanes != kernels->native_lanes)
    refuse("n_lanes", std::to_string(n_lanes),
           "0, " + std::to_string(kernels->fewest_lanes) + " or " + std::to_string(kernels->native_lanes));
}

void run_episodes(const PlanarKernels* kernels, nb::handle object) {
  const Members from(object, "flight");
  const PlanarModel model = model_of(from.in<double, 1>("description"));
  EpisodeJob job = {};
  const auto rules = from.in<double, 1>("rules");
  raise_if(read_rules(rules.data(), int64_t(rules.size()), model, job.rules), "flight");

  const Members episodes = from.members("episodes");
  const Candidates rows(episodes);
  const int64_t n = rows.size(), n_dof = model.n_dof, n_seen = rows.network.n_in();
  require_range("flight.episodes.network.n_observations", n_seen, observation_size(job.rules, model),
                observation_size(job.rules, model));
  require_range("flight.episodes.network.n_actions", rows.network.n_out(), model.n_actuators, model.n_actuators);
  const auto seed = episodes.in<uint32_t, 1>("seed");
  const auto thetas = from.maybe_in<float, 2>("thetas");
  if (thetas) {
    rows.network.require_theta("flight.thetas", thetas->shape(1));
    for (int64_t row = 0; row < n; row++)
      require_range("flight.episodes.pair", rows.pair(row), 0, int64_t(thetas->shape(0)) - 1);
  }
  const auto position = from.in<double, 2>("position"), velocity = from.in<double, 2>("velocity");
  const auto returns = from.out<double, 1>("returns");
  const auto lengths = from.out<int32_t, 1>("lengths");
  const auto diverged = from.out<uint8_t, 1>("diverged");
  const auto sums = from.maybe_out<double, 3>("sums"), trace = from.maybe_out<double, 3>("trace");
  const int64_t limit = from.integer("limit", 1, INT32_MAX - 1);
  require_shape("flight.episodes.seed", seed, {n});
  require_shape("flight.position", position, {n, n_dof});
  require_shape("flight.velocity", velocity, {n, n_dof});
  require_shape("flight.returns", returns, {n});
  require_shape("flight.lengths", lengths, {n});
  require_shape("flight.diverged", diverged, {n});
  if (sums) require_shape("flight.sums", *sums, {n, 2, n_seen});
  if (trace) require_shape("flight.trace", *trace, {n, limit + 1, n_dof});
  const int n_threads = int(from.integer("n_threads", 1, 1 << 16));
  const int n_lanes = int(from.integer("n_lanes", 0, 64));
  require_lanes(kernels, n_lanes);

  int64_t next_row = 0;
  job.options = {&model, n_lanes, from.flag("any_tree")};
  job.network = rows.network.view();
  job.theta = thetas ? thetas->data() : rows.theta.data();
  job.theta_stride = thetas ? int64_t(thetas->shape(1)) : 0;
  job.sigma = rows.sigma, job.noise = rows.noise;
  job.pair = rows.pair.data(), job.sign = rows.sign.data(), job.seed = seed.data();
  job.position = position.data(), job.velocity = velocity.data();
  job.n = n, job.limit = int(limit);
  job.noise_purpose = uint32_t(from.integer("noise_purpose", 0, UINT32_MAX));
  job.returns = returns.data(), job.lengths = lengths.data(), job.diverged = diverged.data();
  job.sums = sums ? sums->data() : nullptr;
  job.trace = trace ? trace->data() : nullptr;
  job.next_row = &next_row;
  Status status;
  {
    nb::gil_scoped_release release;
    const int64_t n_flights = n_threads < n ? n_threads : n;
    status = parallel(n_flights, 1, n_threads, [&](int64_t, int64_t) { return kernels->episodes(job); });
  }
  raise_status(status);
}

}  // namespace

void bind_planar(nb::module_& m, const char* isa) {
  const PlanarKernels* kernels = &baseline::planar_kernels;
#if defined(__x86_64__)
  if (!std::strcmp(isa, "avx2")) kernels = &avx2::planar_kernels;
  if (!std::strcmp(isa, "avx512")) kernels = &avx512::planar_kernels;
#endif
  m.attr("PLANAR_LANES") = nb::make_tuple(kernels->fewest_lanes, kernels->native_lanes);
  m.attr("PLANAR_FIELDS") = all_names();
  m.attr("PLANAR_LIMITS") = nb::make_tuple(kMaxDof, kMaxPoints, kMaxPairs, kMaxActuators);
  m.attr("PLANAR_KINDS") = nb::make_tuple("runner", "walker", "pendulum", "double pendulum");  // enum TaskKind

  m.def(
      "planar_step",
      [kernels](In<double, 1> description, Out<double, 2> position, Out<double, 2> velocity, In<double, 2> control,
                int n_frames, int n_threads, int n_lanes, bool any_tree) {
        const PlanarModel model = model_of(description);
        const int64_t n = int64_t(position.shape(0));
        require_shape("position", position, {n, model.n_dof});
        require_shape("velocity", velocity, {n, model.n_dof});
        require_shape("control", control, {n, model.n_actuators});
        require_range("n_frames", n_frames, 0, INT32_MAX);
        require_threads(n_threads);
        require_lanes(kernels, n_lanes);
        Status status;
        {
          nb::gil_scoped_release release;
          status = parallel(n, 64, n_threads, [&](int64_t begin, int64_t end) {
            return kernels->step(
                {{&model, n_lanes, any_tree}, begin, end, n_frames, position.data(), velocity.data(), control.data()});
          });
        }
        raise_status(status);
      },
      nb::arg("description").noconvert(), nb::arg("position").noconvert(), nb::arg("velocity").noconvert(),
      nb::arg("control").noconvert(), nb::arg("n_frames"), nb::arg("n_threads"), nb::arg("n_lanes"),
      nb::arg("any_tree"));

  bind_vector(m, kernels);
  m.def("planar_episodes", [kernels](nb::handle flight) { run_episodes(kernels, flight); }, nb::arg("flight"));
}

}  // namespace evergait
