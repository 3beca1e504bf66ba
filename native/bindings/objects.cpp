#include "bindings/objects.h"

#include <cmath>
#include <cstdio>

namespace evergait {

namespace {

std::string in_words(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", x);
  return text;
}

std::string in_words(const nb::object& value) { return nb::str(nb::handle(value)).c_str(); }

std::string in_words(const size_t* shape, size_t n_dims) {
  std::string text = "(";
  for (size_t i = 0; i < n_dims; i++)
    text += std::to_string(shape[i]) + (n_dims == 1 ? "," : i + 1 < n_dims ? ", " : "");
  return text + ")";
}

}  // namespace

void refuse(const std::string& where, const std::string& is, const std::string& right) {
  throw nb::value_error((where + ": is " + is + "; it must be " + right).c_str());
}

void raise_if(const Problem& problem, const std::string& where) {
  if (!problem) return;
  std::string path = where + "." + problem.part;
  if (problem.index >= 0) path += "[" + std::to_string(problem.index) + "]";
  const std::string range = "from " + in_words(problem.low) + " to " + in_words(problem.high);
  refuse(path + "." + problem.field, in_words(problem.value), problem.right ? problem.right : range);
}

void require_range(const char* name, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return;
  const std::string range = "from " + std::to_string(low) + " to " + std::to_string(high);
  refuse(name, std::to_string(value), low == high ? std::to_string(low) : range);
}

void require_threads(int n_threads) { require_range("n_threads", n_threads, 1, 1 << 16); }

void require_shape(const std::string& name, const size_t* shape, size_t n_dims, std::initializer_list<int64_t> right) {
  const std::vector<size_t> expected(right.begin(), right.end());
  if (!std::equal(expected.begin(), expected.end(), shape, shape + n_dims))
    throw nb::value_error((name + ": its shape is " + in_words(shape, n_dims) + "; it must be " +
                           in_words(expected.data(), expected.size()))
                              .c_str());
}

void refuse_type(const std::string& where, nb::handle value, const char* type, int n_dims, bool written) {
  auto part = [&](const char* name) { return in_words(nb::object(value.attr(name))); };
  std::string is = in_words(nb::object(value.type().attr("__name__")));
  if (nb::hasattr(value, "dtype") && nb::hasattr(value, "shape"))
    is += " of " + part("dtype") + " with shape " + part("shape");
  const std::string right = std::string("a contiguous array of ") + type + " with " + std::to_string(n_dims) +
                            (n_dims == 1 ? " dimension" : " dimensions") + (written ? " that can be written to" : "");
  throw nb::type_error((where + ": is " + is + "; it must be " + right).c_str());
}

void raise_status(Status status) {
  if (status == kNoMemory) {
    PyErr_SetString(PyExc_MemoryError, "there is not enough memory for the policies of so many threads");
    throw nb::python_error();
  }
}

nb::object Members::get(const char* name) const {
  try {
    return object_.attr(name);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_AttributeError)) throw;
    throw nb::type_error((path(name) + ": is missing").c_str());
  }
}

int64_t Members::integer(const char* name, int64_t low, int64_t high) const {
  int64_t value = 0;
  if (!nb::try_cast<int64_t>(get(name), value, false))
    refuse(path(name), nb::repr(get(name)).c_str(), "a whole number");
  require_range(path(name).c_str(), value, low, high);
  return value;
}

uint64_t Members::word(const char* name) const {
  uint64_t value = 0;
  if (!nb::try_cast<uint64_t>(get(name), value, false))
    refuse(path(name), nb::repr(get(name)).c_str(), "a whole number from 0 to 2⁶⁴ - 1");
  return value;
}

double Members::number(const char* name) const {
  double value = 0;
  if (!nb::try_cast<double>(get(name), value, true)) refuse(path(name), nb::repr(get(name)).c_str(), "a number");
  return value;
}

bool Members::flag(const char* name) const {
  bool value = false;
  if (!nb::try_cast<bool>(get(name), value, false)) refuse(path(name), nb::repr(get(name)).c_str(), "True or False");
  return value;
}

std::string Members::text(const char* name) const {
  std::string value;
  if (!nb::try_cast<std::string>(get(name), value, false)) refuse(path(name), nb::repr(get(name)).c_str(), "a string");
  return value;
}

NoiseKey read_noise(const Members& noise) {
  const int64_t purpose = noise.integer("stage", 0, (1 << 24) - 1) * 256 + noise.integer("purpose", 0, 255);
  return {noise.word("seed"), uint32_t(noise.integer("generation", 0, UINT32_MAX)), uint32_t(purpose)};
}

}  // namespace evergait
