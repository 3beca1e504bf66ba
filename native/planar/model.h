// A planar robot. Python compiles it from an mjModel and passes it as one array of doubles (see description.h).
//
// Conventions, all arranged by Python: every hinge turns by +q about the plane's normal and every slide moves along +x
// or +z (a joint with the opposite axis gets sign = -1 and its position, velocity and torque change sign on the way in
// and out); the floor's normal is +z; bodies without joints are merged into the body that carries them.
#pragma once

namespace evergait {

constexpr int kMaxDof = 16;
constexpr int kMaxPoints = 48;
constexpr int kMaxPairs = 24;
constexpr int kMaxPairContacts = 15 * kMaxPairs;  // five places (lanes may differ), each with up to three records
constexpr int kMaxActuators = 16;
constexpr int kMaxObservations = 3 * kMaxDof + 1;

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

}  // namespace evergait
