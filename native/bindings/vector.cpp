// The planar engine behind vector environments: arrays that Python owns, read and checked once, then stepped in place.
#include <algorithm>
#include <memory>
#include <numeric>

#include "bindings/objects.h"
#include "planar.h"
#include "planar/description.h"

namespace evergait {

namespace {

constexpr int64_t kBlockRows = 16;   // that a thread takes at once: a few vectors of robots
constexpr int64_t kLeastBlocks = 4;  // that a further thread is worth: to wake it takes as long as one or two of them

class PlanarVector {
 public:
  PlanarVector(const PlanarKernels* kernels, nb::handle object) : kernels_(kernels), from_(object, "vector") {
    position_ = from_.out<double, 2>("position");
    n_ = int64_t(position_.shape(0)), n_dof_ = int64_t(position_.shape(1));
    n_actions_ = from_.integer("n_actions", 0, kMaxActuators);
    velocity_ = from_.out<double, 2>("velocity"), acceleration_ = from_.out<double, 2>("acceleration");
    generator_ = from_.out<uint64_t, 2>("generator"), noise_seed_ = from_.out<uint64_t, 1>("noise_seed");
    episode_ = from_.out<uint32_t, 1>("episode"), elapsed_ = from_.out<int32_t, 1>("elapsed");
    observations_ = from_.maybe_out<double, 2>("observations"), narrow_ = from_.maybe_out<float, 2>("narrow");
    rewards_ = from_.out<double, 1>("rewards"), infos_ = from_.out<double, 2>("infos");
    terminated_ = from_.out<uint8_t, 1>("terminated"), truncated_ = from_.out<uint8_t, 1>("truncated");
    diverged_ = from_.out<uint8_t, 1>("diverged");
    require_shape("vector.velocity", velocity_, {n_, n_dof_});
    require_shape("vector.acceleration", acceleration_, {n_, n_dof_});
    require_shape("vector.generator", generator_, {n_, 4});
    require_shape("vector.noise_seed", noise_seed_, {n_});
    require_shape("vector.episode", episode_, {n_});
    require_shape("vector.elapsed", elapsed_, {n_});
    require_shape("vector.rewards", rewards_, {n_});
    require_shape("vector.infos", infos_, {kVectorInfos, n_});
    require_shape("vector.terminated", terminated_, {n_});
    require_shape("vector.truncated", truncated_, {n_});
    require_shape("vector.diverged", diverged_, {n_});
    limit_ = int(from_.integer("limit", 1, INT32_MAX));
    ends_ = from_.flag("ends"), normal_ = from_.flag("normal");
    normal_width_ = from_.in<double, 1>("normal_width"), normal_bound_ = from_.in<uint64_t, 1>("normal_bound");
    require_shape("vector.normal_width", normal_width_, {256});
    require_shape("vector.normal_bound", normal_bound_, {256});
    undrawn_ = from_.out<uint8_t, 1>("undrawn");
    require_shape("vector.undrawn", undrawn_, {n_});
    noise_purpose_ = uint32_t(from_.integer("noise_purpose", 0, UINT32_MAX));
  }

  // Which robot is in which row.
  void assign(nb::sequence groups, In<int32_t, 1> group) {
    require_idle();
    std::vector<VectorGroup> read;
    for (nb::handle one : groups) read.push_back(read_group(Members(one, "group")));
    require_shape("group", group, {n_});
    for (int64_t row = 0; row < n_; row++) require_range("group", group(row), 0, int64_t(read.size()) - 1);
    groups_ = std::move(read), group_.assign(group.data(), group.data() + n_);
    order_.resize(size_t(n_)), std::iota(order_.begin(), order_.end(), int64_t(0));
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int64_t a, int64_t b) { return group_[size_t(a)] < group_[size_t(b)]; });
  }

  void step(In<float, 2> actions, In<uint8_t, 1> which, int n_threads) {
    require_shape("actions", actions, {n_, n_actions_});
    require_threads(n_threads);
    VectorJob job = prepare(which);
    job.actions = actions.data();
    for (int64_t i = 0; i < n_ * n_actions_; i++)
      if (which(i / n_actions_) && !(job.actions[i] - job.actions[i] == 0.0f))
        refuse("actions[" + std::to_string(i / n_actions_) + "]", std::to_string(job.actions[i]), "a finite number");
    const int n_workers = int(std::clamp<int64_t>(job.n_blocks / kLeastBlocks, 1, n_threads));
    if (!crew_ || !crew_->serves(n_workers)) crew_.emplace(n_workers);
    Status status;
    {
      const Busy busy(is_busy_);
      nb::gil_scoped_release release;
      status = crew_->run(n_workers, [&](int64_t) { return kernels_->vector_step(job); });
    }
    raise_status(status);
  }

  void begin(In<uint8_t, 1> which, bool draws) {
    VectorJob job = prepare(which);
    job.draws = draws;
    kernels_->vector_begin(job);
  }

 private:
  struct Busy {  // while the lock of Python is not held
    explicit Busy(bool& flag) : flag(flag) { flag = true; }
    ~Busy() { flag = false; }
    bool& flag;
  };

