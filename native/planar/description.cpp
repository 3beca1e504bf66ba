#include "planar/description.h"

namespace evergait {
namespace {

constexpr double kAnyInteger = 1e9, kEverything = __builtin_inf();

// Takes numbers in order; the first that is missing or cannot be is the problem.
struct Reader {
  const double *at, *end;
  const char* part;
  int index = -1;
  Checks check = {};

  double next(const char* field) {
    if (check.problem) return 0.0;
    if (at == end) check.problem = {part, index, field, 0, 0, 0, "there: the description ends before it"};
    return at == end ? 0.0 : *at++;
  }
  void operator()(const char* field, double& x) {
    x = next(field);
    check.number(part, index, field, x, -kEverything, kEverything);
  }
  void operator()(const char* field, float& x) {
    double wide;
    (*this)(field, wide);
    x = float(wide);
  }
  void operator()(const char* field, int& x) {
    const double number = next(field);
    x = check.number(part, index, field, number, -kAnyInteger, kAnyInteger) ? int(number) : 0;
    if (double(x) != number && !check.problem) check.problem = {part, index, field, number, 0, 0, "a whole number"};
  }
  void operator()(const char* field, bool& x) {
    int number = 0;
    (*this)(field, number);
    check.number(part, index, field, number, 0, 1);
    x = number != 0;
  }
  void operator()(const char* field, double (&x)[2]) { (*this)(field, x[0]), (*this)(field, x[1]); }
  void operator()(const char*, Softness& s) { each_field(s, *this); }
  void operator()(const char*, Capsule& c) { each_field(c, *this); }

  bool within(const char* field, int value, int low, int high) {
    return check.number(part, index, field, value, low, high);
  }

  template <class T>
  void rows(const char* name, T* row, int n) {
    part = name;
    for (index = 0; index < n && !check.problem; ++index) each_field(row[index], *this);
    index = -1;
  }

  Problem finish() {
    if (!check.problem && at != end)
      check.problem = {part, -1, "length", double(end - at), 0, 0, "0 numbers behind the end of the description"};
    return check.problem;
  }
};

// What the kernels use as an index or a count.
void check_indices(const PlanarModel& m, Reader& r) {
  r.part = "dof";
  int n_points = 0;
  for (int i = r.index = 0; i < m.n_dof; r.index = ++i) {
    const Dof& d = m.dof[i];
    r.within("kind", d.kind, kSlideX, kHinge);
    r.within("parent", d.parent, -1, i - 1);
    r.within("first_point", d.n_points ? d.first_point : 0, 0, m.n_points);
    r.within("n_points", d.n_points, 0, m.n_points - (d.n_points ? d.first_point : 0));
    if (r.check.problem) return;
    // Each point belongs to one joint: so there is room for all of their contacts.
    for (int k = 0; k < d.n_points; ++k)
      if (m.point[d.first_point + k].dof != i)
        r.check.problem = {
            "dof", i, "first_point", double(d.first_point), 0, 0, "the first of its own n_points points"};
    if (r.check.problem) return;
    n_points += d.n_points;
  }
  r.part = "point";
  for (int i = r.index = 0; i < m.n_points; r.index = ++i) r.within("dof", m.point[i].dof, 0, m.n_dof - 1);
  r.part = "pair";
  for (int i = r.index = 0; i < m.n_pairs; r.index = ++i) {
    r.within("a.dof", m.pair[i].a.dof, -1, m.n_dof - 1);
    r.within("b.dof", m.pair[i].b.dof, -1, m.n_dof - 1);
  }
  r.part = "actuator";
  for (int i = r.index = 0; i < m.n_actuators; r.index = ++i) r.within("dof", m.actuator[i].dof, 0, m.n_dof - 1);
  r.part = "model", r.index = -1;
  r.within("n_points", m.n_points, n_points, n_points);
}

}  // namespace

Problem read_model(const double* description, int64_t n, PlanarModel& m) {
  Reader r{description, description + n, "model"};
  each_field(m, r);
  r.within("n_dof", m.n_dof, 1, kMaxDof);
  r.within("n_points", m.n_points, 0, kMaxPoints);
  r.within("n_pairs", m.n_pairs, 0, kMaxPairs);
  r.within("n_actuators", m.n_actuators, 0, kMaxActuators);
  if (r.check.problem) return r.check.problem;
  r.rows("dof", m.dof, m.n_dof);
  r.rows("point", m.point, m.n_points);
  r.rows("pair", m.pair, m.n_pairs);
  r.rows("actuator", m.actuator, m.n_actuators);
  if (!r.finish()) check_indices(m, r);
  return r.check.problem;
}

Problem read_rules(const double* description, int64_t n, const PlanarModel& model, TaskRules& rules) {
  Reader r{description, description + n, "rules"};
  each_field(rules, r);
  r.within("kind", rules.kind, kRunner, kDoublePendulum);
  r.within("n_frames", rules.n_frames, 1, 1 << 20);
  if (r.check.problem) return r.check.problem;
  const bool doubled = rules.kind == kDoublePendulum;
  r.within("n_hidden", rules.n_hidden, 0, doubled ? 0 : model.n_dof);
  // Positions and velocities that the rules of a kind look at.
  const int n_needed = rules.kind == kRunner ? 1 : rules.kind == kPendulum ? 2 : 3;
  r.check.number("model", -1, "n_dof", model.n_dof, n_needed, kMaxDof);
  return r.finish();
}

int observation_size(const TaskRules& rules, const PlanarModel& model) {
  return 2 * model.n_dof - rules.n_hidden + (rules.kind == kDoublePendulum ? model.n_dof : 0);
}

}  // namespace evergait
