// Flat descriptions of robots and rules, as arrays of doubles in the order of fields.h, and whether they make sense.
#pragma once

#include "checks.h"
#include "planar.h"

namespace evergait {

Problem read_model(const double* description, int64_t n, PlanarModel& model);
Problem read_rules(const double* description, int64_t n, const PlanarModel& model, TaskRules& rules);

// How many numbers a policy sees of a robot.
int observation_size(const TaskRules& rules, const PlanarModel& model);

}  // namespace evergait
