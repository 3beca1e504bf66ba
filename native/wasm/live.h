// One robot that lives: its policy acts step by step in a world that may change under it, and a hand may pull at it.
// With the world as it was compiled and no hand, every step has the bits of planar/episodes.h.
#pragma once

#include "core/policy.h"
#include "planar/rules.h"

namespace evergait::EVERGAIT_ISA {

// Factors on the world that a model was compiled for.
struct World {
  double gravity, friction, mass, size, strength;
};

inline void scale(Softness& s, double f) { s.weight *= f; }

// Lengths times `size` with the same masses. Inverse weights, which decide how soft limits and contacts are, follow the
// masses as if joints had no armature; MuJoCo would compute them anew.
inline void change(PlanarModel& m, const World& w) {
  const double length = w.size, area = length * length;
  const double dof_weight = 1.0 / w.mass;
  m.gravity_x *= w.gravity, m.gravity_z *= w.gravity;
  for (int i = 0; i < m.n_dof; ++i) {
    Dof& d = m.dof[i];
    d.anchor_x *= length, d.anchor_z *= length, d.centre_x *= length, d.centre_z *= length;
    d.subtree_mass *= w.mass, d.inertia *= w.mass * area;
    d.moment_x *= w.mass * length, d.moment_z *= w.mass * length;
    d.drag_linear *= length, d.drag_1 *= area, d.drag_2 *= area;
    d.drag_spin *= area * length, d.drag_spin_quadratic *= area * area * length;
    scale(d.limit, d.kind == kHinge ? dof_weight / area : dof_weight);
  }
  auto touch = [&](int dimension, double& friction, Softness& s) {
    const double before = friction * friction;
    friction *= w.friction;
    const double after = friction * friction;
    scale(s, dof_weight * (dimension == 3 ? (after * (1.0 + after)) / (before * (1.0 + before)) : 1.0));
  };
  auto stretch = [&](Capsule& c) {
    c.x *= length, c.z *= length, c.axis_x *= length, c.axis_z *= length, c.radius *= length, c.length *= length;
  };
  for (int i = 0; i < m.n_points; ++i) {
    Point& p = m.point[i];
    p.x *= length, p.z *= length, p.radius *= length;
    touch(p.dimension, p.friction, p.contact);
  }
  for (int i = 0; i < m.n_pairs; ++i) {
    Pair& p = m.pair[i];
    stretch(p.a), stretch(p.b);
    p.reach *= length;
    touch(p.dimension, p.friction, p.contact);
  }
  for (int i = 0; i < m.n_actuators; ++i) m.actuator[i].gain *= w.strength;
}

// A spring and a damper from a point of a link to a point of the world.
struct Hand {
  int dof = -1;  // -1: lets go
  double x, z, target_x, target_z, stiffness, damping;
};

struct Place {
  double x, z, angle;  // of a link's anchor in the world
};

struct Live {
  static constexpr int W = kNativeLanes;
  const PlanarModel& compiled;
  const TaskRules& rules;
  Network network;
  float *packed, *scratch;
  PlanarModel model;  // as the world is now
  Physics<W> physics;
  NoiseKey observation_noise;
  State<W> state;
  Lanes<W> applied[kMaxDof];
  Hand hand;
  float action[kMaxActuators];
  double total;
  int elapsed, healthy, finite;

  Live(const PlanarModel& robot, const TaskRules& task, const Network& policy)
      : compiled(robot),
        rules(task),
        network(policy),
        packed(allocate<float>(packed_size(policy))),
        scratch(allocate<float>(scratch_size(policy))),
        model(robot),
        physics(open_physics<W>({&model, 0, false})) {}

  void close() {
    close_physics(physics);
    free(packed);
    free(scratch);
  }

  void change_world(const World& world) {
    model = compiled;
    change(model, world);
  }

  // Lanes beside the first hold NaN, which touches nothing.
  void reset(const double* position, const double* velocity) {
    const PlanarModel& m = model;
    for (int lane = 0; lane < W; ++lane) {
      for (int i = 0; i < m.n_dof; ++i) {
        state.q[i][lane] = lane ? __builtin_nan("") : m.dof[i].sign * position[i];
        state.v[i][lane] = lane ? __builtin_nan("") : m.dof[i].sign * velocity[i];
        state.acceleration[i][lane] = state.evaluated[i][lane] = applied[i][lane] = 0.0;
      }
      state.root_force[lane] = 0.0;
    }
    total = 0.0, elapsed = 0, healthy = finite = 1;
  }

