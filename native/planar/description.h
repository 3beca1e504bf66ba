// Flat descriptions of robots and rules, as arrays of doubles in the order of the fields below, and whether they make
// sense. Whoever writes a description asks for the names of the fields (PLANAR_FIELDS in Python), so that no order is
// written down twice.
//
// Not for kernel files: these templates belong to no instruction set (see core/isa.h).
#pragma once

#include "checks.h"
#include "planar.h"

namespace evergait {

Problem read_model(const double* description, int64_t n, PlanarModel& model);
Problem read_rules(const double* description, int64_t n, const PlanarModel& model, TaskRules& rules);

// How many numbers a policy sees of a robot.
int observation_size(const TaskRules& rules, const PlanarModel& model);

template <class F>
void each_field(Softness& s, F& f) {
  f("margin", s.margin), f("stiffness", s.stiffness), f("damping", s.damping), f("d_min", s.d_min);
  f("d_max", s.d_max), f("width", s.width), f("midpoint", s.midpoint), f("power", s.power), f("weight", s.weight);
}

template <class F>
void each_field(Dof& d, F& f) {
  f("kind", d.kind), f("parent", d.parent), f("sign", d.sign), f("reference", d.reference);
  f("anchor_x", d.anchor_x), f("anchor_z", d.anchor_z), f("subtree_mass", d.subtree_mass);
  f("moment_x", d.moment_x), f("moment_z", d.moment_z), f("inertia", d.inertia), f("armature", d.armature);
  f("damping", d.damping), f("stiffness", d.stiffness), f("spring_reference", d.spring_reference);
  f("limited", d.limited), f("lower", d.lower), f("upper", d.upper), f("limit", d.limit);
  f("centre_x", d.centre_x), f("centre_z", d.centre_z), f("box_cos", d.box_cos), f("box_sin", d.box_sin);
  f("drag_linear", d.drag_linear), f("drag_1", d.drag_1), f("drag_2", d.drag_2), f("drag_spin", d.drag_spin);
  f("drag_spin_quadratic", d.drag_spin_quadratic), f("first_point", d.first_point), f("n_points", d.n_points);
}

template <class F>
void each_field(Point& p, F& f) {
  f("dof", p.dof), f("x", p.x), f("z", p.z), f("radius", p.radius), f("floor_height", p.floor_height);
  f("dimension", p.dimension), f("friction", p.friction), f("contact", p.contact);
}

template <class F>
void each_field(Capsule& c, F& f) {
  f("dof", c.dof), f("x", c.x), f("z", c.z), f("axis_x", c.axis_x), f("axis_z", c.axis_z);
  f("radius", c.radius), f("length", c.length);
}

template <class F>
void each_field(Pair& p, F& f) {
  f("a", p.a), f("b", p.b), f("dimension", p.dimension), f("friction", p.friction), f("reach", p.reach);
  f("contact", p.contact);
}

template <class F>
void each_field(Actuator& a, F& f) {
  f("dof", a.dof), f("gain", a.gain), f("limited", a.limited), f("lower", a.lower), f("upper", a.upper);
}

// The model's own numbers; its dofs, points, pairs and actuators follow in the description.
template <class F>
void each_field(PlanarModel& m, F& f) {
  f("n_dof", m.n_dof), f("n_points", m.n_points), f("n_pairs", m.n_pairs), f("n_actuators", m.n_actuators);
  f("runge_kutta", m.runge_kutta), f("implicit_damping", m.implicit_damping), f("fluid", m.fluid);
  f("dense", m.dense), f("timestep", m.timestep), f("gravity_x", m.gravity_x), f("gravity_z", m.gravity_z);
}

template <class F>
void each_field(TaskRules& r, F& f) {
  f("kind", r.kind), f("n_frames", r.n_frames), f("n_hidden", r.n_hidden), f("clips_velocity", r.clips_velocity);
  f("dt", r.dt), f("forward_weight", r.forward_weight), f("healthy_reward", r.healthy_reward);
  f("control_weight", r.control_weight), f("height", r.height), f("angle", r.angle), f("state", r.state);
  f("tip", r.tip), f("observation_noise", r.observation_noise);
}

}  // namespace evergait
