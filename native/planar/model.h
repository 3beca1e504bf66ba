// The flat description of a planar robot. Python compiles it from an mjModel (engines/planar_model.py) and packs it
// into one array of doubles; read_model() below and pack() there list the columns in the same order.
//
// Conventions, all arranged by Python: every hinge turns by +q about the plane's normal and every slide moves along +x
// or +z (a joint with the opposite axis gets sign = -1 and its position, velocity and torque change sign on the way in
// and out); the floor's normal is +z; bodies without joints are merged into the body that carries them.
#pragma once

namespace evergait::EVERGAIT_ISA {

constexpr int kMaxDof = 16;
constexpr int kMaxPoints = 48;
constexpr int kMaxPairs = 24;
constexpr int kMaxPairContacts = 15 * kMaxPairs;  // five places (lanes may differ), each with up to three records
constexpr int kMaxActuators = 16;

enum Kind { kSlideX = 0, kSlideZ = 1, kHinge = 2 };

// How strongly a limit or a contact pushes back (MuJoCo's solref and solimp, safety limits already applied).
struct Softness {
  double margin;     // the row exists where distance < margin
  double stiffness;  // K
  double damping;    // B
  double d_min, d_max, width, midpoint;
  double power;   // 1 or 2
  double weight;  // R = (1 - d) / d * weight
};

struct Dof {
  int kind, parent;
  double sign;
  double reference;           // q at which the model was drawn
  double anchor_x, anchor_z;  // from the parent's anchor, in the parent's frame
  double subtree_mass;
  double moment_x, moment_z;  // own mass * centre + children's subtree masses * their anchors, in this frame
  double inertia;             // about the anchor, children's subtree masses at their anchors
  double armature, damping, stiffness, spring_reference;
  int limited;
  double lower, upper;
  Softness limit;
  // The body's own fluid resistance (inertia-box model), zero without a fluid.
  double centre_x, centre_z;  // centre of mass from the anchor, in this frame
  double box_cos, box_sin;    // first in-plane axis of the inertia box, in this frame
  double drag_linear, drag_1, drag_2, drag_spin, drag_spin_quadratic;
  int first_point, n_points;  // contact points against the floor
};

// A sphere's centre (or a capsule's end) that may touch the floor.
struct Point {
  int dof;      // of the carrying body
  double x, z;  // from the anchor, in the body's frame
  double radius, floor_height;
  int dimension;  // 1 or 3
  double friction;
  Softness contact;
};

// Two capsules (half_length 0: spheres) that may touch each other. A dof of -1 is the world.
struct Capsule {
  int dof;
  double x, z;            // centre, from the anchor in the body's frame
  double axis_x, axis_z;  // half length * direction
  double radius;
  double length;  // half length
};
struct Pair {
  Capsule a, b;
  int dimension;
  double friction;
  double reach;  // no contact when the centres are further apart
  Softness contact;
};

struct Actuator {
  int dof;
  double gain;  // torque per unit of control, sign included
  int limited;
  double lower, upper;
};

struct PlanarModel {
  int n_dof, n_points, n_pairs, n_actuators;
  int runge_kutta;       // else Euler
  int implicit_damping;  // Euler only
  int fluid;
  int dense;  // two branches may touch: no sparsity
  double timestep, gravity_x, gravity_z;
  Dof dof[kMaxDof];
  Point point[kMaxPoints];
  Pair pair[kMaxPairs];
  Actuator actuator[kMaxActuators];
};

struct Reader {
  const double* at;
  double number() { return *at++; }
  int integer() { return static_cast<int>(*at++); }
};

inline Softness read_softness(Reader& r) {
  Softness s;
  s.margin = r.number(), s.stiffness = r.number(), s.damping = r.number();
  s.d_min = r.number(), s.d_max = r.number(), s.width = r.number(), s.midpoint = r.number(), s.power = r.number();
  s.weight = r.number();
  return s;
}

inline Capsule read_capsule(Reader& r) {
  Capsule c;
  c.dof = r.integer();
  c.x = r.number(), c.z = r.number(), c.axis_x = r.number(), c.axis_z = r.number();
  c.radius = r.number(), c.length = r.number();
  return c;
}

inline void read_model(const double* description, PlanarModel& m) {
  Reader r{description};
  m.n_dof = r.integer(), m.n_points = r.integer(), m.n_pairs = r.integer(), m.n_actuators = r.integer();
  m.runge_kutta = r.integer(), m.implicit_damping = r.integer(), m.fluid = r.integer(), m.dense = r.integer();
  m.timestep = r.number(), m.gravity_x = r.number(), m.gravity_z = r.number();
  for (int i = 0; i < m.n_dof; ++i) {
    Dof& d = m.dof[i];
    d.kind = r.integer(), d.parent = r.integer();
    d.sign = r.number(), d.reference = r.number(), d.anchor_x = r.number(), d.anchor_z = r.number();
    d.subtree_mass = r.number(), d.moment_x = r.number(), d.moment_z = r.number(), d.inertia = r.number();
    d.armature = r.number(), d.damping = r.number(), d.stiffness = r.number(), d.spring_reference = r.number();
    d.limited = r.integer(), d.lower = r.number(), d.upper = r.number();
    d.limit = read_softness(r);
    d.centre_x = r.number(), d.centre_z = r.number(), d.box_cos = r.number(), d.box_sin = r.number();
    d.drag_linear = r.number(), d.drag_1 = r.number(), d.drag_2 = r.number();
    d.drag_spin = r.number(), d.drag_spin_quadratic = r.number();
    d.first_point = r.integer(), d.n_points = r.integer();
  }
  for (int i = 0; i < m.n_points; ++i) {
    Point& p = m.point[i];
    p.dof = r.integer(), p.x = r.number(), p.z = r.number(), p.radius = r.number(), p.floor_height = r.number();
    p.dimension = r.integer(), p.friction = r.number();
    p.contact = read_softness(r);
  }
  for (int i = 0; i < m.n_pairs; ++i) {
    Pair& p = m.pair[i];
    p.a = read_capsule(r), p.b = read_capsule(r);
    p.dimension = r.integer(), p.friction = r.number(), p.reach = r.number();
    p.contact = read_softness(r);
  }
  for (int i = 0; i < m.n_actuators; ++i) {
    Actuator& a = m.actuator[i];
    a.dof = r.integer(), a.gain = r.number(), a.limited = r.integer(), a.lower = r.number(), a.upper = r.number();
  }
}

}  // namespace evergait::EVERGAIT_ISA