  void place(Place* places) const {
    const PlanarModel& m = model;
    for (int i = 0; i < m.n_dof; ++i) {
      const Dof& d = m.dof[i];
      const Place from = d.parent >= 0 ? places[d.parent] : Place{0.0, 0.0, 0.0};
      Lanes<1> sine, cosine;
      sine_cosine<1>(Lanes<1>{} + from.angle, sine, cosine);
      Place& to = places[i];
      to.x = from.x + d.anchor_x * cosine[0] + d.anchor_z * sine[0];
      to.z = from.z + d.anchor_z * cosine[0] - d.anchor_x * sine[0];
      to.angle = from.angle;
      const double shift = state.q[i][0] - d.reference;
      (d.kind == kSlideX ? to.x : d.kind == kSlideZ ? to.z : to.angle) += shift;
    }
  }

  // Adds the hand's pull, as forces on the joints above the link that it holds.
  void pull(Lanes<W>* forces) const {
    const PlanarModel& m = model;
    Place places[kMaxDof];
    place(places);
    const Place& held = places[hand.dof];
    Lanes<1> sine, cosine;
    sine_cosine<1>(Lanes<1>{} + held.angle, sine, cosine);
    const double x = held.x + hand.x * cosine[0] + hand.z * sine[0];
    const double z = held.z + hand.z * cosine[0] - hand.x * sine[0];
    double speed_x = 0.0, speed_z = 0.0;
    auto along = [&](int i, double& by_x, double& by_z) {
      by_x = m.dof[i].kind == kSlideX ? 1.0 : m.dof[i].kind == kHinge ? z - places[i].z : 0.0;
      by_z = m.dof[i].kind == kSlideZ ? 1.0 : m.dof[i].kind == kHinge ? places[i].x - x : 0.0;
    };
    double by_x, by_z;
    for (int i = hand.dof; i >= 0; i = m.dof[i].parent) {
      along(i, by_x, by_z);
      speed_x += by_x * state.v[i][0], speed_z += by_z * state.v[i][0];
    }
    const double force_x = hand.stiffness * (hand.target_x - x) - hand.damping * speed_x;
    const double force_z = hand.stiffness * (hand.target_z - z) - hand.damping * speed_z;
    for (int i = hand.dof; i >= 0; i = m.dof[i].parent) {
      along(i, by_x, by_z);
      forces[i][0] += by_x * force_x + by_z * force_z;
    }
  }

  // One environment step. An unhealthy robot goes on: it is shown as it lies there, and earns nothing more.
  void step() {
    const PlanarModel& m = model;
    double seen[kMaxObservations];
    View at = view(m, state, 0);
    const double x_before = at.position[0];
    observe(rules, m, at, seen);
    if (rules.observation_noise != 0.0)
      for_normals(observation_noise, uint32_t(elapsed), 0, network.layers[0].n_in,
                  [&](int64_t j, int n, const float* z) {
                    for (int k = 0; k < n; ++k) seen[j + k] += rules.observation_noise * double(z[k]);
                  });
    policy_action(network, packed, seen, scratch, action);
    apply_control<W>(m, action, 0, applied);
    if (hand.dof < 0) {
      physics.advance(state, applied, rules.n_frames);
    } else {
      Lanes<W> forces[kMaxDof];
      for (int frame = 0; frame < rules.n_frames; ++frame) {
        for (int i = 0; i < m.n_dof; ++i) forces[i] = applied[i];
        pull(forces);
        physics.advance(state, forces, 1);
      }
    }
    at = view(m, state, 0);
    finite = finite && is_finite(m.n_dof, at);
    if (!healthy || !finite) return;
    healthy = is_healthy(rules, m, at);
    total += reward(rules, m, x_before, at, healthy, action);
    ++elapsed;
  }
};

}  // namespace evergait::EVERGAIT_ISA
