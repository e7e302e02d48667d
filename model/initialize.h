// Initial weights: each element is a pure function of (seed, tensor name, global index), identical
// under every layout and, bit for bit, on every machine (no library functions, no fused
// multiply-add).
//
// Pure; different threads may fill different ranges.
#ifndef TROUPE_MODEL_INITIALIZE_H_
#define TROUPE_MODEL_INITIALIZE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "model/program/program.h"

namespace troupe::model {

// out[i] = std · z(first_index + i), with z standard normal under the key (seed, "init/" + name).
void FillNormal(uint64_t seed, std::string_view name, int64_t first_index, double std,
                std::span<float> out);

// Writes the initial values of local elements [first_element, first_element + out.size()) of one
// part (row-major in part.local_shape). REQUIRES: the range is inside the part.
void FillInitial(uint64_t seed, const InitialValue& initial, const ParameterPart& part,
                 int64_t first_element, std::span<float> out);

// Writes the initial values of this rank's whole value of `state`: `out` has its elements.
void FillInitial(uint64_t seed, const Program& program, const State& state, std::span<float> out);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_INITIALIZE_H_