  void require_idle() const {
    if (is_busy_) refuse("vector", "in use", "used by one thread at a time");
  }

  VectorGroup read_group(const Members& from) const {
    VectorGroup group = {};
    const auto description = from.in<double, 1>("description"), rules = from.in<double, 1>("rules");
    raise_if(read_model(description.data(), int64_t(description.size()), group.model), "group");
    raise_if(read_rules(rules.data(), int64_t(rules.size()), group.model, group.rules), "group");
    require_range("group.model.n_dof", group.model.n_dof, n_dof_, n_dof_);
    require_range("group.model.n_actuators", group.model.n_actuators, n_actions_, n_actions_);
    const auto position = from.in<double, 1>("position"), velocity = from.in<double, 1>("velocity");
    require_shape("group.position", position, {n_dof_});
    require_shape("group.velocity", velocity, {n_dof_});
    std::copy_n(position.data(), n_dof_, group.position), std::copy_n(velocity.data(), n_dof_, group.velocity);
    group.reset_noise = from.number("reset_noise");
    const int64_t n_seen = observation_size(group.rules, group.model);
    if (observations_) require_shape("vector.observations", *observations_, {n_, n_seen});
    if (narrow_) require_shape("vector.narrow", *narrow_, {n_, n_seen});
    return group;
  }

  // The rows of a call, cut into blocks.
  VectorJob prepare(const In<uint8_t, 1>& which) {
    require_shape("which", which, {n_});
    require_idle();
    if (group_.empty() && n_) refuse("group", "not assigned yet", "assigned before the first call");
    rows_.clear(), blocks_.clear();
    for (const int64_t row : order_) {
      if (!which(row)) continue;
      const bool other = !rows_.empty() && group_[size_t(rows_.back())] != group_[size_t(row)];
      if (rows_.empty() || other || int64_t(rows_.size()) - blocks_.back() == kBlockRows)
        blocks_.push_back(int64_t(rows_.size()));
      rows_.push_back(row);
    }
    blocks_.push_back(int64_t(rows_.size()));
    next_block_ = 0;
    VectorJob job = {};
    job.groups = groups_.data(), job.group = group_.data(), job.n = n_;
    job.position = position_.data(), job.velocity = velocity_.data(), job.acceleration = acceleration_.data();
    job.generator = generator_.data(), job.noise_seed = noise_seed_.data(), job.episode = episode_.data();
    job.elapsed = elapsed_.data();
    job.observations = observations_ ? observations_->data() : nullptr;
    job.narrow = narrow_ ? narrow_->data() : nullptr;
    job.rewards = rewards_.data(), job.infos = infos_.data();
    job.terminated = terminated_.data(), job.truncated = truncated_.data(), job.diverged = diverged_.data();
    job.limit = limit_, job.ends = ends_, job.noise_purpose = noise_purpose_;
    job.normal = normal_, job.normal_width = normal_width_.data(), job.normal_bound = normal_bound_.data();
    job.undrawn = undrawn_.data();
    job.rows = rows_.data(), job.blocks = blocks_.data(), job.n_blocks = int64_t(blocks_.size()) - 1;
    job.next_block = &next_block_;
    return job;
  }

  const PlanarKernels* kernels_;
  Members from_;  // keeps the arrays alive
  int64_t n_, n_dof_, n_actions_, next_block_ = 0;
  Out<double, 2> position_, velocity_, acceleration_, infos_;
  Out<uint64_t, 2> generator_;
  Out<uint64_t, 1> noise_seed_;
  Out<uint32_t, 1> episode_;
  Out<int32_t, 1> elapsed_;
  std::optional<Out<double, 2>> observations_;
  std::optional<Out<float, 2>> narrow_;
  Out<double, 1> rewards_;
  Out<uint8_t, 1> terminated_, truncated_, diverged_, undrawn_;
  In<double, 1> normal_width_;
  In<uint64_t, 1> normal_bound_;
  int limit_;
  bool ends_, normal_, is_busy_ = false;
  uint32_t noise_purpose_;
  std::vector<VectorGroup> groups_;
  std::vector<int32_t> group_;
  std::vector<int64_t> order_, rows_, blocks_;
  std::optional<Crew> crew_;
};

}  // namespace

void bind_vector(nb::module_& m, const PlanarKernels* kernels) {
  m.attr("VECTOR_INFOS") = nb::make_tuple(  // enum VectorInfo
      "x_position", "y_position", "z_distance_from_origin", "distance_from_origin", "x_velocity", "y_velocity",
      "reward_forward", "reward_ctrl", "reward_survive", "distance_penalty", "velocity_penalty");
  nb::class_<PlanarVector>(m, "PlanarVector")
      .def("assign", &PlanarVector::assign, nb::arg("groups"), nb::arg("group").noconvert())
      .def("step", &PlanarVector::step, nb::arg("actions").noconvert(), nb::arg("which").noconvert(),
           nb::arg("n_threads"))
      .def("begin", &PlanarVector::begin, nb::arg("which").noconvert(), nb::arg("draws"));
  m.def("planar_vector", [kernels](nb::handle vector) { return new PlanarVector(kernels, vector); }, nb::arg("vector"));
}

}  // namespace evergait
