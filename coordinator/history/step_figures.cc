#include "coordinator/history/step_figures.h"

#include <string>
#include <vector>

#include "base/check.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;

// The numbers that `figures` has, without the communication.
std::vector<const FieldDescriptor*> NumbersOf(const v1::StepFigures& figures) {
  std::vector<const FieldDescriptor*> fields;
  figures.GetReflection()->ListFields(figures, &fields);
  std::erase_if(fields, [](const FieldDescriptor* field) {
    return field->number() == v1::StepFigures::kCommunicationFieldNumber;
  });
  return fields;
}

v1::CommunicationSeconds& CommunicationOf(const std::string& purpose, v1::StepFigures* figures) {
  for (v1::CommunicationSeconds& entry : *figures->mutable_communication()) {
    if (entry.purpose() == purpose) return entry;
  }
  v1::CommunicationSeconds& added = *figures->add_communication();
  added.set_purpose(purpose);
  return added;
}

}  // namespace

void AddFigures(const v1::StepFigures& step, v1::StepFigures* sums) {
  const google::protobuf::Reflection& reflection = *step.GetReflection();
  for (const FieldDescriptor* field : NumbersOf(step)) {
    reflection.SetDouble(sums, field,
                         reflection.GetDouble(*sums, field) + reflection.GetDouble(step, field));
  }
  for (const v1::CommunicationSeconds& entry : step.communication()) {
    v1::CommunicationSeconds& sum = CommunicationOf(entry.purpose(), sums);
    sum.set_exposed(sum.exposed() + entry.exposed());
    sum.set_total(sum.total() + entry.total());
  }
}

v1::StepFigures MeanFigures(const v1::StepFigures& sums, int64_t count) {
  TROUPE_CHECK(count > 0, "the mean of {} steps", count);
  const auto divisor = static_cast<double>(count);
  const google::protobuf::Reflection& reflection = *sums.GetReflection();
  v1::StepFigures mean = sums;
  for (const FieldDescriptor* field : NumbersOf(sums)) {
    reflection.SetDouble(&mean, field, reflection.GetDouble(sums, field) / divisor);
  }
  for (v1::CommunicationSeconds& entry : *mean.mutable_communication()) {
    entry.set_exposed(entry.exposed() / divisor);
    entry.set_total(entry.total() / divisor);
  }
  return mean;
}

}  // namespace troupe
